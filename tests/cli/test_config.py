"""Test every setting: its default, its sources and invalid values."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from flask import Config
from sqlalchemy import make_url

from app import blueprints, create_app
from app.catalog import EXTENSION
from app.config.loading import SettingsError, load_settings
from app.config.settings import SettingsSchema

URLS = [
    *("mysql://db/shop", "shop.db", "sqlite:shop.db", "sqlite://", "postgresql:shop"),
    *("sqlite:///", "sqlite:///:memory:"),  # in-memory databases for SQLAlchemy
    *("postgresql://user:geheim@db:port/shop", "postgresql://user:geheim@db/shop?sslmod=require"),
    *("postgresql+psycopg2://db/shop", "postgresql://a:x,b/shop"),
    *("sqlite:///shop.db?timeout=long", "sqlite:///shop.db?timeot=5"),
]

REPLICAS = [
    *("postgresql://a/shop", "sqlite:///copy.db"),  # the first one on SQLite
    *("postgresql://user:geheim@db:port/shop", "postgresql://user:geheim@db/shop?sslmod=require"),
]

ORIGINS = ["admin.example", "https://admin.example/", "https://a.example https://b.example"]

ROOT = Path(__file__).parents[2]
MIB = 1024 * 1024
LONG_SECRET = "a secret of thirty-two letters!!"

# name, default, text in the environment, what it means
SETTINGS = [
    ("DATABASE_URL", "sqlite:///shop.db", "postgresql://db/shop", "postgresql://db/shop"),
    ("DATABASE_POOLER", None, "transaction", "transaction"),
    (
        "DATABASE_REPLICA_URLS",
        (),
        "postgresql://a/shop, postgres://b/shop postgresql://c,d/shop",
        (
            "postgresql://a/shop",
            "postgresql://b/shop",
            "postgresql:///shop?host=c,d&port=5432,5432",
        ),
    ),
    ("HOST", "127.0.0.1", "::1", "::1"),
    ("PORT", 8000, "8080", 8080),
    ("WEB_CONCURRENCY", None, "3", 3),
    ("WEB_THREADS", 4, "8", 8),
    ("WEB_CPU_AFFINITY", True, "off", False),
    ("SECRET_KEY", None, LONG_SECRET, LONG_SECRET),
    ("SHOP_NAME", "Shop Administration API", "Café", "Café"),
    ("SHOP_PAGE_SIZE", 10, "25", 25),
    ("SHOP_BULK_LIMIT", 100, " 7 ", 7),
    ("SHOP_METADATA_ENTRIES", 200, "500", 500),
    ("SHOP_METADATA_KEY_LENGTH", 255, "100", 100),
    ("SHOP_METADATA_VALUE_BYTES", 64 * 1024, "1024", 1024),
    ("SHOP_METADATA_BYTES", 256 * 1024, "4096", 4096),
    ("SHOP_CART_ITEM_LIMIT", 100, "50", 50),
    ("SHOP_CART_CODE_LIMIT", 20, "5", 5),
    ("SHOP_SEQUENTIAL_DISCOUNTS", False, "1", True),
    ("SHOP_MAX_BODY_BYTES", 5 * MIB, "1024", 1024),
    ("SHOP_IMPORT_MAX_BYTES", 64 * MIB, "1024", 1024),
    ("SHOP_URL_PREFIX", "", "shop/v1/", "/shop/v1"),
    ("SHOP_OPENAPI_VERSION", "3.1.0", "3.0.3", "3.0.3"),
    ("SHOP_TRUSTED_PROXIES", 0, "2", 2),
    ("SHOP_PAID_STATUSES", ("processing", "completed"), "completed, paid,", ("completed", "paid")),
    ("SHOP_REFUNDED_RELEASES_COUPONS", False, "1", True),
    ("SHOP_GRAVATAR", True, "no", False),
    ("SHOP_ARGON2_TIME_COST", 2, "3", 3),
    ("SHOP_ARGON2_MEMORY_KIB", 19 * 1024, "65536", 65536),
    ("SHOP_AUTH_FAILURES_PER_MINUTE", 60, "0", 0),
    ("SHOP_REDIS_URL", None, "redis://cache:6379/1", "redis://cache:6379/1"),
    (
        "SHOP_CORS_ORIGINS",
        (),
        "https://a.example, http://b:81,",
        ("https://a.example", "http://b:81"),
    ),
    ("SHOP_REQUEST_TIMEOUT_SECONDS", 15.0, "2.5", 2.5),
    ("SHOP_STATEMENT_TIMEOUT_SECONDS", 10.0, "2.5", 2.5),
    ("SHOP_REPLICA_LAG_SECONDS", 10.0, "2.5", 2.5),
    ("SHOP_EVENTS_DAYS", 30, "7", 7),
    ("SHOP_HISTORY_DAYS", 90, "7", 7),
    (
        "SHOP_ERASABLE_STATUSES",
        ("completed", "cancelled", "refunded", "failed"),
        "completed",
        ("completed",),
    ),
    ("SHOP_ERASURE_KEEPS_METADATA", ("_line_tax_data", "taxes"), "erp_id, a", ("erp_id", "a")),
    ("SHOP_GUEST_ORDERS_DAYS", 0, "730", 730),
    ("SHOP_PUBLIC_URL", None, "https://shop.example", "https://shop.example"),
    (
        "SHOP_WEBHOOK_ALLOWED_NETWORKS",
        (),
        "10.0.0.0/8, ::1",
        ("10.0.0.0/8", "::1"),
    ),
    ("SHOP_WORKER", True, "0", False),
    ("SHOP_METRICS", False, "1", True),
    ("SHOP_SLOW_REQUEST_SECONDS", 1.0, "0.25", 0.25),
    ("SHOP_LEGACY_API", True, "no", False),
    ("SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH", False, "1", True),
    ("SHOP_ADMIN", True, "off", False),
    ("SHOP_ADMIN_IDLE_DAYS", 14, "7", 7),
    ("SHOP_ADMIN_SESSION_DAYS", 90, "30", 30),
    ("SHOP_WC_V3", True, "off", False),
    ("SHOP_WC_V3_CUSTOMER", True, "0", False),
    ("SHOP_STRICT", False, "1", True),
    ("SHOP_CONTACT", "", "ops@shop.example", "ops@shop.example"),
    ("SHOP_CURRENCY", "USD", "EUR", "EUR"),
    ("SHOP_TIMEZONE", "UTC", "Asia/Kathmandu", "Asia/Kathmandu"),
    ("SHOP_EXPIRY_IN_TIMEZONE", False, "1", True),
]
NAMES = [name for name, *_ in SETTINGS]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


def loaded(overrides=None, file=None):
    """Return an app's configuration for overrides and ``instance/config.py``."""
    config = Config("", file or {})
    load_settings(config, overrides)
    return config


