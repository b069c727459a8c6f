"""Add the phone number of shipping addresses of accounts, and the webhooks of wc/v3."""

import sqlalchemy as sa
from alembic import op

from app.db.migration_helpers import add_columns

revision = "0039"
down_revision = "0038"

KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    empty = sa.text("''")
    add_columns("users", sa.Column("shipping_phone", KEY, server_default=empty, nullable=False))
    is_bare = sa.Column("is_bare", sa.Boolean(), server_default=sa.false(), nullable=False)
    add_columns("webhooks", is_bare)


def downgrade() -> None:
    op.drop_column("webhooks", "is_bare")
    op.drop_column("users", "shipping_phone")
