"""Add indexes for lists of large shops, unique order keys and the state of ``shop-api demo``."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql")

# The columns of each index, before and after.
CHANGED = {
    "ix_users_updated": ("users", ["updated_at", "id"], ["updated_at", "id", "created_at"]),
    "ix_orders_created": ("orders", ["created_at", "id"], ["created_at", "id", "status"]),
    "ix_orders_updated": ("orders", ["updated_at", "id"], ["updated_at", "id", "status"]),
    "ix_orders_total": ("orders", ["total", "id"], ["total", "id", "status"]),
}
ADDED = {
    "ix_coupons_status_type": ("coupons", ["status", "type", "created_at", "id"]),
    "ix_orders_id": ("orders", ["id", "status"]),
}
GUESTS = sa.text("customer_id IS NULL")

# The first of several orders with one key keeps it. The ID is appended to the other keys.
UNIQUE_KEYS = """
UPDATE orders SET order_key = order_key || '-' || id WHERE id IN (
    SELECT id FROM (
        SELECT id, row_number() OVER (PARTITION BY order_key ORDER BY id) AS place FROM orders
    ) AS keys WHERE place > 1
)
"""


def upgrade() -> None:
    while op.get_bind().execute(sa.text(UNIQUE_KEYS)).rowcount:
        pass  # a new key can be in use by another order
    op.create_index("uq_orders_order_key", "orders", ["order_key"], unique=True)
    for name, (table, _, columns) in CHANGED.items():
        op.drop_index(name, table)
        op.create_index(name, table, columns)
    for name, (table, columns) in ADDED.items():
        op.create_index(name, table, columns)
    op.create_index(
        "ix_orders_guests",
        "orders",
        ["created_at", "id"],
        sqlite_where=GUESTS,
        postgresql_where=GUESTS,
    )
    numbers = (
        f"{name}{suffix}"
        for suffix in ("", "_loaded")
        for name in ("customers", "coupons", "orders")
    )
    firsts = (f"first_{name}" for name in ("customer", "coupon", "order"))
    op.create_table(
        "demo_runs",
        sa.Column("id", ID, nullable=False),
        sa.Column("seed", ID, nullable=False),
        sa.Column("present", MOMENT, nullable=False),
        *(sa.Column(name, ID, nullable=False) for name in (*numbers, *firsts)),
        sa.Column("finished_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_demo_runs")),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    op.drop_table("demo_runs")
    op.drop_index("ix_orders_guests", "orders")
    for name, (table, _) in ADDED.items():
        op.drop_index(name, table)
    for name, (table, columns, _) in CHANGED.items():
        op.drop_index(name, table)
        op.create_index(name, table, columns)
    op.drop_index("uq_orders_order_key", "orders")
