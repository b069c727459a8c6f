"""Index lists that read or sorted many entries.

- The last order of a customer in a status is the last entry of ``ix_orders_customer``. It still
  contains the total, for the sums of the previous version.
"""

from app.db.migration_helpers import replace_index_concurrently

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    customer = ["customer_id", "status", "id", "total"]
    replace_index_concurrently("ix_orders_customer", "orders", customer)


def downgrade() -> None:
    customer = ["customer_id", "status", "total", "id"]
    replace_index_concurrently("ix_orders_customer", "orders", customer)
