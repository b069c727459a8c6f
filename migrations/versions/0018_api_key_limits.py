"""Limit API keys to resources and to a time, and record when they were last used."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

TIMESTAMP = sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql")


def upgrade() -> None:
    resources = sa.Column("resources", sa.String(), nullable=False, server_default="all")
    op.add_column("api_keys", resources)
    op.add_column("api_keys", sa.Column("expires_at", TIMESTAMP, nullable=True))
    op.add_column("api_keys", sa.Column("last_used_at", TIMESTAMP, nullable=True))


def downgrade() -> None:
    op.drop_column("api_keys", "last_used_at")
    op.drop_column("api_keys", "expires_at")
    op.drop_column("api_keys", "resources")
