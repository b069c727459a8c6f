"""Add metadata of refunds, and one source of the IDs of items.

IDs of items are unique in the shop from now on. Items that exist keep theirs.
"""

import sqlalchemy as sa
from alembic import op

from app.db.migration_helpers import add_columns, has_table, release_locks

revision = "0035"
down_revision = "0034"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    number = sa.Column("revision", ID, server_default=sa.text("0"), nullable=False)
    add_columns("order_refunds", number)
    if not has_table("refund_metadata"):
        _create_refund_metadata()
        release_locks()
    op.create_table(
        "item_ids",
        sa.Column("id", ID, nullable=False),
        sa.Column("single", ID, server_default=sa.text("1"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_item_ids")),
        sa.UniqueConstraint("single", name=op.f("uq_item_ids_single")),
        sqlite_autoincrement=True,
    )
    _begin_above_the_largest()


def _create_refund_metadata() -> None:
    op.create_table(
        "refund_metadata",
        sa.Column("id", ID, nullable=False),
        sa.Column("refund_id", ID, nullable=False),
        sa.Column("found_value", KEY),
        sa.Column("key", KEY, nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("internal", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.ForeignKeyConstraint(
            ["refund_id"],
            ["order_refunds.id"],
            name=op.f("fk_refund_metadata_refund_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_refund_metadata")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_refund_metadata_refund", "refund_metadata", ["refund_id", "id"])
    found = ["key", "found_value", "refund_id"]
    op.create_index("ix_refund_metadata_found", "refund_metadata", found)


def _begin_above_the_largest() -> None:
    bind = op.get_bind()
    following = bind.scalar(sa.text("SELECT max(next_item_id) FROM orders")) or 1
    if bind.dialect.name == "postgresql":
        sequence = sa.func.pg_get_serial_sequence("item_ids", "id")
        bind.execute(sa.select(sa.func.setval(sequence, following, False)))
    elif following > 1:
        insert = sa.text("INSERT INTO item_ids (id) VALUES (:last)")
        bind.execute(insert, {"last": following - 1})


def downgrade() -> None:
    op.drop_table("item_ids")
    op.execute("ALTER TABLE order_refunds DROP COLUMN revision")
    op.drop_table("refund_metadata")
