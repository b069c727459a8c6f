"""What differs on the wire in the legacy API: queries, PHP's JSON, the index (decisions 12, 14)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import marshmallow as ma

from app.schemas.envelope import Base, WrappedItems
from app.schemas.inputs import DateText, EmailArray, IdArray
from app.schemas.parameters import LimitParam, QueryField, Renamed, StatusListParam
from app.schemas.queries import (
    CouponCountQuery,
    CouponListQuery,
    CustomerCountQuery,
    CustomerListQuery,
    OrderCountQuery,
    OrderListQuery,
    Query,
)

# --- queries ---


def _legacy(query: type[Query], words: Mapping[str, str], **fields: QueryField) -> type[Query]:
    """Return a query as the legacy API has it, with its words for ``filter[orderby]``."""
    orderby: Any = query._declared_fields["orderby"]
    fields["orderby"] = Renamed(orderby, words)
    bases = (OrderStatus, query) if "status" in query._declared_fields else (query,)
    return type(f"Legacy{query.__name__}", bases, {"__doc__": query.__doc__, **fields})


ANY_STATUS = "any"


class OrderStatus(Query):
    """Which orders, by ``filter[status]`` or ``status``; ``any`` is no filter (decisions 14)."""

    top_level_status = StatusListParam(
        "status", "The same as `filter[status]`, which it overrides. `any` is no filter."
    )

    @ma.post_load(pass_original=True)
    def finish(self, data: dict[str, Any], _original: Any, **_: Any) -> dict[str, Any]:
        """Return the query with one ``status``: a list, or None for no filter."""
        statuses = data.pop("top_level_status") or data["status"]
        return {**data, "status": None if statuses and ANY_STATUS in statuses else statuses}


_POSTS = {"ID": "id", "title": "code", "name": "code"}
_USERS = {
    "ID": "id",
    "user_registered": "registered",
    "user_email": "email",
    "user_login": "login",
    "nicename": "login",
    "display_name": "name",
}

LegacyOrderListQuery = _legacy(OrderListQuery, {"ID": "id"})

QUERIES: dict[type[ma.Schema], type[ma.Schema]] = {
    CouponListQuery: _legacy(CouponListQuery, _POSTS, limit=LimitParam()),
    CouponCountQuery: _legacy(CouponCountQuery, _POSTS),
    CustomerListQuery: _legacy(CustomerListQuery, _USERS),
    CustomerCountQuery: _legacy(CustomerCountQuery, _USERS),
    OrderListQuery: LegacyOrderListQuery,
    OrderCountQuery: _legacy(OrderCountQuery, {"ID": "id"}),
}
"""The query that replaces each native one (decisions 12)."""


class CustomerOrdersV3Query(LegacyOrderListQuery):  # type: ignore[misc, valid-type] # made above
    """The query of a customer's orders in v3: that of a list of orders.

    Without any of its filters and ``page``, only the selection is loaded: all orders are returned.
    """

    @ma.post_load(pass_original=True)
    def finish(self, data: dict[str, Any], original: Any, **_: Any) -> dict[str, Any]:
        """Return the query, or only its selection when nothing else was sent."""
        query: dict[str, Any] = super().finish(data, original)
        names = {field.data_key or name for name, field in self.fields.items()} - {"fields"}
        return query if names & set(original) else {"selection": query["selection"]}


# --- bodies ---


def as_php_meant(schema: ma.Schema, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body as a native client would have written it (decisions 14).

    PHP has one type for lists and objects, so its JSON has ``[]`` for an empty object and an object
    with integer keys for a list with gaps. ``""`` is an empty object, too. An ``expiry_date`` of 0,
    ``"0"`` or ``false`` is none. Everything else stays as it is, for the schema to judge.

    Args:
        schema: what the body will be loaded with.
        body: parsed JSON; it is not changed.
    """
    fields = {field.data_key or name: field for name, field in schema.load_fields.items()}
    return {name: _as_meant(fields.get(name), value) for name, value in body.items()}


def _as_meant(field: ma.fields.Field[Any] | None, value: Any) -> Any:
    if isinstance(field, ma.fields.Nested):
        value = {} if value in ([], "") else value
        return as_php_meant(field.schema, value) if isinstance(value, dict) else value
    if isinstance(field, WrappedItems):
        value = _as_list(value)
        is_list = isinstance(value, list)
        return [_as_meant(field.inner, item) for item in value] if is_list else value
    if isinstance(field, IdArray | EmailArray):
        return _as_list(value)
    if isinstance(field, DateText) and value in (0, "0"):  # False equals 0
        return ""
    return value


def _as_list(value: Any) -> Any:
    if isinstance(value, dict) and all(re.fullmatch("-?[0-9]+", key) for key in value):
        return list(value.values())
    return value


# --- the index ---


def _text(meaning: str) -> ma.fields.String:
    return ma.fields.String(metadata={"description": meaning})


def _flag(meaning: str) -> ma.fields.Boolean:
    return ma.fields.Boolean(metadata={"description": meaning})


class RouteSchema(Base):
    """What can be done at a path."""

    supports = ma.fields.List(ma.fields.String(), metadata={"description": "HTTP methods."})
    accepts_data = _flag("Whether one of them takes a body.")
    meta = ma.fields.Dict(
        keys=ma.fields.String(),
        values=ma.fields.String(),
        metadata={"description": "`self`: the address, of a path without variables."},
    )


class StoreMetaSchema(Base):
    """How the shop counts and measures."""

    timezone = _text("Of every date-time in answers.")
    currency = _text("ISO 4217.")
    currency_format = _text("What stands for it.")
    currency_position = _text("Where that stands.")
    thousand_separator = _text("For display; answers have none.")
    decimal_separator = _text("Of amounts in answers.")
    price_num_decimals = ma.fields.Integer(metadata={"description": "Of amounts in answers."})
    tax_included = _flag("Whether prices include taxes.")
    weight_unit = _text("For weights.")
    dimension_unit = _text("For measures.")
    ssl_enabled = _flag("Whether this request came over TLS.")
    permalinks_enabled = _flag("Whether routes are paths.")
    generate_password = _flag("Whether a customer can be created without a password.")
    links = ma.fields.Dict(keys=ma.fields.String(), values=ma.fields.String())


class StoreSchema(Base):
    """A shop and its routes."""

    name = _text("The shop's name.")
    description = _text("What this service is.")
    URL = _text("Where the service is.")
    wc_version = _text("The WooCommerce whose legacy API this one behaves like.")
    version = _text("Of the legacy API; in v3.")
    routes = ma.fields.Dict(keys=ma.fields.String(), values=ma.fields.Nested(RouteSchema))
    meta = ma.fields.Nested(StoreMetaSchema)


class StoreResponse(Base):
    """A shop under its key."""

    store = ma.fields.Nested(StoreSchema, required=True)
