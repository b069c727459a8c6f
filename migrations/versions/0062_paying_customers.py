"""Let accounts with a completed order be counted from an index of these orders alone."""

import sqlalchemy as sa

from app.db.migration_helpers import create_index_concurrently, drop_index_concurrently

revision = "0062"
down_revision = "0061"

NAME = "ix_orders_paying"
# SQLite reads an index alone only if it contains the columns of its condition.
COLUMNS = ["customer_id", "completed_at"]
COMPLETED = sa.text("customer_id IS NOT NULL AND completed_at IS NOT NULL")


def upgrade() -> None:
    create_index_concurrently(
        NAME, "orders", COLUMNS, sqlite_where=COMPLETED, postgresql_where=COMPLETED
    )


def downgrade() -> None:
    drop_index_concurrently(NAME, "orders")
