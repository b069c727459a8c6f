"""Rows about a shop with a million customers, orders, coupons, redemptions and events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from functools import partial

from qa.bench.copies import TILL
from qa.bench.measuring import Goal, Row, Work, milliseconds, ratio, read
from qa.bench.servers import Request, Server
from qa.bench.shops import LARGE, PRESENT, SMALL, Shops
from qa.bench.workloads import (
    bulk,
    coupon_updates,
    new_coupon,
    new_customer,
    new_order,
    singles,
)


def first_pages(shops: Shops, rounds: int, database: str) -> Iterator[Row]:
    """Compare first pages in a large shop with those in a small one."""
    small, large = shops.shop(database, SMALL), shops.shop(database, LARGE)
    with small.serve() as few, large.serve() as many:
        for noun, number in (("customers", SMALL), ("orders", SMALL), ("coupons", SMALL // 5)):
            name = f"page 1 of {LARGE:,} {noun}, compared with {number:,}, {database}"
            work, other = (read(server, f"/{noun}", 50) for server in (many, few))
            yield ratio(name, Goal(1.5, 1.15, unit="times"), work, other, rounds)


MIDDLE, END = LARGE // 20, LARGE // 11
"""The page of ten in the middle of a million, and one near the end, also without the trash."""

HUNDRED = ",".join(str(number) for number in range(50, 10_000, 100))


def _ago(days: int) -> str:
    """Return a date before the end of the shop."""
    return (PRESENT - timedelta(days)).date().isoformat()


_BY_POSTCODE = "/customers?orderby=meta_value&orderby_meta_key=billing_postcode"

# Name, path and target in milliseconds of CPU.
LISTS = (
    *(
        (f"customers by {name}", f"/customers?orderby={name}", 5)
        for name in ("id", "email", "login", "modified", "name", "first_name", "last_name")
    ),
    *(
        (f"customers by {name}, in the middle",
         f"/customers?orderby={name}&page={MIDDLE}", 20 if name == "name" else 5)
        for name in ("id", "email", "login", "modified", "name")
    ),
    *(
        (f"customers {name} in one month",
         f"/customers?{name}_at_min={_ago(180)}&{name}_at_max={_ago(150)}", 10)
        for name in ("created", "updated")
    ),
    *(
        (f"customers by {name}, {order}ending", f"/customers?orderby={name}&order={order}", 10)
        for name in ("orders_count", "total_spent") for order in ("desc", "asc")
    ),
    *(
        (f"{noun} updated since a year{', oldest first' if order else ''}",
         f"/{noun}?updated_at_min={_ago(365)}{order}", 10)
        for noun in ("customers", "orders", "coupons", "redemptions")
        for order in ("", "&order=asc")
    ),
    *(
        (f"{noun} updated before a time", f"/{noun}?updated_at_max={_ago(1500)}", 10)
        for noun in ("customers", "orders", "coupons", "redemptions")
    ),
    *(
        (f"coupons by {name}{where}", f"/coupons?orderby={name}{page}", 5)
        for name in ("id", "code", "amount")
        for where, page in (
            ("", ""), (", in the middle", f"&page={MIDDLE}"), (", near the end", f"&page={END}"),
        )
    ),
    ("100 coupons by their IDs", f"/coupons?in={HUNDRED}&limit=100", 10),
    *(
        (f"{noun} by a value of their metadata", f"/{noun}?metadata[erp_id]={value}", 5)
        for noun, value in (("customers", f"K-{LARGE // 2:06}"), ("orders", f"A-{LARGE // 2:07}"))
    ),
    *(
        (f"coupons {name}", f"/coupons?{query}", 5)
        for name, query in (
            ("of a type", "type=percent"), ("that are active", "state=active"),
            ("that have expired", "state=expired"), ("that are used up", "state=used_up"),
        )
    ),
    *(
        (f"customers with `{text}`", f"/customers?q={text}", target)
        for text, target in (
            ("a", 10), ("an", 30), ("zq", 50), ("ada", 30), ("hopper", 30), ("zoe.turing77", 30),
            ("example.com", 30),
        )
    ),
    *(
        (f"{noun} with `zq`, which none contains", f"/{noun}?q=zq", 50)
        for noun in ("orders", "coupons")
    ),
    *(
        (f"number of {noun} with `example.com`", f"/{noun}/count?q=example.com", 50)
        for noun in ("customers", "orders")
    ),
    ("customers with a key of metadata that all have", "/customers?metadata_key=erp_id", 50),
    ("customers who have spent an amount, by orders_count",
     "/customers?total_spent_min=100&orderby=orders_count", 50),
    ("orders updated since a year, by ID, ascending",
     f"/orders?updated_at_min={_ago(365)}&orderby=id&order=asc", 40),
    ("redemptions updated since a year, by date, ascending",
     f"/redemptions?updated_at_min={_ago(365)}&orderby=date&order=asc", 75),
    *(
        (f"wc/v3, orders {name}", f"/wp-json/wc/v3/orders?{query}", 50)
        for name, query in (("of a product", "product=11"), ("created via", "created_via=rest-api"))
    ),
    ("customers of a period with `example.com`",
     f"/customers?q=example.com&created_at_min={_ago(180)}", 40),
    # Of about 200,000 customers.
    *(
        (f"customers of a year by a text in a meta key{where}",
         f"{_BY_POSTCODE}&created_at_min={_ago(365)}{page}", 125)
        for where, page in (("", ""), (", in the middle", "&page=10000"))
    ),
    *(
        (f"customers by {name}, in the middle", f"/customers?orderby={name}&page={MIDDLE}", 50)
        for name in ("orders_count", "total_spent")
    ),
    ("wc/v3, customers by name, in the middle",
     f"/wp-json/wc/v3/customers?orderby=name&page={MIDDLE}", 50),
    *(
        (f"number of {noun} with `zq`, which none contains", f"/{noun}/count?q=zq", 50)
        for noun in ("customers", "orders", "coupons")
    ),
    *(
        (f"number of {noun} since a time", f"/{noun}/count?created_at_min=2020-01-01", 5)
        for noun in ("customers", "orders", "coupons", "redemptions")
    ),
    *(
        (f"orders by {name}, {where}", f"/orders?orderby={name}&page={page}", 5)
        for name in ("date", "total", "modified")
        for where, page in (("in the middle", MIDDLE), ("near the end", END))
    ),
    *(
        (f"redemptions {name}", f"/redemptions?{query}", 5)
        for name, query in (
            ("by date", ""), ("by date, in the middle", f"page={MIDDLE}"),
            ("by date, near the end", f"page={END}"), ("by expires_at", "orderby=expires_at"),
            ("by expires_at, ascending", "orderby=expires_at&order=asc"),
            ("that are confirmed", "status=confirmed"), ("that are released", "status=released"),
            ("that are reserved", "status=reserved"), ("of a coupon", "coupon_id=1"),
        )
    ),
    ("number of redemptions", "/redemptions/count", 5),
    ("events of a record", "/events?resource_id=77", 5),
    ("events since a time", f"/events?created_at_min={_ago(180)}", 5),
    ("events of a type", "/events?type=order.updated", 5),
    *(
        (f"deliveries of a webhook{name}", f"/webhooks/1/deliveries{query}", 5)
        for name, query in (("", ""), (" that failed", "?state=failed"))
    ),
    ("orders of guests", "/orders?customer_id=0", 5),
    *(
        (f"orders of a status by {name}",
         f"/orders?status=pending&orderby={name}", 5)
        for name in ("date", "total", "modified", "id")
    ),
)  # fmt: skip


# Name, path, target in milliseconds of CPU on both databases, and number of requests.
_MONTH, _YEAR, _ALL = (f"from={_ago(days)}&to={_ago(1)}" for days in (30, 365, 5 * 365))
_DATES = f"date_min={_ago(365)}&date_max={_ago(1)}"
REPORTS = (
    ("sales of 30 days", f"/reports/sales?{_MONTH}", 20, 5),
    ("sales of a year by day", f"/reports/sales?{_YEAR}", 150, 2),
    ("all sales by month", f"/reports/sales?{_ALL}&interval=month", 1000, 1),
    ("100 coupons of 30 days", f"/reports/coupons?{_MONTH}&limit=100", 30, 5),
    ("customers of a year", f"/reports/customers?{_YEAR}", 500, 1),
    ("wc/v3, paying customers", "/wp-json/wc/v3/reports/customers/totals", 200, 2),
    ("wc/v3, coupons by type", "/wp-json/wc/v3/reports/coupons/totals", 50, 2),
    ("wc/v3, best sellers of a year", f"/wp-json/wc/v3/reports/top_sellers?{_DATES}", 150, 2),
    ("customers of all orders", f"/reports/customers?{_ALL}", 1500, 1),
)

# Name and path of admin pages, with the default period.
PAGES = (
    ("overview of 30 days", "/"), ("coupons", "/coupons"), ("orders", "/orders"),
    ("customers", "/customers"), ("a coupon", "/coupons/1"), ("an order", "/orders/7"),
    ("a customer", "/customers/5001"), ("a customer with 100,000 orders", f"/customers/{TILL}"),
    ("search", "/search?q=zoe"), ("batches of coupons", "/batches"), ("a batch", "/batches/1"),
    ("refused codes", "/refusals"), ("webhooks", "/webhooks"), ("a webhook", "/webhooks/1"),
    ("events", "/events"), ("keys", "/keys"), ("sessions", "/sessions"),
    ("import and export", "/data"), ("trying a coupon", "/coupons/1/try"),
)  # fmt: skip


def many_orders(shops: Shops, rounds: int, database: str) -> Iterator[Row]:
    """Compare a customer with 100,000 orders, such as a till, with one with a single order."""
    goal = Goal(1.3, 1.1, unit="times")
    with shops.shop(database, LARGE).serve() as server:
        single = _customer_with_one_order(server)
        for name, make, number in (
            ("`GET /customers/{id}`", partial(_reads, "/customers/{}"), 50),
            ("`POST /orders`", _orders_of, 20),
        ):
            work, other = (
                Work(server, partial(make, each), number, connections=1) for each in (TILL, single)
            )
            title = f"{name} of a customer with 100,000 orders, compared with one, {database}"
            yield ratio(title, goal, work, other, rounds)


def _customer_with_one_order(server: Server) -> int:
    """Create a customer with an order, and return its ID."""
    customer = new_customer()
    server.send([Request("/customers", "POST", json.dumps({"customer": customer}).encode())], 1)
    found = json.loads(server.get(f"/customers/email/{customer['email']}"))
    customer_id = int(found["customer"]["id"])
    server.send(_orders_of(customer_id)[:1], 1)
    return customer_id


def _reads(path: str, customer_id: int) -> list[Request]:
    return [Request(path.format(customer_id))] * 50


def _orders_of(customer_id: int) -> list[Request]:
    order = {"order": {**new_order(), "customer_id": customer_id}}
    return [Request("/orders", "POST", json.dumps(order).encode())] * 20


def deletions(shops: Shops, rounds: int, database: str, size: int = LARGE) -> Iterator[Row]:
    """Compare deletions of records with thousands of orders or uses with those that have one."""
    with shops.shop(database, size).serve() as server:
        for name, make, number, goal in (
            # The request clears 200 of the orders, and the worker the others.
            ("customer with 1,000 orders", _customer_to_delete, 1_000, Goal(15, 8, unit="times")),
            ("coupon with 1,000 uses", _coupon_to_delete, 1_000, Goal(1.5, 1.2, unit="times")),
        ):
            work, other = (
                Work(server, partial(make, server, each), 1, connections=1) for each in (number, 1)
            )
            title = f"deletion of a {name}, compared with one, {database}"
            yield ratio(title, goal, work, other, rounds)


def _customer_to_delete(server: Server, orders: int) -> list[Request]:
    customer_id = _customer_with_one_order(server)
    order = {**new_order(), "customer_id": customer_id}
    for start in range(1, orders, 100):
        body = {"orders": [order] * min(100, orders - start)}
        server.send([Request("/orders/bulk", "POST", json.dumps(body).encode())], 1)
    return [Request(f"/customers/{customer_id}", "DELETE")]


def _coupon_to_delete(server: Server, uses: int) -> list[Request]:
    coupon = new_coupon()
    server.send([Request("/coupons", "POST", json.dumps({"coupon": coupon}).encode())], 1)
    found = json.loads(server.get(f"/coupons/code/{coupon['code']}"))["coupon"]
    given = ({"code": coupon["code"], "reference": str(number)} for number in range(uses))
    reserved = (json.dumps({"redemption": each}).encode() for each in given)
    server.send([Request("/redemptions", "POST", body) for body in reserved], 1)
    return [Request(f"/coupons/{found['id']}?force=true", "DELETE")]


def full_shop(shops: Shops, rounds: int, database: str) -> Iterator[Row]:
    """Measure lists, counts, searches, reports, admin pages and writes of a large shop.

    Figures are milliseconds of CPU. The targets of lists and writes for PostgreSQL are twice as
    high. Writes come last, because they add records.
    """
    times = 2 if database == "PostgreSQL" else 1
    with shops.shop(database, LARGE).serve() as server:
        for name, path, target in LISTS:
            work = _few_requests(server, path, 5)
            yield milliseconds(f"{name}, {database}", work, target * times, rounds)
        for name, path, target, number in REPORTS:
            work = _few_requests(server, path, number)
            yield milliseconds(f"report: {name}, {database}", work, target, rounds)
        browser = server.signed_in()
        for name, path in PAGES:
            work = _few_requests(browser, f"/admin{path}", 3)
            yield milliseconds(f"admin page: {name}, {database}", work, 100, rounds)
    yield from many_orders(shops, rounds, database)
    yield from deletions(shops, rounds, database)
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
        name, path, target, number = REPORTS[0]
        work = _few_requests(server, path, number)
        yield milliseconds(f"report: {name}, after these writes, {database}", work, target, rounds)


def _few_requests(server: Server, path: str, number: int) -> Work:
    """Return a workload of so few requests that a round of all paths takes seconds."""
    return Work(server, lambda: [Request(path)] * number, number, connections=1)
