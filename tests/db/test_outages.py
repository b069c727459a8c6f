"""Outages of the database: 503 during the outage, and recovery without a restart (decisions 1)."""

import contextlib
import gc
import io
import json
import logging
import resource
import shutil
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import psycopg
import pytest
from flask_migrate import upgrade
from sqlalchemy import event

from app import create_app
from app.auth.api_keys import MAX_AGE_SECONDS
from app.auth.principals import Permission
from app.db import deadline, sqlite
from app.db.patient_pool import PatientPool
from app.db.session import db
from app.services.api_keys.writes import create_key
from qa.histories.databases import PostgreSQL
from tests.api_client import Client, refusal, reply
from tests.databases import SECRET, assert_nothing_is_open, close
from tests.schemas import create_tables
from tests.selection import POOLED

pytestmark = pytest.mark.both_databases

FULL = refusal("shop_api_unavailable", reason="The disk of the database is full.")
UNKNOWN = refusal("shop_api_outcome_unknown")
AWAY = refusal("shop_api_unavailable", reason="The database cannot be reached.")
# A backend can outlive a killed postmaster, and recovery takes its time on a busy machine.
LATE = refusal("shop_api_unavailable", reason="The database did not respond within 15 seconds.")
BIG = "x" * 65_000


@contextlib.contextmanager
def shop(url, folder):
    """Return a client of the administrator of a shop with one coupon."""
    create_tables(url)
    app = create_app({"DATABASE_URL": url, "SECRET_KEY": SECRET, "INSTANCE_PATH": str(folder)})
    with app.app_context():
        key = create_key("admin", "administrator", Permission.READ_WRITE, "")
    client = Client(app, key)
    assert create(client, "first")[0] == 201
    try:
        yield client
        assert_nothing_is_open(app)
    finally:
        close(app)


@pytest.fixture
def sqlite_shop(tmp_path):
    with shop(f"sqlite:///{tmp_path}/shop.db", tmp_path) as client:
        yield client


def create(client, code, **fields):
    return reply(client.post("/coupons", {"coupon": {"code": code} | fields}))


def codes(client):
    """The codes that the store has, oldest first."""
    query = {"filter[orderby]": "id", "filter[order]": "asc"}
    return [coupon["code"] for coupon in client.get("/coupons", query).get_json()["coupons"]]


def assert_away(client, *requests, answer=AWAY):
    for method, path, *body in requests:
        response = client.request(method, path, **({"json": body[0]} if body else {}))
        assert reply(response) == answer
        assert response.headers["Retry-After"] == "5"


NEW = {"coupon": {"code": "new"}}
REQUESTS = [
    ("GET", "/readyz"),
    ("GET", "/coupons"),
    ("GET", "/customers?filter[limit]=-1"),
    ("GET", "/orders/count"),
    ("POST", "/coupons", NEW),
    ("POST", "/coupons/bulk", {"coupons": [{"code": "a"}, {"code": "b"}]}),
    ("PUT", "/coupons/1", {"coupon": {"amount": 5}}),
    ("DELETE", "/coupons/1?force=true"),
]


@pytest.fixture
def postgresql(tmp_path):
    """A server of this test's own, which may be killed."""
    server = PostgreSQL(tmp_path)
    try:
        server.start()
        yield server
    finally:
        server.close()


@contextlib.contextmanager
def logged():
    """What the newest app logs besides requests."""
    lines = io.StringIO()
    (handler,) = (h for h in logging.getLogger("app").handlers if type(h) is logging.StreamHandler)
    stream = handler.setStream(lines)
    try:
        yield lines
    finally:
        handler.setStream(stream)


@pytest.mark.slow
def test_postgresql_stops_and_starts_again(postgresql, tmp_path):
    with shop(postgresql.url, tmp_path) as client:
        assert_network_failures_are_noticed(client.app)
        for code, stop in (
            ("second", postgresql.kill_postmaster),
            ("third", postgresql.stop_at_once),
        ):
            stop()
            assert_away(client, *REQUESTS, *REQUESTS)
            assert client.get("/healthz").status_code == 200
            postgresql.start()
            # From the first request on, without a restart.
            assert create(client, code)[0] == 201
        assert codes(client) == ["first", "second", "third"]


