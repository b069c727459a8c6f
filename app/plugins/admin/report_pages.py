"""Reports of a period, and the refused codes with their repair (reports 1, admin 2 and 5)."""

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from flask import Response, request
from markupsafe import Markup

from app.conversions.intervals import DAY
from app.plugins.admin import html, reports
from app.plugins.admin.calls import Record, Reply, call, can, download
from app.plugins.admin.frame import AdminBlueprint, render
from app.plugins.admin.nouns.coupons import COUPONS, campaign_filters, coupon_cell
from app.plugins.admin.nouns.customers import CUSTOMERS
from app.plugins.admin.nouns.refused_codes import reason
from app.plugins.admin.tables import Column, Filter, Tab, Table, list_query, page_number
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
    columns: Callable[[], Sequence[Column]]
    filters: Callable[[], Sequence[Filter]] = lambda: ()
    figures: str = ""  # those that are computed


def _sales_columns() -> list[Column]:
    def column(name: str) -> Column:
        shown = html.money if name in reports.MONEY else html.number
        return Column.of(_(SALES[name]), name, shown, on_phone=name in {"orders", "total"})

    return [
        Column(_("Period"), lambda row: reports.label_of(row["label"])),
        *map(column, IN_TABLE),
    ]


def _coupon_columns() -> list[Column]:
    return [
        Column(_("Coupon"), coupon_cell, sort="code"),
        Column.of(_("Uses"), "uses", sort="uses", on_phone=True),
        Column.of(_("Orders"), "orders", sort="orders"),
        Column.of(_("New customers"), "new_customers"),
        Column.of(_("Discount"), "discount", html.money, sort="discount", on_phone=True),
        Column.of(_("Revenue"), "revenue", html.money, sort="revenue"),
    ]


def _customer_columns() -> list[Column]:
    def name(row: Record) -> object:
        customer = row["customer"]
        shown = html.joined(filter(None, (customer["first_name"], customer["last_name"])), " ")
        return CUSTOMERS.link_to(customer["id"], shown or customer["email"])

    return [
        Column(_("Customer"), name),
        Column.of(_("Orders"), "orders", sort="orders", on_phone=True),
        Column.of(_("Revenue"), "total", html.money, sort="total", on_phone=True),
        Column.of(_("Refunds"), "refunded", html.money, sort="refunded"),
        Column.of(_("Average order"), "average_order", html.money),
    ]


def _intervals() -> list[Filter]:
    choices = {value: _(label) for value, label in INTERVALS.items()}
    return [Filter("interval", _("Interval"), choices.pop(DAY), choices)]


REPORTS: Mapping[str, Report] = {
    "": Report(
        "Sales",
        "get_sales_report",
        _sales_columns,
        _intervals,
        ",".join(SALES),
    ),
    "coupons": Report("Coupons", "list_coupon_reports", _coupon_columns, campaign_filters),
    "customers": Report("Customers", "list_customer_reports", _customer_columns),
    "refusals": Report("Refused codes", "list_refusal_reports", lambda: refusal_columns({})),
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
    columns = report.columns()
    query = {each.name: each.value for each in filters}
    if name:
        query |= list_query(limit=str(PAGE_SIZE))
        query.pop("q")
        if query["orderby"] not in {each.sort for each in columns if each.sort}:
            query |= {"orderby": "", "order": ""}
    if request.args.get("format") == "csv":
        return download(report.operation, query | ({"limit": "-1", "page": ""} if name else {}))
    if report.figures:
        query["fields"] = report.figures
    reply = reports.unless_slow(lambda: call(report.operation, query=query))
    return render(
        "report.html",
        title=_("Reports"),
        table=_table(report, columns, filters, reply),
        tiles=_tiles(reply.content["totals"]) if reply and not name else [],
        definitions=_(reports.DEFINITIONS) if not name else "",
        problem="" if reply else _(reports.SLOW),
    )


def _table(
    report: Report, columns: Sequence[Column], filters: Sequence[Filter], reply: Reply | None
) -> Table:
    caption = _(report.label)
    table = Table(caption, columns, ())
    if reply and report.figures:
        rows = reply.content["intervals"]
        table = Table(caption, columns, rows, len(rows), own_requests=[("", reply.request)])
    elif reply:
        table = Table.of_reply(caption, columns, reply)
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
    table = Table.of_reply(_("Refused codes"), refusal_columns(similar), reply)
    return render(
        "list.html",
        plots=reports.refusal_plots(days) if rows else [],
        title=_("Refused codes"),
        table=table,
        days=days,
        periods=reports.PERIODS,
        intro=_(
            "Codes that customers tried and that were not applied, most often first. They show "
            "misspelt, expired and used up codes."
        ),
        empty=("No refused codes", "No code was refused in this period."),
    )


def refusal_columns(similar: dict[str, tuple[str, int]]) -> list[Column]:
    """Return the columns of refused codes. ``similar``: existing codes and their coupons."""

    def code(row: Record) -> Markup | str:
        return COUPONS.link_to(row["coupon_id"], row["code"] or _("Other codes"))

    def repair(row: Record) -> Markup | str:
        if row["reason"] == "expired" and row["coupon_id"] and can("create_coupon"):
            href = COUPONS.url("create", **{"from": row["coupon_id"]})
            return html.link(href, _("Duplicate with a new date"))
        if found := similar.get(row["code"]):
            return html.joined([_("Did they mean"), COUPONS.link_to(found[1], found[0])], " ")
        return html.NONE

    return [
        Column(_("Code"), code),
        Column(_("Reason"), reason, on_phone=True),
        Column(_("Repair"), repair, on_phone=True),
        Column.of(_("First"), "first_at", html.time),
        Column.of(_("Last"), "last_at", html.time),
        Column.of(_("Refused"), "count", on_phone=True),
    ]


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
