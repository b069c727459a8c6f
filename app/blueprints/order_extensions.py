"""The order extension ``customer``, and the hook that extends orders in other responses.

Every order in a response contains its customer (spec 1, 2.3).
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from flask import Flask

from app.api.json_text import JsonFloat
from app.api.order_extensions import extend_response
from app.api.representations import CUSTOMER
from app.api.smorest import Api
from app.catalog import OrderExtension, current_catalog
from app.conversions.numbers import INT64_MAX
from app.db.records import Record
from app.models.address import BILLING_PARTS, SHIPPING_PARTS
from app.schemas.customers import CustomerSchema
from app.schemas.fields.output import either
from app.schemas.orders.order import GuestCustomerSchema
from app.services.orders import queries as order_queries


def init_app(app: Flask, _api: Api) -> None:
    """Register the extension, and the hook for the responses of other views."""
    app.after_request(extend_response)
    with app.app_context():
        current_catalog().add_order_extension(
            CustomerExtension(
                "customer",
                either(
                    "OrderCustomer",
                    "Customer account, or the guest of the order. A guest has the ID 0.",
                    CustomerSchema,
                    GuestCustomerSchema,
                ),
                customers_of,
            )
        )


class CustomerExtension(OrderExtension):
    """The customer of each order, in the form of customers in the dialect."""

    def values_in(self, schemas: Mapping[Any, Any], orders: Sequence[Record]) -> Sequence[object]:
        """Return the customer of each order."""
        return customers_of(orders, schemas)


def customers_of(
    found: Sequence[Record], schemas: Mapping[Any, Any] | None = None
) -> list[dict[str, object]]:
    """Return the customer of each order: the account, or the form for guests (spec 2.3)."""
    ids = {order["customer_id"] for order in found if 0 < order["customer_id"] <= INT64_MAX}
    serializer = CUSTOMER.for_schemas(schemas or {})
    rows = order_queries.customers_by_id(list(ids), serializer.columns) if ids else {}
    customers = dict(zip(rows, serializer.rows(list(rows.values())), strict=True))
    return [customers.get(order["customer_id"]) or _guest(order) for order in found]


def _guest(order: dict[str, object]) -> dict[str, object]:
    billing = _address(order.get("billing_address"), BILLING_PARTS)
    return {
        "id": 0,
        "email": billing["email"],
        "first_name": billing["first_name"],
        "last_name": billing["last_name"],
        "billing_address": billing,
        "shipping_address": _address(order.get("shipping_address"), SHIPPING_PARTS),
    }


def _address(given: object, parts: tuple[str, ...]) -> dict[str, str]:
    if isinstance(given, dict) and (*given,) == parts and {*map(type, given.values())} == {str}:
        return given.copy()  # as the API writes it, in a third of the time
    parts_given = given if isinstance(given, dict) else {}
    return {
        part: value if type(value := parts_given.get(part, "")) is str else _text(value)
        for part in parts
    }


def _text(value: object) -> str:
    """Return a part of an address as a string (spec 2.2). Views of plugins can write any value."""
    is_number = isinstance(value, int | JsonFloat | Decimal) and not isinstance(value, bool)
    return str(value) if is_number else ""
