"""Add an index for the first role of a user, which every list of customers reads."""

from alembic import op

revision = "0007"
down_revision = "0006"

NAME = "ix_user_roles_first"


def upgrade() -> None:
    op.create_index(NAME, "user_roles", ["user_id", "position", "role"])


def downgrade() -> None:
    op.drop_index(NAME, "user_roles")
