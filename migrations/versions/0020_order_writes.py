"""Add what writing orders needs: details of items, the next item ID, and the trash."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0008"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
MOMENT = sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql")

# A list leaves out the trash by the status in the index, without reading a row.
SORTED_BY = {"created": "created_at", "updated": "updated_at", "total": "total"}
ADDED = ("item_details", "next_item_id", "trashed_at", "status_before_trash")


def upgrade() -> None:
    # Not in a batch: SQLite would make the table anew, without its triggers.
    op.add_column("orders", sa.Column("item_details", sa.JSON(), nullable=True))
    op.add_column(
        "orders", sa.Column("next_item_id", ID, server_default=sa.text("1"), nullable=False)
    )
    op.add_column("orders", sa.Column("trashed_at", MOMENT, nullable=True))
    op.add_column("orders", sa.Column("status_before_trash", KEY, nullable=True))
    for name, column in SORTED_BY.items():
        op.drop_index(f"ix_orders_{name}", "orders")
        op.create_index(f"ix_orders_{name}", "orders", [column, "id", "status"])


def downgrade() -> None:
    op.execute("DELETE FROM orders WHERE status = 'trash'")
    for name, column in SORTED_BY.items():
        op.drop_index(f"ix_orders_{name}", "orders")
        op.create_index(f"ix_orders_{name}", "orders", [column, "id"])
    for name in ADDED:
        op.drop_column("orders", name)
