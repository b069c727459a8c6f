"""Add an index of expired reservations."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    where = sa.text("status = 'reserved' AND expires_at IS NOT NULL")
    op.create_index(
        "ix_redemptions_expiring",
        "redemptions",
        ["expires_at", "id"],
        sqlite_where=where,
        postgresql_where=where,
    )


def downgrade() -> None:
    op.drop_index("ix_redemptions_expiring", "redemptions")
