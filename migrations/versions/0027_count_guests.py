"""Count the orders of guests in their own index on SQLite.

SQLite reads an index alone only if it contains the column of its condition.
"""

import sqlalchemy as sa

from app.db.migration_helpers import replace_index_concurrently

revision = "0027"
down_revision = "0026"


def _recreate(*columns: str) -> None:
    where = sa.text("customer_id IS NULL")
    replace_index_concurrently(
        "ix_orders_guests", "orders", columns, sqlite_where=where, postgresql_where=where
    )


def upgrade() -> None:
    _recreate("created_at", "id", "customer_id")


def downgrade() -> None:
    _recreate("created_at", "id")
