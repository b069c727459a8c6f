"""The two counts of a coupon: confirmed uses and reserved slots (redemptions 4 and 6)."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, case, update
from sqlalchemy.orm import Session

from app.db.types import Id
from app.services.coupon_terms import COUPONS

_USAGE, _LOWEST = bindparam("usage", type_=Id), bindparam("lowest", type_=Id)
_USED = COUPONS.c.usage_count

CHANGE_COUNTS = update(COUPONS).where(COUPONS.c.id == bindparam("this")).values(
    usage_count=case((_USED < -_LOWEST, _USAGE - _LOWEST), else_=_USED + _USAGE),
    reserved_count=COUPONS.c.reserved_count + bindparam("reserved"),
)  # fmt: skip
"""Writes a ``CountChange``. Its parameters are those of ``CountChange.parameters``."""


@dataclass(slots=True)
class CountChange:
    """Successive changes of the counts of a coupon, which one statement writes.

    None of the changes makes ``usage_count`` negative, because an update can have set a lower count
    (redemptions 6). The result is therefore not always the sum: a release from 0 has no effect, and
    a use confirmed after it still adds 1. ``lowest`` contains what the statement needs to know
    about the order of the changes: if the count falls short of it, the count reaches 0 there, and
    continues from 0.

    Attributes:
        usage: sum of the changes of ``usage_count``.
        lowest: lowest sum of any number of first changes of ``usage_count``; 0 for no changes.
        reserved: sum of the changes of ``reserved_count``.
    """

    usage: int = 0
    lowest: int = 0
    reserved: int = 0

    def __bool__(self) -> bool:
        """Return whether the counts can change."""
        return bool(self.usage or self.lowest or self.reserved)

    def add(self, usage: int, reserved: int) -> None:
        """Add a change after the earlier ones."""
        self.usage += usage
        self.lowest = min(self.lowest, self.usage)
        self.reserved += reserved

    def parameters(self, coupon_id: int) -> dict[str, int]:
        """Return the parameters of CHANGE_COUNTS."""
        return {
            "this": coupon_id,
            "usage": self.usage,
            "lowest": self.lowest,
            "reserved": self.reserved,
        }


def change_counts(
    session: Session, coupon_id: int | None, *, usage: int = 0, reserved: int = 0
) -> None:
    """Add to the numbers of confirmed and reserved uses of a coupon, if it still exists."""
    change = CountChange()
    change.add(usage, reserved)
    if coupon_id is not None and change:
        session.execute(CHANGE_COUNTS, change.parameters(coupon_id))
