"""Index the e-mail addresses of guests for reports on PostgreSQL, up to the size of an entry."""

import sqlalchemy as sa
from alembic import op

from app.db.migration_helpers import create_index_concurrently, drop_index_concurrently

revision = "0049"
down_revision = "0048"

INDEXES = (
    (
        "ix_orders_guest_report_postgresql",
        ["currency", "created_at", "status", "billing_email"],
        "customer_id IS NULL AND octet_length(billing_email) <= 1000",
    ),
    (
        "ix_orders_guest_long_emails_postgresql",
        ["created_at"],
        "customer_id IS NULL AND octet_length(billing_email) > 1000",
    ),
)


def upgrade() -> None:
    for name, columns, condition in _indexes():
        create_index_concurrently(name, "orders", columns, postgresql_where=sa.text(condition))


def downgrade() -> None:
    for name, _, _ in _indexes():
        drop_index_concurrently(name, "orders")


def _indexes() -> tuple[tuple[str, list[str], str], ...]:
    """Return nothing on SQLite, whose index of the report contains the addresses."""
    return INDEXES if op.get_bind().dialect.name == "postgresql" else ()
