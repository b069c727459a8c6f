"""Changes of coupons by their uses: ``coupon.redeemed`` and ``coupon.released`` (events 1)."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.catalog import Change
from app.db.records import Record, row_dicts
from app.models import COUPONS
from app.models.coupon import CouponRow
from app.models.redemption import RedemptionRow
from app.services.events.hooks import described, notify
from app.services.events.outbox import Cause
from app.services.redemptions.counts import change_counts, hold_unlimited, lock_coupon

REDEEMED, RELEASED = "coupon.redeemed", "coupon.released"


_COUNTS, _COUPON = "counts", "coupon"
"""Keys of an incomplete change: what ``notify_with_coupons`` adds to the two counts of the coupon,
and the coupon after the change, if a statement has returned it."""


def use_change(
    event: str,
    redemption: RedemptionRow,
    *,
    usage: int = 0,
    reserved: int = 0,
    coupon: CouponRow | None = None,
) -> list[Change]:
    """Return the change of a coupon by a use, to be completed by ``notify_with_coupons``.

    Args:
        redemption: the redemption after the change.
        usage: number that ``notify_with_coupons`` adds to ``usage_count``.
        reserved: number that it adds to ``reserved_count``.
        coupon: the coupon after all other changes so far, locked; None if it was not read.

    Returns:
        An empty list if the coupon was deleted permanently.
    """
    coupon_id = redemption["coupon_id"]
    if coupon_id is None:
        return []
    use = {"id": coupon_id, _COUNTS: (usage, reserved), _COUPON: coupon}
    return [Change(event, None, use, redemption=shown_use(redemption))]


def expiries(expired: Iterable[RedemptionRow]) -> list[Change]:
    """Return the changes of coupons by reservations whose expiry was stored."""
    return [change for redemption in expired for change in use_change(RELEASED, redemption)]


def shown_use(redemption: RedemptionRow) -> dict[str, object]:
    """Return a redemption as the events of its coupon contain it, without personal data."""
    shown: Record = {
        "id": redemption["id"],
        "status": redemption["status"],
        "reference": redemption["reference"],
        "order_id": redemption["order_id"],
    }
    if (campaign_id := redemption.get("campaign_id")) is not None:
        amount = redemption["amount"]
        shown |= {"campaign_id": campaign_id, "amount": None if amount is None else str(amount)}
    return shown


def count_use(
    session: Session, event: str, redemption: RedemptionRow, *, usage: int, reserved: int
) -> list[Change]:
    """Add to the numbers of confirmed and reserved uses of a coupon, if it still exists.

    The counts of a coupon without limits are left to ``notify_with_coupons``. A reservation from a
    time without limits changes no count of a coupon that has limits now. The coupon is locked, so
    that the event contains the counts that other transactions have written before it.

    Args:
        redemption: the redemption after the change.

    Returns:
        The change of the coupon, to be completed by ``notify_with_coupons``.
    """
    coupon_id = redemption["coupon_id"]
    if coupon_id is not None:
        if hold_unlimited(session, coupon_id):
            return use_change(event, redemption, usage=usage, reserved=reserved)
        if not (usage or reserved):
            lock_coupon(session, coupon_id)
    coupon = change_counts(session, coupon_id, [(usage, reserved)])
    return use_change(event, redemption, coupon=coupon)


def notify_with_coupons(session: Session, cause: Cause | None, changes: Sequence[Change]) -> None:
    """Complete the changes of coupons by their uses, write all events, and notify the hooks.

    Call it instead of ``notify``, after all other writes.

    Raises:
        ShopError: a hook rejects the changes.
    """
    if any(map(_is_use, changes)):
        rest = iter(described(cause, [change for change in changes if not _is_use(change)]))
        changes = [change if _is_use(change) else next(rest) for change in changes]
        changes = _with_coupons(session, changes)
    notify(session, cause, changes)


def _with_coupons(session: Session, changes: Sequence[Change]) -> list[Change]:
    """Return changes with the coupons of their uses, in the same order.

    It counts the uses of coupons without limits, with the result of separate requests in the same
    order. Other transactions wait for the row of such a coupon from here to the commit, because the
    event contains its new count (orders 8). The events of the other changes are therefore complete
    before.

    The transaction has locked each coupon whose counts it changed, so the event contains the final
    state. A reservation of a coupon without limits changes no count and takes no such lock
    (redemptions 5). An update that is committed after the coupon was read is not in its event.
    """
    counts: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    coupons: dict[int, CouponRow | None] = {}
    for change in changes:
        if _is_use(change):
            use = change.record
            counts[use["id"]].append(use[_COUNTS])
            coupons[use["id"]] = use[_COUPON]
    for coupon_id in sorted(counts):  # the same order everywhere prevents deadlocks
        changed = change_counts(session, coupon_id, counts[coupon_id])
        coupons[coupon_id] = changed or coupons[coupon_id]
    if unread := [coupon_id for coupon_id, coupon in coupons.items() if coupon is None]:
        held = select(COUPONS).where(COUPONS.c.id.in_(unread)).order_by(COUPONS.c.id)
        rows = session.connection().execute(held.with_for_update(read=True, key_share=True))
        coupons |= {row["id"]: row for row in row_dicts(rows)}
    completed: list[Change] = []
    for change in changes:
        if not _is_use(change):
            completed.append(change)
        elif coupon := coupons.get(change.record["id"]):
            completed.append(replace(change, after=coupon))
    return completed


def _is_use(change: Change) -> bool:
    return change.event in {REDEEMED, RELEASED}
