"""Add stored responses to requests with an Idempotency-Key."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "kept_answers",
        sa.Column("id", ID, nullable=False),
        sa.Column("request_hash", sa.String(), nullable=False),
        sa.Column("body_hash", sa.String(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("answer", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kept_answers")),
        sa.UniqueConstraint("request_hash", name=op.f("uq_kept_answers_request_hash")),
    )
    with op.batch_alter_table("kept_answers", schema=None) as batch_op:
        batch_op.create_index(op.f("ix_kept_answers_created_at"), ["created_at"], unique=False)


def downgrade() -> None:
    op.drop_table("kept_answers")
