"""Customers: the table, one customer, the form, *Merge* and *Claim orders* (admin 2, people 8)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from flask import Response, request

from app.api.authentication import current_principal
from app.api.representations import DOWNLOAD, customers
from app.auth.principals import ROLES
from app.conversions.numbers import whole_number
from app.errors import ShopError
from app.plugins.admin import history, html, texts
from app.plugins.admin.calls import Record, Reply, api_request, call, can, form_headers, record_of
from app.plugins.admin.form_fields import FieldSpec, spec_of
from app.plugins.admin.form_pages import AnyResponse, add_action
from app.plugins.admin.forms import Form
from app.plugins.admin.nouns import FORM, Listing, Noun
from app.plugins.admin.nouns.coupons import refused_codes
from app.plugins.admin.nouns.orders import ORDERS, coupon_uses
from app.plugins.admin.pages import Button, person_buttons, record_page
from app.plugins.admin.selections import Action
from app.plugins.admin.tables import CsvColumns, Table, created_between, list_query
from app.plugins.admin.texts import gettext as _
from app.schemas.customers import CustomerCreate, CustomerUpdate
from app.schemas.queries import CustomerListQuery
from app.services.customers import queries
from app.services.customers.columns import has_email
from app.services.customers.queries import CustomerQuery
from app.services.orders.queries import latest_downloads

FIELDS = (
    "id,email,first_name,last_name,username,role,orders_count,total_spent,last_order_date,"
    "created_at,tags"
)
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
    named_by = ("first_name", "last_name")
    create_schema, update_schema = CustomerCreate, CustomerUpdate
    list_schema, query_type, queries = CustomerListQuery, CustomerQuery, queries
    has_csv = True
    delete_note = "The account and its metadata are deleted. Its orders stay, with their addresses."

    def name_of(self, record: Record) -> str:
        return super().name_of(record) or str(record["username"])

    def csv_columns(self, *, trashed: bool) -> CsvColumns:
        return {
            _("Name"): self.name_of,
            _("E-mail address"): lambda row: row["email"],
            _("Last order"): lambda row: html.sortable_time(row["last_order_date"]),
            _("Orders"): lambda row: row["orders_count"],
            _("Spent"): lambda row: row["total_spent"],
            _("Username"): lambda row: row["username"],
            _("Role"): lambda row: row["role"] and html.words(row["role"]),
            _("Tags"): lambda row: ", ".join(row["tags"]),
            _("Registered"): lambda row: html.sortable_time(row["created_at"]),
        }

    def listing(self, query: Record, *, trashed: bool) -> Listing:
        return customers(query), queries.list_customers

    def filters(self) -> Sequence[str]:
        return "role", "tag", "from", "to", "total_spent_min", "total_spent_max"

    def roles(self) -> dict[str, str]:
        roles = {name: html.words(name) for name in sorted(ROLES) if name != "customer"}
        return {"all": _("All accounts"), **roles}

    def actions(self) -> dict[str, Action]:
        """Return *Add tag*, which keeps the tags that others have added in between."""
        tags, title = spec_of(CustomerUpdate, "tags"), _("Adding a tag")
        spec = replace(tags, kind="entry", label="Tag", help="")
        add = Action(self.name, _("Add tag"), title, "update_customer", spec=spec, adds=True)
        return {"tag": add}

    def check(self, form: Form) -> Callable[[Reply], None] | None:
        """Refuse an e-mail address of another account, which an update ignores (decisions 5)."""
        email = form.texts.get("email", "")

        def require_email(reply: Reply) -> None:
            if not has_email(reply.content, email):
                raise ShopError("registration-error-email-exists")

        return require_email if email and email != form.shown["email"] else None

    def query(self, given: Mapping[str, str]) -> dict[str, object]:
        order = {} if request.args.get("sort") else {"order": "desc"}
        same = "role", "tag", "total_spent_min", "total_spent_max"
        found = {name: given.get(name, "") for name in same} | created_between(given)
        return {**found, "fields": FIELDS, **order}

    def read(self, record_id: int) -> tuple[Record, str]:
        """Return a customer with metadata for the page, or without for the form."""
        shows = request.endpoint in {f"{self.blp.name}.{each}" for each in ("show", "change_note")}
        return record_of("get_customer", with_metadata=shows, customer_id=record_id)

    def values(self, record: Record) -> dict[str, object]:
        data, erase = person_buttons(customer_id=record["id"])
        note = record["metadata"].get(NOTE, "")
        text = note if isinstance(note, str) else history.shown(note)
        (spec,) = _note_field()
        address = self.url("change_note", record["id"])
        return {
            "dangers": erase,
            "buttons": [
                *_claims(record),
                *data,
                self.button(_("Merge"), "merge", record),
                Button(_("Create order"), ORDERS.endpoint("create"), {"customer_id": record["id"]}),
                self.button(_("Edit"), "edit", record, tone="primary"),
            ],
            "orders": ORDERS.panel({"customer_id": record["id"]}),
            "uses": coupon_uses({"customer_id": record["id"], "limit": MAX_USES}),
            "refused": refused_codes(customer=(record["id"], record["email"])),
            "files": _downloads(record["id"]),
            "most_files": MAX_DOWNLOADS,
            "support_note": text,
            "note_form": (address, (spec,), _("Save note"), {spec.name: text}),
            "metadata": [
                (key, history.shown(value))
                for key, value in record.get("metadata", {}).items()
                if key != NOTE
            ],
        }


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
    return texts.ngettext("Claim %(num)s guest order", "Claim %(num)s guest orders", orders)


def _downloads(number: int) -> list[Record]:
    """Return the downloads of the latest orders, and one more than the page shows.

    Without those that the session may not read.
    """
    if not can("list_customer_downloads"):
        return []
    found = latest_downloads(current_principal(), number, DOWNLOAD.columns, MAX_DOWNLOADS + 1)
    rows: list[Record] = DOWNLOAD.rows(found)
    return rows


CUSTOMERS = CustomerPages()
blp = CUSTOMERS.blp
add_action(
    CUSTOMERS,
    "change_note",
    "update_customer",
    "saved",
    path="note",
    key="customer",
    specs=_note_field,
)


FOUND = 10
"""Number of accounts that the search shows."""

SHOWN_ORDERS = 10
"""Number of orders of guests that are shown before a claim."""


@blp.page("/customers/<id:customer_id>/merge", "get_customer_merge", "merge_customer", methods=FORM)
def merge(customer_id: int) -> AnyResponse:
    """Search the other account, show both side by side, and merge them."""
    kept = call("get_customer", customer_id=customer_id).content
    other = whole_number(request.args.get("customer_id", ""))
    if other is None:
        return _page(kept, accounts=_choices(kept))
    body = {"merge": {"customer_id": other}}
    path: Record = {"customer_id": customer_id}
    more: dict[str, object] = {}
    if "_show" in request.form:
        more = {"sent": api_request("merge_customer", body=body, **path), "opens": True}
    elif request.method == "POST":
        try:
            headers = form_headers(request.args.get("tag", ""))
            call("merge_customer", body=body, headers=headers, **path)
            return CUSTOMERS.see(customer_id, "merged")
        except ShopError as error:
            if error.code != "shop_api_precondition_failed":
                raise
        changed = _("An account has changed since you opened the page. Nothing is merged yet.")
        more = {"result": changed}
    return _page(kept, **_comparison(kept, other), **more)


@blp.page(
    "/customers/<id:customer_id>/claim",
    "get_customer_claim",
    "claim_customer_orders",
    "get_order",
    methods=FORM,
)
def claim(customer_id: int) -> AnyResponse:
    """Show the orders of guests with an address of the customer, and assign them."""
    customer = call("get_customer", customer_id=customer_id).content
    if request.method == "POST" and "_show" not in request.form:
        headers = form_headers()
        call("claim_customer_orders", body={"claim": {}}, headers=headers, customer_id=customer_id)
        return CUSTOMERS.see(customer_id, "claimed")
    found = call("get_customer_claim", customer_id=customer_id).content
    sent = api_request("claim_customer_orders", body={"claim": {}}, customer_id=customer_id)
    return record_page(
        "claim.html",
        _("Claim orders of guests"),
        (CUSTOMERS.url("show", customer_id), CUSTOMERS.name_of(customer)),
        sent if "_show" in request.form else None,
        opens=True,
        name=CUSTOMERS.name_of(customer),
        orders=[_order(each) for each in found["order_ids"][:SHOWN_ORDERS]],
        number_of_orders=found["orders"],
        form=(CUSTOMERS.url("claim", customer_id), (), claim_label(found["orders"])),
    )


def _order(order_id: int) -> Record:
    """Return an order, or its ID alone if it is in the trash."""
    try:
        order: Record = call("get_order", order_id=order_id).content
    except ShopError as error:
        if error.status != 404:
            raise
        return {"id": order_id}
    return order


def _page(kept: Record, **values: Any) -> Response:
    title = _("Merge an account into %(name)s", name=CUSTOMERS.name_of(kept))
    back = CUSTOMERS.url("show", kept["id"]), CUSTOMERS.name_of(kept)
    return record_page("merge.html", title, back, kept=kept, **values)


def _choices(kept: Record) -> Table:
    """Return the search for the other account."""
    fields = "id,email,first_name,last_name,username,orders_count,total_spent"
    query = list_query(role="all", limit=FOUND, fields=fields)
    reply = call("list_customers", query=query)
    table = Table.of_reply(_("Accounts"), reply)
    table.rows = [row for row in table.rows if row["id"] != kept["id"]]
    return table


def _comparison(kept: Record, other: int) -> dict[str, object]:
    """Return both accounts side by side, what moves, and the reasons against it, if any."""
    reply = call("get_customer_merge", query={"customer_id": other}, customer_id=kept["id"])
    preview, removed = reply.content, call("get_customer", customer_id=other).content
    address = CUSTOMERS.url("merge", kept["id"], tag=reply.headers.get("ETag", ""))
    return {
        "removed": removed,
        "other_way": CUSTOMERS.url("merge", other) + f"?customer_id={kept['id']}",
        "preview": preview,
        "reasons": [each["message"] for each in preview["reasons"]],
        "form": (f"{address}&customer_id={other}", (), _("Merge")),
    }
