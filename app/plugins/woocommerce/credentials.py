"""Credentials of WooCommerce clients: a pair in the query, or a signature (decisions 12)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from urllib.parse import quote, unquote, urlsplit

from flask import Request, current_app
from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from app.api.authentication import is_blocked
from app.auth.api_keys import ApiKeyCredentials, key_with_roles, principal_of
from app.auth.credentials import (
    ORIGINAL_REQUEST,
    Basic,
    MalformedCredentials,
    OriginalRequest,
    authorization_header,
    parse_authorization,
    unsupported_scheme,
)
from app.auth.encryption import UNKNOWN_KEY_TOKEN, decrypt
from app.auth.principals import Credentials, InvalidCredentials, Principal
from app.db.session import run_in_transaction
from app.models.oauth_nonce import CLOCK_SKEW, OAuthNonce
from app.plugins.woocommerce import oauth1

FEW_FORMS = 12
"""Number of signature forms to try for an address with many failed logins."""

UNKNOWN_METHOD = f"Sign with one of {', '.join(oauth1.ALGORITHMS)}."
NO_TIMESTAMP = "The timestamp must be a number of seconds."
WRONG_TIMESTAMP = "The timestamp differs from the server time by more than 15 minutes."
USED_NONCE = "The nonce has already been used."


@dataclass(frozen=True, slots=True)
class SignedCredentials:
    """A one-legged OAuth 1.0a signature, and the number of its forms to try."""

    request: oauth1.SignedRequest
    signature: oauth1.Signature
    forms: int = oauth1.MAX_FORMS

    @property
    def consumer_key(self) -> str:
        """The consumer key."""
        return self.signature.consumer_key

    def principal(self) -> Principal:
        """Return the principal of the signing key, or raise InvalidCredentials."""
        signature = self.signature
        if signature.method not in oauth1.ALGORITHMS:
            raise InvalidCredentials(UNKNOWN_METHOD)
        # Eleven digits reach beyond the year 5000.
        now, sent = time.time(), signature.timestamp
        if not (sent.isascii() and sent.isdigit() and len(sent) < 12):
            raise InvalidCredentials(NO_TIMESTAMP)
        if abs(now - int(sent)) > CLOCK_SKEW:
            raise InvalidCredentials(WRONG_TIMESTAMP)
        key = key_with_roles(signature.consumer_key)
        secret = decrypt(key[0].consumer_secret_encrypted if key else UNKNOWN_KEY_TOKEN)
        if key and secret is None:
            # Report this only in the log, because a response would reveal that the key exists.
            current_app.logger.warning(
                "key %s cannot sign requests because its secret is not stored. Create another key.",
                key[0].id,
            )
        # Unknown keys take as much work as wrong signatures.
        known = self.request.is_signed_with(secret or secrets.token_hex(20), signature, self.forms)
        if not known or secret is None:
            raise InvalidCredentials("The consumer key or the signature is wrong.")
        if not _use_nonce(key[0].id, signature.nonce, int(sent), int(now)):
            raise InvalidCredentials(USED_NONCE)
        return principal_of(key)


def _use_nonce(key_id: int, nonce: str, sent: int, now: int) -> bool:
    """Store the nonce of a key and timestamp. Returns False if it has already been used.

    A nonce may be used again with another timestamp (RFC 5849, 3.3). Some clients generate eight
    random digits, which repeat within minutes on a busy client. The nonce is stored in the database
    for all workers until the timestamp expires.
    """
    name = sha256(f"{key_id} {sent} {nonce}".encode()).hexdigest()

    def work(session: Session) -> bool:
        if session.get(OAuthNonce, name) is not None:
            return False
        session.execute(insert(OAuthNonce).values(id=name, timestamp=sent))
        # Each request deletes some expired nonces.
        expired = select(OAuthNonce.id).where(OAuthNonce.timestamp < now - CLOCK_SKEW).limit(10)
        expired = expired.with_for_update(skip_locked=True)
        session.execute(delete(OAuthNonce).where(OAuthNonce.id.in_(expired)))
        return True

    # Otherwise, a signed read would wait for a standby that hangs.
    return run_in_transaction(work, is_internal=True)


def from_header_or_query(
    request: Request, form_of: Callable[[Request], str] = lambda _: ""
) -> Credentials | None:
    """Return Basic credentials, a signature, or a pair in the query, or None (decisions 12).

    The header takes precedence, with Basic or a signature. The query can contain a signature, or
    the consumer key and secret. These require HTTPS, because proxies log URLs.

    Args:
        form_of: returns the fields of a form in the body, as sent, which a signature covers
            (RFC 5849, 3.4.1.3.1) and which can contain it. They are not read for other credentials.
    """
    header = authorization_header(request) or ""
    given = parse_authorization(header)
    if given is not None and given.type == "basic":
        return Basic(header)
    parameters = given.parameters if given is not None and given.type == "oauth" else {}
    sent: OriginalRequest = request.environ[ORIGINAL_REQUEST]
    # Before any parameter is decoded, and including those that are ignored (decisions 17).
    if len(parameters) + 1 + sent.query.count("&") > oauth1.MAX_PARAMETERS:
        return MalformedCredentials("The request has too many parameters.")
    signed = _signed(request, sent, parameters)
    if not {"consumer_key", "consumer_secret"} & request.args.keys():
        signed = replace(signed, form=form_of(request))
    signature = signed.signature()
    if isinstance(signature, str):
        return MalformedCredentials(f"The parameter {signature} is missing.", "parameter")
    if signature is not None:
        if signed.form.count("&") >= oauth1.MAX_FORM_FIELDS:
            return MalformedCredentials("The request has too many parameters.")
        override = request.headers.get("X-HTTP-Method-Override", "").strip().upper()
        if override and override.replace("HEAD", "GET") != request.method:
            return MalformedCredentials("X-HTTP-Method-Override does not match the signed method.")
        # A signature does not cover the order of parameters, and only the last one has an effect.
        if len(set(sent.overrides)) > 1:
            return MalformedCredentials("The request has several values of _method.")
        return SignedCredentials(signed, signature, FEW_FORMS if is_blocked() else oauth1.MAX_FORMS)
    key, secret = request.args.get("consumer_key"), request.args.get("consumer_secret")
    if key is None and secret is None:
        reason = unsupported_scheme(header, or_oauth=True)
        return MalformedCredentials(reason, "scheme") if reason else None
    if not request.is_secure and not current_app.config["SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH"]:
        return MalformedCredentials(
            "Send consumer_key and consumer_secret over HTTPS only, or sign requests."
        )
    return ApiKeyCredentials(key or "", secret or "")


def _signed(
    request: Request, sent: OriginalRequest, parameters: Mapping[str, str | None]
) -> oauth1.SignedRequest:
    environ = request.environ
    # gunicorn sets RAW_URI, other servers set REQUEST_URI. Both can be a full URL.
    raw = (environ.get("RAW_URI") or environ.get("REQUEST_URI") or "").partition("?")[0]
    decoded = ((unquote(name), unquote(value or "")) for name, value in parameters.items())
    # Parameters in the header do not take effect. Ignore others than oauth_*, because otherwise a
    # signed filter or `_method` could be moved there without invalidating the signature.
    header = [pair for pair in decoded if pair[0].startswith("oauth_")]
    return oauth1.SignedRequest(
        methods=_methods(request, sent),
        origin=f"{request.scheme}://{request.headers.get('Host', request.host)}",
        path=(raw if raw.startswith("/") else urlsplit(raw).path)
        or quote(request.script_root + sent.path),
        query=sent.query,
        header=header,
        # PHP reads the fields of POST only, so that clients of PHP programs sign no others.
        is_form_optional=sent.method != "POST",
    )


def _methods(request: Request, sent: OriginalRequest) -> list[str]:
    """Return the methods that a signature can cover (decisions 14).

    A signature covers one method. If the query overrides the method, clients may sign either
    method, because the parameter itself is signed. ``X-HTTP-Method-Override`` is not signed, so the
    signature must cover the method in that header.
    """
    return (
        list(dict.fromkeys([sent.method, request.method])) if sent.overrides else [request.method]
    )
