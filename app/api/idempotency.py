"""Requests that may be sent again: ``Idempotency-Key`` (draft-ietf-httpapi-idempotency-key-header).

The answer is written in the transaction that does the work, so that there is the one with the
other or neither, whenever a process dies. A unique index lets one of several requests at once
through; the others start again and find its answer. A refusal changes nothing and is not kept: the
request is simply looked at again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from hashlib import sha256
from typing import Any, cast

from flask import Response, request
from sqlalchemy import ColumnElement, Table, delete, insert, or_, select
from sqlalchemy.orm import Session

from app.api.authentication import current_principal
from app.api.smorest import Blueprint
from app.auth.principals import keyed_hash
from app.db.read_pool import fetch
from app.db.session import now, run_in_transaction
from app.errors import InvalidParams, ShopError
from app.models import IdempotencyRecord

TABLE = cast("Table", IdempotencyRecord.__table__)
KEPT = timedelta(hours=24)
MAX_BYTES = 16 * 1024 * 1024
"""How large an answer may be that is kept."""
MAX_FORGOTTEN = 20
"""How many old answers are deleted for one new one: more than one, so that they become fewer."""

View = Callable[..., Response]


def idempotent(view: View) -> View:
    """Let a view do its work once for an ``Idempotency-Key``, and answer the same ever after.

    It stands above ``@blp.response`` and below ``@blp.arguments``: a body that is not understood
    is refused before. The view may run more than once, in a transaction that is rolled back, so
    it must have no effect but what ``run_in_transaction`` writes, and answer JSON.
    """

    @wraps(view)
    def once(*args: Any, **kwargs: Any) -> Response:
        key = request.headers.get("Idempotency-Key")
        if key is None:
            return view(*args, **kwargs)
        request_hash, body_hash = _hashes(key)

        def work(session: Session) -> Response:
            if kept := _kept(request_hash, body_hash):
                return kept
            response = view(*args, **kwargs)
            if response.status_code < 300:
                _keep(session, request_hash, body_hash, response)
            return response

        try:
            return run_in_transaction(work)
        except ShopError:
            # Perhaps refused because the first one came through meanwhile: its code is taken.
            if kept := _kept(request_hash, body_hash):
                return kept
            raise

    codes = "shop_api_idempotency_key_reused", "shop_api_response_too_large"
    return Blueprint.errors(*codes)(once)  # type: ignore[no-any-return] # the view again


def _hashes(key: str) -> tuple[str, str]:
    """Return what names the request, for this API key, method and path, and what names its body."""
    if not re.fullmatch("[!-~]{1,255}", key):
        raise InvalidParams({"Idempotency-Key": "must be 1 to 255 visible ASCII characters."})
    parts = str(current_principal().key_id), request.method, request.path.rstrip("/"), key
    return keyed_hash("\n".join(parts)), keyed_hash(sha256(request.get_data()).hexdigest())


def _kept(request_hash: str, body_hash: str) -> Response | None:
    """Return the answer that was given already, if there is one not older than a day.

    Raises:
        ShopError: it was given to another body.
    """
    rows = fetch(select(TABLE).where(TABLE.c.request_hash == request_hash, ~_is_old()))
    if not rows:
        return None
    (kept,) = rows
    if kept.body_hash != body_hash:
        raise ShopError("shop_api_idempotency_key_reused")
    response = Response(kept.response_body, kept.status, mimetype="application/json")
    response.headers["Idempotent-Replayed"] = "true"
    return response


def _keep(session: Session, request_hash: str, body_hash: str, response: Response) -> None:
    """Write an answer, and delete some that are older than a day."""
    data = response.get_data()
    if len(data) > MAX_BYTES:
        raise ShopError("shop_api_response_too_large", limit=MAX_BYTES)
    oldest = select(TABLE.c.id).where(_is_old()).order_by(TABLE.c.created_at).limit(MAX_FORGOTTEN)
    # What another request is deleting already is left to it, but for the place of this one.
    some = TABLE.c.id.in_(oldest.with_for_update(skip_locked=True))
    mine = TABLE.c.request_hash == request_hash
    session.execute(delete(TABLE).where(_is_old(), or_(mine, some)))
    session.execute(
        insert(TABLE).values(
            request_hash=request_hash,
            body_hash=body_hash,
            status=response.status_code,
            response_body=data,
            created_at=now(),
        )
    )


def _is_old() -> ColumnElement[bool]:
    return TABLE.c.created_at <= now() - KEPT
