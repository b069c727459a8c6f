"""Migrations: from an empty database to the models and back, on both databases (decisions 11)."""

import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from flask_migrate import downgrade, revision, upgrade
from sqlalchemy import insert, inspect, select, text
from sqlalchemy.exc import IntegrityError

from app.auth.principals import Permission
from app.db.migrations import MIGRATIONS, migration_head, migration_numbers
from app.db.read_pool import fetch
from app.db.search import is_of_models
from app.db.session import db
from app.models import Order, Redemption, User, triggers
from app.services.api_keys.writes import create_key
from tests.api_client import Client
from tests.factories import ORDER, TIMESTAMP

pytestmark = [
    # SQLAlchemy cannot describe the indexes on expressions of earlier schemas in SQLite, nor can
    # Alembic compare those of the models that are for PostgreSQL only.
    pytest.mark.filterwarnings("ignore:Skipped unsupported reflection:Warning"),
    pytest.mark.filterwarnings("ignore:autogenerate skipping metadata-specified expression"),
    # Alembic cannot compare generated columns; they are compared below.
    pytest.mark.filterwarnings("ignore:Computed default on users"),
]

OPTIONS = {"compare_server_default": True, "include_name": is_of_models}

NOT_CURRENT = (
    503,
    {
        "errors": [
            {
                "code": "shop_api_unavailable",
                "message": "The database schema is not current. Run `shop-api db upgrade`. "
                "Try again shortly.",
            }
        ]
    },
)
CURRENT = (200, {"status": "ok"})


@pytest.fixture
def fresh_app(make_app, fresh_database_url):
    """An app on a database without any table."""
    app = make_app(DATABASE_URL=fresh_database_url)
    with app.app_context():
        yield app


@pytest.fixture
def migrated(make_app, migrated_database_url):
    """An app on a database that was migrated from nothing, in a process of this run."""
    app = make_app(DATABASE_URL=migrated_database_url)
    with app.app_context():
        yield app


def readiness(app):
    response = app.test_client().get("/readyz")
    return response.status_code, response.get_json()


def schema():
    """All tables of the database, but Alembic's own, as the database itself describes them."""
    found = inspect(db.engine)

    def by_name(rows):
        for row in rows:
            options = row.get("dialect_options", {})
            options.update({name: str(option) for name, option in options.items()})
        return sorted((sorted(map(repr, row.items())) for row in rows), key=str)

    return {
        name: {
            "columns": [
                (column["name"], str(column["type"]), column["nullable"], column["default"])
                for column in found.get_columns(name)
            ],
            "primary key": found.get_pk_constraint(name),
            "foreign keys": by_name(found.get_foreign_keys(name)),
            "unique": by_name(found.get_unique_constraints(name)),
            "checks": by_name(found.get_check_constraints(name)),
            "indexes": by_name(
                index for index in found.get_indexes(name) if is_of_models(index["name"])
            ),
        }
        for name in found.get_table_names()
        if name != "alembic_version" and is_of_models(name)
    }


@pytest.mark.both_databases
def test_generated_columns_are_those_of_the_models(migrated):
    wanted = {
        column.name: str(column.computed.sqltext)
        for column in User.__table__.columns
        if column.computed is not None
    }
    assert wanted
    with db.engine.connect() as connection:
        if db.engine.dialect.name == "sqlite":
            table = "SELECT sql FROM sqlite_master WHERE name = 'users'"
            generated = r"(\w+) VARCHAR NOT NULL GENERATED ALWAYS AS \((.*?)\) VIRTUAL"
            assert dict(re.findall(generated, connection.scalar(text(table)))) == wanted
            return
        columns = "SELECT column_name, generation_expression FROM information_schema.columns"
        rows = connection.execute(text(f"{columns} WHERE table_name = 'users'"))
        found = {name: made.replace("(", "").replace(")", "") for name, made in rows if made}
    assert found == {
        name: made.replace(",", "::text,", 1).replace("(", "").replace(")", "")
        for name, made in wanted.items()
    }


