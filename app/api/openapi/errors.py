"""Error responses in the OpenAPI document: one block per status, with an example of each code."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Any

import marshmallow as ma

from app.api.openapi.document import Document, references
from app.errors import ShopError
from app.errors.codes import ERRORS
from app.pricing.discounts import COUPON_TYPES

_REASONS = [
    {
        "code": "minimum_amount",
        "message": "The subtotal of 27.90 is below the minimum amount of 100.00.",
    }
]

EXAMPLES: Mapping[str, Mapping[str, object]] = {
    "shop_api_authentication_error": {"reason": "The consumer key or its secret is wrong."},
    "shop_api_cannot_create_coupon": {"reason": "the code is empty."},
    "shop_api_cannot_create_order": {"reason": "another order has this order key."},
    "shop_api_cannot_update_coupon": {"reason": "the code is empty."},
    "shop_api_cannot_update_order": {"reason": "the phone number is missing."},
    "shop_api_cart_request_entity_too_large": {"limit": 100, "what": "items"},
    "shop_api_coupon_not_applicable": {
        "coupon": "demo-vip",
        "param": "redemption.code",
        "reason": _REASONS[0]["message"],
        "reasons": _REASONS,
    },
    "shop_api_coupons_request_entity_too_large": {"limit": 100},
    "shop_api_customers_request_entity_too_large": {"limit": 100},
    "shop_api_events_expired": {"removed_id": 4711},
    "shop_api_invalid_coupon_type": {"types": ", ".join(COUPON_TYPES)},
    "shop_api_invalid_currency": {"param": "order.currency", "currency": "KWD"},
    "shop_api_invalid_import": {
        "reason": "The file cannot be imported: line 1: the column 'amuont' is not imported."
    },
    "shop_api_invalid_import_status": {"reason": "The import is finished."},
    "shop_api_invalid_json": {"reason": "unexpected end of data: line 1 column 1 (char 0)"},
    "shop_api_invalid_metadata": {
        "param": "coupon.metadata.erp_id",
        "reason": "the value is larger than 65,536 bytes.",
    },
    "shop_api_invalid_order_item": {
        "param": "order.line_items[0]",
        "reason": "needs a price, a subtotal or a total.",
    },
    "shop_api_invalid_order_refund": {
        "param": "order_refund.amount",
        "reason": "must be at most 4.80, which is left of the order.",
    },
    "shop_api_invalid_order_status": {
        "statuses": "pending, processing, on-hold, completed, cancelled, refunded, failed"
    },
    "shop_api_invalid_redemption_status": {"reason": "it has been released."},
    "shop_api_method_not_allowed": {"method": "PATCH", "allowed": "GET, HEAD, PUT, DELETE"},
    "shop_api_order_too_large": {"limit": 1000},
    "shop_api_orders_request_entity_too_large": {"limit": 100},
    "shop_api_pattern_too_small": {
        "size": "32,768",
        "minimum": "10,000,000",
        "remedy": "Add # signs, or set allow_guessable.",
    },
    "shop_api_request_entity_too_large": {"limit": 5 * 1024 * 1024},
    "shop_api_unsupported_media_type": {"coding": "gzip"},
    "shop_api_response_too_large": {"limit": 16 * 1024 * 1024},
    "shop_api_insufficient_key_rights": {"param": "key.permission"},
    "shop_api_invalid_webhook_topic": {
        "param": "webhook.topics",
        "reason": "Unknown topics: coupons.*. Known topics: *, coupon.*, coupon.created.",
    },
    "shop_api_webhook_not_active": {"status": "paused"},
    "shop_api_unavailable": {"reason": "The database cannot be reached."},
}
"""Example values for the placeholders in the message of each code, with the default settings."""

_HEADERS = {
    401: references("WWW-Authenticate"),
    429: references("Retry-After"),
    503: references("Retry-After"),
    504: references("Retry-After"),
}


def describe_errors(
    responses: Document, codes: Iterable[tuple[str, int]], invalid: Mapping[str, str]
) -> None:
    """Add the error responses of an operation.

    Args:
        codes: error codes of the operation, each with its status.
        invalid: ``param`` and ``reason`` of an invalid input of the operation.
    """
    for key in [key for key, known in responses.items() if isinstance(known, str)]:
        del responses[key]  # flask-smorest's response to invalid input, which has no codes
    examples = {**EXAMPLES, "shop_api_invalid_param": invalid}
    by_status: dict[int, dict[str, Document]] = defaultdict(dict)
    for code, status in codes:
        by_status[status][code] = _entry(code, examples.get(code, {}))
    for status, entries in sorted(by_status.items()):
        response: Document = {
            "description": "\n".join(
                f"- `{code}`: {entry['message']}" for code, entry in entries.items()
            ),
            "content": {
                "application/json": {
                    "schema": {"$ref": "#/components/schemas/ErrorResponse"},
                    "examples": {
                        code: {"value": {"errors": [entry]}} for code, entry in entries.items()
                    },
                }
            },
        }
        if status in _HEADERS:
            response["headers"] = dict(_HEADERS[status])
        responses[str(status)] = response


def _entry(code: str, details: Mapping[str, Any]) -> Document:
    """Return the entry of an error as a response contains it."""
    names = {name for _, name, _, _ in Formatter().parse(ERRORS[code][1]) if name}
    missing = dict.fromkeys(names - details.keys() - {"param"}, "…")
    (entry,) = ShopError(code, **{**missing, **details}).entries()
    return entry


def invalid_input(operation: Document) -> dict[str, str]:
    """Return ``param`` and ``reason`` of an input that an operation rejects."""
    if "requestBody" in operation:
        (content,) = operation["requestBody"]["content"].values()
        wrapper, field = next(iter(content["schema"].fields.items()))
        kind = "an array" if isinstance(field, ma.fields.List) else "an object"
        return {"param": wrapper, "reason": f"must be {kind}."}
    names = [
        field.data_key or name
        for parameter in operation.get("parameters", ())
        if isinstance(parameter.get("schema"), ma.Schema)
        for name, field in parameter["schema"].fields.items()
    ]
    if "page" in names:
        return {"param": "page", "reason": "must be an integer of at least 1."}
    if "older_than_days" in names:
        return {"param": "older_than_days", "reason": "must be an integer of at least 0."}
    return {"param": names[0] if names else "fields", "reason": "must not contain a NUL character."}
