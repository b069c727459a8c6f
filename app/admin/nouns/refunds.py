"""Refunds of an order: the form, and deletion (admin 2)."""

import re
from typing import Any

from flask import request

from app.admin.calls import api_request, call, form_headers
from app.admin.frame import render
from app.admin.nouns import FORM, AnyResponse
from app.admin.nouns.orders import ORDERS, blp
from app.admin.texts import gettext as _
from app.errors import ShopError


@blp.page("/orders/<int:order_id>/refund", "get_order", "create_order_refund", methods=FORM)
def refund(order_id: int) -> AnyResponse:
    """Show the form of a refund, or record it. No payment provider is called."""
    order = call("get_order", order_id=order_id).content
    errors: dict[str, str] = {}
    sent = None
    if request.method == "POST":
        body = {"order_refund": _submitted_refund(order, errors)}
        sent = api_request("create_order_refund", body=body, order_id=order_id)
        if not errors and "_show" not in request.form:
            try:
                call("create_order_refund", body=body, headers=form_headers(), order_id=order_id)
                return ORDERS.see(order_id, "refunded")
            except ShopError as error:
                if error.status not in {400, 409}:
                    raise
                errors |= {_place(each, body): each["message"] for each in error.entries}
    total = call("get_order", query={"fields": "id,total,total_refunded"}, order_id=order_id)
    return render(
        "refund.html", title=_("Refund order %(number)s", number=ORDERS.name_of(order)),
        back=(ORDERS.url("show", order_id), ORDERS.title_of(order)), order=order,
        items=refundable(order), totals=total.content, errors=errors, given=request.form,
        sent=sent if request.form.get("_show") == "request" and not errors else None,
        has_errors=bool(errors), status=400 if errors else 200,
    )  # fmt: skip


def refundable(order: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the items of an order that can be refunded: ID, name, quantity, total and tax."""
    lists = (("line_items", "name"), ("shipping_lines", "method_title"), ("fee_lines", "title"))
    return [
        {"id": line["id"], "name": line[title], "quantity": line.get("quantity"),
         "total": line["total"], "total_tax": line["total_tax"]}
        for key, title in lists
        for line in order[key]
    ]  # fmt: skip


_INPUTS = (("quantity", "[0-9]{1,10}"), ("total", r"[0-9]{1,16}(\.[0-9]{1,2})?"),
           ("total_tax", r"[0-9]{1,16}(\.[0-9]{1,2})?"))  # fmt: skip


def _submitted_refund(order: dict[str, Any], errors: dict[str, str]) -> dict[str, Any]:
    """Return the refund that was typed in, and note errors by the ID of their input."""
    found: dict[str, Any] = {}
    if amount := request.form.get("amount", "").strip():
        if not re.fullmatch(_INPUTS[1][1], amount):
            errors["amount"] = _("Amount: write a number such as 10.50.")
        found["amount"] = amount
    if reason := request.form.get("reason", "").strip():
        found["reason"] = reason
    items = []
    for line in refundable(order):
        item: dict[str, Any] = {}
        for name, pattern in _INPUTS:
            place = f"item-{line['id']}-{name}"
            text = request.form.get(place, "").strip()
            if text and not re.fullmatch(pattern, text):
                errors[place] = _("%(item)s: write a number such as 10.50.", item=line["name"])
            elif text:
                item[name] = int(text) if name == "quantity" else text
        if item:
            items.append({"id": line["id"], **item})
    if items:
        found["line_items"] = items
    return found


def _place(entry: dict[str, Any], body: dict[str, Any]) -> str:
    """Return the ID of the input that an error of the API is about."""
    param = str(entry.get("param") or "")
    if found := re.search(r"line_items\[([0-9]+)\](?:\.(\w+))?", param):
        items = body["order_refund"].get("line_items", [])
        if int(found[1]) < len(items):
            return f"item-{items[int(found[1])]['id']}-{found[2] or 'total'}"
    return "reason" if param.endswith("reason") else "amount"


ORDERS.runs("delete_refund", "delete_order_refund", "deleted",
            path="refunds/<int:refund_id>/delete")  # fmt: skip
