"""Customers: the table, one customer, and the form (admin 2)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flask import request
from markupsafe import Markup

from app.api.authentication import current_principal
from app.api.representations import DOWNLOAD
from app.auth.principals import ROLES
from app.plugins.admin import history, html
from app.plugins.admin.calls import call, can, record_of
from app.plugins.admin.forms import FieldSpec, specs_of
from app.plugins.admin.frame import may_open
from app.plugins.admin.nouns import Noun, Record
from app.plugins.admin.nouns.orders import ORDERS, address_sections, uses_section
from app.plugins.admin.pages import Button, Parts, Section, Tile, person_buttons
from app.plugins.admin.selections import Action
from app.plugins.admin.tables import Column, Filter
from app.plugins.admin.texts import gettext as _
from app.plugins.admin.texts import ngettext
from app.schemas.customers import CustomerCreate, CustomerUpdate
from app.schemas.queries import CustomerListQuery
from app.services.customers import queries
from app.services.orders.queries import latest_downloads

FIELDS = "id,email,first_name,last_name,username,role,orders_count,total_spent,last_order_date,tags"
NOTE = "note"
"""The metadata key of the note of support."""
MAX_USES = 10
"""Number of uses of coupons on the page of a customer."""
MAX_DOWNLOADS = 20
"""Number of downloads on that page."""


class CustomerPages(Noun):
    """The customers of the shop. The orders of a deleted one stay, as orders of a guest."""

    name = resource = "customer"
    title, navigation, create_label = "Customers", ("users", 300), "Create customer"
    empty = (
        "No customers yet",
        "A customer is an account of your shop, with addresses and orders. Create or import one.",
    )
    named_by = ("first_name", "last_name")
    create_schema, update_schema = CustomerCreate, CustomerUpdate
    list_schema, queries = CustomerListQuery, queries
    searches = "Search name or e-mail address"
    delete_note = "The account and its metadata are deleted. Its orders stay, with their addresses."

    def name_of(self, record: Record) -> str:
        return f"{record['first_name']} {record['last_name']}".strip() or str(record["username"])

    def columns(self, *, trashed: bool) -> list[Column]:
        def name(row: Record) -> Markup:
            tags = html.joined(map(html.badge, row["tags"]), " ")
            return html.joined([self.link(row), tags], " ") if tags else self.link(row)

        return [
            Column(_("Name"), name, sort="name"),
            Column(_("E-mail address"), lambda row: row["email"] or html.NONE, sort="email"),
            Column.of(_("Last order"), "last_order_date", html.time),
            Column.of(_("Orders"), "orders_count", sort="orders_count", on_phone=True),
            Column.of(_("Spent"), "total_spent", html.money, sort="total_spent", on_phone=True),
        ]

    def filters(self) -> list[Filter]:
        roles = {name: html.words(name) for name in sorted(ROLES) if name != "customer"}
        of_role = Filter("role", _("Role"), _("Customers"), {"all": _("All accounts"), **roles})
        return [of_role, Filter("tag", _("Tag"))]

    def actions(self) -> dict[str, Action]:
        """Return *Add tag*, which keeps the tags that others have added in between."""
        tags = next(spec for spec in specs_of(CustomerUpdate) if spec.name == "tags")
        spec, title = replace(tags, kind="entry", label="Tag", help=""), _("Adding a tag")
        add = Action(self.name, _("Add tag"), title, "update_customer", spec=spec, adds=True)
        return {"tag": add}

    def query(self, given: Mapping[str, str]) -> dict[str, Any]:
        order = {} if request.args.get("sort") else {"order": "desc"}
        return super().query(given) | {"fields": FIELDS} | order

    def read(self, record_id: int) -> tuple[Record, str]:
        """Return a customer with metadata for the page, or without for the form."""
        shows = request.endpoint in {f"{self.blp.name}.{each}" for each in ("show", "change_note")}
        return record_of("get_customer", with_metadata=shows, customer_id=record_id)

    def parts(self, record: Record) -> Parts:
        data, erase = person_buttons(customer_id=record["id"])
        return Parts(
            dangers=erase,
            buttons=[
                *_claims(record),
                *data,
                self.button(_("Merge"), "merge", record),
                self.button(_("Edit"), "edit", record, tone="primary"),
            ],
            tiles=[
                Tile(_("Orders"), html.number(record["orders_count"])),
                Tile(_("Spent"), html.money(record["total_spent"])),
                Tile(_("Last order"), html.time(record["last_order_date"])),
            ],
            main=_main(record["id"]),
            side=_side(record),
        )


def _main(number: int) -> list[Section]:
    orders, link = ORDERS.panel({"customer_id": number}, _("Customer")), None
    if orders and orders.total > len(orders.rows):
        text = _("All %(total)s orders", total=html.number(orders.total))
        link = ORDERS.url("show_list", customer_id=number), text
    none = _("This customer has not ordered yet.")
    return [
        Section(_("Orders"), "rows", orders, none, _("orders"), link=link),
        uses_section(_("Coupons used"), {"customer_id": number, "limit": MAX_USES}),
        _downloads(number),
    ]


def _side(record: Record) -> list[Section]:
    account = [
        (_("E-mail address"), record["email"]),
        (_("Username"), record["username"]),
        (_("Role"), record["role"] and html.words(record["role"])),
        (_("Tags"), html.joined(map(html.badge, record["tags"]), " ")),
        (_("Registered"), html.time(record["created_at"], utc=True)),
    ]
    metadata = [
        (key, history.shown(value))
        for key, value in record.get("metadata", {}).items()
        if key != NOTE
    ]
    return [
        _note(record),
        Section(_("Account"), "facts", account),
        *address_sections(record),
        Section(_("Metadata"), "facts", metadata),
    ]


def _note(record: Record) -> Section:
    """Return the note of support, with a form if the session can change it."""
    note = record["metadata"].get(NOTE, "")
    text = note if isinstance(note, str) else history.shown(note)
    if not may_open(CUSTOMERS.endpoint("change_note")):
        return Section(_("Note"), "plain", text)
    address, (spec,) = CUSTOMERS.url("change_note", record["id"]), _note_field()
    form = (address, (spec,), _("Save note"))
    return Section(_("Note"), "plain", "", form=form, texts={spec.name: text})


def _note_field() -> list[FieldSpec]:
    return [FieldSpec(f"metadata.{NOTE}", _("For your team, not for the customer"), "textarea")]


def _claims(record: Record) -> list[Button]:
    """Return the button for the orders of guests with an address of the customer, if any."""
    if not can("get_customer_claim"):
        return []
    orders = call("get_customer_claim", customer_id=record["id"]).content["orders"]
    return [CUSTOMERS.button(claim_label(orders), "claim", record)] if orders else []


def claim_label(orders: int) -> str:
    """Return the text of the button that claims orders of guests."""
    return ngettext("Claim %(num)s guest order", "Claim %(num)s guest orders", orders)


def _downloads(number: int) -> Section:
    """Return the downloads of the latest orders, without those that the session may not read."""
    rows, note = [], ""
    if can("list_customer_downloads"):
        found = latest_downloads(current_principal(), number, DOWNLOAD.columns, MAX_DOWNLOADS + 1)
        rows = DOWNLOAD.rows(found[:MAX_DOWNLOADS])
        if len(found) > MAX_DOWNLOADS:
            shown = html.number(MAX_DOWNLOADS)
            note = _("The latest %(shown)s. The API returns all.", shown=shown)
    return Section(_("Downloads"), "items", [*map(_download, rows)], note=note)


def _download(file: Record) -> Any:
    left, ends = file["downloads_remaining"], file["access_expires"]
    rest = _("%(count)s left", count=left) if left else _("no limit")
    if ends:
        rest = html.joined([rest, html.joined([_("until"), html.time(ends)], " ")], " · ")
    return html.pair(file["download_name"] or file["file"]["name"], rest)


CUSTOMERS = CustomerPages()
blp = CUSTOMERS.blp
CUSTOMERS.runs(
    "change_note", "update_customer", "saved", path="note", key="customer", specs=_note_field
)
