"""The search in the head of every page (admin 2 and 5)."""

from typing import Any, NamedTuple

from flask import Response, redirect, request
from werkzeug.wrappers import Response as BaseResponse

from app.admin import html, rights
from app.admin.calls import ApiRequest, call
from app.admin.frame import AdminBlueprint, render
from app.admin.nouns import Noun
from app.admin.nouns.coupons import COUPONS
from app.admin.nouns.customers import CUSTOMERS
from app.admin.nouns.orders import ORDERS, customer_of
from app.admin.texts import gettext as _
from app.errors import ShopError

blp = AdminBlueprint("admin_search")


class Hit(NamedTuple):
    """A record that matches, and whether its number, e-mail address or code is the text."""

    href: str
    title: str
    detail: str
    is_exact: bool


_QUERIES: dict[Noun, dict[str, Any]] = {
    ORDERS: {"limit": 10},
    CUSTOMERS: {
        "limit": 10, "role": "all", "fields": "id,email,first_name,last_name,username"
    },
    COUPONS: {"fields": "id,code,description"},
}  # fmt: skip
"""At most three statements: the parameters of each kind of record."""


def _hit(noun: Noun, row: dict[str, Any], text: str) -> Hit:
    if noun is ORDERS:
        detail = f"{customer_of(row)} · {html.money(row['total'], row['currency'])}"
        is_exact = str(row["order_number"]) == text.removeprefix("#")
    elif noun is CUSTOMERS:
        detail, is_exact = row["email"], row["email"].lower() == text.lower()
    else:
        detail, is_exact = row["description"], row["code"] == text.lower()
    return Hit(noun.url("show", row["id"]), noun.name_of(row), detail, is_exact)


def _found(noun: Noun, text: str) -> tuple[str, list[Hit], ApiRequest | None, str]:
    """Return the title of a kind of records, those that match, the request, and their table."""
    query = {"q": text.removeprefix("#") if noun is ORDERS else text}
    try:
        reply = call(f"list_{noun.plural}", query=query | _QUERIES[noun])
    except ShopError as error:
        if error.status != 400:
            raise
        return _(noun.title), [], None, ""  # a text that the API does not accept as a search
    hits = [_hit(noun, row, text) for row in reply.content]
    more = noun.url("show_list", None, **query) if reply.total > len(hits) else ""
    return _(noun.title), sorted(hits, key=lambda hit: not hit.is_exact), reply.request, more


@blp.page("/search")
def show() -> Response | BaseResponse:
    """Show what matches, or open the record if one is exact or the only one."""
    text = " ".join(request.args.get("q", "").split())[:200]
    groups = [_found(noun, text) for noun in _QUERIES if text and rights.can(f"list_{noun.plural}")]
    every = [hit for _title, hits, *_rest in groups for hit in hits]
    exact = [hit for hit in every if hit.is_exact]
    chosen = exact if len(exact) == 1 else every
    if len(chosen) == 1:
        return redirect(chosen[0].href, 303)
    title = _("Results for %(query)s", query=text) if text else _("Search")
    return render("search.html", title=title, search=text, groups=groups, found=len(every))
