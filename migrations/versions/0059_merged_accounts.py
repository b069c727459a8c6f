"""Remember the IDs and e-mail addresses of accounts that were merged into another one.

The previous release does not count the uses of a remembered address for the account that was kept.
"""

import sqlalchemy as sa
from alembic import op

from app.db.migration_helpers import has_table

revision = "0059"
down_revision = "0058"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    if not has_table("merged_accounts"):
        op.create_table(
            "merged_accounts",
            sa.Column("id", ID, autoincrement=False, nullable=False),
            sa.Column("customer_id", ID, nullable=False),
            sa.Column("email", KEY, nullable=False),
            sa.Column("email_normalized", KEY),
            sa.ForeignKeyConstraint(
                ["customer_id"],
                ["users.id"],
                name=op.f("fk_merged_accounts_customer_id"),
                ondelete="CASCADE",
            ),
            sa.PrimaryKeyConstraint("id", name=op.f("pk_merged_accounts")),
            sa.UniqueConstraint(
                "email_normalized", name=op.f("uq_merged_accounts_email_normalized")
            ),
        )
        op.create_index("ix_merged_accounts_customer", "merged_accounts", ["customer_id", "id"])


def downgrade() -> None:
    op.drop_table("merged_accounts")
