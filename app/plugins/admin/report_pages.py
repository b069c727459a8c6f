"""Reports of a period: sales, coupons, customers and refused codes (reports 1, admin 2)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from flask import Response, request

from app.conversions.intervals import DAY
from app.plugins.admin import html, refusals, reports
from app.plugins.admin.calls import Record, Reply, call, can, download
from app.plugins.admin.frame import AdminBlueprint, render
from app.plugins.admin.nouns.coupons import campaign_filters, coupon_cell
from app.plugins.admin.nouns.customers import CUSTOMERS
from app.plugins.admin.tables import Column, Filter, Tab, Table, list_query
from app.plugins.admin.texts import gettext as _

blp = AdminBlueprint("admin_reports", "Reports", "chart", 115)

PAGE_SIZE = 25

COMPARED = {
    "total": "Revenue",
    "refunded": "Refunds",
    "net": "Net revenue",
    "orders": "Orders",
    "average_order": "Average order",
    "customers": "Customers",
}
"""The labels of the figures that the period before has, too, by their names in the report."""

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
    return [
        Column(_("Period"), lambda row: reports.label_of(row["label"])),
        Column.of(_("Orders"), "orders", on_phone=True),
        Column.of(_("Customers"), "customers"),
        Column.of(_("Revenue"), "total", html.money, on_phone=True),
        Column.of(_("Refunds"), "refunded", html.money),
        Column.of(_("Net revenue"), "net", html.money),
        Column.of(_("Discount"), "discount", html.money),
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
        "orders,customers,total,refunded,net,discount,average_order",
    ),
    "coupons": Report("Coupons", "list_coupon_reports", _coupon_columns, campaign_filters),
    "customers": Report("Customers", "list_customer_reports", _customer_columns),
    "refusals": Report("Refused codes", "list_refusal_reports", lambda: refusals.columns({})),
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
            _(label),
            reports.figure(name, totals[name]),
            (
                _("before: %(value)s", value=reports.figure(name, totals["previous"][name])),
                reports.change_of(totals, name),
            ),
        )
        for name, label in COMPARED.items()
    ]
