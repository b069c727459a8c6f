"""PgBouncer in transaction mode: no state is left on server connections."""

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from app import create_app
from app.cli.failures import diagnose
from app.db.read_pool import fetch
from app.db.session import db
from tests.api_client import refusal, reply
from tests.databases import SECRET

pytestmark = [
    pytest.mark.pooler,
    pytest.mark.parametrize("database_url", ["pgbouncer"], indirect=True, scope="session"),
]


def ask(database_url, statement):
    """The first value of a statement of another client."""
    with psycopg.connect(database_url, autocommit=True, prepare_threshold=None) as connection:
        return connection.execute(statement).fetchone()[0]


def test_sessions_of_other_clients_are_not_changed(database_url, admin, make_coupon):
    coupon = make_coupon()
    for number in range(20):
        assert admin.get(f"/coupons/{coupon['id']}").status_code == 200
        body = {"coupon": {"amount": number}}
        assert admin.put(f"/coupons/{coupon['id']}", body).status_code == 200
        assert admin.get("/customers", {"filter[limit]": -1}).status_code == 200
    assert ask(database_url, "SELECT count(*) FROM pg_prepared_statements") == 0
    assert ask(database_url, "SHOW statement_timeout") == "0"
    assert ask(database_url, "SHOW idle_in_transaction_session_timeout") == "0"
    assert ask(database_url, "SHOW timezone") == "America/New_York"


@pytest.mark.slow
def test_missing_setting_is_named(database_url, tmp_path):
    settings = {"DATABASE_URL": database_url, "SECRET_KEY": SECRET, "INSTANCE_PATH": str(tmp_path)}
    with create_app(settings).app_context():
        with pytest.raises(OperationalError) as raised:
            fetch(text("SELECT 1"))
        reason, fix = diagnose(raised.value)
    assert "unsupported startup parameter" in reason
    assert fix == "Set DATABASE_POOLER=transaction, as PgBouncer requires it"


def test_pooler_stops_and_starts_again(pgbouncer, app, admin, make_coupon):
    coupon = make_coupon()
    with app.app_context(), db.engine.connect(), db.engine.connect():
        pass  # idle connections of several threads
    pgbouncer.kill()
    away = refusal("shop_api_unavailable", reason="The database cannot be reached.")
    try:
        assert reply(admin.get("/coupons")) == away
        assert reply(admin.put(f"/coupons/{coupon['id']}", {"coupon": {"amount": 1}})) == away
    finally:
        pgbouncer.start()
    assert admin.get("/coupons").get_json() == {"coupons": [coupon]}
