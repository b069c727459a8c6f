"""The overview: tiles, plots, coupons, orders and warnings (admin 2 and 5)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from flask import Response, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as BaseResponse

from app.admin import html, orders, reports, rights
from app.admin.calls import call
from app.admin.frame import AdminBlueprint, NavigationItem, render, see_other
from app.admin.plots import sparkline
from app.admin.reports import PERIODS
from app.admin.tables import Column, Table
from app.admin.texts import gettext as _
from app.api.authentication import current_principal
from app.cli.demo.command import load_demo_shop
from app.errors import ShopError
from app.services.maintenance import warnings

blp = AdminBlueprint("admin_overview", __name__)

NAVIGATION = NavigationItem("Overview", "admin_overview.show", "home", position=0)

FIGURES = {
    "total": "Revenue", "orders": "Orders", "average_order": "Average order",
    "new_customers": "New customers", "uses": "Coupon uses", "discount": "Discount",
}  # fmt: skip
"""The labels of the figures of the tiles, by their names in the report."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure with its change against the previous period.

    Args:
        label: the figure.
        value: its value.
        change: the change in words, with an arrow.
        line: its sparkline.
    """

    label: str
    value: str
    change: str
    line: Markup


def change(value: Decimal, before: Decimal) -> str:
    """Return a change in words: ``↑ 12% more``."""
    if value == before:
        return _("as before") if value else ""
    if not before:
        return _("new")
    percent = abs(value - before) * 100 / abs(before)
    shown = f"{percent:,.0f}" if percent >= 1 else f"{percent:.1f}"
    return (
        _("↑ %(percent)s%% more", percent=shown)
        if value > before
        else _("↓ %(percent)s%% less", percent=shown)
    )


def _tiles(sales: dict[str, Any]) -> list[Tile]:
    totals, previous = sales["totals"], sales["totals"]["previous"]
    return [
        Tile(
            _(label),
            html.money(totals[name]) if name in reports.MONEY else html.number(totals[name]),
            change(Decimal(str(totals[name])), Decimal(str(previous[name]))),
            sparkline([Decimal(str(each[name])) for each in sales["intervals"]]),
        )
        for name, label in FIGURES.items()
    ]


def _plotted() -> dict[str, str]:
    return {name: _(FIGURES[name]) for name in ("total", "orders", "uses")}


def _top_coupons(period: dict[str, str]) -> Table:
    query = {name: value for name, value in period.items() if name != "interval"}
    reply = call("list_coupon_reports", query=query | {"limit": 10})

    def code(row: dict[str, Any]) -> Markup | str:
        coupon = row["coupon"]
        if coupon["id"] is None or coupon["status"] != "published" or not rights.can("get_coupon"):
            return str(coupon["code"])
        return html.link(url_for("admin_coupons.show", coupon_id=coupon["id"]), coupon["code"])

    columns = [
        Column(_("Coupon"), code),
        Column(_("Uses"), lambda row: html.number(row["uses"]), is_number=True, on_phone=True),
        Column(
            _("Discount"), lambda row: html.money(row["discount"]), is_number=True, on_phone=True
        ),
        Column(_("Revenue"), lambda row: html.money(row["revenue"]), is_number=True),
    ]
    return Table.of_reply(_("Coupons by discount"), columns, reply, "coupon_reports")


def _latest_orders() -> Table:
    reply = call("list_orders", query={"limit": 10, "fields": orders.FIELDS})
    columns = [column for column in orders.columns() if column.label != _("Ordered")]
    return Table.of_reply(_("Latest orders"), columns, reply, "orders")


@blp.page("/")
def show() -> Response:
    """Show the overview of the chosen period, or the first steps of an empty shop."""
    days = request.args.get("days", reports.DEFAULT)
    days = days if days in PERIODS else reports.DEFAULT
    period = reports.period_query(days)
    may_view = rights.can("get_sales_report")
    sales = (
        reports.unless_slow(lambda: call("get_sales_report", query=period)) if may_view else None
    )
    steps = _steps()
    if steps and not (
        sales and any(sales.body["sales"]["totals"][name] for name in ("orders", "uses"))
    ):
        return render(
            "first_steps.html", title=_("Welcome"), steps=steps, loads_demo=_can_load_demo()
        )
    return render(
        "overview.html",
        title=_("Overview"),
        periods=PERIODS,
        days=days,
        tiles=_tiles(sales.body["sales"]) if sales else None,
        plots=reports.plots(sales.body["sales"]["intervals"], _plotted()) if sales else [],
        currencies=sales.body["sales"]["currencies"] if sales else [],
        compared=_("Compared with the %(days)s days before", days=days),
        is_slow=may_view and sales is None,
        coupons=reports.unless_slow(lambda: _top_coupons(period))
        if rights.can("list_coupon_reports")
        else None,
        orders=_latest_orders() if rights.can("list_orders") else None,
        warnings=_warnings(),
        sent=sales.request if sales else None,
    )


def _steps() -> list[tuple[str, str, str, str]]:
    """Return the first steps, if the shop has neither coupons nor orders: text and link."""
    may_read = [name for name in ("list_coupons", "list_orders") if rights.can(name)]
    if not may_read or any(call(name, query={"fields": "id"}).total for name in may_read):
        return []
    steps = []
    if rights.can("create_coupon"):
        text = _("A code that lowers the price of an order.")
        steps.append(
            (_("Create a coupon"), text, url_for("admin_coupons.create"), _("Create coupon"))
        )
        text = _("Enter a cart and see what the customer would pay, and why.")
        steps.append((_("Try it on a cart"), text, "", ""))
    text = _("Your shop sends its orders to the API, or you import them.")
    steps.append(
        (_("Connect your shop"), text, url_for("swagger_ui.show"), _("Open the API documentation"))
    )
    return steps


def _warnings() -> list[tuple[str, str]]:
    """Return what needs attention: text and the address of its page."""
    addresses = {"webhooks": "admin_webhooks.show_list", "imports": "admin_data.show"}
    found = []
    for subject, text in warnings.current_warnings(current_principal()):
        endpoint = addresses.get(subject, "")
        found.append((text, url_for(endpoint) if endpoint else ""))
    return found


DEMO = {"customers": 200, "coupons": 60, "orders": 600}
"""The demo shop of the button, which loads within seconds."""


def _can_load_demo() -> bool:
    """Return whether the session has all rights that the demo shop needs."""
    needed = ("create_coupon", "create_order", "create_customer")
    return current_principal().resources is None and rights.can(*needed)


def _has_records() -> bool:
    return any(call(name, query={"fields": "id"}).total for name in ("list_coupons", "list_orders"))


@blp.action("/demo", "create_coupon", "create_order", "create_customer")
def load_demo() -> BaseResponse:
    """Load the demo shop into an empty shop."""
    if not _can_load_demo():
        raise ShopError("shop_api_user_cannot_create_coupon")
    if _has_records():
        return see_other("admin_overview.show")
    load_demo_shop(DEMO, seed=1, owner_id=current_principal().user_id)
    return see_other("admin_overview.show", done="created")
