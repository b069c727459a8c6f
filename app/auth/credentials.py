"""Where a request carries its credentials: HTTP Basic, the query, or a signature (decisions 12)."""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from flask import current_app
from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session
from werkzeug.datastructures import Authorization

from app.auth.encryption import UNKNOWN_KEY_TOKEN, decrypt
from app.auth.oauth1 import ALGORITHMS, MAX_FORMS, Signature, SignedRequest
from app.auth.principals import (
    ApiKeyCredentials,
    Credentials,
    InvalidCredentials,
    Principal,
    cached_principal,
    key_with_roles,
    principal_of,
)
from app.db.session import run_in_transaction
from app.errors import InvalidParams
from app.models import OAuthNonce

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

CLOCK_SKEW = 15 * 60
"""Seconds by which the time of a signature may differ from ours."""

MAX_HEADER_LENGTH = 4096
"""Longest ``Authorization`` header with parameters; a signature needs some 400 characters."""

FEW_FORMS = 12
"""How many forms of a signature are tried for an address that sent many wrong credentials."""

_ELEMENT = re.compile(r'(?:[^,"]|"[^"]*")+')
_PARAMETER = re.compile(r"\s*(?:[^\s=]+\s*=|$)")

IN_QUERY = frozenset(
    {
        "consumer_key",
        "consumer_secret",
        "oauth_consumer_key",
        "oauth_nonce",
        "oauth_signature",
        "oauth_signature_method",
        "oauth_timestamp",
        "oauth_token",
        "oauth_version",
    }
)
"""The parameters that say who sent a request; no link repeats them."""

SENT = "shop_api.sent"
"""Where a request that was changed keeps what the client sent: method, path and query."""


@dataclass(frozen=True, slots=True)
class Basic:
    """HTTP Basic, which is parsed only where its principal is not cached (decisions 2).

    Args:
        header: the ``Authorization`` header; what cannot be read is nobody's.
    """

    header: str = field(repr=False)

    @property
    def consumer_key(self) -> str:
        """The key that it names."""
        pair = self._pair()
        return pair.consumer_key if pair else ""

    def principal(self) -> Principal:
        """Return whose key and secret these are, or raise InvalidCredentials."""
        return cached_principal(self.header, self._look_up)

    def _look_up(self) -> Principal:
        pair = self._pair()
        if pair is None:
            raise InvalidCredentials("The consumer key or its secret is wrong.")
        return pair.look_up()

    def _pair(self) -> ApiKeyCredentials | None:
        given = _authorization(self.header)
        if given is None or given.type != "basic":
            return None
        return ApiKeyCredentials(given.username or "", given.password or "")


@dataclass(frozen=True, slots=True)
class Unusable:
    """Credentials that cannot be anybody's, and why."""

    reason: str
    consumer_key: str = ""

    def principal(self) -> Principal:
        """Raise InvalidCredentials."""
        raise InvalidCredentials(self.reason)


@dataclass(frozen=True, slots=True)
class Signed:
    """A signature by OAuth 1.0a, one-legged.

    Args:
        request: what was signed.
        signature: what it says of its signature.
        forms: in how many forms the request is tried.
    """

    request: SignedRequest
    signature: Signature
    forms: int = MAX_FORMS

    @property
    def consumer_key(self) -> str:
        """The key that it names."""
        return self.signature.consumer_key

    def principal(self) -> Principal:
        """Return whose secret signed the request, or raise InvalidCredentials."""
        signature = self.signature
        if signature.method not in ALGORITHMS:
            raise InvalidCredentials(f"Sign with one of {', '.join(ALGORITHMS)}.")
        # Eleven digits are a year beyond 5000; more are not worth a number.
        now, sent = time.time(), signature.timestamp
        if not (sent.isascii() and sent.isdigit() and len(sent) < 12):
            raise InvalidCredentials("The timestamp is no number of seconds.")
        if abs(now - int(sent)) > CLOCK_SKEW:
            raise InvalidCredentials(
                "The timestamp is more than 15 minutes from the server's time."
            )
        key = key_with_roles(signature.consumer_key)
        secret = decrypt(key[0].consumer_secret_encrypted if key else UNKNOWN_KEY_TOKEN)
        if key and secret is None:
            # Only the log says so: the answer would tell that the key exists.
            current_app.logger.warning(
                "key %s cannot sign requests: its secret is not stored; create another key",
                key[0].id,
            )
        # The same work whether the key is unknown or the signature is wrong.
        known = self.request.is_signed_with(secret or secrets.token_hex(20), signature, self.forms)
        if not known or secret is None:
            raise InvalidCredentials("The consumer key or the signature is wrong.")
        if not _spend(key[0].id, signature.nonce, int(sent), int(now)):
            raise InvalidCredentials("The nonce was used before.")
        return principal_of(key)