# --- where a setting comes from ---


def test_table_names_every_setting():
    assert list(SettingsSchema._declared_fields) == NAMES


@pytest.mark.parametrize(("name", "default"), [row[:2] for row in SETTINGS])
def test_unset_setting_has_its_default(name, default):
    assert loaded()[name] == default


@pytest.mark.parametrize(("name", "default", "text", "value"), SETTINGS)
def test_setting_from_the_environment(monkeypatch, name, default, text, value):
    monkeypatch.setenv(name, text)
    assert loaded() == {row[0]: row[1] for row in SETTINGS} | {name: value}


@pytest.mark.parametrize(("name", "default", "text", "value"), SETTINGS)
def test_setting_from_overrides(name, default, text, value):
    assert loaded({name: text}) == {row[0]: row[1] for row in SETTINGS} | {name: value}


@pytest.mark.parametrize(("name", "default"), [row[:2] for row in SETTINGS])
def test_empty_variable_is_ignored(monkeypatch, name, default):
    monkeypatch.setenv(name, "")
    assert loaded()[name] == default


def test_overrides_win_over_environment_over_file_over_default(monkeypatch):
    monkeypatch.setenv("SHOP_PAGE_SIZE", "3")
    monkeypatch.setenv("SHOP_BULK_LIMIT", "3")
    found = loaded(
        {"SHOP_PAGE_SIZE": 4}, {"SHOP_PAGE_SIZE": 2, "SHOP_BULK_LIMIT": 2, "WEB_THREADS": 2}
    )
    assert [found[name] for name in ("SHOP_PAGE_SIZE", "SHOP_BULK_LIMIT", "WEB_THREADS")] == [
        4,
        3,
        2,
    ]
    assert found["PORT"] == 8000


