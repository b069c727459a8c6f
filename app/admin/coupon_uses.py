"""Uses of a coupon: the list, *Try it*, *Redeem now*, release, and reports (admin 2 and 5)."""

from __future__ import annotations

import re
from typing import Any

from flask import Response, current_app, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as BaseResponse

from app.admin import html, reports, rights
from app.admin.calls import call, form_headers
from app.admin.coupons import coupon_of
from app.admin.files import csv_response
from app.admin.forms import Form
from app.admin.frame import AdminBlueprint, render, see_other
from app.admin.plots import Plot
from app.admin.tables import Column, Table
from app.admin.texts import gettext as _
from app.auth.principals import Capability as Cap
from app.errors import ShopError
from app.schemas.base import Base
from app.schemas.fields import input as inputs
from app.schemas.fields.form import FormField

blp = AdminBlueprint("admin_coupon_uses", __name__)

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


def table_of(coupon: dict[str, Any]) -> Table:
    """Return the table of the latest redemptions of a coupon."""
    reply = call("list_redemptions", query={"coupon_id": coupon["id"], "limit": 10})
    return Table.of_reply(_("Uses"), _columns(coupon), reply, "redemptions")


def _columns(coupon: dict[str, Any]) -> list[Column]:
    def who(row: dict[str, Any]) -> Markup | str:
        return row["email"] or (f"#{row['customer_id']}" if row["customer_id"] else _("Guest"))

    def source(row: dict[str, Any]) -> Markup | str:
        if row["order_id"] and "admin_orders.show" in _endpoints():
            href = url_for("admin_orders.show", order_id=row["order_id"])
            return html.link(href, _("Order %(id)s", id=row["order_id"]))
        return _("Order %(id)s", id=row["order_id"]) if row["order_id"] else str(row["reference"])

    def actions(row: dict[str, Any]) -> Markup | str:
        if row["order_id"] or row["status"] == "released" or not rights.can("release_redemption"):
            return ""
        path = {"coupon_id": coupon["id"], "redemption_id": row["id"]}
        parts = [
            html.action(url_for("admin_coupon_uses.release", **path), _("Release"), name=who(row))
        ]
        if row["status"] == "reserved":
            href = url_for("admin_coupon_uses.confirm", **path)
            parts.insert(0, html.action(href, _("Confirm"), name=who(row)))
        return html.joined(parts, " ")

    return [
        Column(_("Customer"), who),
        Column(_("Source"), source),
        Column(_("Status"), lambda row: html.state_badge(STATUSES, row["status"]), on_phone=True),
        Column(_("Discount"), lambda row: html.money(row["amount"]), is_number=True),
        Column(_("Time"), lambda row: html.time(row["updated_at"]), on_phone=True),
        Column("", actions, on_phone=True),
    ]


def _endpoints() -> set[str]:
    return set(current_app.view_functions)


