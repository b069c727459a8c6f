"""Add batches of generated coupons."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
MOMENT = sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql")

# Partial indexes: table, columns, condition.
INDEXES = {
    "ix_coupons_batch": (
        "coupons", ["batch_id", "status", "created_at", "id"], "batch_id IS NOT NULL",
    ),
    "ix_coupons_batch_used": (
        "coupons", ["batch_id", "status"], "batch_id IS NOT NULL AND usage_count > 0",
    ),
    "ix_redemptions_reserved": ("redemptions", ["coupon_id"], "status = 'reserved'"),
}  # fmt: skip


def upgrade() -> None:
    op.create_table(
        "coupon_batches",
        sa.Column("id", ID, nullable=False),
        sa.Column("author_id", ID, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("count", ID, nullable=False),
        sa.Column("prefix", KEY, nullable=False),
        sa.Column("pattern", KEY, nullable=False),
        sa.Column("charset", KEY, nullable=False),
        sa.CheckConstraint("count > 0", name=op.f("ck_coupon_batches_count_positive")),
        sa.ForeignKeyConstraint(
            ["author_id"], ["users.id"],
            name=op.f("fk_coupon_batches_author_id"), ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_coupon_batches")),
        sqlite_autoincrement=True,
    )  # fmt: skip
    op.create_index("ix_coupon_batches_author_id", "coupon_batches", ["author_id"])
    op.create_index("ix_coupon_batches_created", "coupon_batches", ["created_at", "id"])
    op.add_column("coupons", sa.Column("batch_id", ID, nullable=True))
    for name, (table, columns, condition) in INDEXES.items():
        where = sa.text(condition)
        op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    for name, (table, _, _) in INDEXES.items():
        op.drop_index(name, table)
    # SQLite also drops a column in place, because a copy of the table would lose its triggers.
    op.execute("ALTER TABLE coupons DROP COLUMN batch_id")
    op.drop_table("coupon_batches")
