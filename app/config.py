"""Define the settings: name, default and description.

A setting is read from the environment, then from ``instance/config.py``, then from the default
below. A test compares the descriptions with the table in ``docs/configuration.md``.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from collections.abc import Iterable, Mapping, MutableMapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import marshmallow as ma
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

VERSION = "1.0.0"
"""API version, ``info.version`` in the OpenAPI document (decisions 9)."""


class SettingsError(Exception):
    """Raised when a setting has an invalid value. The message contains its name and the reason."""


def _setting(
    field: type[ma.fields.Field[Any]], default: Any, description: str, **kwargs: Any
) -> Any:
    return field(load_default=default, metadata={"description": description}, **kwargs)


def _at_least(minimum: int) -> ma.validate.Range:
    return ma.validate.Range(min=minimum)


class _Prefix(ma.fields.String):
    """A path with a leading slash and without a trailing slash, or an empty string."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        path = text.strip("/ ")
        if not re.fullmatch(r"[A-Za-z0-9._~/-]*", path):
            raise ma.ValidationError("Must be a path of letters, digits and . _ ~ - /")
        return f"/{path}" if path else ""


class DelimitedList(ma.fields.String):
    """A comma-separated list of strings."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        entries = value.split(",") if isinstance(value, str) else value
        if not isinstance(entries, list | tuple) or not all(isinstance(e, str) for e in entries):
            raise ma.ValidationError("Must be a comma-separated list.")
        return tuple(entry.strip() for entry in entries if entry.strip())


class OrderStatusList(DelimitedList):
    """A list of order statuses. ``check_order_statuses`` validates it once plugins are loaded."""


class _DatabaseUrl(ma.fields.String):
    """A SQLAlchemy URL. Accepts ``postgres://``, which many hosting providers use."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        return re.sub(r"^postgres(?=(\+psycopg)?:)", "postgresql", text)


