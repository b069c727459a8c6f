"""Where a request carries its credentials: HTTP Basic, the query, or a signature (decisions 12)."""

from __future__ import annotations

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
from app.auth.oauth1 import ALGORITHMS, Signature, SignedRequest
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
from app.models import OAuthNonce

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

CLOCK_SKEW = 15 * 60
"""Seconds by which the time of a signature may differ from ours."""

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
    """HTTP Basic, which is read only where its sender is not known yet (decisions 2).

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
    """A signature by OAuth 1.0a, one-legged."""

    request: SignedRequest
    signature: Signature

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
        known = self.request.is_signed_with(secret or secrets.token_hex(20), signature)
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
        session.execute(insert(OAuthNonce).values(id=name, sent=sent))
        # Some of the ones that nobody can use again; each request takes its share.
        stale = select(OAuthNonce.id).where(OAuthNonce.sent < now - CLOCK_SKEW).limit(10)
        stale = stale.with_for_update(skip_locked=True)
        session.execute(delete(OAuthNonce).where(OAuthNonce.id.in_(stale)))
        return True

    return run_in_transaction(work)


def from_basic(request: Request) -> Credentials | None:
    """Return the key pair of the ``Authorization`` header, None without one (decisions 2)."""
    header = request.environ.get("HTTP_AUTHORIZATION")
    return None if header is None else Basic(header)


def from_legacy(request: Request) -> Credentials | None:
    """Return what a program written for the legacy API sends (decisions 12).

    The header comes first: Basic, or a signature. Then the query: a signature, or the key pair
    itself, which must not travel in clear: every proxy on the way writes addresses to its log.
    """
    header = request.environ.get("HTTP_AUTHORIZATION", "")
    given = _authorization(header)
    if given is not None and given.type == "basic":
        return Basic(header)
    signed = _signed(request, given)
    try:
        signature = signed.signature()
    except ValueError:
        return Unusable("The query has too many parameters.")
    if isinstance(signature, str):
        return Unusable(f"The parameter {signature} is missing.")
    if signature is not None:
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
        header = [(unquote(name), unquote(value or "")) for name, value in given.parameters.items()]
    return SignedRequest(
        methods=list(dict.fromkeys([method, request.method])),
        origin=f"{request.scheme}://{request.headers.get('Host', request.host)}",
        path=(raw if raw.startswith("/") else urlsplit(raw).path)
        or quote(request.script_root + path),
        query=query,
        header=header,
    )


def _authorization(header: str) -> Authorization | None:
    """Return the parsed header; None when there is none, or one that cannot be read."""
    try:
        return Authorization.from_header(header)
    except ValueError:  # werkzeug does not expect a letter beyond ASCII
        return None
