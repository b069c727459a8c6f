"""Count the published coupons of a type in a smaller index, which compares only the type."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    where = sa.text("status = 'published'")
    # First, because it needs the strongest lock: writers that wait for a weaker one would deadlock.
    op.drop_index("ix_coupons_status_type", "coupons")
    op.create_index(
        "ix_coupons_type",
        "coupons",
        ["type", "created_at", "id", "status"],
        sqlite_where=where,
        postgresql_where=where,
    )


def downgrade() -> None:
    op.drop_index("ix_coupons_type", "coupons")
    op.create_index("ix_coupons_status_type", "coupons", ["status", "type", "created_at", "id"])
