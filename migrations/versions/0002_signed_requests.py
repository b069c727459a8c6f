"""Add encrypted secrets of keys and used nonces, for signed requests.

Existing keys have no stored secret. They keep working, but cannot sign requests.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    with op.batch_alter_table("api_keys", schema=None) as batch_op:
        batch_op.add_column(sa.Column("consumer_secret_encrypted", sa.String(), nullable=True))
    op.create_table(
        "oauth_nonces",
        sa.Column("id", KEY, nullable=False),
        sa.Column("sent", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_oauth_nonces")),
    )
    with op.batch_alter_table("oauth_nonces", schema=None) as batch_op:
        batch_op.create_index(op.f("ix_oauth_nonces_sent"), ["sent"], unique=False)


def downgrade() -> None:
    op.drop_table("oauth_nonces")
    with op.batch_alter_table("api_keys", schema=None) as batch_op:
        batch_op.drop_column("consumer_secret_encrypted")
