"""*Merge* and *Claim orders* of a customer: what moves, then the question (people 8)."""

from collections.abc import Callable
from typing import Any

from flask import Response, request
from markupsafe import Markup

from app.conversions.numbers import whole_number
from app.errors import ShopError
from app.plugins.admin import html
from app.plugins.admin.calls import Record, api_request, call, form_headers
from app.plugins.admin.nouns import FORM, AnyResponse
from app.plugins.admin.nouns.customers import CUSTOMERS, blp, claim_label
from app.plugins.admin.nouns.orders import ORDERS, customer_of
from app.plugins.admin.pages import record_page
from app.plugins.admin.tables import Column, Table, list_query
from app.plugins.admin.texts import gettext as _
from app.plugins.admin.texts import reason_text
from app.services.persons.merging import REASONS

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


def _order(order_id: int) -> Markup:
    """Return what says whose an order is: its number, the name, the time and the total."""
    try:
        order = call("get_order", order_id=order_id).content
    except ShopError as error:
        if error.status != 404:
            raise
        return html.pair(f"#{order_id}", _("In the trash"))
    total, when = html.money(order["total"], order["currency"]), html.time(order["created_at"])
    return html.pair(ORDERS.link(order), html.joined([customer_of(order), when, total], " · "))


def _page(kept: Record, **values: Any) -> Response:
    title = _("Merge an account into %(name)s", name=CUSTOMERS.name_of(kept))
    back = CUSTOMERS.url("show", kept["id"]), CUSTOMERS.name_of(kept)
    return record_page("merge.html", title, back, **values)


def _choices(kept: Record) -> Table:
    """Return the search for the other account."""
    columns = [
        Column(
            _("Name"),
            lambda row: html.link(
                CUSTOMERS.url("merge", kept["id"]) + f"?customer_id={row['id']}",
                CUSTOMERS.name_of(row),
            ),
        ),
        Column(_("E-mail address"), lambda row: row["email"] or html.NONE, on_phone=True),
        Column.of(_("Orders"), "orders_count", on_phone=True),
        Column.of(_("Spent"), "total_spent", html.money),
    ]
    fields = "id,email,first_name,last_name,username,orders_count,total_spent"
    query = list_query(role="all", limit=FOUND, fields=fields)
    reply = call("list_customers", query=query)
    table = Table.of_reply(_("Accounts"), columns, reply)
    table.rows = [row for row in table.rows if row["id"] != kept["id"]]
    table.searches = _("Search name or e-mail address")
    return table


_SHOWN: dict[str, Callable[[Record], object]] = {
    "Name": lambda each: f"{each['first_name']} {each['last_name']}".strip(),
    "E-mail address": lambda each: each["email"],
    "Username": lambda each: each["username"],
    "Role": lambda each: each["role"] and html.words(each["role"]),
    "Registered": lambda each: html.time(each["created_at"]),
    "Orders": lambda each: html.number(each["orders_count"]),
    "Spent": lambda each: html.money(each["total_spent"]),
    "Last order": lambda each: html.time(each["last_order_date"]),
    "Billing city": lambda each: each["billing_address"]["city"],
    "Shipping city": lambda each: each["shipping_address"]["city"],
}
"""What the comparison shows of both accounts, by its label."""


def _comparison(kept: Record, other: int) -> dict[str, object]:
    """Return both accounts side by side, what moves, and the reasons against it, if any."""
    reply = call("get_customer_merge", query={"customer_id": other}, customer_id=kept["id"])
    preview, removed = reply.content, call("get_customer", customer_id=other).content
    rows = [
        {"id": _(label), "kept": shown(kept), "removed": shown(removed)}
        for label, shown in _SHOWN.items()
    ]
    columns = [
        Column("", lambda row: row["id"]),
        Column(_("Stays"), lambda row: row["kept"] or html.NONE, on_phone=True),
        Column(_("Is removed"), lambda row: row["removed"] or html.NONE, on_phone=True),
    ]
    address = CUSTOMERS.url("merge", kept["id"], tag=reply.headers.get("ETag", ""))
    return {
        "both": Table(_("Both accounts"), columns, rows, total=len(rows)),
        "other_way": CUSTOMERS.url("merge", other) + f"?customer_id={kept['id']}",
        "preview": preview,
        "reasons": [reason_text(each, REASONS) for each in preview["reasons"]],
        "name": CUSTOMERS.name_of(removed),
        "form": (f"{address}&customer_id={other}", (), _("Merge")),
    }
