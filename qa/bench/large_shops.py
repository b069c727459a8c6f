"""Rows about large shops, which have 100,000 records of each kind on SQLite, else a million.

All are times by the clock of one client.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from qa.bench.copies import TILL
from qa.bench.lists import DOCUMENTS, PAGE, Middle, offers, requests
from qa.bench.measuring import Row, slowest
from qa.bench.servers import Request, Server
from qa.bench.shops import SIZES, Shops
from qa.bench.workloads import (
    MAKES,
    Make,
    bulk,
    coupon_updates,
    limited_coupons,
    new_coupon,
    new_customer,
    new_order,
    post,
    reservations,
    singles,
)

ROUNDS = 3
ON_SQLITE = 300
"""Milliseconds that any request may take on SQLite (architecture 1.2)."""

# Admin pages, with the default period.
PAGES = (
    "/", "/coupons", "/orders", "/customers", "/campaigns", "/coupons/1", "/orders/7",
    "/customers/5001", f"/customers/{TILL}", "/search?q=zoe", "/batches", "/batches/1", "/refusals",
    "/webhooks", "/webhooks/1", "/events", "/keys", "/sessions", "/data", "/coupons/1/try",
)  # fmt: skip


def rows(shops: Shops, _rounds: int, database: str) -> Iterator[Row]:
    """Measure the slowest request of each kind. Writes come last, because they add records."""
    most = {"SQLite": ON_SQLITE}.get(database)
    shop = f"{SIZES[database]:,} of each, {database}"
    with shops.shop(database, SIZES[database]).serve() as server:
        middle = middle_of(server)
        offered = {prefix: offers(server.get(path)) for prefix, path in DOCUMENTS.items()}
        for kind, paths in requests(offered, middle).items():
            name = f"slowest of {{}} {kind.title}, {shop}"
            yield slowest(name, most or kind.target, server, _gets(paths), ROUNDS)
        half = middle.numbers["/customers"] // 2
        entries = {"customers": f"K-{half:06}", "orders": f"A-{half:07}"}
        found = [f"/{noun}?metadata[erp_id]={value}" for noun, value in entries.items()]
        name = f"slowest of {{}} lists by a rare value of metadata, {shop}"
        yield slowest(name, 10, server, _gets(found), ROUNDS)
        browser, pages = server.signed_in(), _gets([f"/admin{path}" for path in PAGES])
        yield slowest(f"slowest of {{}} admin pages, {shop}", most or 100, browser, pages, ROUNDS)
        if most:
            yield slowest(f"slowest of {{}} writes, {shop}", most, server, _writes(server), ROUNDS)


def middle_of(server: Server) -> Middle:
    """Return the numbers of a shop, and values of records in the middle of its lists."""
    nouns = ("customers", "orders", "coupons", "redemptions", "refunds")
    counts = {noun: json.loads(server.get(f"/{noun}/count"))["count"] for noun in nouns}
    customer, coupon, use = (
        json.loads(server.get(f"/{noun}?page={counts[noun] // PAGE // 2}"))[noun][0]
        for noun in ("customers", "coupons", "redemptions")
    )
    numbers = {f"/{noun}": count for noun, count in counts.items()}
    return Middle(numbers, customer, coupon["code"], use["reference"])


def _gets(paths: Sequence[str]) -> dict[str, Callable[[], Request]]:
    return {f"`GET {path}`": partial(Request, path) for path in paths}


def _writes(server: Server) -> dict[str, Callable[[], Request]]:
    """Return writes, also of a customer with a tenth of all orders, and of many orders and uses."""
    server.send([limited_coupons(1)], 1)
    writes: dict[str, Callable[[], Request]] = {
        "`PUT /coupons/{id}`": lambda: coupon_updates()[0],
        "`POST /redemptions`": lambda: reservations(1)[0],
        "`POST /orders` of a customer with many orders": partial(_order_of, TILL),
        "`DELETE` of a customer with 1,000 orders": partial(_customer_to_delete, server),
        "`DELETE` of a coupon with 1,000 uses": partial(_coupon_to_delete, server),
    }
    for noun, make in MAKES.items():
        writes[f"`POST /{noun}s`"] = partial(_single, noun, make)
        writes[f"`POST /{noun}s/bulk` of 100"] = partial(_bulk, noun, make)
    return writes


def _single(noun: str, make: Make) -> Request:
    return singles(noun, make, 1)[0]


def _bulk(noun: str, make: Make) -> Request:
    return bulk(noun, make)[0]


def _order_of(customer_id: int) -> Request:
    return post("/orders", order={**new_order(), "customer_id": customer_id})


def _customer_to_delete(server: Server) -> Request:
    """Create a customer with 1,000 orders, and return the deletion."""
    customer = new_customer()
    server.send([post("/customers", customer=customer)], 1)
    found = json.loads(server.get(f"/customers/email/{customer['email']}"))["customer"]["id"]
    orders = [{**new_order(), "customer_id": found} for _ in range(100)]
    server.send([post("/orders/bulk", orders=orders)] * 10, 1)
    return Request(f"/customers/{found}", "DELETE")


def _coupon_to_delete(server: Server) -> Request:
    """Create a coupon with 1,000 uses, and return the deletion."""
    coupon = new_coupon()
    server.send([post("/coupons", coupon=coupon)], 1)
    found = json.loads(server.get(f"/coupons/code/{coupon['code']}"))["coupon"]["id"]
    server.send(reservations(1000, [str(coupon["code"])]), 1)
    return Request(f"/coupons/{found}?force=true", "DELETE")
