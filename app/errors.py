"""Every error that the API can answer: one exception, one table of codes.

The table is section 7 of the specification and section 1 of the decisions on one screen. A code
that is not in it cannot be raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# code: (HTTP status, message). Braces are filled from the keyword arguments of ShopError.
ERRORS: dict[str, tuple[int, str]] = {
    # spec 7.1
    "shop_api_invalid_coupon_id": (404, "No published coupon has this id."),
    "shop_api_invalid_coupon_code": (404, "No published coupon has this code."),
    "shop_api_missing_coupon_data": (400, "The body has no 'coupon' object."),
    "shop_api_missing_coupon_code": (400, "A coupon needs a 'code'."),
    "shop_api_coupon_code_already_exists": (400, "Another published coupon has this code."),
    "shop_api_invalid_coupon_type": (
        400,
        "Invalid coupon type - the coupon type must be any of these: {types}",
    ),
    "shop_api_cannot_create_coupon": (400, "The coupon cannot be stored: {reason}"),
    "shop_api_cannot_update_coupon": (400, "The coupon cannot be changed: {reason}"),
    "shop_api_user_cannot_create_coupon": (401, "You are not permitted to create coupons."),
    "shop_api_user_cannot_read_coupons_count": (401, "You are not permitted to count coupons."),
    "shop_api_missing_coupons_data": (400, "The body has no 'coupons' array."),
    "shop_api_coupons_request_entity_too_large": (
        413,
        "At most {limit} coupons are accepted in one request.",
    ),
    # decisions 1: capabilities checked for each coupon
    "shop_api_user_cannot_read_coupon": (401, "You are not permitted to read this coupon."),
    "shop_api_user_cannot_edit_coupon": (401, "You are not permitted to edit this coupon."),
    "shop_api_user_cannot_delete_coupon": (401, "You are not permitted to delete this coupon."),
    # spec 7.2
    "shop_api_invalid_customer_id": (404, "The customer id is not a positive integer."),
    "shop_api_invalid_customer": (404, "No user has this id."),
    "shop_api_invalid_customer_email": (404, "No account has this e-mail address."),
    "shop_api_user_cannot_read_customer": (401, "You are not permitted to read this customer."),
    "shop_api_user_cannot_edit_customer": (401, "You are not permitted to edit this customer."),
    "shop_api_user_cannot_delete_customer": (401, "You are not permitted to delete this customer."),
    "shop_api_user_cannot_read_customers_count": (401, "You are not permitted to count customers."),
    "shop_api_user_cannot_create_customer": (401, "You are not permitted to create customers."),
    "shop_api_missing_customer_data": (400, "The body has no 'customer' object."),
    "shop_api_missing_customer_email": (400, "A customer needs an 'email'."),
    "shop_api_missing_customers_data": (400, "The body has no 'customers' array."),
    "shop_api_customers_request_entity_too_large": (
        413,
        "At most {limit} customers are accepted in one request.",
    ),
    # decisions 5: from account creation, without a prefix
    "registration-error-invalid-email": (400, "The e-mail address is not valid."),
    "registration-error-email-exists": (400, "Another account has this e-mail address."),
    "registration-error-invalid-username": (
        400,
        "The username is not valid: 1 to 60 letters, digits, _ . - @ and inner single blanks.",
    ),
    "registration-error-username-exists": (400, "Another account has this username."),
    "shop_api_cannot_delete_customer": (400, "You cannot delete your own account."),
    # decisions 1 and 7
    "shop_api_invalid_order_id": (404, "No order has this id."),
    "shop_api_user_cannot_read_order": (401, "You are not permitted to read this order."),
    "shop_api_user_cannot_read_orders_count": (401, "You are not permitted to count orders."),
    # decisions 1: whatever raised it
    "shop_api_authentication_error": (401, "{reason}"),
    "shop_api_no_route": (404, "Nothing is found at this path."),
    "shop_api_method_not_allowed": (405, "This path does not answer the method {method}."),
    "shop_api_cross_site_request": (
        403,
        "This request comes from a page of a site that SHOP_CORS_ORIGINS does not name.",
    ),
    "shop_api_invalid_json": (400, "The body is not valid JSON: {reason}"),
    "shop_api_invalid_param": (400, "{param}: {reason}"),
    "shop_api_request_entity_too_large": (413, "The body is larger than {limit} bytes."),
    # RFC 9110
    "shop_api_precondition_failed": (
        412,
        "The record is not what If-Match or If-None-Match asks for.",
    ),
    # draft-ietf-httpapi-idempotency-key-header
    "shop_api_idempotency_key_reused": (
        422,
        "Another body was sent with this Idempotency-Key. Send a new key with a new request.",
    ),
    "shop_api_answer_too_large": (
        413,
        "With an Idempotency-Key an answer has at most {limit} bytes. Send fewer items.",
    ),
    "shop_api_too_many_requests": (429, "Too many failed attempts. Try again later."),
    "shop_api_internal_error": (500, "The server could not handle this request."),
    "shop_api_unavailable": (503, "{reason} Try again shortly."),
}


class ShopError(Exception):
    """A refusal with a code of the table.

    Args:
        code: a key of ERRORS; another one raises KeyError at once.
        param: the input that the error is about, as the client named it (``coupon.amount``).
        headers: HTTP headers that the answer carries.
        details: what fills the braces of the message.
    """

    def __init__(
        self,
        code: str,
        *,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        **details: Any,
    ) -> None:
        self.status, message = ERRORS[code]
        self.code = code
        self.message = message.format(param=param, **details)
        self.param = param
        self.headers = dict(headers or {})
        super().__init__(f"{code}: {self.message}")

    def with_status(self, status: int) -> ShopError:
        """Return this error with another HTTP status (spec 4.2, edit rule 2)."""
        self.status = status
        return self

    @property
    def entries(self) -> list[dict[str, str]]:
        """Return the entries of the envelope's ``errors`` list."""
        entry = {"code": self.code, "message": self.message}
        return [entry | {"param": self.param} if self.param else entry]


class InvalidParams(ShopError):
    """One or several inputs have a type or value that cannot be understood.

    Args:
        reasons: for each input, as the client named it, what is wrong with it. At least one.
    """

    def __init__(self, reasons: Mapping[str, str]) -> None:
        each = [
            ShopError("shop_api_invalid_param", param=param, reason=reason)
            for param, reason in reasons.items()
        ]
        first, reason = next(iter(reasons.items()))
        super().__init__("shop_api_invalid_param", param=first, reason=reason)
        # A bulk result has room for one message only (spec 4.3 rule 4): it says all of them.
        self.message = " ".join(error.message for error in each)
        self._entries = [entry for error in each for entry in error.entries]

    @property
    def entries(self) -> list[dict[str, str]]:
        """Return an entry for each input that was refused (decisions 1)."""
        return self._entries


SCHEMA_IS_BEHIND = "The database schema is not current: run `flask --app wsgi db upgrade`."


def unavailable(reason: str) -> ShopError:
    """Return the error for a service that will be back in seconds."""
    return ShopError("shop_api_unavailable", reason=reason, headers={"Retry-After": "5"})
