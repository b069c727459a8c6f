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


def _is_exact(noun: Noun, row: Record, text: str) -> bool:
    """Return whether the number, e-mail address or code of a record is a text. Names may repeat."""
    if noun is ORDERS:
        return str(row["order_number"]) == text.removeprefix("#")
    if noun is CUSTOMERS:
        return comparable_email(row["email"]) == comparable_email(text)
    return noun is COUPONS and row["code"] == coupon_code(text)


def _found(search: NounSearch, text: str) -> tuple[Noun, list[Record], ApiRequest | None, str]:
    """Return a kind of records, those that match, the request, and the address of their table."""
    noun = search.noun
    text = text.removeprefix("#") if noun is ORDERS else text
    wanted = {"q": text, **search.more}
    try:
        query = loaded_query(noun.list_schema, wanted)
    except InvalidParams:
        return noun, [], None, ""  # a text that the API does not accept as a search
    selection = dict.fromkeys(search.fields.split(","))
    serializer, _list = noun.listing(query | {"selection": selection}, trashed=False)
    listed = noun.query_type.of(query)
    rows = search.find(current_principal(), listed, serializer.columns, SHOWN + 1)
    # Tables also search for one or two letters, which no index contains.
    more = noun.url("show_list", None, q=text) if len(rows) > SHOWN or len(text) < 3 else ""
    sent = api_request(f"list_{noun.plural}", query=wanted | {"fields": search.fields})
    return noun, serializer.rows(rows[:SHOWN]), sent, more


@blp.page("/search")
def show() -> Response | BaseResponse:
    """Show what matches, or open the record if one is exact or the only one."""
    text = " ".join(request.args.get("q", "").split())[:200]
    groups = [_found(each, text) for each in SEARCHES if text and can(f"list_{each.noun.plural}")]
    every = [(noun, row) for noun, rows, *_rest in groups for row in rows]
    exact = [(noun, row) for noun, row in every if _is_exact(noun, row, text)]
    chosen = exact if len(exact) == 1 else every
    if len(chosen) == 1:
        noun, row = chosen[0]
        return redirect(noun.url("show", row["id"]), 303)
    title = _("Results for %(query)s", query=text) if text else _("Search")
    return render("search.html", title=title, search=text, groups=groups, found=len(every))
