"""Store the normalized e-mail addresses of guests that ``lower()`` of the database does not change.

``shop-api db upgrade`` sets the column of existing orders after the migrations.
"""

import sqlalchemy as sa
from alembic import op

from app.db.migration_helpers import (
    add_columns,
    create_index_concurrently,
    drop_index_concurrently,
    replace_index_concurrently,
)

revision = "0052"
down_revision = "0051"

NORMALIZED = "billing_email_normalized"
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
ORDER = ["currency", "status", "created_at"]
SUMS = [
    "customer_id", "total", "total_discount", "total_shipping", "cart_tax", "shipping_tax", "fees",
    "items",
]  # fmt: skip


def upgrade() -> None:
    add_columns("orders", sa.Column(NORMALIZED, KEY))
    where = sa.text("customer_id IS NULL AND billing_email_normalized IS NOT NULL")
    create_index_concurrently(
        "ix_orders_guest_normalized",
        "orders",
        [NORMALIZED, "created_at", "id", "status", "currency", "customer_id"],
        sqlite_where=where,
        postgresql_where=where,
    )
    _replace("billing_email", NORMALIZED)


def downgrade() -> None:
    _replace("billing_email")
    drop_index_concurrently("ix_orders_guest_normalized", "orders")
    # SQLite also drops the column in place, because a copy of the table would lose its triggers.
    op.execute("ALTER TABLE orders DROP COLUMN billing_email_normalized")


def _replace(*emails: str) -> None:
    """Create the index of the addresses of guests for reports with some columns."""
    if op.get_bind().dialect.name == "sqlite":
        columns = [*ORDER, *SUMS, *emails]
        replace_index_concurrently("ix_orders_report_sqlite", "orders", columns)
        return
    replace_index_concurrently(
        "ix_orders_guest_report_postgresql",
        "orders",
        [*ORDER, *emails],
        postgresql_where=sa.text("customer_id IS NULL AND octet_length(billing_email) <= 1000"),
    )
