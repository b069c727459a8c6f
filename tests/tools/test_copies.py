"""The large shop of the benchmark: what triggers maintain is what they would have written."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import func, inspect, select, table

from app.db.read_pool import fetch
from app.db.session import db
from app.services.maintenance.demo.loading import load_demo_shop
from qa.bench.copies import COPIES, multiply
from tests.databases import close

PRESENT = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.mark.slow
@pytest.mark.both_databases
def test_search_tables_contain_all_copies(make_app, migrated_database_url):
    app = make_app(DATABASE_URL=migrated_database_url)
    with app.app_context():
        load_demo_shop({"customers": 9, "coupons": 4, "orders": 9}, seed=1, present=PRESENT)
        before = numbers()
        close(app)  # SQLite is filled without a journal, and without other connections
        multiply(migrated_database_url, PRESENT)
        after = numbers()
    administrators = 1
    assert after["coupons"] == before["coupons"] * COPIES
    assert after["users"] == (before["users"] - administrators) * COPIES + administrators
    if "orders_search" in after:  # on PostgreSQL
        assert all(
            after[f"{name}_search"] == after[name] for name in ("users", "coupons", "orders")
        )


def numbers():
    """Return the number of rows of each table, of the tables of searches as well."""
    names = inspect(db.engine).get_table_names()
    return {name: fetch(select(func.count()).select_from(table(name)))[0][0] for name in names}
