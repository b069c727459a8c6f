"""Changes of coupons by their uses: ``coupon.redeemed`` and ``coupon.released`` (events 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import RowMapping, select
from sqlalchemy.orm import Session

from app.catalog import Change
from app.services.coupon_terms import COUPONS
from app.services.redemption_slots import CHANGE_COUNTS, change_counts, hold_unlimited

REDEEMED, RELEASED = "coupon.redeemed", "coupon.released"


_USAGE = "uncounted_usage"
"""Key of an incomplete change: what ``with_coupons`` adds to ``usage_count``."""

_CHANGE_AND_READ = CHANGE_COUNTS.returning(*COUPONS.c)


def use_change(event: str, coupon_id: int | None, uncounted: int = 0) -> list[Change]:
    """Return the change of a coupon by a use, to be completed by ``with_coupons``.

    Args:
        uncounted: number that ``with_coupons`` adds to ``usage_count``.

    Returns:
        An empty list if the coupon was deleted permanently.
    """
    return [] if coupon_id is None else [Change(event, None, {"id": coupon_id, _USAGE: uncounted})]


def count_use(
    session: Session, event: str, redemption: Mapping[str, Any], *, usage: int, reserved: int
) -> list[Change]:
    """Add to the numbers of confirmed and reserved uses of a coupon, if it still exists.

    The number of confirmed uses of a coupon without limits is left to ``with_coupons``.

    Returns:
        The change of the coupon, to be completed by ``with_coupons``.
    """
    coupon_id = redemption["coupon_id"]
    if coupon_id is not None and usage and not reserved and hold_unlimited(session, coupon_id):
        return use_change(event, coupon_id, usage)
    change_counts(session, coupon_id, usage=usage, reserved=reserved)
    return use_change(event, coupon_id)


def with_coupons(session: Session, changes: Sequence[Change]) -> list[Change]:
    """Return changes with the coupons of their uses, in the same order.

    Call it after all other writes. It counts the uses of coupons without limits, and other
    transactions wait for the row of such a coupon from here to the commit (orders 8).

    The transaction has locked each coupon whose counts it changed, so the event contains the final
    state. A reservation of a coupon without limits changes no count and takes no such lock
    (redemptions 5). An update that is committed after this statement is not in its event.
    """
    usage: Counter[int] = Counter()
    for change in changes:
        if _is_use(change):
            usage[change.record["id"]] += change.record.get(_USAGE, 0)
    if not usage:
        return list(changes)
    connection = session.connection()
    rows: list[RowMapping] = []
    for coupon_id, number in sorted(usage.items()):  # the same order everywhere prevents deadlocks
        if number:
            counts = {"this": coupon_id, "usage": number, "reserved": 0}
            rows += connection.execute(_CHANGE_AND_READ, counts).mappings()
    if others := [coupon_id for coupon_id, number in usage.items() if not number]:
        held = select(COUPONS).where(COUPONS.c.id.in_(others)).order_by(COUPONS.c.id)
        rows += connection.execute(held.with_for_update(read=True, key_share=True)).mappings()
    return list(_completed(changes, {row["id"]: dict(row) for row in rows}))


def _completed(
    changes: Sequence[Change], coupons: dict[int, dict[str, object]]
) -> Iterable[Change]:
    for change in changes:
        if not _is_use(change):
            yield change
        elif coupon := coupons.get(change.record["id"]):
            yield replace(change, after=coupon)


def _is_use(change: Change) -> bool:
    return change.event in {REDEEMED, RELEASED}
