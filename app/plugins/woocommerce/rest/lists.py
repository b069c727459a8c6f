"""Lists of complete records, also of those in the trash: parameters, queries and results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from flask import Response, current_app, request
from sqlalchemy import Column, ColumnElement, case, literal, not_, or_, select, union, union_all
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from app.api.responses import json_response, streamed_list
from app.conversions.numbers import INT64_MAX, whole_number
from app.conversions.text import searchable
from app.db.read_pool import RowStream, fetch
from app.db.records import Columns, NamedColumns, Row, fetch_by_ids
from app.db.search import Search, contains, has_part
from app.db.sql.functions import json_text
from app.plugins.woocommerce.rest import arguments as arg
from app.plugins.woocommerce.rest.operations import Call
from app.plugins.woocommerce.rest.parameters import written
from app.plugins.woocommerce.rest.schemas import Field
from app.plugins.woocommerce.rest.site import Object, Site
from app.services.common.filtering import Find, ListQuery
from app.services.common.pagination import Total
from app.services.common.plans import fetch_page

TableColumns = ReadOnlyColumnCollection[str, Column[object]]

TIMES = {
    "after": "created_at",
    "before": "created_at",
    "modified_after": "updated_at",
    "modified_before": "updated_at",
}
"""The parameters that compare times, each with its column."""
_KEYS = arg.ListArgument(items=arg.TEXT, default=[])
METADATA_KEYS: arg.Arguments = {"include_meta": _KEYS, "exclude_meta": _KEYS}
"""Which metadata the records of a list show (wc-v3, metadata)."""
MAX_WORDS = 9
"""Words of a search that are conditions of their own."""


def collection(
    noun: str, *keys: str, default: str = "date", order: str = "desc", times: Iterable[str] = TIMES
) -> dict[str, Field]:
    """Return the parameters of a list, by its sort keys and the parameters that compare times."""
    return {
        "context": arg.CONTEXT,
        "page": arg.Argument("integer", default=1, minimum=1),
        "per_page": arg.Argument("integer", default=10, minimum=1, maximum=100),
        "search": arg.TEXT,
        **dict.fromkeys(times, arg.DATE),
        **({"dates_are_gmt": arg.FORCE} if times else {}),
        "exclude": arg.IDS,
        "include": arg.IDS,
        "offset": arg.ABSOLUTE,
        "order": arg.choice("SortDirection", ["asc", "desc"], default=order),
        "orderby": arg.choice(f"{noun}ListOrderby", list(keys), default=default),
    }


@dataclass(frozen=True, kw_only=True)
class RecordListQuery(ListQuery):
    """What a list shows. Its sort key ``include`` keeps the order of the given IDs.

    Attributes:
        search: text that records contain; of coupons, words that must all be found, except those
            that begin with a hyphen.
        times: the exclusive bounds of times, by the name of the parameter.
        include: only these IDs, if there are any.
        exclude: without these IDs.
    """

    search: str = ""
    times: Mapping[str, datetime] = field(default_factory=dict)
    include: Sequence[int] = ()
    exclude: Sequence[int] = ()


def query_of(call: Call) -> RecordListQuery:
    """Return the query for the parameters that all lists have."""
    args, is_gmt = call.args, call.args.get("dates_are_gmt", False)
    offset = args.get("offset")
    return RecordListQuery(
        page=min(args["page"], INT64_MAX // 1000),
        limit=args["per_page"],
        offset=None if offset is None else min(offset, INT64_MAX // 2),
        order=args["order"],
        orderby=args["orderby"],
        search=(args.get("search") or "").strip(),
        times={
            name: call.site.moment(call.given[name], is_gmt=is_gmt)
            for name in TIMES
            if name in call.given
        },
        include=args["include"] or (),
        exclude=args["exclude"] or (),
    )


def conditions_of(query: RecordListQuery, columns: TableColumns) -> list[ColumnElement[bool]]:
    """Return the conditions of times and IDs."""
    found: list[ColumnElement[bool]] = []
    for name, moment in query.times.items():
        column = columns[TIMES[name]]
        found.append(column > moment if name.endswith("after") else column < moment)
    if query.include:
        found.append(columns["id"].in_(query.include))
    if query.exclude:
        found.append(columns["id"].not_in(query.exclude))
    return found


def fetch_records(
    columns: Columns, find: Find, query: RecordListQuery, *, keys: NamedColumns, may_read: bool
) -> tuple[list[Object], Total]:
    """Return a page of records by column name, and the number of all that match."""
    key = keys.get(query.orderby)
    if key is None:  # include
        query = replace(query, order="asc")
        places = {each: at for at, each in enumerate(dict.fromkeys(query.include))}
        key = case(places, value=keys["id"]) if places else literal(0)
    page = fetch_page(columns, find, query, key=key, may_read=may_read)
    rows: Any = page.rows  # a short page, read as a whole
    return as_records(columns, rows), Total(page.total or 0, page.goes_on is None)


def words_of(
    text: str, column: ColumnElement[str], record_id: ColumnElement[int]
) -> tuple[Search | None, list[ColumnElement[bool]]]:
    """Return the search for the first word, and the conditions of the other ones.

    A text of more than ``MAX_WORDS`` words is searched as a whole, as on the original.
    """
    words = text.split()
    words = words if len(words) <= MAX_WORDS else [text]
    wanted = [word for word in words if len(word) == 1 or not word.startswith("-")]
    conditions = [contains(column, word, record_id).in_order for word in wanted[1:]]
    conditions += [
        not_(has_part(column, searchable(word[1:])))
        for word in words
        if word.startswith("-") and len(word) > 1
    ]
    search = contains(column, wanted[0], record_id) if wanted else None
    return search, conditions


def phrase_of(
    text: str, column: ColumnElement[str], record_id: ColumnElement[int]
) -> Search | None:
    """Return the search for a text. A whole number also finds the record with this ID."""
    if not text.strip():
        return None
    found = contains(column, text, record_id)
    if (number := whole_number(text)) is None:
        return found
    in_order = or_(found.in_order, record_id == number)
    if not found.is_indexed or found.ids is None:
        newest = found.newest
        newest = None if newest is None else union(newest, select(literal(number)))
        return replace(found, in_order=in_order, by_index=in_order, ids=None, newest=newest)
    ids = union_all(found.ids, select(literal(number)))
    return replace(found, in_order=in_order, by_index=record_id.in_(ids), ids=ids)


def records_with_ids(
    columns: Columns, record_id: ColumnElement[int], ids: Sequence[int]
) -> list[Object]:
    """Return the records with these IDs by column name, in the order of the IDs."""
    wanted = [min(each, INT64_MAX) for each in ids]
    return as_records(columns, fetch_by_ids(fetch, columns, record_id, wanted))


def address(columns: TableColumns, name: str, parts: Sequence[str]) -> ColumnElement[str]:
    """Return the column of an address, as the text of an object with these parts in their order."""
    return json_text({part: columns[f"{name}_{part}"] for part in parts}).label(name)


def as_records(columns: Columns, rows: Sequence[Sequence[object]]) -> list[Object]:
    """Return rows by the names of their columns."""
    names = [column.key or "" for column in columns]
    return [dict(zip(names, row, strict=False)) for row in rows]


def page(
    call: Call,
    objects: Iterable[object],
    total: Total,
    defaults: Mapping[str, object] | None = None,
) -> Response:
    """Return the response with a page of a list, its totals and the links to other pages.

    Args:
        defaults: parameters that the links have in any case.
    """
    response, number = json_response(call.shown(list(objects))), call.args["page"]
    pages = math.ceil(total.number / call.args["per_page"])
    response.headers["X-WP-Total"] = str(total.number)
    response.headers["X-WP-TotalPages"] = str(pages)
    if not total.is_complete:
        response.headers["X-WP-Total-Complete"] = "false"
    own = defaults or {}
    shown = {
        name: call.given.get(name, value)
        for name, value in call.sent.items()
        if not name.startswith("oauth_") and not (name == "status" and "status" in own)
    }
    shown |= {name: each for name, each in own.items() if name not in shown}
    others = [("prev", min(number - 1, pages))] if number > 1 and pages else []
    others += [("next", number + 1)] if pages > number else []
    path = request.path.removeprefix(current_app.config["SHOP_URL_PREFIX"]).rstrip("/")
    links = [
        f'<{call.site.home}{path}?{written({**shown, "page": at}.items())}>; rel="{rel}"'
        for rel, at in others
    ]
    response.headers["Link"] = ", ".join([*links, call.site.index_link])
    return response


def listed(
    call: Call, rows: Sequence[Row] | RowStream, make: Callable[[Sequence[Row]], list[Object]]
) -> Response:
    """Return the response with a list, which is sent while it is read if it is long.

    Args:
        make: returns the objects of a batch of rows.
    """
    if isinstance(rows, RowStream):
        return streamed_list(lambda batch: call.shown(make(batch)), rows)
    return json_response(call.shown(make(rows)))


def site_of(call: Call) -> Site:
    """Return the site with the options of a request that shows orders, refunds or metadata."""
    args, wanted = call.args, call.wanted
    return replace(
        call.site,
        dp=min(call.given.get("dp", 2), arg.MAX_DECIMALS),
        has_customer=call.site.has_customer and (not wanted or "customer" in wanted),
        include_meta=frozenset(args.get("include_meta") or ()),
        exclude_meta=frozenset(args.get("exclude_meta") or ()),
    )
