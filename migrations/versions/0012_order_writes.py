"""Add columns for writing orders: item details, the next item ID, and the trash."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
MOMENT = sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql")

ADDED = ("item_details", "next_item_id", "trashed_at", "status_before_trash")


def upgrade() -> None:
    # Not in a batch: SQLite would recreate the table without its triggers.
    op.add_column("orders", sa.Column("item_details", sa.JSON(), nullable=True))
    op.add_column(
        "orders", sa.Column("next_item_id", ID, server_default=sa.text("1"), nullable=False)
    )
    op.add_column("orders", sa.Column("trashed_at", MOMENT, nullable=True))
    op.add_column("orders", sa.Column("status_before_trash", KEY, nullable=True))


def downgrade() -> None:
    op.execute("DELETE FROM orders WHERE status = 'trash'")
    for name in ADDED:
        op.drop_column("orders", name)
