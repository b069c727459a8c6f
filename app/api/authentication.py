"""Who sent the current request."""

from __future__ import annotations

from dataclasses import replace

from flask import Flask, current_app, g, request

from app.api.versions import current_api_version
from app.auth.credentials import FEW_FORMS, Signed
from app.auth.principals import (
    Credentials,
    FailedLogins,
    Principal,
    authenticate,
    require_permission,
)
from app.errors import ShopError

MOST_BYTES_WITHOUT_CAPABILITIES = 64 * 1024
"""Largest body of a caller who holds no capability: it will be refused, and may cost little."""

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
    """Authenticate a request that every key may be used for, or raise an error."""
    # Set before the permission is checked, so that the log contains the ID of a rejected key.
    g.principal = principal = authenticate(_credentials(), _refusal_of)
    if not principal.capabilities:
        most = current_app.config["MAX_CONTENT_LENGTH"]
        request.max_content_length = min(most, MOST_BYTES_WITHOUT_CAPABILITIES)


def _credentials() -> Credentials | None:
    """Return what the request says of who sent it.

    A wrong signature is expensive: it is tried in every form that clients have. For an address that
    sent too many wrong ones, only the usual forms are tried, so that valid ones still pass.
    """
    given = current_api_version().credentials(request)
    attempts: FailedLogins = current_app.extensions[_ATTEMPTS]
    if isinstance(given, Signed) and attempts.are_too_many(request.remote_addr or ""):
        return replace(given, forms=FEW_FORMS)
    return given


def _refusal_of(consumer_key: str, reason: str) -> ShopError:
    attempts: FailedLogins = current_app.extensions[_ATTEMPTS]
    return attempts.refuse(request.remote_addr or "", consumer_key, reason)


def authentication_error() -> ShopError | None:
    """Return why credentials that came with the request are refused, if they are."""
    try:
        if credentials := _credentials():
            authenticate(credentials, _refusal_of)
    except ShopError as refused:
        return refused
    return None
