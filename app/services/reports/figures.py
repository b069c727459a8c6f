"""Figures of reports: what they are, and the statements that compute them (reports 2).

A report has parts. Each part reads rows of one kind by a time of their own: orders, refunds, uses,
accounts. Their figures are computed by time (``by_span``, ``by_row``) or by group.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    DateTime,
    FromClause,
    Select,
    String,
    Subquery,
    cast,
    distinct,
    func,
    literal,
    literal_column,
    null,
    select,
    type_coerce,
    union_all,
)

from app.conversions.intervals import Interval
from app.db.read_pool import Fetch, on_postgresql
from app.db.records import NamedColumns
from app.db.sql.functions import id_list, json_list, json_record
from app.services.orders.items import amount_text, divided
from app.services.reports.period import Span, text_of
from app.services.reports.scope import SpanColumns, within

NUMBERS = {"orders", "items", "customers", "refunds", "new_customers", "uses"}
"""Figures that are numbers. All others except TIMES are amounts in cents."""

TIMES: dict[str, Any] = {"first_use": min, "last_use": max}
CUSTOMERS = "customers"
"""The number of different values."""

ORDER_IDS = "order_ids"
"""The list of the values. One part of a report has it."""

SOURCES = {
    "tax": ("cart_tax", "shipping_tax"),
    "net": ("total", "shipping", "cart_tax", "shipping_tax", "refunded"),
    "average_order": ("total", "revenue", "orders"),
    "new_customers": ("new_customers", ORDER_IDS),
}
"""The figures from which others follow."""

ENDS = ("since", "until")
"""The ends of a span."""

ONE: ColumnElement[int] = literal_column("1", BigInteger)
"""The value of each row in a number of rows."""


Figures = dict[str, Any]
"""Figures by their names: numbers, cents, times, and the set of customers."""


class FigureRows(NamedTuple):
    """Figures of rows of one kind: a select of the rows of any time, their time, and their values.

    The values of ``figures`` are added, except those of TIMES and CUSTOMERS.
    """

    rows: Select[Any]
    time: ColumnElement[datetime]
    figures: dict[str, ColumnElement[Any]]


def with_figures(parts: Iterable[FigureRows], names: Iterable[str]) -> list[FigureRows]:
    """Return parts with only some figures. Parts that have none of them are left out."""
    sources = {source for name in names for source in SOURCES.get(name, (name,))}
    chosen = (
        part._replace(
            figures={name: part.figures[name] for name in part.figures if name in sources}
        )
        for part in parts
    )
    return [part for part in chosen if part.figures]


def in_cents(column: ColumnElement[Any]) -> ColumnElement[int]:
    """Return an amount in cents."""
    return type_coerce(column, BigInteger)


def by_span(fetch: Fetch, parts: Sequence[FigureRows], spans: Sequence[Span]) -> list[Figures]:
    """Return the figures of each span, in one statement. Python counts the different customers."""
    table, place, span = _table_of(spans)
    each = (
        part.rows.add_columns(json_record(dict(_aggregates(part, as_json=True))))
        .where(*within(part.time, span))
        .correlate(table)
        .scalar_subquery()
        for part in parts
    )
    return [_read(row) for row in fetch(select(*each).select_from(table).order_by(place))]


def _read(records: Iterable[str]) -> Figures:
    """Return the figures of records that a database has written as JSON."""
    values: Figures = {}
    customers = set[object]()
    for record in records:
        values |= orjson.loads(record)
        customers.update(values.pop(CUSTOMERS, None) or ())
    customers.discard(None)
    return figures_of(values) | {CUSTOMERS: customers}


def by_row(fetch: Fetch, parts: Sequence[FigureRows], spans: Sequence[Span]) -> list[Figures]:
    """Return the figures of consecutive spans from a few rows, which are added in Python."""
    starts = [span.since for span in spans]
    found: list[list[Figures]] = [[] for _ in spans]
    for part in parts:
        whole = within(part.time, SpanColumns(starts[0], spans[-1].until))
        rows = part.rows.add_columns(part.time, *part.figures.values()).where(*whole)
        for time, *values in fetch(rows):
            row = {
                name: {value} if name == CUSTOMERS else value
                for name, value in zip(part.figures, values, strict=True)
                if value is not None
            }
            found[bisect_right(starts, time) - 1].append(row)
    return [added(rows, parts) for rows in found]


def added(rows: Iterable[Figures], parts: Iterable[FigureRows]) -> Figures:
    """Return the sums of figures. A row can lack some of them."""
    listed = list(rows)
    total: Figures = {}
    for name in {name: None for part in parts for name in part.figures}:
        values = [row[name] for row in listed if row.get(name)]
        if name in TIMES:
            total[name] = TIMES[name](values, default=None)
        else:
            total[name] = set().union(*values) if name == CUSTOMERS else sum(values)
    return total


def by_group(parts: Iterable[FigureRows], keys: NamedColumns, span: Span) -> Subquery:
    """Return a subquery of the figures of a span by some columns of the rows.

    Each part has some of the figures; the others are added as nothing.
    """
    found = [(part, dict(_aggregates(part))) for part in parts]
    names = {name: value for _, figures in found for name, value in figures.items()}
    columns = [column.label(name) for name, column in keys.items()]
    missing = {name: cast(null(), like.type) for name, like in names.items()}
    selects = [
        part.rows.add_columns(
            *columns, *(value.label(name) for name, value in (missing | figures).items())
        )
        .where(*within(part.time, span))
        .group_by(*_person_of(part), *keys.values())
        for part, figures in found
    ]
    both = union_all(*selects).subquery().c
    sums: dict[str, Any] = {name: func.coalesce(func.sum(both[name]), 0) for name in names}
    sums |= {name: _end(name, both[name]) for name in TIMES.keys() & sums}
    sums |= {name: func.max(both[name]) for name in {ORDER_IDS} & sums.keys()}
    groups = [both[name] for name in keys]
    labelled = (value.label(name) for name, value in sums.items())
    return select(*groups, *labelled).group_by(*groups).subquery()


def _person_of(part: FigureRows) -> Iterable[Any]:
    """Return the columns by which PostgreSQL groups customers, faster than count(DISTINCT).

    They come first, because most rows differ in them, which ends a comparison in a sort.
    """
    customer: Any = part.figures.get(CUSTOMERS)
    return customer.clauses if on_postgresql() and customer is not None else ()


def _aggregates(
    part: FigureRows, *, as_json: bool = False
) -> Iterator[tuple[str, ColumnElement[Any]]]:
    """Yield the aggregates of figures."""
    for name, value in part.figures.items():
        if value is ONE:
            yield name, func.count()
        elif name in TIMES:
            yield name, _end(name, value)
        elif name == ORDER_IDS:
            yield name, id_list(value)
        elif name == CUSTOMERS and not as_json:
            yield name, ONE if on_postgresql() else func.count(distinct(value))
        elif name == CUSTOMERS:
            yield name, json_list(value)
        elif as_json and on_postgresql():  # as text, because JSON parsers round large numbers
            yield name, cast(func.sum(value), String)
        else:
            yield name, func.sum(value)


def _end(name: str, time: Any) -> ColumnElement[Any]:
    end: ColumnElement[Any] = getattr(func, TIMES[name].__name__)(time, type_=time.type)
    return end


def figures_of(values: Mapping[str, Any]) -> Figures:
    """Return figures from the values of a row: times, numbers and sums."""
    return {name: each if name in TIMES else int(each or 0) for name, each in values.items()}


def shown(figures: Figures, names: Iterable[str]) -> dict[str, object]:
    """Return figures as the API shows them, with those that follow from others."""
    values = defaultdict(int, figures)  # figures that are not wanted are 0
    total, orders = values.get("total", values["revenue"]), values["orders"]
    values["average_order"] = divided(total, orders) if orders else 0
    values["tax"] = values["cart_tax"] + values["shipping_tax"]
    values["net"] = total - values["shipping"] - values["tax"] - values["refunded"]
    if isinstance(values.get(CUSTOMERS), set):
        values[CUSTOMERS] = len(values[CUSTOMERS])
    for name in TIMES.keys() & values.keys():
        values[name] = values[name] and text_of(values[name])
    is_shown = NUMBERS | TIMES.keys()
    return {name: values[name] if name in is_shown else amount_text(values[name]) for name in names}


def with_intervals(
    parts: Sequence[FigureRows],
    spans: Sequence[Span],
    each: Sequence[Figures],
    names: Sequence[str],
) -> dict[str, object]:
    """Return ``totals`` and ``intervals`` from the figures of the period before and of each one."""
    previous, *figures = each
    intervals = [span for span in spans if isinstance(span, Interval)]
    return {
        "totals": shown(added(figures, parts), names) | {"previous": shown(previous, names)},
        "intervals": [
            {"start": text_of(interval.start), "label": interval.label} | shown(found, names)
            for interval, found in zip(intervals, figures, strict=True)
        ],
    }


def _table_of(spans: Sequence[Span]) -> tuple[FromClause, Any, SpanColumns]:
    """Return a table of spans, and the columns of their place and of their ends."""
    if on_postgresql():
        kind: Any = ARRAY(DateTime(timezone=True))
        ends = (literal([getattr(span, end) for span in spans], kind) for end in ENDS)
        table = func.unnest(*ends).table_valued(*ENDS, with_ordinality="n")
        table = table.render_derived()
        return table, table.c.n, SpanColumns(table.c.since, table.c.until)
    pairs = ((span.since, span.until) for span in spans)  # in UTC, as SQLite stores it
    stored = [[end.isoformat(" ", "microseconds")[:26] for end in pair] for pair in pairs]
    rows = func.json_each(literal(json.dumps(stored), String)).table_valued("key", "value")
    columns: Iterable[Any] = (
        type_coerce(func.json_extract(rows.c.value, f"$[{end}]"), String) for end in (0, 1)
    )
    return rows, rows.c.key, SpanColumns(*columns)
