"""Every setting: name, default and description.

A setting is read from the environment, then from ``instance/config.py``, then from the default here
(see ``app.config.loading``). ``make openapi`` writes them to ``docs/configuration.md``.
"""

from typing import Any

import marshmallow as ma

from app.config.fields import (
    Contact,
    DatabaseUrl,
    DelimitedList,
    NetworkList,
    OrderStatusNames,
    OriginList,
    PathPrefix,
    RedisUrl,
    ReplicaUrlList,
    TimeZone,
)
from app.conversions.currencies import MOST_PLACES, decimal_places
from app.conversions.numbers import MAX_COUNT

GUNICORN_SETTINGS = ("HOST", "PORT", "WEB_CONCURRENCY", "WEB_THREADS", "WEB_CPU_AFFINITY")
"""Settings that ``gunicorn.conf.py`` reads from the environment. ``serve`` passes them on."""

MAX_DAYS = 365_000
"""A thousand years: the time that many days ago, or in as many days, is a date."""

MAX_SECONDS = 2_000_000
"""PostgreSQL stores timeouts as milliseconds in 32 bits."""

Field = type[ma.fields.Field[Any]]

_INVALID = "Not a valid boolean. Use true, yes, on or 1, or false, no, off or 0."


def _setting(field: Field, default: Any, description: str, **kwargs: Any) -> object:
    return field(load_default=default, metadata={"description": description}, **kwargs)


def _string(default: str | None, description: str, **kwargs: object) -> object:
    return _setting(ma.fields.String, default, description, **kwargs)


def _boolean(default: bool, description: str) -> object:
    return _setting(ma.fields.Boolean, default, description, error_messages={"invalid": _INVALID})


def _integer(
    default: int | None, description: str, *, minimum: int, maximum: int = MAX_COUNT
) -> object:
    limits = ma.validate.Range(min=minimum), ma.validate.Range(max=maximum)
    return _setting(ma.fields.Integer, default, description, validate=limits)


def _days(default: int, description: str, *, minimum: int = 1) -> object:
    return _integer(default, description, minimum=minimum, maximum=MAX_DAYS)


def _seconds(default: float, description: str) -> object:
    limits = ma.validate.Range(min=0), ma.validate.Range(max=MAX_SECONDS)
    return _setting(ma.fields.Float, default, description, validate=limits)


def _has_cents(currency: str) -> None:
    if decimal_places(currency) > MOST_PLACES:
        raise ma.ValidationError("Must be a currency with at most two decimal places.")


