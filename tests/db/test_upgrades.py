"""Upgrades of old schemas, with data and under load."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from threading import Event

import pytest
from alembic.script import ScriptDirectory
from flask_migrate import upgrade
from sqlalchemy import (
    JSON,
    Boolean,
    Date,
    DateTime,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    select,
    text,
)

from app.auth.principals import Permission
from app.db.migrations import MIGRATIONS
from app.db.search import is_of_models
from app.db.session import db
from app.services.api_keys.writes import create_key
from app.services.maintenance import database_copy
from tests.api_client import Client

# SQLAlchemy cannot describe an index on an expression in SQLite; none is looked at here.
pytestmark = pytest.mark.filterwarnings("ignore:Skipped unsupported reflection:Warning")

REVISIONS = [script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()][::-1]
# The first one passes all migrations, and the last one the migration that was added last. What is
# in between is in test_each_migration_keeps_the_data_of_the_schema_before_it.
CASES = [REVISIONS[0], REVISIONS[-2]]
QUICK = {("sqlite", REVISIONS[0])}
TIMESTAMP = datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001  # what both databases give back, see stored()
# What a column's kind does not tell: its constraints.
VALUES = {
    ("coupons", "options"): {},
    ("coupons", "status"): "published",
    ("coupons", "type"): "percent",
    ("orders", "status"): "completed",
    ("api_keys", "permission"): "read",
    ("user_roles", "role"): "customer",
    ("users", "email"): "ada@example.com",
    ("redemptions", "status"): "reserved",
    ("webhooks", "status"): "active",
    ("webhooks", "format"): "standard",
    ("webhook_deliveries", "state"): "pending",
    ("users", "email_key"): "ada@example.com",
    ("users", "email_normalized"): "ada@example.com",
    # Another account than the one of the order, which would show no customer.
    ("erased_accounts", "customer_id"): 2,
}
# Names before and after migration 0011.
RENAMED_TABLES = {"kept_answers": "idempotency_records"}
RENAMED_COLUMNS = {
    ("users", "username_key"): "username_normalized",
    ("users", "email_key"): "email_normalized",
    ("users", "name_key"): "name_normalized",
    ("api_keys", "ending"): "truncated_key",
    ("oauth_nonces", "sent"): "timestamp",
    ("kept_answers", "answer"): "response_body",
}


def tables():
    """All tables but Alembic's own, those that triggers fill, and one that 0064 removes."""
    metadata = MetaData()
    others = {"alembic_version", "tallies", *database_copy.DERIVED}
    metadata.reflect(db.engine, only=lambda name, _: is_of_models(name) and name not in others)
    return metadata.sorted_tables


def value_for(table, column):
    """A value that a column accepts; every id is 1, so that foreign keys hold."""
    if (table.name, column.name) in VALUES:
        return VALUES[table.name, column.name]
    kinds = [
        (Boolean, True),
        (Integer, 1),
        (Numeric, 1),
        (DateTime, TIMESTAMP),
        (Date, date(2030, 1, 2)),
        (JSON, []),
        (LargeBinary, b"old"),
    ]
    for kind, value in kinds:
        if isinstance(column.type, kind):
            return value.replace(tzinfo=UTC) if getattr(column.type, "timezone", False) else value
    return f"{column.name} of old"


def fill(found):
    """Put a row into each table, whatever its columns are."""
    with db.engine.begin() as connection:
        for table in found:
            columns = [column for column in table.columns if column.computed is None]
            row = {column.name: value_for(table, column) for column in columns}
            connection.execute(table.insert().values(row))


def clear(found):
    """Delete the rows of each table."""
    with db.engine.begin() as connection:
        for table in reversed(found):
            connection.execute(table.delete())


def columns(found):
    """The names of the columns of each table."""
    return {table.name: [column.name for column in table.columns] for table in found}


def stored(names, found):
    """The rows of some columns of each table, by the names before migration 0011."""
    now, rows = {table.name: table for table in found}, {}
    with db.engine.connect() as connection:
        for name, keys in names.items():
            table = now[name if name in now else RENAMED_TABLES[name]]
            wanted = [key if key in table.c else RENAMED_COLUMNS[name, key] for key in keys]
            query = select(*[table.c[key] for key in wanted])
            rows[name] = [tuple(row) for row in connection.execute(query)]
    return rows


def assert_data_is_kept(revisions, migrate):
    """Migrate from each schema to the next one, with rows in all tables of the schema before it."""
    upgrade(revision=revisions[0])
    found = tables()
    for revision in revisions[1:]:
        fill(found)
        names = columns(found)
        before = stored(names, found)
        assert all(before.values())
        migrate(revision)
        found = tables()
        assert stored(names, found) == before, revision
        clear(found)


@pytest.mark.slow
@pytest.mark.both_databases
def test_each_migration_keeps_the_data_of_the_schema_before_it(old_app):
    assert_data_is_kept(REVISIONS, lambda revision: upgrade(revision=revision))


@pytest.mark.parametrize(
    ("database_url", "revision"),
    [
        pytest.param(url, each, marks=() if (url, each) in QUICK else pytest.mark.slow)
        for url in ("sqlite", "postgresql")
        for each in CASES
    ],
    indirect=["database_url"],
)
def test_data_is_kept_by_the_upgrade_from_an_old_schema(old_app, revision):
    upgrade(revision=revision)
    found = tables()
    fill(found)
    names = columns(found)
    before = stored(names, found)
    assert all(before.values())
    ready = old_app.test_client().get("/readyz").status_code
    assert ready == 503
    upgrade()
    assert old_app.test_client().get("/readyz").status_code == 200
    assert stored(names, tables()) == before
    key = create_key("somebody", "administrator", Permission.READ_WRITE, "")
    client = Client(old_app, key)
    assert [each["id"] for each in client.get("/coupons").get_json()["coupons"]] == [1]
    (customer,) = client.get("/customers").get_json()["customers"]
    assert (customer["email"], customer["orders_count"]) == ("ada@example.com", 1)
    assert client.get("/orders").get_json()["orders"][0]["customer"]["id"] == 1
    assert client.put("/coupons/1", {"coupon": {"amount": 7}}).status_code == 200
    assert client.post("/customers", {"customer": {"email": "new@example.com"}}).status_code == 201


@pytest.mark.slow
def test_requests_during_an_upgrade_get_responses(old_app):
    upgrade(revision=REVISIONS[0])
    fill(tables())
    done, seen = Event(), set()

    def ask():
        http = old_app.test_client()
        while not done.is_set():
            for path in ("/readyz", "/coupons", "/healthz"):
                seen.add(http.get(path, auth=("ck_x", "cs_x")).status_code)

    with ThreadPoolExecutor(2) as pool:
        asking = [pool.submit(ask) for _ in range(2)]
        try:
            upgrade()
        finally:
            done.set()
        for each in asking:
            each.result()
    assert 200 in seen
    assert seen <= {200, 401, 503}
    assert old_app.test_client().get("/readyz").status_code == 200


@pytest.mark.sample(1)
def test_service_is_ready_beside_a_newer_version(make_app, migrated_database_url):
    app = make_app(DATABASE_URL=migrated_database_url)
    with app.app_context(), db.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    assert app.test_client().get("/readyz").status_code == 200
