"""Rows about coupons of campaigns, compared with coupons without one (campaigns 7)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from itertools import count

import psycopg

from qa.bench.copies import multiply_codes
from qa.bench.measuring import Goal, Row, Work, alternate, details, milliseconds, ratio, read
from qa.bench.servers import Request, Server
from qa.bench.shops import LARGE, PRESENT, Shop, Shops
from qa.bench.workloads import cart, limited_coupons, new_order_with_coupon, reservations, singles

CLIENTS, MOST = 16, 10**9
LIMITED, OPEN = 1, 2  # IDs of campaigns
USES, TAGGED = 100_000, 1_000
_prefixes, _numbers = count(), count(1)


def campaigns(shops: Shops, rounds: int) -> Iterator[Row]:
    """Compare evaluations, orders, generated codes and 16 clients, on PostgreSQL."""
    with shops.empty("PostgreSQL").serve(workers=2) as server:
        _create_records(server)
        evaluate, plain = (
            Work(server, partial(list, [cart(10, 2, code)] * 200), 200)
            for code in ("mailed", "limited")
        )
        name = "`POST /coupons/evaluate` of 2 coupons of a campaign, compared with others"
        yield ratio(name, Goal(1.25), evaluate, plain, rounds)
        orders, plain = (
            Work(server, partial(singles, "order", partial(new_order_with_coupon, code)), 100, 1)
            for code in ("mailed-0", "limited-0")
        )
        name = "`POST /orders` with a coupon of a limited campaign, compared with a limited coupon"
        yield ratio(name, Goal(1.3), orders, plain, rounds)
        generated, plain = (
            Work(server, partial(_generate, campaign_id), 1, 1) for campaign_id in (LIMITED, 0)
        )
        name = "`POST /coupons/generate` of 1,000 codes of a campaign, compared with others"
        yield ratio(name, Goal(1.1), generated, plain, rounds)
        codes = [f"{{}}-{number}" for number in range(CLIENTS)]
        for what, goal, ours, theirs in (
            ("a limited campaign, compared with one limited coupon", 0.5, "mailed", ["limited-0"]),
            ("a campaign without limit, compared with others", 0.85, "open", codes),
        ):
            works = [
                Work(
                    server, partial(reservations, 400, [c.format(kind) for c in some]), 400, CLIENTS
                )
                for kind, some in ((ours, codes), ("free", theirs))
            ]
            costs, others = alternate(works, rounds)
            samples = [b.wall / a.wall for a, b in zip(costs, others, strict=True)]
            text = f"{details(costs)} vs. {details(others)}"
            name = f"`POST /redemptions` of different codes of {what}, 16 clients"
            yield Row(name, Goal(goal, "of its rate", at_least=True), samples, text)


def large_campaigns(shops: Shops, rounds: int) -> Iterator[Row]:
    """Measure campaigns with a million codes or uses, and a tag of a million customers."""
    shop = shops.empty("PostgreSQL", "campaigns")
    with shop.serve() as server:
        used, full, sent = (_create_uses(server, number) for number in range(3))
    _multiply(shop)
    with shop.serve() as server:
        reading = read(server, f"/campaigns/{used}", 20)
        name = f"`GET /campaigns/{{id}}` with {USES:,} uses"
        yield milliseconds(name, reading, 25, rounds)
        tagged = read(server, "/customers?tag=vip", 20)
        yield milliseconds(f"customers with a tag, of {LARGE:,}", tagged, 10, rounds)
        pauses = Work(server, partial(_pauses, sent), 20, connections=1)
        edits = Work(server, _edits, 20, connections=1)
        name = f"pausing a campaign of {LARGE:,} codes, compared with the update of a coupon"
        yield ratio(name, Goal(2), pauses, edits, rounds)
        limits = Work(server, partial(_limit, full), 1, connections=1)
        name = f"setting a limit of a campaign with {LARGE:,} uses"
        yield milliseconds(name, limits, 1000, rounds)


def _create_uses(server: Server, number: int) -> int:
    """Create a campaign with a coupon and a use, or the last one with a coupon; return its ID."""
    campaign_id = number + 1
    server.send([Request("/campaigns", "POST", b'{"campaign": {"name": "Bench"}}')], 1)
    moved = json.dumps({"coupon": {"campaign_id": campaign_id}}).encode()
    if number == 0:
        customer = {"email": "a@example.com", "tags": ["vip"]}
        server.send([Request("/customers", "POST", json.dumps({"customer": customer}).encode())], 1)
        coupon = {"code": "mailed", "type": "percent", "amount": "10"}
        server.send([Request("/coupons", "POST", json.dumps({"coupon": coupon}).encode())], 1)
    server.send([Request("/coupons/1", "PUT", moved)], 1)
    if number < 2:
        use = {"code": "mailed", "reference": f"cart-{number}", "email": "a@example.com"}
        body = json.dumps({"redemption": use | {"amount": "1.00"}}).encode()
        server.send([Request("/redemptions", "POST", body)], 1)
        server.send([Request(f"/redemptions/{number + 1}/confirm", "POST")], 1)
    return campaign_id


def _multiply(shop: Shop) -> None:
    multiply_codes(shop.url, PRESENT, LARGE, USES, TAGGED)
    with psycopg.connect(shop.url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def _pauses(campaign_id: int) -> list[Request]:
    """Pause and resume a campaign, 20 times in all."""
    bodies = (json.dumps({"campaign": {"active": bool(n % 2)}}).encode() for n in range(20))
    return [Request(f"/campaigns/{campaign_id}", "PUT", body) for body in bodies]


def _edits() -> list[Request]:
    body = json.dumps({"coupon": {"description": f"edit {next(_numbers)}"}}).encode()
    return [Request(f"/coupons/{coupon_id}", "PUT", body) for coupon_id in range(1, 21)]


def _limit(campaign_id: int) -> list[Request]:
    body = json.dumps({"campaign": {"usage_limit": MOST + next(_numbers)}}).encode()
    return [Request(f"/campaigns/{campaign_id}", "PUT", body)]


def _create_records(server: Server) -> None:
    server.send([limited_coupons(2)], 1)
    for limits in ({"usage_limit": MOST}, {}):
        body = {"campaign": {"name": "Bench", **limits}}
        server.send([Request("/campaigns", "POST", json.dumps(body).encode())], 1)
    for kind, campaign_id in (("mailed", LIMITED), ("open", OPEN), ("free", 0)):
        terms = {"type": "percent", "amount": "10", "campaign_id": campaign_id}
        coupons = [{"code": f"{kind}-{number}", **terms} for number in range(CLIENTS)]
        bulk = json.dumps({"coupons": coupons}).encode()
        server.send([Request("/coupons/bulk", "POST", bulk)], 1)


def _generate(campaign_id: int) -> list[Request]:
    coupon = {"type": "percent", "amount": "10", "campaign_id": campaign_id}
    wanted = {"count": 1000, "prefix": f"b{next(_prefixes)}-", "coupon": coupon}
    return [Request("/coupons/generate", "POST", json.dumps({"generate": wanted}).encode())]
