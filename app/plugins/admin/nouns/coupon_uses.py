"""*Try it*, *Redeem now* and *Correct the count* of a coupon, and its uses (admin 2 and 5)."""

import re

from flask import Response, request

from app.api.authentication import current_principal
from app.api.representations import REDEMPTION
from app.conversions.numbers import whole_number
from app.db.read_pool import RowStream
from app.errors import ShopError
from app.plugins.admin import html, texts
from app.plugins.admin.calls import call, can, loaded_query
from app.plugins.admin.form_fields import FieldSpec, line_specs, specs_of
from app.plugins.admin.form_pages import AnyResponse, add_action, form_page
from app.plugins.admin.forms import Form
from app.plugins.admin.frame import render
from app.plugins.admin.nouns import FORM
from app.plugins.admin.nouns.coupons import COUPONS, blp
from app.plugins.admin.reports import from_replica
from app.plugins.admin.tables import csv_file
from app.plugins.admin.texts import gettext as _
from app.schemas.base import Base
from app.schemas.coupons.cart import CartItemSchema, CartSchema
from app.schemas.fields import input as inputs
from app.schemas.fields.form import FormField, set_form
from app.schemas.redemptions import RedemptionCreate, RedemptionListQuery
from app.services.redemptions.queries import RedemptionQuery, list_redemptions


@blp.page("/coupons/<id:coupon_id>/redemptions.csv", "list_redemptions")
def download(coupon_id: int) -> Response:
    """Download the redemptions of a coupon as CSV."""
    query = loaded_query(RedemptionListQuery, {"coupon_id": str(coupon_id), "limit": "-1"})
    actor, columns = current_principal(), REDEMPTION.columns
    found = from_replica(lambda: list_redemptions(actor, RedemptionQuery.of(query), columns)).rows
    batches = map(REDEMPTION.rows, found.batches()) if isinstance(found, RowStream) else ()
    return csv_file(f"redemptions-of-coupon-{coupon_id}", REDEMPTION.names, batches, found)


USE = "redemptions/<id:redemption_id>"
add_action(COUPONS, "release", "release_redemption", "released", path=f"{USE}/release")
add_action(COUPONS, "confirm", "confirm_redemption", "redeemed", path=f"{USE}/confirm")


class CouponCount(Base):
    """The number of uses, which only *Correct the count* sets."""

    usage_count = inputs.Count("Number of confirmed uses.")


set_form(CouponCount, {"Number of uses": {"usage_count": FormField("Uses")}})


@blp.page(
    "/coupons/<id:coupon_id>/redeem",
    "get_coupon",
    "create_redemption",
    "confirm_redemption",
    methods=FORM,
)
def redeem(coupon_id: int) -> AnyResponse:
    """Record a use now: reserve it with the ID of the form, and confirm it at once."""
    coupon, _etag = COUPONS.read(coupon_id)
    title = _("Redeem %(code)s now", code=coupon["code"])
    back = COUPONS.url("show", coupon_id), coupon["code"]
    form = Form.of_new(specs_of(RedemptionCreate), "redemption", {})
    if request.method == "POST":
        form = Form.submitted(form.specs, "redemption")
        form_id = re.sub(r"[^0-9a-f]", "", request.form.get("_form", ""))[:32]
        use = {"code": coupon["code"], "reference": f"counter-{form_id}"}
        if reply := form.send("create_redemption", use | form.read(everything=True)):
            return _confirm_now(coupon_id, reply.content["id"], title, back)
    return form_page(
        form,
        title,
        back,
        button=_("Redeem now"),
        intro=_(
            "Records a use at the counter or by telephone at once. "
            "It counts towards the limits of the coupon."
        ),
    )


def _confirm_now(
    coupon_id: int, redemption_id: int, title: str, back: tuple[str, str]
) -> AnyResponse:
    """Confirm a use. If this fails, say which state it is in, and offer both ways."""
    try:
        call("confirm_redemption", redemption_id=redemption_id)
        return COUPONS.see(coupon_id, "redeemed")
    except ShopError as error:
        return render(
            "redeem.html",
            title=title,
            back=back,
            coupon_id=coupon_id,
            redemption_id=redemption_id,
            failure=texts.of_api(error.sentence()),
            has_errors=True,
            status=409,
        )


@blp.page("/coupons/<id:coupon_id>/count", "get_coupon", "update_coupon", methods=FORM)
def correct_count(coupon_id: int) -> AnyResponse:
    """Show the number of uses, or correct it."""
    specs = specs_of(CouponCount)
    sent = Form.submitted(specs, "coupon") if request.method == "POST" else None
    if sent and sent.save("get_coupon", "update_coupon", coupon_id=coupon_id):
        sent.errors["usage_count"] = _("The number has changed in between. Check it again.")
    if sent and sent.done:
        return COUPONS.see(coupon_id, sent.done)
    coupon, etag = COUPONS.read(coupon_id)
    form = Form.of_record(specs, "coupon", coupon, etag)
    if sent:
        form.texts, form.errors, form.sent = sent.texts, sent.errors, sent.sent
    title = _("Correct the count of %(code)s", code=coupon["code"])
    limit = html.number(coupon["usage_limit"]) if coupon["usage_limit"] else _("none")
    return form_page(
        form,
        title,
        (COUPONS.url("show", coupon_id), coupon["code"]),
        button=_("Correct the count"),
        intro=_(
            "The service counts the uses exactly. Correct the number only if uses happened "
            "elsewhere, for example before the coupon was imported. The limit of uses applies "
            "to the new number."
        ),
        facts=[
            (_("Uses now"), html.number(coupon["usage_count"])),
            (_("Reserved"), html.number(coupon["reserved"])),
            (_("Limit"), limit),
        ],
    )


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
        status=400 if form.errors and request.method == "POST" else 200,
    )


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
