"""Let reservations without a slot be found among those of a coupon, on each use of the coupon.

PostgreSQL preferred this index to that of the slots before the table was analyzed, and then read
all reservations of a coupon to reserve another use.
"""

import sqlalchemy as sa

from app.db.migration_helpers import replace_index_concurrently

revision = "0050"
down_revision = "0049"

RESERVED = sa.text("status = 'reserved'")


def upgrade() -> None:
    _replace_index(["coupon_id", "holds_slot"])


def downgrade() -> None:
    _replace_index(["coupon_id"])


def _replace_index(columns: list[str]) -> None:
    replace_index_concurrently(
        "ix_redemptions_reserved",
        "redemptions",
        columns,
        sqlite_where=RESERVED,
        postgresql_where=RESERVED,
    )
