"""Rows about a shop with a million customers and orders, and 200,000 coupons."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench.measuring import Goal, Row, Work, alternate, cpu, details, milliseconds, ratio, read
from bench.shops import LARGE, SMALL, Shops
from bench.workloads import bulk, coupon_updates, new_coupon, new_customer, singles


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
            path = f"/customers?filter[q]={text}"
            (costs,) = alternate([read(many, path, 10)], rounds)
            name = f"search of {LARGE:,} customers for `{text}`, {database}"
            goal = Goal(30, 5, unit="ms")
            yield Row(name, goal, [cpu(cost) * 1000 for cost in costs], details(costs))


# Name, path and target in milliseconds of CPU.
FULL_LISTS = (
    *(
        (f"customers by {name}", f"/customers?filter[orderby]={name}", 5)
        for name in ("id", "email", "login", "modified", "name", "first_name", "last_name")
    ),
    *(
        (f"customers by {name}, in the middle",
         f"/customers?filter[orderby]={name}&page={LARGE // 20}", 20 if name == "name" else 5)
        for name in ("id", "email", "login", "modified", "name")
    ),
    *(
        (f"customers {name} in one month",
         f"/customers?filter[{name}_at_min]=2026-05-01&filter[{name}_at_max]=2026-06-01", 10)
        for name in ("created", "updated")
    ),
    *(
        (f"coupons by {name}", f"/coupons?filter[orderby]={name}", 5) for name in ("id", "code")
    ),
    *(
        (f"{noun} by a value of their metadata", f"/{noun}?filter[metadata][erp_id]={value}", 5)
        for noun, value in (("customers", f"K-{LARGE // 2:06}"), ("orders", f"A-{LARGE // 2:07}"))
    ),
    ("coupons of a type", "/coupons?filter[type]=percent", 5),
    ("orders of guests", "/orders?filter[customer_id]=0", 5),
    *(
        (f"orders of a status by {name}",
         f"/orders?filter[status]=pending&filter[orderby]={name}", 5)
        for name in ("date", "total", "modified", "id")
    ),
)  # fmt: skip


def full_shop(shops: Shops, rounds: int, database: str) -> Iterator[Row]:
    """Measure the CPU time of lists in every sort order and of writes, in milliseconds.

    The targets for PostgreSQL are twice as high. Writes come last, because they add records.
    """
    times = 2 if database == "PostgreSQL" else 1
    with shops.shop(database, LARGE).serve() as server:
        for name, path, target in FULL_LISTS:
            yield milliseconds(
                f"{name}, {database}", read(server, path, 10), target * times, rounds
            )
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
