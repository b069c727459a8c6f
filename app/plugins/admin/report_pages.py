"""Reports of a period, and the refused codes with their repair (reports 1, admin 2 and 5)."""

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from flask import Response, request

from app.conversions.intervals import DAY
from app.plugins.admin import reports
from app.plugins.admin.calls import Record, Reply, call, can, download
from app.plugins.admin.frame import AdminBlueprint, render
from app.plugins.admin.nouns.coupons import campaign_filters
from app.plugins.admin.tables import Filter, Tab, Table, list_query, page_number
from app.plugins.admin.texts import gettext as _
from app.services.coupons.queries import ids_of_codes

blp = AdminBlueprint("admin_reports", "Reports", "chart", 115)
refusals = AdminBlueprint("admin_refusals", "Refused codes", "ban", 120, page="show_refusals")

PAGE_SIZE = 25

SALES = {
    "orders": "Orders",
    "customers": "Customers",
    "total": "Revenue",
    "refunded": "Refunds",
    "net": "Net revenue",
    "discount": "Discount",
    "average_order": "Average order",
}
"""The labels of the figures of sales that the page shows, by their names in the report."""

COMPARED = ("total", "refunded", "net", "orders", "average_order", "customers")
"""Those that tiles compare with the period before."""

IN_TABLE = ("orders", "customers", "total", "refunded", "net", "discount")
"""Those of each interval, in the order of the columns."""

INTERVALS = {DAY: "By day", "week": "By week", "month": "By month", "year": "By year"}


@dataclass(frozen=True, slots=True)
class Report:
    """A report of the API as a table."""

    label: str
    operation: str
    sorts: Sequence[str] = ()  # the values of ``orderby`` of its columns
    filters: Callable[[], Sequence[Filter]] = lambda: ()
    figures: str = ""  # those that are computed


def _intervals() -> list[Filter]:
    choices = {value: _(label) for value, label in INTERVALS.items()}
    return [Filter("interval", _("Interval"), choices.pop(DAY), choices)]


COUPON_SORTS = ("code", "uses", "orders", "discount", "revenue")

REPORTS: Mapping[str, Report] = {
    "": Report(
        "Sales",
        "get_sales_report",
        filters=_intervals,
        figures=",".join(SALES),
    ),
    "coupons": Report("Coupons", "list_coupon_reports", COUPON_SORTS, campaign_filters),
    "customers": Report("Customers", "list_customer_reports", ("orders", "total", "refunded")),
    "refusals": Report("Refused codes", "list_refusal_reports"),
}
"""The reports, by the parameter ``state`` of the address."""


@blp.page("/reports", "get_sales_report")
def show() -> Response:
    """Show a report of a period, or return its rows as CSV."""
    name = request.args.get("state", "")
    name = name if name in REPORTS and can(REPORTS[name].operation) else ""
    report = REPORTS[name]
    period = reports.period_query(reports.DEFAULT, with_interval=False)
    filters = [
        Filter("from", _("From"), kind="date", default=period["from"]),
        Filter("to", _("To"), kind="date", default=period["to"]),
        *report.filters(),
    ]
    query = {each.name: each.value for each in filters}
    if name:
        query |= list_query(limit=str(PAGE_SIZE))
        query.pop("q")
        if query["orderby"] not in report.sorts:
            query |= {"orderby": "", "order": ""}
    if request.args.get("format") == "csv":
        return download(report.operation, query | ({"limit": "-1", "page": ""} if name else {}))
    if report.figures:
        query["fields"] = report.figures
    reply = reports.unless_slow(lambda: call(report.operation, query=query))
    return render(
        "report.html",
        title=_("Reports"),
        kind=name,
        figures=SALES,
        in_table=IN_TABLE,
        table=_table(report, filters, reply),
        tiles=_tiles(reply.content["totals"]) if reply and not name else [],
        definitions=_(reports.DEFINITIONS) if not name else "",
        problem="" if reply else _(reports.SLOW),
    )


def _table(report: Report, filters: Sequence[Filter], reply: Reply | None) -> Table:
    caption = _(report.label)
    table = Table(caption, ())
    if reply and report.figures:
        rows = reply.content["intervals"]
        table = Table(caption, rows, len(rows), own_requests=[("", reply.request)])
    elif reply:
        table = Table.of_reply(caption, reply)
    table.filters, table.sorts = filters, True
    table.tabs = [
        Tab(value, _(each.label)) for value, each in REPORTS.items() if can(each.operation)
    ]
    return table


def _tiles(totals: Record) -> list[tuple[str, str, Sequence[str]]]:
    """Return the label, the figure and the notes of each tile."""
    return [
        (
            _(SALES[name]),
            reports.figure(name, totals[name]),
            (
                _("before: %(value)s", value=reports.figure(name, totals["previous"][name])),
                reports.change_of(totals, name),
            ),
        )
        for name in COMPARED
    ]


MAX_COMPARED = 10
"""Number of unknown codes of a page that are compared with existing codes."""
MAX_LENGTH = 24
"""Longer codes are not typed by hand."""
LETTERS = string.ascii_lowercase + string.digits + "-_"


@refusals.page("/refusals", "list_refusal_reports")
def show_refusals() -> Response:
    """Show the codes that were refused in a period, most often first."""
    days = reports.chosen_days()
    query = reports.period_query(days, with_interval=False)
    query |= {"page": str(page_number()), "limit": "25"}
    reply = reports.from_replica(lambda: call("list_refusal_reports", query=query))
    rows = reply.content
    unknown = [row["code"] for row in rows if row["code"] and not row["coupon_id"]]
    similar = similar_codes(unknown[:MAX_COMPARED]) if can("list_coupons") else {}
    table = Table.of_reply(_("Refused codes"), reply)
    return render(
        "refusals.html",
        similar=similar,
        plots=reports.refusal_plots(days) if rows else [],
        title=_("Refused codes"),
        table=table,
        days=days,
        periods=reports.PERIODS,
    )


def similar_codes(codes: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Return an existing code that differs by one character, and its coupon, for refused codes.

    All codes at this distance are looked up in the index of codes with one statement.
    """
    candidates = {code: _neighbours(code) for code in codes if len(code) <= MAX_LENGTH}
    existing = ids_of_codes(sorted(set().union(*candidates.values())))
    return {
        code: (min(found), existing[min(found)])
        for code, near in candidates.items()
        if (found := near & existing.keys())
    }


def _neighbours(code: str) -> set[str]:
    """Return the codes that differ from a code by one character, or by two swapped ones."""
    cuts = [(code[:at], code[at:]) for at in range(len(code) + 1)]
    removed = {a + b[1:] for a, b in cuts if b}
    swapped = {a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1}
    replaced = {a + letter + b[1:] for a, b in cuts if b for letter in LETTERS}
    added = {a + letter + b for a, b in cuts for letter in LETTERS}
    return (removed | swapped | replaced | added) - {code, ""}
