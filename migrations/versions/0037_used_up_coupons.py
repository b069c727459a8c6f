"""Index the coupons whose uses are all taken or reserved.

At first, the condition had a sum, which can exceed 64 bits. Migration 0045 replaces such an index.
"""

import sqlalchemy as sa

from app.db.migration_helpers import create_index_concurrently, drop_index_concurrently

revision = "0037"
down_revision = "0036"

NAME = "ix_coupons_used_up"
CONDITION = sa.text("usage_limit > 0 AND usage_count >= usage_limit - reserved_count")


def upgrade() -> None:
    create_index_concurrently(
        NAME,
        "coupons",
        ["status", "created_at", "id"],
        sqlite_where=CONDITION,
        postgresql_where=CONDITION,
    )


def downgrade() -> None:
    drop_index_concurrently(NAME, "coupons")
