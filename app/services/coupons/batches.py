"""Batches of generated coupons: generate them, and trash the unused ones (migration 3)."""

from typing import Any

import orjson
from sqlalchemy import insert, select, tuple_, update
from sqlalchemy.orm import Session

from app.auth.principals import Principal
from app.db.bulk_inserts import insert_ignore
from app.db.read_pool import fetch
from app.db.records import Record
from app.db.search import search_text
from app.db.session import is_trial, now, run_in_transaction
from app.errors import ShopError
from app.models import COUPON_BATCHES, COUPONS
from app.models.coupon import CouponStatus
from app.services.campaigns.locks import keep_campaigns
from app.services.common.bulk import Data
from app.services.common.progress import NoteProgress
from app.services.coupons.batch_queries import IS_UNUSED
from app.services.coupons.code_patterns import CodePattern
from app.services.coupons.queries import HAS_ONE_OF_CODES, PUBLISHED
from app.services.coupons.writes import (
    columns_of,
    require_known_type,
    require_own,
    trashed_now,
    unknown_campaign,
)
from app.services.events.bulk import notify_deleted, record_summary

_IN_USE = select(COUPONS.c.code).where(HAS_ONE_OF_CODES)

CHUNK = 10_000
"""Number of coupons that one statement generates, or that one transaction moves to the trash."""

MAX_BYTES_PER_CHUNK = 100_000_000
"""Limit for the fields of the coupons of a chunk, so that a short request cannot fill a disk."""

MAX_ATTEMPTS_PER_CODE, SPARE_ATTEMPTS = 10, 1000
"""Maximum number of attempts to find unused codes, if most codes of a pattern are in use."""


def generate(
    actor: Principal, data: Data, count: int, note_progress: NoteProgress = lambda _: None
) -> Record:
    """Create a batch of coupons with random codes, all of them or none.

    The codes come from the random generator of the operating system. The database guarantees that
    no published coupon has one of them, even if other requests generate codes at the same time.

    Args:
        actor: the author of the coupons.
        data: a loaded ``CodesInput``.
        count: number of coupons, at least 1.
        note_progress: called with the number of inserted coupons, again from 0 after a retry.

    Returns:
        The batch by its column names.

    Raises:
        ShopError: a capability is missing, or the coupons cannot be created as requested.
    """
    actor.require("shop_api_user_cannot_create_coupon")
    coupon = data["coupon"]
    require_known_type(coupon["type"])
    pattern = CodePattern.parse(data["prefix"], data["pattern"], data["charset"])
    pattern.require_size(count, guessable=data["allow_guessable"])
    if len(orjson.dumps(coupon, default=str)) * min(count, CHUNK) > MAX_BYTES_PER_CHUNK:
        reason = "the fields of all coupons together are too large. Shorten the description."
        raise ShopError("shop_api_cannot_create_coupon", reason=reason)
    campaign_id = coupon.get("campaign_id") or None

    def work(session: Session) -> Record:
        _require_campaign(session, campaign_id, only_checks=True)
        batch = _insert_batch(session, actor, data, pattern, count)
        shared = columns_of(coupon) | {
            "status": CouponStatus.PUBLISHED,
            "author_id": batch["author_id"],
            "created_at": batch["created_at"],
            "updated_at": batch["created_at"],
            "batch_id": batch["id"],
        }
        number = 1 if is_trial() else count  # so that others do not wait for a form with errors
        _insert_coupons(session, pattern, shared, number, note_progress)
        _require_campaign(session, campaign_id)  # at the end only, so that it can be paused
        _report(session, actor, batch)
        return batch

    return run_in_transaction(work)


def _require_campaign(
    session: Session, campaign_id: int | None, *, only_checks: bool = False
) -> None:
    """Raise ShopError if a campaign does not exist. Otherwise, it stays until the commit."""
    if campaign_id and not keep_campaigns(session, [campaign_id], only_checks=only_checks):
        raise unknown_campaign("generate.coupon.campaign_id")


