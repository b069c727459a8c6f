"""The overview: tiles, plots, coupons, orders and warnings (admin 2 and 5)."""

from collections.abc import Sequence

from flask import Response
from werkzeug.wrappers import Response as BaseResponse

from app.api.authentication import current_principal
from app.errors import ShopError
from app.plugins.admin import reports
from app.plugins.admin.calls import Record, call, can
from app.plugins.admin.frame import AdminBlueprint, render, see_other
from app.plugins.admin.nouns.coupons import best_coupons
from app.plugins.admin.nouns.orders import ORDERS
from app.plugins.admin.texts import gettext as _
from app.services.maintenance.figures import current_warnings

blp = AdminBlueprint("admin_overview", "Overview", "home", 0)

FIGURES = "total,orders,average_order,new_customers,uses,discount,refunded"


@blp.page("/")
def show() -> Response:
    """Show the overview of the chosen period, or the first steps of an empty shop."""
    days, sales = reports.chosen_days(), None
    may_view = can("get_sales_report")
    if may_view:
        period = reports.period_query(days) | {"fields": FIGURES}
        sales = reports.unless_slow(lambda: call("get_sales_report", query=period))
    report = sales.content if sales else None
    is_used = report and any(report["totals"][name] for name in ("orders", "uses"))
    sales_of = [name for name in ("list_orders", "list_redemptions") if can(name)]
    may_know = sales_of or can("list_coupons")
    if not is_used and may_know and not _has_records(sales_of):
        coupon = _most_used_coupon()
        if not (coupon and coupon["usage_count"]):
            is_empty = _can_load_demo() and not _has_records()
            return render("first_steps.html", title=_("Welcome"), coupon=coupon, is_empty=is_empty)
    labels = {"total": _("Revenue"), "orders": _("Orders"), "uses": _("Coupon uses")}
    return render(
        "overview.html",
        title=_("Overview"),
        periods=reports.PERIODS,
        days=days,
        report=report,
        plots=reports.plots(report["intervals"], labels) if report else [],
        may_view=may_view,
        **(best_coupons(reports.period_query(days, with_interval=False)) if may_view else {}),
        orders=ORDERS.panel({}),
        warnings=current_warnings(current_principal()),
        sent=sales.request if sales else None,
    )


def _most_used_coupon() -> Record | None:
    if not can("list_coupons"):
        return None
    query = {"fields": "id,code,usage_count", "orderby": "uses"}
    found = call("list_coupons", query=query).content
    return found[0] if found else None


DEMO = {"customers": 200, "coupons": 60, "orders": 600}
"""The demo shop of the button, which loads within seconds."""


def _can_load_demo() -> bool:
    """Return whether the session has all rights that the demo shop needs."""
    needed = ("create_coupon", "create_order", "create_customer")
    return current_principal().resources is None and can(*needed)


def _has_records(operations: Sequence[str] = ("list_coupons", "list_orders")) -> bool:
    return any(call(name).total for name in operations)


@blp.action("/demo", "create_coupon", "create_order", "create_customer")
def load_demo() -> BaseResponse:
    """Load the demo shop into an empty shop."""
    # A slow import, needed once in a shop.
    from app.services.maintenance.demo.loading import (  # noqa: PLC0415  # see above
        DemoError,
        load_demo_shop,
    )

    if not _can_load_demo():
        raise ShopError("shop_api_user_cannot_create_coupon")
    if _has_records():
        return see_other("admin_overview.show")
    try:
        load_demo_shop(DEMO, seed=1, owner_id=current_principal().user_id)
    except DemoError:  # another request loads it, or has loaded it
        return see_other("admin_overview.show", done="loading")
    return see_other("admin_overview.show", done="created")
