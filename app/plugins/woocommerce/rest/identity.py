"""Who sends a request of this dialect, and what the key allows (wc-v3, surface 2)."""

from __future__ import annotations

from dataclasses import replace

from flask import g, request

from app.api.authentication import record_failed_login
from app.api.dialect import current_dialect
from app.auth.api_keys import key_with_roles
from app.auth.credentials import MalformedCredentials
from app.auth.principals import Credentials, InvalidCredentials, Permission, Principal
from app.plugins.woocommerce import credentials
from app.plugins.woocommerce.credentials import SignedCredentials
from app.plugins.woocommerce.rest import parameters
from app.plugins.woocommerce.rest.errors import RestError
from app.plugins.woocommerce.rest.operations import EDITABLE, Route

KNOWN = {"GET", "HEAD", "DELETE", "OPTIONS", *EDITABLE}
_REASONS = {
    credentials.UNKNOWN_METHOD: "Invalid signature - signature method is invalid.",
    credentials.NO_TIMESTAMP: "Invalid timestamp.",
    credentials.WRONG_TIMESTAMP: "Invalid timestamp.",
    credentials.USED_NONCE: "Invalid nonce - nonce has already been used.",
}
"""What WooCommerce says for the reasons why a signature is rejected."""

RESOURCES = {"coupons", "customers", "orders", "webhooks", "reports"}
"""What a key can be limited to. All keys can read the index, and what checks of connections do."""


def authenticated() -> Principal | None:
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


def require_allowed(principal: Principal, route: Route) -> None:
    """Raise RestError unless the key allows the method and the resources of the route."""
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