def test_settings_from_the_instance_folder(tmp_path):
    (tmp_path / "config.py").write_text("SHOP_PAGE_SIZE = 3\nSHOP_NAME = 'Corner shop'\n")
    app = create_app({"INSTANCE_PATH": str(tmp_path), "SECRET_KEY": LONG_SECRET})
    assert (app.config["SHOP_PAGE_SIZE"], app.config["SHOP_NAME"]) == (3, "Corner shop")


@pytest.mark.parametrize(
    ("given", "hosts", "ports"),
    [
        ("postgresql://u:p@a,b/shop", "a,b", "5432,5432"),
        ("postgres://u:p@a:6432,b:6433/shop", "a,b", "6432,6433"),
        ("postgresql://u:p@[::1]:6432,b/shop", "::1,b", "6432,5432"),
        ("postgresql+psycopg://u:p@a,b/shop?target_session_attrs=read-write", "a,b", "5432,5432"),
    ],
)
def test_url_with_several_hosts(given, hosts, ports):
    url = make_url(loaded({"DATABASE_URL": given})["DATABASE_URL"])
    assert (url.username, url.password, url.database) == ("u", "p", "shop")
    assert (url.query["host"], url.query["port"]) == (hosts, ports)
    assert url.query.get("target_session_attrs") in {None, "read-write"}


# --- invalid values ---


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("DATABASE_URL", URLS),
        ("DATABASE_POOLER", ["session", "transaction"]),  # on SQLite
        ("DATABASE_REPLICA_URLS", REPLICAS),
        ("SHOP_REPLICA_LAG_SECONDS", ["-1", "nan"]),
        ("PORT", ["http", "0", "65536"]),
        ("WEB_CONCURRENCY", ["0", "auto"]),
        ("WEB_THREADS", ["0", "four"]),
        ("SHOP_PAGE_SIZE", ["0", "ten", "1.5"]),
        ("SHOP_ARGON2_TIME_COST", ["0"]),
        ("SHOP_OPENAPI_VERSION", ["2.0"]),
        ("SHOP_ARGON2_MEMORY_KIB", ["7"]),
        ("SHOP_GRAVATAR", ["perhaps"]),
        ("SHOP_BULK_LIMIT", ["-1", "100 items"]),
        ("SHOP_METADATA_KEY_LENGTH", ["256"]),
        ("SHOP_MAX_BODY_BYTES", ["0", "5 MiB"]),
        ("SHOP_URL_PREFIX", ["/<shop>", "/shop?x#y"]),  # the first would be a variable of the route
        ("SHOP_TRUSTED_PROXIES", ["-1", "127.0.0.1"]),
        ("SHOP_AUTH_FAILURES_PER_MINUTE", ["-1", "off"]),
        ("SHOP_REDIS_URL", ["cache:6379", "memcached://geheim@cache"]),
        ("SHOP_CORS_ORIGINS", [*ORIGINS, "https://*.example"]),  # the last would be a pattern
        ("SHOP_STATEMENT_TIMEOUT_SECONDS", ["-1", "inf"]),
        ("SHOP_EVENTS_DAYS", ["0"]),
        ("SHOP_HISTORY_DAYS", ["0"]),
        ("SHOP_GUEST_ORDERS_DAYS", ["-1"]),
        ("SHOP_PUBLIC_URL", ["shop.example"]),
        ("SHOP_WEBHOOK_ALLOWED_NETWORKS", ["10.0.0.1/8", "localhost"]),
        ("SHOP_METRICS", ["sometimes"]),
        ("SHOP_SLOW_REQUEST_SECONDS", ["-1", "nan"]),
        ("SHOP_LEGACY_API", ["perhaps"]),
        ("SHOP_CONTACT", ["me", "me@", "javascript://shop.example"]),
        ("SHOP_TIMEZONE", ["Mars/Olympus", "America", "../UTC"]),
        ("SHOP_CURRENCY", ["euro", "KWD"]),
    ],
)
def test_invalid_value_is_rejected_by_name(tmp_path, monkeypatch, name, texts):
    for text in texts:
        monkeypatch.setenv(name, text)
        with pytest.raises(SettingsError, match=f"^{name}: ") as raised:
            create_app({"INSTANCE_PATH": str(tmp_path)})
        assert "geheim" not in str(raised.value), text


