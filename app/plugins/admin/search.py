"""The search in the head of every page (admin 2 and 5)."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from flask import Response, redirect, request
from werkzeug.wrappers import Response as BaseResponse

from app.api.authentication import current_principal
from app.conversions.emails import comparable_email
from app.conversions.text import coupon_code
from app.db.records import Row
from app.errors import InvalidParams
from app.plugins.admin import html
from app.plugins.admin.calls import ApiRequest, Record, api_request, can, loaded_query
from app.plugins.admin.frame import AdminBlueprint, render
from app.plugins.admin.nouns import Noun
from app.plugins.admin.nouns.campaigns import CAMPAIGNS
from app.plugins.admin.nouns.coupons import COUPONS
from app.plugins.admin.nouns.customers import CUSTOMERS
from app.plugins.admin.nouns.orders import ORDERS
from app.plugins.admin.texts import gettext as _
from app.services.campaigns.queries import first_campaigns
from app.services.coupons.queries import first_coupons
from app.services.customers.queries import first_customers
from app.services.orders.queries import first_orders

blp = AdminBlueprint("admin_search")


class Hit(NamedTuple):
    """A record that matches, and whether its number, e-mail address or code is the text."""

    href: str
    title: str
    detail: str
    is_exact: bool


class NounSearch(NamedTuple):
    """How a kind of records is searched, with one statement each (admin 5)."""

    noun: Noun
    find: Callable[..., Sequence[Row]]  # of its service
    fields: str
    more: Mapping[str, str] = MappingProxyType({})  # further parameters of its list


SEARCHES = (
    NounSearch(
        ORDERS,
        first_orders,
        "id,order_number,created_at,total,currency,customer_id,billing_address",
    ),
    NounSearch(
        CUSTOMERS, first_customers, "id,email,first_name,last_name,username", {"role": "all"}
    ),
    NounSearch(COUPONS, first_coupons, "id,code,description"),
    NounSearch(CAMPAIGNS, first_campaigns, "id,name"),
)

SHOWN = 10
"""The number of records of each kind."""


def _hit(noun: Noun, row: Record, text: str) -> Hit:
    if noun is ORDERS:
        total = html.money(row["total"], row["currency"])
        email = row["billing_address"]["email"]
        day = html.short_time(html.parse_time(row["created_at"]))
        shown = dict.fromkeys(
            [ORDERS.customer_of(row), email, day, total]
        )  # a name can be the address
        detail = " · ".join(filter(None, shown))
        is_exact = str(row["order_number"]) == text
    elif noun is CUSTOMERS:
        detail, is_exact = row["email"], comparable_email(row["email"]) == comparable_email(text)
    elif noun is CAMPAIGNS:
        detail, is_exact = "", False  # names may repeat
    else:
        detail, is_exact = row["description"], row["code"] == coupon_code(text)
    return Hit(noun.url("show", row["id"]), noun.name_of(row), detail, is_exact)


def _found(search: NounSearch, text: str) -> tuple[str, list[Hit], ApiRequest | None, str]:
    """Return the title of a kind of records, those that match, the request, and their table."""
    noun = search.noun
    text = text.removeprefix("#") if noun is ORDERS else text
    wanted = {"q": text, **search.more}
    try:
        query = loaded_query(noun.list_schema, wanted)
    except InvalidParams:
        return _(noun.title), [], None, ""  # a text that the API does not accept as a search
    selection = dict.fromkeys(search.fields.split(","))
    serializer, _list = noun.listing(query | {"selection": selection}, trashed=False)
    listed = noun.query_type.of(query)
    rows = search.find(current_principal(), listed, serializer.columns, SHOWN + 1)
    hits = [_hit(noun, row, text) for row in serializer.rows(rows[:SHOWN])]
    # Tables also search for one or two letters, which no index contains.
    more = noun.url("show_list", None, q=text) if len(rows) > SHOWN or len(text) < 3 else ""
    sent = api_request(f"list_{noun.plural}", query=wanted | {"fields": search.fields})
    return _(noun.title), hits, sent, more


@blp.page("/search")
def show() -> Response | BaseResponse:
    """Show what matches, or open the record if one is exact or the only one."""
    text = " ".join(request.args.get("q", "").split())[:200]
    groups = [_found(each, text) for each in SEARCHES if text and can(f"list_{each.noun.plural}")]
    every = [hit for _title, hits, *_rest in groups for hit in hits]
    exact = [hit for hit in every if hit.is_exact]
    chosen = exact if len(exact) == 1 else every
    if len(chosen) == 1:
        return redirect(chosen[0].href, 303)
    title = _("Results for %(query)s", query=text) if text else _("Search")
    return render("search.html", title=title, search=text, groups=groups, found=len(every))
