"""Add campaigns, and the campaign of each coupon, batch and use.

The previous release reads and writes none of the columns, so its uses do not count for a campaign.
"""

import sqlalchemy as sa
from alembic import op

from app.db.migration_helpers import (
    add_columns,
    create_index_concurrently,
    drop_index_concurrently,
    has_table,
    release_locks,
)

revision = "0057"
down_revision = "0056"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
SUM = sa.BigInteger().with_variant(sa.Numeric(38, 0), "postgresql")
HAS_CAMPAIGN = sa.text("campaign_id IS NOT NULL")
INDEXES = {
    "ix_coupons_campaign": ("coupons", ["campaign_id", "status", "created_at", "id"]),
    "ix_redemptions_campaign": (
        "redemptions",
        ["campaign_id", "status", "expires_at", "amount"],
    ),
    "ix_redemptions_campaign_customer": ("redemptions", ["campaign_id", "customer_id"]),
    "ix_redemptions_campaign_email": ("redemptions", ["campaign_id", "email_normalized"]),
}


def upgrade() -> None:
    if not has_table("campaigns"):
        op.create_table(
            "campaigns",
            sa.Column("id", ID, nullable=False),
            sa.Column("name", KEY, nullable=False),
            sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
            sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
            sa.Column("active", sa.Boolean(), server_default=sa.true(), nullable=False),
            sa.Column("starts_at", sa.DateTime(timezone=True)),
            sa.Column("ends_at", sa.DateTime(timezone=True)),
            sa.Column("usage_limit", ID, nullable=False),
            sa.Column("usage_limit_per_user", ID, nullable=False),
            sa.Column("budget", sa.BigInteger()),
            sa.Column("tags", sa.JSON(), nullable=False),
            sa.Column("combines_with", sa.JSON(), nullable=False),
            sa.Column("stored_uses", ID, server_default=sa.text("0"), nullable=False),
            sa.Column("stored_discount", SUM, server_default=sa.text("0"), nullable=False),
            sa.Column("search_text", KEY, nullable=False),
            sa.PrimaryKeyConstraint("id", name=op.f("pk_campaigns")),
            sqlite_autoincrement=True,
        )
        op.create_index("ix_campaigns_created", "campaigns", ["created_at", "id"])
        release_locks()
    for table in ("coupons", "coupon_batches", "redemptions"):
        add_columns(table, sa.Column("campaign_id", ID))
    for name, (table, columns) in INDEXES.items():
        create_index_concurrently(
            name, table, columns, sqlite_where=HAS_CAMPAIGN, postgresql_where=HAS_CAMPAIGN
        )


def downgrade() -> None:
    for name, (table, _) in INDEXES.items():
        drop_index_concurrently(name, table)
    for table in ("redemptions", "coupon_batches", "coupons"):
        op.drop_column(table, "campaign_id")
        release_locks()
    op.drop_table("campaigns")
