"""Add the persons in stored responses, so that their data can be erased."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "idempotency_persons",
        sa.Column("record_id", ID, nullable=False),
        sa.Column("person", KEY, nullable=False),
        sa.PrimaryKeyConstraint("record_id", "person", name=op.f("pk_idempotency_persons")),
        sa.ForeignKeyConstraint(
            ["record_id"],
            ["idempotency_records.id"],
            name=op.f("fk_idempotency_persons_record_id"),
            ondelete="CASCADE",
        ),
    )
    op.create_index(op.f("ix_idempotency_persons_person"), "idempotency_persons", ["person"])


def downgrade() -> None:
    op.drop_table("idempotency_persons")
