"""Record which normalization of texts ``shop-api db upgrade`` has applied, so that it does it once.

Alembic reads and writes only its own column of the table.
"""

import sqlalchemy as sa
from alembic import op

from app.db.migration_helpers import add_columns

revision = "0055"
down_revision = "0054"

TABLE, COLUMN = "alembic_version", "normalized_texts"


def upgrade() -> None:
    add_columns(TABLE, sa.Column(COLUMN, sa.Integer, server_default="0", nullable=False))


def downgrade() -> None:
    op.drop_column(TABLE, COLUMN)
