"""The extension that puts ``customer`` into every order response (spec 1, 2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import Blueprint, Flask, Response

from app.api.error_handlers import handle_exception
from app.api.order_extensions import extend_response
from app.api.serializers import Serializer
from app.api.smorest import Api
from app.api.versions import current_api_version
from app.errors import InvalidParams
from app.models.address import BILLING_PARTS, SHIPPING_PARTS
from app.numbers import INT64_MAX
from app.plugins import OrderExtension, registry
from app.schemas.customers import CustomerSchema
from app.schemas.fields import either
from app.schemas.orders import GuestCustomerSchema
from app.services import order_queries
from app.services.customer_statistics import COLUMNS

CUSTOMER = Serializer(CustomerSchema, COLUMNS)

blp = Blueprint("order_extensions", __name__)


def init_app(app: Flask, api: Api) -> None:  # noqa: ARG001  # the plugin door's signature
    """Register the extension and the hook that finds orders in other views' responses."""
    app.register_blueprint(blp)
    with app.app_context():
        registry().add_order_extension(
            OrderExtension("customer", either(CustomerSchema, GuestCustomerSchema), customers_of)
        )


@blp.after_app_request
def extend_order_response(response: Response) -> Response:
    """Extend the orders of a response, whoever made it."""
    try:
        return extend_response(response)
    except InvalidParams as error:
        # What a hook raises is a 500 to Flask, logged with its traceback.
        return handle_exception(error)


def customers_of(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the customer of each order: the account's, or the guest's form (spec 2.3)."""
    ids = {order["customer_id"] for order in found if 0 < order["customer_id"] <= INT64_MAX}
    view = CUSTOMER.of(current_api_version().schemas)
    rows = order_queries.customers_by_id(list(ids), view.columns) if ids else {}
    customers = {customer_id: view.row(row) for customer_id, row in rows.items()}
    return [customers.get(order["customer_id"]) or _guest(order) for order in found]


def _guest(order: dict[str, Any]) -> dict[str, Any]:
    billing = _address(order.get("billing_address"), BILLING_PARTS)
    return {
        "id": 0,
        "email": billing["email"],
        "first_name": billing["first_name"],
        "last_name": billing["last_name"],
        "billing_address": billing,
        "shipping_address": _address(order.get("shipping_address"), SHIPPING_PARTS),
    }


def _address(given: Any, parts: Sequence[str]) -> dict[str, Any]:
    parts_given = given if isinstance(given, dict) else {}
    return {part: parts_given.get(part, "") for part in parts}
