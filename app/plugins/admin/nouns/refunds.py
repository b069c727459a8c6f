"""Refunds of an order: the form, whose amounts follow the quantities, and their deletion."""

from dataclasses import replace
from decimal import Decimal
from itertools import accumulate

from flask import request

from app.conversions.currencies import smallest_amount
from app.conversions.numbers import whole_number
from app.errors import ShopError
from app.plugins.admin import html
from app.plugins.admin.calls import Record, Reply, call
from app.plugins.admin.form_fields import line_specs, specs_of
from app.plugins.admin.form_pages import AnyResponse, add_action, form_page
from app.plugins.admin.forms import Form
from app.plugins.admin.nouns import FORM
from app.plugins.admin.nouns.orders import ORDERS, blp
from app.plugins.admin.pages import call_if_allowed
from app.plugins.admin.texts import gettext as _
from app.schemas.orders.refund import OrderRefundCreate, RefundItemCreate
from app.services.orders.refund_rules import REFUNDABLE

Left = dict[int, list[int]]
"""What is left of items by their IDs: the quantity, and total and tax in cents."""

AMOUNTS = ("total", "total_tax")

add_action(
    ORDERS, "delete_refund", "delete_order_refund", "deleted", path="refunds/<id:refund_id>/delete"
)


@blp.page("/orders/<id:order_id>/refund", "get_order", "create_order_refund", methods=FORM)
def refund(order_id: int) -> AnyResponse:
    """Show the form of a refund, or record it. No payment provider is called."""
    order = call("get_order", order_id=order_id).content
    refunds = call_if_allowed("list_order_refunds", order_id=order_id)
    recorded = refunds.content if refunds else []
    currency, left = order["currency"], _left(order, recorded)
    items = [
        each
        for each in _refundable(order)
        if any(left[each["id"]][0 if "quantity" in each else 1 :])
        or f"line_items.{each['id']}.total" in request.form
    ]
    # By their IDs, because another user can change the items while the form is open.
    lines = {item["id"]: _line(item, left[item["id"]], currency) for item in items}
    refunded = line_specs(RefundItemCreate, "line_items", lines, are_ids=True)
    specs = [*specs_of(OrderRefundCreate), *refunded]
    countable = {f"line_items.{item['id']}.quantity" for item in order["line_items"]}
    specs = [each for each in specs if each.name in countable or "quantity" not in each.name]
    amount = replace(specs[0], form=replace(specs[0].form, unit=currency))
    form = Form.of_new([amount, *specs[1:]], "order_refund", {})
    if request.method == "POST":
        form = Form.submitted(form.specs, "order_refund")
        # As when the form was opened, so that it sends the same if it is sent again.
        _fill_in(form, _left(order, _until(recorded, form.etag)), currency)
        values = form.read(everything=True)
        if _record_refund(form, values, order_id):
            return ORDERS.see(order_id, "refunded")
    totals = _totals(order_id)
    form.etag = totals["total_refunded"]
    form.left = {
        f"line_items.{item_id}": " ".join(map(str, (*of_item, smallest_amount(currency))))
        for item_id, of_item in left.items()
    }
    rest = Decimal(totals["total"]) - Decimal(totals["total_refunded"])
    facts = {
        _("Total of the order"): totals["total"],
        _("Already refunded"): totals["total_refunded"],
        _("Left to refund"): rest,
    }
    return form_page(
        form,
        _("Refund order %(number)s", number=ORDERS.name_of(order)),
        (ORDERS.url("show", order_id), ORDERS.title_of(order)),
        button=_("Refund"),
        intro=_(
            "Records that money was returned. Return it with your payment provider: no "
            "provider is called. Enter a quantity, and its amount and tax follow."
        ),
        facts=[(label, html.money(amount, currency)) for label, amount in facts.items()],
    )


def _refundable(order: Record) -> list[Record]:
    return [item for name in REFUNDABLE for item in order[name]]


def _until(refunds: list[Record], total: str) -> list[Record]:
    """Return the oldest refunds that have a total, or all if none have it."""
    sums = list(accumulate((Decimal(each["amount"]) for each in refunds), initial=Decimal("0.00")))
    return next((refunds[:count] for count, each in enumerate(sums) if str(each) == total), refunds)


def _left(order: Record, refunds: list[Record]) -> Left:
    """Return what is left of the items of an order that can be refunded."""
    found = {}
    for item in _refundable(order):
        amounts = (_cents(item.get(name, "0")) for name in AMOUNTS)
        found[item["id"]] = [item.get("quantity", 1), *amounts]
    for each in refunds:
        for item in each["line_items"]:
            if of_item := found.get(item["id"]):
                taken = [item["quantity"], *(_cents(item[name]) for name in AMOUNTS)]
                found[item["id"]] = [a - b for a, b in zip(of_item, taken, strict=True)]
    return found


def _cents(amount: str) -> int:
    return int(Decimal(amount).scaleb(2))


def _fill_in(form: Form, left: Left, currency: str) -> None:
    """Set the amounts of items without any to what is left of their quantity."""
    smallest = smallest_amount(currency)
    for item_id, (quantity, *amounts) in left.items():
        place = f"line_items.{item_id}."
        texts = {f"{place}{name}": cents for name, cents in zip(AMOUNTS, amounts, strict=True)}
        count = whole_number(form.texts.get(f"{place}quantity", "")) or 0
        if not 0 < count <= quantity or any(form.texts[name] for name in texts):
            continue
        for name, cents in texts.items():
            # Rounded half up. The whole quantity has all that is left.
            part = (2 * cents * count + smallest * quantity) // (2 * smallest * quantity) * smallest
            form.texts[name] = str(Decimal(cents if count == quantity else part).scaleb(-2))


def _totals(order_id: int) -> Record:
    query = {"fields": "id,total,total_refunded"}
    totals: Record = call("get_order", query=query, order_id=order_id).content
    return totals


def _record_refund(form: Form, values: dict[str, object], order_id: int) -> Reply | None:
    """Record a refund, unless another one was recorded after the form was opened.

    The order is locked until the commit, so no other refund is recorded in between.
    """
    shown, form.etag = form.etag, ""

    def check(reply: Reply) -> None:
        is_new = "Idempotent-Replayed" not in reply.headers
        if is_new and shown and shown != _totals(order_id)["total_refunded"]:
            raise ShopError("shop_api_precondition_failed")

    try:
        return form.send("create_order_refund", values, check, order_id=order_id)
    except ShopError as error:
        if error.code != "shop_api_precondition_failed":
            raise
        form.errors[""] = _(
            "Someone else recorded or deleted a refund after you opened this page. Nothing is "
            "recorded yet. Check what was refunded, and send the form again if it is still right."
        )
        return None


def _line(item: Record, left: list[int], currency: str) -> str:
    """Return what names an item, and what is left: ``Tea: 1 of 2 left, $80.00 + $5.00 tax``."""
    kind = _("Shipping") if "method_title" in item else _("Fee")
    name = item.get("name") or item.get("method_title") or item.get("title") or kind
    quantity, total, tax = left
    text = _("left: ")
    if "quantity" in item:
        of = html.number(item["quantity"])
        text = _("%(left)s of %(count)s left, ", left=html.number(quantity), count=of)
    amount, taxes = (html.money(Decimal(cents).scaleb(-2), currency) for cents in (total, tax))
    return f"{name}: {text}{amount}" + (_(" + %(tax)s tax", tax=taxes) if tax else "")
