"""Operations in the OpenAPI document: IDs, authentication, and statuses with their error codes."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from string import Formatter
from typing import Any

import marshmallow as ma

from app.api.dialect import NATIVE, SAFE_METHODS, Dialect
from app.api.openapi import document as openapi
from app.api.openapi.document import Document, references
from app.errors import ShopError
from app.errors.codes import ERRORS
from app.pricing.discounts import COUPON_TYPES
from app.services.orders.item_changes import NEEDS_PRICE


def describe_operation(
    operation: Document,
    declared: Mapping[str, Any],
    method: str,
    dialect: Dialect,
    *,
    is_public: bool,
    may_use_replica: bool,
) -> None:
    """Complete an operation with what its blueprint and its decorators declare.

    Args:
        operation: the operation as flask-smorest describes it. It is changed.
        declared: what the decorators of ``Blueprint`` declared for the view.
        may_use_replica: whether reads of the blueprint may use a replica.
    """
    is_safe = method.upper() in SAFE_METHODS
    # Strict requests are checked for unknown parameters, except those that need no key.
    is_checked = dialect is NATIVE and not is_public
    methods = declared.get("methods", [method.upper()])
    if method.upper() != methods[0]:
        operation[openapi.ALIAS] = True
    if "operation_id" in declared:  # missing for a MethodView of a plugin
        operation["operationId"] = declared["operation_id"]
    if not is_public:
        operation["security"] = openapi.security(dialect)
    for parameter in operation.get("parameters", ()):
        if about := getattr(parameter.get("schema"), "about_further", ""):
            text = declared["docstring"]
            text["description"] = f"{text.get('description', '')}\n\n{about}".lstrip()
    codes = dict(declared.get("codes", {}))
    common = _common_codes(
        operation, declared, is_safe=is_safe, is_public=is_public, is_checked=is_checked
    )
    _describe_headers(
        operation,
        method,
        codes,
        may_be_strict=is_checked,
        may_use_replica=is_safe and may_use_replica,
        writes=not is_safe and not is_public,
    )
    responses = operation.setdefault("responses", {})
    _add_responses(responses, declared, dialect)
    codes |= {code: ERRORS[code][0] for code in common}
    pairs = [*codes.items(), *declared.get("codes_as", ())]
    describe_errors(responses, pairs, invalid_input(operation))
    for status, response in responses.items():
        if int(status) < 400:
            response["headers"] = openapi.COMMON_HEADERS | response.get("headers", {})


def describe_file(operation: Document, media_types: Collection[str]) -> None:
    """Describe a body that is a file of one of some media types."""
    if media_types:
        schema = {"type": "string", "format": "binary"}
        content = {media_type: {"schema": schema} for media_type in media_types}
        operation["requestBody"] = {"required": True, "content": content}


def _add_responses(
    responses: dict[int | str, Document], declared: Mapping[str, Any], dialect: Dialect
) -> None:
    """Add the further statuses and media types of a successful response."""
    for event in declared.get("status_events", ()):
        if (status := dialect.status(event)) != 200:
            responses[status] = deepcopy(responses[200])
    for media_type in declared.get("media_types", ()):
        responses[200]["content"][media_type] = {"schema": {"type": "string"}}


def _common_codes(
    operation: Document,
    declared: Mapping[str, object],
    *,
    is_safe: bool,
    is_public: bool,
    is_checked: bool,
) -> list[str]:
    """Return the error codes that follow from the form of an operation, in document order."""
    has_body = "requestBody" in operation
    applies = {
        "shop_api_authentication_error": not is_public,
        "shop_api_too_many_requests": not is_public,
        "shop_api_cross_site_request": not is_safe,
        "shop_api_no_route": declared.get("has_variable"),
        "shop_api_invalid_json": has_body,
        "shop_api_request_entity_too_large": has_body,
        "shop_api_unsupported_media_type": has_body,
        "shop_api_invalid_param": has_body or operation.get("parameters") or is_checked,
        "shop_api_internal_error": True,
        "shop_api_unavailable": True,
        "shop_api_outcome_unknown": not is_safe,
    }
    return [code for code, is_possible in applies.items() if is_possible]


def _header(name: str, description: str, **schema: object) -> Document:
    described = {"type": "string", **schema}
    return {"in": "header", "name": name, "description": description, "schema": described}


_OF_CODE = {
    "shop_api_precondition_failed": [
        _header(
            "If-Match", "Process the request only if the resource has one of these entity tags."
        ),
        _header(
            "If-None-Match",
            "Process the request only if the resource has none of these entity tags.",
        ),
    ],
    "shop_api_idempotency_key_reused": [
        _header(
            "Idempotency-Key",
            "Unique key that makes the request safe to retry for 24 hours.",
            pattern="^[!-~]{1,255}$",
        )
    ],
}


_POSITION = _header(
    "X-Shop-Position",
    "`X-Shop-Position` of an earlier response. A replica of the database may then serve the "
    "request, and the response shows that write, or a state that is not earlier than that of the "
    "read. Ignored by a service without replicas.",
)
_STRICT = (
    "`handling=strict` rejects unknown names, and values that would be converted to other values."
)
_STALE = (
    "`stale-while=<seconds>` lets a replica of the database serve the request, with data that is "
    "at most that old. Ignored by a service without replicas."
)


def _describe_headers(
    operation: Document,
    method: str,
    codes: Collection[str],
    *,
    may_be_strict: bool,
    may_use_replica: bool,
    writes: bool,
) -> None:
    """Add the request headers of an operation, and the response headers that they add.

    Args:
        operation: the operation with its successful responses.
        method: the method in lower case.
        may_be_strict: whether the client can ask for strict handling.
        may_use_replica: whether a replica can serve the operation if the client allows it.
        writes: whether the operation can write.
    """
    headers = [header for code in codes for header in _OF_CODE.get(code, ())]
    if may_use_replica:
        headers.append(_POSITION)
    preferences = [_STRICT] * may_be_strict + [_STALE] * may_use_replica
    if preferences:
        headers.append(_header("Prefer", " ".join(preferences)))
    if headers:
        operation.setdefault("parameters", []).extend(deepcopy(headers))
    responses = operation.setdefault("responses", {})
    if writes or may_use_replica:
        _add(responses, "X-Shop-Position")
    if "shop_api_idempotency_key_reused" in codes:
        _add(responses, "Idempotent-Replayed")
    if method == "get" and "shop_api_precondition_failed" in codes:
        _add(responses, "ETag")
        responses[304] = {
            "description": "Not modified: the resource has an entity tag in `If-None-Match`.",
            "headers": references("ETag"),
        }


def _add(responses: dict[int | str, Document], header: str) -> None:
    """Add a header to the successful responses."""
    for status in {200, 201} & responses.keys():
        responses[status].setdefault("headers", {}).update(references(header))


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
    "shop_api_invalid_order_item": {"param": "order.line_items[0]", "reason": NEEDS_PRICE},
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
