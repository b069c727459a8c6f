"""Let erasures find the events of deleted notes without reading all events."""

import sqlalchemy as sa

from app.db.migration_helpers import create_index_concurrently, drop_index_concurrently

revision = "0071"
down_revision = "0070"

NAME = "ix_events_deleted_notes"
IS_DELETED_NOTE = sa.text("type = 'order_note.deleted'")


def upgrade() -> None:
    create_index_concurrently(
        NAME,
        "events",
        ["position"],
        sqlite_where=IS_DELETED_NOTE,
        postgresql_where=IS_DELETED_NOTE,
    )


def downgrade() -> None:
    drop_index_concurrently(NAME, "events")
