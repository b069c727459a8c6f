"""Upgrades while other versions run: compatible schemas, concurrent upgrades and waiting writers."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from configparser import ConfigParser
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from random import Random
from threading import Event

import psycopg
import pytest
from flask_migrate import downgrade, upgrade
from psycopg.pq import TransactionStatus
from sqlalchemy import Boolean, Date, DateTime, Integer, LargeBinary, Numeric, event, make_url, text
from sqlalchemy.exc import DBAPIError

from app.cli.failures import explain
from app.db.migration_helpers import SECOND_LOCK_MILLISECONDS
from app.db.migrations import MIGRATIONS
from app.db.session import db
from qa.cluster.demonstrations.upgrade import extract, previous_release
from tests.databases import SECRET
from tests.db.test_upgrades import REVISIONS, VALUES, assert_data_is_kept, tables
from tests.serving import ROOT, Gunicorn, reserved_port

pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.filterwarnings("ignore:Skipped unsupported reflection:Warning"),
]

CREDENTIALS = b64encode(b"ck_1:cs_1").decode()
HEAD = REVISIONS[-1]
CHECKED = REVISIONS[REVISIONS.index("0026") :]
"""The schemas whose migrations must not block writers. Earlier ones create indexes with a lock."""

NEXT = f"{int(HEAD) + 1:04}"
MIGRATION = '''"""A migration of the next version."""
import sqlalchemy as sa
from alembic import op
from app.db.migration_helpers import create_index_concurrently, set_oldest_compatible
revision, down_revision = "{next}", "{head}"
def upgrade():
    op.add_column("orders", sa.Column("colour", sa.String(20), server_default="red", nullable=False))
    create_index_concurrently("ix_orders_colour", "orders", ["colour"])
    {more}
'''  # fmt: skip


@pytest.fixture
def current_app(make_app, migrated_database_url):
    """An app with an empty shop of its own."""
    app = make_app(DATABASE_URL=migrated_database_url)
    with app.app_context():
        yield app


@pytest.fixture
def upgrade_to_next(tmp_path):
    """Return a function: migrate the database of the app to the schema of the next version."""

    def run(more=""):
        folder = tmp_path / "next"
        shutil.copytree(MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
        migration = MIGRATION.format(next=NEXT, head=HEAD, more=more)
        (folder / "versions" / f"{NEXT}_next.py").write_text(migration)
        upgrade(str(folder))

    return run


def run_upgrade(app):
    result = app.test_cli_runner().invoke(args=["db", "upgrade"])
    return result.exit_code, result.stdout or result.stderr


def readiness(app):
    return app.test_client().get("/readyz").status_code


# --- schemas of a newer version ---


@pytest.mark.slow
def test_upgrade_says_what_it_did(old_app):
    applied = len(REVISIONS)
    created = f"The database schema was created with {applied} migrations, up to {HEAD}.\n"
    assert run_upgrade(old_app) == (0, created)
    current = f"The database schema is current (migration {HEAD}).\n"
    assert run_upgrade(old_app) == (0, current)


@pytest.mark.slow
def test_upgrade_says_from_where_it_began(current_app):
    downgrade(revision=REVISIONS[-2])
    assert run_upgrade(current_app) == (
        0,
        f"The database schema was upgraded from {REVISIONS[-2]} to {HEAD} with 1 migration.\n",
    )


@pytest.mark.slow
def test_newer_schema_that_is_compatible_needs_no_upgrade(current_app, upgrade_to_next):
    upgrade_to_next()
    assert run_upgrade(current_app) == (
        0,
        (
            f"The database schema belongs to a newer version (migration {NEXT}). This version "
            f"(migration {HEAD}) can use it. Nothing was changed.\n"
        ),
    )
    assert readiness(current_app) == 200
    shown = current_app.test_cli_runner().invoke(args=["db", "current"]).output
    assert shown == f"{NEXT} (newer; the latest migration of this version is {HEAD})\n"


def test_newer_schema_that_is_incompatible_is_rejected(current_app, upgrade_to_next):
    upgrade_to_next(f'set_oldest_compatible("{NEXT}")')
    assert run_upgrade(current_app) == (
        1,
        (
            f"Error: The database has migration {NEXT} of a newer version of the service, and requires "
            f"a version with migration {NEXT} or later. This version has {HEAD}. Install a newer "
            "version.\n"
        ),
    )


TOO_NEW = "The database schema requires a newer version of the service"
INSTALL = "Install a newer version of the service"


@pytest.fixture
def app_on_a_newer_schema(current_app, upgrade_to_next):
    upgrade_to_next(f'set_oldest_compatible("{NEXT}")')
    return current_app


@pytest.mark.slow
def test_requests_on_a_schema_that_is_too_new_ask_for_the_newer_version(app_on_a_newer_schema):
    client = app_on_a_newer_schema.test_client()
    response = client.get("/readyz")
    assert response.status_code == 503
    message = f"{TOO_NEW}. Install it. Try again shortly."
    assert response.get_json()["errors"][0]["message"] == message
    db.session.execute(text("ALTER TABLE api_keys RENAME TO keys_of_the_next_version"))
    db.session.commit()
    response = client.get("/coupons", headers={"Authorization": f"Basic {CREDENTIALS}"})
    assert response.status_code == 503
    assert response.get_json()["errors"][0]["message"] == message


REJECTED = (
    "keys list",
    "worker",
    "keys create --login erp --role administrator",
    "demo --customers 1 --coupons 1 --orders 1 --seed 1",
    "coupons generate --count 1",
    "export all -",
)


@pytest.mark.slow
def test_commands_on_a_schema_that_is_too_new_ask_for_the_newer_version(app_on_a_newer_schema):
    runner = app_on_a_newer_schema.test_cli_runner()
    for command in REJECTED:
        result = runner.invoke(args=command.split())
        shown = result.exit_code, result.stderr
        assert shown == (1, f"Error: {TOO_NEW}. {INSTALL}\n"), command
    with closing(reserved_port()) as port:
        app_on_a_newer_schema.config["PORT"] = port.getsockname()[1]
    result = runner.invoke(args=["serve"])
    assert result.exit_code == 1
    assert result.stderr.endswith("Install a newer version.\n")
    output = runner.invoke(args=["doctor"]).output
    assert "requires a newer version of the service" in output
    assert INSTALL in output
    assert "db upgrade" not in output
    with pytest.raises(DBAPIError) as caught:
        db.session.execute(text("SELECT * FROM api_keys_of_the_next_version"))
    db.session.rollback()
    assert explain(caught.value) == f"{TOO_NEW}. {INSTALL}."


def unit_commands(code):
    """The commands of the unit file of a release, for its code in another folder.

    The console script is that of this code, so its module is run in the folder instead.
    """
    unit = ConfigParser(strict=False, interpolation=None)
    unit.read(code / "deploy" / "shop-api.service")
    service = unit["Service"]
    programs = f"{service['WorkingDirectory']}/.venv/bin"
    lines = [
        service[name].replace(f"{programs}/shop-api", f"{sys.executable} -m app.main")
        for name in ("ExecStartPre", "ExecStart")
    ]
    return [shlex.split(line.replace(programs, str(Path(sys.executable).parent))) for line in lines]


RECORDS_VERSIONS = "migrations/versions/0030_compatible_versions.py"


def previous_code(folder):
    """The code of the previous release. While no tag records compatible versions, this code."""
    revision = previous_release()
    assert (ROOT / RECORDS_VERSIONS).is_file()  # otherwise no release would ever be found
    known = f"{revision}:{RECORDS_VERSIONS}"
    found = revision and subprocess.run(
        ["git", "cat-file", "-e", known], cwd=ROOT, capture_output=True, check=False
    )
    if not found or found.returncode:
        return ROOT
    extract(revision, folder)
    return folder


@pytest.mark.slow
def test_unit_of_the_previous_release_starts_on_the_next_schema(
    current_app, upgrade_to_next, migrated_database_url, tmp_path
):
    upgrade_to_next()
    (tmp_path / "previous").mkdir()
    code = previous_code(tmp_path / "previous")
    prepare, (program, *arguments) = unit_commands(code)
    assert (Path(program).name, arguments) == ("gunicorn", ["wsgi:app"])  # as Gunicorn starts it
    settings = {"DATABASE_URL": migrated_database_url, "SECRET_KEY": SECRET}
    service = Gunicorn(tmp_path / "gunicorn.log", settings)
    try:
        prepared = subprocess.run(
            prepare, cwd=code, env=service.environment, capture_output=True, text=True, check=False
        )
        assert (prepared.returncode, prepared.stderr) == (0, "")
        service.start(folder=code)
        service.wait_until_ready()
        service.stop()
    finally:
        service.close()


# --- several upgrades at once ---


@pytest.mark.slow
def test_concurrent_upgrades_wait_for_each_other(old_app, fresh_database_url):
    upgrade(revision=REVISIONS[-3])
    command = [sys.executable, "-m", "app.main", "db", "upgrade"]
    env = os.environ | {"DATABASE_URL": fresh_database_url, "SECRET_KEY": SECRET}
    upgrades = [
        subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = sorted(each.communicate(timeout=600)[0] for each in upgrades)
    assert [each.returncode for each in upgrades] == [0, 0, 0]
    current = f"The database schema is current (migration {HEAD}).\n"
    upgraded = (
        f"The database schema was upgraded from {REVISIONS[-3]} to {HEAD} with 2 migrations.\n"
    )
    assert said == sorted([current, current, upgraded])


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_interrupted_index_is_created_again(old_app, fresh_database_url):
    upgrade(revision="0026")
    address = make_url(fresh_database_url).set(drivername="postgresql")
    with psycopg.connect(
        address.render_as_string(hide_password=False), autocommit=True
    ) as connection:
        connection.execute(filling_orders(2))
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute(
                "CREATE UNIQUE INDEX CONCURRENTLY ix_orders_guests_new ON orders (status)"
            )
        invalid = (
            "SELECT relname FROM pg_class JOIN pg_index ON oid = indexrelid WHERE NOT indisvalid"
        )
        assert connection.execute(invalid).fetchall() == [("ix_orders_guests_new",)]
        upgrade()
        assert connection.execute(invalid).fetchall() == []
        defined = "SELECT indexdef FROM pg_indexes WHERE indexname IN ('ix_orders_guests', 'ix_orders_guests_new')"
        ((index,),) = connection.execute(defined).fetchall()
    assert index.endswith("btree (created_at, id, customer_id) WHERE (customer_id IS NULL)")


class Interrupted(Exception):
    """Ends an upgrade as a signal does."""


@contextmanager
def interrupting(number):
    """Interrupt an upgrade before one of its transactions, counted from 1.

    Each is rolled back as a whole, so an interruption within it leaves what one before it leaves.
    """
    counted = count(1)

    def interrupt(connection, *_):
        status = connection.connection.driver_connection.info.transaction_status
        if status == TransactionStatus.IDLE and next(counted) == number:
            raise Interrupted

    event.listen(db.engine, "before_cursor_execute", interrupt)
    try:
        yield
    finally:
        event.remove(db.engine, "before_cursor_execute", interrupt)


def upgrade_with_interruptions(revision):
    """Migrate; each attempt is interrupted a transaction later than the one before."""
    for number in count(1):
        try:
            with interrupting(number):
                upgrade(revision=revision)
            break
        except Interrupted:
            pass
    assert number > 4


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_interrupted_upgrade_continues_where_it_stopped(old_app):
    """The last twenty migrations. Earlier ones do not change, and have passed this test."""
    assert_data_is_kept(CHECKED[-21:], upgrade_with_interruptions)
    assert readiness(old_app) == 200


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_upgrade_that_got_no_lock_says_so(old_app, fresh_database_url):
    upgrade()
    address = make_url(fresh_database_url).set(drivername="postgresql")
    with (
        psycopg.connect(address.render_as_string(hide_password=False)) as other,
        db.engine.connect() as connection,
    ):
        other.execute("LOCK TABLE orders")
        connection.execute(text("SET LOCAL lock_timeout = '10ms'"))
        with pytest.raises(DBAPIError) as caught:
            connection.execute(text("LOCK TABLE orders"))
    assert explain(caught.value).endswith(
        "cannot be used: canceling statement due to lock timeout. Other programs hold locks. Run the "
        "command again, if necessary at a quieter time."
    )


# --- writers during a migration ---

BLOCKING = {"ShareLock", "ShareRowExclusiveLock", "ExclusiveLock", "AccessExclusiveLock"}
"""The locks of tables that make writers wait."""

LOCKS = """
SELECT relation::regclass::text, mode FROM pg_locks JOIN pg_class ON pg_class.oid = relation
WHERE pid = %s AND relkind = 'r' AND relnamespace = 'public'::regnamespace
"""

DROPPED_KEYS = [("users", "orders"), ("users", "redemptions"), ("coupons", "redemptions")]
"""The target and the table of foreign keys that were dropped, which needs locks of both.

