"""Let reports read only orders that count: by status, and then by time."""

import sqlalchemy as sa
from alembic import op

from app.db.migration_helpers import replace_index_concurrently

revision = "0051"
down_revision = "0050"

SUMS = [
    "customer_id", "total", "total_discount", "total_shipping", "cart_tax", "shipping_tax", "fees",
    "items",
]  # fmt: skip


def upgrade() -> None:
    _replace("currency", "status", "created_at")


def downgrade() -> None:
    _replace("currency", "created_at", "status")


def _replace(*order: str) -> None:
    """Create the indexes of orders with this order of their first columns."""
    if op.get_bind().dialect.name == "sqlite":
        columns = [*order, *SUMS, "billing_email"]
        replace_index_concurrently("ix_orders_report_sqlite", "orders", columns)
        return
    replace_index_concurrently("ix_orders_report_postgresql", "orders", [*order, *SUMS])
    replace_index_concurrently(
        "ix_orders_guest_report_postgresql",
        "orders",
        [*order, "billing_email"],
        postgresql_where=sa.text("customer_id IS NULL AND octet_length(billing_email) <= 1000"),
    )
