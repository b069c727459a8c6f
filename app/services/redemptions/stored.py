"""Stored redemptions and changes of a row (redemptions 4)."""

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, update
from sqlalchemy.orm import Session

from app.db.records import with_columns
from app.db.session import now
from app.models import REDEMPTIONS
from app.models.redemption import RedemptionRow, RedemptionStatus
from app.services.redemptions.counts import change_counts

CODE = "redemption.code"
"""Location of the code in a request that redeems a coupon."""


def is_of_order(order_id: int) -> ColumnElement[bool]:
    """Return the condition for the redemptions of an order.

    They are found in the index of the references, which contain the ID (redemptions 6).
    """
    return and_(REDEMPTIONS.c.reference == f"order-{order_id}", REDEMPTIONS.c.order_id == order_id)


def uses_of(redemption: RedemptionRow) -> tuple[int, int]:
    """Return by how much a live use increases the two counts of its coupon."""
    confirmed = redemption["status"] == RedemptionStatus.CONFIRMED
    return int(confirmed), int(redemption["holds_slot"])


def give_back(session: Session, redemption: RedemptionRow) -> None:
    """Subtract a live use from the counts of its coupon."""
    usage, reserved = uses_of(redemption)
    change_counts(session, redemption["coupon_id"], [(-usage, -reserved)])


def update_redemption(
    session: Session, redemption: RedemptionRow, **columns: object
) -> RedemptionRow:
    """Write columns of a redemption and return it."""
    changes = {"holds_slot": False, "updated_at": now(), "confirmed_at": None, **columns}
    if changes.get("status") == RedemptionStatus.CONFIRMED:
        changes["confirmed_at"] = changes["updated_at"]
    session.execute(update(REDEMPTIONS).where(REDEMPTIONS.c.id == redemption["id"]).values(changes))
    return with_columns(redemption, changes)


def store_expiry(session: Session, expired: Sequence[RedemptionRow]) -> list[RedemptionRow]:
    """Store that reservations have expired, and free their slots.

    From the commit, the reservations are released for all processes, whatever their clocks say.

    Args:
        expired: reservations that have expired. They and their coupons are locked.

    Returns:
        The redemptions as stored. The caller reports them.
    """
    if not expired:
        return []
    released = {"status": RedemptionStatus.RELEASED, "holds_slot": False}
    session.execute(
        update(REDEMPTIONS)
        .where(REDEMPTIONS.c.id.in_([row["id"] for row in expired]))
        .values(**released, updated_at=REDEMPTIONS.c.expires_at)
    )
    slots = Counter(row["coupon_id"] for row in expired if row["holds_slot"])
    for coupon_id, number in slots.items():
        change_counts(session, coupon_id, [(0, -number)])
    return [with_columns(row, released | {"updated_at": row["expires_at"]}) for row in expired]
