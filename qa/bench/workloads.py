"""Requests that create and update coupons, customers, orders and redemptions."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from itertools import count, cycle, islice

from qa.bench.servers import Request

NUMBERS = count(time.time_ns() // 10**6)  # other numbers in each run, for permanent shops


Make = Callable[[], dict[str, object]]


def new_coupon() -> dict[str, object]:
    """Return the body of a new coupon."""
    return {"code": f"bench-{next(NUMBERS)}", "type": "percent", "amount": "15.00"}


def new_customer() -> dict[str, object]:
    """Return the body of a new customer."""
    return {"email": f"bench-{next(NUMBERS)}@example.com", "first_name": "Ada"}


def new_order() -> dict[str, object]:
    """Return the body of a new order with three line items."""
    line = {"product_id": 7, "name": "Mug", "sku": "SKU-007", "quantity": 2, "price": "4.00"}
    return {
        "currency": "USD",  # that of the shop
        "billing_address": {"first_name": "Ada", "email": f"bench-{next(NUMBERS)}@example.com"},
        "line_items": [line] * 3,
        "shipping_lines": [{"method_id": "flat_rate", "total": "4.90"}],
    }


MAKES = {"coupon": new_coupon, "customer": new_customer, "order": new_order}


def new_order_with_coupon(code: str) -> dict[str, object]:
    """Return the body of a new order with three line items that applies a coupon."""
    return {**new_order(), "coupon_lines": [{"code": code}]}


def post(path: str, **body: object) -> Request:
    """Return a request that posts a body."""
    return Request(path, "POST", json.dumps(body).encode(), "application/json")


def limited_coupons(number: int) -> Request:
    """Return a request that creates coupons with a limit that the bench does not reach.

    Their codes are ``limited-0``, ``limited-1`` and so on.
    """
    terms = {"type": "percent", "amount": "10", "usage_limit": 10**9}
    coupons = [{"code": f"limited-{position}", **terms} for position in range(number)]
    return post("/coupons/bulk", coupons=coupons)


def cart(items: int, coupons: int, kind: str = "limited") -> Request:
    """Return an evaluation of a cart with some items and coupons, such as ``limited-0``."""
    contents = {
        "items": [{"product_id": number, "price": "13.95"} for number in range(1, items + 1)],
        "coupons": [f"{kind}-{position}" for position in range(coupons)],
    }
    return post("/coupons/evaluate", cart=contents)


def bulk(noun: str, make: Make) -> list[Request]:
    """Return a bulk request that creates 100 records."""
    return [post(f"/{noun}s/bulk", **{f"{noun}s": [make() for _ in range(100)]})]


def singles(noun: str, make: Make, number: int = 100) -> list[Request]:
    """Return requests that create a record each."""
    return [post(f"/{noun}s", **{noun: make()}) for _ in range(number)]


def coupon_updates() -> list[Request]:
    """Return updates of a hundred published coupons. Every twentieth coupon is in the trash."""
    numbers = [number for number in range(1, 106) if number % 20]
    body = json.dumps({"coupon": {"description": f"edit {next(NUMBERS)}"}}).encode()
    return [Request(f"/coupons/{number}", "PUT", body) for number in numbers]


def reservations(number: int, codes: Sequence[str] = ("limited-0",)) -> list[Request]:
    """Return requests that reserve uses of coupons in turn."""
    return [
        post("/redemptions", redemption={"code": code, "reference": f"cart-{next(NUMBERS)}"})
        for code in islice(cycle(codes), number)
    ]
