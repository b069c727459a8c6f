"""Add events, and the state of their feed."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
MOMENT = sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql")

IS_NUMBERED = "id IS NOT NULL"
INDEXES = {
    "uq_events_id": (["id"], IS_NUMBERED),
    "ix_events_unnumbered": (["position"], "id IS NULL"),
    "ix_events_type": (["type", "id"], IS_NUMBERED),
    "ix_events_resource": (["resource", "resource_id", "id"], IS_NUMBERED),
    "ix_events_created": (["created_at", "id"], IS_NUMBERED),
    "ix_events_customer": (["customer_id"], "customer_id IS NOT NULL"),
}


def upgrade() -> None:
    op.create_table(
        "events",
        sa.Column("position", ID, nullable=False),
        sa.Column("id", ID, nullable=True),
        sa.Column("type", KEY, nullable=False),
        sa.Column("resource", KEY, nullable=False),
        sa.Column("resource_id", ID, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("request_id", KEY, nullable=True),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("customer_id", ID, nullable=True),
        sa.PrimaryKeyConstraint("position", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    for name, (columns, condition) in INDEXES.items():
        where = sa.text(condition)
        op.create_index(
            name,
            "events",
            columns,
            unique=name.startswith("uq_"),
            sqlite_where=where,
            postgresql_where=where,
        )
    op.create_table(
        "event_feed",
        sa.Column("id", ID, autoincrement=False, nullable=False),
        sa.Column("last_id", ID, nullable=False),
        sa.Column("removed_id", ID, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event_feed")),
    )


def downgrade() -> None:
    op.drop_table("event_feed")
    op.drop_table("events")
