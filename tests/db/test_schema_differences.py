"""Databases whose tables do not belong to their migration, as after a restore over a newer schema."""

import shutil
import subprocess

import pytest
from flask_migrate import upgrade
from sqlalchemy import inspect, text

from app.db.migrations import first_migrations, migration_head, migration_numbers
from app.db.session import db, run_in_transaction
from qa.cluster import programs
from qa.cluster.postgresql import PostgreSQL
from tests.databases import close

BEFORE = "0034"  # before order_sums


def run(app, *arguments):
    result = app.test_cli_runner().invoke(args=arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def execute(app, statement):
    with app.app_context():
        run_in_transaction(lambda session: session.execute(text(statement)))


@pytest.fixture
def migrated(make_app, migrated_database_url):
    return make_app(DATABASE_URL=migrated_database_url)


@pytest.mark.slow
def test_first_migration_that_names_a_table_creates_it(old_app):
    tables = db.metadatas[None].tables
    found = {}
    for number in migration_numbers():
        upgrade(revision=number)
        with db.engine.connect() as connection:
            for name in tables.keys() & set(inspect(connection).get_table_names()):
                found.setdefault(name, number)
    assert first_migrations(tables) == found


def test_database_with_later_tables_is_not_upgraded(migrated):
    execute(migrated, f"UPDATE alembic_version SET version_num = '{BEFORE}'")
    result = run(migrated, "db", "upgrade")
    assert result.exit_code == 1
    expected = f"The database has migration {BEFORE}, but tables of later migrations: "
    assert expected in result.stderr
    assert "customer_totals" in result.stderr
    assert "Restore it into an empty database" in result.stderr
    assert "FAIL   tables: of later migrations than the database has run: " in (
        run(migrated, "doctor").stdout
    )


def test_doctor_names_missing_and_unknown_tables(migrated):
    execute(migrated, "DROP TABLE import_parts")
    execute(migrated, "ALTER TABLE order_notes DROP COLUMN author")
    execute(migrated, "CREATE TABLE of_another_version (id integer)")
    result = run(migrated, "doctor")
    assert result.exit_code == 1
    assert (
        "FAIL   tables: missing from the schema: import_parts, order_notes.author\n"
        in result.stdout
    )
    assert "warn   tables: unknown to this version: of_another_version\n" in result.stdout


def test_doctor_and_upgrade_accept_a_current_database(migrated):
    assert "tables" not in run(migrated, "doctor").stdout
    result = run(migrated, "db", "upgrade")
    assert (result.exit_code, migration_head() in result.stdout) == (0, True)


@pytest.fixture
def server():
    """A PostgreSQL server whose dumps the installed programs can make."""
    if reason := programs.missing("postgres"):
        pytest.skip(reason)
    folder = programs.new_folder()
    started = PostgreSQL(folder, "server")
    started.create()
    yield started
    started.close()
    shutil.rmtree(folder)


def dump_or_restore(program, *arguments):
    """Run a program of PostgreSQL and return its exit status."""
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, check=False)
    return done.returncode


@pytest.mark.slow
@pytest.mark.one_database
def test_dump_from_before_an_upgrade(make_app, server, tmp_path):
    """The commands of docs/going-back.md, and the command that it warns of."""
    url, dump = server.url(), tmp_path / "shop.dump"
    app = make_app(DATABASE_URL=url)
    with app.app_context():
        upgrade(revision=BEFORE)
    assert dump_or_restore("pg_dump", "--format=custom", f"--file={dump}", url) == 0
    with app.app_context():
        upgrade()
    close(app)
    over = ("--clean", "--if-exists", f"--dbname={url}", dump)
    whole = ("--single-transaction", "--exit-on-error")
    assert dump_or_restore("pg_restore", *whole, *over) == 1
    assert "tables" not in run(app, "doctor").stdout  # nothing was changed
    close(app)
    assert dump_or_restore("pg_restore", *over) == 1
    assert "tables of later migrations" in run(app, "db", "upgrade").stderr
    close(app)
    server.query("CREATE DATABASE shop_restored OWNER shop")
    empty = server.url(database="shop_restored")
    options = (*whole, "--no-owner", "--no-comments", f"--dbname={empty}")
    assert dump_or_restore("pg_restore", *options, dump) == 0
    server.query("ALTER DATABASE shop RENAME TO shop_newer")
    server.query("ALTER DATABASE shop_restored RENAME TO shop")
    assert run(app, "db", "current").stdout.startswith(f"{BEFORE} (old;")
    assert run(app, "db", "upgrade").exit_code == 0
    assert "tables" not in run(app, "doctor").stdout
