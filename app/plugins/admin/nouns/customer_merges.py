"""*Merge* and *Claim orders* of a customer: what moves, then the question (people 8)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flask import Response, request
from markupsafe import Markup

from app.conversions.numbers import whole_number
from app.errors import ShopError
from app.plugins.admin import html
from app.plugins.admin.calls import api_request, call, form_headers
from app.plugins.admin.nouns import FORM, AnyResponse, Record
from app.plugins.admin.nouns.customers import CUSTOMERS, blp, claim_label
from app.plugins.admin.nouns.orders import ORDERS, customer_of
from app.plugins.admin.pages import Parts, Section, record_page
from app.plugins.admin.tables import Column, Table, list_query
from app.plugins.admin.texts import gettext as _

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
        return _page(kept, _choices(kept))
    body = {"merge": {"customer_id": other}}
    path: dict[str, Any] = {"customer_id": customer_id}
    if "_show" in request.form:
        sent = api_request("merge_customer", body=body, **path)
        return _page(kept, _comparison(kept, other), sent=sent, opens=True)
    if request.method == "GET":
        return _page(kept, _comparison(kept, other))
    try:
        headers = form_headers(request.args.get("tag", ""))
        call("merge_customer", body=body, headers=headers, **path)
    except ShopError as error:
        if error.code != "shop_api_precondition_failed":
            raise
        changed = _("An account has changed since you opened the page. Nothing is merged yet.")
        return _page(kept, _comparison(kept, other), result=changed)
    return CUSTOMERS.see(customer_id, "merged")


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
    links = [_order(each) for each in found["order_ids"][:SHOWN_ORDERS]]
    more = html.number(found["orders"] - len(links)) if found["orders"] > len(links) else ""
    note = _("The oldest of them. %(more)s more are not shown.", more=more) if more else ""
    form = (CUSTOMERS.url("claim", customer_id), (), claim_label(found["orders"]))
    question = Section(
        _("Do these orders belong to %(name)s?", name=CUSTOMERS.name_of(customer)),
        "plain",
        _(
            "Anybody can type an address into a checkout. Confirm that it belongs to the customer. "
            "The orders and their uses of coupons are then those of the account. Each order can be "
            "given back with Undo in its history."
        ),
        form=form,
    )
    none = _("No order of a guest has an address of this customer.")
    orders = Section(_("Orders of guests"), "items", links, none, note=note)
    sent = api_request("claim_customer_orders", body={"claim": {}}, customer_id=customer_id)
    return record_page(
        _("Claim orders of guests"),
        (CUSTOMERS.url("show", customer_id), CUSTOMERS.name_of(customer)),
        Parts(main=[orders, question] if links else [orders]),
        sent if "_show" in request.form else None,
        opens=True,
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


def _page(kept: Record, main: list[Section], **more: Any) -> Response:
    title = _("Merge an account into %(name)s", name=CUSTOMERS.name_of(kept))
    back = CUSTOMERS.url("show", kept["id"]), CUSTOMERS.name_of(kept)
    return record_page(title, back, Parts(main=main), **more)


def _choices(kept: Record) -> list[Section]:
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
    none = _("The shop has no other account.")
    return [Section(_("Which account is removed?"), "table", table, none)]


_SHOWN: dict[str, Callable[[Record], Any]] = {
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


def _comparison(kept: Record, other: int) -> list[Section]:
    """Return both accounts side by side, what moves, and the question or the reasons against it."""
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
    both = Table(_("Both accounts"), columns, rows, total=len(rows))
    link = CUSTOMERS.url("merge", other) + f"?customer_id={kept['id']}", _("Merge the other way")
    moves = [
        (_("Orders, also in the trash"), html.number(preview["orders"])),
        (_("Uses of coupons"), html.number(preview["redemptions"])),
        (_("Metadata keys that the account lacks"), html.number(preview["metadata"])),
        (_("Orders of guests that can be claimed"), html.number(preview["guest_orders"])),
    ]
    sections = [
        Section(_("Both accounts"), "rows", both, link=link),
        Section(_("What moves"), "facts", moves),
    ]
    if reasons := [each["message"] for each in preview["reasons"]]:
        return [*sections, Section(_("This account cannot be removed"), "items", reasons)]
    tag = reply.headers.get("ETag", "")
    address = CUSTOMERS.url("merge", kept["id"], tag=tag) + f"&customer_id={other}"
    question = Section(
        _("Remove %(name)s?", name=CUSTOMERS.name_of(removed)),
        "plain",
        _(
            "The account and its username are removed, and everything above moves. Empty names and "
            "addresses are filled; otherwise the account that stays wins. A merge cannot be undone."
        ),
    )
    return [*sections, replace(question, form=(address, (), _("Merge")))]
