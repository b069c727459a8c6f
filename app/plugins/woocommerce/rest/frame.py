"""The frame of every request of this dialect: the order of checks, and the form of responses.

Credentials, permission of the key, route, missing parameters, all invalid parameters, capability,
and then the operation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import marshmallow as ma
from flask import Response, g, request
from werkzeug.exceptions import RequestEntityTooLarge

from app.api.authentication import limit_body
from app.api.error_handlers import handle_exception
from app.api.etags import with_etag
from app.api.idempotency import idempotent_in_form
from app.api.request_parser import is_strict
from app.api.responses import json_bytes, json_response
from app.auth.principals import Principal
from app.conversions.text import did_you_mean
from app.errors import ShopError
from app.plugins.woocommerce.rest import errors, identity, parameters
from app.plugins.woocommerce.rest.arguments import ListArgument, ObjectArgument, Problem
from app.plugins.woocommerce.rest.errors import RestError
from app.plugins.woocommerce.rest.operations import (
    Call,
    Operation,
    Route,
    description,
    methods_of,
)
from app.plugins.woocommerce.rest.site import NAMESPACE, Record, Site, current_site
from app.schemas.base import Base
from app.schemas.fields.given import defaults_of, load_given
from app.schemas.strict import MAX_UNKNOWN

ACCOUNTS = "customers"
"""The resource on whose records a caller has different rights."""


def respond(route: Route, ids: Mapping[str, int]) -> Response:
    """Return the response to the current request, given the variables of its path."""
    site, query = current_site(), {}
    try:
        query = parameters.nested(request.query_string.decode("utf-8", "replace"))
        response = _respond(route, ids, query, site)
    except (RestError, ShopError) as error:
        shown = errors.as_rest_error(error)
        response = json_response(shown.body, shown.status, shown.headers)
    except Exception as error:  # noqa: BLE001  # the native handler logs it and chooses the status
        response = handle_exception(error)
    is_hidden = response.status_code in {401, 403} or "Allow" in response.headers
    is_gone = response.status_code == 404 and route.resource == ACCOUNTS
    is_found = request.method == "OPTIONS" or route.operation(request.method)
    if is_found and not is_hidden and not is_gone:
        principal, found = g.get("principal"), route.operations.items()
        allowed = methods_of(name for name, each in found if each.is_open_to(principal))
        response.headers["Allow"] = ", ".join(allowed)
    return _completed(response, query, site)


def _respond(
    route: Route, ids: Mapping[str, int], query: dict[str, object], site: Site
) -> Response:
    principal = identity.authenticated()
    if principal:
        identity.require_allowed(principal, route)
        site = replace(site, actor=principal)
    if request.method == "OPTIONS":
        return json_response(
            parameters.selected(description(route, site, with_schema=True), query.get("_fields"))
        )
    operation = route.operation(request.method)
    if operation is None:
        raise errors.no_route(_hint())
    merged = _merged(query, operation, principal)
    args, given = checked_arguments(operation.args, merged, ids)
    if not operation.is_open_to(principal):
        raise errors.forbidden(operation.action, is_known=principal is not None)
    call = Call(principal or Principal(0, frozenset()), ids, args, given, site, merged)
    results: list[object] = []

    def run() -> Response:
        try:
            result = operation.call(call)
        except errors.FAILURES as error:
            raise in_context(error, operation) from None
        if isinstance(result, Response):
            return result
        results.append(result)
        return json_response(call.shown(result), operation.status)

    is_read = request.method in {"GET", "HEAD"}
    if is_read and not operation.is_list and ids:
        response = with_etag(run)()
    elif is_read or operation.is_public:
        response = run()
    else:
        response = _once(run, route, ids, results)
    if response.status_code == 201 and (own := _self_of(response.get_json())):
        response.headers["Location"] = own["href"]
    if results and route.resource == ACCOUNTS and "id" in ids:
        hints = _self_of(results[0]).get("targetHints", {})  # none of a deleted account
        response.headers["Allow"] = ", ".join(hints.get("allow", ()))
    return response


def _once(
    run: Callable[[], Response], route: Route, ids: Mapping[str, int], results: list[Any]
) -> Response:
    """Run an operation once per ``Idempotency-Key``.

    Objects of this dialect stand alone, and ``_fields`` can omit their IDs. A response is stored
    with the name and the ID of its record, by which the erasure of a customer finds persons.
    """
    resource = route.resource

    def named(body: Any) -> object:
        if route.path.endswith("/batch"):
            return {name: {resource: items} for name, items in body.items()} if body else {}
        return {resource: {"id": ids.get("order_id") or results[-1]["id"], "part": body}}

    def bare(stored: Any) -> object:
        if route.path.endswith("/batch"):
            return {name: items[resource] for name, items in stored.items()} or []
        return stored[resource]["part"]

    return idempotent_in_form(run, named, bare)()


def _self_of(body: object) -> Record:
    """Return the link of a record to itself, if a body has one."""
    links = body.get("_links", {}) if isinstance(body, dict) else {}
    found: Mapping[str, object] = links.get("self", [{}])[0]
    return found


# --- parameters ---


def checked_arguments(
    arguments: Base, merged: Mapping[str, object], ids: Collection[str] = ()
) -> tuple[dict[str, object], dict[str, object]]:
    """Return converted parameters with defaults, and those that were sent and are not null.

    Args:
        ids: names of the variables of the path.

    Raises:
        RestError: required parameters are missing, or others are invalid, all of them together. A
            strict request has no unknown names, either.
    """
    fields: Mapping[str, Any] = arguments.fields
    absent = [name for name, each in fields.items() if each.required and merged.get(name) is None]
    if absent:
        raise errors.missing(absent)
    sent = {name: merged[name] for name in fields if name in merged}
    values = {
        name: value
        for name, value in sent.items()
        if value is not None or not fields[name].null_is_valid
    }
    problems: dict[str, object] = _unknown_names(arguments, merged, ids) if is_strict() else {}
    given: dict[str, object] = {}
    try:
        given = load_given(arguments, values)
    except ma.ValidationError as error:
        problems |= error.messages_dict
    if problems:
        raise errors.invalid(problems)
    return {**defaults_of(arguments), **dict.fromkeys(sent), **given}, given


_ALWAYS_KNOWN = re.compile(r"_.*|oauth_.*|consumer_(key|secret)|id|order_id|context|customer")
"""Names that a strict request can always have; ``customer`` of a read order is ignored."""


def _merged(
    query: Mapping[str, object], operation: Operation, principal: Principal | None
) -> dict[str, object]:
    """Return the parameters in the query and in the body, which takes precedence.

    The body of a caller who lacks the capability is read up to 64 KiB, because invalid parameters
    are reported before the capability.
    """
    if "_jsonp" in query:
        message = "JSONP support is disabled on this site."
        raise RestError("rest_callback_disabled", message)
    if request.method in {"GET", "HEAD"}:
        return {**query}
    if not operation.is_open_to(principal):
        limit_body()
    try:
        return {**query, **parameters.body_of(request)}
    except RequestEntityTooLarge:
        if principal is None:
            raise errors.forbidden(operation.action, is_known=False) from None
        raise


def _unknown_names(
    arguments: Base, merged: Mapping[str, object], ids: Collection[str]
) -> dict[str, object]:
    """Return the problem of each parameter that is unknown, or has an unknown name in an object."""
    problems: dict[str, object] = {}
    own = {name: value for name, value in merged.items() if not _ALWAYS_KNOWN.fullmatch(name)}
    for place, name, known in islice(_unknown(arguments, own, ids), MAX_UNKNOWN):
        text = f"{place} is not a parameter of this operation{did_you_mean(name, known)}."
        problems.setdefault(place.partition("[")[0], Problem("rest_unknown_param", text))
    return problems


def _unknown(
    arguments: ma.Schema,
    given: Mapping[str, object],
    known: Collection[str] = (),
    place: str = "{}",
) -> Iterator[tuple[str, str, set[str]]]:
    """Yield the place of each unknown name, such as ``billing[zip]``, with the known names."""
    for name, value in given.items():
        field, own = arguments.fields.get(name), place.format(name[:100])
        if field is None and name not in known:
            yield own, name, {*arguments.fields}
        inner = field.inner if isinstance(field, ListArgument) else field
        if isinstance(inner, ObjectArgument):
            parts = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
            for at, part in parts:
                within = f"{own}[{{}}]" if at is None else f"{own}[{at}][{{}}]"
                if isinstance(part, dict):
                    yield from _unknown(inner.schema, part, place=within)


def in_context(error: errors.Failure, operation: Operation) -> RestError:
    """Return an error of a service: an unknown record is 400 in an update (wc-v3, Lists)."""
    if isinstance(error, RestError):
        return error
    shown = errors.as_rest_error(error)
    is_unknown = shown.code.endswith("_invalid_id") and not shown.code.startswith("wc_user")
    if operation.action == "edit" and is_unknown and shown.status == 404:
        return shown.with_status(400)
    return shown


_ELSEWHERE = ("products", "taxes", "shipping", "settings", "payment_gateways")


def _hint() -> str:
    namespace, _, rest = request.path.partition("/wp-json/")[2].partition("/")
    version, _, rest = rest.partition("/")
    if namespace == "wc" and version != "v3":
        return f"This service has the namespace {NAMESPACE}."
    part = rest.split("/")[0]
    return f"This service has no {part.replace('_', ' ')}." if part in _ELSEWHERE else ""


# --- responses ---


def _completed(response: Response, query: Mapping[str, object], site: Site) -> Response:
    """Add the headers of every response, and wrap it if the client asks for an envelope."""
    response.headers.setdefault("Link", site.index_link)
    if not response.headers.get("Allow"):
        response.headers.pop("Allow", None)
    response.content_type = "application/json; charset=UTF-8"
    if "_envelope" in query:
        response = _enveloped(response, site.index_link)
    response.headers["X-Robots-Tag"] = "noindex"
    if is_strict():
        response.headers["Preference-Applied"] = "handling=strict"
    return response


def _enveloped(response: Response, index: str) -> Response:
    names = ("X-WP-Total", "X-WP-TotalPages", "X-WP-Total-Complete", "Link", "Location", "Allow")
    headers: dict[str, object] = {
        name: int(value) if name.startswith("X-WP") and value.isdigit() else value
        for name in names
        if (value := response.headers.get(name)) is not None
    }
    about: dict[str, object] = {"status": response.status_code, "headers": headers or []}
    if response.is_streamed:
        pieces = chain((b'{"body":',), response.iter_encoded(), (b",", json_bytes(about)[1:]))
        wrapped = Response(pieces)
        wrapped.call_on_close(response.close)
    else:
        wrapped = json_response({"body": response.get_json(silent=True), **about}, 200)
    wrapped.headers["Link"] = index
    wrapped.content_type = response.content_type
    return wrapped
