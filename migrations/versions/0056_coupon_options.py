"""Let coupons be paused, start later, and have further conditions, such as tags of customers.

The previous release reads and writes none of the columns.
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

revision = "0056"
down_revision = "0055"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
HAS_START = sa.text("starts_at IS NOT NULL")


def upgrade() -> None:
    add_columns(
        "coupons",
        sa.Column("active", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("starts_at", sa.DateTime(timezone=True)),
        sa.Column("options", sa.JSON()),
    )
    add_columns("users", sa.Column("tags", sa.JSON()))
    if not has_table("user_tags"):
        op.create_table(
            "user_tags",
            sa.Column("tag", KEY, nullable=False),
            sa.Column("user_id", ID, nullable=False),
            sa.ForeignKeyConstraint(
                ["user_id"],
                ["users.id"],
                name=op.f("fk_user_tags_user_id"),
                ondelete="CASCADE",
            ),
            sa.PrimaryKeyConstraint("tag", "user_id", name=op.f("pk_user_tags")),
        )
        op.create_index("ix_user_tags_user_id", "user_tags", ["user_id"])
        release_locks()
    create_index_concurrently(
        "ix_coupons_paused",
        "coupons",
        ["status", "created_at", "id"],
        sqlite_where=sa.text("active = 0"),
        postgresql_where=sa.text("NOT active"),
    )
    create_index_concurrently(
        "ix_coupons_starts",
        "coupons",
        ["status", "starts_at", "id"],
        sqlite_where=HAS_START,
        postgresql_where=HAS_START,
    )


def downgrade() -> None:
    drop_index_concurrently("ix_coupons_starts", "coupons")
    drop_index_concurrently("ix_coupons_paused", "coupons")
    op.drop_table("user_tags")
    release_locks()
    op.drop_column("users", "tags")
    release_locks()
    for name in ("options", "starts_at", "active"):
        op.drop_column("coupons", name)
