"""Sessions of the admin pages, and links that begin one."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql")


def _columns(table: str) -> list[sa.schema.SchemaItem]:
    return [
        sa.Column("id", ID, nullable=False),
        sa.Column("token_hash", sa.String(), nullable=False),
        sa.Column("key_id", ID, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
        sa.UniqueConstraint("token_hash", name=f"uq_{table}_token_hash"),
        sa.ForeignKeyConstraint(
            ["key_id"], ["api_keys.id"], name=f"fk_{table}_key_id", ondelete="CASCADE"
        ),
    ]


def upgrade() -> None:
    op.create_table(
        "admin_sessions",
        *_columns("admin_sessions"),
        sa.Column("last_used_at", TIME, nullable=False),
        sa.Column("user_agent", sa.String(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "sign_in_links",
        *_columns("sign_in_links"),
        sa.Column("login", sa.String()),
        sa.Column("role", sa.String()),
        sa.Column("permission", sa.String()),
        sa.Column("resources", sa.String()),
        sa.Column("key_expires_at", TIME),
        sqlite_autoincrement=True,
    )
    for table in ("admin_sessions", "sign_in_links"):
        for column in ("key_id", "expires_at"):
            op.create_index(f"ix_{table}_{column}", table, [column])


def downgrade() -> None:
    op.drop_table("sign_in_links")
    op.drop_table("admin_sessions")
