"""*Try it*: a cart with a coupon, and what the customer would pay (admin 2 and 5)."""

import re
from itertools import zip_longest
from typing import Any

from flask import Response, request

from app.admin import html, rights
from app.admin.calls import call
from app.admin.frame import render
from app.admin.nouns import FORM
from app.admin.nouns.coupons import COUPONS, blp
from app.admin.texts import gettext as _
from app.conversions.numbers import whole_number
from app.errors import ShopError

ITEM_NAMES = ("product_id", "price", "product_category_ids", "quantity", "on_sale")
ITEM_ROWS = 3
"""Lines of a cart. One with more items has one empty line."""


@blp.page("/coupons/<int:coupon_id>/try", "get_coupon", "evaluate_coupons", methods=FORM)
def try_it(coupon_id: int) -> Response:
    """Evaluate a cart with a coupon. Nothing is stored."""
    coupon, _etag = COUPONS.read(coupon_id)
    errors: dict[str, str] = {}
    evaluation, sent = None, None
    if request.method == "POST":
        items = _submitted_items()
        cart = _cart(coupon["code"], items, errors)
        if not errors:
            try:
                reply = call("evaluate_coupons", body={"cart": cart})
                evaluation, sent = reply.content, reply.request
            except ShopError as error:
                if error.status not in {400, 404, 413}:
                    raise
                errors |= {
                    _place(entry.get("param", "")): entry["message"] for entry in error.entries
                }
    else:
        items, errors = _order_items()
    empty = [dict.fromkeys(ITEM_NAMES, "")] * max(ITEM_ROWS - len(items), 1)
    return render(
        "try.html", title=_("Try %(code)s", code=coupon["code"]), coupon=coupon,
        items=items + empty, back=(COUPONS.url("show", coupon_id), coupon["code"]),
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
    """Return the lines of the submitted cart without the empty ones."""
    lists = {name: request.form.getlist(f"item_{name}") for name in ITEM_NAMES if name != "on_sale"}
    sale = set(request.form.getlist("item_on_sale"))
    lines = [
        dict(zip(lists, (each.strip() for each in values), strict=True))
        | {"on_sale": "true" if str(index) in sale else ""}
        for index, values in enumerate(zip_longest(*lists.values(), fillvalue=""))
    ]
    return [line for line in lines[:100] if any(line[name] for name in ITEM_NAMES[:3])]


def _cart(code: str, items: list[dict[str, str]], errors: dict[str, str]) -> dict[str, Any]:
    """Return the cart of the submitted form, and note errors by the ID of their input."""
    sent = []
    for index, item in enumerate(items):
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
            "product_id": whole_number(item["product_id"]) or 0,
            "price": item["price"],
            "quantity": whole_number(item["quantity"] or "1") or 0,
            "product_category_ids": [
                int(each) for each in re.findall("[0-9]{1,18}", item["product_category_ids"])
            ],
            "on_sale": item["on_sale"] == "true",
        })  # fmt: skip
    others = re.split(r"[\s,;]+", request.form.get("codes", "").strip())
    customer = whole_number(request.form.get("customer_id", "").strip() or "0")
    if customer is None:
        errors["customer_id"] = _("Customer ID: write a number.")
    cart: dict[str, Any] = {"items": sent, "coupons": [code, *(each for each in others if each)]}
    if email := request.form.get("email", "").strip():
        cart["email"] = email
    if customer:
        cart["customer_id"] = customer
    return cart


def _place(param: str) -> str:
    """Return the ID of the input that an error of the cart is about."""
    if found := re.fullmatch(r"cart\.items\[([0-9]+)\]\.(\w+)", param):
        return f"item-{found[1]}-{found[2]}"
    return {"cart.email": "email", "cart.customer_id": "customer_id"}.get(param, "")


def _order_items() -> tuple[list[dict[str, str]], dict[str, str]]:
    """Return the items of an order to begin with: the one in the address, or the latest one."""
    if not rights.can("list_orders"):
        return [], {}
    number = whole_number(request.args.get("order", "").strip().lstrip("#"))
    if number is not None:
        try:
            order = call("get_order", order_id=number).content
        except ShopError as error:
            if error.status != 404:
                raise
            return [], {"order": _("No order has this number.")}
    else:
        orders = call("list_orders", query={"limit": 1}).content
        if not orders:
            return [], {}
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
    return items, {}


def _result(evaluation: dict[str, Any]) -> str:
    """Return in one sentence what the customer would pay."""
    total, discount = html.money(evaluation["total"]), html.money(evaluation["discount"])
    subtotal = html.money(evaluation["subtotal"])
    if total == subtotal:
        return _("The customer would pay %(total)s: nothing is discounted.", total=total)
    return _(
        "The customer would pay %(total)s instead of %(subtotal)s: %(discount)s less.",
        total=total, subtotal=subtotal, discount=discount,
    )  # fmt: skip
