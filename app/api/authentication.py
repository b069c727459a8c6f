"""Authentication of the current request."""

from __future__ import annotations

from dataclasses import replace

from flask import Flask, current_app, g, request

from app.api.versions import current_api_version
from app.auth.credentials import FEW_FORMS, SignedCredentials
from app.auth.principals import (
    Credentials,
    FailedLogins,
    Principal,
    authenticate,
    require_permission,
)
from app.errors import ShopError

MAX_BYTES_WITHOUT_CAPABILITIES = 64 * 1024
"""Maximum body size for users without capabilities, whose requests are rejected anyway."""

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


def authenticate_request() -> None:
    """Authenticate the request and check the permission of the key, or raise ShopError."""
    authenticate_any_permission()
    require_permission(current_principal(), request.method)


def authenticate_any_permission() -> None:
    """Authenticate a request that accepts keys with any permission, or raise ShopError."""
    # Stored before the permission is checked, so that the log contains the ID of a rejected key.
    g.principal = principal = authenticate(_credentials(), _record_failure)
    if not principal.capabilities:
        limit = current_app.config["MAX_CONTENT_LENGTH"]
        request.max_content_length = min(limit, MAX_BYTES_WITHOUT_CAPABILITIES)


def _credentials() -> Credentials | None:
    """Return the credentials of the request, or None.

    Verification of an invalid signature is expensive, because it tries every form that clients use.
    For an address over its limit, only the most common forms are tried, so that valid requests are
    still accepted.
    """
    given = current_api_version().credentials(request)
    failed_logins: FailedLogins = current_app.extensions[_FAILED_LOGINS]
    if isinstance(given, SignedCredentials) and failed_logins.is_blocked(request.remote_addr or ""):
        return replace(given, forms=FEW_FORMS)
    return given


def _record_failure(consumer_key: str, reason: str) -> ShopError:
    failed_logins: FailedLogins = current_app.extensions[_FAILED_LOGINS]
    return failed_logins.record(request.remote_addr or "", consumer_key, reason)


def authentication_error() -> ShopError | None:
    """Return the error for invalid credentials of the request, or None."""
    try:
        if credentials := _credentials():
            authenticate(credentials, _record_failure)
    except ShopError as error:
        return error
    return None
