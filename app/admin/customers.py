"""Customers: the table, one customer, and the form (admin 2)."""

from __future__ import annotations

from typing import Any

from flask import Response, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as BaseResponse

from app.admin import frame, history, html, orders, rights
from app.admin.calls import api_request, call
from app.admin.frame import AdminBlueprint, NavigationItem, render
from app.admin.record_actions import add_actions
from app.admin.record_forms import RecordForms
from app.admin.tables import Column, Filter, Table, list_query
from app.admin.texts import gettext as _
from app.auth.principals import ROLES
from app.auth.principals import Capability as Cap
from app.schemas.customers import CustomerCreate, CustomerUpdate

blp = AdminBlueprint("admin_customers", __name__)

NAVIGATION = NavigationItem(
    "Customers", "admin_customers.show_list", "users", ("list_customers",), 300
)  # fmt: skip

rights.add_capabilities({
    "count_customers": ("shop_api_user_cannot_read_customers_count", (Cap.LIST_USERS,)),
    "get_customer": ("shop_api_user_cannot_read_customer", (Cap.LIST_USERS,)),
    "create_customer": ("shop_api_user_cannot_create_customer", (Cap.CREATE_USERS,)),
    "update_customer": ("shop_api_user_cannot_edit_customer", (Cap.EDIT_USERS,)),
    "delete_customer": ("shop_api_user_cannot_delete_customer", (Cap.DELETE_USERS,)),
    "list_customer_orders": ("shop_api_user_cannot_read_customer", (Cap.LIST_USERS,)),
    "list_customer_downloads": ("shop_api_user_cannot_read_customer", (Cap.LIST_USERS,)),
})  # fmt: skip

FIELDS = "id,email,first_name,last_name,username,role,orders_count,total_spent,last_order_date"
MAX_ORDERS = 10
"""Number of orders on the page of a customer."""


def name_of(customer: dict[str, Any]) -> str:
    """Return the name of a customer, or the username."""
    return f"{customer['first_name']} {customer['last_name']}".strip() or str(customer["username"])


def _columns() -> list[Column]:
    def name(row: dict[str, Any]) -> Markup:
        return html.link(url_for("admin_customers.show", customer_id=row["id"]), name_of(row))

    return [
        Column(_("Name"), name, sort="name"),
        Column(_("E-mail address"), lambda row: row["email"] or html.NONE, sort="email"),
        Column(_("Last order"), lambda row: html.time(row["last_order_date"]), is_number=True),
        Column(_("Orders"), lambda row: html.number(row["orders_count"]), sort="orders_count",
               is_number=True, on_phone=True),
        Column(_("Spent"), lambda row: html.money(row["total_spent"]), sort="total_spent",
               is_number=True, on_phone=True),
    ]  # fmt: skip


@blp.page("/customers", "list_customers")
def show_list() -> Response:
    """Show the table of customers, newest first."""
    order = {} if request.args.get("sort") else {"order": "desc"}
    wanted = list_query(role=request.args.get("role", ""), fields=FIELDS) | order
    table = Table.of_reply(_("Customers"), _columns(), call("list_customers", query=wanted),
                           "customers")  # fmt: skip
    table.sorts = True
    table.searches = _("Search name or e-mail address")
    roles = {name: name.replace("_", " ").capitalize() for name in sorted(ROLES)}
    choices = {"": _("Customers"), "all": _("All accounts"), **roles}
    choices.pop("customer")
    table.filters = [Filter("role", _("Role"), choices)]
    return render("customers.html", title=_("Customers"), table=table)


@blp.page("/customers/<int:customer_id>", "get_customer")
def show(customer_id: int) -> Response:
    """Show a customer."""
    query = {"fields": "", "meta": "true"}
    customer = call("get_customer", query=query, customer_id=customer_id).body["customer"]
    own_orders = None
    if rights.can("list_orders"):
        wanted = {"customer_id": customer_id, "limit": MAX_ORDERS, "fields": orders.FIELDS}
        reply = call("list_orders", query=wanted)
        own_orders = Table.of_reply(_("Orders"), _order_columns(), reply, "orders")
    return render(
        "customer.html",
        title=name_of(customer),
        customer=customer,
        orders=own_orders,
        uses=_uses(customer_id),
        downloads=_downloads(customer_id),
        facts=_facts(customer),
        addresses=orders.addresses(customer),
        metadata=[(key, history.shown(value)) for key, value in customer["metadata"].items()],
        history=history.history("customer", customer_id) if rights.can("list_events") else None,
        panels=frame.panels("customer", customer),
        sent=api_request("get_customer", customer_id=customer_id),
    )  # fmt: skip


def _order_columns() -> list[Column]:
    return [column for column in orders.columns() if column.label != _("Customer")]


def _uses(customer_id: int) -> list[dict[str, Any]] | None:
    """Return the latest coupon uses of a customer, or None if the session may not read them."""
    if not rights.can("list_redemptions"):
        return None
    query = {"customer_id": customer_id, "limit": MAX_ORDERS}
    found: list[dict[str, Any]] = call("list_redemptions", query=query).body["redemptions"]
    return found


def _downloads(customer_id: int) -> list[dict[str, Any]]:
    if not rights.can("list_customer_downloads"):
        return []
    reply = call("list_customer_downloads", customer_id=customer_id)
    return list(reply.body["downloads"].values())


def _facts(customer: dict[str, Any]) -> list[tuple[str, Any]]:
    rows = [
        (_("E-mail address"), customer["email"]),
        (_("Username"), customer["username"]),
        (_("Role"), (customer["role"] or "").replace("_", " ").capitalize()),
        (_("Registered"), html.time(customer["created_at"], utc=True)),
    ]
    return [(label, value) for label, value in rows if value]


FORMS = RecordForms(
    "customer", blp.name, CustomerCreate, CustomerUpdate, "Create customer", "Customers", "email"
)


@blp.page("/customers/new", "create_customer", methods=("GET", "POST"))
def create() -> Response | BaseResponse:
    """Show the form of a new customer, or create the account."""
    return FORMS.create({})


# The orders of a deleted customer stay, as orders of a guest.
FORMS.add_edit(blp)
add_actions(blp, "customer", has_trash=False)
