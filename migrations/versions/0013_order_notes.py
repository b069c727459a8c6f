"""Add the notes of orders."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
MOMENT = sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "order_notes",
        sa.Column("id", ID, nullable=False),
        sa.Column("order_id", ID, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("note", KEY, nullable=False),
        sa.Column("customer_note", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["order_id"],
            ["orders.id"],
            name=op.f("fk_order_notes_order_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_order_notes")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_order_notes_order", "order_notes", ["order_id", "id"])


def downgrade() -> None:
    op.drop_table("order_notes")
