"""Wire format of the legacy API: queries, JSON of PHP clients, the index (decisions 12, 14)."""

import re
from collections.abc import Mapping
from typing import Any

import marshmallow as ma

from app.api.blueprint import Body
from app.plugins.woocommerce.legacy.schemas.orders import STATUS_PREFIX
from app.schemas import queries
from app.schemas.base import Base, WrappedItems, response
from app.schemas.fields import output as fields
from app.schemas.fields.input import DateText
from app.schemas.fields.list_input import EmailArray, IdArray, ItemArray
from app.schemas.fields.query import ChoiceParam, LimitParam, QueryField, StatusListParam

# --- queries ---


class Renamed(ChoiceParam):
    """A choice with additional names for some of its values."""

    def __init__(self, choice: ChoiceParam, words: Mapping[str, str]) -> None:
        super().__init__(
            str(choice.data_key),
            choice.metadata["description"],
            *choice.choices,
            *words,
            default=choice.load_default,
        )
        self.words = words
        # Generators cannot name two values that differ only in letter case.
        documented = {name.lower(): name for name in (*words, *choice.choices)}
        self.openapi = {**self.openapi, "enum": sorted(documented.values(), key=self.choices.index)}

    def read(self, value: str) -> str:
        word = super().read(value)
        return self.words.get(word, word)


def _legacy(
    query: type[queries.Query], words: Mapping[str, str], **more: QueryField
) -> type[queries.Query]:
    """Return the legacy form of a query, with additional names for ``filter[orderby]``."""
    orderby: Any = query._declared_fields["orderby"]
    more["orderby"] = Renamed(orderby, words)
    bases = (OrderStatus, query) if "status" in query._declared_fields else (query,)
    meta = type("Meta", (query.Meta,), {"exclude": sorted(_NEW & query._declared_fields.keys())})
    return type(f"Legacy{query.__name__}", bases, {"__doc__": query.__doc__, "Meta": meta, **more})


_NEW = {"campaign", "tag", "total_min", "total_max", "total_spent_min", "total_spent_max"}
"""Filters of the native API only (campaigns 1)."""

_STATE = ChoiceParam(
    "filter[state]",
    "Only coupons in this state: `expired`, `used_up` (not expired, and all uses are taken or "
    "reserved), or `active` (neither).",
    "active",
    "expired",
    "used_up",
)


ANY_STATUS = "any"


class OrderStatus(queries.Query):
    """Filter by ``filter[status]`` or ``status``. ``any`` means all statuses (decisions 14).

    A status may have the prefix ``wc-``, as in an order (orders 9).
    """

    top_level_status = StatusListParam(
        "status", "The same as `filter[status]`, which it overrides. `any` means all statuses."
    )

    @ma.post_load(pass_original=True)
    def finish(self, data: Body, _original: object, **_: object) -> Body:
        """Return the query with a single ``status``: a list, or None for all statuses."""
        sent = data.pop("top_level_status") or data["status"] or ()
        statuses = [status.removeprefix(STATUS_PREFIX) for status in sent]
        return {**data, "status": None if not statuses or ANY_STATUS in statuses else statuses}


_POSTS = {"ID": "id", "title": "code", "name": "code"}
_USERS = {
    "ID": "id",
    "user_registered": "registered",
    "user_email": "email",
    "user_login": "login",
    "nicename": "login",
    "display_name": "name",
}

LegacyOrderListQuery = _legacy(queries.OrderListQuery, {"ID": "id"})

QUERIES: dict[type[ma.Schema], type[ma.Schema]] = {
    queries.CouponListQuery: _legacy(
        queries.CouponListQuery, _POSTS, limit=LimitParam(), state=_STATE
    ),
    queries.CouponCountQuery: _legacy(queries.CouponCountQuery, _POSTS, state=_STATE),
    queries.CustomerListQuery: _legacy(queries.CustomerListQuery, _USERS),
    queries.CustomerCountQuery: _legacy(queries.CustomerCountQuery, _USERS),
    queries.OrderListQuery: LegacyOrderListQuery,
    queries.OrderCountQuery: _legacy(queries.OrderCountQuery, {"ID": "id"}),
}
"""Replacements for native queries (decisions 12)."""


