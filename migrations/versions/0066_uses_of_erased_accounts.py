"""Keep the hash for which uses of a deleted account count, until the worker has written it to each.

Accounts whose erasure is not complete when this runs have an empty hash: their uses without an
address count again when the worker has cleared them.
"""

import sqlalchemy as sa
from alembic import op

from app.db.migration_helpers import add_columns

revision = "0066"
down_revision = "0065"


def upgrade() -> None:
    column = sa.Column(
        "email_normalized", sa.String(), server_default=sa.text("''"), nullable=False
    )
    add_columns("erased_accounts", column)


def downgrade() -> None:
    op.drop_column("erased_accounts", "email_normalized")
