"""Orders: the table, one order, its notes and refunds, and several at once (admin 2)."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import orjson
from flask import request
from markupsafe import Markup

from app.api.representations import EVENT
from app.catalog import current_catalog
from app.plugins.admin import history, html
from app.plugins.admin.calls import Reply, call, can
from app.plugins.admin.forms import CHOICES, FieldSpec, specs_of
from app.plugins.admin.nouns import NOUNS, Noun, Record
from app.plugins.admin.nouns.coupons import COUPONS, USE_STATES
from app.plugins.admin.pages import Button, Parts, Section, call_if_allowed, person_buttons
from app.plugins.admin.selections import Action
from app.plugins.admin.tables import Column, Filter, Tab, Table
from app.plugins.admin.texts import gettext as _
from app.plugins.admin.texts import ngettext
from app.schemas.orders.note import OrderNoteCreate
from app.schemas.queries import OrderListQuery
from app.services.orders import queries
from app.services.orders.children import events_of_children

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

FIELDS = "id,order_number,created_at,status,currency,total,customer_id,billing_address,customer"


def customer_of(order: Record) -> str:
    """Return the name of the person who ordered, or the e-mail address."""
    billing = order["billing_address"]
    account = order.get("customer") or billing
    names = (f"{each['first_name']} {each['last_name']}".strip() for each in (billing, account))
    name = next(filter(None, names), "") or billing["email"] or account["email"]
    return name or ("" if order["customer_id"] else _("Guest"))


def _status_field() -> list[FieldSpec]:
    return [FieldSpec("status", _("Status"), "select", choices=CHOICES["order_statuses"])]


class OrderPages(Noun):
    """The orders of the shop."""

    name = resource = "order"
    title, navigation = "Orders", ("bag", 200)
    empty = (
        "No orders yet",
        "Orders appear here when your shop sends them to the API, or after an import.",
        "swagger_ui.show",
        "Open the API documentation",
    )
    list_schema, queries = OrderListQuery, queries
    has_trash, searches = True, "Search number, name or address"

    def name_of(self, record: Record) -> str:
        return f"#{record['order_number']}"

    def title_of(self, record: Record) -> str:
        return _("Order %(number)s", number=self.name_of(record))

    def badge(self, record: Record) -> Markup:
        status = record["status"]
        label = current_catalog().order_statuses.get(status)
        return html.badge(_(label or status), TONES.get(status, ""))

    def columns(self, *, trashed: bool = False) -> list[Column]:
        def total(row: Record) -> str:
            return html.money(row["total"], row["currency"])

        return [
            Column(_("Order"), self.name_of if trashed else self.link, sort="id"),
            Column(_("Customer"), customer_of),
            Column(_("Status"), self.badge, on_phone=True),
            Column.of(_("Ordered"), "created_at", html.time, sort="date"),
            Column(_("Total"), total, sort="total", is_number=True, on_phone=True),
        ]

    def panel(self, query: Mapping[str, Any], without: str) -> Table | None:
        """Return the latest orders for a panel, or None if the session may not read them.

        Args:
            query: parameters of the API.
            without: the column that the panel leaves out.
        """
        columns = [column for column in self.columns() if column.label != without]
        reply = call_if_allowed("list_orders", query={"limit": 10, "fields": FIELDS, **query})
        return Table.of_reply(_("Orders"), columns, reply) if reply else None

    def filters(self) -> list[Filter]:
        """Return the choice of a status, unless a tab has chosen it."""
        if request.args.get("state") in TABS:
            return []
        return [Filter("status", _("Status"), _("All statuses"), CHOICES["order_statuses"]())]

    def query(self, given: Mapping[str, str]) -> dict[str, Any]:
        state = given.get("state", "")
        status = state if state in TABS else given.get("status", "")
        return {"status": status, "customer_id": given.get("customer_id", ""), "fields": FIELDS}

    def list_notice(self) -> str:
        number = request.args.get("customer_id", "")
        return _("Only orders of customer %(id)s.", id=number) if number else ""

    def tabs(self, reply: Reply) -> list[Tab]:
        labels = {
            "": _("All"),
            **{name: CHOICES["order_statuses"]().get(name, name) for name in TABS},
        }
        if request.args.get("q"):  # to search for each status takes too long
            return [*(Tab(*each) for each in labels.items()), Tab("trash", _("Trash"))]
        of = {"customer_id": request.args.get("customer_id", "")}
        found = [
            Tab(name, label, int(call("count_orders", query=of | {"status": name}).content))
            for name, label in labels.items()
        ]
        few = {"fields": "id", "limit": 1}
        trashed = call("list_trashed_orders", query=of | few).total
        return [*found, Tab("trash", _("Trash"), trashed)]

    def compared(self) -> list[FieldSpec]:
        total = FieldSpec("total", _("Total"), "text")
        return [*_status_field(), total, FieldSpec("note", _("Note"), "text")]

    def actions(self) -> dict[str, Action]:
        title, spec = _("Changing the status"), _status_field()[0]
        status = Action(self.name, _("Change status"), title, "update_order", spec=spec)
        return {"status": status, **super().actions()}

    def parts(self, record: Record) -> Parts:
        number, currency = record["id"], record["currency"]
        refunds = call_if_allowed("list_order_refunds", order_id=number)
        refunded = refunds.content if refunds else []
        left = Decimal(record["total"]) - sum(Decimal(each["amount"]) for each in refunded)
        items = Section(
            _("Items"),
            "rows",
            _lines(record),
            _("The order has no items."),
            after=_sums(record, refunded, left),
        )
        uses = uses_section(_("Coupon uses"), {"order_id": number}, currency)
        shown = {"status": record["status"]}
        status = {"fields": shown, "shown": shown, "spec": _status_field()[0]}
        is_guest = not record["customer_id"]
        data, erase = person_buttons(order_id=number) if is_guest else ([], [])
        return Parts(
            dangers=erase,
            buttons=[
                *data,
                *([self.button(_("Refund"), "refund", record)] if left > 0 else []),
                self.button(_("Change status"), "change_status", record, tone="primary", **status),
            ],
            main=[
                items,
                *([uses] if uses.content else []),
                self._notes(number),
                self._refunds(refunds, record),
            ],
            side=self._side(record),
        )

    def with_children(self, record: Record, events: list[Record]) -> list[Record]:
        """Return the events of an order with those of its notes and refunds, newest first."""
        serializer = EVENT.only(dict.fromkeys(history.FIELDS.split(",")))
        requests = {each["request_id"] for each in events} - {None}
        since = events[-1]["created_at"] if len(events) == history.LIMIT else ""
        found = events_of_children(record["id"], requests, serializer.columns)
        rows = orjson.loads(orjson.dumps(serializer.rows(found)))  # which have JSON text
        children = [each for each in rows if each["created_at"] >= since]
        amounts: dict[int, str] = {}  # a deletion has none
        for refund in (each["data"].get("order_refund") for each in children):
            if refund:
                amount = html.money(refund.get("amount"), record["currency"])
                refund["amount"] = amounts.setdefault(refund["id"], amount)
        refunded = {each["request_id"] for each in children if each["resource"] == "order_refund"}
        own = [  # without those that only repeat a refund
            each
            for each in events
            if each["request_id"] not in refunded
            or (each["changes"] or {}).get("after", {}).keys() - {"total_refunded"}
        ]
        return sorted([*own, *children], key=lambda each: -each["id"])

    def _notes(self, order_id: int) -> Section:
        notes = call_if_allowed("list_order_notes", order_id=order_id)
        shown = [_note(note) for note in reversed(notes.content)] if notes else None
        add = self.url("add_note", order_id), specs_of(OrderNoteCreate), _("Add note")
        form = add if can("create_order_note") else None
        return Section(
            _("Notes"),
            "items",
            shown,
            _("No notes yet."),
            _("orders' notes"),
            form=form,
            id="notes",
        )

    def _refunds(self, refunds: Reply | None, order: Record) -> Section:
        def money(amount: str) -> str:
            return html.money(amount, order["currency"])

        def delete(row: Record) -> list[Button]:
            path = {"order_id": order["id"], "refund_id": row["id"]}
            question = _("Delete the refund of %(amount)s?", amount=money(row["amount"]))
            name = _("refund %(id)s", id=row["id"])
            endpoint = self.endpoint("delete_refund")
            shown = {"amount": row["amount"]}
            return [Button(_("Delete"), endpoint, path, name=name, question=question, shown=shown)]

        columns = [
            Column(_("Amount"), lambda row: money(row["amount"])),
            Column(_("Reason"), lambda row: row["reason"] or html.NONE, on_phone=True),
            Column.of(_("Time"), "created_at", html.time, on_phone=True),
        ]
        title, table = _("Refunds"), None
        if refunds and refunds.content:
            table = Table.of_reply(title, columns, refunds)
            table.buttons = delete
        return Section(title, "rows", table or (), id="refunds")

    def _side(self, record: Record) -> list[Section]:
        payment, name = record["payment_details"], customer_of(record)
        who: Any = Markup("<p>{} {}</p>").format(name, html.badge(_("Guest")))
        if record["customer_id"]:
            of = record["customer"]
            orders = ngettext("%(num)s order", "%(num)s orders", of["orders_count"])
            spent = _("%(total)s spent", total=html.money(of["total_spent"]))
            link = NOUNS["customer"].link_to(record["customer_id"], name)
            who = Markup('<p>{}</p><p class="muted">{}, {}</p>').format(link, orders, spent)
        times = {"created_at": _("Ordered"), "paid_at": _("Paid"), "completed_at": _("Completed")}
        facts = [
            *(
                (label, record[key] and html.time(record[key], utc=True))
                for key, label in times.items()
            ),
            (_("Payment"), payment["method_title"] or payment["method_id"]),
            (_("Transaction"), record["transaction_id"]),
            (_("Created by"), record["created_via"]),
            (_("Customer's note"), record["note"]),
        ]
        return [
            Section(_("Customer"), "plain", who),
            Section(_("Details"), "facts", facts),
            *address_sections(record),
        ]


def _lines(order: Record) -> Table:
    def name(row: Record) -> Markup:
        more = [f"{meta['label']}: {meta['value']}" for meta in row["meta"]]
        shown = html.joined(filter(None, [row["sku"], *more]), " · ")
        return Markup('{}<br><small class="muted">{}</small>').format(row["name"], shown)

    def money(amount: Any) -> str:
        return html.money(amount, order["currency"])

    found = [
        Column(_("Item"), name),
        Column.of(_("Price"), "price", money),
        Column.of(_("Quantity"), "quantity", on_phone=True),
        Column.of(_("Total"), "total", money, on_phone=True),
    ]
    return Table(_("Items"), found, order["line_items"])


def _sums(order: Record, refunds: Sequence[Record], left: Decimal) -> Markup:
    """Return the sums of an order by their labels, without those that are zero."""
    codes = ", ".join(line["code"] for line in order["coupon_lines"])
    rows = [("", _("Subtotal"), order["subtotal"])]
    if codes or float(order["total_discount"]):
        label = _("Discount (%(codes)s)", codes=codes) if codes else _("Discount")
        rows.append(("", label, f"-{order['total_discount']}"))
    rows += [("", line["title"] or _("Fee"), line["total"]) for line in order["fee_lines"]]
    if order["shipping_lines"]:
        label = _("Shipping (%(methods)s)", methods=order["shipping_methods"])
        rows.append(("", label, order["total_shipping"]))
    if float(order["total_tax"]):
        rows.append(("", _("Tax"), order["total_tax"]))
    rows.append(("total", _("Total"), order["total"]))
    rows += [("", _("Refund"), f"-{refund['amount']}") for refund in refunds]
    if refunds:
        rows.append(("total", _("Total after refunds"), left))
    each = Markup("").join(
        Markup('<div class="{}"><dt>{}</dt><dd>{}</dd></div>').format(
            kind, label, html.money(amount, order["currency"])
        )
        for kind, label, amount in rows
    )
    return Markup('<dl class="sums">{}</dl>').format(each)


def _note(note: Record) -> Markup:
    return Markup('<p class="text">{}</p><small class="muted">{}{}</small>').format(
        note["note"],
        html.time(note["created_at"]),
        " · " + _("for the customer") if note["customer_note"] else "",
    )


def uses_section(title: str, query: Mapping[str, Any], currency: str | None = None) -> Section:
    """Return the uses of coupons of an order or a customer."""
    reply = call_if_allowed("list_redemptions", query={"limit": 100, **query})
    if reply is None:
        return Section(title, "items", None, what=_("redemptions"))
    items = []
    for use in reply.content:
        code = COUPONS.link_to(use["coupon_id"], use["code"])
        state = html.state_badge(USE_STATES, use["status"])
        when = [] if currency else [html.time(use["created_at"])]
        amount = html.joined([html.money(use["amount"], currency), *when], " · ")
        items.append(html.pair(html.joined([code, state], " "), amount))
    return Section(title, "items", items, _("This customer has not used a coupon yet."))


def address_sections(record: Record) -> list[Section]:
    """Return the addresses of an order or a customer that are not empty, as on a letter."""
    both = {_("Billing"): record["billing_address"], _("Shipping"): record["shipping_address"]}
    return [
        Section(label, "plain", Markup("<address>{}</address>").format(Markup("<br>").join(lines)))
        for label, address in both.items()
        if (lines := _address_lines(address))
    ]


def _address_lines(address: Mapping[str, str]) -> list[str]:
    lines = [
        f"{address['first_name']} {address['last_name']}",
        address["company"],
        address["address_1"],
        address["address_2"],
        f"{address['postcode']} {address['city']}",
        ", ".join(filter(None, (address["state"], address["country"]))),
        address.get("email", ""),
        address.get("phone", ""),
    ]
    return [line.strip() for line in lines if line.strip()]


ORDERS = OrderPages()
blp = ORDERS.blp
ORDERS.runs(
    "change_status", "update_order", "saved", path="status", key="order", specs=_status_field
)
ORDERS.runs(
    "add_note",
    "create_order_note",
    "note",
    path="notes",
    key="order_note",
    specs=lambda: specs_of(OrderNoteCreate),
)
