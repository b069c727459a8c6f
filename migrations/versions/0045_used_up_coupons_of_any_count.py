"""Replace the index of used up coupons, whose condition had a sum.

The sum of the used and the reserved uses can exceed 64 bits. PostgreSQL then rejected the coupon.
"""

import sqlalchemy as sa

from app.db.migration_helpers import replace_index_concurrently

revision = "0045"
down_revision = "0044"

CONDITION = sa.text("usage_limit > 0 AND usage_count >= usage_limit - reserved_count")


def upgrade() -> None:
    replace_index_concurrently(
        "ix_coupons_used_up",
        "coupons",
        ["status", "created_at", "id"],
        sqlite_where=CONDITION,
        postgresql_where=CONDITION,
    )


def downgrade() -> None:
    """Keep the index, which is that of migration 0037."""
