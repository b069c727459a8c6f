"""The frame of every request of this dialect: the order of checks, and the form of responses.

Credentials, permission of the key, route, missing parameters, all invalid parameters, capability,
and then the operation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import marshmallow as ma
import orjson
from flask import Response, g, request
from werkzeug.exceptions import RequestEntityTooLarge

from app.api.authentication import limit_body, record_failed_login
from app.api.dialect import current_dialect
from app.api.error_handlers import handle_exception
from app.api.etags import with_etag
from app.api.idempotency import idempotent_in_form
from app.api.request_parser import is_strict
from app.api.responses import json_bytes, json_response
from app.auth.api_keys import key_with_roles
from app.auth.credentials import MalformedCredentials
from app.auth.principals import Capability, Credentials, InvalidCredentials, Permission, Principal
from app.errors import ShopError
from app.plugins.woocommerce import credentials
from app.plugins.woocommerce.credentials import SignedCredentials
from app.plugins.woocommerce.rest import errors, parameters
from app.plugins.woocommerce.rest.arguments import Problem, described
from app.plugins.woocommerce.rest.errors import RestError
from app.plugins.woocommerce.rest.schemas import batch_schema, resolved
from app.plugins.woocommerce.rest.site import NAMESPACE, Record, Site, current_site
from app.schemas.base import Base
from app.schemas.fields.given import defaults_of, load_given
from app.services.common.bulk import Precondition

EDITABLE = ("POST", "PUT", "PATCH")
KNOWN = {"GET", "HEAD", "DELETE", "OPTIONS", *EDITABLE}
_REASONS = {
    credentials.UNKNOWN_METHOD: "Invalid signature - signature method is invalid.",
    credentials.NO_TIMESTAMP: "Invalid timestamp.",
    credentials.WRONG_TIMESTAMP: "Invalid timestamp.",
    credentials.USED_NONCE: "Invalid nonce - nonce has already been used.",
}
"""What WooCommerce says for the reasons why a signature is rejected."""

ACCOUNTS = "customers"
"""The resource on whose records a caller has different rights."""
RESOURCES = {"coupons", "customers", "orders", "webhooks", "reports"}
"""What a key can be limited to. All keys can read the index, and what checks of connections do."""


@dataclass(slots=True)
class Call:
    """A request that has passed all checks."""

    actor: Principal
    ids: Mapping[str, int]  # the variables of the path
    args: Record  # the converted parameters, with defaults. ``null`` is None
    given: Record  # those that the client sent and that are not null
    site: Site
    sent: Record  # all parameters as they were sent, also those that every operation has
    check: Precondition | None = None  # of ``If-Match``, for the record that is written

    def shown(self, body: object) -> Any:
        """Return a body with the fields that the request asks for."""
        if "_fields" not in self.sent:
            return body
        body = orjson.loads(json_bytes(body))
        picked = parameters.selected(body, self.sent["_fields"])
        if isinstance(body, dict) and "_links" in body:
            picked = {name: each for name, each in picked.items() if name != "_links"}
            picked["_links"] = body["_links"]
        return picked


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of a route."""

    call: Callable[[Call], object]  # returns a response or its body
    action: str  # what it does, for the error of a missing capability
    needs: Sequence[Capability] = ()  # the capabilities; the operation checks further ones
    args: Base = field(default_factory=Base)  # its parameters, without those of the path
    summary: str = ""  # one sentence for the OpenAPI document
    result: type[Base] | None = None  # the schema of its result, or of the items of a list
    is_list: bool = False
    any_of: bool = False  # whether one of the capabilities suffices
    is_public: bool = False  # whether it needs no key
    name: str = ""  # its name in the OpenAPI document, by default that of its function

    @property
    def status(self) -> int:
        """Return the status of its success."""
        return 201 if self.action == "create" else 200

    def is_open_to(self, principal: Principal | None) -> bool:
        """Return whether a caller has the capabilities, or needs none."""
        if self.is_public or principal is None:
            return self.is_public
        able = map(principal.can, self.needs)
        return any(able) if self.any_of else all(able)


@dataclass(frozen=True, slots=True)
class Route:
    """A path with its operations by ``GET``, ``POST`` (create), ``EDIT`` and ``DELETE``."""

    path: str  # below the namespace
    operations: Mapping[str, Operation]
    also: tuple[str, ...] = ()  # resources that a key must allow in addition to that of the path

    @property
    def resource(self) -> str:
        """Return the first part of the path."""
        return self.path.strip("/").split("/")[0]

    def operation(self, method: str) -> Operation | None:
        """Return the operation of a method, or None."""
        method = "GET" if method == "HEAD" else method
        found = self.operations.get(method)
        return found or (self.operations.get("EDIT") if method in EDITABLE else None)


NOWHERE = Route("", {})
"""The route of an unknown path."""


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
        allowed = _methods(name for name, each in found if each.is_open_to(principal))
        response.headers["Allow"] = ", ".join(allowed)
    return _completed(response, query, site)


def _methods(names: Iterable[str]) -> list[str]:
    """Return the methods of operations in the order of the original."""
    return [method for name in names for method in (EDITABLE if name == "EDIT" else (name,))]


def _respond(
    route: Route, ids: Mapping[str, int], query: dict[str, object], site: Site
) -> Response:
    principal = _authenticate()
    if principal:
        _check_key(principal, route)
        site = replace(site, actor=principal)
    if request.method == "OPTIONS":
        return json_response(
            parameters.selected(description(route, site, with_schema=True), query.get("_fields"))
        )
    operation = route.operation(request.method)
    if operation is None:
        raise errors.no_route(_hint())
    merged = _merged(query, operation, principal)
    args, given = _arguments(operation, merged, ids)
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