class _Origins(DelimitedList):
    """A list of origins as browsers send them, or ``*``."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        origins = super()._deserialize(value, attr, data, **kwargs)
        for origin in origins:
            if not re.fullmatch(r"\*|https?://[A-Za-z0-9.-]+(:[0-9]+)?", origin):
                raise ma.ValidationError(
                    f"{origin!r} is not an origin such as https://shop.example."
                )
        return origins


class SettingsSchema(ma.Schema):
    """The settings of the service, in the order of ``docs/configuration.md``."""

    DATABASE_URL = _setting(
        _DatabaseUrl,
        "sqlite:///shop.db",
        "Database as a SQLAlchemy URL: `sqlite:///…` (relative to `instance/`) or "
        "`postgresql://…` (psycopg 3). `postgres://…` is accepted as well.",
    )
    HOST = _setting(ma.fields.String, "127.0.0.1", "Address that gunicorn listens on.")
    PORT = _setting(
        ma.fields.Integer,
        8000,
        "Port that gunicorn listens on.",
        validate=ma.validate.Range(min=1, max=65535),
    )
    WEB_CONCURRENCY = _setting(
        ma.fields.Integer,
        None,
        "Number of gunicorn workers. By default, one per CPU core.",
        validate=_at_least(1),
        allow_none=True,
    )
    WEB_THREADS = _setting(
        ma.fields.Integer, 4, "Threads per gunicorn worker.", validate=_at_least(1)
    )
    SECRET_KEY = _setting(
        ma.fields.String,
        None,
        "Server secret used to hash API keys. Use 32 random characters. By default, the secret is "
        "read from `instance/secret_key`, which is created once with mode 0600. Machines that "
        "share a database must use the same secret.",
        allow_none=True,
    )
    SHOP_NAME = _setting(
        ma.fields.String,
        "Shop Administration API",
        "Name shown by `GET /` and in the API documentation.",
    )
    SHOP_PAGE_SIZE = _setting(
        ma.fields.Integer, 10, "Rows per page of a list.", validate=_at_least(1)
    )
    SHOP_BULK_LIMIT = _setting(
        ma.fields.Integer,
        100,
        "Maximum number of items in a bulk request, up to 1000.",
        validate=ma.validate.Range(min=1, max=1000),
    )
    SHOP_CART_ITEM_LIMIT = _setting(
        ma.fields.Integer,
        100,
        "Items accepted in a cart that is evaluated.",
        validate=_at_least(1),
    )
    SHOP_CART_CODE_LIMIT = _setting(
        ma.fields.Integer,
        20,
        "Different coupon codes accepted in a cart that is evaluated.",
        validate=_at_least(1),
    )
    SHOP_SEQUENTIAL_DISCOUNTS = _setting(
        ma.fields.Boolean,
        False,
        "Whether each coupon applies to the value left by earlier coupons instead of the original "
        "value.",
    )
    SHOP_MAX_BODY_BYTES = _setting(
        ma.fields.Integer,
        5 * 1024 * 1024,
        "Maximum size of a request body, in bytes.",
        validate=_at_least(1),
    )
    SHOP_URL_PREFIX = _setting(
        _Prefix,
        "",
        "Path prefix of all routes, for example `/shop`. `/healthz` and `/readyz` stay at the "
        "root.",
    )
    SHOP_OPENAPI_VERSION = _setting(
        ma.fields.String,
        "3.1.0",
        "OpenAPI version of the generated document: `3.1.0`, or `3.0.3` for older tools.",
        validate=ma.validate.OneOf(["3.1.0", "3.0.3"]),
    )
    SHOP_TRUSTED_PROXIES = _setting(
        ma.fields.Integer,
        0,
        "Number of reverse proxies in front of the service. That many values of "
        "`X-Forwarded-For`, `-Proto` and `-Host` are trusted.",
        validate=_at_least(0),
    )
    SHOP_PAID_STATUSES = _setting(
        OrderStatusList,
        ("processing", "completed"),
        "Order statuses that count towards `total_spent`, separated by commas.",
    )
    SHOP_GRAVATAR = _setting(
        ma.fields.Boolean, True, "Whether customers have an `avatar_url` on Gravatar."
    )
    SHOP_ARGON2_TIME_COST = _setting(
        ma.fields.Integer,
        2,
        "Number of argon2id passes for a password hash.",
        validate=_at_least(1),
    )
    SHOP_ARGON2_MEMORY_KIB = _setting(
        ma.fields.Integer,
        19 * 1024,
        "Memory that argon2id uses for a password hash, in KiB.",
        validate=_at_least(8),
    )
    SHOP_AUTH_FAILURES_PER_MINUTE = _setting(
        ma.fields.Integer,
        60,
        "Failed logins per minute that each worker accepts from one address before it returns "
        "429. For one key, it accepts ten times as many. 0 disables the limit.",
        validate=_at_least(0),
    )
    SHOP_REDIS_URL = _setting(
        ma.fields.String,
        None,
        "Redis server in which all workers and machines count failed logins together: "
        "`redis://…`, `rediss://…` or `redis+unix://…`. By default, each worker counts separately.",
        validate=ma.validate.Regexp(r"(rediss?|redis\+unix)://.+", error="Not a valid Redis URL."),
        allow_none=True,
    )
    SHOP_CORS_ORIGINS = _setting(
        _Origins,
        (),
        "Origins of other sites whose pages may use the API in a browser, such as "
        "`https://admin.example`, separated by commas. `*` allows every site.",
    )
    SHOP_STATEMENT_TIMEOUT_SECONDS = _setting(
        ma.fields.Float,
        30.0,
        "Time limit for each database statement of a request. A statement that exceeds it is "
        "cancelled, and the response is 503. 0 disables the limit.",
        validate=_at_least(0),
    )
    SHOP_METRICS = _setting(
        ma.fields.Boolean, False, "Whether `/metrics` is served for Prometheus, at the root."
    )
    SHOP_SLOW_REQUEST_SECONDS = _setting(
        ma.fields.Float,
        1.0,
        "Requests that take this long are logged as warnings with `slow`. 0 disables this.",
        validate=_at_least(0),
    )

    SHOP_LEGACY_API = _setting(
        ma.fields.Boolean,
        True,
        "Whether the WooCommerce legacy REST API is served at `/wc-api/v2` and `/wc-api/v3`. API "
        "keys created while it is off can never sign requests.",
    )
    SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH = _setting(
        ma.fields.Boolean,
        False,
        "Whether the legacy API accepts `consumer_key` and `consumer_secret` in the query of a "
        "request that was sent without TLS.",
    )
    SHOP_CURRENCY = _setting(
        ma.fields.String,
        "USD",
        "Currency of the shop (ISO 4217), shown in the index of the legacy API.",
        validate=ma.validate.Regexp(r"^[A-Z]{3}$", error="Must be three capital letters."),
    )

    class Meta:
        """Ignore other environment variables."""

        unknown = ma.EXCLUDE

    @ma.validates("DATABASE_URL")
    def _check_database_url(self, url: str, **_: Any) -> None:
        try:
            parsed = make_url(url)
        except (ArgumentError, ValueError):
            raise ma.ValidationError("Not a valid database URL.") from None
        if parsed.drivername not in {"sqlite", "postgresql", "postgresql+psycopg"}:
            raise ma.ValidationError("Must be a sqlite: or postgresql: URL.")
        if parsed.drivername == "sqlite" and parsed.database in {None, "", ":memory:"}:
            raise ma.ValidationError("Must name a file, because workers cannot share memory.")


def load_settings(config: MutableMapping[str, Any], overrides: Mapping[str, Any] | None) -> None:
    """Load every setting into a Flask configuration.

    Args:
        config: an app's configuration, with ``instance/config.py`` already loaded.
        overrides: settings passed to ``create_app``. They take precedence.

    Raises:
        SettingsError: values have the wrong type or are out of range. The message lists them all.
    """
    known = SettingsSchema._declared_fields.keys()
    given = {name: config[name] for name in known if config.get(name) is not None}
    given |= {name: os.environ[name] for name in known if os.environ.get(name)}
    given |= overrides or {}
    try:
        config.update(SettingsSchema(unknown=ma.INCLUDE).load(given))
    except ma.ValidationError as error:
        reasons = [f"{name}: {' '.join(messages)}" for name, messages in _messages(error)]
        raise SettingsError("; ".join(reasons)) from None


def _messages(error: ma.ValidationError) -> Iterable[tuple[str, list[str]]]:
    messages: dict[str, list[str]] = error.normalized_messages()  # type: ignore[no-untyped-call] # marshmallow's
    return messages.items()


def check_order_statuses(config: Mapping[str, Any], known: Iterable[str]) -> None:
    """Check the settings that contain order statuses, once plugins have added their own.

    Args:
        config: an app's configuration, with every setting.
        known: the existing order statuses.

    Raises:
        SettingsError: a setting contains unknown statuses. The message lists them all.
    """
    known = list(known)
    problems = [
        f"{name}: unknown order status {status!r}{did_you_mean(status, known)}"
        for name, field in SettingsSchema._declared_fields.items()
        if isinstance(field, OrderStatusList)
        for status in config[name]
        if status not in known
    ]
    if problems:
        raise SettingsError(f"{'; '.join(problems)}. Known statuses: {', '.join(known)}.")


def unknown_settings(names: Iterable[str]) -> list[str]:
    """Return a message for each unknown name with the prefix ``SHOP_``."""
    known = list(SettingsSchema._declared_fields)
    return [
        f"unknown setting {name}{did_you_mean(name, known)}"
        for name in sorted(set(names))
        if name.startswith("SHOP_") and name not in known
    ]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean X?)"`` with the most similar known name, or an empty string."""
    nearest = get_close_matches(name, known, n=1, cutoff=0.7)
    return f" (did you mean {nearest[0]}?)" if nearest else ""


def secret_key(instance: Path) -> str:
    """Return the server secret of an instance folder. Create it if it does not exist.

    Workers that start at the same time get the same secret.
    """
    path = instance / "secret_key"
    try:
        return _read_or_create_secret(path)
    except OSError as error:
        remedy = (
            "Make room on the disk"
            if error.errno == errno.ENOSPC
            else "Make the folder writable for the user of the service"
        )
        raise SettingsError(
            f"SECRET_KEY: {path} cannot be created or read: {error.strerror}. {remedy}, or set "
            "SECRET_KEY."
        ) from error


def _read_or_create_secret(path: Path) -> str:
    instance = path.parent
    instance.mkdir(parents=True, exist_ok=True)
    temporary = instance / f"secret_key.{os.getpid()}.{secrets.token_hex(4)}"
    if not path.exists():
        temporary.touch(mode=0o600)
        temporary.write_text(secrets.token_hex(32))
        # Creating a hard link is atomic and never replaces the secret of another worker.
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(temporary)
        temporary.unlink()
    if not (secret := path.read_text().strip()):
        raise SettingsError(f"SECRET_KEY: {path} is empty. Remove it to create a new secret.")
    return secret
