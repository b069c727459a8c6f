"""Add the ledger of redemptions, and the number of reserved uses of each coupon."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
MOMENT = sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql")

INDEXES = {
    "ix_redemptions_slots": ["coupon_id", "status", "holds_slot", "expires_at"],
    "ix_redemptions_coupon_customer": ["coupon_id", "customer_id"],
    "ix_redemptions_coupon_email": ["coupon_id", "email_normalized"],
    "ix_redemptions_created": ["created_at", "id"],
    "ix_redemptions_customer": ["customer_id"],
    "ix_redemptions_email": ["email_normalized"],
    "ix_redemptions_reference": ["reference"],
    "ix_redemptions_code": ["code"],
}


def upgrade() -> None:
    op.add_column(
        "coupons", sa.Column("reserved_count", ID, nullable=False, server_default=sa.text("0"))
    )
    op.create_table(
        "redemptions",
        sa.Column("id", ID, nullable=False),
        sa.Column("coupon_id", ID, nullable=True),
        sa.Column("code", KEY, nullable=False),
        sa.Column("reference", KEY, nullable=False),
        sa.Column("order_id", ID, nullable=True),
        sa.Column("customer_id", ID, nullable=True),
        sa.Column("email", KEY, nullable=False),
        sa.Column("email_normalized", KEY, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=True),
        sa.Column("status", KEY, nullable=False),
        sa.Column("holds_slot", sa.Boolean(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=True),
        sa.CheckConstraint(
            "status IN ('reserved', 'confirmed', 'released')", name=op.f("ck_redemptions_status")
        ),
        sa.CheckConstraint(
            "NOT holds_slot OR status = 'reserved'",
            name=op.f("ck_redemptions_holds_slot_when_reserved"),
        ),
        sa.ForeignKeyConstraint(
            ["coupon_id"], ["coupons.id"],
            name=op.f("fk_redemptions_coupon_id"), ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["customer_id"], ["users.id"],
            name=op.f("fk_redemptions_customer_id"), ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_redemptions")),
        sqlite_autoincrement=True,
    )  # fmt: skip
    for name, columns in INDEXES.items():
        op.create_index(name, "redemptions", columns)
    for name, columns, condition in (
        ("uq_redemptions_coupon_reference", ["coupon_id", "reference"], "order_id IS NULL"),
        ("uq_redemptions_order_coupon", ["order_id", "coupon_id"], "status <> 'released'"),
    ):
        where = sa.text(condition)
        op.create_index(
            name, "redemptions", columns, unique=True, sqlite_where=where, postgresql_where=where
        )


def downgrade() -> None:
    op.drop_table("redemptions")
    # SQLite also drops a column in place, because a copy of the table would lose its triggers.
    op.execute("ALTER TABLE coupons DROP COLUMN reserved_count")
