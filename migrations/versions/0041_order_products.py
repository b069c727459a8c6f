"""Keep the products of each order.

The triggers keep what is written from now on. Then batches add the products of the orders from
before, which can be repeated. Orders that are written meanwhile have theirs.
"""

import sqlalchemy as sa
from alembic import op

from app.db.migration_helpers import release_locks

revision = "0041"
down_revision = "0040"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

BATCH = 5000
"""Number of IDs of orders in a batch. Writers of these orders wait for it."""

EVENTS = "insert", "update"

POSTGRESQL = """
CREATE OR REPLACE FUNCTION products_of(items json)
RETURNS TABLE (product_id bigint, quantity bigint) LANGUAGE sql AS $$
    SELECT (line ->> 'product_id')::bigint, sum(coalesce((line ->> 'quantity')::bigint, 0))::bigint
    FROM json_array_elements(items) AS line
    WHERE json_typeof(line -> 'product_id') = 'number' GROUP BY 1
$$;

CREATE OR REPLACE FUNCTION order_products() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO order_products (order_id, product_id, quantity)
        SELECT added.id, found.* FROM added, products_of(added.line_items) AS found;
    ELSE
        DELETE FROM order_products WHERE order_id = NEW.id;
        INSERT INTO order_products (order_id, product_id, quantity)
        SELECT NEW.id, found.* FROM products_of(NEW.line_items) AS found;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER order_products_insert AFTER INSERT ON orders REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION order_products();

CREATE TRIGGER order_products_update AFTER UPDATE OF line_items ON orders
FOR EACH ROW WHEN (OLD.line_items::text <> NEW.line_items::text)
EXECUTE FUNCTION order_products();
"""

SQLITE = """
CREATE TRIGGER order_products_insert AFTER INSERT ON orders BEGIN
    INSERT INTO order_products (order_id, product_id, quantity)
    SELECT NEW.id, value ->> 'product_id', sum(coalesce(value ->> 'quantity', 0))
    FROM json_each(NEW.line_items) WHERE json_type(value, '$.product_id') = 'integer' GROUP BY 2;
END;

CREATE TRIGGER order_products_update AFTER UPDATE OF line_items ON orders
WHEN OLD.line_items <> NEW.line_items BEGIN
    DELETE FROM order_products WHERE order_id = NEW.id;
    INSERT INTO order_products (order_id, product_id, quantity)
    SELECT NEW.id, value ->> 'product_id', sum(coalesce(value ->> 'quantity', 0))
    FROM json_each(NEW.line_items) WHERE json_type(value, '$.product_id') = 'integer' GROUP BY 2;
END;
"""

ADD_MISSING = {
    "sqlite": """
INSERT INTO order_products (order_id, product_id, quantity)
SELECT orders.id, value ->> 'product_id', sum(coalesce(value ->> 'quantity', 0))
FROM orders, json_each(orders.line_items)
WHERE orders.id > :after AND orders.id <= :until
    AND json_type(value, '$.product_id') = 'integer'
GROUP BY 1, 2
ON CONFLICT DO NOTHING
""",
    "postgresql": """
INSERT INTO order_products (order_id, product_id, quantity)
SELECT orders.id, found.* FROM orders, products_of(orders.line_items) AS found
WHERE orders.id > :after AND orders.id <= :until
    AND NOT EXISTS (SELECT 1 FROM order_products WHERE order_id = orders.id)
ORDER BY 1
FOR SHARE OF orders
""",
}


def upgrade() -> None:
    op.create_table(
        "order_products",
        sa.Column("order_id", ID, autoincrement=False, nullable=False),
        sa.Column("product_id", ID, autoincrement=False, nullable=False),
        sa.Column("quantity", ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["order_id"],
            ["orders.id"],
            name=op.f("fk_order_products_order_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("order_id", "product_id", name=op.f("pk_order_products")),
        sqlite_with_rowid=False,
        if_not_exists=True,  # the migration was interrupted
    )
    op.create_index(
        "ix_order_products_product",
        "order_products",
        ["product_id", "order_id"],
        if_not_exists=True,
    )
    if op.get_bind().dialect.name == "sqlite":
        _execute(SQLITE)
        _add_missing()
        return
    release_locks()
    for event in EVENTS:
        op.execute(f"DROP TRIGGER IF EXISTS order_products_{event} ON orders")
    _execute(POSTGRESQL)
    # The triggers are committed first, and each batch is a transaction of its own.
    with op.get_context().autocommit_block():
        _add_missing()


def downgrade() -> None:
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    for event in EVENTS:
        op.execute(f"DROP TRIGGER order_products_{event}{' ON orders' if on_postgresql else ''}")
    if on_postgresql:
        op.execute("DROP FUNCTION order_products()")
        op.execute("DROP FUNCTION products_of(json)")
    op.drop_table("order_products")


def _execute(statements: str) -> None:
    for statement in statements.split("\n\n"):
        op.execute(sa.text(statement.replace(":", "\\:")))


def _add_missing() -> None:
    connection = op.get_bind()
    adding = sa.text(ADD_MISSING[connection.dialect.name])
    last = connection.scalar(sa.text("SELECT max(id) FROM orders")) or 0
    for after in range(0, last, BATCH):
        connection.execute(adding, {"after": after, "until": after + BATCH})
