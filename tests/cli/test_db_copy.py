"""``shop-api db copy``: copy a complete shop between databases."""

import re
import tracemalloc
import uuid
import zlib
from datetime import UTC, date, datetime
from decimal import Decimal

import psycopg
import pytest
from sqlalchemy import CheckConstraint, func, insert, inspect, make_url, select, text

from app import create_app
from app.auth.principals import Permission
from app.db.search import is_of_models
from app.db.session import db, run_in_transaction
from app.db.sql.types import JsonText, MoneySum, OptionalMoney
from app.models import RowCount
from app.services.api_keys.rights import Rights
from app.services.api_keys.writes import create_key
from app.services.maintenance import database_copy, order_sums
from tests.api_client import Client
from tests.commands import run, succeed
from tests.databases import SECRET, close
from tests.schemas import create_tables

pytestmark = pytest.mark.both_databases

TIMESTAMP = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
VALUES = {
    int: 1, str: "x\u00fc\U0001f600\n", bool: False, datetime: TIMESTAMP, date: TIMESTAMP.date(),
    bytes: zlib.compress(b"\0\xff"), Decimal: Decimal("1.50"), object: [{"b": 1, "a": [None]}],
}  # fmt: skip

EVERY_FIELD = {
    "code": "every-field", "type": "buy_x_get_y", "amount": "50", "active": False,
    "starts_at": "2030-12-01T10:30:00Z", "campaign_id": 1, "tags": ["a", "b"],
    "combines_with": ["-b"], "customer_tags": ["role:wholesale"], "first_order_only": True,
    "maximum_discount": "9.50", "buy_quantity": 2, "get_quantity": 1, "get_product_ids": [7],
}  # fmt: skip


@pytest.fixture
def postgresql_url(postgresql_server):
    """The URL of an empty PostgreSQL database."""
    server = make_url(postgresql_server).set(drivername="postgresql")
    name = f"shop_copy_{uuid.uuid4().hex[:12]}"
    address = server.render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    yield server.set(database=name).render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(params=["sqlite to postgresql", "postgresql to sqlite"])
def urls(request, postgresql_url, tmp_path):
    """The URLs of two empty databases, from and to."""
    urls = {"postgresql": postgresql_url, "sqlite": f"sqlite:///{tmp_path}/copied.db"}
    return [urls[name] for name in request.param.split(" to ")]


@pytest.fixture
def make_shop(tmp_path):
    """Return a function: an app on a database, with its schema."""
    made = []

    def make(url, *, schema=True):
        settings = {
            "DATABASE_URL": url,
            "SECRET_KEY": SECRET,
            "INSTANCE_PATH": str(tmp_path / "instance"),
            "SHOP_SLOW_REQUEST_SECONDS": 0,
        }
        if schema:
            # A relative path is in the instance folder.
            create_tables(re.sub("^sqlite:///(?!/)", f"sqlite:///{tmp_path}/instance/", url))
        made.append(create_app(settings))
        return made[-1]

    (tmp_path / "instance").mkdir()
    yield make
    for app in made:
        close(app)


def fill(app):
    """Load a demo shop, put a row into each table that has none, and delete the newest records."""
    succeed(app, "demo", "--customers", 40, "--coupons", 20, "--orders", 120)
    with app.app_context():
        rights = Rights(
            Permission.READ_WRITE, frozenset({"coupons"}), datetime(2099, 1, 1, tzinfo=UTC)
        )
        limited = create_key("erp", "shop_manager", Permission.READ_WRITE, "", rights=rights)
        key = create_key("owner", "administrator", Permission.READ_WRITE, "owner")
        run_in_transaction(fill_empty_tables)
    client = Client(app, key)
    assert client.post("/coupons", {"coupon": EVERY_FIELD}).status_code == 201
    newest = {
        "coupons": {"coupon": {"code": "newest"}},
        "customers": {"customer": {"email": "newest@x.example"}},
        "orders": {"order": {}},
    }
    for name, body in newest.items():
        new = client.post(f"/{name}", body).get_json()[next(iter(body))]["id"]
        assert client.delete(f"/{name}/{new}?force=true").status_code == 200
    return client, limited


def fill_empty_tables(session):
    """Put a row into each table without rows, with a value in each column."""
    for table in db.metadata.sorted_tables:
        if session.scalar(select(func.count()).select_from(table)) == 0:
            session.execute(insert(table), [synthetic_row(session, table)])


