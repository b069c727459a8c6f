"""Statements that take too long are cancelled, but long lists for slow clients are not."""

import time

import pytest
from flask_migrate import upgrade
from sqlalchemy import Integer, delete, text
from sqlalchemy.exc import OperationalError

from app.api.blueprint import Blueprint
from app.api.responses import json_response
from app.db.read_pool import RowStream, fetch
from app.db.session import db, run_in_transaction
from app.db.timeouts import without_limit
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


@pytest.fixture
def limited(make_app):
    """An app with a short limit and views that ask too much."""
    app = make_app(SHOP_STATEMENT_TIMEOUT_SECONDS=LIMIT)
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

    app.extensions["flask-smorest"]["apis"][""]["ext_obj"].register_blueprint(blp)
    return app


def test_statement_that_takes_too_long_gets_503(limited):
    response = Client(limited).get("/endless")
    assert reply(response) == TOO_LONG
    assert response.headers["Retry-After"] == "5"
    with limited.app_context():  # the connection is as good as before
        assert fetch(text("SELECT 1")) == [(1,)]


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


def test_limit_of_0_means_no_limit(make_app):
    with make_app(SHOP_STATEMENT_TIMEOUT_SECONDS=0).app_context():
        assert fetch(counting(1_000_000, "max(i)")) == [(1_000_000,)]


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


def test_long_lists_leave_room_for_other_reads(make_app, admin):
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
