"""Compare the CPU time of requests with that of another version of the service, round by round."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from qa.bench.measuring import Goal, Row, Work, ratio
from qa.bench.servers import Request
from qa.bench.shops import DATABASES, Shops
from qa.bench.workloads import (
    MAKES,
    NUMBERS,
    bulk,
    cart,
    limited_coupons,
    new_order_with_coupon,
    reservations,
    singles,
)

SINGLE, MANY = Goal(1.25), Goal(1.0)
"""What single requests, and lists of 100 and bulk requests, may cost."""


def rows(shops: Shops, rounds: int, checkout: Path) -> Iterator[Row]:
    """Compare single reads and writes, lists of 100 and bulk requests on each database.

    Args:
        shops: the shops.
        rounds: how often the two versions take turns.
        checkout: the folder of the other version.
    """
    for database in DATABASES:
        own, other = shops.empty(database, "own"), shops.empty(database, "other", checkout)
        with own.serve(SHOP_PAGE_SIZE="100") as server, other.serve(SHOP_PAGE_SIZE="100") as old:
            for each in (server, old):
                each.send([limited_coupons(2)], 1)
                for noun, make in MAKES.items():
                    each.send(bulk(noun, make), 1)
            for name, goal, number, requests in _requests():
                works = [Work(each, requests, number, connections=1) for each in (server, old)]
                yield ratio(f"{name}, {database}", goal, works[0], works[1], rounds)


def _requests() -> Iterator[tuple[str, Goal, int, Callable[[], Sequence[Request]]]]:
    """Return the name, the goal, the number and the requests of each workload."""
    for noun, field in (("coupon", "description"), ("customer", "first_name"), ("order", "note")):
        path, make = f"/{noun}s/50", MAKES[noun]
        yield f"`GET /{noun}s/{{id}}`", SINGLE, 200, partial(list, [Request(path)] * 200)
        yield f"`POST /{noun}s`", SINGLE, 100, partial(singles, noun, make)
        yield f"`PUT /{noun}s/{{id}}`", SINGLE, 100, partial(_edits, path, noun, field)
        pages = [Request(f"/{noun}s?limit=100")] * 50
        yield f"100 {noun}s", MANY, 50, partial(list, pages)
        yield f"`POST /{noun}s/bulk` of 100", MANY, 1, partial(bulk, noun, make)
    applied = partial(new_order_with_coupon, "limited-0")
    yield "`POST /orders` with a coupon", SINGLE, 100, partial(singles, "order", applied)
    yield "`POST /redemptions`", SINGLE, 100, partial(reservations, 100)
    yield "`POST /coupons/evaluate`", SINGLE, 100, partial(list, [cart(10, 2)] * 100)


def _edits(path: str, noun: str, field: str) -> list[Request]:
    bodies = (json.dumps({noun: {field: f"Edit {next(NUMBERS)}"}}).encode() for _ in range(100))
    return [Request(path, "PUT", body) for body in bodies]
