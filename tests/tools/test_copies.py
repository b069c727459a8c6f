"""The large shop of the benchmark: what triggers maintain is what they would have written."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import func, select, table

from app.cli.demo.command import load_demo_shop
from app.db.read_pool import fetch
from app.models import COUPONS, ORDERS, USERS
from qa.bench.copies import COPIES, multiply
from tests.databases import close

PRESENT = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.mark.slow
def test_search_tables_contain_all_copies(make_app, migrated_database_url):
    app = make_app(DATABASE_URL=migrated_database_url)
    with app.app_context():
        load_demo_shop({"customers": 9, "coupons": 4, "orders": 9}, seed=1, present=PRESENT)
        (before,) = (dict(zip(TABLES, row, strict=True)) for row in fetch(numbers()))
        close(app)  # SQLite is filled without a journal, and without other connections
        multiply(migrated_database_url, PRESENT)
        (after,) = (dict(zip(TABLES, row, strict=True)) for row in fetch(numbers()))
    administrators = 1
    assert after["coupons"] == before["coupons"] * COPIES
    assert after["users"] == (before["users"] - administrators) * COPIES + administrators
    for searched in ("users", "coupons", "orders"):
        assert after[f"{searched}_search"] == after[searched]


TABLES = {each.name: each for each in (USERS, COUPONS, ORDERS)}
TABLES |= {f"{name}_search": table(f"{name}_search") for name in TABLES}


def numbers():
    """A select of the number of rows of each table."""
    return select(
        *(select(func.count()).select_from(each).scalar_subquery() for each in TABLES.values())
    )