def _insert_batch(
    session: Session, actor: Principal, data: Data, pattern: CodePattern, count: int
) -> Record:
    batch = {
        "author_id": actor.user_id or None,
        "created_at": now(),
        "name": data["name"],
        "campaign_id": data["coupon"].get("campaign_id") or None,
        "count": count,
        "prefix": data["prefix"],
        "pattern": data["pattern"],
        "charset": pattern.charset,
    }
    inserted = insert(COUPON_BATCHES).values(batch).returning(COUPON_BATCHES.c.id)
    return {**batch, "id": session.scalar(inserted)}


def _report(session: Session, actor: Principal, batch: Record) -> None:
    names = ("count", "prefix", "pattern", "charset")
    summary = {name: batch[name] for name in names}
    summary["created_at"] = f"{batch['created_at']:%Y-%m-%dT%H:%M:%SZ}"
    # The event contains the user of the request. A command has no request.
    sender = actor if actor.key_id else None
    record_summary(session, sender, "coupon_batch.created", batch["id"], summary)


def _insert_coupons(
    session: Session, pattern: CodePattern, shared: Record, count: int, note_progress: NoteProgress
) -> None:
    inserted = attempts = 0
    while inserted < count:
        if attempts > count * MAX_ATTEMPTS_PER_CODE + SPARE_ATTEMPTS:
            reason = "existing coupons already use most codes of the pattern."
            raise ShopError("shop_api_cannot_create_coupon", reason=reason)
        missing = min(CHUNK, count - inserted)
        # If codes are in use, many are drawn at a time: an insert for each attempt takes seconds.
        some_are_used = attempts > inserted
        drawn = pattern.random_codes(max(missing, SPARE_ATTEMPTS) if some_are_used else missing)
        attempts += len(drawn)
        codes = list(dict.fromkeys(drawn))
        if len(codes) > missing:
            used = set(session.scalars(_IN_USE, {"codes": codes}))
            codes = [code for code in codes if code not in used][:missing]
        rows = [(code, search_text(code, shared["description"])) for code in codes]
        inserted += insert_ignore(session, COUPONS, shared, ("code", "search_text"), rows)
        note_progress(inserted)


def trash_unused(actor: Principal, batch_id: int) -> int:
    """Move the unused coupons of a batch to the trash.

    A coupon is unused if it has no confirmed use and no reservation. Each CHUNK has a transaction
    of its own so that other requests do not wait for a large batch. After an interruption, the
    next call continues.

    Returns:
        The number of coupons that were moved.

    Raises:
        ShopError: the batch does not exist, or a capability is missing.
    """
    rows = fetch(select(COUPON_BATCHES.c.author_id).where(COUPON_BATCHES.c.id == batch_id))
    if not rows:
        raise ShopError("shop_api_invalid_coupon_batch_id")
    require_own(actor, rows[0].author_id, "shop_api_user_cannot_delete_coupon")
    key = tuple_(COUPONS.c.created_at, COUPONS.c.id)
    unused = (
        select(COUPONS.c.created_at, COUPONS.c.id)
        .where(COUPONS.c.batch_id == batch_id, PUBLISHED, IS_UNUSED)
        .order_by(*key)
        .limit(CHUNK)
        .with_for_update()
    )
    trashed, last = 0, None
    while True:
        following = unused if last is None else unused.where(key > tuple_(*last))
        moved, last = run_in_transaction(lambda session: _trash(session, actor, following))  # noqa: B023  # called at once
        trashed += moved
        if last is None:
            return trashed


def _trash(session: Session, actor: Principal, unused: Any) -> tuple[int, Any]:
    """Trash the coupons of a select; return their number, and the last row if more may follow."""
    found = session.execute(unused).all()
    # A reservation that was made while the select waited for a row is visible to this statement.
    these = update(COUPONS).where(COUPONS.c.id.in_([row.id for row in found]), IS_UNUSED)
    moved = session.scalars(these.values(trashed_now()).returning(COUPONS.c.id)).all()
    notify_deleted(session, actor if actor.key_id else None, "coupon", moved, permanent=False)
    return len(moved), found[-1] if len(found) == CHUNK else None
