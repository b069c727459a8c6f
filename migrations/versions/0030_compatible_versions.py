"""Record the oldest version of the service that can use the schema, for rolling upgrades.

Alembic reads and writes only its own column of the table.
"""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"

TABLE, COLUMN = "alembic_version", "oldest_compatible"


def upgrade() -> None:
    op.add_column(TABLE, sa.Column(COLUMN, sa.String(32), server_default=revision, nullable=False))


def downgrade() -> None:
    op.drop_column(TABLE, COLUMN)
