"""Marks of erased records, so that an import from another system leaves them out (people 5)."""

from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, or_, select, update
from sqlalchemy.orm import Session

from app.models import IMPORTED_RECORDS, REDEMPTIONS
from app.models.imported_record import ERASED, USES


def mark_erased(
    session: Session,
    customer_ids: Collection[int],
    orders: Collection[int],
    uses: Sequence[ColumnElement[bool]],
) -> None:
    """Mark imported accounts, orders and uses of coupons as erased.

    Args:
        uses: conditions of the redemptions. Call this before they change.
    """
    kind, target = IMPORTED_RECORDS.c.kind, IMPORTED_RECORDS.c.target_id
    redemptions = select(REDEMPTIONS.c.id).where(or_(*uses))
    for is_erased in (
        (kind == "customer") & target.in_(customer_ids),
        (kind == "order") & target.in_(orders),
        kind.in_(USES) & target.in_(redemptions),
    ):
        session.execute(update(IMPORTED_RECORDS).where(is_erased).values(fingerprint=ERASED))
