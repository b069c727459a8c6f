"""The index document of the legacy API (decisions 12)."""

from __future__ import annotations

import marshmallow as ma

from app.schemas.envelope import Base


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
