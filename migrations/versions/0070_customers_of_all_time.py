"""Let PostgreSQL add up the orders of all customers in the order of an index."""

import sqlalchemy as sa

from app.db.migration_helpers import replace_index_concurrently

revision = "0070"
down_revision = "0069"

NAME = "ix_orders_customer_created"
COLUMNS = ["customer_id", "created_at", "id", "status", "currency"]
OF_ACCOUNTS = sa.text("customer_id IS NOT NULL")


def upgrade() -> None:
    _replace([*COLUMNS, "total"])


def downgrade() -> None:
    _replace(COLUMNS)


def _replace(columns: list[str]) -> None:
    replace_index_concurrently(
        NAME, "orders", columns, sqlite_where=OF_ACCOUNTS, postgresql_where=OF_ACCOUNTS
    )
