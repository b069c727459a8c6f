"""Keep the number and total of the orders of each customer by status.

The triggers count what is written from now on. Then batches add the orders from before. A batch is a
single statement, so it sees the orders and the sums of the triggers at one moment, and adds exactly
the difference, while others write. It can be repeated.

A new shard of ``row_counts`` gets the number of its transaction, because that of the connection can
exist: a connection whose shard another one had changed waited for its commit.
"""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
SUM = sa.BigInteger().with_variant(sa.Numeric(38, 0), "postgresql")

BATCH = 20_000
"""Number of orders in a batch. All orders of a customer are in the same one."""

EVENTS = "insert", "update", "delete"

COUNT_ROWS = """
CREATE OR REPLACE FUNCTION count_rows(of_table text, of_partition text, of_week date, change bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE row_counts SET count = row_counts.count + change
    WHERE table_name = of_table AND partition = of_partition AND week = of_week AND shard = (
        SELECT shard FROM row_counts
        WHERE table_name = of_table AND partition = of_partition AND week = of_week
        LIMIT 1 FOR UPDATE SKIP LOCKED
    );
    IF NOT FOUND THEN
        INSERT INTO row_counts (table_name, partition, week, shard, count)
        VALUES (of_table, of_partition, of_week, txid_current(), change);
    END IF;
END $$;
"""
COUNT_ROWS_BEFORE = COUNT_ROWS.replace(
    "txid_current(), change);",
    """pg_backend_pid(), change)
        ON CONFLICT (table_name, partition, week, shard) DO UPDATE
        SET count = row_counts.count + excluded.count;""",
)

POSTGRESQL = """
CREATE OR REPLACE FUNCTION add_order_sum(
    of_customer bigint, of_status text, more_orders bigint, more_total numeric
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    changed order_sums;
BEGIN
    UPDATE order_sums SET orders = orders + more_orders, total = total + more_total
    WHERE customer_id = of_customer AND status = of_status AND shard = (
        SELECT shard FROM order_sums WHERE customer_id = of_customer AND status = of_status
        LIMIT 1 FOR UPDATE SKIP LOCKED
    ) RETURNING * INTO changed;
    IF NOT FOUND THEN
        INSERT INTO order_sums (customer_id, status, shard, orders, total)
        VALUES (of_customer, of_status, txid_current(), more_orders, more_total);
    ELSIF changed.orders = 0 AND changed.total = 0 THEN
        DELETE FROM order_sums
        WHERE customer_id = of_customer AND status = of_status AND shard = changed.shard;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION order_sums() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_order_sum(customer_id, status, orders, total) FROM (
            SELECT customer_id, status, count(*) AS orders, sum(total) AS total FROM added
            WHERE customer_id IS NOT NULL GROUP BY customer_id, status
        ) AS changes;
    ELSIF TG_OP = 'DELETE' THEN
        PERFORM add_order_sum(customer_id, status, orders, total) FROM (
            SELECT customer_id, status, -count(*) AS orders, -sum(total) AS total FROM removed
            WHERE customer_id IS NOT NULL GROUP BY customer_id, status
        ) AS changes;
    ELSE
        PERFORM add_order_sum(customer_id, status, orders, total) FROM (
            SELECT customer_id, status, sum(orders)::bigint AS orders, sum(total) AS total FROM (
                SELECT customer_id, status, -1 AS orders, -total AS total FROM removed
                UNION ALL
                SELECT customer_id, status, 1 AS orders, total FROM added
            ) AS rows WHERE customer_id IS NOT NULL GROUP BY customer_id, status
            HAVING sum(orders) <> 0 OR sum(total) <> 0
        ) AS changes;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER order_sums_insert AFTER INSERT ON orders REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION order_sums();

CREATE TRIGGER order_sums_delete AFTER DELETE ON orders REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION order_sums();

CREATE TRIGGER order_sums_update AFTER UPDATE ON orders
REFERENCING OLD TABLE AS removed NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION order_sums();
"""

