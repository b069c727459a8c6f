"""Who sent the current request."""

from __future__ import annotations

from flask import Flask, current_app, g, request

from app.api.versions import spoken
from app.auth.principals import FailedAttempts, Principal, authenticate, require_permission
from app.errors import ShopError

_ATTEMPTS = "shop_api_failed_attempts"  # on app.extensions


def init_app(app: Flask) -> None:
    """Count the wrong credentials that an app is sent."""
    app.extensions[_ATTEMPTS] = FailedAttempts(
        app.config["SHOP_AUTH_FAILURES_PER_MINUTE"], app.config["SHOP_REDIS_URL"]
    )


def caller() -> Principal:
    """Return who sent the request."""
    principal: Principal = g.principal
    return principal


def authenticate_sender() -> None:
    """Find out who sent the request, and whether the key may be used for it; or refuse."""
    # Kept before the permission is asked for: the log names the key that was refused.
    g.principal = principal = authenticate(spoken().credentials(request), _refusal_of)
    require_permission(principal, request.method)


def _refusal_of(consumer_key: str, reason: str) -> ShopError:
    attempts: FailedAttempts = current_app.extensions[_ATTEMPTS]
    return attempts.refuse(request.remote_addr or "", consumer_key, reason)


def refusal() -> ShopError | None:
    """Return why credentials that came with the request are refused, if they are."""
    try:
        if credentials := spoken().credentials(request):
            authenticate(credentials, _refusal_of)
    except ShopError as refused:
        return refused
    return None