def assert_network_failures_are_noticed(app):
    """A server that vanishes without a word is given up after these seconds, not after hours."""
    with app.app_context(), db.engine.connect() as connection:
        given = connection.connection.driver_connection.info.get_parameters()
    names = ("keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout")
    assert [given[name] for name in names] == ["10", "5", "3", "15000"]


@pytest.mark.slow
def test_postgresql_that_cannot_write_is_503_to_writers(postgresql, tmp_path):
    """A standby that took over, or is read by mistake."""
    with shop(postgresql.url, tmp_path) as client:
        with psycopg.connect(postgresql.url, autocommit=True) as connection:
            # Applies to new sessions at once. The server would read a changed configuration in its own
            # time, and each session again in its own.
            connection.execute("ALTER ROLE CURRENT_USER SET default_transaction_read_only = on")
        with client.app.app_context():
            for engine in db.engines.values():
                engine.dispose()
        assert_away(client, ("POST", "/coupons", NEW), ("DELETE", "/coupons/1"))
        assert codes(client) == ["first"]


# Errors of psycopg without a code, if PgBouncer ends a connection with a message of its own.
CUT_OFF = [
    psycopg.InternalError("received 2 results from command 'BEGIN'"),
    psycopg.DatabaseError('lost synchronization with server: got message type "Z"'),
]


@pytest.mark.sample(1)
@pytest.mark.parametrize("database_url", ["postgresql", POOLED], indirect=True)
@pytest.mark.parametrize("error", CUT_OFF, ids=lambda error: type(error).__name__)
def test_connection_lost_within_a_message_is_503(admin, make_coupon, monkeypatch, error):
    """At each round trip of each request, also if the error has the class of a bug."""
    wait, left = deadline.DeadlineConnection.wait, []

    def lose(connection, *args):
        if left and left.pop() is lose:
            connection.close()
            raise error
        return wait(connection, *args)

    monkeypatch.setattr(deadline.DeadlineConnection, "wait", lose)
    make_coupon(code="first")
    for method, path, *body in REQUESTS:
        statuses = set()
        for number in range(20):
            left[:] = [lose, *[None] * number]
            response = admin.request(method, path, **({"json": body[0]} if body else {}))
            if left:
                left.clear()
                break
            statuses.add(response.status_code)
            assert response.status_code < 500 or reply(response) in [AWAY, UNKNOWN]
        assert left == []
        assert 503 in statuses


@pytest.mark.parametrize(
    "reason", ['database "shop" does not exist', "password authentication failed for user"]
)
def test_a_server_that_rejects_a_connection_is_not_asked_again(reason):
    attempts = []

    def connect():
        attempts.append(reason)
        assert len(attempts) < 5
        raise psycopg.OperationalError(f"connection failed: FATAL:  {reason}")

    pool = PatientPool(connect, timeout=5)
    deadline.begin(5)
    try:
        with pytest.raises(psycopg.OperationalError, match=reason):
            pool.connect()
    finally:
        deadline.end()
    assert len(attempts) == 1


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("error", [None, *CUT_OFF], ids=lambda error: type(error).__name__)
def test_new_connections_that_are_closed_at_once_are_503(make_app, admin, error):
    """As of a server that stops while it accepts them, before or after their first statement."""
    app = make_app()

    def end(connection, _):
        with contextlib.suppress(psycopg.OperationalError):
            connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        if error:
            raise error

    with app.app_context():
        engines = db.engines.values()
        for engine in engines:
            event.listen(engine, "connect", end)
        assert_away(Client(app, admin.key), *REQUESTS)
        for engine in engines:
            event.remove(engine, "connect", end)
    assert create(Client(app, admin.key), "second")[0] == 201