def synthetic_row(session, table):
    allowed = dict(
        re.match(r"(\w+) IN \('(\w+)'", str(check.sqltext)).groups()
        for check in table.constraints
        if isinstance(check, CheckConstraint) and " IN (" in str(check.sqltext)
    )
    row = {}
    for column in table.columns:
        kind = getattr(column.type, "impl_instance", column.type).python_type
        if column.computed is not None:
            continue
        if column.foreign_keys:
            (foreign,) = column.foreign_keys
            row[column.name] = session.scalar(select(foreign.column).limit(1))
        elif isinstance(column.type, MoneySum | OptionalMoney):
            row[column.name] = Decimal("1.00")
        elif isinstance(column.type, JsonText):
            row[column.name] = '{"b":1,"a":[]}'
        else:
            row[column.name] = allowed.get(column.name, VALUES[kind])
    return row


def rows_of(app, table):
    """All rows of a table, as Python values in the order of its key."""
    table = db.metadata.tables[table]
    with app.app_context(), db.engine.connect() as connection:
        rows = connection.execute(select(table).order_by(*table.primary_key.columns)).all()
    return [tuple(row) for row in rows]


def counts_of(app):
    """The sums of the row counts, which triggers keep."""
    sums = {}
    for name, partition, week, _, number in rows_of(app, RowCount.__tablename__):
        sums[name, partition, week] = sums.get((name, partition, week), 0) + number
    return {key: number for key, number in sums.items() if number}


@pytest.mark.sample(1)
def test_shop_is_copied_completely_and_its_keys_work(urls, make_shop):
    source, target = make_shop(urls[0]), make_shop(urls[1])
    client, limited = fill(source)
    used = rows_of(source, "api_keys")
    succeed(target, "db", "upgrade")  # which a new database needs
    result = succeed(target, "db", "copy", urls[0])
    with target.app_context():
        assert not inspect(db.engine).has_table("sqlite_stat1"), "statistics mislead reports"
    tables = [table.name for table in db.metadata.sorted_tables]
    for table in tables:
        # An erasure removes the files of the previous version.
        if table not in {*database_copy.DERIVED, "uploads"}:
            rows = rows_of(source, table)
            assert rows, f"nothing shows that {table} is copied"
            assert rows_of(target, table) == rows
            assert re.search(
                rf"^{table} +{len(rows):,} of {len(rows):,} rows$", result.stderr, re.M
            )
    assert counts_of(target) == counts_of(source)
    for each in (source, target):
        with each.app_context():
            assert order_sums.count_wrong_sums() == 0
    assert used == rows_of(target, "api_keys")

    # The keys, the search and the totals work, and the limits are the same.
    moved = Client(target, client.key)
    for path in (
        "/customers?filter%5Bq%5D=a&fields=id,email,orders_count,total_spent",
        "/orders?filter%5Bq%5D=a&fields=id,total,customer",
        "/coupons?filter%5Bq%5D=demo",
        "/customers/count",
        "/orders?filter%5Blimit%5D=-1",
    ):
        here, there = client.get(path), moved.get(path)
        assert there.status_code == 200
        assert there.get_json() == here.get_json()
        assert there.headers.get("X-Total") == here.headers.get("X-Total")
    for app in (source, target):
        assert Client(app, limited).get("/coupons").status_code == 200
        assert Client(app, limited).get("/customers").status_code == 401

    # IDs continue behind those of deleted records.
    for name, body in {
        "coupons": {"coupon": {"code": "next"}},
        "customers": {"customer": {"email": "next@example.com"}},
        "orders": {"order": {}},
        "keys": {"key": {}},
    }.items():
        key = next(iter(body))
        new = [each.post(f"/{name}", body).get_json()[key]["id"] for each in (client, moved)]
        assert new[0] == new[1], name


def test_every_table_of_the_database_is_one_of_the_models(session_app):
    """A table outside of the models would not be copied."""
    with session_app.app_context():
        found = {name for name in inspect(db.engine).get_table_names() if is_of_models(name)}
        assert found - {"alembic_version"} == set(db.metadata.tables)
        copied = {table.name for table in database_copy.tables()}
        assert copied | database_copy.DERIVED == set(db.metadata.tables)