ENCODE = "Percent-encode special characters of the password"


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("DATABASE_URL", "postgresql://shop:geheim@123@127.0.0.1:1/shop"),
        ("DATABASE_URL", "postgres://shop:geheim@123@127.0.0.1:1/shop"),
        ("DATABASE_URL", "postgresql://shop:g@geheim/w@127.0.0.1:1/shop"),
        ("DATABASE_URL", "postgresql://shop:g@geheim/w@127.0.0.1"),
        ("DATABASE_URL", "postgresql://shop:g@geheim,d@127.0.0.1/shop"),
        ("DATABASE_REPLICA_URLS", "postgresql://shop:geheim@123@127.0.0.1:1/shop"),
        ("SHOP_REDIS_URL", "redis://:geheim/w@cache:6379"),
        ("SHOP_REDIS_URL", "redis://:12/geheim@cache:6379"),
        ("SHOP_REDIS_URL", "redis://shop:12/geheim@cache:6379"),
        ("SHOP_REDIS_URL", "redis://:geheim?w@cache:6379"),
        ("SHOP_REDIS_URL", "redis://:12#geheim@cache:6379"),
    ],
)
def test_password_that_is_not_encoded_is_rejected_without_showing_it(name, url):
    with pytest.raises(SettingsError, match=f"^{name}: {ENCODE}") as raised:
        loaded({name: url})
    assert "geheim" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("DATABASE_URL", "postgresql://shop:secret@127.0.0.1:port/shop"),
        ("SHOP_REDIS_URL", "redis://:secret@cache:port"),
    ],
)
def test_other_errors_of_a_url_do_not_blame_the_password(name, url):
    with pytest.raises(SettingsError, match=f"^{name}: Not a valid"):
        loaded({name: url})


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("DATABASE_URL", "postgresql://shop:p%40ss%2Fw@127.0.0.1:1/shop"),
        ("DATABASE_URL", "postgresql://shop:p/w?x#y@127.0.0.1:1/shop"),  # is unambiguous
        ("DATABASE_URL", "postgresql://shop:1,2/x@db/shop"),
        ("DATABASE_URL", "postgresql://db/shop?application_name=a@b"),
        ("DATABASE_URL", "sqlite:////srv/a@b/c@d.db"),
        ("SHOP_REDIS_URL", "redis://:p@w@cache:6379/1"),  # is unambiguous
        ("SHOP_REDIS_URL", "redis+unix://:p@/run/redis@1.sock?db=1"),
    ],
)
def test_url_with_a_special_character_elsewhere_is_accepted(name, url):
    assert loaded({name: url})[name] == url


