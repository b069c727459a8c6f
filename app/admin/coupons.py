"""Coupons: the table, forms, and actions on one coupon (admin 2)."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from flask import Response, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as BaseResponse

from app.admin import frame, history, html, rights, saving
from app.admin.calls import api_request, call, form_headers, record_of
from app.admin.forms import COUPON_TYPES, Form
from app.admin.frame import AdminBlueprint, NavigationItem, render, see_other
from app.admin.tables import Column, Filter, Tab, Table, list_query
from app.admin.texts import gettext as _
from app.api.authentication import current_principal
from app.catalog import current_catalog
from app.errors import ShopError
from app.schemas.base import OptionalFields
from app.schemas.coupons.coupon import CouponCreate, CouponUpdate
from app.schemas.fields import input as inputs
from app.schemas.fields.form import FormField
from app.services.coupons.queries import counts_by_state, reservations_of

blp = AdminBlueprint("admin_coupons", __name__)

NAVIGATION = NavigationItem(
    "Coupons", "admin_coupons.show_list", "ticket", ("list_coupons",), 100,
    also=("admin_coupons", "admin_coupon_uses"),
)  # fmt: skip

STATES = {
    "active": ("Active", "ok"),
    "expired": ("Expired", ""),
    "used_up": ("Used up", "warning"),
    "trash": ("Trash", ""),
}
"""Word and tone of each state."""

UNDO_SECONDS = 60


class CouponCount(OptionalFields):
    """The number of uses, which only *Correct the count* sets."""

    usage_count = inputs.Count("Number of confirmed uses.", form=FormField("Uses"))


def type_label(name: str) -> str:
    """Return the label of a coupon type."""
    return _(COUPON_TYPES.get(name, name))


def amount_of(coupon: dict[str, Any]) -> str:
    """Return the discount of a coupon: ``10 %`` or an amount of money."""
    if coupon["type"].startswith("percent"):
        return f"{coupon['amount'].rstrip('0').rstrip('.') or '0'} %"
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
    table.name = lambda row: row["code"]
    is_whole = not any((request.args.get("q"), *filters.values())) and not trashed
    table.tabs = _tabs(reply.total if is_whole else None)
    table.searches = _("Search code or description")
    types = {name: type_label(name) for name in current_catalog().coupon_types}
    table.filters = [Filter("type", _("Discount type"), {"": _("All types"), **types})]
    table.selects = rights.can("delete_coupon") or rights.can("update_coupon")
    return render("coupons.html", title=_("Coupons"), table=table, trashed=trashed, undo=_undo())


def _undo() -> int | None:
    """Return the ID of the coupon that was moved to the trash within the last minute."""
    try:
        at, coupon_id = float(request.args.get("at", "")), int(request.args.get("undo", ""))
    except ValueError:
        return None
    return coupon_id if 0 <= time.time() - at <= UNDO_SECONDS else None


def coupon_of(coupon_id: int) -> tuple[dict[str, Any], str]:
    """Return a coupon with its ``reserved`` uses, and its entity tag."""
    coupon, etag = record_of("get_coupon", "coupon", coupon_id=coupon_id)
    return with_reserved([coupon])[0], etag


@blp.page("/coupons/<int:coupon_id>", "get_coupon")
def show(coupon_id: int) -> Response:
    """Show a coupon."""
    from app.admin import coupon_uses  # noqa: PLC0415  # it imports this module

    coupon, _etag = coupon_of(coupon_id)
    return render(
        "coupon.html",
        title=coupon["code"],
        coupon=coupon | {"last_day": html.last_day(coupon["expiry_date"])},
        state=html.state_badge(STATES, state_of(coupon)),
        facts=_facts(coupon),
        uses=uses_of(coupon),
        reserved=reserved_of(coupon),
        amount=amount_of(coupon),
        sentence=sentence(coupon),
        redemptions=coupon_uses.table_of(coupon) if rights.can("list_redemptions") else None,
        plots=coupon_uses.report_of(coupon),
        history=history.history("coupon", coupon_id) if rights.can("list_events") else None,
        panels=frame.panels("coupon", coupon),
        sent=api_request("get_coupon", coupon_id=coupon_id),
    )


def _facts(coupon: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the fields of a coupon that differ from those of a plain one, by their labels."""
    form = Form.of_record(CouponUpdate, "coupon", coupon)
    found: list[tuple[str, Any]] = []
    for spec in form.specs:
        text = form.texts[spec.name]
        if spec.name in {"code", "amount"} or not text or text in {"0", "0.00"}:
            continue
        if spec.kind == "checkbox":
            found.append((_(spec.label), _("Yes")))
        elif spec.kind == "select":
            found.append((_(spec.label), spec.options.get(text, text)))
        elif spec.kind == "date":
            found.append((_("Works until"), html.works_until(coupon[spec.name])))
        elif spec.kind == "number":
            found.append((_(spec.label), html.number(text)))
        elif spec.unit == "currency":
            found.append((_(spec.label), html.money(text)))
        else:
            found.append((_(spec.label), html.joined(text.split("\n"))))
    created = html.time(coupon["created_at"], utc=True)
    return [
        *found,
        (_("Created"), created),
        (_("Changed"), html.time(coupon["updated_at"], utc=True)),
    ]


def sentence(coupon: dict[str, Any]) -> str:
    """Return a coupon as text to send: ``Use SUMMER15 until Nov 29 for 15 % off``."""
    code, amount, day = (
        coupon["code"].upper(),
        amount_of(coupon),
        html.last_day(coupon["expiry_date"]),
    )
    if day:
        until = html.short_date(day)
        return _(
            "Use %(code)s until %(until)s for %(amount)s off", code=code, until=until, amount=amount
        )
    return _("Use %(code)s for %(amount)s off", code=code, amount=amount)


