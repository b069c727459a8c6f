"""Operations in the OpenAPI document: IDs, authentication, and statuses with their error codes."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from app.api.dialect import NATIVE, SAFE_METHODS, Dialect
from app.api.openapi import document as openapi
from app.api.openapi import headers as request_headers
from app.api.openapi.document import Document
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
    request_headers.describe(
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


def _add_responses(
    responses: dict[Any, Any], declared: Mapping[str, Any], dialect: Dialect
) -> None:
    """Add the further statuses and media types of a successful response."""
    for event in declared.get("status_events", ()):
        if (status := dialect.status(event)) != 200:
            responses[status] = deepcopy(responses[200])
    for media_type in declared.get("media_types", ()):
        responses[200]["content"][media_type] = {"schema": {"type": "string"}}


def _common_codes(
    operation: Document,
    declared: Mapping[str, Any],
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
