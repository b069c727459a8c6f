"""All errors of the API: one exception and one table of codes (spec 7, decisions 1).

Raising a code that is not in the table raises KeyError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# code: (HTTP status, message). Placeholders are the keyword arguments of ShopError.
ERRORS: dict[str, tuple[int, str]] = {
    # spec 7.1
    "shop_api_invalid_coupon_id": (404, "No published coupon has this ID."),
    "shop_api_invalid_coupon_code": (404, "No published coupon has this code."),
    "shop_api_missing_coupon_data": (400, "The request body has no 'coupon' object."),
    "shop_api_missing_coupon_code": (400, "The coupon code is required."),
    "shop_api_coupon_code_already_exists": (400, "Another published coupon already has this code."),
    "shop_api_invalid_coupon_type": (
        400,
        "Invalid coupon type - the coupon type must be any of these: {types}",
    ),
    "shop_api_cannot_create_coupon": (400, "The coupon cannot be created: {reason}"),
    "shop_api_cannot_update_coupon": (400, "The coupon cannot be updated: {reason}"),
    "shop_api_user_cannot_create_coupon": (401, "You do not have permission to create coupons."),
    "shop_api_user_cannot_read_coupons_count": (
        401,
        "You do not have permission to count coupons.",
    ),
    "shop_api_missing_coupons_data": (400, "The request body has no 'coupons' array."),
    "shop_api_coupons_request_entity_too_large": (
        413,
        "A request can contain at most {limit} coupons.",
    ),
    # redemptions 1, 4 and 6
    "shop_api_missing_cart_data": (400, "The request body has no 'cart' object."),
    "shop_api_cart_request_entity_too_large": (413, "A cart can contain at most {limit} {what}."),
    "shop_api_user_cannot_read_coupons": (401, "You do not have permission to read coupons."),
    "shop_api_coupon_not_applicable": (400, "The coupon '{coupon}' cannot be applied: {reason}"),
    "shop_api_missing_redemption_data": (400, "The request body has no 'redemption' object."),
    "shop_api_invalid_redemption_id": (404, "No redemption has this ID."),
    "shop_api_invalid_redemption_status": (409, "The redemption cannot be changed: {reason}"),
    "shop_api_user_cannot_create_redemption": (
        401,
        "You do not have permission to create redemptions.",
    ),
    "shop_api_user_cannot_read_redemption": (
        401,
        "You do not have permission to read this redemption.",
    ),
    "shop_api_user_cannot_edit_redemption": (
        401,
        "You do not have permission to update this redemption.",
    ),
    "shop_api_user_cannot_read_redemptions_count": (
        401,
        "You do not have permission to count redemptions.",
    ),
    # decisions 1: capabilities checked for each coupon
    "shop_api_user_cannot_read_coupon": (401, "You do not have permission to read this coupon."),
    "shop_api_user_cannot_edit_coupon": (401, "You do not have permission to update this coupon."),
    "shop_api_user_cannot_delete_coupon": (
        401,
        "You do not have permission to delete this coupon.",
    ),
    # spec 7.2
    "shop_api_invalid_customer_id": (
        404,
        "The customer ID must be a positive integer that identifies an account.",
    ),
    "shop_api_invalid_customer": (404, "No user has this ID."),
    "shop_api_invalid_customer_email": (404, "No account has this e-mail address."),
    "shop_api_user_cannot_read_customer": (
        401,
        "You do not have permission to read this customer.",
    ),
    "shop_api_user_cannot_edit_customer": (
        401,
        "You do not have permission to update this customer.",
    ),
    "shop_api_user_cannot_delete_customer": (
        401,
        "You do not have permission to delete this customer.",
    ),
    "shop_api_user_cannot_read_customers_count": (
        401,
        "You do not have permission to count customers.",
    ),
    "shop_api_user_cannot_create_customer": (
        401,
        "You do not have permission to create customers.",
    ),
    "shop_api_missing_customer_data": (400, "The request body has no 'customer' object."),
    "shop_api_missing_customer_email": (400, "The customer e-mail address is required."),
    "shop_api_missing_customers_data": (400, "The request body has no 'customers' array."),
    "shop_api_customers_request_entity_too_large": (
        413,
        "A request can contain at most {limit} customers.",
    ),
    # decisions 5: account creation, without a prefix
    "registration-error-invalid-email": (400, "The e-mail address is not valid."),
    "registration-error-email-exists": (400, "Another account already has this e-mail address."),
    "registration-error-invalid-username": (
        400,
        "The username is not valid. Use 1 to 60 letters, digits, _ . - @ and single inner spaces.",
    ),
    "registration-error-username-exists": (400, "Another account already has this username."),
    "shop_api_cannot_delete_customer": (400, "You cannot delete your own account."),
    # decisions 1 and 7, orders 5
    "shop_api_invalid_order_id": (404, "No order has this ID."),
    "shop_api_missing_order_data": (400, "The request body has no 'order' object."),
    "shop_api_missing_orders_data": (400, "The request body has no 'orders' array."),
    "shop_api_invalid_order_status": (
        400,
        "Invalid order status - the order status must be any of these: {statuses}",
    ),
    "shop_api_invalid_order_currency": (400, "The currency must be three letters."),
    "shop_api_invalid_order_item": (400, "{param}: {reason}"),
    "shop_api_order_too_large": (413, "A list of an order can contain at most {limit} items."),
    "shop_api_orders_request_entity_too_large": (
        413,
        "A request can contain at most {limit} orders.",
    ),
    "shop_api_cannot_create_order": (400, "The order cannot be created: {reason}"),
    "shop_api_cannot_update_order": (400, "The order cannot be updated: {reason}"),
    "shop_api_user_cannot_create_order": (401, "You do not have permission to create orders."),
    "shop_api_user_cannot_edit_order": (401, "You do not have permission to update this order."),
    "shop_api_user_cannot_delete_order": (401, "You do not have permission to delete this order."),
    "shop_api_user_cannot_read_order": (401, "You do not have permission to read this order."),
    "shop_api_user_cannot_read_orders_count": (401, "You do not have permission to count orders."),
    # orders 7 and 9: notes
    "shop_api_missing_order_note_data": (400, "The request body has no 'order_note' object."),
    "shop_api_invalid_order_note": (400, "The text of the note is required."),
    "shop_api_invalid_order_note_id": (404, "The order has no note with this ID."),
    "shop_api_user_cannot_read_order_notes": (
        401,
        "You do not have permission to read order notes.",
    ),
    "shop_api_user_cannot_create_order_note": (
        401,
        "You do not have permission to create order notes.",
    ),
    "shop_api_user_cannot_edit_order_note": (
        401,
        "You do not have permission to update this order note.",
    ),
    "shop_api_user_cannot_delete_order_note": (
        401,
        "You do not have permission to delete this order note.",
    ),
    # decisions 1: any cause
    "shop_api_authentication_error": (401, "{reason}"),
    "shop_api_no_route": (404, "No route matches this path."),
    "shop_api_method_not_allowed": (
        405,
        "Method {method} is not allowed. Allowed methods: {allowed}.",
    ),
    "shop_api_cross_site_request": (
        403,
        "Requests from pages of other sites are not allowed. Allowed origins: SHOP_CORS_ORIGINS.",
    ),
    "shop_api_invalid_json": (400, "The request body is not valid JSON: {reason}"),
    "shop_api_invalid_param": (400, "{param}: {reason}"),
    "shop_api_request_entity_too_large": (413, "The request body is larger than {limit} bytes."),
    # RFC 9110
    "shop_api_precondition_failed": (
        412,
        "The resource has changed since you read it (ETag mismatch).",
    ),
    # draft-ietf-httpapi-idempotency-key-header
    "shop_api_idempotency_key_reused": (
        422,
        "This Idempotency-Key was already used with another request body. Use a new key.",
    ),
    "shop_api_response_too_large": (
        413,
        "The response exceeds the {limit} bytes kept for an Idempotency-Key. Send fewer items.",
    ),
    "shop_api_too_many_requests": (429, "Too many failed attempts. Try again later."),
    "shop_api_internal_error": (500, "An internal error occurred."),
    "shop_api_unavailable": (503, "{reason} Try again shortly."),
}


class ShopError(Exception):
    """Error response with a code of the table.

    Args:
        code: a key of ERRORS.
        param: name of the invalid input as the client sent it (``coupon.amount``).
        headers: additional HTTP headers of the response.
        reasons: code and message of each reason, where an error has several (redemptions 6).
        details: values for the placeholders of the message.
    """

    def __init__(
        self,
        code: str,
        *,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        reasons: Sequence[Mapping[str, str]] = (),
        **details: Any,
    ) -> None:
        self.status, message = ERRORS[code]
        self.code = code
        self.message = message.format(param=param, **details)
        self.param = param
        self.headers = dict(headers or {})
        self.reasons = list(reasons)
        super().__init__(f"{code}: {self.message}")

    def with_status(self, status: int) -> ShopError:
        """Set another HTTP status and return this error (spec 4.2, update rule 2)."""
        self.status = status
        return self

    @property
    def entries(self) -> list[dict[str, Any]]:
        """Return the entries of the ``errors`` list in the response body."""
        entry: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.param:
            entry["param"] = self.param
        return [entry | {"reasons": self.reasons} if self.reasons else entry]


class InvalidInputs(ShopError):
    """One or more inputs are not accepted, all for reasons of one kind.

    Args:
        reasons: reason for each input by its name. At least one.
    """

    error_code = ""
    """A code whose message has the placeholders ``param`` and ``reason``."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        each = [
            ShopError(self.error_code, param=param, reason=reason)
            for param, reason in reasons.items()
        ]
        first, reason = next(iter(reasons.items()))
        super().__init__(self.error_code, param=first, reason=reason)
        # A bulk result holds a single message (spec 4.3 rule 4), so it contains all reasons.
        self.message = " ".join(error.message for error in each)
        self._entries = [entry for error in each for entry in error.entries]

    @property
    def entries(self) -> list[dict[str, Any]]:
        """Return one entry for each invalid input (decisions 1)."""
        return self._entries


class InvalidParams(InvalidInputs):
    """One or more inputs have a type or value that cannot be interpreted."""

    error_code = "shop_api_invalid_param"


class InvalidOrderItems(InvalidInputs):
    """One or more items of an order violate a rule (orders 2)."""

    error_code = "shop_api_invalid_order_item"


SCHEMA_IS_BEHIND = "The database schema is not current. Run `flask --app wsgi db upgrade`."


def unavailable(reason: str) -> ShopError:
    """Return the error of a service that is temporarily unavailable."""
    return ShopError("shop_api_unavailable", reason=reason, headers={"Retry-After": "5"})
