"""The errors of this dialect: one table for the codes of services (wc-v3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import marshmallow as ma

from app.errors import InvalidOrderItems, InvalidParams, ShopError
from app.plugins.woocommerce.rest.arguments import Problem
from app.schemas.loading import invalid_params


class RestError(Exception):
    """An error response: ``{code, message, data: {status}}``, and further keys of ``data``."""

    def __init__(
        self,
        code: str,
        message: str,
        status: int = 400,
        data: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.code, self.status = code, status
        self.data: dict[str, object] = {"status": status, **(data or {})}
        self.body = {"code": code, "message": message, "data": self.data}
        self.headers = dict(headers or {})
        super().__init__(f"{code}: {message}")

    def with_status(self, status: int) -> RestError:
        """Return this error with another status."""
        self.status = self.data["status"] = status
        return self


_RIGHTS = {
    "list": "you cannot list resources.",
    "view": "you cannot view this resource.",
    "create": "you are not allowed to create resources.",
    "edit": "you are not allowed to edit this resource.",
    "delete": "you are not allowed to delete this resource.",
    "batch": "you are not allowed to batch manipulate this resource.",
}


def forbidden(action: str, *, is_known: bool) -> RestError:
    """Return the error of a missing capability, for a caller who is known or anonymous."""
    code = f"woocommerce_rest_cannot_{'view' if action == 'list' else action}"
    return RestError(code, f"Sorry, {_RIGHTS[action]}", 403 if is_known else 401)


NO_ROUTE = "No route was found matching the URL and request method."


def no_route(more: str = "") -> RestError:
    """Return the error of an unknown path, or of a method that the path does not have."""
    return RestError("rest_no_route", f"{NO_ROUTE} {more}".rstrip(), 404)


def missing(names: list[str]) -> RestError:
    """Return the error of missing parameters."""
    message = f"Missing parameter(s): {', '.join(names)}"
    return RestError("rest_missing_callback_param", message, 400, {"params": names})


def invalid(problems: Mapping[str, object]) -> RestError:
    """Return the error of invalid parameters, by their names.

    Args:
        problems: for each parameter a Problem, or what marshmallow returns. Its first one is shown.
    """
    details = {name: _detail(name, found) for name, found in problems.items()}
    params = {name: each["message"] for name, each in details.items()}
    message = f"Invalid parameter(s): {', '.join(problems)}"
    return RestError("rest_invalid_param", message, 400, {"params": params, "details": details})


def _detail(name: str, found: Any) -> dict[str, object]:
    while isinstance(found, dict):
        key, found = next(iter(found.items()))
        name = f"{name}[{key}]"
    if isinstance(found, Problem):
        return {"code": found.code, "message": str(found), "data": None}
    data = {"param": name} if found[0].code == "rest_invalid_type" else None
    return {"code": found[0].code, "message": str(found[0]).replace("{}", name), "data": data}


TABLE: Mapping[str, tuple[str, str | None, int | None]] = {
    "shop_api_no_route": ("rest_no_route", NO_ROUTE, 404),
    "shop_api_method_not_allowed": ("rest_no_route", NO_ROUTE, 404),
    "shop_api_invalid_coupon_id": (
        "woocommerce_rest_shop_coupon_invalid_id", "Invalid ID.", None),
    "shop_api_invalid_order_id": ("woocommerce_rest_shop_order_invalid_id", "Invalid ID.", None),
    "shop_api_invalid_customer": ("wc_user_invalid_id", "Invalid user ID.", 404),
    "shop_api_invalid_customer_id": ("wc_user_invalid_id", "Invalid user ID.", 404),
    "shop_api_invalid_webhook_id": (
        "woocommerce_rest_shop_webhook_invalid_id", "ID is invalid.", None),
    "shop_api_invalid_order_note_id": (
        "woocommerce_rest_invalid_id", "Invalid resource ID.", 404),
    "shop_api_coupon_code_already_exists": (
        "woocommerce_rest_coupon_code_already_exists", "The coupon code already exists", 400),
    "shop_api_missing_coupon_code": (
        "woocommerce_rest_empty_coupon_code", "The coupon code cannot be empty.", 400),
    "shop_api_invalid_coupon_type": (
        "coupon_invalid_discount_type", "Invalid discount type.", 400),
    "registration-error-invalid-email": ("customer_invalid_email", "Invalid email address", 400),
    "registration-error-invalid-username": (
        "registration-error-invalid-username", "Please provide a valid account username.", 400),
    "registration-error-username-exists": (
        "registration-error-username-exists",
        "An account is already registered with that username. Please choose another.", 400),
    "shop_api_coupon_not_applicable": ("woocommerce_rest_invalid_coupon", None, 400),
    "shop_api_invalid_order_item": ("woocommerce_rest_invalid_order_item", None, 400),
    "shop_api_invalid_order_refund": ("woocommerce_rest_invalid_order_refund", None, 400),
    "shop_api_invalid_webhook_delivery_url": (
        "woocommerce_rest_shop_webhook_invalid_delivery_url", None, 400),
    "shop_api_invalid_webhook_topic": (
        "woocommerce_rest_shop_webhook_invalid_topic", "Webhook topic must be valid.", 400),
    "shop_api_cross_site_request": ("rest_forbidden", None, 403),
}  # fmt: skip
"""Code, message and status by the code of a service. None keeps what the service says."""

_CANNOT = re.compile(r"shop_api_user_cannot_(read|create|edit|delete)_")


NAMES: Mapping[str, str] = {
    "metadata": "meta_data", "type": "discount_type", "expiry_date": "date_expires",
    "exclude_product_ids": "excluded_product_ids", "product_category_ids": "product_categories",
    "exclude_product_category_ids": "excluded_product_categories",
    "enable_free_shipping": "free_shipping", "customer_emails": "email_restrictions",
    "billing_address": "billing", "shipping_address": "shipping",
    "payment_details": "payment_method", "topics": "topic",
    "order.note": "customer_note",  # a note of an order has the native name
}  # fmt: skip
"""Names of this dialect for native names of fields in errors."""


FAILURES = (ShopError, ma.ValidationError, RestError)
"""What services, schemas and this dialect raise."""
Failure = ShopError | ma.ValidationError | RestError


def as_rest_error(error: Failure) -> RestError:
    """Return the error of a service or of a schema in this dialect."""
    if isinstance(error, RestError):
        return error
    if isinstance(error, ma.ValidationError):
        return _invalid_inputs(invalid_params(error), in_wrapper=False)
    if found := _CANNOT.match(error.code):
        return forbidden("view" if found[1] == "read" else found[1], is_known=True)
    by_param = isinstance(error, InvalidParams | InvalidOrderItems)
    if by_param or error.code.endswith(("_metadata", "_invalid_currency")):
        return _invalid_inputs(error)
    code, message, status = TABLE.get(
        error.code, (error.code.replace("shop_api_", "woocommerce_rest_", 1), None, None)
    )
    data = {"reasons": error.reasons} if error.reasons else None
    message = message or str(error.sentence(_own_name))
    return RestError(code, message, status or error.status, data, headers=error.headers)


def _own_name(param: str) -> str:
    """Return the name of a parameter in this dialect."""
    place = NAMES.get(param, param.partition(".")[2])
    return re.sub(r"\w+", lambda found: NAMES.get(found[0], found[0]), place) or param


def _invalid_inputs(error: ShopError, *, in_wrapper: bool = True) -> RestError:
    """Return the error of several inputs, in the form of invalid parameters.

    Args:
        in_wrapper: whether names begin with that of the record, as in a native request.
    """
    reasons: dict[str, str] = {}
    for part in error.parts:
        param = part.param or "request"
        native = (in_wrapper and param.partition(".")[2]) or param
        path = re.split(r"[.\[]", native)[0]
        name = NAMES.get(path, path)
        reasons.setdefault(name, str(part))
    if isinstance(error, InvalidOrderItems):
        data = {"params": reasons}
        code = "woocommerce_rest_invalid_order_item"
        return RestError(code, next(iter(reasons.values())), error.status, data)
    problems = {name: Problem("rest_invalid_param", each) for name, each in reasons.items()}
    return invalid(problems).with_status(error.status)
