"""Orders: the table, one order, and its notes (admin 2)."""

from __future__ import annotations

from typing import Any

from flask import Response, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as BaseResponse

from app.admin import frame, history, html, rights, selection
from app.admin.calls import api_request, call, form_headers, loaded_query
from app.admin.frame import AdminBlueprint, NavigationItem, render, see_other
from app.admin.record_actions import add_actions
from app.admin.selection import Action
from app.admin.tables import Column, Filter, Tab, Table, list_query
from app.admin.texts import gettext as _
from app.api.authentication import current_principal
from app.auth.principals import Capability as Cap
from app.catalog import current_catalog
from app.errors import InvalidParams
from app.schemas.queries import OrderListQuery
from app.services.orders import queries

blp = AdminBlueprint("admin_orders", __name__)

NAVIGATION = NavigationItem("Orders", "admin_orders.show_list", "bag", ("list_orders",), 200)

_EDIT = ("shop_api_user_cannot_edit_order", (Cap.EDIT_SHOP_ORDERS,))
_READ = (Cap.READ_PRIVATE_SHOP_ORDERS,)
rights.add_capabilities({
    "count_orders": ("shop_api_user_cannot_read_orders_count", _READ),
    "list_trashed_orders": ("shop_api_user_cannot_read_orders_count", _READ),
    "update_order": _EDIT,
    "restore_order": _EDIT,
    "delete_order": ("shop_api_user_cannot_delete_order", (Cap.DELETE_SHOP_ORDERS,)),
    "list_order_notes": ("shop_api_user_cannot_read_order_notes", _READ),
    "create_order_note": ("shop_api_user_cannot_create_order_note", (Cap.EDIT_SHOP_ORDERS,)),
    "list_order_refunds": ("shop_api_user_cannot_read_order_refunds", _READ),
    "create_order_refund": ("shop_api_user_cannot_create_order_refund", (Cap.EDIT_SHOP_ORDERS,)),
    "delete_order_refund": ("shop_api_user_cannot_delete_order_refund", (Cap.DELETE_SHOP_ORDERS,)),
})  # fmt: skip

TONES = {
    "pending": "warning", "processing": "warning", "on-hold": "warning", "completed": "ok",
    "failed": "danger",
}  # fmt: skip
"""Tone of the badge of a status, by its name. Other statuses are neutral."""

TABS = ("processing", "on-hold")
"""Statuses that usually wait for someone, each with a tab of its own."""

FIELDS = "id,order_number,created_at,status,currency,total,customer_id,billing_address,customer"


def status_badge(status: str) -> Markup:
    """Return the badge of an order status."""
    label = current_catalog().order_statuses.get(status, status)
    return html.badge(_(label), TONES.get(status, ""))


def customer_of(order: dict[str, Any]) -> str:
    """Return the name of the person who ordered, or the e-mail address."""
    billing = order["billing_address"]
    name = f"{billing['first_name']} {billing['last_name']}".strip()
    return name or billing["email"] or order["customer"]["email"] or _("Guest")


def columns(*, trashed: bool = False) -> list[Column]:
    """Return the columns of a table of orders."""

    def number(row: dict[str, Any]) -> Markup | str:
        text = f"#{row['order_number']}"
        return (
            text if trashed else html.link(url_for("admin_orders.show", order_id=row["id"]), text)
        )

    def restore(row: dict[str, Any]) -> Markup | str:
        if not rights.can("restore_order"):
            return ""
        href = url_for("admin_orders.restore", order_id=row["id"])
        return html.action(href, _("Restore"), name=f"#{row['order_number']}")

    found = [
        Column(_("Order"), number, sort="id"),
        Column(_("Customer"), customer_of),
        Column(_("Status"), lambda row: status_badge(row["status"]), on_phone=True),
        Column(_("Ordered"), lambda row: html.time(row["created_at"]), sort="date", is_number=True),
        Column(_("Total"), total_of, sort="total", is_number=True, on_phone=True),
    ]
    return [*found, Column("", restore, on_phone=True)] if trashed else found


def total_of(order: dict[str, Any]) -> str:
    """Return the total of an order in its currency."""
    return html.money(order["total"], order["currency"])


def _statuses() -> dict[str, str]:
    return {name: _(label) for name, label in current_catalog().order_statuses.items()}


