"""Rows about requests to a small shop: metadata, orders, evaluations, batches and writers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Protocol

from qa.bench.measuring import Goal, Row, Work, ratio, read, worst
from qa.bench.servers import Request, Server
from qa.bench.shops import DATABASES, Shops
from qa.bench.workloads import (
    MAKES,
    NUMBERS,
    bulk,
    cart,
    limited_coupons,
    new_order,
    new_order_with_coupon,
    post,
    singles,
)

ORDERS = "/orders?limit=100"
BATCH = 50
_REST = "/wp-json/wc/v3"
_NAMES = {"type": "discount_type", "billing_address": "billing"}
_EDITED = {
    "coupon": ("description", "description"),
    "customer": ("first_name", "first_name"),
    "order": ("note", "customer_note"),
}


class _Bodies(Protocol):
    """Returns the items of a request."""

    def __call__(self, noun: str, *, native: bool) -> list[object]: ...


def rows(shops: Shops, rounds: int) -> Iterator[Row]:
    """Compare requests with the ones that they may be a multiple of."""
    for database in DATABASES:
        with shops.empty(database, "small").serve() as server:
            yield from _metadata(server, rounds, database)
            server.send([limited_coupons(2)], 1)
            yield from _orders(server, rounds, database)
            yield _evaluation(server, rounds, database)
            yield from _batches(server, rounds, database)


def _metadata(server: Server, rounds: int, database: str) -> Iterator[Row]:
    """Compare a page of orders with 28 entries of metadata each with one without (records 1)."""
    entries = {f"_plugin_{number}": f"value {number}" for number in range(28)}
    server.send(bulk("order", lambda: new_order() | {"metadata": entries}), 1)
    whole, page = read(server, f"{ORDERS}&meta=true", 50), read(server, ORDERS, 50)
    name = f"100 orders with 28 entries of metadata each, compared with none, {database}"
    yield ratio(name, Goal(2), whole, page, rounds)


def _orders(server: Server, rounds: int, database: str) -> Iterator[Row]:
    """Compare an order with a coupon, and 100 orders at once, with single writes (orders 8)."""
    coupons = Work(server, partial(singles, "coupon", MAKES["coupon"]), 100, connections=1)
    with_coupon = partial(new_order_with_coupon, "limited-0")
    applied = Work(server, partial(singles, "order", with_coupon), 100, connections=1)
    name = f"`POST /orders` with 3 lines and an applied coupon, compared with a coupon, {database}"
    yield ratio(name, Goal(3), applied, coupons, rounds)
    bulks = Work(server, partial(bulk, "order", new_order), 100, connections=1)
    orders = Work(server, partial(singles, "order", new_order), 100, connections=1)
    name = f"`POST /orders/bulk` of 100, compared with 100 single creates, {database}"
    yield ratio(name, Goal(8, "times faster", at_least=True), bulks, orders, rounds)


def _evaluation(server: Server, rounds: int, database: str) -> Row:
    """Compare an evaluation with reading a coupon (redemptions 5)."""
    evaluate = Work(server, partial(list, [cart(10, 2)] * 200), 200)
    first = json.loads(server.get("/coupons/code/limited-0"))["coupon"]["id"]
    reading = read(server, f"/coupons/{first}", 200)
    name = f"`POST /coupons/evaluate` of 10 items and 2 coupons, {database}"
    return ratio(name, Goal(2.5, "reads"), evaluate, reading, rounds)


def _batches(server: Server, rounds: int, database: str) -> Iterator[Row]:
    """Compare batches of wc/v3 with the bulk requests of the native API."""
    for kind, bodies in (("create", _created), ("update", _updated)):
        compared = []
        for noun in MAKES:
            rest, native = (
                partial(_batch, noun, kind, bodies, native=each) for each in (False, True)
            )
            batches, bulks = (Work(server, make, 10, connections=1) for make in (rest, native))
            compared.append(ratio(f"{noun}s", Goal(2), batches, bulks, rounds))
        name = f"wc/v3, batch to {kind} {BATCH}, compared with a native bulk request, {database}"
        yield worst(name, compared)


def _batch(noun: str, kind: str, bodies: _Bodies, *, native: bool) -> list[Request]:
    """Return ten batches or bulk requests."""
    path = f"/{noun}s/bulk" if native else f"{_REST}/{noun}s/batch"
    name = f"{noun}s" if native else kind
    return [post(path, **{name: bodies(noun, native=native)}) for _ in range(10)]


def _created(noun: str, *, native: bool) -> list[object]:
    new = [MAKES[noun]() for _ in range(BATCH)]
    if native:
        return [*new]
    line = {"product_id": 7, "name": "Mug", "sku": "SKU-007", "quantity": 2, "total": "8.00"}
    lines = {"line_items": [line] * 3} if noun == "order" else {}
    return [
        {_NAMES.get(name, name): value for name, value in (each | lines).items()} for each in new
    ]


def _updated(noun: str, *, native: bool) -> list[object]:
    own, other = _EDITED[noun]
    first = 2  # the first account is that of the bench
    return [
        {"id": first + position, own if native else other: f"Edit {next(NUMBERS)}"}
        for position in range(BATCH)
    ]
