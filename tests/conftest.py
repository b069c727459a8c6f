"""The shop that the tests use over HTTP: on SQLite and on PostgreSQL, empty before each test."""

import math
from typing import NamedTuple

import psycopg
import pytest
from flask_migrate import upgrade
from sqlalchemy import event, make_url, select, update

from app import create_app
from app.auth.principals import Permission
from app.cli import progress
from app.db.read_pool import fetch
from app.db.session import db, run_in_transaction
from app.models import Coupon, Event
from app.services.api_keys.writes import NewKey, create_key
from app.services.coupons.refusals import refusals_of

# Those in folders have fixtures that tests of several folders use.
pytest_plugins = [
    "pytester", "tests.selection", "tests.databases", "tests.api.idempotency_requests",
    "tests.api.log_lines", "tests.api_keys.calls", "tests.coupons.batches", "tests.events.feed",
    "tests.orders.extension_apps", "tests.redemptions.calls",
]  # fmt: skip
# Before they are imported, so that a failed assertion shows its values.
pytest.register_assert_rewrite("tests.api_client", *pytest_plugins[1:])

from tests.api_client import Client  # noqa: E402  # after the line above
from tests.databases import (  # noqa: E402  # the same
    SECRET,
    StoredShop,
    assert_nothing_is_open,
    close,
    empty,
    insertions,
)
from tests.schemas import create_tables  # noqa: E402  # the same
from tests.selection import POOLED  # noqa: E402  # the same


@pytest.fixture(scope="session")
def settings(database_url, tmp_path_factory):
    """The settings of every app of this run."""
    pooler = "transaction" if make_url(database_url).username == POOLED else None
    return {
        "DATABASE_URL": database_url,
        "DATABASE_POOLER": pooler,
        "SECRET_KEY": SECRET,
        "INSTANCE_PATH": str(tmp_path_factory.mktemp("instance")),
        "SHOP_AUTH_FAILURES_PER_MINUTE": 0,
        # What is slow here is the machine of the tests. Tests of these limits have settings of their own.
        "SHOP_SLOW_REQUEST_SECONDS": 0,
        "SHOP_REQUEST_TIMEOUT_SECONDS": 60,
        "SHOP_STATEMENT_TIMEOUT_SECONDS": 60,
        # The cheapest hash: the tests set many passwords.
        "SHOP_ARGON2_TIME_COST": 1,
        "SHOP_ARGON2_MEMORY_KIB": 8,
    }


@pytest.fixture(scope="session")
def session_app(settings):
    app = create_app(settings)
    if settings["DATABASE_POOLER"]:
        with app.app_context():
            upgrade()
    else:
        create_tables(settings["DATABASE_URL"])
    Client.described = Client.described or app
    yield app
    close(app)


@pytest.fixture(scope="session", autouse=True)
def no_lines_of_progress():
    """A command prints one after ten seconds, which a busy machine can take for any command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "SECONDS_BETWEEN_LINES", math.inf)
        yield


class Administrator(NamedTuple):
    """An API key with all capabilities, and the SQL that stores it."""

    key: NewKey
    statements: list[str]


@pytest.fixture(scope="session")
def administrator(session_app):
    """The administrator's API key, created once; ``admin`` inserts its rows for each test."""
    with session_app.app_context():
        with db.engine.begin() as connection:
            empty(connection)
        key = create_key("administrator", "administrator", Permission.READ_WRITE, "")
        with db.engine.connect() as connection:
            statements = insertions(connection, without={Event.__tablename__})
    return Administrator(key, statements)


@pytest.fixture
def app(session_app):
    """The app, on an empty shop, with nothing left open afterwards."""
    refusals_of(session_app).flush()  # those that the previous test has counted
    with session_app.app_context(), db.engine.begin() as connection:
        empty(connection)
    forget_principals(session_app)
    yield session_app
    assert_nothing_is_open(session_app)


@pytest.fixture
def make_app(app, settings):
    """Return a function: another app on the same shop, with settings of its own."""
    made = []

    def make(**over):
        made.append(create_app(settings | over))
        return made[-1]

    yield make
    for another in made:
        assert_nothing_is_open(another)
        close(another)


@pytest.fixture
def old_app(make_app, fresh_database_url):
    """An app with an empty database, for schemas of earlier releases."""
    app = make_app(DATABASE_URL=fresh_database_url)
    with app.app_context():
        yield app


@pytest.fixture(scope="session")
def apps_by_settings(session_app, settings):
    """The apps of ``app_with``. They belong to the database of this run."""
    return {}


