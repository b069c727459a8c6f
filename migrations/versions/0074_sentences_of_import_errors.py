"""Store the errors of lines as data, so that pages can show them in their language."""

import sqlalchemy as sa
from alembic import op

revision = "0074"
down_revision = "0073"


def upgrade() -> None:
    op.add_column("import_errors", sa.Column("sentence", sa.String()))


def downgrade() -> None:
    op.drop_column("import_errors", "sentence")
