"""Conversion of exceptions to error responses (decisions 1)."""

import re
from collections import defaultdict

from flask import Response, current_app, request
from sqlalchemy.exc import DBAPIError
from werkzeug.exceptions import (
    HTTPException,
    InternalServerError,
    MethodNotAllowed,
    NotFound,
    RequestEntityTooLarge,
)

from app.api.authentication import authentication_error, deleted_user_error
from app.api.dialect import SAFE_METHODS, current_dialect
from app.api.error_pages import error_page, page_below_prefix
from app.api.openapi.info import guide_url
from app.api.responses import json_response, name_as_sent
from app.conversions.text import nearest_name
from app.db import deadline
from app.db.errors import (
    OutcomeUnknown,
    TryAgain,
    is_foreign_key_violation,
    is_full_disk,
    is_unavailable,
)
from app.db.migrations import SchemaState
from app.db.session import has_committed, schema_state
from app.db.timeouts import is_statement_timeout
from app.errors import RETRY_AFTER, InvalidParams, Sentence, ShopError, unavailable

_ID = re.compile(r"<id:\w+>")
_VARIABLE = re.compile(r"<(?:\w+:)?(\w+)>")


def handle_exception(error: Exception) -> Response:
    """Return the error response for an exception (decisions 1)."""
    if isinstance(error, InternalServerError) and isinstance(error.original_exception, Exception):
        error = error.original_exception  # raised by a hook or an error handler
    shop_error = as_shop_error(error)
    if shop_error.code == "shop_api_no_route" and current_dialect().authenticates_first:
        shop_error = authentication_error() or shop_error
    if shop_error.status in {503, 504}:
        # Log without a traceback, because an outage causes many of these errors.
        current_app.logger.warning("%s: %s", shop_error.code, _cause(error))
    elif shop_error.status >= 500:
        current_app.logger.error(shop_error.code, exc_info=error)
    if page := page_below_prefix(shop_error) or error_page(shop_error):
        return page
    dialect = current_dialect()
    if dialect.error_body:
        body = dialect.error_body(shop_error)
    else:
        entries = shop_error.entries(name_as_sent)
        body = {"errors": [e | {"code": dialect.translate(e["code"])} for e in entries]}
    response = json_response(body, shop_error.status, shop_error.headers)
    if not dialect.error_body:  # which has a Link of its own
        # Not in the body, whose form is specified. A browser keeps the code in a redirect.
        guide = guide_url(current_app.config, "errors")
        response.headers.add("Link", f'<{guide}#{shop_error.code}>; rel="help"')
    return response


def _too_large() -> ShopError:
    limit = request.max_content_length or 0
    is_largest = limit >= current_app.config["MAX_CONTENT_LENGTH"]
    more = "" if is_largest else "A larger one requires a key with the capability of the operation."
    return ShopError("shop_api_request_entity_too_large", limit=limit, more=more)


def _cause(error: Exception) -> str:
    """Return the type and first line of an error, without statements and values."""
    cause = getattr(error, "orig", None) or error
    return f"{type(cause).__name__}: {next(iter(str(cause).splitlines()), '')}"


def as_shop_error(error: Exception) -> ShopError:
    """Return the ShopError for an exception."""
    if isinstance(error, ShopError):
        return error
    if isinstance(error, MethodNotAllowed) and not current_dialect().hides_methods:
        allowed = ", ".join(sorted(error.valid_methods or ()))
        return ShopError(
            "shop_api_method_not_allowed",
            method=request.method,
            allowed=allowed,
            headers={"Allow": allowed},
        )
    if isinstance(error, RequestEntityTooLarge):
        return _too_large()
    if isinstance(error, NotFound | MethodNotAllowed):
        return _unknown_route()
    if isinstance(error, HTTPException) and (error.code or 500) < 500:
        return InvalidParams({"request": error.description or error.name})
    if is_statement_timeout(error) or is_unavailable(error):
        return _database_error(error)
    if isinstance(error, TryAgain):
        return unavailable("Other requests have changed the same records too often.")
    if is_foreign_key_violation(error) and (deleted := deleted_user_error()):
        return deleted
    if isinstance(error, DBAPIError) and (unusable := schema_error(error)):
        return unusable
    return ShopError("shop_api_internal_error")


def schema_error(failed: DBAPIError | None = None) -> ShopError | None:
    """Return the error of a schema that this version cannot use, as ``failed`` shows, or None."""
    state = schema_state(failed)
    if state is SchemaState.CURRENT:
        return None
    if state is SchemaState.TOO_NEW:
        return unavailable(f"{state}. Install it.")
    return unavailable(f"{state}. Run `shop-api db upgrade`.")


def _database_error(error: BaseException) -> ShopError:
    """Return the ShopError for a database that is unavailable or takes too long."""
    is_stored = has_committed() or isinstance(error, OutcomeUnknown)
    if is_stored and request.method not in SAFE_METHODS:
        # Clients repeat requests after Retry-After, which is safe with the same key only.
        has_key = "Idempotency-Key" in request.headers
        return ShopError("shop_api_outcome_unknown", headers=RETRY_AFTER if has_key else None)
    if is_full_disk(error):
        return unavailable("The disk of the database is full.")
    if deadline.is_over():
        seconds = current_app.config["SHOP_REQUEST_TIMEOUT_SECONDS"]
        return unavailable(Sentence("The database did not respond within {0:g} seconds.", seconds))
    if is_statement_timeout(error):
        seconds = current_app.config["SHOP_STATEMENT_TIMEOUT_SECONDS"]
        return unavailable(
            Sentence("The database took longer than {0:g} seconds. Request less data.", seconds)
        )
    return unavailable("The database cannot be reached.")


def _unknown_route() -> ShopError:
    """Return the error for the path of the current request."""
    suggestion = "" if request.url_rule else _suggestion(request.path)
    return ShopError("shop_api_no_route", more=suggestion)


def _suggestion(path: str) -> str | Sentence:
    """Return a sentence about the paths that exist, or an empty string if none is similar."""
    # Templates such as /orders/{id}, as in the OpenAPI document, that differ in one part.
    parts = re.sub(r"(?<=/)[0-9]+(?=/|$)", "{id}", path.rstrip("/")).split("/")
    similar: dict[int, dict[str, str]] = defaultdict(dict)
    for rule in current_app.url_map.iter_rules():
        if rule.rule.count("/") == len(parts) - 1:
            template = _VARIABLE.sub(r"{\1}", _ID.sub("{id}", rule.rule))
            known = template.split("/")
            different = [number for number, part in enumerate(known) if part != parts[number]]
            if not different:
                return ""  # the route exists for other values or methods
            if len(different) == 1:
                similar[different[0]][known[different[0]]] = template
    for number, templates in similar.items():
        if nearest := nearest_name(parts[number], templates):
            return Sentence("Did you mean {0}?", templates[nearest])
    return ""
