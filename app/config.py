"""Every setting: its name, its default and one line of meaning.

A setting comes from the environment, else from ``instance/config.py``, else from the default
below. ``docs/configuration.md`` lists the same table, and a test compares the two.
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
"""The version of the API: ``info.version`` of the OpenAPI document (decisions 9)."""


class SettingsError(Exception):
    """A setting has a value that cannot be used; the message names it and says why."""


def _setting(field: type[ma.fields.Field[Any]], default: Any, meaning: str, **kwargs: Any) -> Any:
    return field(load_default=default, metadata={"description": meaning}, **kwargs)


def _at_least(minimum: int) -> ma.validate.Range:
    return ma.validate.Range(min=minimum)


class _Prefix(ma.fields.String):
    """A path that starts with a slash and does not end with one; empty for none."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        path = text.strip("/ ")
        if not re.fullmatch(r"[A-Za-z0-9._~/-]*", path):
            raise ma.ValidationError("must be a path of letters, digits and . _ ~ - /")
        return f"/{path}" if path else ""


class DelimitedList(ma.fields.String):
    """Words, separated by commas."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        words = value.split(",") if isinstance(value, str) else value
        if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
            raise ma.ValidationError("must be words, separated by commas.")
        return tuple(word.strip() for word in words if word.strip())


class OrderStatusList(DelimitedList):
    """Names of order statuses. ``check_order_statuses`` checks them once plugins are loaded."""


class _DatabaseUrl(ma.fields.String):
    """A SQLAlchemy URL. ``postgres://``, as many hosts write it, is ``postgresql://``."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        return re.sub(r"^postgres(?=(\+psycopg)?:)", "postgresql", text)


