"""Let lists of a period of changes be read from the indexes of their order alone."""

from app.db.migration_helpers import replace_index_concurrently

revision = "0048"
down_revision = "0047"


def upgrade() -> None:
    replace_index_concurrently(
        "ix_orders_created", "orders", ["created_at", "id", "status", "updated_at"]
    )
    replace_index_concurrently("ix_users_created", "users", ["created_at", "id", "updated_at"])


def downgrade() -> None:
    replace_index_concurrently("ix_orders_created", "orders", ["created_at", "id", "status"])
    replace_index_concurrently("ix_users_created", "users", ["created_at", "id"])
