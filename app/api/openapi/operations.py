"""Operations in the OpenAPI document: IDs, authentication, and statuses with their error codes."""

from collections.abc import Collection, Mapping
from copy import deepcopy
from typing import Any

from app.api.dialect import NATIVE, SAFE_METHODS, Dialect
from app.api.openapi import document as openapi
from app.api.openapi.document import Document, references
from app.api.openapi.errors import describe_errors, invalid_input
from app.errors.codes import ERRORS


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
