"""Metadata of the demo shop: what an ERP system, a newsletter and a carrier would store.

The values depend on IDs only, so that a resumed run creates the same ones.
"""

from collections.abc import Iterator, Sequence
from typing import Any

Record = dict[str, Any]

_LEVELS = ("bronze", "silver", "gold")


def metadata_of_customers(ids: Sequence[int]) -> Iterator[Record]:
    """Yield three entries for each customer."""
    for customer_id in ids:
        loyalty = {"level": _LEVELS[customer_id % 3], "points": customer_id * 7 % 500}
        for key, value in (
            ("erp_id", f"K-{customer_id:06}"),
            ("newsletter", customer_id % 4 != 0),
            ("loyalty", loyalty),
        ):
            yield {"customer_id": customer_id, "key": key, "value": value}


def metadata_of_coupons(ids: Sequence[int], coupons: Sequence[Record]) -> Iterator[Record]:
    """Yield an entry for each coupon."""
    for coupon_id, coupon in zip(ids, coupons, strict=True):
        campaign = coupon["description"].removesuffix(" campaign").lower()
        yield {"coupon_id": coupon_id, "key": "campaign", "value": campaign}


def metadata_of_orders(ids: Sequence[int], orders: Sequence[Record]) -> Iterator[Record]:
    """Yield an entry for each order, and a second one for orders that were sent."""
    for order_id, order in zip(ids, orders, strict=True):
        yield {"order_id": order_id, "key": "erp_id", "value": f"A-{order_id:07}"}
        if order["status"] == "completed":
            tracking = {"carrier": "dhl", "number": f"{order_id * 7919:012}"}
            yield {"order_id": order_id, "key": "tracking", "value": tracking}