@pytest.mark.both_databases
def test_there_is_one_head_and_files_are_named_after_their_numbers():
    script = ScriptDirectory(str(MIGRATIONS))
    assert script.get_heads() == [migration_head()]
    assert len(script.get_bases()) == 1
    assert [each.revision for each in script.walk_revisions()] == migration_numbers()[::-1]


@pytest.mark.slow
def test_new_migration_gets_the_next_number(migrated, tmp_path, caplog):
    folder = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (last,) = ScriptDirectory(str(folder)).get_heads()
    known = {path.name for path in folder.glob("versions/*.py")}
    for number in ("0002", last, f"{int(last) + 2:04}", "later"):
        with pytest.raises(SystemExit):
            revision(str(folder), message="again", rev_id=number)
        assert f"The next migration has the number {int(last) + 1:04}, not {number}." in caplog.text
    assert {path.name for path in folder.glob("versions/*.py")} == known
    revision(str(folder), message="what changes")
    (added,) = {path.name for path in folder.glob("versions/*.py")} - known
    assert added == f"{int(last) + 1:04}_what_changes.py"
    assert f'down_revision = "{last}"' in (folder / "versions" / added).read_text().replace(
        "'", '"'
    )


@pytest.mark.slow
@pytest.mark.both_databases
def test_migrating_from_nothing_equals_the_models(migrated):
    with db.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=OPTIONS)
        assert compare_metadata(context, db.metadata) == []


@pytest.mark.slow
@pytest.mark.both_databases
def test_migrating_from_nothing_makes_what_the_models_make(migrated):
    # Autogenerate does not look at check constraints and the conditions of indexes.
    made = schema()
    downgrade(revision="base")
    assert catalogue() == set()
    db.create_all(bind_key=None)
    assert made == schema()
    assert made.keys() == db.metadata.tables.keys()


def catalogue():
    """Whatever else there is: triggers, functions, and the tables and indexes of searches."""
    statement = {
        "sqlite": "SELECT type, name FROM sqlite_master WHERE type = 'trigger'"
        " OR name LIKE '%\\_search%' ESCAPE '\\'",
        "postgresql": "SELECT 'trigger', tgname FROM pg_trigger WHERE NOT tgisinternal"
        " UNION SELECT 'function', proname FROM pg_proc"
        " WHERE proname LIKE 'count_rows%' OR proname LIKE '%\\_search'"
        " UNION SELECT 'table', tablename FROM pg_tables WHERE tablename LIKE '%\\_search'"
        " UNION SELECT 'index', indexname FROM pg_indexes WHERE indexname LIKE '%\\_search'",
    }[db.engine.dialect.name]
    with db.engine.connect() as connection:
        return {tuple(row) for row in connection.execute(text(statement))}


@pytest.mark.both_databases
def test_row_counts_and_searches_have_their_triggers(migrated):
    """A migration that recreates a table on SQLite drops its triggers and must create them again."""
    events = ("insert", "update", "delete")
    counted = ("users", "user_roles", "coupons", "orders", "redemptions")
    wanted = {("trigger", f"count_rows_{table}_{event}") for table in counted for event in events}
    on_sqlite = db.engine.dialect.name == "sqlite"
    searched = () if on_sqlite else ("users", "coupons", "orders")
    wanted |= {("trigger", f"{table}_search_{event}") for table in searched for event in events}
    wanted |= {("table", f"{table}_search") for table in searched}
    found = catalogue()
    assert wanted <= found
    assert (("table", "orders_search") in found) is not on_sqlite  # which has no full-text tables


TRIGGERS = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT tgname || ' ON ' || tgrelid::regclass, pg_get_triggerdef(oid)"
    " FROM pg_trigger WHERE NOT tgisinternal",
}
FUNCTIONS = """
SELECT oid::regprocedure::text, pg_get_functiondef(oid) FROM pg_proc
WHERE pronamespace = 'public'::regnamespace AND prolang = (
    SELECT oid FROM pg_language WHERE lanname = 'plpgsql'
)"""