# --- identity ---


def _authenticate() -> Principal | None:
    """Return the principal of the request, or None for an anonymous request.

    An unknown consumer key makes a request anonymous, but counts as a failed login.
    """
    given = current_dialect().credentials(request)
    if given is None:
        return None
    try:
        principal = given.principal()
    except InvalidCredentials as error:
        reason = str(error)
        failed = record_failed_login(given.consumer_key, reason)
        if failed.status != 401:
            raise failed from None
        _reject(given, reason)
        return None
    g.principal = replace(principal, request_id=g.request_start.ids["request_id"])
    return g.principal  # type: ignore[no-any-return] # of flask.g


def _reject(given: Credentials, reason: str) -> None:
    """Raise RestError, unless the request counts as anonymous."""
    if isinstance(given, MalformedCredentials):
        if given.kind == "parameter" and (missing := _missing_oauth()):
            raise missing
        if given.kind != "request":
            return
    elif isinstance(given, SignedCredentials):
        is_known = bool(key_with_roles(given.consumer_key))
        wrong = "Invalid signature - provided signature does not match."
        message = wrong if is_known else "Consumer key is invalid."
        raise _authentication_error(_REASONS.get(reason, message))
    elif not _has_secret() or not key_with_roles(given.consumer_key):
        return
    else:
        reason = "Consumer secret is invalid."
    raise _authentication_error(reason)


def _has_secret() -> bool:
    """Return whether the request has a consumer key and a secret that are not empty."""
    header, query = request.authorization, request.args
    pair = (
        (header.username, header.password)
        if header and header.type == "basic"
        else (query.get("consumer_key"), query.get("consumer_secret"))
    )
    return all(pair)


def _authentication_error(message: str) -> RestError:
    headers = {"WWW-Authenticate": 'Basic realm="WooCommerce API"'}
    return RestError("woocommerce_rest_authentication_error", message, 401, headers=headers)


_OAUTH = ("consumer_key", "timestamp", "nonce", "signature", "signature_method")


def _missing_oauth() -> RestError | None:
    """Return the error of missing parameters of a signature; None if all are missing."""
    header = request.authorization
    form = parameters.nested(parameters.form_of(request))
    given = {**request.args.to_dict(), **form, **((header and header.parameters) or {})}
    absent = [f"oauth_{name}" for name in _OAUTH if not given.get(f"oauth_{name}")]
    if len(absent) == len(_OAUTH):
        return None
    message = f"Missing OAuth parameter{'s' if len(absent) > 1 else ''} {', '.join(absent)}"
    return RestError("woocommerce_rest_authentication_missing_parameter", message, 401)


def _check_key(principal: Principal, route: Route) -> None:
    """Raise RestError unless the key allows the method and the resource of the route."""
    if request.method == "OPTIONS":
        return
    if request.method not in KNOWN or request.args.get("_method") == "":
        raise _authentication_error("Unknown request method.")
    if not principal.permission.allows(request.method):
        is_read = Permission.READ.allows(request.method)
        kind = "read" if is_read else "write"
        message = f"The API key provided does not have {kind} permissions."
        raise _authentication_error(message)
    if principal.resources is not None:
        own = {"refunds": "orders"}.get(route.resource, route.resource)
        for resource in (own, *route.also):
            if resource in RESOURCES - principal.resources:
                message = f"This API key is not valid for the resource {resource}."
                raise _authentication_error(message)


# --- parameters ---


def checked_arguments(
    arguments: Base, merged: Mapping[str, object]
) -> tuple[dict[str, object], dict[str, object]]:
    """Return converted parameters with defaults, and those that were sent and are not null.

    Raises:
        RestError: required parameters are missing, or others are invalid, all of them together.
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
    try:
        given = load_given(arguments, values)
    except ma.ValidationError as error:
        raise errors.invalid(error.messages_dict) from None
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


def _arguments(
    operation: Operation, merged: Mapping[str, object], ids: Mapping[str, int]
) -> tuple[dict[str, object], dict[str, object]]:
    """Return what ``checked_arguments`` does. A strict request has no unknown parameters."""
    found = checked_arguments(operation.args, merged)
    known = {*operation.args.fields, *ids} if is_strict() else merged
    problems = {
        name: Problem("rest_unknown_param", f"{name} is not a parameter of this operation.")
        for name in merged
        if name not in known and not _ALWAYS_KNOWN.fullmatch(name)
    }
    if problems:
        raise errors.invalid(problems)
    return found


def in_context(error: errors.Failure, operation: Operation) -> RestError:
    """Return an error of a service: an unknown record is 400 in an update (wc-v3, Lists)."""
    if isinstance(error, RestError):
        return error
    shown = errors.as_rest_error(error)
    is_unknown = shown.code.endswith("_invalid_id") and not shown.code.startswith("wc_user")
    if operation.action == "edit" and is_unknown and shown.status == 404:
        return shown.with_status(400)
    return shown


def description(route: Route, site: Site, *, with_schema: bool = False) -> object:
    """Return the description of a route, as the indexes show it, and ``OPTIONS`` with a schema."""
    if route is NOWHERE:
        return []
    endpoints = [
        {"methods": _methods([name]), "args": described(operation.args)}
        for name, operation in route.operations.items()
    ]
    found: dict[str, object] = {
        "namespace": NAMESPACE,
        "methods": _methods(route.operations),
        "endpoints": endpoints,
    }
    first = next(iter(route.operations.values()))
    if with_schema and first.action == "batch":
        found["schema"] = batch_schema()
    elif with_schema and first.result is not None:
        found["schema"] = resolved(first.result)
    if "<" not in route.path:
        found["_links"] = {"self": [{"href": f"{site.root}{route.path}"}]}
    return found


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
