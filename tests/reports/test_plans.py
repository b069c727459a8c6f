"""Reports read the indexes that were made for them, on SQLite with statistics and without."""

import re
from collections import defaultdict
from datetime import timedelta

import pytest
from sqlalchemy import event, insert, text

from app.db.session import db, run_in_transaction
from app.models import ORDERS
from tests.reports.shops import email_of, random_shop, utc

pytestmark = pytest.mark.both_databases

PERIOD = {"filter[from]": "2026-10-20", "filter[to]": "2026-11-10"}
LEGACY = {"filter[date_min]": "2026-10-20", "filter[date_max]": "2026-11-10"}
PATHS = {
    "/reports/sales": PERIOD,
    "/reports/coupons": PERIOD,
    "/reports/coupons/1000": PERIOD,
    "/reports/customers": PERIOD,
    "/reports/orders": PERIOD,
    "/wc-api/v3/reports/sales": LEGACY,
    "/wc-api/v3/reports/sales/top_sellers": LEGACY,
}
TABLES = "orders|others|order_refunds|redemptions|users"
INDEXES = {
    "orders": {
        "ix_orders_report_sqlite (currency=? AND status=? AND created_at>? AND created_at<?)",
        "ix_orders_report_sqlite (currency=? AND status=?)",  # for refunds by customer
        "ix_orders_report_sqlite (currency<?)",  # other currencies
        "ix_orders_report_sqlite (currency>?)",
        "ix_orders_status_created (status=? AND created_at>? AND created_at<?)",  # top sellers
        "INTEGER PRIMARY KEY (rowid=?)",
        "ix_orders_id (id=?)",
        "ix_orders_id (id=? AND status=?)",
        "ix_orders_id (id=? AND status=? AND created_at>? AND created_at<?)",
        "ix_orders_guest_email_sqlite (billing_email=?)",
        "ix_orders_guest_normalized (billing_email_normalized=?)",
    },
    "others": {
        "ix_orders_guest_email_sqlite (billing_email=? AND created_at<?)",
        "ix_orders_customer_created (customer_id=? AND created_at<?)",
        "ix_orders_guest_normalized (billing_email_normalized=? AND created_at<?)",
    },
    "order_refunds": {
        "ix_order_refunds_order (order_id=?)",
        "ix_order_refunds_report (created_at>? AND created_at<?)",
        "ix_order_refunds_created (created_at>? AND created_at<?)",
    },
    "redemptions": {
        "ix_redemptions_report (confirmed_at>? AND confirmed_at<?)",
        "ix_redemptions_slots (coupon_id=? AND status=?)",
        "SCAN USING COVERING INDEX ix_redemptions_order_confirmed",  # if there are few
        "ix_redemptions_order_confirmed (order_id>?)",  # if there are few
        "ix_redemptions_order_confirmed (order_id=?)",
        "ix_redemptions_order_confirmed (order_id=? AND coupon_id=?)",
    },
    "users": {"ix_users_created (created_at>? AND created_at<?)", "INTEGER PRIMARY KEY (rowid=?)"},
}


@pytest.fixture
def statistics(app):
    """Let SQLite gather statistics about the shop, of which nothing is left afterwards."""

    def analyze(*statements):
        with app.app_context(), db.engine.begin() as connection:
            for statement in statements:
                connection.execute(text(statement))
        with app.app_context():
            for engine in db.engines.values():
                engine.dispose()

    yield lambda: analyze("ANALYZE")
    analyze("DELETE FROM sqlite_stat1", "ANALYZE sqlite_schema")


@pytest.fixture
def searches(app, admin):
    """Return a function: send a request, and return how each large table is searched."""

    def explain(path, query):
        seen = []

        def note(connection, cursor, statement, parameters, context, executemany):
            if re.match(r"SELECT .*\b(orders|redemptions)\b", statement, re.DOTALL):
                seen.append((statement, parameters))

        with app.app_context():
            engine = db.engines["read"]
            event.listen(engine, "before_cursor_execute", note)
            try:
                assert admin.get(path, query).status_code == 200
            finally:
                event.remove(engine, "before_cursor_execute", note)
            found = defaultdict(set)
            with engine.connect() as connection:
                for statement, parameters in seen:
                    rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
                    for *_, step in rows:
                        if words := re.match(rf"(SCAN|SEARCH) ({TABLES})\b(.*)", step):
                            found[words[2]].add(f"{words[1]}{words[3]}")
        return found

    return explain