def definitions(connection):
    """The triggers and functions of the database by name, and their definitions without blanks."""
    database = connection.dialect.name
    rows = connection.exec_driver_sql(TRIGGERS[database]).all()
    found = {("TRIGGER", reference): definition for reference, definition in rows}
    if database == "postgresql":
        rows = connection.exec_driver_sql(FUNCTIONS).all()
        found |= {("FUNCTION", reference): definition for reference, definition in rows}
    return {name: "".join(text.rstrip("; ").split()) for name, text in found.items()}


@pytest.mark.both_databases
def test_triggers_of_the_migrations_are_those_of_their_file(migrated):
    with db.engine.begin() as connection:
        made = definitions(connection)
        for kind, reference in made:  # triggers come first, because they need the functions
            connection.exec_driver_sql(f"DROP {kind} {reference}")
        assert definitions(connection) == {}
        for _ in range(2):  # the second time, it replaces them
            triggers.recreate(connection)
            assert definitions(connection) == made
    assert len(made) == {"sqlite": 23, "postgresql": 47}[db.engine.dialect.name]


@pytest.mark.both_databases
def test_at_most_one_migration_loads_the_triggers():
    """An earlier one contains the text that it loaded, so that its effect stays the same."""
    texts = (path.read_text() for path in Path(MIGRATIONS, "versions").glob("*.py"))
    assert sum("triggers.recreate(" in text for text in texts) <= 1


@pytest.mark.slow
@pytest.mark.both_databases
def test_order_keys_become_unique(fresh_app):
    """The first of several orders keeps the key; also where the new key of another one is taken."""
    upgrade(revision="0008")
    keys = ["a", "a", "b", "a", "a-2"]
    rows = [ORDER | {"order_key": key} for key in keys]
    with db.engine.begin() as connection:
        connection.execute(insert(Order), rows)
    upgrade()
    with db.engine.connect() as connection:
        found = connection.scalars(select(Order.order_key).order_by(Order.id)).all()
    assert found == ["a", "a-2", "b", "a-4", "a-2-5"]
    with db.engine.connect() as connection, pytest.raises(IntegrityError):
        connection.execute(insert(Order), rows[:1])


@pytest.mark.slow
@pytest.mark.both_databases
def test_orders_from_before_get_their_figures_and_confirmations_their_time(fresh_app):
    upgrade(revision="0030")
    lines = [
        {"id": 1, "quantity": 2, "subtotal_tax": "1.50", "total_tax": "1.00"},
        {"id": 2, "quantity": 3, "subtotal_tax": "0.10", "total_tax": "0.10"},
    ]
    fees = [{"id": 3, "total": "-0.50", "total_tax": "0.00"}, {"id": 4, "total": "1.25"}]
    rows = [
        ORDER | {"order_key": "a", "line_items": lines, "fee_lines": fees},
        ORDER | {"order_key": "b", "line_items": [], "fee_lines": []},
    ]
    use = {
        "code": "x", "reference": "cart", "email": "", "email_normalized": "", "holds_slot": False,
        "created_at": TIMESTAMP, "updated_at": TIMESTAMP,
    }  # fmt: skip
    uses = [use | {"status": status} for status in ("confirmed", "released")]
    with db.engine.begin() as connection:
        connection.execute(insert(Order), rows)
        connection.execute(insert(Redemption), uses)
    upgrade()
    with db.engine.connect() as connection:
        figures = select(Order.items, Order.fees, Order.discount_tax).order_by(Order.id)
        assert connection.execute(figures).all() == [
            (5, Decimal("0.75"), Decimal("0.50")),
            (0, Decimal(0), Decimal(0)),
        ]
        times = select(Redemption.confirmed_at).order_by(Redemption.id)
        assert connection.scalars(times).all() == [TIMESTAMP, None]


@pytest.mark.slow
@pytest.mark.both_databases
def test_up_and_down_and_up_again(fresh_app):
    assert readiness(fresh_app) == NOT_CURRENT  # no table at all
    upgrade()
    first = schema()
    assert readiness(fresh_app) == CURRENT
    upgrade()
    assert schema() == first
    downgrade(revision="base")
    assert (schema(), catalogue()) == ({}, set())
    assert readiness(fresh_app) == NOT_CURRENT
    upgrade()
    assert schema() == first
    assert readiness(fresh_app) == CURRENT


