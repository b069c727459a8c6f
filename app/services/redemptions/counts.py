"""Locks of a coupon, and its two counts: confirmed uses and reserved slots (redemptions 4 and 6).

A change of ``usage_count`` is an update of the coupon, so it moves ``updated_at``. A reservation
changes nothing that a coupon shows, and does not. ``edited_at`` keeps the time of the last other
update, by which a repeated import recognizes coupons that were edited here.
"""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Boolean, Executable, and_, bindparam, case, func, or_, select, update
from sqlalchemy.orm import Session

from app.db.records import NamedColumns, Record, row_dicts
from app.db.session import now
from app.db.sql.types import Id, UtcDateTime
from app.models import COUPONS
from app.models.coupon import CouponRow
from app.services.coupons.queries import PUBLISHED

_USED = COUPONS.c.usage_count + bindparam("usage", type_=Id)
_LEAST = bindparam("least", type_=Id)

TIMES: NamedColumns = {
    "updated_at": func.coalesce(bindparam("used_at", type_=UtcDateTime), COUPONS.c.updated_at),
    "edited_at": func.coalesce(COUPONS.c.edited_at, COUPONS.c.updated_at),
}
"""Columns of a use, with a parameter ``used_at``, which is null for a reservation."""

_WRITE = (
    update(COUPONS)
    .where(COUPONS.c.id == bindparam("this"))
    .values(
        usage_count=case((_USED < _LEAST, _LEAST), else_=_USED),
        reserved_count=COUPONS.c.reserved_count + bindparam("reserved"),
        **TIMES,
    )
    .returning(*COUPONS.c)
)


def change_counts(
    session: Session, coupon_id: int | None, changes: Iterable[tuple[int, int]]
) -> CouponRow | None:
    """Write successive changes of the counts of a coupon with one statement.

    None of the changes makes ``usage_count`` negative, because an update can have set a lower count
    (redemptions 6). The result is therefore not always the sum: a release from 0 has no effect, and
    a use confirmed after it still adds 1. It is at least the result of the changes from 0.

    Args:
        changes: what each change adds to ``usage_count`` and to ``reserved_count``.

    Returns:
        The coupon after the changes, by its column names; None if nothing changes or the coupon
        was deleted permanently.
    """
    counts = {"usage": 0, "least": 0, "reserved": 0}
    used_at: datetime | None = None
    for usage, reserved in changes:
        used_at = now() if usage else used_at
        counts["usage"] += usage
        counts["least"] = max(counts["least"] + usage, 0)
        counts["reserved"] += reserved
    if coupon_id is None or not any(counts.values()):
        return None
    return row_of(session, _WRITE, {"this": coupon_id, "used_at": used_at, **counts})


# --- locks, before those of redemptions ---

THIS = COUPONS.c.id == bindparam("this")
IS_FOUND = and_(
    or_(PUBLISHED, bindparam("also_in_trash", type_=Boolean)),
    or_(COUPONS.c.active, bindparam("also_paused", type_=Boolean)),
)
_ANY = {"also_in_trash": True, "also_paused": True}

_IS_UNLIMITED = and_(COUPONS.c.usage_limit == 0, COUPONS.c.usage_limit_per_user == 0)
# The foreign key of a new redemption takes the same lock, and an update that sets a limit waits for
# it.
HOLD_UNLIMITED = (
    select(COUPONS).where(THIS, _IS_UNLIMITED, IS_FOUND).with_for_update(read=True, key_share=True)
)
_LOCK = select(COUPONS.c.id).where(THIS).with_for_update(key_share=True)


def lock_coupon(session: Session, coupon_id: int) -> bool:
    """Lock a coupon until the commit. Return whether it exists."""
    return session.scalar(_LOCK, {"this": coupon_id}) is not None


def hold_unlimited(session: Session, coupon_id: int) -> bool:
    """Return whether a coupon has no limits. If so, no update sets one before the commit."""
    return row_of(session, HOLD_UNLIMITED, {"this": coupon_id, **_ANY}) is not None


def row_of(session: Session, statement: Executable, parameters: Record) -> CouponRow | None:
    """Return the coupon of a statement, or None."""
    # Core's execute takes two thirds of the time of the session's.
    rows: list[CouponRow] = row_dicts(session.connection().execute(statement, parameters))
    return rows[0] if rows else None