class _Origins(DelimitedList):
    """Origins as browsers send them, or ``*``."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        origins = super()._deserialize(value, attr, data, **kwargs)
        for origin in origins:
            if not re.fullmatch(r"\*|https?://[A-Za-z0-9.-]+(:[0-9]+)?", origin):
                raise ma.ValidationError(f"{origin!r} is no origin, as https://shop.example is.")
        return origins


class SettingsSchema(ma.Schema):
    """The settings that an operator may set (operations.md, Environment)."""

    DATABASE_URL = _setting(
        _DatabaseUrl,
        "sqlite:///shop.db",
        "Where the data is: a SQLAlchemy URL, `sqlite:///…` (relative to `instance/`) or "
        "`postgresql://…` (psycopg 3; `postgres://…` is the same).",
    )
    HOST = _setting(ma.fields.String, "127.0.0.1", "The address on which gunicorn listens.")
    PORT = _setting(
        ma.fields.Integer,
        8000,
        "The port on which gunicorn listens.",
        validate=ma.validate.Range(min=1, max=65535),
    )
    WEB_CONCURRENCY = _setting(
        ma.fields.Integer,
        None,
        "Number of gunicorn workers; none: one for each core.",
        validate=_at_least(1),
        allow_none=True,
    )
    WEB_THREADS = _setting(
        ma.fields.Integer, 4, "Threads in each gunicorn worker.", validate=_at_least(1)
    )
    SECRET_KEY = _setting(
        ma.fields.String,
        None,
        "Server secret, under which API keys are hashed; use 32 random characters. None: the one "
        "in `instance/secret_key`, created once with mode 0600. Several machines that share a "
        "database share it.",
        allow_none=True,
    )
    SHOP_NAME = _setting(
        ma.fields.String,
        "Shop Administration API",
        "The name shown by `GET /` and in the documentation.",
    )
    SHOP_PAGE_SIZE = _setting(
        ma.fields.Integer, 10, "Rows on a page of a list.", validate=_at_least(1)
    )
    SHOP_BULK_LIMIT = _setting(
        ma.fields.Integer,
        100,
        "Items accepted in one bulk request, at most 1000.",
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
        ma.fields.Integer, 5 * 1024 * 1024, "Largest request body, in bytes.", validate=_at_least(1)
    )
    SHOP_URL_PREFIX = _setting(
        _Prefix,
        "",
        "A path under which all routes are mounted, e.g. `/shop`; `/healthz` and `/readyz` stay "
        "at the root.",
    )
    SHOP_OPENAPI_VERSION = _setting(
        ma.fields.String,
        "3.1.0",
        "The version of OpenAPI in which the document is written: `3.1.0`, or `3.0.3` for older "
        "tools.",
        validate=ma.validate.OneOf(["3.1.0", "3.0.3"]),
    )
    SHOP_TRUSTED_PROXIES = _setting(
        ma.fields.Integer,
        0,
        "How many reverse proxies stand in front; that many values of `X-Forwarded-For`, "
        "`-Proto` and `-Host` are believed.",
        validate=_at_least(0),
    )
    SHOP_PAID_STATUSES = _setting(
        OrderStatusList,
        ("processing", "completed"),
        "Order statuses that count towards `total_spent`, separated by commas.",
    )
    SHOP_GRAVATAR = _setting(
        ma.fields.Boolean, True, "Whether customers have an `avatar_url` (on Gravatar)."
    )
    SHOP_ARGON2_TIME_COST = _setting(
        ma.fields.Integer, 2, "Passes of argon2id over a password.", validate=_at_least(1)
    )
    SHOP_ARGON2_MEMORY_KIB = _setting(
        ma.fields.Integer,
        19 * 1024,
        "Memory of argon2id for one password, in KiB.",
        validate=_at_least(8),
    )
    SHOP_AUTH_FAILURES_PER_MINUTE = _setting(
        ma.fields.Integer,
        60,
        "Wrong credentials accepted from one address in a minute, and ten times as many for one "
        "key, by each worker, before the answer is 429; 0 is off.",
        validate=_at_least(0),
    )
    SHOP_REDIS_URL = _setting(
        ma.fields.String,
        None,
        "A Redis in which all workers and machines count wrong credentials together, as "
        "`redis://…`, `rediss://…` or `redis+unix://…`; none: each worker counts for itself.",
        validate=ma.validate.Regexp(r"(rediss?|redis\+unix)://.+", error="is no URL of a Redis."),
        allow_none=True,
    )
    SHOP_CORS_ORIGINS = _setting(
        _Origins,
        (),
        "Origins of other sites whose pages may use the API in a browser, as "
        "`https://admin.example`, separated by commas; `*` is every site.",
    )
    SHOP_STATEMENT_TIMEOUT_SECONDS = _setting(
        ma.fields.Float,
        30.0,
        "How long the database may take for one statement of a request, before it is stopped and "
        "the answer is 503; 0 is off.",
        validate=_at_least(0),
    )
    SHOP_METRICS = _setting(
        ma.fields.Boolean, False, "Whether `/metrics` answers, for Prometheus, at the root."
    )
    SHOP_SLOW_REQUEST_SECONDS = _setting(
        ma.fields.Float,
        1.0,
        "A request that takes this long is logged as a warning, with `slow`; 0 is off.",
        validate=_at_least(0),
    )

    SHOP_LEGACY_API = _setting(
        ma.fields.Boolean,
        True,
        "Whether the WooCommerce legacy REST API is served at `/wc-api/v2` and `/wc-api/v3`. While "
        "it is off, new API keys cannot sign requests later either.",
    )
    SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH = _setting(
        ma.fields.Boolean,
        False,
        "Whether that API accepts `consumer_key` and `consumer_secret` in the query of a request "
        "that did not come over TLS.",
    )
    SHOP_CURRENCY = _setting(
        ma.fields.String,
        "USD",
        "The shop's currency, ISO 4217, as the index document of that API tells it.",
        validate=ma.validate.Regexp(r"^[A-Z]{3}$", error="must be three capital letters."),
    )

    class Meta:
        """Other variables of the environment are none of our business."""

        unknown = ma.EXCLUDE

    @ma.validates("DATABASE_URL")
    def _several_processes_can_open_it(self, url: str, **_: Any) -> None:
        try:
            parsed = make_url(url)
        except (ArgumentError, ValueError):
            raise ma.ValidationError("is no URL of a database.") from None
        if parsed.drivername not in {"sqlite", "postgresql", "postgresql+psycopg"}:
            raise ma.ValidationError("must be a sqlite: or a postgresql: URL.")
        if parsed.drivername == "sqlite" and parsed.database in {None, "", ":memory:"}:
            raise ma.ValidationError("must name a file: each worker would see a memory of its own.")


def load_settings(config: MutableMapping[str, Any], overrides: Mapping[str, Any] | None) -> None:
    """Fill a Flask configuration with every setting.

    Args:
        config: an app's configuration, which already holds ``instance/config.py`` if there is one.
        overrides: settings given to ``create_app``, which win.

    Raises:
        SettingsError: a value has the wrong type or is out of range. All of them are named.
    """
    known = SettingsSchema._declared_fields.keys()
    given = {name: config[name] for name in known if config.get(name) is not None}
    given |= {name: os.environ[name] for name in known if os.environ.get(name)}
    given |= overrides or {}
    try:
        config.update(SettingsSchema(unknown=ma.INCLUDE).load(given))
    except ma.ValidationError as error:
        reasons = [f"{name}: {' '.join(why)}" for name, why in _messages(error)]
        raise SettingsError("; ".join(reasons)) from None


def _messages(error: ma.ValidationError) -> Iterable[tuple[str, list[str]]]:
    messages: dict[str, list[str]] = error.normalized_messages()  # type: ignore[no-untyped-call] # marshmallow's
    return messages.items()


def check_order_statuses(config: Mapping[str, Any], known: Iterable[str]) -> None:
    """Check the settings that name order statuses, once plugins have added theirs.

    Args:
        config: an app's configuration, with every setting.
        known: the order statuses that exist.

    Raises:
        SettingsError: a setting names a status that does not exist. All of them are named.
    """
    known = list(known)
    wrong = [
        f"{name}: unknown order status {status!r}{did_you_mean(status, known)}"
        for name, field in SettingsSchema._declared_fields.items()
        if isinstance(field, OrderStatusList)
        for status in config[name]
        if status not in known
    ]
    if wrong:
        raise SettingsError(f"{'; '.join(wrong)}. Known statuses: {', '.join(known)}.")


def unknown_settings(names: Iterable[str]) -> list[str]:
    """Return a message for each name that looks like a setting of ours but does not exist."""
    known = list(SettingsSchema._declared_fields)
    return [
        f"unknown setting {name}{did_you_mean(name, known)}"
        for name in sorted(set(names))
        if name.startswith("SHOP_") and name not in known
    ]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean X?)"`` with the known name that is nearest; empty if none is."""
    nearest = get_close_matches(name, known, n=1, cutoff=0.7)
    return f" (did you mean {nearest[0]}?)" if nearest else ""


def secret_key(instance: Path) -> str:
    """Return the server secret of an instance folder; create it when there is none.

    Two workers that start together agree: one of them links its draft to the name first.
    """
    path = instance / "secret_key"
    try:
        return _secret_of(path)
    except OSError as error:
        remedy = (
            "Make room on the disk"
            if error.errno == errno.ENOSPC
            else "Give the folder to the user of the service"
        )
        raise SettingsError(
            f"SECRET_KEY: {path} cannot be created or read: {error.strerror}. {remedy}, or set "
            "SECRET_KEY."
        ) from error


def _secret_of(path: Path) -> str:
    instance = path.parent
    instance.mkdir(parents=True, exist_ok=True)
    draft = instance / f"secret_key.{os.getpid()}.{secrets.token_hex(4)}"
    if not path.exists():
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_hex(32))
        # A hard link appears whole or not at all, and never replaces another worker's secret.
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(draft)
        draft.unlink()
    if not (secret := path.read_text().strip()):
        raise SettingsError(f"SECRET_KEY: {path} is empty; remove it, and a new one is made.")
    return secret
