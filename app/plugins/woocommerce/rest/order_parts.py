"""Notes and refunds of orders: operations (wc-v3, surface 10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from flask import Response
from sqlalchemy.orm import Session

from app.auth.principals import Capability
from app.catalog import TRASH
from app.conversions.numbers import INT64_MAX
from app.db.records import Row
from app.errors import InvalidInputs
from app.models import ORDER_NOTES, ORDER_REFUNDS
from app.plugins.woocommerce.rest import arguments as arg
from app.plugins.woocommerce.rest import lists, order_objects, order_part_objects, stored_orders
from app.plugins.woocommerce.rest.customers import name_of_account
from app.plugins.woocommerce.rest.errors import RestError
from app.plugins.woocommerce.rest.operations import Call, Route
from app.plugins.woocommerce.rest.orders import ORDERS
from app.plugins.woocommerce.rest.resources import Resource
from app.plugins.woocommerce.rest.site import Object, Record, Site
from app.schemas.fields.json_schema import LONG_TEXT_MAX_LENGTH
from app.schemas.loading import instance_of
from app.schemas.orders.note import OrderNoteCreate
from app.schemas.orders.refund import OrderRefundCreate
from app.services.common.filtering import Matching
from app.services.orders import notes, refunds
from app.services.orders.locks import lock_orders
from app.services.orders.refund_rules import REFUNDABLE


def _order(call: Call, code: str, *, trashed_too: bool = False) -> Record:
    """Return the order of a note or refund."""
    found = ORDERS.stored([call.ids["order_id"]], call)
    if not found or (found[0]["status"] == TRASH and not trashed_too):
        raise RestError(code, "Invalid order ID.", 404)
    return found[0]


_AUDIENCES = ["any", "customer", "internal"]


class Notes(Resource):
    """The notes of an order."""

    noun, kind, result = "note", "shop_order", order_part_objects.RestOrderNote
    table, columns = ORDER_NOTES, tuple(ORDER_NOTES.c)
    path = "/orders/<id:order_id>/notes"
    summaries = {"list": "List the notes of an order", "create": "Add a note to an order"}
    needs = (
        Capability.READ_PRIVATE_SHOP_ORDERS,
        *[Capability.PROCESS_SHOP_ORDERS] * 2,
        Capability.EDIT_SHOP_ORDERS,
    )
    listed = {
        **arg.ONE,
        "type": arg.Argument(
            "string", component="OrderNoteListType", enum=_AUDIENCES, default="any"
        ),
    }
    created = {
        "note": arg.Argument("string", required=True, maxLength=LONG_TEXT_MAX_LENGTH),
        "customer_note": arg.BOOLEAN,
        "added_by_user": arg.BOOLEAN,
    }

    def page(self, call: Call) -> Response:
        """Return all notes of an order, newest first."""
        _order(call, "woocommerce_rest_shop_order_invalid_id", trashed_too=True)
        wanted = {"customer": True, "internal": False}.get(call.args.get("type") or "any")
        rows = stored_orders.list_notes(call.ids["order_id"], for_customer=wanted)

        def made(batch: Sequence[Row]) -> list[Object]:
            return self.make(lists.as_records(self.columns, batch), call.site, call.wanted)

        return lists.listed(call, rows, made)

    def shown(self, record_id: int, call: Call) -> Object:
        found = self.records([record_id], call.site)
        if not found or found[0]["order_id"] != call.ids["order_id"]:
            raise RestError("woocommerce_rest_invalid_id", "Invalid resource ID.", 404)
        return self.make(found, call.site, ())[0]

    def view(self, call: Call) -> Object:
        _order(call, "woocommerce_rest_order_invalid_id", trashed_too=True)
        return super().view(call)

    def lock(self, session: Session, calls: Sequence[Call]) -> None:
        lock_orders(session, [min(call.ids["order_id"], INT64_MAX) for call in calls])

    def write_one(self, call: Call, data: Object) -> int:
        _order(call, "woocommerce_rest_order_invalid_id")
        text, is_signed = call.given["note"], call.args.get("added_by_user")
        data = instance_of(OrderNoteCreate).load({"note": text}) if text else {"note": ""}
        data["customer_note"] = bool(call.args.get("customer_note"))
        data["author"] = name_of_account(call.actor.user_id) if is_signed else ""
        order_id = call.ids["order_id"]
        return int(notes.create_note(call.actor, order_id, data, needs_text=False)["id"])

    def require_deletable(self, call: Call) -> None:
        _order(call, "woocommerce_rest_order_invalid_id")

    def remove(self, call: Call, shown: Object) -> None:
        self.require_force(call, "Webhooks do")  # as on the original
        notes.delete_note(call.actor, call.ids["order_id"], shown["id"], call.check)


def _item_list(value: object) -> object:
    """Return refunded items in a list, also if they are an object by the ID of the item.

    Such an object is the form inside WooCommerce, with ``qty`` and with taxes by their rate or as
    their sum. Programs such as the app for Android send it.
    """
    if isinstance(value, dict) and all(map(str.isdecimal, value)):
        return [_item(*each) for each in value.items()]
    return value


def _item(item_id: str, item: object) -> object:
    if not isinstance(item, dict):
        return item
    taxes = item.get("refund_tax") or {}
    by_rate = taxes if isinstance(taxes, dict) else {0: taxes}
    listed = [{"id": rate, "refund_total": amount} for rate, amount in by_rate.items()]
    found = {"id": item_id, "quantity": item.get("qty") or 0, **item}
    return found if isinstance(taxes, list) else found | {"refund_tax": listed}


_TAX = {"id": arg.Argument("integer", "string"), "refund_total": arg.MONEY}
_TAXES = arg.ListArgument(
    items=arg.ObjectArgument("RefundTaxCreate", "Refunded tax of an item.", **_TAX)
)
_ITEM = {"id": arg.INTEGER, "quantity": arg.INTEGER, "refund_total": arg.MONEY}
_REFUNDED = arg.ObjectArgument("RefundLineItemCreate", "Refunded item.", **_ITEM, refund_tax=_TAXES)


class Refunds(Resource):
    """The refunds of an order."""

    noun, kind, result = "refund", "shop_order_refund", order_part_objects.RestRefund
    table, columns, keys = ORDER_REFUNDS, tuple(ORDER_REFUNDS.c), stored_orders.REFUND_KEYS
    path = "/orders/<id:order_id>/refunds"
    summaries = {"list": "List the refunds of an order", "create": "Record a refund of an order"}
    needs = (
        Capability.READ_PRIVATE_SHOP_ORDERS,
        *[Capability.REFUND_SHOP_ORDERS] * 2,
        Capability.DELETE_SHOP_ORDERS,
    )
    viewed = {**arg.ONE, "dp": arg.DECIMALS}
    listed = {
        **lists.collection("Refund", "date", "id", "include", "title", "slug", "modified"),
        "parent": arg.IDS,
        "parent_exclude": arg.IDS,
        "dp": arg.DECIMALS,
        **lists.METADATA_KEYS,
    }
    created = {
        "amount": arg.MONEY,
        "reason": arg.LONG_TEXT,
        "refunded_by": arg.INTEGER,
        "meta_data": arg.METADATA,
        "line_items": arg.ListArgument(_item_list, items=_REFUNDED),
        "api_refund": arg.BOOLEAN,
        "api_restock": arg.BOOLEAN,
    }
    deleted = {"force": arg.Argument("boolean", default=True)}

    def matching(self, call: Call, query: lists.RecordListQuery) -> Matching:
        """Return the refunds of an order, or of all orders."""
        return stored_orders.matching_refunds(query, call.ids.get("order_id"))

    def completed(self, records: list[Object], site: Site) -> list[Object]:
        stored = stored_orders.completed_refunds(records)
        return [*map(order_part_objects.complete_refund, stored)]

    def defaults(self, call: Call) -> Mapping[str, object]:
        return {"dp": 2}

    def shown(self, record_id: int, call: Call) -> Object:
        site = self.site(call)
        if not (records := self.records([record_id], site)):
            raise self.unknown(call, 404)
        if records[0]["order_id"] != call.ids["order_id"]:
            message = "Invalid order refund ID."
            raise RestError("woocommerce_rest_invalid_order_refund_id", message, 404)
        return self.make(records, site, ())[0]

    def view(self, call: Call) -> Object:
        _order(call, "woocommerce_rest_invalid_order_id")
        return super().view(call)

    def lock(self, session: Session, calls: Sequence[Call]) -> None:
        lock_orders(session, [min(call.ids["order_id"], INT64_MAX) for call in calls])

    def write_one(self, call: Call, data: Object) -> int:
        """Record a refund. No provider is called."""
        data = self._refund(call)
        try:
            return int(refunds.create_refund(call.actor, call.ids["order_id"], data)["id"])
        except InvalidInputs as error:
            raise _invalid_refund(error) from None

    def _refund(self, call: Call) -> Object:
        """Return the fields of a new refund as the services take them."""
        order, args = _order(call, "woocommerce_rest_invalid_order_id"), call.args
        if "amount" in args and Decimal(args["amount"] or 0) <= 0:
            message = "Refund amount must be greater than zero."
            raise RestError("woocommerce_rest_invalid_order_refund", message)
        given = call.given
        native: Object = {name: given[name] for name in ("amount", "reason") if name in given}
        known = {item["id"] for name in REFUNDABLE for item in order[name]}
        native["line_items"] = [
            _native_item(each)
            for each in given.get("line_items") or ()
            if (each.get("id") or 0) in known or "amount" not in native
        ]
        data: Object = instance_of(OrderRefundCreate).load(native)
        return data | ({"metadata": given["meta_data"]} if given.get("meta_data") else {})

    def require_deletable(self, call: Call) -> None:
        if call.args.get("force") is False:
            self.require_force(call, f"The {self.kind} does")
        _order(call, "woocommerce_rest_invalid_order_id")

    def remove(self, call: Call, shown: Object) -> None:
        refunds.delete_refund(call.actor, call.ids["order_id"], shown["id"], call.check)


def _native_item(given: Record) -> Object:
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
        native["metadata"] = {order_objects.TAXES: {"total": by_rate}}
    return native


def _invalid_refund(error: InvalidInputs) -> RestError:
    """Return the error of a refund that violates a rule, with what is left."""
    message = str(error.sentence(lambda param: param.removeprefix("order_refund.")))
    if error.code != "shop_api_invalid_order_refund":
        raise error
    is_amount = error.param == "order_refund.amount"
    code = "woocommerce_rest_invalid_order_refund"
    message = f"Invalid refund amount. {message}" if is_amount else message
    return RestError(code, message)


class AllRefunds(Refunds):
    """The refunds of all orders, each with the ID of its order."""

    def completed(self, records: list[Object], site: Site) -> list[Object]:
        completed = super().completed(records, site)
        return [{**each, "parent_id": each["order_id"]} for each in completed]


NOTES, REFUNDS = Notes(), Refunds()
_ALL_REFUNDS = replace(
    REFUNDS.operations["list"],
    call=AllRefunds().page,
    summary="List all refunds",
    name="list_all_refunds",
)
ROUTES = (*NOTES.routes, *REFUNDS.routes, Route("/refunds", {"GET": _ALL_REFUNDS}))