@pytest.fixture
def app_with(app, settings, apps_by_settings, request):
    """Return a function: an app on the same shop that tests with the same settings share.

    An app takes as long to create as dozens of requests. A test that changes its app, or that needs
    an app without failed logins, creates one with ``make_app``.
    """
    used = []

    def get(**over):
        # An app writes to the standard output of the test that creates it, which capsys closes.
        owner = request.node.nodeid if "capsys" in request.fixturenames else None
        wanted = repr((owner, sorted(over.items())))
        if wanted not in apps_by_settings:
            apps_by_settings[wanted] = create_app(settings | over)
        shared = apps_by_settings[wanted]
        if shared not in used:
            forget_principals(shared)
            used.append(shared)
        return shared

    yield get
    for shared in used:
        assert_nothing_is_open(shared)
        close(shared)  # its connections; new ones are opened as needed


@pytest.fixture
def client_with(app_with, admin):
    """Return a function: the administrator's client of a shared app with other settings."""
    return lambda **over: Client(app_with(**over), admin.key)


def forget_principals(app):
    """The administrator has the same key in every test, so an earlier principal could be cached."""
    app.extensions.pop("shop_api_principals", None)


@pytest.fixture
def client_for(app):
    """Return a function: a client with a key of a new user with a role."""

    def make(role="administrator", permission="read_write", login=None):
        with app.app_context():
            key = create_key(login or role, role, Permission(permission), "")
        return Client(app, key)

    return make


@pytest.fixture
def admin(app, administrator):
    """A client that may do everything."""
    with app.app_context(), db.engine.begin() as connection:
        for statement in administrator.statements:
            connection.exec_driver_sql(statement)
    return Client(app, administrator.key)


@pytest.fixture(scope="session")
def stored_shops(session_app):
    """The shops of ``filled_once``, by the function that fills them."""
    return {}


@pytest.fixture
def filled_once(app, admin, stored_shops):
    """Return a function: fill the shop with ``fill(admin)`` and return its result.

    It is called once in a process and on a database. Further tests get its rows and its result.
    """

    def get(fill):
        if fill not in stored_shops:
            result = fill(admin)
            with app.app_context(), db.engine.begin() as connection:
                stored_shops[fill] = StoredShop(connection), result
            return result
        shop, result = stored_shops[fill]
        with app.app_context(), db.engine.begin() as connection:
            shop.insert(connection)
        return result

    return get


@pytest.fixture
def anonymous(app):
    """A client without a key."""
    return Client(app)


@pytest.fixture
def make_coupon(admin):
    """Return a function: create a coupon with ``over`` and return it as the API does."""
    numbers = iter(range(1, 10_000))

    def make(client=None, **over):
        body = {"coupon": {"code": f"code-{next(numbers)}"} | over}
        response = (client or admin).post("/coupons", body)
        assert response.status_code == 201, response.get_json()
        return response.get_json()["coupon"]

    return make


@pytest.fixture
def make_customer(admin):
    """Return a function: create a customer with ``over`` and return it as the API does."""
    numbers = iter(range(1, 10_000))

    def make(client=None, **over):
        body = {"customer": {"email": f"customer-{next(numbers)}@example.com"} | over}
        response = (client or admin).post("/customers", body)
        assert response.status_code == 201, response.get_json()
        return response.get_json()["customer"]

    return make


@pytest.fixture
def store(app):
    """Return a function that writes columns of a coupon past the API: what only time does."""

    def write(coupon_id, **columns):
        statement = update(Coupon).where(Coupon.id == coupon_id).values(**columns)
        with app.app_context():
            run_in_transaction(lambda session: session.execute(statement))

    return write


@pytest.fixture
def everything(app):
    """Return a function: all rows of all tables, without the times at which keys were used."""

    def read():
        with app.app_context():
            return {
                table.name: sorted(
                    map(repr, fetch(select(*[c for c in table.c if c.name != "last_used_at"])))
                )
                for table in db.metadata.sorted_tables
            }

    return read


@pytest.fixture
def statements(app, monkeypatch):
    """Return a list that fills with every SQL statement that the app sends.

    Where a transaction begins and ends is not in it: some drivers are told in statements.
    """
    seen = []

    def note(connection, cursor, statement, parameters, context, executemany):
        if not statement.startswith(("BEGIN", "COMMIT", "SET LOCAL")):
            seen.append(statement)

    def copy(cursor, statement, *arguments, copying=psycopg.Cursor.copy, **options):
        seen.append(statement)  # SQLAlchemy does not know it
        return copying(cursor, statement, *arguments, **options)

    monkeypatch.setattr(psycopg.Cursor, "copy", copy)
    with app.app_context():
        engines = list(db.engines.values())
    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    yield seen
    for engine in engines:
        event.remove(engine, "before_cursor_execute", note)