``test_migration_that_drops_a_foreign_key_gives_way_to_requests`` tests that this is safe.
"""


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_migrations_do_not_deadlock_with_requests(old_app, fresh_database_url):
    """A transaction of a migration takes its strongest lock of a table first, and locks one table.

    A request that waits for a lock of the migration keeps the locks that it has. Both wait for each
    other if the migration then needs a stronger lock, or one of another table that blocks reads.
    The second lock of a dropped foreign key is one that the migration soon gives up.
    """
    upgrade(revision=CHECKED[0])
    known, held, problems = {table.name for table in tables()}, {}, []
    address = make_url(fresh_database_url).set(drivername="postgresql")
    address = address.render_as_string(hide_password=False)

    def note(connection, _, statement, *__):
        """Compare the locks after a statement with those before it, in the same transaction."""
        process = connection.connection.driver_connection.info.backend_pid
        found = {}
        for table, mode in watcher.execute(LOCKS, [process]):
            if table in known and mode in BLOCKING:
                found.setdefault(table, set()).add(mode)
        before = held.get(process, {})
        is_stronger = any(found.get(table, modes) > modes for table, modes in before.items())
        blocks_reads = any("AccessExclusiveLock" in modes for modes in found.values())
        locks_another = len(found) > 1 and blocks_reads and found != before
        if locks_another and (*before, *(found.keys() - before)) in DROPPED_KEYS:
            limit = connection.connection.driver_connection.execute("SHOW lock_timeout").fetchone()
            locks_another = limit != (f"{SECOND_LOCK_MILLISECONDS}ms",)
        if is_stronger or locks_another:
            problems.append((revision, before, found, statement.strip()[:60]))
        held[process] = found

    event.listen(db.engine, "after_cursor_execute", note)
    try:
        with psycopg.connect(address, autocommit=True) as watcher:
            for revision in CHECKED[1:]:
                upgrade(revision=revision)
                known |= {table.name for table in tables()}
    finally:
        event.remove(db.engine, "after_cursor_execute", note)
    assert problems == []


WAITS = """
SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database
WHERE datname = current_database() AND relation = %s::regclass AND NOT granted
"""


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_migration_that_drops_a_foreign_key_gives_way_to_requests(old_app, fresh_database_url):
    """A request has one of the tables when the migration starts, and then needs the other."""
    upgrade(revision="0064")
    address = make_url(fresh_database_url).set(drivername="postgresql")
    address = address.render_as_string(hide_password=False)

    def migrate():
        with old_app.app_context():
            upgrade(revision="0065")

    for first, second in [*DROPPED_KEYS, *(pair[::-1] for pair in DROPPED_KEYS)]:
        with (
            ThreadPoolExecutor(1) as pool,
            psycopg.connect(address, autocommit=True) as watcher,
            psycopg.connect(address) as request,
        ):
            request.execute("SET deadlock_timeout = '400ms'")  # twice what the migration waits
            request.execute(f"SELECT FROM {first}")
            running = pool.submit(migrate)
            while not watcher.execute(WAITS, [first]).fetchall():
                assert not running.done()
                time.sleep(0.005)
            request.execute(f"SELECT FROM {second}")  # no DeadlockDetected
            request.commit()
            running.result()
        downgrade(revision="0064")


ROWS = 1_000_000
ROWS_OF = {"orders": ROWS, "redemptions": ROWS, "events": ROWS}
"""The tables that grow with the orders. The others have a tenth."""

WAIT = "1s"


LINES = json.dumps(
    [
        {"product_id": number, "quantity": number, "subtotal_tax": "1.00", "total_tax": "0.50"}
        for number in (1, 2, 3)
    ]
)


def filling_orders(rows):
    (table,) = [table for table in tables() if table.name == "orders"]
    return filling(table, rows)


def filling(table, rows):
    """A statement that fills a table; each key and each reference has the number of its row."""
    columns = [column for column in table.columns if column.computed is None]
    names = ", ".join(column.name for column in columns)
    values = ", ".join(generated(table, column) for column in columns)
    # Foreign keys, triggers and indexes that grow by row would take most of the time.
    mark = f"UPDATE pg_index SET indisready = {{}} WHERE indrelid = '{table.name}'::regclass"
    return (
        f"SET session_replication_role = replica; {mark.format('false')}; "
        f"INSERT INTO {table.name} ({names}) SELECT {values} FROM generate_series(1, {rows}) n; "
        f"{mark.format('true')}; REINDEX TABLE {table.name}; SET session_replication_role = origin"
    )


def generated(table, column):
    if isinstance(column.type, Integer):
        return "n"
    if column.name in {"status", "type", "permission", "role", "format", "state"}:
        return f"'{VALUES.get((table.name, column.name), column.name)}'"
    for kind, value in (
        (Boolean, "true"),
        (Numeric, "1"),
        (DateTime, "now() - n * interval '1 second'"),
        (Date, "date '2030-01-02'"),
        (LargeBinary, "'old'::bytea"),
    ):
        if isinstance(column.type, kind):
            return value
    if "JSON" in str(column.type):
        return f"'{LINES}'" if column.name == "line_items" else "'[]'"
    length = getattr(column.type, "length", None)
    return f"left(n || ' {column.name}', {length})" if length else f"n || ' {column.name}'"


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_writers_do_not_wait_for_migrations(old_app, fresh_database_url):
    """The last five migrations run with a million orders, writers and long reads.

    Earlier ones do not change, and have passed this test.
    """
    start = REVISIONS[-6]
    upgrade(revision=start)
    address = make_url(fresh_database_url).set(drivername="postgresql")
    address = address.render_as_string(hide_password=False)
    filled, written = set(), []

    def fill_new_tables():
        with psycopg.connect(address, autocommit=True) as connection:
            for table in tables():
                if table.name in filled:
                    continue
                for statement in filling(table, ROWS_OF.get(table.name, ROWS // 10)).split("; "):
                    connection.execute(statement)
                connection.execute(f"ANALYZE {table.name}")
                filled.add(table.name)
                if isinstance(getattr(table.columns.get("id"), "type", None), Integer):
                    written.append(table.name)

    fill_new_tables()
    assert {"orders", "coupons", "users", "redemptions", "events"} <= set(written)
    problems, done, writes = [], Event(), []

    def write(seed):
        random = Random(seed)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"SET lock_timeout = '{WAIT}'")
            while not done.is_set():
                table, number = random.choice(written), random.randrange(1, ROWS // 10)
                try:
                    with connection.transaction():
                        connection.execute(f"SELECT FROM {table} WHERE id = {number} FOR UPDATE")
                        time.sleep(0.005)
                        connection.execute(f"UPDATE {table} SET id = id WHERE id = {number}")
                    writes.append(table)
                except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
                    problems.append((revision, table, repr(error)))
                time.sleep(0.005)

    def read():
        """Hold the locks of reads for longer than a writer may wait, with pauses."""
        with psycopg.connect(address) as connection:
            while not done.wait(1.5):
                for table in written:
                    connection.execute(f"SELECT id FROM {table} LIMIT 1")
                done.wait(1.5)
                connection.rollback()

    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(write, 1), pool.submit(write, 2), pool.submit(read)]
        try:
            for revision in REVISIONS[REVISIONS.index(start) + 1 :]:
                upgrade(revision=revision)
                fill_new_tables()
        finally:
            done.set()
        for each in running:
            each.result()
    assert problems == []
    assert writes
    with db.engine.connect() as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) == HEAD