class CustomerOrdersV3Query(LegacyOrderListQuery):  # type: ignore[misc, valid-type] # created above
    """Query of the orders of a customer in v3, with the parameters of a list of orders.

    Without a filter, a status and a page, all orders are returned, with their totals.
    """

    @ma.post_load(pass_original=True)
    def finish(self, data: Body, original: Any, **_: object) -> Body:
        """Return the query, or its selection and ``totals`` if no other parameter was sent.

        As in a list of orders, an unknown filter has no effect except on the pages.
        """
        query: dict[str, object] = super().finish(data, original)
        pages = any(name in {"page", "status"} or name.startswith("filter[") for name in original)
        return query if pages else {"selection": query["selection"], "totals": True}


# --- bodies ---


def native_object(schema: ma.Schema, value: object) -> object:
    """Convert an object of a PHP client to the native form (decisions 14).

    PHP has one type for lists and objects, so its JSON contains ``[]`` for an empty object and an
    object with integer keys for a list with gaps. ``""`` also means an empty object. An
    ``expiry_date`` of 0, ``"0"`` or ``false`` means no date. All other values remain unchanged, and
    so do the items of a bulk request, which are converted after their number is checked.

    Args:
        schema: the schema that loads the object.
        value: parsed JSON, which is not modified.
    """
    if value in ([], ""):
        return {}
    if not isinstance(value, dict):
        return value
    known = {field.data_key or name: field for name, field in schema.load_fields.items()}
    return {name: _native_value(known.get(name), inner) for name, inner in value.items()}


def _native_value(field: ma.fields.Field[Any] | None, value: Any) -> object:
    if isinstance(field, ma.fields.Nested):
        return native_object(field.schema, value)
    if isinstance(field, ItemArray) and not field.keeps_keys:
        value = _list_of(value)
        # A longer list is rejected, so its items are not converted.
        is_convertible = isinstance(value, list) and len(value) <= field.limit
        return [_native_value(field.inner, item) for item in value] if is_convertible else value
    if isinstance(field, WrappedItems | IdArray | EmailArray):
        return _list_of(value)
    if isinstance(field, DateText) and value in (0, "0"):  # False equals 0
        return ""
    return value


def _list_of(value: object) -> object:
    if isinstance(value, dict) and all(re.fullmatch("-?[0-9]+", key) for key in value):
        return list(value.values())
    return value


# --- the index ---


class RouteSchema(Base):
    """Methods of a path."""

    supports = fields.StringList("HTTP methods.")
    accepts_data = fields.Boolean("Whether one of the methods accepts a body.")
    meta = fields.by_name("`self` is the URL, for a path without variables.")


class StoreMetaSchema(Base):
    """Formats and units of the shop."""

    timezone = fields.String("Time zone of all date-times in responses.")
    currency = fields.String("Currency code (ISO 4217).")
    currency_format = fields.String("Currency symbol.")
    currency_position = fields.String("Position of the currency symbol.")
    thousand_separator = fields.String(
        "Thousands separator for display. Amounts in responses have none."
    )
    decimal_separator = fields.String("Decimal separator of amounts.")
    price_num_decimals = fields.Number("Number of decimal places of amounts.")
    tax_included = fields.Boolean("Whether prices include taxes.")
    weight_unit = fields.String("Unit of weights.")
    dimension_unit = fields.String("Unit of dimensions.")
    ssl_enabled = fields.Boolean("Whether this request was sent over TLS.")
    permalinks_enabled = fields.Boolean("Whether routes are URL paths.")
    generate_password = fields.Boolean("Whether a customer can be created without a password.")
    links = fields.by_name("Links to documentation.")


class StoreSchema(Base):
    """A shop and its routes."""

    name = fields.String("Name of the shop.")
    description = fields.String("Name and version of this service.")
    URL = fields.String("URL of the service.")
    wc_version = fields.String("WooCommerce version whose legacy API this service implements.")
    version = fields.String("Version of the legacy API. Only in v3.", required=False)
    routes = fields.by_name("Routes by path.", of=RouteSchema)
    meta = ma.fields.Nested(StoreMetaSchema, required=True)


StoreResponse = response(StoreSchema, "store")
