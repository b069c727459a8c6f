"""Uses of a coupon: *Redeem now*, confirming, releasing, CSV and *Correct the count* (admin 5)."""

from __future__ import annotations

import re
from typing import Any

from flask import Response, request
from werkzeug.wrappers import Response as BaseResponse

from app.admin import html
from app.admin.calls import api_request, call, form_headers
from app.admin.forms import Form
from app.admin.frame import render
from app.admin.nouns import FORM, form_page
from app.admin.nouns.coupons import COUPONS, blp
from app.admin.tables import csv_file
from app.admin.texts import gettext as _
from app.api.representations import REDEMPTION
from app.errors import ShopError
from app.schemas.base import Base, OptionalFields
from app.schemas.fields import input as inputs
from app.schemas.fields.form import FormField, set_form

CSV_LIMIT = 10_000
"""Rows of a CSV file of redemptions."""

USE = "/coupons/<int:coupon_id>/redemptions/<int:redemption_id>"


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
    return csv_file(f"redemptions-of-coupon-{coupon_id}", REDEMPTION.names, rows)


@blp.action(f"{USE}/release", "release_redemption")
def release(coupon_id: int, redemption_id: int) -> BaseResponse:
    """Release a use."""
    call("release_redemption", redemption_id=redemption_id)
    return COUPONS.see(coupon_id, "released")


@blp.action(f"{USE}/confirm", "confirm_redemption")
def confirm(coupon_id: int, redemption_id: int) -> BaseResponse:
    """Confirm a reserved use."""
    call("confirm_redemption", redemption_id=redemption_id)
    return COUPONS.see(coupon_id, "redeemed")


class CounterUse(Base):
    """A use at the counter or by telephone."""

    email = inputs.Email("E-mail address of the customer.")
    customer_id = inputs.AccountId("ID of the customer account, if there is one.")
    amount = inputs.DecimalInput("Discount that was granted, for the reports.")


class CouponCount(OptionalFields):
    """The number of uses, which only *Correct the count* sets."""

    usage_count = inputs.Count("Number of confirmed uses.")


set_form(
    CounterUse,
    {
        "Customer": {
            "email": FormField("E-mail address"),
            "customer_id": FormField("Customer ID"),
            "amount": FormField("Discount", unit="currency"),
        }
    },
)
set_form(CouponCount, {"Number of uses": {"usage_count": FormField("Uses")}})


@blp.page(
    "/coupons/<int:coupon_id>/redeem", "get_coupon", "create_redemption", "confirm_redemption",
    methods=FORM,
)  # fmt: skip
def redeem(coupon_id: int) -> Response | BaseResponse:
    """Record a use now: reserve it with the ID of the form, and confirm it at once."""
    coupon, _etag = COUPONS.read(coupon_id)
    title = _("Redeem %(code)s now", code=coupon["code"])
    back = COUPONS.url("show", coupon_id), coupon["code"]
    form, sent = Form.of_new(CounterUse, "redemption", {}), None
    if request.method == "POST":
        form = Form.submitted(CounterUse, "redemption")
        values = form.read(everything=True)
        form_id = re.sub(r"[^0-9a-f]", "", request.form.get("_form", ""))[:32]
        body = {"code": coupon["code"], "reference": f"counter-{form_id}", **values}
        sent = api_request("create_redemption", body={"redemption": body})
        try:
            if not form.errors and "_show" not in request.form:
                reply = call("create_redemption", body=sent.body, headers=form_headers())
                return _confirm_now(coupon_id, reply.body["redemption"]["id"], title, back)
        except ShopError as error:
            form.note(error)
    return form_page(
        form, title, back, button=_("Redeem now"), sent=sent,
        intro=_("Records a use at the counter or by telephone at once. "
                "It counts towards the limits of the coupon."),
    )  # fmt: skip


def _confirm_now(
    coupon_id: int, redemption_id: int, title: str, back: tuple[str, str]
) -> Response | BaseResponse:
    """Confirm a use. If this fails, say which state it is in, and offer both ways."""
    try:
        call("confirm_redemption", redemption_id=redemption_id)
        return COUPONS.see(coupon_id, "redeemed")
    except ShopError as error:
        return render(
            "redeem.html", title=title, back=back, coupon_id=coupon_id,
            redemption_id=redemption_id, failure=error.message, has_errors=True, status=409,
        )  # fmt: skip


@blp.page("/coupons/<int:coupon_id>/count", "get_coupon", "update_coupon", methods=FORM)
def correct_count(coupon_id: int) -> Response | BaseResponse:
    """Show the number of uses, or correct it."""
    form, sent = Form(CouponCount, "coupon"), None
    if request.method == "POST":
        form = Form.submitted(CouponCount, "coupon")
        if "_show" in request.form:
            sent = api_request("update_coupon", body={"coupon": form.read()}, coupon_id=coupon_id)
        elif form.save("get_coupon", "update_coupon", coupon_id=coupon_id):
            changed = _("The number has changed in between. Check it again.")
            form.errors["usage_count"] = changed
        if not (form.errors or sent):
            return COUPONS.see(coupon_id, "saved" if form.texts != form.shown else "unchanged")
    coupon, etag = COUPONS.read(coupon_id)
    current = Form.of_record(CouponCount, "coupon", coupon, etag)
    current.texts, current.errors = form.texts or current.texts, form.errors
    title = _("Correct the count of %(code)s", code=coupon["code"])
    limit = html.number(coupon["usage_limit"]) if coupon["usage_limit"] else _("none")
    return form_page(
        current, title, (COUPONS.url("show", coupon_id), coupon["code"]),
        button=_("Correct the count"), sent=sent,
        intro=_("The service counts the uses exactly. Correct the number only if uses happened "
                "elsewhere, for example before the coupon was imported. The limit of uses applies "
                "to the new number."),
        facts=[(_("Uses now"), html.number(coupon["usage_count"])),
               (_("Reserved"), html.number(coupon["reserved"])), (_("Limit"), limit)],
    )  # fmt: skip