@pytest.mark.parametrize("version", ["0000", "zzzz"])
def test_readyz_with_another_version_of_the_schema_is_503(migrated, version):
    assert readiness(migrated) == CURRENT
    with db.engine.begin() as connection:
        connection.execute(text(f"UPDATE alembic_version SET version_num = '{version}'"))
    assert readiness(migrated) == NOT_CURRENT


@pytest.mark.both_databases
def test_readyz_with_an_old_schema_has_retry_after(fresh_app):
    headers = fresh_app.test_client().get("/readyz").headers
    assert (headers["Retry-After"], headers["Content-Type"]) == ("5", "application/json")


@pytest.mark.both_databases
def test_request_on_a_schema_that_is_behind_is_503(fresh_app):
    client = fresh_app.test_client()
    answer = client.get("/coupons", auth=("ck_unknown", "cs_unknown"))
    assert (answer.status_code, answer.get_json()) == NOT_CURRENT
    assert answer.headers["Retry-After"] == "5"


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "url", ["sqlite:////no/such/folder/shop.db", "postgresql://nobody@127.0.0.1:1/shop"]
)
def test_readyz_without_a_database_is_503(make_app, url):
    client = make_app(DATABASE_URL=url).test_client()
    response = client.get("/readyz")
    assert (response.status_code, response.get_json()) == (
        503,
        {
            "errors": [
                {
                    "code": "shop_api_unavailable",
                    "message": "The database cannot be reached. Try again shortly.",
                }
            ]
        },
    )
    assert response.headers["Retry-After"] == "5"
    assert client.get("/healthz").get_json() == {"status": "ok"}


@pytest.mark.both_databases
def test_statement_on_a_changed_schema_gets_503(migrated):
    """The migration was committed after the statement failed, so the schema is current."""
    with migrated.app_context():
        key = create_key("erp", "administrator", Permission.READ_WRITE, "")
    with db.engine.begin() as connection:
        connection.execute(text("ALTER TABLE coupons RENAME COLUMN description TO another"))
    response = Client(migrated, key).get("/coupons/1")
    assert (response.status_code, response.get_json()) == NOT_CURRENT
    assert response.headers["Retry-After"]


@pytest.mark.slow
@pytest.mark.both_databases
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_migration_does_not_block_a_transaction_that_holds_a_lock(fresh_app):
    """Requests do not wait behind a migration that waits (operations.md, Rolling upgrades)."""
    upgrade(revision="0017")
    with ThreadPoolExecutor(1) as pool, db.engine.connect() as other:
        other.execute(text("LOCK TABLE coupons, users IN ACCESS SHARE MODE"))
        migrating = pool.submit(in_app, fresh_app, upgrade)
        time.sleep(4)  # longer than the migration waits for a lock
        assert not migrating.done()
        with db.engine.connect() as third:
            third.execute(text("SET LOCAL statement_timeout = '3s'"))
            for _ in range(3):
                third.execute(text("SELECT count(*) FROM users"))
        other.rollback()
        migrating.result(timeout=600)
    assert readiness(fresh_app) == CURRENT


def in_app(app, function):
    with app.app_context():
        function()


@pytest.mark.both_databases
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_tables_that_are_updated_often_are_vacuumed_early(app):
    statement = text(
        "SELECT relname FROM pg_class WHERE 'autovacuum_vacuum_scale_factor=0.02' = ANY(reloptions)"
    )
    with app.app_context():
        found = sorted(row[0] for row in fetch(statement))
    assert found == [
        "coupons",
        "coupons_search",
        "customer_totals",
        "events",
        "order_products",
        "order_refunds",
        "order_sums",
        "orders",
        "orders_search",
        "redemptions",
        "user_roles",
        "users",
        "users_search",
        "webhook_deliveries",
    ]
