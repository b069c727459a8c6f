"""Selects that recur run without SQLAlchemy, and have the same rows and errors as with it."""

import orjson
import pytest
from sqlalchemy import Integer, bindparam, column, func, select, table, text
from sqlalchemy.exc import DBAPIError

from app.api import representations
from app.db.read_pool import fetch, fetching_from, snapshot
from app.db.records import WANTED, select_where
from app.db.recurring import RecurringSelect
from app.db.session import db, run_in_transaction
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.db.timeouts import is_statement_timeout
from app.models import COUPONS, ORDERS, USERS
from app.services.coupons import terms
from tests.factories import insert_order

IDS = bindparam(WANTED, type_=IdList)
RECORDS = {
    "coupons": (representations.COUPON, COUPONS.c.id),
    "customers": (representations.CUSTOMER, USERS.c.id),
    "orders": (representations.ORDER, ORDERS.c.id),
}


@pytest.mark.parametrize("kind", RECORDS)
def test_rows_are_those_of_sqlalchemy(app, make_coupon, make_customer, kind):
    make_coupon(code="summer", amount="5", usage_limit=3)
    customer = make_customer(email="ada@example.com")
    for customer_id in (customer["id"], None):
        insert_order(app, customer_id=customer_id)
    serializer, record_id = RECORDS[kind]
    recurring = select_where(serializer.columns, record_id, is_one_of(record_id, IDS))
    with app.app_context():
        ids = [row[0] for row in fetch(select(record_id))]
        rows = fetch(recurring, {WANTED: ids})
        assert rows
        same = [tuple(row) for row in fetch(recurring.select, {WANTED: ids})]
        assert orjson.dumps(rows) == orjson.dumps(same)


def test_rows_have_names_if_asked_for(app, make_coupon):
    make_coupon(code="summer", amount="5", usage_limit=3)
    with app.app_context():
        (row,) = fetch(terms._WITH_CODES_OF_GUEST, {"codes": ["summer"]})
        (same,) = fetch(terms._WITH_CODES_OF_GUEST.select, {"codes": ["summer"]})
    assert row._asdict() == same._asdict()


def test_values_of_a_list_of_constants_are_parameters(app, make_coupon):
    for code in ("one", "two", "three"):
        make_coupon(code=code)
    some = COUPONS.c.code.in_(["one", "three", "four"])
    is_short = func.length(COUPONS.c.code) <= bindparam("most", type_=Integer)
    found = RecurringSelect(select(COUPONS.c.code).where(some, is_short).order_by(COUPONS.c.id))
    with app.app_context():
        assert fetch(found, {"most": 5}) == [("one",), ("three",)]
        assert fetch(found, {"most": 3}) == [("one",)]


def test_error_is_one_of_sqlalchemy_and_the_connection_remains(app):
    missing = RecurringSelect(select(column("secret")).select_from(table("no_such_table")))
    with app.app_context():
        with pytest.raises(DBAPIError, match="no_such_table") as failed:
            fetch(missing)
        assert not failed.value.connection_invalidated
        assert fetch(RecurringSelect(select(COUPONS.c.id))) == []
        assert db.engines["read"].pool.checkedout() == 0


def test_statement_that_takes_too_long_is_cancelled(make_app):
    counted = text(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000) "
        "SELECT i FROM n"
    ).columns(i=Integer)
    endless = RecurringSelect(select(func.max(counted.subquery().c.i)))
    with make_app(SHOP_STATEMENT_TIMEOUT_SECONDS=0.5).app_context():
        with pytest.raises(DBAPIError) as failed:
            fetch(endless)
        assert is_statement_timeout(failed.value)


def test_lost_connection_is_replaced(app):
    with app.app_context():
        if db.engine.dialect.name == "sqlite":
            return  # has no server
        own = RecurringSelect(select(func.pg_backend_pid()))

        def read_twice():
            with snapshot() as read:
                ((pid,),) = read(own)
                end = select(func.pg_terminate_backend(pid))
                run_in_transaction(lambda session: session.execute(end))
                read(own)

        with pytest.raises(DBAPIError) as failed:
            read_twice()
        assert failed.value.connection_invalidated
        assert fetch(own)
        assert db.engines["read"].pool.checkedout() == 0


def test_transaction_that_writes_sees_its_own_changes(app, make_coupon):
    make_coupon(code="summer")
    found = terms._WITH_CODES_OF_GUEST
    with app.app_context():

        def work(session):
            session.execute(COUPONS.update().values(usage_count=7))
            with fetching_from(session.connection()):
                return fetch(found, {"codes": ["summer"]})[0].usage_count

        assert run_in_transaction(work) == 7
