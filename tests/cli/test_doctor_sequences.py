"""``shop-api doctor`` finds sequences that would assign an ID in use, as a restore can leave them."""

import pytest
from sqlalchemy import insert

from app.db.session import run_in_transaction
from app.models import CUSTOMER_METADATA
from tests.databases import SECRET

pytestmark = pytest.mark.both_databases

HIGHEST = 10**12  # beyond the IDs that other tests have used


def doctor(app):
    result = app.test_cli_runner().invoke(args=["doctor"])
    lines = result.stdout.splitlines()
    return [line for line in lines if "_id_seq" in line]


def test_sequence_below_the_highest_id(app, make_app, make_customer, database_url):
    customer_id = make_customer()["id"]
    other = make_app(
        SECRET_KEY=f"{SECRET}, and long enough", DATABASE_URL=app.config["DATABASE_URL"]
    )
    assert doctor(other) == []

    def write(session):
        row = {"id": HIGHEST, "customer_id": customer_id, "key": "erp", "value": "1"}
        session.execute(insert(CUSTOMER_METADATA), row)

    with app.app_context():
        run_in_transaction(write)
    on_sqlite = database_url.startswith("sqlite")
    name = "public.customer_metadata_id_seq"
    assert doctor(other) == ([] if on_sqlite else [
        f"FAIL   IDs: {name} would assign an ID that is in use",
        f"       -> Run in psql: SELECT setval('{name}', {HIGHEST});",
    ])  # fmt: skip
