"""The cookie of a session (admin 1)."""

from hashlib import sha256
from ipaddress import ip_address
from urllib.parse import urlsplit

from flask import Response, current_app, request


def is_loopback() -> bool:
    """Return whether the browser uses a loopback address of this machine."""
    try:
        host = urlsplit(f"//{request.host}").hostname or ""
    except ValueError:
        return False
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_possible() -> bool:
    """Return whether a cookie can be kept secret: with TLS, or on this machine."""
    return request.is_secure or is_loopback()


def name() -> str:
    """Return the name of the cookie.

    Cookies ignore the port, so several services on one machine have different names.
    """
    prefix = current_app.config["SHOP_URL_PREFIX"]
    of = prefix if request.is_secure else f"{prefix} {request.host.rpartition(':')[2]}"
    kept = f"shop_session_{sha256(of.encode()).hexdigest()[:8]}"
    return f"__Host-{kept}" if request.is_secure else kept


def token() -> str | None:
    """Return the token in the cookie, or None."""
    return request.cookies.get(name()) if is_possible() else None


def store(response: Response, value: str) -> None:
    """Set the cookie."""
    days = current_app.config["SHOP_ADMIN_SESSION_DAYS"]
    response.set_cookie(
        name(),
        value,
        max_age=days * 86_400,
        path="/",
        secure=request.is_secure,
        httponly=True,
        samesite="Lax",
    )


def remove(response: Response) -> None:
    """Remove the cookie."""
    response.delete_cookie(
        name(), path="/", secure=request.is_secure, httponly=True, samesite="Lax"
    )
