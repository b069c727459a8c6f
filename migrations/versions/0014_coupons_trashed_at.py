"""Record when a coupon was moved to the trash."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

MOMENT = sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql")


def upgrade() -> None:
    op.add_column("coupons", sa.Column("trashed_at", MOMENT, nullable=True))
    # The last change of a coupon in the trash moved it there: it cannot be updated afterwards.
    op.execute("UPDATE coupons SET trashed_at = updated_at WHERE status = 'trash'")


def downgrade() -> None:
    op.drop_column("coupons", "trashed_at")
