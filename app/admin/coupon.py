"""One coupon: its page, uses, *Redeem now* and *Correct the count* (admin 2 and 5)."""

from __future__ import annotations

import re
from typing import Any

from flask import Response, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as BaseResponse

from app.admin import frame, history, html, reports, rights, saving
from app.admin.calls import api_request, call, form_headers, record_of
from app.admin.coupons import (
    STATES,
    amount_of,
    blp,
    reserved_of,
    state_of,
    uses_of,
    with_reserved,
)
from app.admin.files import csv_response
from app.admin.forms import Form
from app.admin.frame import render, see_other
from app.admin.plots import Plot
from app.admin.tables import Column, Table
from app.admin.texts import gettext as _
from app.auth.principals import Capability as Cap
from app.errors import ShopError
from app.schemas.base import Base, OptionalFields
from app.schemas.coupons.coupon import CouponUpdate
from app.schemas.fields import input as inputs
from app.schemas.fields.form import FormField, set_form

rights.add_capabilities({
    "list_redemptions": (
        "shop_api_user_cannot_read_redemptions_count", (Cap.READ_PRIVATE_SHOP_ORDERS,)
    ),
    "create_redemption": ("shop_api_user_cannot_create_redemption", (Cap.PUBLISH_SHOP_ORDERS,)),
    "confirm_redemption": ("shop_api_user_cannot_edit_redemption", (Cap.EDIT_SHOP_ORDERS,)),
    "release_redemption": ("shop_api_user_cannot_edit_redemption", (Cap.EDIT_SHOP_ORDERS,)),
})  # fmt: skip

STATUSES = {
    "reserved": ("Reserved", "warning"),
    "confirmed": ("Used", "ok"),
    "released": ("Released", ""),
}

CSV_LIMIT = 10_000
"""Rows of a CSV file of redemptions."""


def coupon_of(coupon_id: int) -> tuple[dict[str, Any], str]:
    """Return a coupon with its ``reserved`` uses, and its entity tag."""
    coupon, etag = record_of("get_coupon", "coupon", coupon_id=coupon_id)
    return with_reserved([coupon])[0], etag


@blp.page("/coupons/<int:coupon_id>", "get_coupon")
def show(coupon_id: int) -> Response:
    """Show a coupon."""
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
        redemptions=table_of(coupon) if rights.can("list_redemptions") else None,
        plots=report_of(coupon),
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
    """Return a coupon as text to send: ``Use SUMMER15 until Nov 29 for 15% off``."""
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


def table_of(coupon: dict[str, Any]) -> Table:
    """Return the table of the latest redemptions of a coupon."""
    reply = call("list_redemptions", query={"coupon_id": coupon["id"], "limit": 10})
    return Table.of_reply(_("Uses"), _columns(coupon), reply, "redemptions")


def _columns(coupon: dict[str, Any]) -> list[Column]:
    def who(row: dict[str, Any]) -> Markup | str:
        return row["email"] or (f"#{row['customer_id']}" if row["customer_id"] else _("Guest"))

    def source(row: dict[str, Any]) -> Markup | str:
        if row["order_id"] and rights.can("get_order"):
            href = url_for("admin_orders.show", order_id=row["order_id"])
            return html.link(href, _("Order %(id)s", id=row["order_id"]))
        return _("Order %(id)s", id=row["order_id"]) if row["order_id"] else str(row["reference"])

    def customer(row: dict[str, Any]) -> Markup:
        return Markup('{}<br><small class="muted">{}</small>').format(who(row), source(row))

    def actions(row: dict[str, Any]) -> Markup | str:
        if row["order_id"] or row["status"] == "released" or not rights.can("release_redemption"):
            return ""
        path = {"coupon_id": coupon["id"], "redemption_id": row["id"]}
        parts = [html.action(url_for("admin_coupons.release", **path), _("Release"), name=who(row))]
        if row["status"] == "reserved":
            href = url_for("admin_coupons.confirm", **path)
            parts.insert(0, html.action(href, _("Confirm"), name=who(row)))
        return html.joined(parts, " ")

    return [
        Column(_("Customer"), customer),
        Column(_("Status"), lambda row: html.state_badge(STATUSES, row["status"]), on_phone=True),
        Column(_("Discount"), lambda row: html.money(row["amount"]), is_number=True),
        Column(_("Time"), lambda row: html.time(row["updated_at"]), on_phone=True),
        Column("", actions, on_phone=True),
    ]


