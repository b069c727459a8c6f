"""Queries: each list and count equals the same selection made from all records.

``ask`` sends random queries at a pause, and ``check_queries`` compares their results.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any
from urllib.parse import quote

from qa.histories.checkers.reports import REPORT, ask_reports, check_report
from qa.histories.history import Segment, Violation

NAME = "queries"
QUERIES = 30  # at each pause
COUNTS = 0.5  # share of queries that count
CONDITIONS = 0, 1, 2, 2, 3, 3  # of a query; what two do together is where counts went wrong
CHILD = "child"
CHILDREN = (
    ("customers", "orders", "orders", "customer_id"),
    ("orders", "refunds", "refunds", "order_id"),
)
"""Lists under another record: its path, their name in the path, their kind, and what refers to it."""
STATUSES = ("pending", "processing", "on-hold", "completed", "cancelled", "failed", "refunded")

Record = dict[str, Any]
Condition = tuple[str, Callable[[Record], bool]]


def ask(
    get: Callable[[str], tuple[Any, dict[str, str]]], random: Random, state: Record
) -> list[Any]:
    """Send random queries; return each with its result.

    Args:
        get: sends a GET request; returns the body and the headers.
        state: the snapshot with which the results are compared.
    """
    found = []
    for _ in range(QUERIES):
        query = {"kind": random.choice(list(_CONDITIONS)), "seed": random.getrandbits(32)}
        path = path_of(query, state)
        body, headers = get(path)
        query |= {"path": path, "total": headers.get("x-total")}
        query["result"] = (
            body["count"] if "count" in body else [each["id"] for each in next(iter(body.values()))]
        )
        found.append(query)
    for parent, name, child, key in CHILDREN:
        if ids := list(state[parent]):
            id_ = random.choice(ids)
            path = f"/{parent}/{id_}/{name}"
            body, _ = get(path)
            result = sorted(each["id"] for each in next(iter(body.values())))
            query = {"kind": CHILD, "path": path, "of": [child, key, id_], "result": result}
            found.append(query)
    return found + ask_reports(get, random, state)


def path_of(query: Record, state: Record) -> str:
    """Return the path of a query."""
    return _plan(query, state)[0]


def check_queries(segment: Segment) -> list[Violation]:
    """Return the violations in the queries at the pause after a segment."""
    found = []
    for query in segment.after.get("queries", ()):
        if query["kind"] == REPORT:
            found += [Violation(NAME, text) for text in check_report(query, segment.after)]
            continue
        if query["kind"] == CHILD:
            found += _children(query, segment.after)
            continue
        path, expected, total = _plan(query, segment.after)
        if query["result"] != expected:
            text = f"GET {path} returns {query['result']}, and the records have {expected}"
            found.append(Violation(NAME, text))
        elif query["total"] is not None and int(query["total"]) != total:
            text = f"GET {path}: X-Total is {query['total']}, and {total} records match"
            found.append(Violation(NAME, text))
    return found


def _children(query: Record, state: Record) -> list[Violation]:
    """Check a list of the records that belong to another one."""
    child, key, id_ = query["of"]
    expected = sorted(each["id"] for each in state[child].values() if each[key] == id_)
    if query["result"] == expected:
        return []
    text = f"GET {query['path']} returns {query['result']}, and the records have {expected}"
    return [Violation(NAME, text)]


def _plan(query: Record, state: Record) -> tuple[str, Any, int]:
    """Return the path of a query, its expected result and total."""
    random, kind = Random(query["seed"]), query["kind"]
    records = list(state[kind].values())
    if kind == "redemptions":  # the snapshot has all that are live
        records = [
            each for each in records if each["status"] != "released" and not each["expires_at"]
        ]
    models = state["orders"].values() if kind == "trashed_orders" else records
    if kind == "coupons":  # most are generated, and nobody changes them
        models = [each for each in records if not each["code"].startswith("g-")] or records
    sample: Record = random.choice(list(models) or [{}])
    makers = _CONDITIONS[kind]
    chosen = random.sample(makers, min(random.choice(CONDITIONS), len(makers)))
    conditions = [each(random, sample) for each in chosen] if sample else []
    if kind == "redemptions":
        conditions.insert(0, ("status=confirmed", lambda each: each["status"] == "confirmed"))
    if kind == "customers":
        conditions.append(("role=all", lambda _: True))
    matching = [each for each in records if all(test(each) for _, test in conditions)]
    parts = [
        f"filter[{name}]={quote(value, safe=':,@')}"
        for name, _, value in (text.partition("=") for text, _ in conditions)
    ]
    if random.random() < COUNTS and not kind.startswith("trashed"):
        return f"{_PATHS[kind]}/count?{'&'.join(parts)}", len(matching), len(matching)
    ids = [each["id"] for each in matching]
    orderby = random.choice(_SORTS[kind])
    is_ascending = random.random() < 0.5
    key = _KEYS.get(orderby, lambda each: each[orderby])
    ids = [
        each["id"]
        for each in sorted(
            matching, key=lambda each: (key(each), each["id"]), reverse=not is_ascending
        )
    ]
    parts += [f"filter[orderby]={orderby}", f"filter[order]={'asc' if is_ascending else 'desc'}"]
    if random.random() < 0.4 and "coupons" not in kind:
        limit, offset = random.randint(1, 5), random.randint(0, 3)
        parts += [f"filter[limit]={limit}", f"filter[offset]={offset}"]
        return f"{_PATHS[kind]}?{'&'.join(parts)}", ids[offset : offset + limit], len(ids)
    return f"{_PATHS[kind]}?{'&'.join(parts)}", ids, len(ids)


def _equal(name: str, key: str = "") -> Any:
    key = key or name
    return lambda _, sample: (f"{name}={sample[key]}", lambda each: each[key] == sample[key])


def _time(name: str) -> Any:
    def condition(random: Random, sample: Record) -> Condition:
        at = sample[name]
        if random.random() < 0.5:
            return f"{name}_min={at}", lambda each: each[name] >= at
        return f"{name}_max={at}", lambda each: each[name] <= at

    return condition


def _statuses(random: Random, _: Record) -> Condition:
    chosen = random.sample(STATUSES, random.randint(1, 3))
    return f"status={','.join(chosen)}", lambda each: each["status"] in chosen


def _ids(random: Random, sample: Record) -> Condition:
    ids = {sample["id"], random.randint(1, 40)}
    text = ",".join(map(str, sorted(ids)))
    if random.random() < 0.5:
        return f"in={text}", lambda each: each["id"] in ids
    return f"not_in={text}", lambda each: each["id"] not in ids


def _code_text(random: Random, sample: Record) -> Condition:
    text = sample["code"][: random.choice((1, 3, 5, 20))].upper()
    return f"q={text}", lambda each: text.lower() in each["code"]


def _email_text(random: Random, sample: Record) -> Condition:
    text = sample["email"][: random.choice((2, 5, 9, 40))] or "example"
    return f"q={text}", lambda each: any(
        text.lower() in each[name].lower()
        for name in ("email", "username", "first_name", "last_name")
    )


def _order_text(random: Random, sample: Record) -> Condition:
    text = random.choice([sample["order_number"], *_texts(sample)])
    in_account = len(text) > 2
    return f"q={text}", lambda each: any(text in part for part in _texts(each, in_account))


def _texts(order: Record, in_account: bool = True) -> list[str]:
    """Return the texts in which a search of orders looks, each in lower case.

    Args:
        in_account: whether it looks in the account, as a search of three letters or more does.
    """
    names = ("company", "city", "first_name", "last_name", "address_1", "address_2", "postcode")
    texts = [
        order[kind][name] for kind in ("billing_address", "shipping_address") for name in names
    ]
    texts.append(order["billing_address"]["email"])
    if in_account and order["customer_id"]:
        account = order["customer"]
        texts += [account[name] for name in ("email", "username", "first_name", "last_name")]
    texts += [line["name"] for line in order["line_items"]]
    texts += [line["method_title"] for line in order["shipping_lines"]]
    texts += [order["order_number"], order["transaction_id"]]
    return [text.lower() for text in texts if text]


_TIMES = [_time("created_at"), _time("updated_at")]
_CONDITIONS: dict[str, list[Any]] = {
    "orders": [_statuses, _equal("customer_id"), _order_text, *_TIMES],
    "trashed_orders": [_statuses, _equal("customer_id"), *_TIMES],
    "coupons": [_ids, _code_text, _equal("type"), *_TIMES],
    "customers": [_email_text, _TIMES[0]],
    "redemptions": [_equal("code"), _equal("customer_id"), _equal("reference"), *_TIMES],
    "refunds": [_equal("order_id"), *_TIMES],
}
_PATHS = {
    "orders": "/orders", "trashed_orders": "/orders/trash", "coupons": "/coupons",
    "customers": "/customers", "redemptions": "/redemptions", "refunds": "/refunds",
}  # fmt: skip
_SORTS = {
    "orders": ("date", "modified", "id", "total"), "trashed_orders": ("date", "id", "total"),
    "coupons": ("date", "modified", "id", "code", "usage_count"),
    "customers": ("registered", "id", "email", "orders_count", "total_spent"),
    "redemptions": ("date", "id"), "refunds": ("date",),
}  # fmt: skip
_KEYS: dict[str, Callable[[Record], Any]] = {
    "date": lambda each: each["created_at"],
    "registered": lambda each: each["created_at"],
    "modified": lambda each: each["updated_at"],
    "email": lambda each: each["email"].lower(),
    "total": lambda each: float(each["total"]),
    "total_spent": lambda each: float(each["total_spent"]),
}
