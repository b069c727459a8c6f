"""Add webhooks and their deliveries."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
MOMENT = sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", KEY, nullable=False),
        sa.Column("format", KEY, nullable=False),
        sa.Column("status", KEY, nullable=False),
        sa.Column("disabled_reason", KEY, nullable=True),
        sa.Column("topics", sa.JSON(), nullable=False),
        sa.Column("delivery_url", KEY, nullable=False),
        sa.Column("secret_encrypted", KEY, nullable=False),
        sa.Column("previous_secret_encrypted", KEY, nullable=True),
        sa.Column("previous_secret_until", MOMENT, nullable=True),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("last_delivery_at", MOMENT, nullable=True),
        sa.Column("failing_since", MOMENT, nullable=True),
        sa.Column("position", ID, nullable=False),
        sa.Column("failure_count", sa.Integer(), nullable=False),
        sa.Column("resume_at", MOMENT, nullable=True),
        sa.Column("lease_owner", KEY, nullable=True),
        sa.Column("lease_until", MOMENT, nullable=True),
        sa.CheckConstraint(
            "status IN ('active', 'paused', 'disabled')", name=op.f("ck_webhooks_status")
        ),
        sa.CheckConstraint("format IN ('standard', 'legacy')", name=op.f("ck_webhooks_format")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_webhooks_user_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_webhooks_status", "webhooks", ["status"])
    op.create_index("ix_webhooks_user_id", "webhooks", ["user_id"])
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", ID, nullable=False),
        sa.Column("webhook_id", ID, nullable=False),
        sa.Column("event_id", ID, nullable=True),
        sa.Column("resource", KEY, nullable=False),
        sa.Column("resource_id", ID, nullable=True),
        sa.Column("state", KEY, nullable=False),
        sa.Column("attempts", sa.JSON(), nullable=False),
        sa.Column("attempt_count", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", MOMENT, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("request_headers", sa.JSON(), nullable=False),
        sa.Column("response_headers", sa.JSON(), nullable=False),
        sa.Column("response_body", KEY, nullable=False),
        sa.CheckConstraint(
            "state IN ('pending', 'delivered', 'failed')", name=op.f("ck_webhook_deliveries_state")
        ),
        sa.CheckConstraint(
            "(state = 'pending') = (next_attempt_at IS NOT NULL)",
            name=op.f("ck_webhook_deliveries_next_attempt_when_pending"),
        ),
        sa.ForeignKeyConstraint(
            ["webhook_id"],
            ["webhooks.id"],
            name=op.f("fk_webhook_deliveries_webhook_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_deliveries")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_webhook_deliveries_event",
        "webhook_deliveries",
        ["webhook_id", "event_id"],
        unique=True,
    )
    op.create_index("ix_webhook_deliveries_event", "webhook_deliveries", ["event_id"])
    pending = sa.text("state = 'pending'")
    for name, columns in (
        ("ix_webhook_deliveries_due", ["webhook_id", "next_attempt_at"]),
        ("ix_webhook_deliveries_order", ["webhook_id", "resource", "resource_id", "event_id"]),
    ):
        op.create_index(
            name, "webhook_deliveries", columns, sqlite_where=pending, postgresql_where=pending
        )
    op.create_table(
        "delivery_counts",
        sa.Column("result", KEY, nullable=False),
        sa.Column("count", ID, nullable=False),
        sa.PrimaryKeyConstraint("result", name=op.f("pk_delivery_counts")),
    )


def downgrade() -> None:
    op.drop_table("delivery_counts")
    op.drop_table("webhook_deliveries")
    op.drop_table("webhooks")
