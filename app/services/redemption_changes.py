"""Changes of coupons by their uses: ``coupon.redeemed`` and ``coupon.released`` (events 1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import RowMapping, select
from sqlalchemy.orm import Session

from app.catalog import Change
from app.services.coupon_terms import COUPONS
from app.services.redemption_counts import CHANGE_COUNTS, CountChange, change_counts
from app.services.redemption_slots import hold_unlimited

REDEEMED, RELEASED = "coupon.redeemed", "coupon.released"


_UNCOUNTED = "uncounted"
"""Key of an incomplete change: what ``with_coupons`` adds to the two counts of the coupon."""

_CHANGE_AND_READ = CHANGE_COUNTS.returning(*COUPONS.c)


def use_change(
    event: str, coupon_id: int | None, *, usage: int = 0, reserved: int = 0
) -> list[Change]:
    """Return the change of a coupon by a use, to be completed by ``with_coupons``.

    Args:
        usage: number that ``with_coupons`` adds to ``usage_count``.
        reserved: number that it adds to ``reserved_count``.

    Returns:
        An empty list if the coupon was deleted permanently.
    """
    if coupon_id is None:
        return []
    return [Change(event, None, {"id": coupon_id, _UNCOUNTED: (usage, reserved)})]


def count_use(
    session: Session, event: str, redemption: Mapping[str, Any], *, usage: int, reserved: int
) -> list[Change]:
    """Add to the numbers of confirmed and reserved uses of a coupon, if it still exists.

    The counts of a coupon without limits are left to ``with_coupons``.

    Returns:
        The change of the coupon, to be completed by ``with_coupons``.
    """
    coupon_id = redemption["coupon_id"]
    if coupon_id is not None and (usage or reserved) and hold_unlimited(session, coupon_id):
        return use_change(event, coupon_id, usage=usage, reserved=reserved)
    change_counts(session, coupon_id, usage=usage, reserved=reserved)
    return use_change(event, coupon_id)


def with_coupons(session: Session, changes: Sequence[Change]) -> list[Change]:
    """Return changes with the coupons of their uses, in the same order.

    Call it after all other writes. It counts the uses of coupons without limits, with the result of
    separate requests in the same order. Other transactions wait for the row of such a coupon from
    here to the commit (orders 8).

    The transaction has locked each coupon whose counts it changed, so the event contains the final
    state. A reservation of a coupon without limits changes no count and takes no such lock
    (redemptions 5). An update that is committed after this statement is not in its event.
    """
    counts: defaultdict[int, CountChange] = defaultdict(CountChange)
    for change in changes:
        if _is_use(change):
            counts[change.record["id"]].add(*change.record[_UNCOUNTED])
    if not counts:
        return list(changes)
    connection = session.connection()
    rows: list[RowMapping] = []
    for coupon_id in sorted(counts):  # the same order everywhere prevents deadlocks
        if count := counts[coupon_id]:
            rows += connection.execute(_CHANGE_AND_READ, count.parameters(coupon_id)).mappings()
    if others := [coupon_id for coupon_id, count in counts.items() if not count]:
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