@pytest.mark.sample(1)
def test_target_with_data_is_rejected(urls, make_shop):
    source, target = make_shop(urls[0]), make_shop(urls[1])
    for app in (source, target):
        with app.app_context():
            create_key("admin", "administrator", Permission.READ, "")
    before = rows_of(target, "api_keys")
    result = run(target, "db", "copy", urls[0])
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: The target database contains data (table ")
    assert rows_of(target, "api_keys") == before


@pytest.mark.sample(1)
def test_schema_must_be_current(urls, make_shop):
    source, target = make_shop(urls[0]), make_shop(urls[1], schema=False)
    which = "Error: The schema of the {} database is not current. Run `shop-api db upgrade`"
    result = run(target, "db", "copy", urls[0])
    assert (result.exit_code, result.stderr.startswith(which.format("target"))) == (1, True)
    with source.app_context(), db.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0015'"))
    result = run(target, "db", "copy", urls[0])
    assert (result.exit_code, result.stderr.startswith(which.format("source"))) == (1, True)
    with source.app_context(), db.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    result = run(target, "db", "copy", urls[0])
    newer = "Error: The schema of the source database belongs to a newer version of the service."
    assert (result.exit_code, result.stderr.startswith(newer)) == (1, True)


@pytest.mark.sample(1)
def test_failed_copy_leaves_the_target_empty(urls, make_shop, monkeypatch):
    source, target = make_shop(urls[0]), make_shop(urls[1])
    with source.app_context():
        create_key("admin", "administrator", Permission.READ, "")

    def count_wrong(connection, table):
        return -1

    monkeypatch.setattr(database_copy, "_count", count_wrong)
    result = run(target, "db", "copy", urls[0])
    assert (result.exit_code, "was not copied completely" in result.stderr) == (1, True)
    for table in ("users", "api_keys", "row_counts"):
        assert rows_of(target, table) == []


@pytest.mark.slow
def test_changes_during_the_copy_are_not_half_copied(urls, make_shop, monkeypatch):
    """An order that is added after the first table has been read is not part of the copy."""
    source, target = make_shop(urls[0]), make_shop(urls[1])
    client, _ = fill(source)
    before = {name: rows_of(source, name) for name in ("users", "orders", "redemptions")}
    added = []

    def add_order(*arguments):
        if not added:
            added.append(client.post("/orders", {"order": {"note": "late"}}).get_json())
            added.append(client.post("/customers", {"customer": {"email": "l@x.example"}}))
        insert_rows(*arguments)

    insert_rows = database_copy.insert_many
    monkeypatch.setattr(database_copy, "insert_many", add_order)
    succeed(target, "db", "copy", urls[0])
    assert added[0]["order"]["note"] == "late"
    assert added[1].status_code == 201
    assert {name: rows_of(target, name) for name in before} == before


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("mysql://x", "Must be a sqlite: or postgresql: URL."),
        ("nonsense", "Not a valid database URL. Example: postgresql://"),
        ("postgresql://shop:secret@123@127.0.0.1:1/shop", "Percent-encode special characters"),
        ("sqlite:///missing.db", "missing.db does not exist."),
        ("{own}", "is also the target."),
    ],
)
def test_wrong_source_is_rejected(make_shop, tmp_path, given, message):
    own = f"sqlite:///{tmp_path}/own.db"
    result = run(make_shop(own), "db", "copy", given.format(own=own))
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "instance" / "missing.db").exists()


@pytest.mark.slow
def test_source_that_is_unreachable_is_reported_in_one_line(make_shop, tmp_path):
    url = "postgres://shop:secret@127.0.0.1:1/shop"
    result = run(make_shop(f"sqlite:///{tmp_path}/own.db"), "db", "copy", url)
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(
        "Error: The source postgresql://shop:***@127.0.0.1:1/shop cannot be used"
    )
    assert "secret" not in line


def test_source_that_is_no_database_is_reported_as_the_source(make_shop, tmp_path):
    (tmp_path / "passwd").write_text("root:x:0:0:root:/root:/bin/bash\n" * 100)
    url = f"sqlite:///{tmp_path}/passwd"
    result = run(make_shop(f"sqlite:///{tmp_path}/own.db"), "db", "copy", url)
    assert (result.exit_code, result.stderr) == (
        1,
        (
            f"Error: The source {url} cannot be used: file is not a database. Check that "
            "SOURCE_URL is correct and the file is readable.\n"
        ),
    )


@pytest.mark.slow
def test_relative_source_is_in_the_instance_folder(make_shop, tmp_path):
    source = make_shop("sqlite:///shop.db")
    with source.app_context():
        create_key("admin", "administrator", Permission.READ, "")
    result = succeed(make_shop(f"sqlite:///{tmp_path}/new.db"), "db", "copy", "sqlite:///shop.db")
    assert result.stdout == "5 rows of 4 tables were copied. API keys remain valid.\n"


@pytest.mark.slow
def test_memory_does_not_grow_with_the_shop(make_shop, tmp_path):
    peaks = []
    for number, customers in enumerate((2000, 10_000)):
        url = f"sqlite:///{tmp_path}/{number}.db"
        source, target = make_shop(url), make_shop(f"sqlite:///{tmp_path}/{number}-copy.db")
        options = ["--coupons", 0, "--orders", 0]
        succeed(source, "demo", "--customers", customers, *options)
        tracemalloc.start()
        succeed(target, "db", "copy", url)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] * 1.2