SQLITE = """
CREATE TRIGGER order_sums_insert AFTER INSERT ON orders WHEN NEW.customer_id IS NOT NULL BEGIN
    INSERT INTO order_sums (customer_id, status, shard, orders, total)
    VALUES (NEW.customer_id, NEW.status, 0, 1, NEW.total)
    ON CONFLICT DO UPDATE SET orders = orders + 1, total = total + excluded.total;
END;

CREATE TRIGGER order_sums_delete AFTER DELETE ON orders WHEN OLD.customer_id IS NOT NULL BEGIN
    UPDATE order_sums SET orders = orders - 1, total = total - OLD.total
    WHERE customer_id = OLD.customer_id AND status = OLD.status;
    DELETE FROM order_sums
    WHERE customer_id = OLD.customer_id AND status = OLD.status AND orders = 0;
END;

CREATE TRIGGER order_sums_update AFTER UPDATE OF customer_id, status, total ON orders
WHEN OLD.customer_id IS NOT NEW.customer_id OR OLD.status <> NEW.status OR OLD.total <> NEW.total
BEGIN
    UPDATE order_sums SET orders = orders - 1, total = total - OLD.total
    WHERE customer_id = OLD.customer_id AND status = OLD.status;
    DELETE FROM order_sums
    WHERE customer_id = OLD.customer_id AND status = OLD.status AND orders = 0;
    INSERT INTO order_sums (customer_id, status, shard, orders, total)
    SELECT NEW.customer_id, NEW.status, 0, 1, NEW.total WHERE NEW.customer_id IS NOT NULL
    ON CONFLICT DO UPDATE SET orders = orders + 1, total = total + excluded.total;
END;
"""

ADD_MISSING = """
INSERT INTO order_sums (customer_id, status, shard, orders, total)
SELECT customer_id, status, {shard}, sum(orders), sum(total) FROM (
    SELECT customer_id, status, count(*) AS orders, sum(total) AS total FROM orders
    WHERE customer_id > :after AND customer_id <= :until GROUP BY customer_id, status
    UNION ALL
    SELECT customer_id, status, -sum(orders), -sum(total) FROM order_sums
    WHERE customer_id > :after AND customer_id <= :until GROUP BY customer_id, status
) AS differences
GROUP BY customer_id, status HAVING sum(orders) <> 0 OR sum(total) <> 0
"""
LAST_OF_BATCH = """
SELECT customer_id FROM orders WHERE customer_id > :after ORDER BY customer_id
LIMIT 1 OFFSET :number
"""
LAST = "SELECT max(customer_id) FROM orders"


def upgrade() -> None:
    op.create_table(
        "order_sums",
        sa.Column("customer_id", ID, autoincrement=False, nullable=False),
        sa.Column("status", KEY, nullable=False),
        sa.Column("shard", ID, autoincrement=False, nullable=False),
        sa.Column("orders", ID, nullable=False),
        sa.Column("total", SUM, nullable=False),
        sa.PrimaryKeyConstraint("customer_id", "status", "shard", name=op.f("pk_order_sums")),
        sqlite_with_rowid=False,
        if_not_exists=True,  # the migration was interrupted
    )
    if op.get_bind().dialect.name == "sqlite":
        _execute(SQLITE)
        _add_missing("0")
        return
    op.execute(COUNT_ROWS)
    for event in EVENTS:
        op.execute(f"DROP TRIGGER IF EXISTS order_sums_{event} ON orders")
    _execute(POSTGRESQL)
    # The triggers are committed first, and each batch is a transaction of its own.
    with op.get_context().autocommit_block():
        _add_missing("txid_current()")


def downgrade() -> None:
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    for event in EVENTS:
        op.execute(f"DROP TRIGGER order_sums_{event}{' ON orders' if on_postgresql else ''}")
    if on_postgresql:
        op.execute("DROP FUNCTION order_sums()")
        op.execute("DROP FUNCTION add_order_sum(bigint, text, bigint, numeric)")
        op.execute(COUNT_ROWS_BEFORE)
    op.drop_table("order_sums")


def _execute(statements: str) -> None:
    for statement in statements.split("\n\n"):
        op.execute(statement)


def _add_missing(shard: str) -> None:
    connection = op.get_bind()
    last, after = connection.scalar(sa.text(LAST)), 0
    while last is not None and after < last:
        of_batch = sa.text(LAST_OF_BATCH), {"after": after, "number": BATCH}
        until = connection.scalar(*of_batch) or last
        batch = sa.text(ADD_MISSING.format(shard=shard))
        connection.execute(batch, {"after": after, "until": until})
        after = until