@pytest.mark.sample(2)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("guests", "email"),
    [
        pytest.param(0, "", id="few guests"),
        pytest.param(3000, "ada@example.com", id="many guests", marks=pytest.mark.slow),
        pytest.param(3000, "é@example.com", id="international guests"),
    ],
)
def test_statistics_do_not_change_the_indexes(app, searches, statistics, path, guests, email):
    """A shop that has them read all orders for each order of a report."""
    # Where all orders have one currency, no statement looks at that of each.
    currencies = ("USD", "EUR") if path == "/reports/sales" else ("USD",)
    shop = random_shop(app, "plans", utc("2026-11-01"), orders=300, currencies=currencies)
    guest = {"customer_id": None, "status": "completed", **email_of(email)}
    same = [
        shop.orders[0] | guest | {"id": 10_000 + number, "order_key": f"guest_{number}"}
        for number in range(guests)
    ]
    with app.app_context():
        if same:
            run_in_transaction(lambda session: session.execute(insert(ORDERS), same))
    for gather in (lambda: None, statistics):
        gather()
        found = {
            (table, re.sub(r"SEARCH USING (COVERING )?(INDEX )?| LEFT-JOIN", "", step))
            for table, steps in searches(path, PATHS[path]).items()
            for step in steps
        }
        assert {each for each in found if each[1] not in INDEXES[each[0]]} == set()


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize(
    ("path", "indexes", "without"),
    [
        (
            "/reports/sales",
            {"ix_orders_report_postgresql", "ix_redemptions_report", "ix_order_refunds_report",
             "ix_users_created"},
            (),
        ),
        # As if there were more customers than a hash has room for.
        ("/reports/customers", {"ix_orders_customer_created"}, ("hashagg", "sort")),
        pytest.param("/reports/coupons", {"ix_redemptions_report"}, (), marks=pytest.mark.slow),
        pytest.param(
            "/reports/orders", {"ix_orders_report_postgresql"}, (), marks=pytest.mark.slow
        ),
    ],
)  # fmt: skip
def test_indexes_of_postgresql_have_all_columns_of_a_report(app, admin, path, indexes, without):
    """With a column that an index lacks, PostgreSQL would read each order of the period."""
    shop = random_shop(app, "plans", utc("2026-11-01"), orders=300, currencies=("USD",))
    end, steps = utc("2026-11-10"), []
    order = next(each for each in shop.orders if each["status"] == "completed")
    copies = [  # not stored by time
        order | {"id": 10_000 + number, "order_key": f"o{number}"}
        | {"created_at": end - timedelta(number * 7919 % 5000 / 10)}
        for number in range(5000)
    ]  # fmt: skip
    with app.app_context():
        run_in_transaction(lambda session: session.execute(insert(ORDERS), copies))
        engine = db.engine.execution_options(isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            # FULL freezes the rows. Otherwise VACUUM marks no page as visible before the transaction
            # of its rows is on the disk, which takes a time if commits do not wait for it.
            for options in ("FULL", "ANALYZE"):
                tables = "orders, redemptions, order_refunds, users"
                connection.execute(text(f"VACUUM ({options}) {tables}"))
        engine = db.engines["read"]

        def explain(connection, cursor, statement, parameters, context, executemany):
            if not re.match(r"(WITH|SELECT) .*\b(orders|redemptions)\b", statement, re.DOTALL):
                return
            with connection.connection.cursor() as own:
                chosen = ("seqscan", "bitmapscan", *without)
                for each in chosen:
                    own.execute(f"SET enable_{each} = off")
                steps.extend(row[0] for row in own.execute(f"EXPLAIN {statement}", parameters))
                for each in chosen:
                    own.execute(f"RESET enable_{each}")

        event.listen(engine, "before_cursor_execute", explain)
        try:
            assert admin.get(path, PERIOD).status_code == 200
        finally:
            event.remove(engine, "before_cursor_execute", explain)
    read = {
        found[1] for step in steps if (found := re.search(r"Index Only Scan using (\w+)", step))
    }
    assert indexes - read == set(), "\n".join(steps)
