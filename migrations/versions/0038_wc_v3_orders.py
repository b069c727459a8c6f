"""Add the phone number of shipping addresses of orders."""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"

KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    empty = sa.text("''")
    op.add_column("orders", sa.Column("shipping_phone", KEY, server_default=empty, nullable=False))


def downgrade() -> None:
    op.drop_column("orders", "shipping_phone")