@blp.page("/coupons/new", "create_coupon", methods=("GET", "POST"))
def create() -> Response | BaseResponse:
    """Show the form of a new coupon, or create it."""
    if request.method == "GET":
        return _form_page(_new_form(), new=True)
    form = Form.submitted(CouponCreate, "coupon")
    values = form.read(everything=True)
    sent = api_request("create_coupon", body={"coupon": values})
    if form.errors or "_show" in request.form:
        return _form_page(form, new=True, sent=sent)
    try:
        reply = call("create_coupon", body=sent.body, headers=form_headers())
    except ShopError as error:
        form.note(error)
        return _form_page(form, new=True, sent=sent)
    return see_other("admin_coupons.show", coupon_id=reply.body["coupon"]["id"], done="created")


def _new_form() -> Form:
    """Return the form of a new coupon, with the values of that in ``from`` if there is one."""
    given: dict[str, Any] = {"type": "percent", "usage_limit": None}
    if (source := request.args.get("from", "")).isdigit() and rights.can("get_coupon"):
        given = record_of("get_coupon", "coupon", coupon_id=int(source))[0]
        given = given | {"code": f"{given['code']}-copy", "expiry_date": None}
    elif code := request.args.get("code"):
        given["code"] = code
    form = Form.of_record(CouponCreate, "coupon", given)
    form.shown = dict.fromkeys(form.shown, "")  # everything is new
    return form


@blp.page("/coupons/<int:coupon_id>/edit", "get_coupon", "update_coupon", methods=("GET", "POST"))
def edit(coupon_id: int) -> Response | BaseResponse:
    """Show the form of a coupon, or save what was changed."""
    if request.method == "GET":
        coupon, etag = record_of("get_coupon", "coupon", coupon_id=coupon_id)
        return _form_page(Form.of_record(CouponUpdate, "coupon", coupon, etag), coupon_id=coupon_id)
    form = Form.submitted(CouponUpdate, "coupon")
    if "_show" in request.form:
        changes = form.read()
        sent = api_request("update_coupon", body={"coupon": changes}, coupon_id=coupon_id)
        return _form_page(form, coupon_id=coupon_id, sent=sent)
    conflict = saving.save(form, "get_coupon", "update_coupon", coupon_id=coupon_id)
    if conflict:
        back = url_for("admin_coupons.show", coupon_id=coupon_id)
        return render(
            "conflict.html", title=_("Someone else changed this coupon"), form=form,
            differences=conflict, merged=saving.merged(form, conflict), back=back, status=409,
        )  # fmt: skip
    if form.errors:
        return _form_page(form, coupon_id=coupon_id)
    done = "saved" if form.texts != form.shown else "unchanged"
    return see_other("admin_coupons.show", coupon_id=coupon_id, done=done)


def _form_page(
    form: Form, *, new: bool = False, coupon_id: int | None = None, sent: Any = None
) -> Response:
    code = form.shown.get("code", "")
    return render(
        "coupon_form.html",
        title=_("Create coupon") if new else _("Edit %(code)s", code=code),
        form=form,
        coupon_id=coupon_id,
        new=new,
        sent=sent if request.form.get("_show") == "request" and not form.errors else None,
        until=html.works_until(
            form.texts.get("expiry_date") if "expiry_date" not in form.errors else None
        ),
        zone=html.zone().key,
        place=html.zone_name(),
        has_errors=bool(form.errors),
        status=400 if form.errors else 200,
    )


@blp.action("/coupons/<int:coupon_id>/trash", "delete_coupon")
def trash(coupon_id: int) -> BaseResponse:
    """Move a coupon to the trash."""
    call("delete_coupon", coupon_id=coupon_id)
    return see_other("admin_coupons.show_list", done="trashed", undo=coupon_id, at=int(time.time()))


@blp.action("/coupons/<int:coupon_id>/restore", "restore_coupon")
def restore(coupon_id: int) -> BaseResponse:
    """Restore a coupon from the trash."""
    call("restore_coupon", coupon_id=coupon_id)
    return see_other("admin_coupons.show", coupon_id=coupon_id, done="restored")


@blp.action("/coupons/<int:coupon_id>/delete", "delete_coupon")
def delete(coupon_id: int) -> BaseResponse:
    """Delete a coupon permanently."""
    call("delete_coupon", query={"force": "true"}, coupon_id=coupon_id)
    return see_other("admin_coupons.show_list", done="deleted")


@blp.page("/coupons/<int:coupon_id>/count", "get_coupon", "update_coupon", methods=("GET", "POST"))
def correct_count(coupon_id: int) -> Response | BaseResponse:
    """Show the number of uses, or correct it."""
    only = ("usage_count",)
    if request.method == "POST":
        form = Form.submitted(CouponCount, "coupon", only)
        if not form.read() and not form.errors:
            return see_other("admin_coupons.show", coupon_id=coupon_id, done="unchanged")
        if not (
            saving.save(form, "get_coupon", "update_coupon", coupon_id=coupon_id) or form.errors
        ):
            return see_other("admin_coupons.show", coupon_id=coupon_id, done="saved")
    coupon, etag = coupon_of(coupon_id)
    current = Form.of_record(CouponCount, "coupon", coupon, etag, only)
    if request.method == "POST":
        current.texts, current.errors = (
            form.texts,
            form.errors or {"usage_count": _("The number has changed in between. Check it again.")},
        )
    return render(
        "coupon_count.html", title=_("Correct the count of %(code)s", code=coupon["code"]),
        form=current, coupon=coupon, status=400 if current.errors else 200,
        has_errors=bool(current.errors),
    )  # fmt: skip
