"""Coupon lines of an order: their redemptions and their coupons (redemptions 4 and 6).

The code of a line does not identify its coupon, because the coupon can be renamed, moved to the
trash or deleted permanently, and another coupon can then have the code. The redemption of the line
does. Only a line without a redemption is found by its code.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.db.read_pool import Fetch
from app.models.tables import REDEMPTIONS
from app.services.coupon_customers import Customer
from app.services.coupon_lookup import FoundCoupon, coupons_by_code, coupons_by_id
from app.services.order_item_kinds import EARLIER_REDEMPTIONS
from app.services.order_items import Item
from app.services.redemption_rows import Record, is_of_order


def redemptions_of(session: Session, order_id: int) -> Sequence[Record]:
    """Return all redemptions of an order, the oldest first."""
    rows = session.execute(
        select(REDEMPTIONS).where(is_of_order(order_id)).order_by(REDEMPTIONS.c.id)
    )
    return [dict(row) for row in rows.mappings()]


def redemptions_of_lines(
    lines: Iterable[Item], new: Iterable[Item], redemptions: Iterable[Record]
) -> dict[int, Record]:
    """Return the redemption of each coupon line that has one, by the ID of the line.

    A redemption has the code of its line. If a line is removed and its code is added again, the
    redemptions so far remain those of the removed line (redemptions 6).

    Args:
        lines: the coupon lines of an order.
        new: those that a change adds. This function sets their EARLIER_REDEMPTIONS.
        redemptions: all redemptions of the order, the oldest first.
    """
    by_code: defaultdict[str, list[Record]] = defaultdict(list)
    for redemption in redemptions:
        by_code[redemption["code"]].append(redemption)
    for line in new:
        line[EARLIER_REDEMPTIONS] = len(by_code[line["code"]])
    found = {line["id"]: by_code[line["code"]][line[EARLIER_REDEMPTIONS] :] for line in lines}
    return {line_id: of_line[-1] for line_id, of_line in found.items() if of_line}


def coupons_of_lines(
    fetch: Fetch,
    lines: Iterable[Item],
    redemptions: Mapping[int, Record],
    customer: Customer,
    order_id: int,
) -> dict[int, FoundCoupon]:
    """Return the coupon of each line that has one, by the ID of the line.

    Args:
        redemptions: the redemptions of the lines, by the ID of the line.
        order_id: the order, whose uses do not count against the customer.

    Returns:
        Published coupons, and the coupons in the trash that a redemption identifies.
    """
    ids = {redemption["coupon_id"] for redemption in redemptions.values()} - {None}
    codes = {line["id"]: line["code"] for line in lines if line["id"] not in redemptions}
    by_id = coupons_by_id(fetch, ids, customer, order_id)
    by_code = coupons_by_code(fetch, list(codes.values()), customer, order_id)
    found = {
        line_id: by_id.get(redemption["coupon_id"]) for line_id, redemption in redemptions.items()
    }
    found |= {line_id: by_code.get(code) for line_id, code in codes.items()}
    return {line_id: coupon for line_id, coupon in found.items() if coupon}