class SettingsSchema(ma.Schema):
    """The settings of the service, in the order of ``docs/configuration.md``."""

    DATABASE_URL = _setting(
        DatabaseUrl,
        "sqlite:///shop.db",
        "Database as a SQLAlchemy URL: `sqlite:///…` (relative to `instance/`) or "
        "`postgresql://…` (psycopg 3). `postgres://…` is accepted as well, and so are several "
        "hosts: `postgresql://a,b/shop?target_session_attrs=read-write`.",
    )
    DATABASE_POOLER = _string(
        None,
        "`transaction` if `DATABASE_URL` leads to a pooler in transaction mode, such as "
        "PgBouncer. The service then uses no feature of PostgreSQL that needs a session.",
        validate=ma.validate.OneOf(["transaction"]),
    )
    DATABASE_REPLICA_URLS = _setting(
        ReplicaUrlList,
        (),
        "Standbys of the PostgreSQL database that serve reads whose clients allow it, as URLs "
        "separated by commas or blanks. Each URL leads to one server.",
    )
    HOST = _string("127.0.0.1", "Address that gunicorn listens on.")
    PORT = _integer(8000, "Port that gunicorn listens on.", minimum=1, maximum=65535)
    WEB_CONCURRENCY = _integer(
        None, "Number of gunicorn workers. By default, one per CPU core.", minimum=1
    )
    WEB_THREADS = _integer(4, "Threads per gunicorn worker.", minimum=1)
    WEB_CPU_AFFINITY = _boolean(
        True,
        "Whether each gunicorn worker stays on one CPU core, which raises its requests per second. "
        "Linux only.",
    )
    SECRET_KEY = _string(
        None,
        "Server secret used to hash API keys. Use 32 random characters. By default, the secret "
        "is read from `instance/secret_key`, which is created once with mode 0600. Machines "
        "that share a database must use the same secret.",
    )
    SHOP_NAME = _string(
        "Shop Administration API", "Name shown by `GET /` and in the API documentation."
    )
    SHOP_PAGE_SIZE = _integer(10, "Rows per page of a list.", minimum=1)
    SHOP_BULK_LIMIT = _integer(
        100, "Maximum number of items in a bulk request, up to 1000.", minimum=1, maximum=1000
    )
    SHOP_METADATA_ENTRIES = _integer(
        200, "Maximum number of entries in the metadata of a record.", minimum=1
    )
    SHOP_METADATA_KEY_LENGTH = _integer(
        255, "Longest key of metadata, in characters.", minimum=1, maximum=255
    )
    SHOP_METADATA_VALUE_BYTES = _integer(
        64 * 1024, "Maximum size of a value of metadata as JSON, in bytes.", minimum=1
    )
    SHOP_METADATA_BYTES = _integer(
        256 * 1024,
        "Maximum size of all values in the metadata of a record as JSON, in bytes.",
        minimum=1,
    )
    SHOP_CART_ITEM_LIMIT = _integer(100, "Items accepted in a cart that is evaluated.", minimum=1)
    SHOP_CART_CODE_LIMIT = _integer(
        20, "Different coupon codes accepted in a cart that is evaluated.", minimum=1
    )
    SHOP_SEQUENTIAL_DISCOUNTS = _boolean(
        False,
        "Whether each coupon applies to the value left by earlier coupons instead of the "
        "original value.",
    )
    SHOP_MAX_BODY_BYTES = _integer(
        5 * 1024 * 1024, "Maximum size of a request body, in bytes.", minimum=1
    )
    SHOP_IMPORT_MAX_BYTES = _integer(
        64 * 1024 * 1024, "Maximum size of a file to import, in bytes.", minimum=1
    )
    SHOP_URL_PREFIX = _setting(
        PathPrefix,
        "",
        "Path prefix of all routes, for example `/shop`. `/healthz` and `/readyz` stay at the "
        "root.",
    )
    SHOP_OPENAPI_VERSION = _string(
        "3.1.0",
        "OpenAPI version of the generated document: `3.1.0`, or `3.0.3` for older tools.",
        validate=ma.validate.OneOf(["3.1.0", "3.0.3"]),
    )
    SHOP_TRUSTED_PROXIES = _integer(
        0,
        "Number of reverse proxies in front of the service. That many values of "
        "`X-Forwarded-For`, `-Proto` and `-Host` are trusted.",
        minimum=0,
    )
    SHOP_PAID_STATUSES = _setting(
        OrderStatusNames,
        ("processing", "completed"),
        "Order statuses that count towards `total_spent`, separated by commas.",
    )
    SHOP_REFUNDED_RELEASES_COUPONS = _boolean(
        False, "Whether the order status `refunded` releases the uses of coupons."
    )
    SHOP_GRAVATAR = _boolean(True, "Whether customers have an `avatar_url` on Gravatar.")
    SHOP_ARGON2_TIME_COST = _integer(2, "Number of argon2id passes for a password hash.", minimum=1)
    SHOP_ARGON2_MEMORY_KIB = _integer(
        19 * 1024, "Memory that argon2id uses for a password hash, in KiB.", minimum=8
    )
    SHOP_AUTH_FAILURES_PER_MINUTE = _integer(
        60,
        "Failed logins per minute that each worker accepts from one address before it returns "
        "429. For one key, it accepts ten times as many. 0 disables the limit.",
        minimum=0,
    )
    SHOP_REDIS_URL = _setting(
        RedisUrl,
        None,
        "Redis server in which all workers and machines count failed logins together: "
        "`redis://…`, `rediss://…` or `redis+unix://…`. By default, each worker counts "
        "separately.",
    )
    SHOP_CORS_ORIGINS = _setting(
        OriginList,
        (),
        "Origins of other sites whose pages may use the API in a browser, such as "
        "`https://admin.example`, separated by commas. `*` allows every site.",
    )
    SHOP_REQUEST_TIMEOUT_SECONDS = _seconds(
        15.0,
        "Seconds that a request may take for its queue and the database together. The response is "
        "then 503, also if the database hangs. A statement that runs at the deadline gets half a "
        "second, no further one begins after that, and the changes of the request are rolled back. "
        "A long list may take longer, but not each batch of its rows. 0 disables the limit.",
    )
    SHOP_STATEMENT_TIMEOUT_SECONDS = _seconds(
        10.0,
        "Time limit for each database statement of a request. A statement that exceeds it is "
        "cancelled, and the response is 503. 0 disables the limit.",
    )
    SHOP_REPLICA_LAG_SECONDS = _seconds(
        10.0,
        "Seconds that a standby may lag behind. A standby that lags more is not used until it "
        "has caught up.",
    )
    SHOP_EVENTS_DAYS = _days(
        30,
        "Days after which the worker removes the data of events. Events with pending deliveries "
        "are kept.",
    )
    SHOP_HISTORY_DAYS = _days(
        90,
        "Days after which the worker removes events, with what they changed. Less than "
        "`SHOP_EVENTS_DAYS` counts as equal.",
    )
    SHOP_ERASABLE_STATUSES = _setting(
        OrderStatusNames,
        ("completed", "cancelled", "refunded", "failed"),
        "Statuses of orders whose personal data can be erased, separated by commas.",
    )
    SHOP_ERASURE_KEEPS_METADATA = _setting(
        DelimitedList,
        ("_line_tax_data", "taxes"),
        "Keys of metadata of orders, items and refunds that an erasure of personal data keeps, "
        "separated by commas.",
    )
    SHOP_GUEST_ORDERS_DAYS = _days(
        0,
        "Days after the last update after which the worker erases the personal data of orders of "
        "guests in `SHOP_ERASABLE_STATUSES`. 0 keeps it.",
        minimum=0,
    )
    SHOP_PUBLIC_URL = _setting(
        ma.fields.Url,
        None,
        "Public address of the shop, such as `https://shop.example`. Links of `/wp-json/wc/v3` "
        "begin with it, and its deliveries and those of the legacy API name it as their source. By "
        "default, the address of the request, and in deliveries the one that gunicorn listens on.",
        schemes={"http", "https"},
        require_tld=False,
        error_messages={"invalid": "Not a valid URL. Example: https://shop.example"},
    )
    SHOP_WEBHOOK_ALLOWED_NETWORKS = _setting(
        NetworkList,
        (),
        "Networks that are not globally reachable and may receive webhooks, such as "
        "`10.0.0.0/8,::1`, separated by commas.",
    )
    SHOP_WORKER = _boolean(
        True, "Whether `make run` and `shop-api serve` start a worker alongside gunicorn."
    )
    SHOP_METRICS = _boolean(False, "Whether `/metrics` is served for Prometheus, at the root.")
    SHOP_SLOW_REQUEST_SECONDS = _seconds(
        1.0, "Requests that take this long are logged as warnings with `slow`. 0 disables this."
    )
    SHOP_LEGACY_API = _boolean(
        True,
        "Whether the WooCommerce legacy REST API is served at `/wc-api/v2` and `/wc-api/v3`. "
        "API keys created while it and `SHOP_WC_V3` are off can never sign requests.",
    )
    SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH = _boolean(
        False,
        "Whether the legacy API and `/wp-json/wc/v3` accept `consumer_key` and `consumer_secret` "
        "in the query of a request that was sent without TLS.",
    )
    SHOP_ADMIN = _boolean(True, "Whether the admin pages are served below `/admin`.")
    SHOP_ADMIN_IDLE_DAYS = _days(
        14, "Days without use after which a session of the admin pages ends."
    )
    SHOP_ADMIN_SESSION_DAYS = _days(
        90, "Days after which a session of the admin pages ends at the latest."
    )
    SHOP_WC_V3 = _boolean(
        True, "Whether the REST API of WooCommerce is served at `/wp-json/wc/v3`."
    )
    SHOP_WC_V3_CUSTOMER = _boolean(
        True, "Whether orders of `/wp-json/wc/v3` have `customer` as their last key."
    )
    SHOP_STRICT = _boolean(
        False,
        "Whether requests are strict by default, as with `Prefer: handling=strict`. Requests to"
        " the legacy API are never strict.",
    )
    SHOP_CONTACT = _setting(
        Contact,
        "",
        "E-mail address or URL of the people who run the service, shown as the contact in the "
        "API documentation.",
    )
    SHOP_CURRENCY = _string(
        "USD",
        "Currency of new orders (ISO 4217, with at most two decimals), also shown in the index of "
        "the legacy API.",
        validate=[
            ma.validate.Regexp(r"^[A-Z]{3}$", error="Must be three capital letters."),
            _has_cents,
        ],
    )
    SHOP_TIMEZONE = _setting(
        TimeZone,
        "UTC",
        "Time zone of the days in reports, as an IANA name such as `Europe/Berlin`. Date-times in "
        "responses are always in UTC.",
    )
    SHOP_EXPIRY_IN_TIMEZONE = _boolean(
        False,
        "Whether the expiry date of a coupon is the last day on which it works, in the time zone "
        "of the shop. By default, a coupon stops working at midnight UTC as that day begins. "
        "Changing this setting changes the end of every coupon with an expiry date.",
    )

    class Meta:
        """Ignore other environment variables."""

        unknown = ma.EXCLUDE
