"""Orders: the table, forms, one order, its notes and refunds, and several at once (admin 2)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial

import orjson
from flask import request
from markupsafe import Markup

from app.api.authentication import current_principal
from app.api.representations import EVENT, ORDER, TRASHED_ORDER, OrderSerializer
from app.catalog import current_catalog
from app.conversions.numbers import whole_number
from app.plugins.admin import history, html
from app.plugins.admin.calls import Record, Reply, call, can
from app.plugins.admin.form_fields import CHOICES, FieldSpec, line_specs, specs_of, status_labels
from app.plugins.admin.form_pages import add_action
from app.plugins.admin.nouns import Listing, Noun
from app.plugins.admin.pages import Button, call_if_allowed, person_buttons
from app.plugins.admin.selections import Action
from app.plugins.admin.tables import (
    CsvColumns,
    Tab,
    Table,
    created_between,
)
from app.plugins.admin.texts import gettext as _
from app.schemas.orders.input import OrderCreate, OrderUpdate
from app.schemas.orders.item_input import CouponLineCreate, LineItemCreate, ShippingLineCreate
from app.schemas.orders.note import OrderNoteCreate
from app.schemas.queries import OrderListQuery
from app.services.orders import queries
from app.services.orders.columns import REFUNDED
from app.services.orders.queries import OrderQuery, events_of_children
from app.services.orders.writes import rights_to_change

TONES = {
    "pending": "warning",
    "processing": "warning",
    "on-hold": "warning",
    "completed": "ok",
    "failed": "danger",
}
"""Tone of the badge of a status, by its name. Other statuses are neutral."""

TABS = ("processing", "on-hold")
"""Statuses that usually wait for someone, each with a tab of its own."""

NEW_LINES = 3
"""Empty lines for new items in a form."""

FIELDS = "id,order_number,created_at,status,currency,total,customer_id,billing_address,customer"


def _status_field(current: str = "") -> list[FieldSpec]:
    """Return the field of the status, which offers the current one and those that can be set."""

    def offered() -> dict[str, str]:
        can_be_set = CHOICES["order_statuses"]()
        labels = status_labels().items()
        return {name: label for name, label in labels if name in can_be_set or name == current}

    return [FieldSpec("status", _("Status"), "select", choices=offered)]


class OrderPages(Noun):
    """The orders of the shop."""

    name = resource = "order"
    title, navigation, create_label = "Orders", ("bag", 200), "Create order"
    create_schema, update_schema = OrderCreate, OrderUpdate
    list_schema, query_type, queries = OrderListQuery, OrderQuery, queries
    has_trash, has_csv = True, True

    def name_of(self, record: Record) -> str:
        return f"#{record['order_number']}"

    def customer_of(self, record: Record) -> str:
        """Return the name of the person who ordered, the e-mail address, or the account's ID."""
        billing = record["billing_address"]
        account = record.get("customer") or billing
        names = (f"{each['first_name']} {each['last_name']}".strip() for each in (billing, account))
        name = next(filter(None, names), "") or billing["email"] or account["email"]
        return name or (f"#{number}" if (number := record["customer_id"]) else _("Guest"))

    def title_of(self, record: Record) -> str:
        return _("Order %(number)s", number=self.name_of(record))

    def badge(self, record: Record) -> Markup:
        status = record["status"]
        label = current_catalog().order_statuses.get(status)
        return html.badge(_(label or status), TONES.get(status, ""))

    def csv_columns(self, *, trashed: bool) -> CsvColumns:
        billing = {
            _("E-mail address"): "email",
            _("Phone"): "phone",
            _("Street"): "address_1",
            _("Postcode"): "postcode",
            _("City"): "city",
            _("Country"): "country",
        }
        return {
            _("Order"): lambda row: row["order_number"],
            _("Customer"): self.customer_of,
            _("Status"): lambda row: self.badge(row).striptags(),
            _("Ordered"): lambda row: html.sortable_time(row["created_at"]),
            _("Total"): lambda row: row["total"],
            _("Currency"): lambda row: row["currency"],
            **{label: partial(_billed, name) for label, name in billing.items()},
        }

    def listing(self, query: Record, *, trashed: bool) -> Listing:
        serializer = TRASHED_ORDER if trashed else ORDER
        return OrderSerializer(query, serializer), queries.list_orders

    def panel(self, query: Mapping[str, object]) -> Table | None:
        """Return the latest orders for a panel, or None if the session may not read them.

        Args:
            query: parameters of the API.
        """
        reply = call_if_allowed("list_orders", query={"limit": 10, "fields": FIELDS, **query})
        return Table.of_reply(_("Orders"), reply) if reply else None

    def filters(self) -> Sequence[str]:
        """Return the filters, without that of a status if a tab has chosen it."""
        others = "from", "to", "total_min", "total_max"
        return others if request.args.get("state") in TABS else ("status", *others)

    def query(self, given: Mapping[str, str]) -> dict[str, object]:
        state = given.get("state", "")
        status = state if state in TABS else given.get("status", "")
        same = ("customer_id", "total_min", "total_max")
        found = {name: given.get(name, "") for name in same} | created_between(given)
        return {**found, "status": status, "fields": FIELDS}

    def tabs(self, reply: Reply) -> list[Tab]:
        labels = {
            "": _("All"),
            **{name: status_labels().get(name, name) for name in TABS},
        }
        if request.args.get("q"):  # to search for each status takes too long
            return [(*each, None) for each in (*labels.items(), ("trash", _("Trash")))]
        of = self.query(request.args)
        del of["fields"], of["status"]
        found = [
            (name, label, int(call("count_orders", query=of | {"status": name}).content))
            for name, label in labels.items()
        ]
        few = {"fields": "id", "limit": 1}
        trashed = call("list_trashed_orders", query=of | few).total
        return [*found, ("trash", _("Trash"), trashed)]

    def form_specs(self, record: Record | None, *, is_new: bool) -> Sequence[FieldSpec]:
        """Return the fields of an order, of its items, and of empty lines for new items.

        They are those that the session may change: status and note without ``edit_shop_orders``.
        """
        fields = specs_of(self.create_schema if is_new else self.update_schema)
        may_change = current_principal().can
        if not may_change(*rights_to_change(["line_items"])):
            fields = [each for each in fields if may_change(*rights_to_change([each.name]))]
            return self._with_status(fields, record)
        names = {each["id"]: each["name"] for each in record["line_items"]} if record else {}
        for name, text in ({} if record else request.form).items():
            if found := re.fullmatch(r"line_items\.([0-9]{1,18})\.name", name):
                names[int(found[1])] = text
        items = line_specs(LineItemCreate, "line_items", names, are_ids=True)
        # The total of an item follows its quantity, and its price is that of a piece of the total.
        items = [each for each in items if not each.name.endswith((".price", ".sku"))]
        numbers = range(-1, -1 - NEW_LINES, -1)
        added = {number: _("New item %(number)s", number=-number) for number in numbers}
        lines = line_specs(LineItemCreate, "line_items", added)
        items += [each for each in lines if not each.name.endswith(".total")]
        if is_new:
            items += line_specs(CouponLineCreate, "coupon_lines", {-1: _("Coupon")})
            items += line_specs(ShippingLineCreate, "shipping_lines", {-1: _("Shipping")})
        fields = self._with_status(fields, record)
        addresses = [each for each in fields if "." in each.name]
        return [*(each for each in fields if each not in addresses), *items, *addresses]

    def _with_status(self, fields: Sequence[FieldSpec], record: Record | None) -> list[FieldSpec]:
        """Return fields, of which that of the status also offers the one of the record."""
        (status,) = _status_field(record["status"] if record else "")
        return [
            replace(each, choices=status.choices) if each.name == "status" else each
            for each in fields
        ]

    def new_values(self) -> Mapping[str, object]:
        """Return the addresses of the customer whose page leads to the form."""
        number = whole_number(request.args.get("customer_id", ""))
        if not number or not can("get_customer"):
            return {}
        customer = call("get_customer", customer_id=number).content
        addresses = {name: customer[name] for name in ("billing_address", "shipping_address")}
        return {"customer_id": number, **addresses}

    def body(self, values: Record) -> Record:
        for line in values.get("shipping_lines", ()):
            line["method_id"] = "manual"
        return values | {"created_via": "admin"}

    def compared(self) -> list[FieldSpec]:
        total = FieldSpec("total", _("Total"), "text")
        return [*_status_field(REFUNDED), total, FieldSpec("note", _("Note"), "text")]

    def actions(self) -> dict[str, Action]:
        title, spec = _("Changing the status"), _status_field()[0]
        status = Action(self.name, _("Change status"), title, "update_order", spec=spec)
        return {"status": status, **super().actions()}

    def values(self, record: Record) -> dict[str, object]:
        number, customer = record["id"], record["customer_id"]
        refunds = call_if_allowed("list_order_refunds", order_id=number)
        refunded = refunds.content if refunds else []
        left = Decimal(record["total"]) - sum(Decimal(each["amount"]) for each in refunded)
        notes = call_if_allowed("list_order_notes", order_id=number)
        note_form = self.url("add_note", number), specs_of(OrderNoteCreate), _("Add note")
        shown = {"status": record["status"]}
        status = {"fields": shown, "shown": shown, "spec": _status_field(record["status"])[0]}
        data, erase = ([], []) if customer else person_buttons(order_id=number)
        return {
            "dangers": erase,
            "buttons": [
                *data,
                *([self.button(_("Refund"), "refund", record)] if left > 0 else []),
                self.button(_("Edit"), "edit", record),
                self.button(_("Change status"), "change_status", record, tone="primary", **status),
            ],
            "lines": Table(_("Items"), record["line_items"]),
            "refunded": refunded,
            "left": left,
            "uses": coupon_uses({"order_id": number}),
            "notes": notes and notes.content[::-1],
            "note_form": note_form if can("create_order_note") else None,
            "refunds": self._refunds(refunds, record),
        }

    def with_children(self, record: Record, events: list[Record]) -> list[Record]:
        """Return the events of an order with those of its notes and refunds, newest first."""
        serializer = EVENT.only(dict.fromkeys(history.FIELDS.split(",")))
        requests = {each["request_id"] for each in events} - {None}
        since = events[-1]["created_at"] if len(events) == history.LIMIT else ""
        found = events_of_children(record["id"], requests, serializer.columns)
        rows = orjson.loads(orjson.dumps(serializer.rows(found)))  # which have JSON text
        children = [each for each in rows if each["created_at"] >= since]
        amounts: dict[int, str | None] = {}  # a deletion has none, so the first event says it
        for refund in (each["data"].get("order_refund") for each in children):
            if refund:
                refund["amount"] = amounts.setdefault(refund["id"], refund.get("amount"))
        refunded = {each["request_id"] for each in children if each["resource"] == "order_refund"}
        own = [  # without those that only repeat a refund
            each
            for each in events
            if each["request_id"] not in refunded
            or (each["changes"] or {}).get("after", {}).keys() - {"total_refunded"}
        ]
        return sorted([*own, *children], key=lambda each: -each["id"])

    def _refunds(self, refunds: Reply | None, order: Record) -> Table | None:
        if not (refunds and refunds.content):
            return None

        def delete(row: Record) -> list[Button]:
            path = {"order_id": order["id"], "refund_id": row["id"]}
            question = _(
                "Delete the refund of %(amount)s?",
                amount=html.money(row["amount"], order["currency"]),
            )
            name = _("refund %(id)s", id=row["id"])
            endpoint = self.endpoint("delete_refund")
            shown = {"amount": row["amount"]}
            return [Button(_("Delete"), endpoint, path, name=name, question=question, shown=shown)]

        table = Table.of_reply(_("Refunds"), refunds)
        table.buttons = delete
        return table


def _billed(name: str, order: Record) -> object:
    return order["billing_address"][name]


def coupon_uses(query: Mapping[str, object]) -> list[Record] | None:
    """Return the uses of coupons of an order or a customer, or None if the key cannot read them."""
    reply = call_if_allowed("list_redemptions", query={"limit": 100, **query})
    return reply.content if reply else None


ORDERS = OrderPages()
blp = ORDERS.blp
add_action(
    ORDERS,
    "change_status",
    "update_order",
    "saved",
    path="status",
    key="order",
    specs=_status_field,
)
add_action(
    ORDERS,
    "add_note",
    "create_order_note",
    "note",
    path="notes",
    key="order_note",
    specs=lambda: specs_of(OrderNoteCreate),
)
