"""Add the time of the last edit of a coupon, because each use moves ``updated_at``.

The previous version neither writes nor reads it: a coupon that it edits after a use counts as not
edited in a repeated import from WooCommerce.
"""

from alembic import op
from sqlalchemy import Column

from app.db.migration_helpers import add_columns
from app.db.sql.types import UtcDateTime

revision = "0054"
down_revision = "0053"


def upgrade() -> None:
    add_columns("coupons", Column("edited_at", UtcDateTime(), nullable=True))


def downgrade() -> None:
    op.drop_column("coupons", "edited_at")