@pytest.mark.parametrize(
    ("name", "text", "example"),
    [
        ("DATABASE_URL", "shop.db", "postgresql://USER:PASSWORD@localhost/shop"),
        ("DATABASE_URL", "postgresql://a:x,b/shop", "sqlite:///shop.db"),
        ("SHOP_REDIS_URL", "cache:6379", "redis://:PASSWORD@localhost:6379/0"),
        ("SHOP_REDIS_URL", "redis://cache:port", "redis://:PASSWORD@localhost:6379/0"),
        ("SHOP_PUBLIC_URL", "shop.example", "https://shop.example"),
    ],
)
def test_message_about_an_invalid_url_has_an_example(name, text, example):
    with pytest.raises(SettingsError, match=f"^{name}: Not a valid .*Example: .*{example}"):
        loaded({name: text})


@pytest.mark.parametrize("name", NAMES)
def test_value_of_wrong_type_is_rejected_by_name(name):
    with pytest.raises(SettingsError, match=f"^{name}: "):
        loaded({name: {}})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"PORT": "80o0"}, "PORT: Not a valid integer. The value is '80o0'."),
        (
            {"SHOP_PAGE_SIZE": 0},
            "SHOP_PAGE_SIZE: Must be greater than or equal to 1. The value is 0.",
        ),
        (
            {"SHOP_EVENTS_DAYS": "1000000"},
            "SHOP_EVENTS_DAYS: Must be less than or equal to 365000. The value is '1000000'.",
        ),
        (
            {"SHOP_PAGE_SIZE": 10**20},
            f"SHOP_PAGE_SIZE: Must be less than or equal to 999999999999999. The value is {10**20}.",
        ),
        (
            {"SHOP_REPLICA_LAG_SECONDS": 1e20},
            "SHOP_REPLICA_LAG_SECONDS: Must be less than or equal to 2000000. The value is 1e+20.",
        ),
    ],
)
def test_message_about_an_invalid_number_shows_it(given, message):
    with pytest.raises(SettingsError) as raised:
        loaded(given)
    assert str(raised.value) == message


def test_several_invalid_values_are_reported_together():
    with pytest.raises(SettingsError) as raised:
        loaded({"PORT": "x", "SHOP_PAGE_SIZE": 0})
    assert [part.split(":")[0] for part in str(raised.value).split("; ")] == [
        "PORT",
        "SHOP_PAGE_SIZE",
    ]


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("postgres://u:p@db:5433/shop?sslmode=require", "postgresql://u:p@db:5433/shop?sslmode=require"),
        ("postgres+psycopg://db/postgres://x", "postgresql+psycopg://db/postgres://x"),
        ("postgresql://db/shop", "postgresql://db/shop"),
    ],
)  # fmt: skip
def test_postgres_url_is_a_postgresql_url(given, url):
    assert loaded({"DATABASE_URL": given})["DATABASE_URL"] == url


# --- settings that contain order statuses ---

KNOWN = "pending, processing, on-hold, completed, cancelled, refunded, failed"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("complete", "unknown order status 'complete' (did you mean completed?)"),
        ("completed,xyz", "unknown order status 'xyz'"),
        ("Completed", "unknown order status 'Completed' (did you mean completed?)"),
        (
            "procesing, x",
            "unknown order status 'procesing' (did you mean processing?); SHOP_PAID_STATUSES: unknown order status 'x'",
        ),
    ],
)
def test_unknown_order_status_is_rejected(tmp_path, setting, reason):
    with pytest.raises(SettingsError) as raised:
        create_app(
            {
                "INSTANCE_PATH": str(tmp_path),
                "SECRET_KEY": LONG_SECRET,
                "SHOP_PAID_STATUSES": setting,
            }
        )
    assert str(raised.value) == f"SHOP_PAID_STATUSES: {reason}. Known statuses: {KNOWN}."


