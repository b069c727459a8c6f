"""Add the refused codes of the last days, each with its customer and the sum of the cart."""

import sqlalchemy as sa
from alembic import op

from app.db.sql.types import OptionalMoney

revision = "0068"
down_revision = "0067"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "refused_carts",
        sa.Column("id", ID, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("code", KEY, nullable=False),
        sa.Column("reason", KEY, nullable=False),
        sa.Column("customer_id", ID, nullable=True),
        sa.Column("email_normalized", KEY, nullable=False),
        sa.Column("total", OptionalMoney(), nullable=True),
        sa.Column("currency", KEY, nullable=False),
        sa.ForeignKeyConstraint(
            ["customer_id"],
            ["users.id"],
            name=op.f("fk_refused_carts_customer_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_refused_carts")),
    )
    op.create_index("ix_refused_carts_code", "refused_carts", ["code", "id"])
    op.create_index("ix_refused_carts_customer", "refused_carts", ["customer_id"])
    op.create_index("ix_refused_carts_email", "refused_carts", ["email_normalized"])


def downgrade() -> None:
    op.drop_table("refused_carts")
