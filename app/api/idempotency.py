"""Safe retries with ``Idempotency-Key`` (draft-ietf-httpapi-idempotency-key-header).

The response is stored in the transaction of the request, so that a crash loses both or neither. If
concurrent requests have the same key, a unique index lets one request succeed. The other requests
are retried and return the stored response. Error responses are not stored, because they change
nothing and the request can be processed again.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from hashlib import sha256
from typing import Any

import orjson
from flask import Response, request
from sqlalchemy import ColumnElement, delete, insert, or_, select
from sqlalchemy.orm import Session

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint
from app.auth.encryption import decrypt, encrypt
from app.auth.hashes import keyed_hash
from app.db.read_pool import fetch
from app.db.session import now, run_in_transaction
from app.errors import InvalidParams, ShopError
from app.models import IDEMPOTENCY_PERSONS, IDEMPOTENCY_RECORDS
from app.models.idempotency_record import RETENTION
from app.services.common.persons import persons_of
from app.services.customers.traces import without_erased

MAX_BYTES = 16 * 1024 * 1024
"""Maximum size of a stored response."""
MAX_PERSONS = 500
"""Persons per statement."""
MAX_DELETED = 20
"""Number of expired records that are deleted for each new record."""

View = Callable[..., Response]
Convert = Callable[[object], object]


def idempotent(view: View) -> View:
    """Run a view once per ``Idempotency-Key`` and return the stored response for retries.

    Use this decorator above ``@blp.response`` and below ``@blp.arguments``, so that invalid bodies
    are rejected first. The view can run more than once in a transaction that is rolled back. It
    must return JSON and have no side effects outside ``run_in_transaction``.
    """
    return _idempotent(view, _PLAIN)


def idempotent_with_query(view: View) -> View:
    """Do the same as ``idempotent`` for requests whose parameters belong to what they send."""
    return _idempotent(view, _Form(sent=lambda: request.get_data() + b"\0" + request.query_string))


def idempotent_in_form(view: View, name: Convert, bare: Convert) -> View:
    """Do the same as ``idempotent`` for responses whose records have no names around them.

    Args:
        name: returns a body with the names of its records, by which persons are found in it.
        bare: the inverse.
    """
    named = _through(name)
    return _idempotent(view, _Form(named, _through(bare), named=named))


def _through(convert: Convert) -> Callable[[bytes], bytes]:
    return lambda body: orjson.dumps(convert(orjson.loads(body)))


def idempotent_with_secret(require: Callable[[Any], None]) -> Callable[[View], View]:
    """Do the same as ``idempotent`` for responses with a secret, which are stored encrypted.

    Args:
        require: raises ShopError if the caller could no longer obtain the secrets of a stored
            response, which is its argument. The rights of a key can have been reduced since.
    """

    def decorate(view: View) -> View:
        return _idempotent(view, _Form(_encrypt, _decrypt, require))

    return decorate


@dataclass(frozen=True, slots=True)
class _Form:
    """How responses are stored and returned again: functions of a body.

    Args:
        require: raises ShopError if the caller must not get the response again.
        named: converts a body to the form in which ``persons_of`` finds persons.
        sent: returns what a retry must send again.
    """

    store: Callable[[bytes], bytes] = bytes
    load: Callable[[bytes], bytes] = bytes
    require: Callable[[Any], None] | None = None
    named: Callable[[bytes], bytes] = bytes
    sent: Callable[[], bytes] = lambda: request.get_data()  # noqa: PLW0108  # of each request


def _encrypt(body: bytes) -> bytes:
    return encrypt(body.decode()).encode()


def _decrypt(stored: bytes) -> bytes:
    # The record was found by a hash with SECRET_KEY, so the same key has encrypted it.
    return (decrypt(stored.decode()) or "").encode()


_PLAIN = _Form()


def _idempotent(view: View, form: _Form) -> View:
    @wraps(view)
    def wrapper(*args: object, **kwargs: object) -> Response:
        key = request.headers.get("Idempotency-Key")
        if key is None:
            return view(*args, **kwargs)
        request_hash, body_hash = _hashes(key, form.sent())

        def work(session: Session) -> Response:
            if stored := _stored_response(request_hash, body_hash, form):
                return stored
            response = view(*args, **kwargs)
            if response.status_code < 300:
                _store_response(session, request_hash, body_hash, response, form)
            return response

        try:
            return run_in_transaction(work)
        except ShopError:
            # A concurrent request with the same key may have caused the error by succeeding first.
            if stored := _stored_response(request_hash, body_hash, form):
                return stored
            raise

    codes = "shop_api_idempotency_key_reused", "shop_api_response_too_large"
    return Blueprint.errors(*codes)(wrapper)


def _hashes(key: str, sent: bytes) -> tuple[str, str]:
    """Return the hash of the key with API key, method and path, and the hash of what was sent."""
    if not re.fullmatch("[!-~]{1,255}", key):
        raise InvalidParams({"Idempotency-Key": "must be 1 to 255 visible ASCII characters."})
    parts = str(current_principal().key_id), request.method, request.path.rstrip("/"), key
    return keyed_hash("\n".join(parts)), keyed_hash(sha256(sent).hexdigest())


def _stored_response(request_hash: str, body_hash: str, form: _Form) -> Response | None:
    """Return the stored response, or None. Raises ShopError if the request may not have it."""
    rows = fetch(
        select(IDEMPOTENCY_RECORDS).where(
            IDEMPOTENCY_RECORDS.c.request_hash == request_hash, ~_is_expired()
        )
    )
    if not rows:
        return None
    (record,) = rows
    if record.body_hash != body_hash:
        raise ShopError("shop_api_idempotency_key_reused")
    body = form.load(without_erased(record.id, record.response_body))
    if form.require and body:
        form.require(orjson.loads(body))
    response = Response(body, record.status, mimetype="application/json")
    response.headers["Idempotent-Replayed"] = "true"
    return response


def _store_response(
    session: Session, request_hash: str, body_hash: str, response: Response, form: _Form
) -> None:
    """Store a response and delete some expired records."""
    data = response.get_data()
    if len(data) > MAX_BYTES:
        raise ShopError("shop_api_response_too_large", limit=MAX_BYTES)
    oldest = (
        select(IDEMPOTENCY_RECORDS.c.id)
        .where(_is_expired())
        .order_by(IDEMPOTENCY_RECORDS.c.created_at)
        .limit(MAX_DELETED)
    )
    # Skip records that another request is deleting, except an expired record with the same key.
    expired = IDEMPOTENCY_RECORDS.c.id.in_(oldest.with_for_update(skip_locked=True))
    same_key = IDEMPOTENCY_RECORDS.c.request_hash == request_hash
    session.execute(delete(IDEMPOTENCY_RECORDS).where(_is_expired(), or_(same_key, expired)))
    record_id = session.scalar(
        insert(IDEMPOTENCY_RECORDS)
        .values(
            request_hash=request_hash,
            body_hash=body_hash,
            status=response.status_code,
            response_body=form.store(data),
            created_at=now(),
        )
        .returning(IDEMPOTENCY_RECORDS.c.id)
    )
    persons = sorted(persons_of(orjson.loads(form.named(data))))
    for start in range(0, len(persons), MAX_PERSONS):
        chunk = persons[start : start + MAX_PERSONS]
        rows = [{"record_id": record_id, "person": each} for each in chunk]
        session.execute(insert(IDEMPOTENCY_PERSONS), rows)


def _is_expired() -> ColumnElement[bool]:
    return IDEMPOTENCY_RECORDS.c.created_at <= now() - RETENTION