def test_order_status_of_a_plugin_is_known(tmp_path, monkeypatch):
    class Lay:
        @staticmethod
        def init_app(app, api):
            app.extensions[EXTENSION].add_order_status("lay-away", "Lay-away")

    entry_point = SimpleNamespace(name="lay", value="lay", load=lambda: Lay)
    settings = {"INSTANCE_PATH": str(tmp_path), "SECRET_KEY": LONG_SECRET}
    settings["SHOP_PAID_STATUSES"] = "completed,lay-away"
    with pytest.raises(SettingsError, match="unknown order status 'lay-away'"):
        create_app(settings)
    monkeypatch.setattr(blueprints, "entry_points", lambda group: [entry_point])
    assert create_app(settings).config["SHOP_PAID_STATUSES"] == ("completed", "lay-away")


@pytest.mark.slow
def test_start_with_an_unknown_order_status_ends_in_one_line(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "import wsgi"],
        cwd=ROOT,
        env=os.environ
        | {
            "SHOP_PAID_STATUSES": "complete",
            "SECRET_KEY": LONG_SECRET,
            "DATABASE_URL": f"sqlite:///{tmp_path}/shop.db",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        "The service cannot start: SHOP_PAID_STATUSES: unknown order status 'complete' "
        f"(did you mean completed?). Known statuses: {KNOWN}.\n"
    )


def test_message_about_an_invalid_boolean_lists_the_accepted_values():
    with pytest.raises(SettingsError) as raised:
        loaded({"SHOP_METRICS": "enabled"})
    assert str(raised.value) == (
        "SHOP_METRICS: Not a valid boolean. Use true, yes, on or 1, or false, no, off or 0."
    )
    for value, texts in ((True, "true yes on 1"), (False, "false no off 0")):
        assert {loaded({"SHOP_METRICS": text})["SHOP_METRICS"] for text in texts.split()} == {value}


@pytest.mark.parametrize(
    "contact", ["https://shop.example/contact", "http://intranet/ops", " ops@shop.example "]
)
def test_contact_is_an_email_address_or_a_url(contact):
    assert loaded({"SHOP_CONTACT": contact})["SHOP_CONTACT"] == contact.strip()


def test_short_secret_is_warned_about(tmp_path, caplog):
    create_app({"INSTANCE_PATH": str(tmp_path), "SECRET_KEY": "short"})
    assert caplog.messages == ["SECRET_KEY has 5 characters. Use 32 random characters."]


# --- names of settings that do not exist ---


def warning_about(name):
    nearest = " (did you mean SHOP_PAGE_SIZE?)" if name == "SHOP_PAGESIZE" else ""
    return f"unknown setting {name}{nearest}. docs/configuration.md lists all settings."


def test_unknown_setting_without_a_similar_name_is_warned_about(tmp_path, caplog):
    create_app({"INSTANCE_PATH": str(tmp_path), "SECRET_KEY": LONG_SECRET, "SHOP_XQZ": 5})
    assert caplog.messages == [warning_about("SHOP_XQZ")]


def test_unknown_override_is_warned_about(tmp_path, caplog):
    create_app(
        {"INSTANCE_PATH": str(tmp_path), "SECRET_KEY": LONG_SECRET, "SHOP_PAGESIZE": 5, "OTHER": 1}
    )
    assert caplog.messages == [warning_about("SHOP_PAGESIZE")]


def test_unknown_name_in_the_instance_folder_is_warned_about(tmp_path, caplog):
    (tmp_path / "config.py").write_text("SHOP_PAGESIZE = 5\n")
    create_app({"INSTANCE_PATH": str(tmp_path), "SECRET_KEY": LONG_SECRET})
    assert caplog.messages == [warning_about("SHOP_PAGESIZE")]


def test_unknown_variable_is_warned_about(tmp_path, caplog, monkeypatch):
    monkeypatch.setenv("SHOP_PAGESIZE", "5")
    create_app({"INSTANCE_PATH": str(tmp_path), "SECRET_KEY": LONG_SECRET})
    assert caplog.messages == [warning_about("SHOP_PAGESIZE")]


def test_known_names_are_not_warned_about(tmp_path, caplog):
    create_app({"INSTANCE_PATH": str(tmp_path), "SECRET_KEY": LONG_SECRET, "SHOP_PAGE_SIZE": 5})
    assert caplog.messages == []
