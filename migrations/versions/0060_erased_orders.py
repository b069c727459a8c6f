"""Add the time when the personal data of an order was erased.

The previous release can write personal data to an erased order.
"""

import sqlalchemy as sa
from alembic import op

from app.db.migration_helpers import add_columns

revision = "0060"
down_revision = "0059"


def upgrade() -> None:
    add_columns("orders", sa.Column("erased_at", sa.DateTime(timezone=True)))


def downgrade() -> None:
    op.drop_column("orders", "erased_at")