def report_of(coupon: dict[str, Any]) -> list[Plot]:
    """Return the plots of uses and revenue, for a session that may read reports."""
    if not rights.can("get_coupon_report"):
        return []
    return reports.unless_slow(lambda: reports.coupon_plots(coupon["id"])) or []


@blp.page("/coupons/<int:coupon_id>/redemptions.csv", "list_redemptions")
def download(coupon_id: int) -> Response:
    """Download the redemptions of a coupon as CSV."""
    query = {"coupon_id": coupon_id, "limit": 100}
    rows: list[dict[str, Any]] = []
    page, pages = 1, 1
    while page <= pages and len(rows) < CSV_LIMIT:
        reply = call("list_redemptions", query=query | {"page": page})
        rows += reply.body["redemptions"]
        page, pages = page + 1, reply.pages
    return csv_response(f"redemptions-of-coupon-{coupon_id}.csv", rows)


@blp.action(
    "/coupons/<int:coupon_id>/redemptions/<int:redemption_id>/release", "release_redemption"
)
def release(coupon_id: int, redemption_id: int) -> BaseResponse:
    """Release a use."""
    call("release_redemption", redemption_id=redemption_id)
    return see_other("admin_coupons.show", coupon_id=coupon_id, done="released")


@blp.action(
    "/coupons/<int:coupon_id>/redemptions/<int:redemption_id>/confirm", "confirm_redemption"
)
def confirm(coupon_id: int, redemption_id: int) -> BaseResponse:
    """Confirm a reserved use."""
    call("confirm_redemption", redemption_id=redemption_id)
    return see_other("admin_coupons.show", coupon_id=coupon_id, done="redeemed")


class CounterUse(Base):
    """A use at the counter or by telephone."""

    email = inputs.Email("E-mail address of the customer.")
    customer_id = inputs.AccountId("ID of the customer account, if there is one.")
    amount = inputs.DecimalInput("Discount that was granted, for the reports.")


set_form(
    CounterUse,
    {
        "Use": {
            "email": FormField("E-mail address"),
            "customer_id": FormField("Customer ID"),
            "amount": FormField("Discount", unit="currency"),
        }
    },
)


@blp.page(
    "/coupons/<int:coupon_id>/redeem", "get_coupon", "create_redemption", "confirm_redemption",
    methods=("GET", "POST"),
)  # fmt: skip
def redeem(coupon_id: int) -> Response | BaseResponse:
    """Record a use now: reserve it with the ID of the form, and confirm it at once."""
    coupon, _etag = coupon_of(coupon_id)
    form = Form.of_record(CounterUse, "redemption", {})
    reserved: dict[str, Any] | None = None
    failure = ""
    if request.method == "POST":
        form = Form.submitted(CounterUse, "redemption")
        form.shown = dict.fromkeys(form.shown, "")
        values = form.read(everything=True)
        form_id = re.sub(r"[^0-9a-f]", "", request.form.get("_form", ""))[:32]
        body = {"code": coupon["code"], "reference": f"counter-{form_id}", **values}
        if not form.errors:
            try:
                reply = call("create_redemption", body={"redemption": body}, headers=form_headers())
                reserved = reply.body["redemption"]
            except ShopError as error:
                form.note(error)
        if reserved:
            try:
                call("confirm_redemption", redemption_id=reserved["id"])
                return see_other("admin_coupons.show", coupon_id=coupon_id, done="redeemed")
            except ShopError as error:
                failure = error.message
    return render(
        "redeem.html", title=_("Redeem %(code)s now", code=coupon["code"]), coupon=coupon,
        form=form, reserved=reserved, failure=failure, has_errors=bool(form.errors),
        status=409 if failure else 400 if form.errors else 200,
    )  # fmt: skip


class CouponCount(OptionalFields):
    """The number of uses, which only *Correct the count* sets."""

    usage_count = inputs.Count("Number of confirmed uses.")


set_form(CouponCount, {"Use": {"usage_count": FormField("Uses")}})


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
