"""Add the numbers of refused coupon codes."""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "coupon_refusals",
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("code", KEY, nullable=False),
        sa.Column("reason", KEY, nullable=False),
        sa.Column("is_known", sa.Boolean(), nullable=False),
        sa.Column("count", ID, nullable=False),
        sa.Column("first_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("day", "code", "reason", name=op.f("pk_coupon_refusals")),
    )


def downgrade() -> None:
    op.drop_table("coupon_refusals")
