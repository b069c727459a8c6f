"""Statements that take too long are cancelled, but long lists for slow clients are not."""

import time

import pytest
from flask import Response, stream_with_context
from flask_migrate import upgrade
from sqlalchemy import Integer, delete, select, text, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from app.api.blueprint import Blueprint
from app.api.responses import json_response
from app.db import deadline
from app.db.errors import is_unavailable
from app.db.read_pool import RowStream, fetch
from app.db.session import db, run_in_transaction
from app.db.timeouts import is_statement_timeout, lift_limit, without_limit
from app.models import User
from tests.api_client import Client, codes, refusal, reply
from tests.databases import assert_nothing_is_open

pytestmark = pytest.mark.pooler

LIMIT = 0.5
TOO_LONG = refusal(
    "shop_api_unavailable", reason="The database took longer than 0.5 seconds. Request less data."
)


def counting(amount, what="i"):
    """A select that counts to an amount, row by row."""
    return text(
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {amount}) "
        f"SELECT {what} AS i FROM n"
    ).columns(i=Integer)


ENDLESS = counting(2_000_000_000, "max(i)")


SLOW_BATCHES = {
    "sqlite": counting(6_000),
    # A batch takes longer than a statement may take after the deadline.
    "postgresql": counting(6_000, "CASE i % 2000 WHEN 0 THEN length(pg_sleep(0.8)::text) END"),
}


@pytest.fixture
def limited(make_app):
    """An app with a short limit and views that ask too much."""
    return app_with_views(make_app(SHOP_STATEMENT_TIMEOUT_SECONDS=LIMIT))


def app_with_views(app):
    blp = Blueprint("endless", __name__, public=True)

    @blp.route("/endless")
    def read_endlessly():
        return json_response({"rows": len(fetch(ENDLESS))})

    @blp.route("/endless", methods=["POST"])
    def write_endlessly():
        def work(session):
            session.execute(delete(User))
            session.execute(ENDLESS)

        run_in_transaction(work)

    @blp.route("/stored", methods=["POST"])
    def write_and_read_endlessly():
        run_in_transaction(lambda session: session.execute(delete(User).where(User.id < 0)))
        fetch(ENDLESS)

    @blp.route("/batches")
    def read_in_batches():
        rows = RowStream(SLOW_BATCHES[db.engine.dialect.name], batch=2_000)
        lengths = (f"{len(batch)} " for batch in rows.batches())
        return Response(stream_with_context(lengths))

    app.extensions["flask-smorest"]["apis"][""]["ext_obj"].register_blueprint(blp)
    return app


def test_statement_that_takes_too_long_gets_503(limited):
    response = Client(limited).get("/endless")
    assert reply(response) == TOO_LONG
    assert response.headers["Retry-After"] == "5"
    with limited.app_context():  # the connection is as good as before
        assert fetch(text("SELECT 1")) == [(1,)]


@pytest.mark.slow
def test_change_before_a_statement_that_takes_too_long_has_an_unknown_outcome(limited):
    client = Client(limited)
    response = client.post("/stored")
    assert reply(response) == refusal("shop_api_outcome_unknown")
    assert "Retry-After" not in response.headers
    response = client.post("/stored", headers={"Idempotency-Key": "key"})
    assert reply(response) == refusal("shop_api_outcome_unknown")
    assert response.headers["Retry-After"] == "5"


def test_request_that_takes_too_long_gets_503(make_app):
    app = app_with_views(make_app(SHOP_REQUEST_TIMEOUT_SECONDS=1))
    expected = refusal(
        "shop_api_unavailable", reason="The database did not respond within 1 seconds."
    )
    for method in ("GET", "POST"):
        response = Client(app).request(method, "/endless")
        assert reply(response) == expected
        assert response.headers["Retry-After"] == "5"
    with app.app_context():  # the pool has another connection
        assert fetch(text("SELECT 1")) == [(1,)]


@pytest.mark.both_databases
def test_many_short_statements_end_at_the_deadline_together(app):
    """Each has its least time, also after the deadline, but no further one begins."""
    done = []

    def work(session):
        session.execute(update(User).values(first_name="changed"))
        for seconds in (10, 15.2, 15.6):
            deadline.begin(15, deadline.Clock(time.monotonic() - seconds))
            session.execute(text("SELECT 1"))
            done.append(seconds)

    with app.app_context():
        for _ in range(2):  # the pool has another connection
            with pytest.raises(OperationalError) as caught:
                run_in_transaction(work)
            deadline.end()
            assert is_statement_timeout(caught.value) or is_unavailable(caught.value)
        assert done == [10, 15.2] * 2
        assert "changed" not in {name for (name,) in fetch(select(User.first_name))}