def _api_filters(given: dict[str, str]) -> dict[str, Any]:
    """Return the parameters of the API for those of the table."""
    state = given.get("state", "")
    return {
        "status": state if state in TABS else given.get("status", ""),
        "customer_id": given.get("customer_id", ""),
    }


@blp.page("/orders", "list_orders")
def show_list() -> Response:
    """Show the table of orders, or of the trash."""
    given = request.args.to_dict()
    trashed = given.get("state") == "trash"
    name = "list_trashed_orders" if trashed else "list_orders"
    reply = call(name, query=list_query(**_api_filters(given), fields=FIELDS))
    table = Table.of_reply(_("Orders"), columns(trashed=trashed), reply, "orders")
    table.sorts = True
    table.name = lambda row: f"#{row['order_number']}"
    table.tabs = _tabs()
    table.searches = _("Search number, name or address")
    if given.get("state") not in TABS:
        table.filters = [Filter("status", _("Status"), {"": _("All statuses"), **_statuses()})]
    table.selects = rights.can("update_order") or rights.can("delete_order")
    return render(
        "orders.html", title=_("Orders"), table=table, trashed=trashed, statuses=_statuses(),
        customer_id=given.get("customer_id", ""),
    )  # fmt: skip


def _tabs() -> list[Tab]:
    labels = current_catalog().order_statuses
    counts = {
        status: int(call("count_orders", query={"status": status}).body["count"])
        for status in ("", *TABS)
    }
    trashed = call("list_trashed_orders", query={"fields": "id", "limit": 1}).total
    return [
        Tab("", _("All"), counts[""]),
        *(Tab(status, _(labels.get(status, status)), counts[status]) for status in TABS),
        Tab("trash", _("Trash"), trashed),
    ]


def _set_status(order_id: int) -> None:
    status = request.form.get("status", "")
    if status not in current_catalog().order_statuses:
        raise InvalidParams({"status": "must be a status of an order."})
    call("update_order", body={"order": {"status": status}}, order_id=order_id)


ACTIONS = {
    "status": Action("Changing the status", _set_status),
    "trash": Action(
        "Moving orders to the trash", lambda each: call("delete_order", order_id=each), "restore"
    ),
    "restore": Action("Restoring orders", lambda each: call("restore_order", order_id=each)),
}


@blp.action("/orders/selected", "list_orders")
def act() -> Response:
    """Run the chosen action for the selected orders."""
    return selection.act(ACTIONS, _ids_after, "admin_orders.show_list")


def _ids_after(after: int, limit: int) -> list[int]:
    given = selection.shown_query()
    wanted = _api_filters(given) | {"q": given.get("q", "")}
    loaded = loaded_query(OrderListQuery, wanted)
    trashed = given.get("state") == "trash"
    return queries.ids_after(current_principal(), loaded, after, limit, trashed=trashed)


@blp.page("/orders/<int:order_id>", "get_order")
def show(order_id: int) -> Response:
    """Show an order."""
    order = call("get_order", order_id=order_id).body["order"]
    refunds = _list_of("list_order_refunds", "order_refunds", order_id)
    return render(
        "order.html",
        title=_("Order %(number)s", number=f"#{order['order_number']}"),
        order=order,
        state=status_badge(order["status"]),
        statuses=_statuses(),
        name=customer_of(order),
        lines=_lines(order),
        sums=_sums(order, refunds),
        facts=_facts(order),
        addresses=addresses(order),
        notes=_list_of("list_order_notes", "order_notes", order_id),
        refunds=refunds,
        uses=_uses(order_id),
        history=history.history("order", order_id) if rights.can("list_events") else None,
        panels=frame.panels("order", order),
        sent=api_request("get_order", order_id=order_id),
    )


def _list_of(operation: str, key: str, order_id: int) -> list[dict[str, Any]] | None:
    """Return a list below an order, or None if the session may not read it."""
    if not rights.can(operation):
        return None
    found: list[dict[str, Any]] = call(operation, order_id=order_id).body[key]
    return found


