"""Coupons: the table, the forms, trash and restore (admin 2)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from flask import Response, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as BaseResponse

from app.admin import html, rights
from app.admin.calls import call, record_of
from app.admin.forms import COUPON_TYPES
from app.admin.frame import AdminBlueprint, NavigationItem, render
from app.admin.record_actions import add_actions
from app.admin.record_forms import RecordForms
from app.admin.tables import Column, Filter, Tab, Table, list_query
from app.admin.texts import gettext as _
from app.api.authentication import current_principal
from app.catalog import current_catalog
from app.conversions.numbers import whole_number
from app.schemas.coupons.coupon import CouponCreate, CouponUpdate
from app.services.coupons.queries import counts_by_state, reservations_of

blp = AdminBlueprint("admin_coupons", __name__)

NAVIGATION = NavigationItem(
    "Coupons", "admin_coupons.show_list", "ticket", ("list_coupons",), 100,
    also=("admin_coupon_selection",),
)  # fmt: skip

STATES = {
    "active": ("Active", "ok"),
    "expired": ("Expired", ""),
    "used_up": ("Used up", "warning"),
    "trash": ("Trash", ""),
}
"""Word and tone of each state."""


def type_label(name: str) -> str:
    """Return the label of a coupon type."""
    return _(COUPON_TYPES.get(name, name))


def amount_of(coupon: dict[str, Any]) -> str:
    """Return the discount of a coupon: ``10%`` or an amount of money."""
    if coupon["type"].startswith("percent"):
        return f"{coupon['amount'].rstrip('0').rstrip('.') or '0'}%"
    return html.money(coupon["amount"])


def state_of(coupon: dict[str, Any]) -> str:
    """Return the state of a coupon with ``reserved`` uses (``filter[state]`` of the API)."""
    expiry, limit = coupon["expiry_date"], coupon["usage_limit"]
    if coupon.get("trashed_at"):
        return "trash"
    if expiry and html.parse_time(expiry) <= datetime.now(UTC):
        return "expired"
    return "used_up" if limit and coupon["usage_count"] + coupon["reserved"] >= limit else "active"


def with_reserved(coupons: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return coupons with the number of their ``reserved`` uses, which one statement reads."""
    reserved = reservations_of([coupon["id"] for coupon in coupons])
    return [coupon | {"reserved": reserved.get(coupon["id"], 0)} for coupon in coupons]


def uses_of(coupon: dict[str, Any]) -> str:
    """Return the uses of a coupon: ``50 of 50``."""
    taken, limit = html.number(coupon["usage_count"] + coupon["reserved"]), coupon["usage_limit"]
    return _("%(uses)s of %(limit)s", uses=taken, limit=html.number(limit)) if limit else taken


def reserved_of(coupon: dict[str, Any]) -> str:
    """Return how many uses of a coupon are reserved, or an empty string."""
    count = coupon["reserved"]
    return _("%(count)s of them reserved", count=html.number(count)) if count else ""


def _uses(coupon: dict[str, Any]) -> str:
    return ", ".join(filter(None, (uses_of(coupon), reserved_of(coupon))))


def _last_day(coupon: dict[str, Any]) -> str:
    day = html.last_day(coupon["expiry_date"])
    return html.short_date(day) if day else html.NONE


def _columns(*, trashed: bool) -> list[Column]:
    def code(row: dict[str, Any]) -> Markup | str:
        if trashed:
            return str(row["code"])
        return html.link(url_for("admin_coupons.show", coupon_id=row["id"]), row["code"])

    def state(row: dict[str, Any]) -> Markup:
        return html.state_badge(STATES, state_of(row))

    columns = [
        Column(_("Code"), code, sort="code"),
        Column(_("Discount"), lambda row: type_label(row["type"])),
        Column(_("Amount"), amount_of, sort="amount", is_number=True),
        Column(_("State"), state, on_phone=True),
        Column(_("Uses"), _uses, sort="uses", is_number=True, on_phone=True),
        Column(_("Works until"), _last_day, sort="expiry_date", is_number=True),
    ]
    if trashed:
        columns[3] = Column(
            _("In the trash since"), lambda row: html.time(row["trashed_at"]), on_phone=True
        )
        columns[5:] = [Column("", _trash_actions, on_phone=True)]
    return columns


def _trash_actions(row: dict[str, Any]) -> Markup | str:
    if not rights.can("restore_coupon"):
        return ""
    href = url_for("admin_coupons.restore", coupon_id=row["id"])
    return html.action(href, _("Restore"), name=row["code"])


def _tabs(total: int | None) -> list[Tab]:
    """Return the tabs with their numbers.

    Args:
        total: the number of all coupons, if the table shows them.
    """
    if total is None:
        total = int(call("count_coupons").body["count"])
    counts = counts_by_state(current_principal(), {})
    return [
        Tab("", _("All"), total),
        # The difference, because counting most of a million coupons takes a tenth of a second.
        Tab("active", _("Active"), total - counts["expired"] - counts["used_up"]),
        Tab("expired", _("Expired"), counts["expired"]),
        Tab("used_up", _("Used up"), counts["used_up"]),
        Tab("trash", _("Trash"), counts["trash"]),
    ]


def filters_of_list() -> dict[str, Any]:
    """Return the parameters of the API for the address of the table."""
    state = request.args.get("state", "")
    return {
        "type": request.args.get("type", ""),
        "state": "" if state == "trash" else state,
        "batch": request.args.get("batch", ""),
    }


@blp.page("/coupons", "list_coupons")
def show_list() -> Response:
    """Show the table of coupons, or of the trash."""
    trashed = request.args.get("state") == "trash"
    name = "list_trashed_coupons" if trashed else "list_coupons"
    filters = filters_of_list()
    reply = call(name, query=list_query(**filters))
    table = Table.of_reply(_("Coupons"), _columns(trashed=trashed), reply, "coupons")
    table.rows = with_reserved(list(table.rows))
    table.sorts = True
    table.name = lambda row: row["code"]
    is_whole = not any((request.args.get("q"), *filters.values())) and not trashed
    table.tabs = _tabs(reply.total if is_whole else None)
    table.searches = _("Search code or description")
    types = {name: type_label(name) for name in current_catalog().coupon_types}
    table.filters = [Filter("type", _("Discount type"), {"": _("All types"), **types})]
    table.selects = rights.can("delete_coupon") or rights.can("update_coupon")
    return render("coupons.html", title=_("Coupons"), table=table, trashed=trashed)


FORMS = RecordForms(
    "coupon", blp.name, CouponCreate, CouponUpdate, "Create coupon", "Coupons", "code"
)


@blp.page("/coupons/new", "create_coupon", methods=("GET", "POST"))
def create() -> Response | BaseResponse:
    """Show the form of a new coupon, or create it. With ``from``, it is a copy of another one."""
    given: dict[str, Any] = {"type": "percent", "code": request.args.get("code", "")}
    source = whole_number(request.args.get("from", ""))
    if source is not None and rights.can("get_coupon"):
        given = record_of("get_coupon", "coupon", coupon_id=source)[0]
        given = given | {"code": f"{given['code']}-copy", "expiry_date": None}
    return FORMS.create(given)


FORMS.add_edit(blp)
add_actions(blp, "coupon", has_trash=True)
