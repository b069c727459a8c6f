"""*Try it*: a cart with a coupon, and what the customer would pay (admin 2 and 5)."""

import re
from functools import partial

from flask import Response, request

from app.conversions.numbers import whole_number
from app.errors import ShopError
from app.plugins.admin import html
from app.plugins.admin.calls import Record, call, can
from app.plugins.admin.forms import FieldSpec, Form, line_specs, specs_of
from app.plugins.admin.frame import render
from app.plugins.admin.nouns import FORM
from app.plugins.admin.nouns.coupons import COUPONS, blp
from app.plugins.admin.texts import gettext as _
from app.plugins.admin.texts import reason_text
from app.pricing.evaluation import REASONS
from app.schemas.coupons.cart import CartItemSchema, CartSchema

EXAMPLE = {"price": "100.00", "quantity": 1}
"""The line of a cart without an order."""

LINES = 3
"""Lines of a cart. One with more items has one empty line."""


@blp.page("/coupons/<id:coupon_id>/try", "get_coupon", "evaluate_coupons", methods=FORM)
def try_it(coupon_id: int) -> Response:
    """Evaluate a cart with a coupon. Nothing is stored."""
    coupon, _etag = COUPONS.read(coupon_id)
    evaluation = None
    if request.method == "POST":
        form = Form.submitted(_specs(_submitted_lines()), "cart")
        cart = form.read(everything=True)
        cart["coupons"] = [coupon["code"], *cart.get("coupons", ())]
        if reply := form.send("evaluate_coupons", cart):
            evaluation = reply.content
    else:
        form = _form_of_order()
    return render(
        "try.html",
        title=_("Try %(code)s", code=coupon["code"]),
        coupon=coupon,
        form=form,
        back=(COUPONS.url("show", coupon_id), coupon["code"]),
        evaluation=evaluation,
        order=request.args.get("order", ""),
        has_errors=bool(form.errors),
        result=_result(evaluation) if evaluation else "",
        fields=REASON_FIELDS,
        reason_text=partial(reason_text, messages=REASONS),
        status=400 if form.errors and request.method == "POST" else 200,
    )


REASON_FIELDS = {
    "expired": "expiry_date", "usage_limit": "usage_limit",
    "usage_limit_per_user": "usage_limit_per_user", "minimum_amount": "minimum_amount",
    "maximum_amount": "maximum_amount", "email_not_allowed": "customer_emails",
    "product_not_included": "product_ids", "product_excluded": "exclude_product_ids",
    "sale_items_excluded": "exclude_sale_items", "individual_use": "individual_use",
}  # fmt: skip
"""The field that causes a reason of an evaluation, by its code."""


def _specs(filled: int) -> list[FieldSpec]:
    """Return the fields of a cart with an empty line after those that are filled in."""
    numbers = range(max(LINES, filled + 1))
    lines = {number: _("Line %(line)s", line=number + 1) for number in numbers}
    return [*line_specs(CartItemSchema, "items", lines), *specs_of(CartSchema)]


def _submitted_lines() -> int:
    """Return the number of submitted lines up to the last one that is filled in."""
    names = (name for name, text in request.form.items() if text)
    found = (re.fullmatch(r"items\.([0-9]{1,2})\..+", name) for name in names)
    return 1 + max((int(each[1]) for each in found if each), default=-1)


def _form_of_order() -> Form:
    """Return a form with the items of an order: the one in the address, or the latest one."""
    number, orders, message = request.args.get("order", "").strip().lstrip("#"), [], ""
    try:
        if number and can("get_order"):
            orders = [call("get_order", order_id=whole_number(number) or 0).content]
        elif can("list_orders"):
            orders = call("list_orders", query={"limit": 1}).content
    except ShopError as error:
        if error.status != 404:
            raise
        message = _("No order has this number.")
    names = ("product_id", "price", "quantity")
    items = [{name: line[name] for name in names} for each in orders for line in each["line_items"]]
    items = items or [EXAMPLE]
    form = Form.of_new(_specs(len(items)), "cart", {"items": items})
    form.errors = {"": message} if message else {}
    return form


def _result(evaluation: Record) -> str:
    """Return in one sentence what the customer would pay."""
    total, discount = html.money(evaluation["total"]), html.money(evaluation["discount"])
    subtotal = html.money(evaluation["subtotal"])
    if not float(evaluation["subtotal"]):
        return _("The cart is empty. Enter the price of an item.")
    if total == subtotal:
        return _("The customer would pay %(total)s: nothing is discounted.", total=total)
    return _(
        "The customer would pay %(total)s instead of %(subtotal)s: %(discount)s less.",
        total=total,
        subtotal=subtotal,
        discount=discount,
    )