@pytest.mark.slow
def test_long_list_may_take_longer_than_a_request(make_app):
    app = app_with_views(make_app(SHOP_REQUEST_TIMEOUT_SECONDS=1.2))
    response = Client(app).get("/batches", buffered=False)
    lengths = []
    for length in response.response:
        lengths.append(length)
        time.sleep(0.8)  # a slow client
    assert lengths == [b"2000 "] * 3
    response.close()


@pytest.mark.slow
def test_each_statement_has_its_own_time(make_app):
    some = counting(20_000, "max(i)")
    with make_app(SHOP_STATEMENT_TIMEOUT_SECONDS=1).app_context():
        assert fetch(some) == [(20_000,)]
        time.sleep(1.1)
        assert fetch(some) == [(20_000,)]


def test_transaction_that_takes_too_long_changes_nothing(limited, admin):
    assert reply(Client(limited).post("/endless")) == TOO_LONG
    assert reply(admin.get("/coupons")) == (200, {"coupons": []})  # the user and the key are there


def test_long_list_has_no_total_time_limit(limited):
    with limited.app_context():
        batches = RowStream(counting(6_000), batch=2_000).batches()
        lengths = [len(next(batches))]
        time.sleep(2 * LIMIT)
        lengths += [len(batch) for batch in batches]
    assert lengths == [2_000] * 3


def test_list_whose_first_row_takes_too_long_releases_its_connection(limited):
    with limited.app_context(), pytest.raises(OperationalError):
        RowStream(ENDLESS)


@pytest.mark.slow
def test_limit_of_0_means_no_limit(make_app):
    with make_app(SHOP_STATEMENT_TIMEOUT_SECONDS=0).app_context():
        assert fetch(counting(1_000_000, "max(i)")) == [(1_000_000,)]


@pytest.mark.slow
def test_migration_has_no_limit_and_keeps_the_limits_of_others(make_app, fresh_database_url):
    app = make_app(DATABASE_URL=fresh_database_url, SHOP_STATEMENT_TIMEOUT_SECONDS=LIMIT)
    long = {"sqlite": counting(5_000_000, "max(i)"), "postgresql": text("SELECT pg_sleep(1)")}
    with app.app_context():
        upgrade()
        with db.engine.connect() as connection:
            without_limit(connection)
            assert len(connection.execute(long[db.engine.dialect.name]).all()) == 1
        with db.engine.connect() as connection, pytest.raises(OperationalError):
            connection.execute(ENDLESS)


@pytest.mark.sample(1)
@pytest.mark.parametrize("database_url", ["postgresql", "pgbouncer"], indirect=True)
@pytest.mark.parametrize(("seconds", "shown"), [(15, "20s"), (0, "0")])
def test_server_ends_write_transactions_of_a_process_that_is_frozen(make_app, seconds, shown):
    idle = text("SHOW idle_in_transaction_session_timeout")
    with make_app(SHOP_REQUEST_TIMEOUT_SECONDS=seconds).app_context():
        with db.engine.begin() as connection:
            assert connection.scalar(idle) == shown
            lift_limit(connection)
            assert connection.scalar(idle) == "0"  # commands think for longer
        with db.engine.begin() as connection:
            assert connection.scalar(idle) == shown
        assert fetch(idle) == [("0",)]


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_statements_are_not_compiled(app):
    """The sales of a year would take a third longer."""
    with app.app_context():
        for name, engine in db.engines.items():
            with engine.connect() as connection:
                assert connection.scalar(text("SHOW jit")) == "off", name


def test_long_lists_leave_room_for_other_reads(make_app, admin, make_customer):
    make_customer()  # an empty list needs no connection
    app = make_app(WEB_THREADS=2)
    client = Client(app, admin.key)
    with app.app_context():
        streams = [RowStream(counting(5_000)) for _ in range(2)]
        response = client.get("/customers", {"filter[limit]": -1})
        assert (response.status_code, codes(response)[1]) == (503, "shop_api_unavailable")
        assert client.get("/customers").status_code == 200
        streams[0].close()
        assert client.get("/customers", {"filter[limit]": -1}).status_code == 200
        streams[1].close()


def test_unread_long_list_releases_its_connection(app):
    with app.app_context():
        RowStream(counting(5_000))  # and dropped
    assert_nothing_is_open(app)


def test_many_commits_do_not_extend_the_deadline():
    """Each of them could take two more seconds from its own beginning."""
    clock = deadline.Clock(time.monotonic() - 14.9)
    deadline.begin(15, clock)
    try:
        deadline.reserve(deadline.COMMIT_SECONDS)
        assert deadline.left() > 1
        clock.started -= 1
        assert deadline.left() > 0
        with pytest.raises(PoolTimeoutError):
            deadline.reserve(deadline.COMMIT_SECONDS)
    finally:
        deadline.end()
