"""Add indexes that find imported records by their target, and orders of guests by their age.

An erasure marks the imported records, and the worker erases orders that are old.
"""

import sqlalchemy as sa

from app.db.migration_helpers import create_index_concurrently, drop_index_concurrently

revision = "0061"
down_revision = "0060"

IS_KEPT = sa.text("customer_id IS NULL AND erased_at IS NULL")


def upgrade() -> None:
    create_index_concurrently(
        "ix_imported_records_target", "imported_records", ["kind", "target_id"]
    )
    create_index_concurrently(
        "ix_orders_guests_updated",
        "orders",
        ["updated_at", "id", "status"],
        sqlite_where=IS_KEPT,
        postgresql_where=IS_KEPT,
    )


def downgrade() -> None:
    drop_index_concurrently("ix_imported_records_target", "imported_records")
    drop_index_concurrently("ix_orders_guests_updated", "orders")
