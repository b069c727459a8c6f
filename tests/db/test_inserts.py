"""``app.db.bulk_inserts``: many rows are stored as one row is."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from sqlalchemy import delete, select

from app.db.bulk_inserts import insert_rows
from app.db.session import run_in_transaction
from app.models import Redemption

pytestmark = pytest.mark.both_databases

TABLE = Redemption.__table__
MOMENT = datetime(2026, 11, 20, 9, 38, tzinfo=UTC)
ROW = {
    "coupon_id": None,
    "code": "tea",
    "reference": "cart",
    "order_id": 2**63 - 1,
    "customer_id": None,
    "email": "",
    "email_normalized": "",
    "amount": None,
    "status": "confirmed",
    "holds_slot": False,
    "created_at": MOMENT,
    "updated_at": MOMENT,
    "expires_at": None,
}
ROWS = [
    ROW,
    ROW | {"code": 'Grüße "\\\n\t\u2028 \U0001f375', "amount": Decimal("-9999999999999999.99")},
    ROW | {"amount": Decimal("0.01"), "expires_at": MOMENT, "holds_slot": True,
           "status": "reserved"},
]  # fmt: skip


@pytest.mark.parametrize("together", [True, False])
def test_rows_are_stored_in_their_order(app, together):
    def store(session):
        for rows in [ROWS] if together else [[row] for row in ROWS]:
            insert_rows(session, TABLE, rows)
        names = [TABLE.c[name] for name in ROW]
        stored = session.execute(select(*names).order_by(TABLE.c.id)).mappings().all()
        session.execute(delete(TABLE))
        return [dict(row) for row in stored]

    with app.app_context():
        assert run_in_transaction(store) == ROWS
