"""The search in the head of every page (admin 2 and 5)."""

from __future__ import annotations

from dataclasses import dataclass

from flask import Response, redirect, request, url_for
from werkzeug.wrappers import Response as BaseResponse

from app.admin import html, rights
from app.admin.calls import call
from app.admin.frame import AdminBlueprint, render
from app.admin.texts import gettext as _
from app.errors import ShopError

blp = AdminBlueprint("admin_search", __name__)


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that matches.

    Args:
        href: the address of its page.
        title: what names it.
        detail: what else identifies it.
        is_exact: whether its number, e-mail address or code is the text.
    """

    href: str
    title: str
    detail: str
    is_exact: bool


def _coupons(text: str) -> list[Hit]:
    rows = call("list_coupons", query={"q": text, "fields": "id,code,description"}).body["coupons"]
    return [
        Hit(
            url_for("admin_coupons.show", coupon_id=row["id"]), row["code"], row["description"],
            row["code"] == text.lower(),
        )
        for row in rows
    ]  # fmt: skip


def _customers(text: str) -> list[Hit]:
    query = {
        "q": text,
        "role": "all",
        "limit": 10,
        "fields": "id,email,first_name,last_name,username",
    }
    rows = call("list_customers", query=query).body["customers"]
    return [
        Hit(
            url_for("admin_customers.show", customer_id=row["id"]),
            f"{row['first_name']} {row['last_name']}".strip() or row["username"],
            row["email"],
            row["email"].lower() == text.lower(),
        )
        for row in rows
    ]


def _orders(text: str) -> list[Hit]:
    number = text.removeprefix("#")
    rows = call("list_orders", query={"q": number, "limit": 10}).body["orders"]
    return [
        Hit(
            url_for("admin_orders.show", order_id=row["id"]),
            f"#{row['order_number']}",
            f"{html.money(row['total'], row['currency'])}, {row['billing_address']['email']}",
            str(row["order_number"]) == number,
        )
        for row in rows
    ]


_SEARCHES = (
    ("Orders", "list_orders", _orders),
    ("Customers", "list_customers", _customers),
    ("Coupons", "list_coupons", _coupons),
)
"""At most three statements: title, operation and function of each kind of record."""


@blp.page("/search")
def show() -> Response | BaseResponse:
    """Show what matches, or open the record if one is exact or the only one."""
    text = " ".join(request.args.get("q", "").split())[:200]
    groups: list[tuple[str, list[Hit]]] = []
    if text:
        for title, operation, find in _SEARCHES:
            if not rights.can(operation):
                continue
            try:
                hits = find(text)
            except ShopError as error:
                if error.status != 400:
                    raise
                hits = []  # a text that the API does not accept as a search
            groups.append((_(title), sorted(hits, key=lambda hit: not hit.is_exact)))
    every = [hit for _title, hits in groups for hit in hits]
    exact = [hit for hit in every if hit.is_exact]
    chosen = exact if len(exact) == 1 else every
    if len(chosen) == 1:
        return redirect(chosen[0].href, 303)
    return render("search.html", title=_("Search"), search=text, groups=groups, found=len(every))