def report_of(coupon: dict[str, Any]) -> list[Plot]:
    """Return the plots of uses and revenue, for a session that may read reports."""
    if not rights.can("get_coupon_report"):
        return []
    return reports.coupon_plots(coupon["id"])


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

    email = inputs.Email("E-mail address of the customer.", form=FormField("E-mail address"))
    customer_id = inputs.AccountId(
        "ID of the customer account, if there is one.", form=FormField("Customer ID")
    )
    amount = inputs.DecimalInput(
        "Discount that was granted, for the reports.", form=FormField("Discount", unit="currency")
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


ITEM_NAMES = ("product_id", "price", "quantity", "product_category_ids", "on_sale")
ITEM_ROWS = 3
"""Empty rows of a cart without an order."""


@blp.page("/coupons/<int:coupon_id>/try", "get_coupon", "evaluate_coupons", methods=("GET", "POST"))
def try_it(coupon_id: int) -> Response:
    """Evaluate a cart with a coupon. Nothing is stored."""
    coupon, _etag = coupon_of(coupon_id)
    errors: dict[str, str] = {}
    evaluation, sent = None, None
    if request.method == "POST":
        items = _submitted_items()
        cart = _cart(coupon["code"], items, errors)
        if not errors:
            try:
                reply = call("evaluate_coupons", body={"cart": cart})
                evaluation, sent = reply.body["evaluation"], reply.request
            except ShopError as error:
                if error.status not in {400, 404, 413}:
                    raise
                errors |= {
                    _place(entry.get("param", "")): entry["message"] for entry in error.entries
                }
    else:
        items, errors = _order_items()
    return render(
        "try.html", title=_("Try %(code)s", code=coupon["code"]), coupon=coupon, items=items,
        errors=errors, evaluation=evaluation, sent=sent, given=request.form,
        order=request.args.get("order", ""), has_errors=bool(errors),
        result=_result(evaluation) if evaluation else "", fields=REASON_FIELDS,
        status=400 if errors and request.method == "POST" else 200,
    )  # fmt: skip


REASON_FIELDS = {
    "expired": "expiry_date", "usage_limit": "usage_limit",
    "usage_limit_per_user": "usage_limit_per_user", "minimum_amount": "minimum_amount",
    "maximum_amount": "maximum_amount", "email_not_allowed": "customer_emails",
    "product_not_included": "product_ids", "product_excluded": "exclude_product_ids",
    "sale_items_excluded": "exclude_sale_items", "individual_use": "individual_use",
}  # fmt: skip
"""The field that causes a reason of an evaluation, by its code."""


def _submitted_items() -> list[dict[str, str]]:
    lists = {name: request.form.getlist(f"item_{name}") for name in ITEM_NAMES if name != "on_sale"}
    sale = set(request.form.getlist("item_on_sale"))
    count = max((len(each) for each in lists.values()), default=0)
    return [
        {name: each[index].strip() if index < len(each) else "" for name, each in lists.items()}
        | {"on_sale": "true" if str(index) in sale else ""}
        for index in range(min(count, 100))
    ]


def _cart(code: str, items: list[dict[str, str]], errors: dict[str, str]) -> dict[str, Any]:
    """Return the cart of the submitted form, and note errors by the ID of their input."""
    sent = []
    for index, item in enumerate(items):
        if not any(value for name, value in item.items() if name not in {"on_sale", "quantity"}):
            continue
        for name, pattern in (
            ("price", r"[0-9]+(\.[0-9]{1,6})?"),
            ("quantity", "[0-9]{1,10}|"),
            ("product_id", "[0-9]{1,18}|"),
        ):
            if not re.fullmatch(pattern, item[name]):
                errors[f"item-{index}-{name}"] = _(
                    "Line %(line)s: write a number such as 10.50.", line=index + 1
                )
        sent.append({
            "product_id": int(item["product_id"] or 0) if item["product_id"].isdigit() else 0,
            "price": item["price"],
            "quantity": int(item["quantity"] or 1) if item["quantity"].isdigit() else 1,
            "product_category_ids": [
                int(each) for each in re.findall("[0-9]{1,18}", item["product_category_ids"])
            ],
            "on_sale": item["on_sale"] == "true",
        })  # fmt: skip
    others = re.split(r"[\s,;]+", request.form.get("codes", "").strip())
    customer = request.form.get("customer_id", "").strip()
    if customer and not customer.isdigit():
        errors["customer_id"] = _("Customer ID: write a number.")
    cart: dict[str, Any] = {"items": sent, "coupons": [code, *(each for each in others if each)]}
    if email := request.form.get("email", "").strip():
        cart["email"] = email
    if customer.isdigit() and int(customer):
        cart["customer_id"] = int(customer)
    return cart


def _place(param: str) -> str:
    """Return the ID of the input that an error of the cart is about."""
    if found := re.fullmatch(r"cart\.items\[([0-9]+)\]\.(\w+)", param):
        return f"item-{found[1]}-{found[2]}"
    return {"cart.email": "email", "cart.customer_id": "customer_id"}.get(param, "")


def _order_items() -> tuple[list[dict[str, str]], dict[str, str]]:
    """Return the items of an order to begin with: the one in the address, or the latest one."""
    empty = [dict.fromkeys(ITEM_NAMES, "") for _line in range(ITEM_ROWS)]
    if not rights.can("list_orders"):
        return empty, {}
    number = request.args.get("order", "").strip().lstrip("#")
    if number and number.isdigit():
        try:
            order = call("get_order", order_id=int(number)).body["order"]
        except ShopError as error:
            if error.status != 404:
                raise
            return empty, {"order": _("No order has this number.")}
    else:
        orders = call("list_orders", query={"limit": 1}).body["orders"]
        if not orders:
            return empty, {}
        order = orders[0]
    items = [
        {
            "product_id": str(line.get("product_id") or ""),
            "price": str(line.get("price") or ""),
            "quantity": str(line.get("quantity") or 1),
            "product_category_ids": "",
            "on_sale": "",
        }
        for line in order["line_items"]
    ]
    return items or empty, {}


def _result(evaluation: dict[str, Any]) -> str:
    """Return in one sentence what the customer would pay."""
    total, discount = html.money(evaluation["total"]), html.money(evaluation["discount"])
    subtotal = html.money(evaluation["subtotal"])
    return _(
        "The customer would pay %(total)s instead of %(subtotal)s: %(discount)s less.",
        total=total, subtotal=subtotal, discount=discount,
    )  # fmt: skip
