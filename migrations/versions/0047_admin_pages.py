"""Add the key and the session of an event, the name of a batch, and the queue of uploaded files."""

import sqlalchemy as sa
from alembic import op

from app.db.migration_helpers import add_columns

revision = "0047"
down_revision = "0046"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    add_columns("events", sa.Column("key_id", ID), sa.Column("session_id", ID))
    name = sa.Column("name", KEY, server_default=sa.text("''"), nullable=False)
    add_columns("coupon_batches", name)
    add_columns(
        "uploads",
        sa.Column("queued_at", sa.DateTime(timezone=True)),
        sa.Column("claimed_at", sa.DateTime(timezone=True)),
    )


def downgrade() -> None:
    for table, names in (
        ("uploads", ("claimed_at", "queued_at")),
        ("coupon_batches", ("name",)),
        ("events", ("session_id", "key_id")),
    ):
        for name in names:
            op.drop_column(table, name)
