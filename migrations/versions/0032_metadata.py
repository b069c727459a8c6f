"""Add metadata of coupons, customers, orders and items of orders."""

import sqlalchemy as sa
from alembic import op

from app.db.migration_helpers import add_columns, has_table, release_locks

revision = "0032"
down_revision = "0031"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")

# Table of metadata: column and table of the records.
RECORDS = {
    "coupon_metadata": ("coupon_id", "coupons"),
    "customer_metadata": ("customer_id", "users"),
    "order_metadata": ("order_id", "orders"),
    "item_metadata": ("order_id", "orders"),
}
ITEMS = "item_metadata"


def upgrade() -> None:
    for table in ("coupons", "users", "orders"):
        number = sa.Column("revision", ID, server_default=sa.text("0"), nullable=False)
        add_columns(table, number)
    for name, (column, records) in RECORDS.items():
        if not has_table(name):
            _create(name, column, records)
            release_locks()


def _create(name: str, column: str, records: str) -> None:
    item, found = sa.Column("item_id", ID, nullable=False), sa.Column("found_value", KEY)
    op.create_table(
        name,
        sa.Column("id", ID, nullable=False),
        sa.Column(column, ID, nullable=False),
        item if name == ITEMS else found,
        sa.Column("key", KEY, nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("internal", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.ForeignKeyConstraint(
            [column], [f"{records}.id"], name=op.f(f"fk_{name}_{column}"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{name}")),
        sqlite_autoincrement=True,
    )
    op.create_index(f"ix_{name}_{column.removesuffix('_id')}", name, [column, "id"])
    if name != ITEMS:
        op.create_index(f"ix_{name}_found", name, ["key", "found_value", column])


def downgrade() -> None:
    for table in ("coupons", "users", "orders"):
        # SQLite also drops a column in place, because a copy of the table would lose its triggers.
        op.execute(f"ALTER TABLE {table} DROP COLUMN revision")
    for name in RECORDS:
        op.drop_table(name)
