"""Files that were uploaded on the admin pages."""

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
NUMBERS = ("size", "position", "created", "updated", "skipped", "failed")


def upgrade() -> None:
    op.create_table(
        "uploads",
        sa.Column("id", ID, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        *(sa.Column(name, KEY, nullable=False) for name in ("kind", "on_conflict", "digest")),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        *(sa.Column(name, ID, nullable=False) for name in NUMBERS),
        sa.Column("failures", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_uploads"),
        sa.ForeignKeyConstraint(
            ["session_id"], ["admin_sessions.id"], name="fk_uploads_session_id", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )
    for column in ("session_id", "created_at"):
        op.create_index(f"ix_uploads_{column}", "uploads", [column])


def downgrade() -> None:
    op.drop_table("uploads")
