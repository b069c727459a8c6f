"""Add what a write changed to its event, and indexes of the users and requests of events.

The previous release writes events without it.
"""

import sqlalchemy as sa
from alembic import op

from app.db.migration_helpers import (
    add_columns,
    create_index_concurrently,
    drop_index_concurrently,
)

revision = "0058"
down_revision = "0057"

INDEXES = {"ix_events_user": ["user_id", "id"], "ix_events_request": ["request_id", "id"]}


def upgrade() -> None:
    add_columns("events", sa.Column("changes", sa.Text()))
    for name, columns in INDEXES.items():
        create_index_concurrently(
            name,
            "events",
            columns,
            sqlite_where=sa.text("id IS NULL"),
            postgresql_where=sa.text("id IS NOT NULL"),
        )


def downgrade() -> None:
    for name in INDEXES:
        drop_index_concurrently(name, "events")
    op.drop_column("events", "changes")
