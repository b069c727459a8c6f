"""Requests for every list, sort and filter of the OpenAPI documents, for counts, searches, reports.

A filter for which there is no value here is an error, so that the bench asks new ones, too.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import product
from typing import NamedTuple

from qa.bench.shops import PRESENT


class Kind(NamedTuple):
    """Requests with one target: milliseconds on PostgreSQL with a million records of each."""

    title: str
    target: int


FIRST = Kind("first pages of lists in each order", 100)
FILTERED = Kind("first pages of lists with each filter", 100)
SORTED = Kind("first pages of lists with a filter in another order", 100)
FOUND = Kind("searches and counts", 250)
DEEP = Kind("pages in the middle and last pages", 500)
BY_META = Kind("lists of customers by a text or number without an index", 250)
MONTH = Kind("reports of 30 days", 100)
YEAR = Kind("reports of a year", 500)
ALL = Kind("reports of all time", 1500)
ALL_BY_MONTH = Kind("reports of all sales by month", 1000)

WC_V3 = "/wp-json/wc/v3"
DOCUMENTS = {"": "/openapi.json", WC_V3: f"{WC_V3}/openapi.json"}
"""The documents by the prefix of their paths."""

PAGE = 10

_VARIABLE = re.compile(r"{(\w+)}")
_IDS = {"coupon_id": 1, "customer_id": 5001, "order_id": 7, "batch_id": 1, "webhook_id": 1}
_NO_FILTERS = {
    "fields", "_fields", "meta", "include_meta", "exclude_meta", "dates_are_gmt", "dp", "format",
    "order_item_display_meta", "limit", "per_page", "offset", "page", "order", "orderby",
    "orderby_meta_key", "metadata_value", "/events after", "/events before",
}  # fmt: skip
_SEARCHES = {"q", "search"}
_TEXTS = (
    "a", "an", "zq", "%C3%A4", "ada", "hopper", "zoe", "zoe.turing77", "muller", "xyzzy",
    "example.com",
)  # fmt: skip
_STATUSES = (
    "pending", "processing", "on-hold", "completed", "cancelled", "refunded", "failed",
    "processing,completed",
)  # fmt: skip

Parameters = Mapping[str, Sequence[str]]
"""The query parameters of an operation, with the values that its document lists."""


def ago(days: int) -> str:
    """Return a date before the end of the shop."""
    return (PRESENT - timedelta(days)).date().isoformat()


_PERIODS = ((MONTH, ago(30)), (YEAR, ago(365)), (ALL, ago(4000)))


class Middle(NamedTuple):
    """Records in the middle of a shop, whose values the filters have.

    Attributes:
        numbers: how many records each list has.
        customer: a customer.
        code: the code of a coupon.
        reference: the reference of a redemption.
    """

    numbers: Mapping[str, int]
    customer: Mapping[str, str]
    code: str
    reference: str


def offers(document: bytes) -> dict[str, Parameters]:
    """Return the query parameters of each GET operation of a document, by its path."""
    found = json.loads(document)
    components = found["components"]
    operations: dict[str, Parameters] = {}
    for path, methods in found["paths"].items():
        parameters = {}
        for given in methods.get("get", {}).get("parameters", ()):
            name = given.get("$ref", "").rpartition("/")[2]
            parameter = components["parameters"][name] if name else given
            schema = parameter["schema"].get("items", parameter["schema"])
            if "$ref" in schema:
                schema = components["schemas"][schema["$ref"].rpartition("/")[2]]
            if parameter["in"] == "query":
                parameters[parameter["name"]] = schema.get("enum", ())
        if "get" in methods:
            operations[path] = parameters
    return operations


def requests(
    offered: Mapping[str, Mapping[str, Parameters]], middle: Middle
) -> dict[Kind, list[str]]:
    """Return the paths of the requests of each kind.

    Args:
        offered: the operations of each document, by the prefix of their paths.
        middle: a shop.

    Raises:
        KeyError: a filter has no value.
    """
    found: dict[Kind, dict[str, None]] = defaultdict(dict)  # in order, without repetition
    for prefix, operations in offered.items():
        for template, parameters in operations.items():
            path = _VARIABLE.sub(lambda part: str(_IDS.get(part[1], part[0])), template)
            for kind, query in _queries(path, parameters, middle) if "{" not in path else ():
                found[kind][f"{prefix}{path}{query and f'?{query}'}"] = None
    for kind, path in _others(middle.numbers["/customers"]):
        found[kind][path] = None
    return {kind: list(paths) for kind, paths in found.items()}


def _queries(path: str, parameters: Parameters, middle: Middle) -> Iterator[tuple[Kind, str]]:
    filters = list(_filters(path, parameters, middle))
    if path.startswith("/reports"):
        yield from _reports(parameters)
    elif path.endswith("/count"):
        yield from ((FOUND, query) for query in ("", *filters))
    elif parameters.keys() & {"page", "limit"}:
        sorts = [f"orderby={name}" for name in parameters.get("orderby", ())
                 if name != "include" and not name.startswith("meta_value")]  # fmt: skip
        orders = [f"order={name}" for name in parameters.get("order", ())]
        yield from _pages(sorts, orders, middle.numbers.get(path, 0))
        sizes = [f"{name}=100" for name in ("limit", "per_page") if name in parameters]
        yield from ((FIRST, size) for size in sizes)
        for each in filters:
            if each.partition("=")[0] in _SEARCHES:
                more = ["page=3", *(sort for sort in sorts if sort == "orderby=id")]
                yield from ((FOUND, _joined(each, other)) for other in ("", *more))
            else:
                yield from ((FILTERED, _joined(each, order)) for order in ("", *orders))
                yield from ((SORTED, _joined(each, sort)) for sort in sorts)


def _filters(path: str, parameters: Parameters, middle: Middle) -> Iterator[str]:
    values = _values(middle)
    for name, choices in parameters.items():
        if not _NO_FILTERS & {name, f"{path} {name}"} and not path.startswith("/reports"):
            own = choices or values.get(f"{path} {name}") or values[name]
            yield from (f"{name}={value}" for value in own)


def _pages(sorts: Sequence[str], orders: Sequence[str], number: int) -> Iterator[tuple[Kind, str]]:
    """Return the first pages of a list in each order, and two others of a long one."""
    last = (number + PAGE - 1) // PAGE
    others = [f"page={page}" for page in (last // 2, last)] if number > 100 * PAGE else []
    for sort, order in product(["", *sorts], ["", *orders]):
        yield FIRST, _joined(sort, order)
        yield from ((DEEP, _joined(sort, order, other)) for other in others)


def _reports(parameters: Parameters) -> Iterator[tuple[Kind, str]]:
    if "from" in parameters:
        more = [f"orderby={name}" for name in parameters.get("orderby", ())]
        more += ["limit=100"] * ("limit" in parameters)
        for (kind, start), each in product(_PERIODS, ("", *more)):
            # The intervals of a day would be too many.
            wide = "interval=month" if kind == ALL and "interval" in parameters else ""
            yield kind, _joined(f"from={start}&to={ago(1)}", each, wide)
    elif "period" in parameters:
        for period in parameters["period"]:
            yield YEAR if period == "year" else MONTH, f"period={period}"
        yield YEAR, f"date_min={ago(365)}&date_max={ago(1)}"
    else:
        yield FIRST, ""


def _joined(*parts: str) -> str:
    return "&".join(filter(None, parts))


def _others(customers: int) -> Iterator[tuple[Kind, str]]:
    """Return requests to which the documents do not lead."""
    yield SORTED, f"/orders?updated_at_min={ago(365)}&orderby=id&order=asc"
    yield FIRST, f"{WC_V3}/orders?orderby=include&include=5,6"
    # The first 1,100 coupons have thousands of uses each, and others have none (performance.md).
    yield FIRST, f"{WC_V3}/coupons?order=asc&per_page=100&page=12"
    for path in ("customers/5001/orders", "orders/7/notes", "orders/7/refunds", "events?after=7",
                 f"events?order=desc&before={customers}"):  # fmt: skip
        yield FIRST, f"/{path}"
    yield FOUND, f"/customers?q=example.com&created_at_min={ago(180)}"
    yield ALL_BY_MONTH, f"/reports/sales?from={ago(4000)}&to={ago(1)}&interval=month"
    for key, by in product(("postcode", "city", "first_name"), ("meta_value", "meta_value_num")):
        sort = f"/customers?orderby={by}&orderby_meta_key=billing_{key}"
        # Of a tenth of the customers, because there may be too many to sort.
        period = f"created_at_min={ago(150)}"
        yield from (
            (BY_META, _joined(sort, period, page)) for page in ("", f"page={customers // 400}")
        )


def _values(middle: Middle) -> dict[str, Sequence[object]]:
    """Return values of each filter that has no list of values in the documents.

    A name can have its path before it, where it means something else.
    """
    half = middle.numbers["/customers"] // 2
    entries = (f"erp_id&metadata_value={text}" for text in (f"K-{half:06}", f"A-{half:07}"))
    ids = ("5,10,15", ",".join(str(number) for number in range(50, 10_000, 100)))
    since, until = (ago(30), ago(365), ago(2000)), (ago(700), ago(1500))
    after, before = ([f"{day}T00:00:00" for day in days] for days in (since, until))
    return {
        **{f"{name}_at_min": (*since, f"{ago(180)}&{name}_at_max={ago(150)}")
           for name in ("created", "updated")},
        **dict.fromkeys(("created_at_max", "updated_at_max"), until),
        **dict.fromkeys(("after", "modified_after"), after),
        **dict.fromkeys(("before", "modified_before"), before),
        **dict.fromkeys(_SEARCHES, (*_TEXTS, *map(middle.customer.get, ("email", "last_name")))),
        **dict.fromkeys(("in", "include", "not_in"), ids),
        **dict.fromkeys(("exclude", "parent", "parent_exclude"), ("0,5", "5")),
        **dict.fromkeys(("customer_id", "customer"), (half, 5001, 0)),
        **dict.fromkeys(("order_id", "coupon_id", "event_id", "resource_id"), (half, 77)),
        **dict.fromkeys(("batch", "campaign", "user_id"), (1,)),
        **{f"{path} status": _STATUSES for path in ("/orders", "/orders/count", "/orders/trash")},
        "status": ("confirmed", "released", "reserved"),
        "role": ("customer", "administrator", "all"), "tag": ("vip",),
        "metadata_key": ("erp_id", *entries),
        "total_spent_min": (100, 100_000), "total_spent_max": (1,),
        "total_min": (500, 100_000), "total_max": (1,),
        "code": (middle.code,), "email": (middle.customer["email"],),
        "reference": (middle.reference,), "product": (11,), "created_via": ("rest-api",),
        "type": ("order.created", "order.updated"), "resource": ("order", "coupon"),
        "request_id": ("0" * 32,),
    }  # fmt: skip
