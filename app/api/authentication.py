"""Authentication of requests, before every view (decisions 2).

1. ``app.auth.credentials`` reads the credentials: HTTP Basic, or those of the dialect.
2. ``app.auth.api_keys`` looks up the API key, its user and the capabilities of the user. Most
   lookups use a cache (``cached_principal``).
3. This module checks the permission and the resources of the key, and stores the principal in
   ``flask.g``. Services check capabilities, because the order of errors is specified.
"""

from dataclasses import replace

from flask import Flask, current_app, g, request

from app.api.dialect import SAFE_METHODS, current_dialect
from app.api.view_docs import current_view, documented
from app.auth.api_keys import authenticate, require_permission, require_resources, require_user
from app.auth.failed_logins import FailedLogins
from app.auth.principals import Principal
from app.errors import ShopError

MAX_BYTES_WITHOUT_CAPABILITY = 64 * 1024
"""Maximum body size of a caller who lacks the capability, whose request is rejected anyway."""

_FAILED_LOGINS = "shop_api_failed_logins"  # on app.extensions


def init_app(app: Flask) -> None:
    """Create the failed login counters of an app."""
    app.extensions[_FAILED_LOGINS] = FailedLogins(
        app.config["SHOP_AUTH_FAILURES_PER_MINUTE"], app.config["SHOP_REDIS_URL"]
    )


def current_principal() -> Principal:
    """Return the principal of the current request."""
    principal: Principal = g.principal
    return principal


def authenticate_request(resource: str, *, any_permission: bool) -> None:
    """Authenticate the request and check the permission and the resources of the key.

    This is the only place that checks the permission and the resources of a key. It runs before
    every view of every blueprint, in every dialect.

    Args:
        resource: the resource that the key must allow, in addition to those of the view.
        any_permission: whether keys with any permission are accepted.
    """
    # Stored before the limits are checked, so that the log contains the ID of a rejected key.
    principal = authenticate(current_dialect().credentials(request), record_failed_login)
    g.principal = principal = replace(principal, request_id=g.request_start.ids["request_id"])
    view = current_view()
    require_operation(principal, request.method, resource, view, any_permission=any_permission)
    reads_body = request.method not in SAFE_METHODS
    if reads_body and (not principal.capabilities or lacks_right(view)):
        limit_body()


def lacks_right(view: object) -> bool:
    """Return whether the caller lacks the right of a view. One of several is enough."""
    rights = documented(view, "rights", ())
    return bool(rights) and not any(map(current_principal().has_right, rights))


def limit_body() -> None:
    """Limit the body of the current request, which is not read yet, to 64 KiB (decisions 17).

    Errors have the specified order, so a small body is checked before a capability. A larger body
    of a caller who lacks the capability is rejected without being read.
    """
    limit = request.max_content_length or MAX_BYTES_WITHOUT_CAPABILITY
    request.max_content_length = min(limit, MAX_BYTES_WITHOUT_CAPABILITY)


def require_operation(
    principal: Principal, method: str, resource: str, view: object, *, any_permission: bool
) -> None:
    """Raise ShopError unless the key of a principal allows an operation.

    Args:
        resource: the resource of its blueprint.
        any_permission: whether keys with any permission are accepted.
    """
    if not any_permission:
        require_permission(principal, method)
    require_resources(principal, resource, *documented(view, "resources", ()))


def is_blocked() -> bool:
    """Return whether the address of the client has too many failed logins."""
    failed_logins: FailedLogins = current_app.extensions[_FAILED_LOGINS]
    return failed_logins.is_blocked(request.remote_addr or "")


def record_failed_login(consumer_key: str, reason: str) -> ShopError:
    """Count a failed login of the client, and return the error for the response."""
    failed_logins: FailedLogins = current_app.extensions[_FAILED_LOGINS]
    return failed_logins.record(request.remote_addr or "", consumer_key, reason)


def deleted_user_error() -> ShopError | None:
    """Return the error if the user of the request no longer exists, or None."""
    try:
        if principal := g.get("principal"):
            require_user(principal)
    except ShopError as error:
        return error
    return None


def authentication_error() -> ShopError | None:
    """Return the error for invalid credentials of the request, or None."""
    try:
        if credentials := current_dialect().credentials(request):
            authenticate(credentials, record_failed_login)
    except ShopError as error:
        return error
    return None