# The cursor of a list cannot be closed on a connection that is gone; psycopg says so.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Exception ignored in. <function ServerCursorMixin")
@pytest.mark.filterwarnings("ignore:<psycopg.ServerCursor:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_postgresql_is_killed_under_load(postgresql, tmp_path):
    """Each response is the expected one or 503, from the first failure to the first success."""
    with shop(postgresql.url, tmp_path) as client, logged() as log:
        stop, seen = Event(), set()

        def send(number):
            own, sent = Client(client.app, client.key), 0
            while not stop.is_set():
                sent += 1
                bulk = [{"code": f"{number}-{sent}-{item}"} for item in range(20)]
                for method, path, body, expected in (
                    ("POST", "/coupons/bulk", {"coupons": bulk}, 200),
                    ("GET", "/coupons", None, 200),
                    ("GET", "/customers?filter[limit]=-1", None, 200),
                    ("POST", "/coupons", {"coupon": {"code": f"{number}-{sent}"}}, 201),
                ):
                    response = own.request(method, path, **({"json": body} if body else {}))
                    possible = [AWAY, LATE] if method == "GET" else [AWAY, LATE, UNKNOWN]
                    assert response.status_code == expected or reply(response) in possible
                    seen.add(response.status_code)

        with ThreadPoolExecutor(4) as pool:
            sending = [pool.submit(send, number) for number in range(4)]
            try:
                for _ in range(3):
                    postgresql.kill_postmaster()
                    seen.clear()
                    while 503 not in seen and not any(each.done() for each in sending):
                        stop.wait(0.01)
                    postgresql.start()
                    seen.clear()
                    while 201 not in seen and not any(each.done() for each in sending):
                        stop.wait(0.01)
            finally:
                stop.set()
            for each in sending:
                each.result()
        assert "Traceback" not in log.getvalue()
    gc.collect()  # psycopg complains of cursors that were open when the server died


def test_outage_is_logged_in_one_line_without_a_traceback(sqlite_shop, tmp_path):
    with locked(tmp_path), logged() as log:
        sqlite_shop.post("/coupons", NEW)
    (line,) = map(json.loads, log.getvalue().splitlines())
    assert line["message"] == "shop_api_unavailable: OperationalError: database is locked"
    assert line["level"] == "warning"


# --- SQLite ---


@contextlib.contextmanager
def locked(folder):
    """Another process writes for longer than the timeout of writers."""
    other = sqlite3.connect(folder / "shop.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Wait for another writer only briefly, not for 20 seconds."""
    monkeypatch.setattr(sqlite, "WAIT_SECONDS", 0.1)


def test_sqlite_that_is_locked_is_503_to_writers(sqlite_shop, tmp_path):
    with locked(tmp_path):
        assert_away(sqlite_shop, *[each for each in REQUESTS if each[0] != "GET"])
        assert codes(sqlite_shop) == ["first"]
    assert create(sqlite_shop, "second")[0] == 201
    assert codes(sqlite_shop) == ["first", "second"]


def test_sqlite_files_can_be_read_by_their_owner_only(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    app = create_app({"DATABASE_URL": url, "SECRET_KEY": SECRET, "INSTANCE_PATH": str(tmp_path)})
    with app.app_context():
        upgrade()
        create_key("admin", "administrator", Permission.READ_WRITE, "")
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("shop.db*")}
    close(app)
    assert modes == dict.fromkeys(["shop.db", "shop.db-shm", "shop.db-wal"], 0o600)


@pytest.mark.slow
def test_unknown_path_with_a_key_while_the_database_is_unavailable(sqlite_shop, tmp_path):
    """The legacy API asks who is there before it says that nothing is: an error within an error."""
    time.sleep(MAX_AGE_SECONDS)  # until the key is read again
    for each in tmp_path.glob("shop.db*"):
        each.unlink()
    with logged() as log:
        response = sqlite_shop.get("/wc-api/v3/nothing/here")
    code = "woocommerce_api_unavailable"
    assert (response.status_code, response.get_json()["errors"][0]["code"]) == (503, code)
    assert "Traceback" not in log.getvalue()


@pytest.mark.slow
def test_sqlite_file_that_is_removed_takes_no_write(sqlite_shop, tmp_path):
    """Writes to a removed file would be lost, so they must not be acknowledged."""
    file, backup = tmp_path / "shop.db", tmp_path / "backup.db"
    with contextlib.closing(sqlite3.connect(file)) as source, sqlite3.connect(backup) as target:
        source.backup(target)
    target.close()
    for each in tmp_path.glob("shop.db*"):
        each.unlink()
    assert_away(sqlite_shop, *REQUESTS)
    assert not file.exists()
    shutil.copy(backup, file)
    assert codes(sqlite_shop) == ["first"]
    assert create(sqlite_shop, "second")[0] == 201
    # The other way: one file takes the place of another.
    backup.rename(file)
    for each in ("shop.db-wal", "shop.db-shm"):
        (tmp_path / each).unlink()
    assert codes(sqlite_shop) == ["first"]
    assert create(sqlite_shop, "third")[0] == 201
    assert codes(sqlite_shop) == ["first", "third"]


def test_sqlite_on_a_full_disk_takes_no_write(sqlite_shop):
    """A limit on the size of files simulates a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        items = [{"code": "small"}, {"code": "big", "description": BIG}]
        assert_away(
            sqlite_shop,
            ("POST", "/coupons", {"coupon": {"code": "big", "description": BIG}}),
            ("POST", "/coupons/bulk", {"coupons": items}),
            ("PUT", "/coupons/1", {"coupon": {"description": BIG}}),
        )
        assert codes(sqlite_shop) == ["first"]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert create(sqlite_shop, "big", description=BIG)[0] == 201
    assert codes(sqlite_shop) == ["first", "big"]


@pytest.mark.slow
def test_full_disk_is_reported_as_such_on_sqlite(sqlite_shop):
    """A limit on the number of pages has the same effect for SQLite as a full disk."""
    with sqlite_shop.app.app_context():
        engine = db.engine
        with engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()

    def limit(connection, *_):
        connection.execute(f"PRAGMA max_page_count = {pages}")

    event.listen(engine, "checkout", limit)
    try:
        big = {"coupon": {"code": "big", "description": BIG}}
        with logged() as log:
            assert_away(sqlite_shop, ("POST", "/coupons", big), answer=FULL)
    finally:
        event.remove(engine, "checkout", limit)
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count = 1073741823")
    assert "OperationalError: database or disk is full" in log.getvalue()
    assert codes(sqlite_shop) == ["first"]
    assert create(sqlite_shop, "big", description=BIG)[0] == 201


@pytest.mark.slow
def test_full_disk_is_reported_as_such_on_postgresql(postgresql, tmp_path):
    """The server reports the error of a full disk. A trigger raises it, as a disk cannot be filled."""
    with shop(postgresql.url, tmp_path) as client:
        with psycopg.connect(postgresql.url, autocommit=True) as connection:
            connection.execute("""
                CREATE FUNCTION fill_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    RAISE disk_full USING MESSAGE = 'could not extend file "base/5/16388"';
                END $$;
                CREATE TRIGGER fill_disk BEFORE INSERT ON coupons EXECUTE FUNCTION fill_disk();
            """)
            assert_away(client, ("POST", "/coupons", NEW), answer=FULL)
            connection.execute("DROP TRIGGER fill_disk ON coupons")
        assert create(client, "second")[0] == 201


@pytest.mark.slow
def test_commit_on_sqlite_survives_a_power_failure(sqlite_shop):
    with sqlite_shop.app.app_context():
        for engine in db.engines.values():
            with engine.connect() as connection:
                settings = ("journal_mode", "synchronous", "fullfsync", "checkpoint_fullfsync")
                values = [
                    connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in settings
                ]
            assert values == ["wal", 2, 1, 1]
