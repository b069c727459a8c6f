"""Who sent the current request."""

from __future__ import annotations

from flask import Flask, current_app, g, request

from app.api.versions import current_api_version
from app.auth.principals import FailedLogins, Principal, authenticate, require_permission
from app.errors import ShopError

_ATTEMPTS = "shop_api_failed_attempts"  # on app.extensions


def init_app(app: Flask) -> None:
    """Count the wrong credentials that an app is sent."""
    app.extensions[_ATTEMPTS] = FailedLogins(
        app.config["SHOP_AUTH_FAILURES_PER_MINUTE"], app.config["SHOP_REDIS_URL"]
    )


def current_principal() -> Principal:
    """Return who sent the request."""
    principal: Principal = g.principal
    return principal


def authenticate_request() -> None:
    """Find out who sent the request, and whether the key may be used for it; or refuse."""
    authenticate_any_permission()
    require_permission(current_principal(), request.method)


def authenticate_any_permission() -> None:
    """Find out who sent a request that every key may be used for; or refuse."""
    # Kept before a permission is asked for: the log names the key that was refused.
    g.principal = authenticate(current_api_version().credentials(request), _refusal_of)


def _refusal_of(consumer_key: str, reason: str) -> ShopError:
    attempts: FailedLogins = current_app.extensions[_ATTEMPTS]
    return attempts.refuse(request.remote_addr or "", consumer_key, reason)


def authentication_error() -> ShopError | None:
    """Return why credentials that came with the request are refused, if they are."""
    try:
        if credentials := current_api_version().credentials(request):
            authenticate(credentials, _refusal_of)
    except ShopError as refused:
        return refused
    return None
