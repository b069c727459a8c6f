"""Customers: the table, one customer, and the form (admin 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import request

from app.admin import history, html, rights
from app.admin.calls import call
from app.admin.nouns import Noun, Record
from app.admin.nouns.orders import ORDERS, address_sections, uses_section
from app.admin.pages import Button, Section, Tile, filled
from app.admin.tables import Column, Filter
from app.admin.texts import gettext as _
from app.auth.principals import ROLES
from app.schemas.customers import CustomerCreate, CustomerUpdate

FIELDS = "id,email,first_name,last_name,username,role,orders_count,total_spent,last_order_date"
MAX_USES = 10
"""Number of uses of coupons on the page of a customer."""


class Customers(Noun):
    """The customers of the shop. The orders of a deleted one stay, as orders of a guest."""

    name = resource = "customer"
    title, navigation, create_label = "Customers", ("users", 300), "Create customer"
    empty = (
        "No customers yet",
        "A customer is an account of your shop, with addresses and orders. Create or import one.",
    )
    named_by = ("first_name", "last_name")
    create_schema, update_schema = CustomerCreate, CustomerUpdate
    searches = "Search name or e-mail address"
    delete_note = "The account and its metadata are deleted. Its orders stay, with their addresses."

    def name_of(self, record: Record) -> str:
        return f"{record['first_name']} {record['last_name']}".strip() or str(record["username"])

    def columns(self, *, trashed: bool) -> list[Column]:
        return [
            Column(_("Name"), self.link, sort="name"),
            Column(_("E-mail address"), lambda row: row["email"] or html.NONE, sort="email"),
            Column(_("Last order"), lambda row: html.time(row["last_order_date"]), is_number=True),
            Column(_("Orders"), lambda row: html.number(row["orders_count"]), sort="orders_count",
                   is_number=True, on_phone=True),
            Column(_("Spent"), lambda row: html.money(row["total_spent"]), sort="total_spent",
                   is_number=True, on_phone=True),
        ]  # fmt: skip

    def filters(self) -> list[Filter]:
        roles = {name: html.words(name) for name in sorted(ROLES) if name != "customer"}
        choices = {"": _("Customers"), "all": _("All accounts"), **roles}
        return [Filter("role", _("Role"), choices)]

    def query(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Return the parameters of the API for those of the table, by default newest first."""
        order = {} if request.args.get("sort") else {"order": "desc"}
        return super().query(given) | {"fields": FIELDS} | order

    def read(self, record_id: int) -> tuple[Record, str]:
        """Return a customer with metadata for the page, or without for the form."""
        if request.endpoint != f"{self.blp.name}.show":
            return super().read(record_id)
        reply = call("get_customer", query={"meta": "true"}, customer_id=record_id)
        return reply.body["customer"], ""

    def buttons(self, record: Record) -> list[Button]:
        href = self.url("edit", record["id"])
        return [Button(_("Edit"), href, ("update_customer",), tone="primary")]

    def tiles(self, record: Record) -> list[Tile]:
        return [
            Tile(_("Orders"), html.number(record["orders_count"])),
            Tile(_("Spent"), html.money(record["total_spent"])),
            Tile(_("Last order"), html.time(record["last_order_date"])),
        ]

    def main(self, record: Record) -> list[Section]:
        number = record["id"]
        orders, link = ORDERS.panel({"customer_id": number}, _("Customer")), None
        if orders and orders.total > len(orders.rows):
            text = _("All %(total)s orders", total=html.number(orders.total))
            link = ORDERS.url("show_list", customer_id=number), text
        none = _("This customer has not ordered yet.")
        found = [
            Section(_("Orders"), "rows", orders, none, _("orders"), link=link),
            uses_section(_("Coupons used"), {"customer_id": number, "limit": MAX_USES}),
        ]
        if rights.can("list_customer_downloads"):
            reply = call("list_customer_downloads", customer_id=number)
            files = [_download(each) for each in reply.body["downloads"].values()]
            found += [Section(_("Downloads"), "items", files)] if files else []
        return found

    def side(self, record: Record) -> list[Section]:
        account = [
            (_("E-mail address"), record["email"]),
            (_("Username"), record["username"]),
            (_("Role"), record["role"] and html.words(record["role"])),
            (_("Registered"), html.time(record["created_at"], utc=True)),
        ]
        metadata = [(key, history.shown(value)) for key, value in record["metadata"].items()]
        return [
            Section(_("Account"), "facts", filled(account)),
            *address_sections(record),
            *([Section(_("Metadata"), "facts", metadata)] if metadata else []),
        ]


def _download(file: Record) -> Any:
    left, ends = file["downloads_remaining"], file["access_expires"]
    rest = _("%(count)s left", count=left) if left else _("no limit")
    if ends:
        rest = html.joined([rest, html.joined([_("until"), html.time(ends)], " ")], " · ")
    return html.pair(file["download_name"] or file["file"]["name"], rest)


CUSTOMERS = Customers()
blp = CUSTOMERS.blp
