"""Reports of a period, and the refused codes with their repair (reports 1, admin 2 and 5)."""

import string
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from flask import Response, request

from app.plugins.admin import reports
from app.plugins.admin.calls import Record, call, can, download
from app.plugins.admin.frame import AdminBlueprint, render
from app.plugins.admin.tables import Table, list_query, page_number
from app.plugins.admin.texts import gettext as _
from app.services.coupons.queries import ids_of_codes

blp = AdminBlueprint("admin_reports", "Reports", "chart", 115)
refusals = AdminBlueprint("admin_refusals", "Refused codes", "ban", 120, page="show_refusals")

PAGE_SIZE = 25


class ReportTable(NamedTuple):
    """A report of the API as a table."""

    label: str
    operation: str
    filters: Sequence[str] = ()  # beside those of the period
    sorts: Sequence[str] = ()  # the values of ``orderby`` of its columns
    figures: str = ""  # those that are computed


_SALES = "orders,customers,total,refunded,net,discount,average_order"
_COUPON_SORTS = ("code", "uses", "orders", "discount", "revenue")

REPORTS: Mapping[str, ReportTable] = {
    "": ReportTable("Sales", "get_sales_report", ("interval",), figures=_SALES),
    "coupons": ReportTable("Coupons", "list_coupon_reports", ("campaign",), _COUPON_SORTS),
    "customers": ReportTable(
        "Customers", "list_customer_reports", (), ("orders", "total", "refunded")
    ),
    "refusals": ReportTable("Refused codes", "list_refusal_reports"),
}
"""The reports, by the parameter ``state`` of the address."""


@blp.page("/reports", "get_sales_report")
def show() -> Response:
    """Show a report of a period, or return its rows as CSV."""
    name = request.args.get("state", "")
    name = name if name in REPORTS and can(REPORTS[name].operation) else ""
    report = REPORTS[name]
    period = reports.period_query(reports.DEFAULT, with_interval=False)
    filters = "from", "to", *report.filters
    query: Record = {each: request.args.get(each) or period.get(each, "") for each in filters}
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
    table = Table(_(report.label), ())
    if reply and report.figures:
        rows, requests = reply.content["intervals"], [("", reply.request)]
        table = Table(_(report.label), rows, len(rows), own_requests=requests)
    elif reply:
        table = Table.of_reply(_(report.label), reply)
    table.filters, table.defaults, table.sorts = filters, period, True
    table.tabs = [
        (value, _(each.label), None) for value, each in REPORTS.items() if can(each.operation)
    ]
    return render(
        "report.html",
        title=_("Reports"),
        kind=name,
        period=period,
        table=table,
        totals=reply.content["totals"] if reply and not name else None,
        is_slow=reply is None,
    )


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
