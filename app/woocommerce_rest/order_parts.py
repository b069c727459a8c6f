"""Notes and refunds of orders: operations (wc-v3, surface 10)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import Any

from app.auth.principals import Capability
from app.catalog import TRASH
from app.db.session import reading_own_writes, run_in_transaction
from app.errors import InvalidInputs
from app.schemas.loading import instance_of
from app.schemas.orders.note import OrderNoteCreate
from app.schemas.orders.refund import OrderRefundCreate
from app.services.common.records import RecordQuery
from app.services.orders import notes, refunds
from app.services.orders.records import list_refunds, notes_of, records_by_id, refund_by_id
from app.woocommerce_rest import arguments as arg
from app.woocommerce_rest.arguments import Arguments, Schema
from app.woocommerce_rest.customers import name_of_account
from app.woocommerce_rest.errors import RestError, no_trash
from app.woocommerce_rest.frame import Call, Operation, Page, Route
from app.woocommerce_rest.lists import collection, decimals, page, record_query
from app.woocommerce_rest.order_objects import TAXES, note_object, refund_object
from app.woocommerce_rest.resources import DELETION
from app.woocommerce_rest.site import Site

Record = Mapping[str, Any]
Object = dict[str, Any]


def _order(call: Call, code: str, *, trashed_too: bool = False) -> Record:
    """Return the order of a note or refund."""
    with reading_own_writes():
        found = records_by_id([call.ids["order_id"]], with_customers=False)
    if not found or (found[0]["status"] == TRASH and not trashed_too):
        raise RestError(code, "Invalid order ID.", 404)
    return found[0]


# --- notes ---


def _note(call: Call, note_id: int) -> Object:
    with reading_own_writes():
        found = notes_of(call.ids["order_id"], note_id)
    if not found:
        raise RestError("woocommerce_rest_invalid_id", "Invalid resource ID.", 404)
    return note_object(found[0], call.site)


def list_notes(call: Call) -> list[Object]:
    """Return all notes of an order, newest first."""
    _order(call, "woocommerce_rest_shop_order_invalid_id", trashed_too=True)
    kind = call.args.get("type") or "any"
    wanted = {"customer": {True}, "internal": {False}}.get(kind, {True, False})
    found = notes_of(call.ids["order_id"])
    return [note_object(n, call.site) for n in found if bool(n["customer_note"]) in wanted]


def get_note(call: Call) -> Object:
    """Return a note of an order."""
    _order(call, "woocommerce_rest_order_invalid_id", trashed_too=True)
    return _note(call, call.ids["id"])


def create_note(call: Call) -> Object:
    """Add a note to an order."""
    call.require_no_id("shop_order")
    _order(call, "woocommerce_rest_order_invalid_id")
    text = call.given["note"]
    data: Object = instance_of(OrderNoteCreate).load({"note": text}) if text else {"note": ""}
    data["customer_note"] = bool(call.args.get("customer_note"))
    data["author"] = name_of_account(call.actor.user_id) if call.args.get("added_by_user") else ""

    def work(_: Any) -> Object:
        order_id = call.ids["order_id"]
        created = notes.create_note(call.actor, order_id, data, needs_text=False)
        return _note(call, created["id"])

    return run_in_transaction(work)


def delete_note(call: Call) -> Object:
    """Delete a note permanently."""
    _order(call, "woocommerce_rest_order_invalid_id")
    shown = _note(call, call.ids["id"])
    call.require_force("Webhooks")  # as on the original
    notes.delete_note(call.actor, call.ids["order_id"], call.ids["id"])
    return shown


# --- refunds ---


def _site(call: Call) -> Site:
    return call.site.with_options(dp=decimals(call))


def _refund(call: Call, refund_id: int) -> Object:
    with reading_own_writes():
        found = refund_by_id(call.ids["order_id"], refund_id)
    if found is None:
        with reading_own_writes():
            is_elsewhere = refund_by_id(0, refund_id) is not None
        if is_elsewhere:
            message = "Invalid order refund ID."
            raise RestError("woocommerce_rest_invalid_order_refund_id", message, 404)
        code = "woocommerce_rest_shop_order_refund_invalid_id"
        raise RestError(code, "Invalid ID.", 404)
    return refund_object(found, _site(call))


def list_all_refunds(call: Call) -> Page:
    """Return a page of the refunds of an order, or of all orders."""
    order_id, site = call.ids.get("order_id"), _site(call)
    found, total = list_refunds(call.actor, RecordQuery(**record_query(call)), order_id)
    shown = (refund_object(each, site, with_parent=order_id is None) for each in found)
    return page(call, shown, total, {"dp": 2})


def get_refund(call: Call) -> Object:
    """Return a refund of an order."""
    _order(call, "woocommerce_rest_invalid_order_id")
    return _refund(call, call.ids["id"])


def create_refund(call: Call) -> Object:
    """Record a refund of an order. No provider is called."""
    call.require_no_id("shop_order_refund")
    order, args = _order(call, "woocommerce_rest_invalid_order_id"), call.args
    if "amount" in args and Decimal(args["amount"] or 0) <= 0:
        message = "Refund amount must be greater than zero."
        raise RestError("woocommerce_rest_invalid_order_refund", message)
    native: Object = {name: call.given[name] for name in ("amount", "reason") if name in call.given}
    known = {item["id"] for name in REFUNDABLE for item in order[name]}
    native["line_items"] = [
        _native_item(each)
        for each in call.given.get("line_items") or ()
        if (each.get("id") or 0) in known or "amount" not in native
    ]
    data: Object = instance_of(OrderRefundCreate).load(native)
    if call.given.get("meta_data"):
        data["metadata"] = call.given["meta_data"]

    def work(_: Any) -> Object:
        created = refunds.create_refund(call.actor, call.ids["order_id"], data)
        return _refund(call, created["id"])

    try:
        return run_in_transaction(work)
    except InvalidInputs as error:
        raise _invalid_refund(error) from None


REFUNDABLE = ("line_items", "shipping_lines", "fee_lines")


def _item_list(value: Any) -> Any:
    """Return refunded items in a list, also if they are an object by the ID of the item.

    Such an object is the form inside WooCommerce, with ``qty`` and with taxes by their rate or as
    their sum. Programs such as the app for Android send it.
    """
    is_keyed = isinstance(value, dict) and all(map(str.isdecimal, value))
    return [_listed(*each) for each in value.items()] if is_keyed else value


def _listed(item_id: str, item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    taxes = item.get("refund_tax") or {}
    by_rate = taxes if isinstance(taxes, dict) else {0: taxes}
    listed = [{"id": rate, "refund_total": amount} for rate, amount in by_rate.items()]
    found = {"id": item_id, "quantity": item.get("qty") or 0, **item}
    return found if isinstance(taxes, list) else found | {"refund_tax": listed}


def _native_item(given: Mapping[str, Any]) -> Object:
    taxes = [
        (str(each.get("id") or 0), Decimal(each.get("refund_total") or 0))
        for each in given.get("refund_tax") or ()
    ]
    native: Object = {
        "id": given.get("id") or 0,
        "quantity": given.get("quantity") or 0,
        "total": given.get("refund_total") or 0,
        "total_tax": sum((amount for _, amount in taxes), Decimal(0)),
    }
    if taxes:
        by_rate = {rate: str(-amount) for rate, amount in taxes if amount}
        native["metadata"] = {TAXES: {"total": by_rate}}
    return native


def _invalid_refund(error: InvalidInputs) -> RestError:
    """Return the error of a refund that violates a rule, with what is left."""
    message = error.message.replace("order_refund.", "")
    if error.code != "shop_api_invalid_order_refund":
        raise error
    is_amount = error.param == "order_refund.amount"
    code = "woocommerce_rest_invalid_order_refund"
    message = f"Invalid refund amount. {message}" if is_amount else message
    return RestError(code, message)


def delete_refund(call: Call) -> Object:
    """Delete a refund permanently."""
    if call.args.get("force") is False:
        raise no_trash("The shop_order_refund does")
    _order(call, "woocommerce_rest_invalid_order_id")
    shown = _refund(call, call.ids["id"])
    refunds.delete_refund(call.actor, call.ids["order_id"], call.ids["id"])
    return shown


_READ, _EDIT = (Capability.READ_PRIVATE_SHOP_ORDERS,), (Capability.EDIT_SHOP_ORDERS,)
_DELETE = (Capability.DELETE_SHOP_ORDERS,)
_NOTE_FIELDS: Arguments = {
    "note": {**arg.TEXT, "required": True},
    "customer_note": arg.BOOLEAN,
    "added_by_user": arg.BOOLEAN,
    "id": {},
}


def _objects(**properties: Schema) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "object", "properties": properties}}


_REFUND_FIELDS: Arguments = {
    "amount": arg.MONEY,
    "reason": arg.TEXT,
    "refunded_by": arg.INTEGER,
    "meta_data": arg.METADATA,
    "line_items": _objects(
        id=arg.INTEGER, quantity=arg.INTEGER, refund_total=arg.MONEY,
        refund_tax=_objects(id={"type": ["integer", "string"]}, refund_total=arg.MONEY),
    ) | {"read": _item_list},
    "api_refund": arg.BOOLEAN,
    "api_restock": arg.BOOLEAN,
    "id": {},
}  # fmt: skip
_DP = {"dp": arg.DECIMALS}
_ONE_REFUND: Arguments = {**arg.ONE, **_DP}
_REFUND_LIST = {
    **collection("date", "id", "include", "title", "slug", "modified"),
    "parent": arg.IDS,
    "parent_exclude": arg.IDS,
    **_DP,
}
_TYPE = {"type": "string", "enum": ["any", "customer", "internal"], "default": "any"}

_NOTES, _REFUNDS = "/orders/<id:order_id>/notes", "/orders/<id:order_id>/refunds"
_note_operation = partial(Operation, result="OrderNote")
_refund_operation = partial(Operation, result="Refund")
_FORCED = {"force": {"type": "boolean", "default": True}}

ROUTES = (
    Route(_NOTES, {
        "GET": _note_operation(
            list_notes, "list", _READ, {**arg.ONE, "type": _TYPE}, "List the notes of an order",
            is_list=True,
        ),
        "POST": _note_operation(
            create_note, "create", _EDIT, _NOTE_FIELDS, "Add a note to an order"
        ),
    }),
    Route(f"{_NOTES}/<id:id>", {
        "GET": _note_operation(get_note, "view", _READ, arg.ONE, "Retrieve a note"),
        "DELETE": _note_operation(delete_note, "delete", _EDIT, DELETION, "Delete a note"),
    }),
    Route(_REFUNDS, {
        "GET": _refund_operation(
            list_all_refunds, "list", _READ, _REFUND_LIST, "List the refunds of an order",
            is_list=True, name="list_refunds",
        ),
        "POST": _refund_operation(
            create_refund, "create", _EDIT, _REFUND_FIELDS, "Record a refund of an order"
        ),
    }),
    Route(f"{_REFUNDS}/<id:id>", {
        "GET": _refund_operation(get_refund, "view", _READ, _ONE_REFUND, "Retrieve a refund"),
        "DELETE": _refund_operation(
            delete_refund, "delete", _DELETE, _FORCED, "Delete a refund"
        ),
    }),
    Route("/refunds", {
        "GET": _refund_operation(
            list_all_refunds, "list", _READ, _REFUND_LIST, "List all refunds", is_list=True
        )
    }),
)  # fmt: skip