def _lines(order: dict[str, Any]) -> Table:
    def name(row: dict[str, Any]) -> Markup:
        more = [f"{meta['label']}: {meta['value']}" for meta in row["meta"]]
        sku = [row["sku"]] if row["sku"] else []
        shown = html.joined([*sku, *more], " · ")
        return Markup('{}<br><small class="muted">{}</small>').format(row["name"], shown)

    def money(key: str) -> Any:
        return lambda row: html.money(row[key], order["currency"])

    found = [
        Column(_("Item"), name),
        Column(_("Price"), money("price"), is_number=True),
        Column(_("Quantity"), lambda row: html.number(row["quantity"]), is_number=True,
               on_phone=True),
        Column(_("Total"), money("total"), is_number=True, on_phone=True),
    ]  # fmt: skip
    return Table(_("Items"), found, order["line_items"])


def _sums(order: dict[str, Any], refunds: list[dict[str, Any]] | None) -> list[tuple[str, str]]:
    """Return the sums of an order by their labels, without those that are zero."""
    currency = order["currency"]
    codes = ", ".join(line["code"] for line in order["coupon_lines"])
    rows = [(_("Subtotal"), order["subtotal"])]
    if codes or float(order["total_discount"]):
        label = _("Discount (%(codes)s)", codes=codes) if codes else _("Discount")
        rows.append((label, f"-{order['total_discount']}"))
    rows += [(line["title"] or _("Fee"), line["total"]) for line in order["fee_lines"]]
    if order["shipping_lines"]:
        label = _("Shipping (%(methods)s)", methods=order["shipping_methods"])
        rows.append((label, order["total_shipping"]))
    if float(order["total_tax"]):
        rows.append((_("Tax"), order["total_tax"]))
    rows.append((_("Total"), order["total"]))
    rows += [(_("Refund"), f"-{refund['amount']}") for refund in refunds or ()]
    return [(label, html.money(amount, currency)) for label, amount in rows]


def _facts(order: dict[str, Any]) -> list[tuple[str, Any]]:
    payment = order["payment_details"]
    rows = [
        (_("Ordered"), html.time(order["created_at"], utc=True)),
        (_("Paid"), order["paid_at"] and html.time(order["paid_at"], utc=True)),
        (_("Completed"), order["completed_at"] and html.time(order["completed_at"], utc=True)),
        (_("Payment"), payment["method_title"] or payment["method_id"]),
        (_("Transaction"), order["transaction_id"]),
        (_("Created by"), order["created_via"]),
        (_("Customer's note"), order["note"]),
    ]
    return [(label, value) for label, value in rows if value]


def addresses(record: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Return the addresses of an order or a customer that are not empty: label and lines."""
    both = [(_("Billing"), record["billing_address"]), (_("Shipping"), record["shipping_address"])]
    return [(label, lines) for label, address in both if (lines := _address_lines(address))]


def _address_lines(address: dict[str, str]) -> list[str]:
    """Return an address in lines, as on a letter, with e-mail address and phone."""
    lines = [
        f"{address['first_name']} {address['last_name']}", address["company"], address["address_1"],
        address["address_2"], f"{address['postcode']} {address['city']}",
        ", ".join(filter(None, (address["state"], address["country"]))),
        address.get("email", ""), address.get("phone", ""),
    ]  # fmt: skip
    return [line.strip() for line in lines if line.strip()]


def _uses(order_id: int) -> list[dict[str, Any]]:
    if not rights.can("list_redemptions"):
        return []
    query = {"order_id": order_id, "limit": 100}
    found: list[dict[str, Any]] = call("list_redemptions", query=query).body["redemptions"]
    return found


@blp.action("/orders/<int:order_id>/status", "update_order")
def change_status(order_id: int) -> BaseResponse:
    """Change the status of an order."""
    body = {"order": {"status": request.form.get("status", "")}}
    call("update_order", body=body, headers=form_headers(), order_id=order_id)
    return see_other("admin_orders.show", order_id=order_id, done="saved")


@blp.action("/orders/<int:order_id>/notes", "create_order_note")
def add_note(order_id: int) -> BaseResponse:
    """Add a note to an order."""
    text = request.form.get("note", "").replace("\r\n", "\n").strip()
    note = {"note": text, "customer_note": request.form.get("customer_note") == "true"}
    body = {"order_note": note}
    call("create_order_note", body=body, headers=form_headers(), order_id=order_id)
    return see_other("admin_orders.show", order_id=order_id, done="note")


add_actions(blp, "order", has_trash=True)
