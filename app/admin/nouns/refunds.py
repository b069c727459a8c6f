"""Refunds of an order: the form, and deletion (admin 2)."""

from dataclasses import replace
from typing import Any

from flask import request

from app.admin import html
from app.admin.calls import call
from app.admin.forms import Form, line_specs, specs_of
from app.admin.nouns import FORM, AnyResponse, form_page
from app.admin.nouns.orders import ORDERS, blp
from app.admin.texts import gettext as _
from app.schemas.orders.refund import OrderRefundCreate, RefundItemCreate


@blp.page("/orders/<int:order_id>/refund", "get_order", "create_order_refund", methods=FORM)
def refund(order_id: int) -> AnyResponse:
    """Show the form of a refund, or record it. No payment provider is called."""
    order = call("get_order", order_id=order_id).content
    items = [*order["line_items"], *order["shipping_lines"], *order["fee_lines"]]
    # By their IDs, because another user can change the items while the form is open.
    lines = {item["id"]: _line(item, order["currency"]) for item in items}
    specs = [*specs_of(OrderRefundCreate), *line_specs(RefundItemCreate, "line_items", lines)]
    countable = {f"line_items.{item['id']}.quantity" for item in order["line_items"]}
    specs = [each for each in specs if each.name in countable or "quantity" not in each.name]
    amount = replace(specs[0], form=replace(specs[0].form, unit=order["currency"]))
    form = Form.of_new([amount, *specs[1:]], "order_refund", {})
    if request.method == "POST":
        form = Form.submitted(form.specs, "order_refund")
        values = form.read(everything=True)
        refunded = zip(form.lines.get("line_items", ()), values.get("line_items", ()), strict=True)
        for item_id, item in refunded:
            item["id"] = item_id
        if form.send("create_order_refund", values, order_id=order_id):
            return ORDERS.see(order_id, "refunded")
    query = {"fields": "id,total,total_refunded"}
    totals = call("get_order", query=query, order_id=order_id).content
    labels = {"total": _("Total of the order"), "total_refunded": _("Already refunded")}
    return form_page(
        form, _("Refund order %(number)s", number=ORDERS.name_of(order)),
        (ORDERS.url("show", order_id), ORDERS.title_of(order)), button=_("Refund"),
        intro=_("Records that money was returned. Return it with your payment provider: no "
                "provider is called."),
        facts=[(label, html.money(totals[name], order["currency"]))
               for name, label in labels.items()],
    )  # fmt: skip


def _line(item: dict[str, Any], currency: str) -> str:
    """Return what names an item: ``Tea: 2 for $80.00 + $5.00 tax``."""
    name = item.get("name") or item.get("method_title") or item.get("title")
    count = _("%(count)s for ", count=html.number(item["quantity"])) if "quantity" in item else ""
    tax = item["total_tax"]
    taxes = _(" + %(tax)s tax", tax=html.money(tax, currency)) if float(tax) else ""
    return f"{name}: {count}{html.money(item['total'], currency)}{taxes}"


ORDERS.runs("delete_refund", "delete_order_refund", "deleted",
            path="refunds/<int:refund_id>/delete")  # fmt: skip
