"""Drop an index of reservations, whose lookups all read ``ix_redemptions_slots``.

Its first columns are the same, and every write of a use changed both.
"""

import sqlalchemy as sa

from app.db.migration_helpers import create_index_concurrently, drop_index_concurrently

revision = "0069"
down_revision = "0068"

NAME = "ix_redemptions_reserved"
COLUMNS = ["coupon_id", "holds_slot"]
RESERVED = sa.text("status = 'reserved'")


def upgrade() -> None:
    drop_index_concurrently(NAME, "redemptions")


def downgrade() -> None:
    create_index_concurrently(
        NAME, "redemptions", COLUMNS, sqlite_where=RESERVED, postgresql_where=RESERVED
    )