def _spend(key_id: int, nonce: str, sent: int, now: int) -> bool:
    """Note that a key used a nonce at a time; return False when it did before.

    Only the same second makes a replay (RFC 5849, 3.3): some clients make a nonce of eight random
    digits, which a busy one meets again within minutes. The database remembers, for all workers,
    as long as the timestamp would be accepted.
    """
    name = sha256(f"{key_id} {sent} {nonce}".encode()).hexdigest()

    def work(session: Session) -> bool:
        if session.get(OAuthNonce, name) is not None:
            return False
        session.execute(insert(OAuthNonce).values(id=name, timestamp=sent))
        # Some of the ones that nobody can use again; each request takes its share.
        stale = select(OAuthNonce.id).where(OAuthNonce.timestamp < now - CLOCK_SKEW).limit(10)
        stale = stale.with_for_update(skip_locked=True)
        session.execute(delete(OAuthNonce).where(OAuthNonce.id.in_(stale)))
        return True

    return run_in_transaction(work)


def from_basic(request: Request) -> Credentials | None:
    """Return the key pair of the ``Authorization`` header, None without one (decisions 2)."""
    header = _header(request)
    return None if header is None else Basic(header)


def from_legacy(request: Request) -> Credentials | None:
    """Return what a program written for the legacy API sends (decisions 12).

    The header comes first: Basic, or a signature. Then the query: a signature, or the key pair
    itself, which must not travel in clear: every proxy on the way writes addresses to its log.
    """
    header = _header(request) or ""
    given = _authorization(header)
    if given is not None and given.type == "basic":
        return Basic(header)
    signed = _signed(request, given)
    try:
        signature = signed.signature()
    except ValueError:
        return Unusable("The request has too many parameters.")
    if isinstance(signature, str):
        return Unusable(f"The parameter {signature} is missing.")
    if signature is not None:
        named = request.headers.get("X-HTTP-Method-Override", "").strip().upper()
        if named and named.replace("HEAD", "GET") != request.method:
            return Unusable("X-HTTP-Method-Override names another method than the one signed.")
        return Signed(signed, signature)
    key, secret = request.args.get("consumer_key"), request.args.get("consumer_secret")
    if key is None and secret is None:
        return None
    if not request.is_secure and not current_app.config["SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH"]:
        return Unusable("Send consumer_key and consumer_secret over HTTPS only, or sign requests.")
    return ApiKeyCredentials(key or "", secret or "")


def _signed(request: Request, given: Authorization | None) -> SignedRequest:
    environ = request.environ
    method, path, query = environ[SENT]
    # gunicorn's name, and that of other servers; an address in full may come too.
    raw = (environ.get("RAW_URI") or environ.get("REQUEST_URI") or "").partition("?")[0]
    header = []
    if given is not None and given.type == "oauth":
        decoded = (
            (unquote(name), unquote(value or "")) for name, value in given.parameters.items()
        )
        # What stands in the header is no parameter of the request: a signed filter or `_method`
        # that somebody moved there would be without effect, and the signature still right.
        header = [pair for pair in decoded if pair[0].startswith("oauth_")]
    return SignedRequest(
        methods=_methods(request, method),
        origin=f"{request.scheme}://{request.headers.get('Host', request.host)}",
        path=(raw if raw.startswith("/") else urlsplit(raw).path)
        or quote(request.script_root + path),
        query=query,
        header=header,
    )


def _methods(request: Request, sent: str) -> list[str]:
    """Return the methods of which a signature may be (decisions 14).

    A signature covers one method. Where the query overrides the method, the parameter is signed, so
    that clients may sign either one. ``X-HTTP-Method-Override`` is not signed: a signature covers
    the method that it names, or it is wrong.

    Args:
        request: as it is answered.
        sent: the method on the wire.
    """
    by_query = any(request.args.getlist("_method"))
    return list(dict.fromkeys([sent, request.method])) if by_query else [request.method]


def _header(request: Request) -> str | None:
    """Return the one ``Authorization`` header; None without any (decisions 17).

    Servers join several ones by commas. A comma also parts the parameters of one header, but a
    parameter has an equals sign behind its name, and the scheme of a second header has none.

    Raises:
        InvalidParams: there are several, or one with parameters that is too long.
    """
    header: str | None = request.environ.get("HTTP_AUTHORIZATION")
    if header is None:
        return None
    if "," in header:
        if len(header) > MAX_HEADER_LENGTH:
            reason = f"must be one header of at most {MAX_HEADER_LENGTH:,} characters."
            raise InvalidParams({"Authorization": reason})
        first, *others = _ELEMENT.findall(header) or [""]
        basic = first.strip()[:6].lower() == "basic "  # has no parameters
        if basic or not all(map(_PARAMETER.match, others)):
            raise InvalidParams({"Authorization": "must be sent once."})
    return header


def _authorization(header: str) -> Authorization | None:
    """Return the parsed header; None when there is none, or one that cannot be read."""
    try:
        return Authorization.from_header(header)
    except ValueError:  # werkzeug does not expect a letter beyond ASCII
        return None
