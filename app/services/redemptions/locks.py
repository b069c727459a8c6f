"""Locks of coupons, before those of their redemptions (redemptions 4)."""

from collections.abc import Mapping

from sqlalchemy import Boolean, Executable, and_, bindparam, or_, select
from sqlalchemy.orm import Session

from app.db.records import Record
from app.models import COUPONS
from app.services.coupons.queries import PUBLISHED

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


def row_of(
    session: Session, statement: Executable, parameters: Record
) -> Mapping[str, object] | None:
    """Return the row of a statement by its column names, or None."""
    row = session.connection().execute(statement, parameters).mappings().first()
    return dict(row) if row else None
