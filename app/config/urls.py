"""URLs in the configuration of databases and Redis, without passwords in errors, and of the API."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

_ENCODE = (
    "Percent-encode special characters of the password: @ is %40, / is %2F, ? is %3F, and # is %23."
)
_SECRET_OPTIONS = ("password", "sslpassword")


def parse_database_url(text: str, example: str) -> URL:
    """Return a SQLAlchemy URL.

    Raises:
        ValueError: the URL is invalid, or a special character of its password is not encoded.
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        _require_encoded_password(text)
        message = f"Not a valid database URL. Example: {example}"
        raise ValueError(message) from None
    if url.get_backend_name() != "sqlite" and "@" in f"{url.host}{url.database}":
        raise ValueError(_ENCODE)
    return url


def check_redis_url(text: str) -> None:
    """Raise ValueError if a Redis URL is invalid, or if its password is not encoded."""
    invalid = "Not a valid Redis URL. Example: redis://:PASSWORD@localhost:6379/0"
    scheme, _, rest = text.partition("://")
    if scheme not in {"redis", "rediss", "redis+unix"} or not rest:
        raise ValueError(invalid)
    try:
        parts = urlsplit(text)
        is_misread = "@" in parts.fragment or (scheme != "redis+unix" and "@" in parts.path)
        is_valid = parts.port is None or parts.port > 0
    except ValueError:
        is_valid = is_misread = False
    if is_misread or not is_valid:
        _require_encoded_password(text)
        raise ValueError(invalid)


def without_password(url: URL) -> str:
    """Return a URL to print, with asterisks instead of passwords."""
    secret = dict.fromkeys(url.query.keys() & _SECRET_OPTIONS, "***")
    return url.update_query_dict(secret).render_as_string(hide_password=True)


def _require_encoded_password(text: str) -> None:
    """Raise ValueError if the part of a URL before the last ``@`` has a special character."""
    user, at, _ = text.partition("://")[2].rpartition("@")
    if at and any(character in user for character in "@/?#"):
        raise ValueError(_ENCODE)


def own_url(config: Mapping[str, Any]) -> str:
    """Return the URL at which gunicorn serves the API, without a slash at its end."""
    host = f"[{config['HOST']}]" if ":" in config["HOST"] else config["HOST"]
    return f"http://{host}:{config['PORT']}{config['SHOP_URL_PREFIX']}"
