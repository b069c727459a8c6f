"""Rows about coupons of campaigns, compared with coupons without one (campaigns 7)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from itertools import count

from qa.bench.measuring import Goal, Row, Work, alternate, details, ratio
from qa.bench.servers import Request, Server
from qa.bench.shops import Shops
from qa.bench.workloads import cart, limited_coupons, new_order_with_coupon, reservations, singles

CLIENTS, MOST = 16, 10**9
LIMITED, OPEN = 1, 2  # IDs of campaigns
_prefixes = count()


def campaigns(shops: Shops, rounds: int) -> Iterator[Row]:
    """Compare evaluations, orders, generated codes and 16 clients, on PostgreSQL."""
    with shops.empty("PostgreSQL").serve(workers=2) as server:
        _create_records(server)
        evaluate, plain = (
            Work(server, partial(list, [cart(10, 2, code)] * 200), 200)
            for code in ("mailed", "limited")
        )
        name = "`POST /coupons/evaluate` of 2 coupons of a campaign, compared with others"
        yield ratio(name, Goal(1.25, 1.1, unit="times"), evaluate, plain, rounds)
        orders, plain = (
            Work(server, partial(singles, "order", partial(new_order_with_coupon, code)), 100, 1)
            for code in ("mailed-0", "limited-0")
        )
        name = "`POST /orders` with a coupon of a limited campaign, compared with a limited coupon"
        yield ratio(name, Goal(1.3, 1.15, unit="times"), orders, plain, rounds)
        generated, plain = (
            Work(server, partial(_generate, campaign_id), 1, 1) for campaign_id in (LIMITED, 0)
        )
        name = "`POST /coupons/generate` of 1,000 codes of a campaign, compared with others"
        yield ratio(name, Goal(1.1, 1.05, unit="times"), generated, plain, rounds)
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
            yield Row(name, Goal(goal, 1, at_least=True, unit="of its rate"), samples, text)


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
