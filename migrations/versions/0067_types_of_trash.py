"""Let coupons in the trash be counted by type from an index alone."""

import sqlalchemy as sa

from app.db.migration_helpers import create_index_concurrently, drop_index_concurrently

revision = "0067"
down_revision = "0066"

NAME = "ix_coupons_trash_type"
# SQLite reads an index alone only if it contains the columns of its condition.
COLUMNS = ["type", "status"]
IN_TRASH = sa.text("status = 'trash'")


def upgrade() -> None:
    create_index_concurrently(
        NAME, "coupons", COLUMNS, sqlite_where=IN_TRASH, postgresql_where=IN_TRASH
    )


def downgrade() -> None:
    drop_index_concurrently(NAME, "coupons")
