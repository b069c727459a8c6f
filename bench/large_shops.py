"""Rows about a shop with a million customers and orders, and 200,000 coupons."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

from bench.measuring import Goal, Row, Work, alternate, cpu, details, milliseconds, ratio, read
from bench.servers import Request, Server
from bench.shops import LARGE, SMALL, Shops
from bench.workloads import (
    bulk,
    coupon_updates,
    new_coupon,
    new_customer,
    new_order,
    singles,
)


def large_lists(shops: Shops, rounds: int, database: str) -> Iterator[Row]:
    """Measure pages and searches of a million rows."""
    small, large = shops.shop(database, SMALL), shops.shop(database, LARGE)
    with small.serve() as few, large.serve() as many:
        for noun, most, least in (
            ("customers", LARGE, SMALL),
            ("coupons", LARGE // 5, SMALL // 5),
        ):
            for where, page_of_many, page_of_few in (
                ("page 1", 1, 1),
                ("the middle page", most // 20, least // 20),
            ):
                name = f"{where} of {most:,} {noun}, compared with {least:,}, {database}"
                work = read(many, f"/{noun}?page={page_of_many}", 50)
                other = read(few, f"/{noun}?page={page_of_few}", 50)
                yield ratio(name, Goal(1.5, 1.15, unit="times"), work, other, rounds)
        for text in ("ada", "hopper", "zoe.turing77"):
            path = f"/customers?q={text}"
            (costs,) = alternate([read(many, path, 10)], rounds)
            name = f"search of {LARGE:,} customers for `{text}`, {database}"
            goal = Goal(30, 5, unit="ms")
            yield Row(name, goal, [cpu(cost) * 1000 for cost in costs], details(costs))


# Name, path and target in milliseconds of CPU.
FULL_LISTS = (
    *(
        (f"customers by {name}", f"/customers?orderby={name}", 5)
        for name in ("id", "email", "login", "modified", "name", "first_name", "last_name")
    ),
    *(
        (f"customers by {name}, in the middle",
         f"/customers?orderby={name}&page={LARGE // 20}", 20 if name == "name" else 5)
        for name in ("id", "email", "login", "modified", "name")
    ),
    *(
        (f"customers {name} in one month",
         f"/customers?filter[{name}_at_min]=2026-05-01&filter[{name}_at_max]=2026-06-01", 10)
        for name in ("created", "updated")
    ),
    *(
        (f"customers by {name}", f"/customers?orderby={name}", 10)
        for name in ("orders_count", "total_spent")
    ),
    ("customers by total_spent, ascending",
     "/customers?orderby=total_spent&order=asc", 10),
    *(
        (f"{noun} updated since a year", f"/{noun}?updated_at_min=2025-06-01", 10)
        for noun in ("customers", "orders", "coupons")
    ),
    *(
        (f"coupons by {name}", f"/coupons?orderby={name}", 5) for name in ("id", "code")
    ),
    ("coupons by code, in the middle",
     f"/coupons?orderby=code&page={LARGE // 100}", 5),
    *(
        (f"{noun} by a value of their metadata", f"/{noun}?metadata[erp_id]={value}", 5)
        for noun, value in (("customers", f"K-{LARGE // 2:06}"), ("orders", f"A-{LARGE // 2:07}"))
    ),
    ("coupons of a type", "/coupons?type=percent", 5),
    *(
        (f"customers with `{text}`", f"/customers?q={text}", target)
        for text, target in (("a", 10), ("an", 30), ("example.com", 30))
    ),
    ("customers of a period with `example.com`",
     "/customers?q=example.com&created_at_min=2026-05-01", 40),
    ("customers by a number in a meta key",
     "/customers?orderby=meta_value_num&orderby_meta_key=billing_postcode", 10),
    *(
        (f"number of {noun} since a time", f"/{noun}/count?created_at_min=2020-01-01", 5)
        for noun in ("customers", "orders")
    ),
    *(
        (f"orders by {name}, {where}", f"/orders?orderby={name}&page={page}", 5)
        for name in ("date", "total", "modified")
        for where, page in (("in the middle", LARGE // 20), ("near the end", LARGE // 10 - 10))
    ),
    *(
        (f"redemptions {name}", f"/redemptions?{query}", 5)
        for name, query in (
            ("by date", ""), ("by expires_at", "orderby=expires_at"),
            ("that are confirmed", "status=confirmed"),
        )
    ),
    ("events of a record", "/events?resource_id=77", 5),
    ("events since a time", "/events?created_at_min=2026-11-10", 5),
    ("orders of guests", "/orders?customer_id=0", 5),
    *(
        (f"orders of a status by {name}",
         f"/orders?status=pending&orderby={name}", 5)
        for name in ("date", "total", "modified", "id")
    ),
)  # fmt: skip


# Name, path, target in milliseconds of CPU on both databases, and number of requests.
_MONTH, _YEAR = "from=2026-10-02&to=2026-10-31", "from=2025-11-01&to=2026-10-31"
_ALL = "from=2021-11-01&to=2026-10-31&interval=month"
REPORTS = (
    ("sales of 30 days", f"/reports/sales?{_MONTH}", 20, 5),
    ("sales of a year by day", f"/reports/sales?{_YEAR}", 150, 2),
    ("all sales by month", f"/reports/sales?{_ALL}", 1000, 1),
    ("100 coupons of 30 days", f"/reports/coupons?{_MONTH}&limit=100", 30, 5),
)

# Name and path of admin pages.
PAGES = (
    ("overview of 30 days", "/"), ("table of coupons", "/coupons"), ("table of orders", "/orders"),
    ("table of customers", "/customers"), ("a coupon", "/coupons/7"), ("an order", "/orders/7"),
    ("a customer", "/customers/77"), ("search", "/search?q=zoe"),
)  # fmt: skip

TILL_ORDERS = 100_000


def many_orders(shops: Shops, rounds: int, database: str) -> Iterator[Row]:
    """Compare a customer with 100,000 orders, such as a till, with one with a single order.

    The orders are created on the first run, in bulk requests.
    """
    goal = Goal(1.3, 1.1, unit="times")
    with shops.shop(database, LARGE).serve() as server:
        few, many = (_customer(server, f"{name}@example.com") for name in ("single", "till"))
        for customer_id, wanted in ((few, 1), (many, TILL_ORDERS)):
            _create_orders(server, customer_id, wanted)
        for name, make, number in (
            ("`GET /customers/{id}`", partial(_reads, "/customers/{}"), 50),
            ("`POST /orders`", _orders_of, 20),
        ):
            work, other = (
                Work(server, partial(make, each), number, connections=1) for each in (many, few)
            )
            title = (
                f"{name} of a customer with {TILL_ORDERS:,} orders, compared with one, {database}"
            )
            yield ratio(title, goal, work, other, rounds)


def _customer(server: Server, email: str) -> int:
    try:
        found = json.loads(server.get(f"/customers/email/{email}"))
    except RuntimeError:  # not created yet
        body = json.dumps({"customer": {"email": email}}).encode()
        server.send([Request("/customers", "POST", body)], 1)
        found = json.loads(server.get(f"/customers/email/{email}"))
    return int(found["customer"]["id"])


def _create_orders(server: Server, customer_id: int, wanted: int) -> None:
    shown = json.loads(server.get(f"/customers/{customer_id}"))["customer"]["orders_count"]
    for start in range(shown, wanted, 100):
        number = min(100, wanted - start)
        orders = [{**new_order(), "customer_id": customer_id} for _ in range(number)]
        server.send([Request("/orders/bulk", "POST", json.dumps({"orders": orders}).encode())], 1)


def _reads(path: str, customer_id: int) -> list[Request]:
    return [Request(path.format(customer_id))] * 50


def _orders_of(customer_id: int) -> list[Request]:
    order = {"order": {**new_order(), "customer_id": customer_id}}
    return [Request("/orders", "POST", json.dumps(order).encode())] * 20


def full_shop(shops: Shops, rounds: int, database: str) -> Iterator[Row]:
    """Measure the CPU time of lists in every sort order and of writes, in milliseconds.

    The targets for PostgreSQL are twice as high. Writes come last, because they add records.
    """
    yield from many_orders(shops, rounds, database)
    times = 2 if database == "PostgreSQL" else 1
    with shops.shop(database, LARGE).serve() as server:
        for name, path, target in FULL_LISTS:
            yield milliseconds(
                f"{name}, {database}", read(server, path, 10), target * times, rounds
            )
        for name, path, target, number in REPORTS:
            work = read(server, path, number)
            yield milliseconds(f"report: {name}, {database}", work, target, rounds)
        browser = server.signed_in()
        for name, path in PAGES:
            work = read(browser, f"/admin{path}", 5)
            yield milliseconds(f"admin page: {name}, {database}", work, 100, rounds)
    with shops.shop(database, LARGE).serve() as server:
        works = (
            ("`POST /coupons`", partial(singles, "coupon", new_coupon), 100, 5),
            ("`PUT /coupons/{id}`", coupon_updates, 100, 5),
            ("`POST /coupons/bulk` of 100", partial(bulk, "coupon", new_coupon), 1, 12),
            ("`POST /customers`", partial(singles, "customer", new_customer), 100, 8),
            ("`POST /customers/bulk` of 100", partial(bulk, "customer", new_customer), 1, 25),
        )
        for name, make, number, target in works:
            work = Work(server, make, number, connections=1)
            title = f"{name} in a shop of {LARGE:,}, {database}"
            yield milliseconds(title, work, target * times, rounds)
