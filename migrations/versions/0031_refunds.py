"""Add refunds, and the payment and origin of orders.

All new columns have defaults, so that the previous release can write during an upgrade. ``items``
and ``fees`` of the orders that it writes stay null until a sweep of the worker.
"""

from contextlib import nullcontext

import sqlalchemy as sa
from alembic import op

from app.db.migration_helpers import add_columns, create_index_concurrently, has_table

revision = "0031"
down_revision = "0030"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
TIME = sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql")

EMPTY = sa.text("''")

BATCH = 2000  # writers of these orders wait for it

NEW_COLUMNS = {
    "orders": (
        sa.Column("transaction_id", KEY, server_default=EMPTY, nullable=False),
        sa.Column("paid_at", TIME),
        sa.Column("created_via", KEY, server_default=sa.text("'rest-api'"), nullable=False),
        sa.Column("parent_id", ID),
        sa.Column("prices_include_tax", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("discount_tax", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cart_hash", KEY, server_default=EMPTY, nullable=False),
        sa.Column("version", KEY, server_default=EMPTY, nullable=False),
        sa.Column("total_refunded", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("items", sa.BigInteger()),
        sa.Column("fees", sa.BigInteger()),
    ),
    "redemptions": (sa.Column("confirmed_at", TIME),),
    "order_notes": (sa.Column("author", KEY, server_default=EMPTY, nullable=False),),
}

_CENTS = "CAST(replace({}, '.', '') AS {integer})"
_SUM = "(SELECT coalesce(sum({}), 0) FROM {each}({lists}) AS item)"


def _figures() -> dict[str, str]:
    """Return the expressions that compute the figures of an order from its items."""
    if op.get_bind().dialect.name == "postgresql":
        words = {"each": "json_array_elements", "integer": "bigint"}
        value, largest = "(item.value ->> '{}')", "greatest"
    else:
        words = {"each": "json_each", "integer": "INTEGER"}
        value, largest = "json_extract(item.value, '$.{}')", "max"

    def cents(name: str) -> str:
        return f"coalesce({_CENTS.format(value.format(name), **words)}, 0)"

    units = f"CAST({value.format('quantity')} AS {words['integer']})"
    discounts = f"{cents('subtotal_tax')} - {cents('total_tax')}"
    lines, fees = {"lists": "line_items", **words}, {"lists": "fee_lines", **words}
    return {
        "items": _SUM.format(units, **lines),
        "fees": _SUM.format(cents("total"), **fees),
        "discount_tax": f"{largest}(0, {_SUM.format(discounts, **lines)})",
    }


def _in_batches(table: str, values: dict[str, str], condition: str) -> None:
    """Update the rows of a table. On PostgreSQL each batch is a transaction of its own.

    On SQLite the migration stays one transaction, so that concurrent upgrades wait for each other.
    """
    bind = op.get_bind()
    on_postgresql = bind.dialect.name == "postgresql"
    rows = sa.table(table, sa.column("id"), *map(sa.column, values))
    new = {name: sa.text(expression) for name, expression in values.items()}
    last = bind.scalar(sa.select(sa.func.max(rows.c.id))) or 0
    with op.get_context().autocommit_block() if on_postgresql else nullcontext():
        for first in range(1, last + 1, BATCH):
            of_batch = rows.c.id.between(first, first + BATCH - 1)
            changed = sa.update(rows).where(of_batch, sa.text(condition))
            op.get_bind().execute(changed.values(new))


def _add_refunds() -> None:
    op.create_table(
        "order_refunds",
        sa.Column("id", ID, nullable=False),
        sa.Column("order_id", ID, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("reason", KEY, nullable=False),
        sa.Column("refunded_by", ID),
        sa.Column("line_items", sa.JSON(), nullable=False),
        sa.CheckConstraint("amount > 0", name=op.f("ck_order_refunds_amount_positive")),
        sa.ForeignKeyConstraint(
            ["order_id"],
            ["orders.id"],
            name=op.f("fk_order_refunds_order_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["refunded_by"],
            ["users.id"],
            name=op.f("fk_order_refunds_refunded_by"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_order_refunds")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_order_refunds_order", "order_refunds", ["order_id", "id"])
    op.create_index("ix_order_refunds_created", "order_refunds", ["created_at", "id"])
    op.create_index("ix_order_refunds_updated", "order_refunds", ["updated_at", "id"])
    op.create_index("ix_order_refunds_user", "order_refunds", ["refunded_by"])


def _create_partial_index(name: str, column: str, condition: str) -> None:
    where = sa.text(condition)
    create_index_concurrently(name, "orders", [column], sqlite_where=where, postgresql_where=where)


def upgrade() -> None:
    for table, columns in NEW_COLUMNS.items():
        add_columns(table, *columns)
    if not has_table("order_refunds"):
        _add_refunds()
    _create_partial_index("ix_orders_parent", "parent_id", "parent_id IS NOT NULL")
    _create_partial_index("ix_orders_without_figures", "id", "items IS NULL")
    _in_batches("orders", _figures(), "items IS NULL")
    _in_batches(
        "redemptions",
        {"confirmed_at": "updated_at"},
        "status = 'confirmed' AND confirmed_at IS NULL",
    )


def downgrade() -> None:
    op.drop_index("ix_orders_parent", "orders")
    op.drop_index("ix_orders_without_figures", "orders")
    # SQLite also drops columns in place, because a copy of the table would lose its triggers.
    for table, columns in NEW_COLUMNS.items():
        for column in columns:
            op.execute(f"ALTER TABLE {table} DROP COLUMN {column.name}")
    op.drop_table("order_refunds")
