"""Selects on the read engine: their errors, their time limit, and connections that are lost."""

import pytest
from sqlalchemy import Integer, column, func, select, table, text
from sqlalchemy.exc import DBAPIError

from app.db.read_pool import fetch, fetching_from, snapshot
from app.db.session import db, run_in_transaction
from app.db.timeouts import is_statement_timeout
from app.models import COUPONS
from app.services.coupons import terms


def test_connection_remains_after_an_error(app):
    missing = select(column("secret")).select_from(table("no_such_table"))
    with app.app_context():
        with pytest.raises(DBAPIError, match="no_such_table") as failed:
            fetch(missing)
        assert not failed.value.connection_invalidated
        assert fetch(select(COUPONS.c.id)) == []
        assert db.engines["read"].pool.checkedout() == 0


def test_statement_that_takes_too_long_is_cancelled(make_app):
    counted = text(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000) "
        "SELECT i FROM n"
    ).columns(i=Integer)
    endless = select(func.max(counted.subquery().c.i))
    with make_app(SHOP_STATEMENT_TIMEOUT_SECONDS=0.5).app_context():
        with pytest.raises(DBAPIError) as failed:
            fetch(endless)
        assert is_statement_timeout(failed.value)


def test_lost_connection_is_replaced(app):
    with app.app_context():
        if db.engine.dialect.name == "sqlite":
            return  # has no server
        own = select(func.pg_backend_pid())

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
