"""Coupon lines of an order: their redemptions and their coupons (redemptions 4 and 6).

The code of a line does not identify its coupon, because the coupon can be renamed, moved to the
trash or deleted permanently, and another coupon can then have the code. The redemption of the line
does, and before its first redemption the ID that the line keeps. Only a line with neither is found
by its code.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy.orm import Session

from app.conversions.text import coupon_code
from app.db.read_pool import Fetch
from app.models import REDEMPTIONS
from app.models.redemption import RedemptionRow
from app.services.common.erased import SELECT_USES, stored_uses
from app.services.coupons.customers import Customer
from app.services.coupons.terms import FoundCoupon, coupons_by_code, coupons_by_id
from app.services.orders.items import COUPON_ID, EARLIER_REDEMPTIONS, Item
from app.services.redemptions.stored import is_of_order


def redemptions_of(session: Session, order_id: int) -> Sequence[RedemptionRow]:
    """Return all redemptions of an order, the oldest first."""
    of_order = SELECT_USES.where(is_of_order(order_id)).order_by(REDEMPTIONS.c.id)
    return stored_uses(session.execute(of_order))


def redemptions_of_lines(
    lines: Sequence[Item], new: Sequence[Item], redemptions: Iterable[RedemptionRow]
) -> dict[int, RedemptionRow]:
    """Return the redemption of each coupon line that has one, by the ID of the line.

    A redemption has the code of its line, normalized (``use_code``). If a line is removed and its
    code is added again, the redemptions so far remain those of the removed line (redemptions 6).

    Args:
        lines: the coupon lines of an order.
        new: those that a change adds. This function sets their EARLIER_REDEMPTIONS.
        redemptions: all redemptions of the order, the oldest first.
    """
    added = {line["id"] for line in new}
    codes = {line["code"] for line in lines if line["id"] not in added}
    by_code: defaultdict[str, list[RedemptionRow]] = defaultdict(list)
    for redemption in redemptions:
        by_code[use_code(redemption["code"], codes)].append(redemption)
    for line in new:
        line[EARLIER_REDEMPTIONS] = len(by_code[use_code(line["code"], codes)])
    found = {
        line["id"]: by_code[use_code(line["code"], codes)][line[EARLIER_REDEMPTIONS] :]
        for line in lines
    }
    return {line_id: of_line[-1] for line_id, of_line in found.items() if of_line}


def use_code(code: str, codes: Collection[str]) -> str:
    """Return the code under which a line of an order and its redemptions are compared.

    Lines keep the code that was used, and redemptions have it in the form of this version.

    Args:
        code: of a line or a redemption.
        codes: those of the stored coupon lines. Two can have the same normalized code.
    """
    normalized = coupon_code(code)
    return code if normalized in codes else normalized


def coupons_of_lines(
    fetch: Fetch,
    lines: Sequence[Item],
    redemptions: Mapping[int, RedemptionRow],
    customer: Customer,
    order_id: int,
) -> dict[int, FoundCoupon]:
    """Return the coupon of each line that has one, by the ID of the line.

    Args:
        redemptions: the redemptions of the lines, by the ID of the line.
        order_id: the order, whose uses do not count against the customer.

    Returns:
        Published coupons, and the coupons in the trash that a redemption or a line identifies.
    """
    ids = {line["id"]: line[COUPON_ID] for line in lines if line[COUPON_ID] is not None}
    ids |= {line_id: redemption["coupon_id"] for line_id, redemption in redemptions.items()}
    codes = {line["id"]: line["code"] for line in lines if line["id"] not in ids}
    by_id = coupons_by_id(fetch, set(ids.values()) - {None}, customer, order_id)
    by_code = coupons_by_code(fetch, list(codes.values()), customer, order_id)
    found = {line_id: by_id.get(coupon_id) for line_id, coupon_id in ids.items()}
    found |= {line_id: by_code.get(code) for line_id, code in codes.items()}
    return {line_id: coupon for line_id, coupon in found.items() if coupon}
