"""Rows about changes and persons: undo, history, merges, claims and erasures (people 8)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count

from sqlalchemy import String, cast, create_engine, func, insert, literal, select, true

from app.models import ORDERS
from qa.bench.measuring import Goal, Row, Work, alternate, cpu, details, ratio, read
from qa.bench.servers import Request, Server, Spent
from qa.bench.shops import DATABASES, Shop, Shops
from qa.bench.workloads import coupon_updates, new_coupon, new_order, singles

ORDERS_OF_PERSON, ERASED = 1_000, 10
EVENTS = 2_000  # of one record
MERGED = 3  # accounts
_numbers = count(1)


def persons(shops: Shops, rounds: int) -> Iterator[Row]:
    """Compare each operation with the update or the read that it is a multiple of."""
    for database in DATABASES:
        shop = shops.empty(database, "persons")
        with shop.serve() as server, shop.serve("qa.bench.without_changes:app") as other:
            yield from _updates(server, other, rounds, database)
            yield from _undo_and_history(server, rounds, database)
            yield from _merged_accounts(server, rounds, database)
            yield from _of_whole_persons(shop, server, rounds, database)


def _updates(server: Server, other: Server, rounds: int, database: str) -> Iterator[Row]:
    """Compare updates whose events have ``changes`` with updates without them."""
    for noun, make in (("coupon", new_coupon), ("order", new_order)):
        server.send(singles(noun, make), 1)
        listed = json.loads(server.get(f"/{noun}s?filter[limit]=100&limit=100&fields=id"))
        paths = [f"/{noun}s/{each['id']}" for each in listed[f"{noun}s"]]
        field = "description" if noun == "coupon" else "note"
        makes = partial(_of_paths, paths, noun, field)
        with_changes, without = (
            Work(each, makes, len(paths), connections=1) for each in (server, other)
        )
        name = f"`PUT /{noun}s/{{id}}` with `changes`, compared with none, {database}"
        yield ratio(name, Goal(1.15), with_changes, without, rounds)


def _of_paths(paths: Sequence[str], noun: str, field: str) -> list[Request]:
    body = json.dumps({noun: {field: f"Edit {next(_numbers)}"}}).encode()
    return [Request(path, "PUT", body) for path in paths]


def _undo_and_history(server: Server, rounds: int, database: str) -> Iterator[Row]:
    server.send([each for _ in range(2) for each in singles("coupon", new_coupon)], 1)
    updates = Work(server, coupon_updates, 100, connections=1)

    def undos() -> list[Request]:
        server.send(coupon_updates(), 1)
        newest = json.loads(server.get("/events?filter[order]=desc&filter[limit]=100&fields=id"))
        return [Request(f"/events/{each['id']}/undo", "POST") for each in newest["events"]]

    name = f"`POST /events/{{id}}/undo`, compared with the update of a coupon, {database}"
    undoing = Work(server, undos, 100, connections=1)
    yield ratio(name, Goal(2), undoing, updates, rounds)
    first = json.loads(server.get("/coupons?filter[limit]=1&fields=id"))["coupons"][0]["id"]
    bodies = (json.dumps({"coupon": {"description": f"{n}"}}).encode() for n in range(EVENTS))
    server.send([Request(f"/coupons/{first}", "PUT", body) for body in bodies], 1)
    history = f"/events?resource=coupon&resource_id={first}&order=desc&limit=10&fields="
    name = f"10 events of the history of a record with {EVENTS:,}, compared with it, {database}"
    reading = read(server, f"{history}id,type,created_at,changes,actor", 200)
    record = read(server, f"/coupons/{first}", 200)
    yield ratio(name, Goal(2), reading, record, rounds)


def _merged_accounts(server: Server, rounds: int, database: str) -> Iterator[Row]:
    plain, kept = _account(server), _account(server)
    for _ in range(MERGED):
        server.send([_merge(kept, _account(server))], 1)
    code = f"per-user-{next(_numbers)}"
    coupon = {"code": code, "type": "percent", "amount": "5", "usage_limit_per_user": 10**6}
    server.send([Request("/coupons", "POST", json.dumps({"coupon": coupon}).encode())], 1)
    lines = {"coupon_lines": [{"code": code}]}

    def order(customer_id: int) -> dict[str, object]:
        return {**new_order(), **lines, "billing_address": {}, "customer_id": customer_id}

    def cart(customer_id: int) -> list[Request]:
        contents = {"customer_id": customer_id, "coupons": [code], "items": [{"price": "13.95"}]}
        body = json.dumps({"cart": contents}).encode()
        return [Request("/coupons/evaluate", "POST", body)] * 100

    for what, make in (("POST /orders", lambda id_: singles("order", partial(order, id_))),
                       ("POST /coupons/evaluate", cart)):  # fmt: skip
        merged, other = (
            Work(server, partial(make, id_), 100, connections=1) for id_ in (kept, plain)
        )
        name = f"`{what}` of an account with {MERGED} merged ones, compared with none, {database}"
        yield ratio(name, Goal(1.1), merged, other, rounds)


def _of_whole_persons(shop: Shop, server: Server, rounds: int, database: str) -> Iterator[Row]:
    """Compare a merge, a claim and an erasure with updates of orders."""
    owner = _account(server)
    server.send(singles("order", new_order), 1)
    ids = [each["id"] for each in json.loads(server.get("/orders?limit=100&fields=id"))["orders"]]

    def notes() -> list[Request]:
        body = json.dumps({"order": {"note": f"Note {next(_numbers)}"}}).encode()
        return [Request(f"/orders/{order_id}", "PUT", body) for order_id in ids]

    updates = Work(server, notes, 100, connections=1)

    def merge() -> list[Request]:
        removed = _account(server)
        _add_orders(shop, server, ORDERS_OF_PERSON, customer_id=removed)
        return [_merge(owner, removed)]

    def claim() -> list[Request]:
        email = f"guest-{next(_numbers)}@example.com"
        _add_orders(shop, server, ORDERS_OF_PERSON, email=email)
        return [Request(f"/customers/{_account(server, email)}/claim", "POST", b'{"claim": {}}')]

    def erase() -> list[Request]:
        customer_id = _account(server)
        _add_orders(shop, server, ERASED, customer_id=customer_id)
        body = json.dumps({"person": {"customer_id": customer_id}}).encode()
        return [Request("/persons/erase", "POST", body)]

    for what, make, each, most in (
        (f"a merge of {ORDERS_OF_PERSON:,} orders", merge, ORDERS_OF_PERSON, 1 / 20),
        (f"a claim of {ORDERS_OF_PERSON:,} orders", claim, ORDERS_OF_PERSON, 1 / 20),
        (f"the erasure of {ERASED} orders", erase, 1, 20),
    ):
        costs, others = alternate([Work(server, make, 1, 1), updates], rounds)
        samples = [_times(ours, theirs, each) for ours, theirs in zip(costs, others, strict=True)]
        compared = f"{each:,} updates of orders" if each > 1 else "an update of an order"
        name = f"{what}, compared with {compared}, {database}"
        yield Row(name, Goal(most), samples,
                  f"{details(costs)} vs. {details(others)}")  # fmt: skip


def _times(ours: Spent, theirs: Spent, number: int) -> float:
    return cpu(ours) / (cpu(theirs) * number)


def _account(server: Server, email: str = "") -> int:
    new = {"email": email or f"person-{next(_numbers)}@example.com", "first_name": "Ada"}
    server.send([Request("/customers", "POST", json.dumps({"customer": new}).encode())], 1)
    newest = server.get(
        "/customers?filter[limit]=1&filter[order]=desc&filter[orderby]=id&fields=id"
    )
    return int(json.loads(newest)["customers"][0]["id"])


def _merge(kept: int, removed: int) -> Request:
    body = json.dumps({"merge": {"customer_id": removed}}).encode()
    return Request(f"/customers/{kept}/merge", "POST", body)


def _add_orders(
    shop: Shop, server: Server, number: int, *, customer_id: int = 0, email: str = ""
) -> None:
    """Create completed orders of a customer or a guest: one by a request, the others as copies."""
    order = {**new_order(), "customer_id": customer_id, "status": "completed"}
    order |= {"billing_address": {"first_name": "Ada", "email": email}}
    server.send([Request("/orders", "POST", json.dumps({"order": order}).encode())], 1)
    key = f"bench-{next(_numbers)}-"
    copies = select(literal(1).label("n")).cte(recursive=True)
    copies = copies.union_all(select(copies.c.n + 1).where(copies.c.n < number - 1))
    latest = select(func.max(ORDERS.c.id)).scalar_subquery()
    copied = [column for column in ORDERS.c if column.name not in {"id", "order_key"}]
    order_key = literal(key) + cast(copies.c.n, String)
    rows = select(*copied, order_key).select_from(ORDERS.join(copies, true()))
    rows = rows.where(ORDERS.c.id == latest)
    engine = create_engine(shop.url)
    with engine.begin() as connection:
        names = [*(column.name for column in copied), "order_key"]
        connection.execute(insert(ORDERS).from_select(names, rows))
    engine.dispose()
