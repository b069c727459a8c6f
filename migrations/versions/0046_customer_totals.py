"""Keep the order statistics of each customer as sort keys.

A trigger adds the row of each new user. Then batches add those of the users from before, which can
be repeated. The values are computed after the migration, because they depend on the settings.
"""

import re

import sqlalchemy as sa
from alembic import op

from app.db.migration_helpers import release_locks

revision = "0046"
down_revision = "0045"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
SUM = sa.BigInteger().with_variant(sa.Numeric(38, 0), "postgresql")

BATCH = 20_000
"""Number of IDs of users in a batch. Who deletes these users waits for it."""

EVENTS = "insert", "delete", "update"

SQLITE = """
CREATE TRIGGER order_sums_insert AFTER INSERT ON orders WHEN NEW.customer_id IS NOT NULL BEGIN
    INSERT INTO order_sums (customer_id, status, shard, orders, total)
    VALUES (NEW.customer_id, NEW.status, 0, 1, NEW.total)
    ON CONFLICT DO UPDATE SET orders = orders + 1, total = total + excluded.total;
    INSERT INTO stale_totals (customer_id, shard) VALUES (NEW.customer_id, 0) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER order_sums_delete AFTER DELETE ON orders WHEN OLD.customer_id IS NOT NULL BEGIN
    UPDATE order_sums SET orders = orders - 1, total = total - OLD.total
    WHERE customer_id = OLD.customer_id AND status = OLD.status;
    DELETE FROM order_sums
    WHERE customer_id = OLD.customer_id AND status = OLD.status AND orders = 0;
    INSERT INTO stale_totals (customer_id, shard) VALUES (OLD.customer_id, 0) ON CONFLICT DO NOTHING;
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
    INSERT INTO stale_totals (customer_id, shard)
    SELECT OLD.customer_id, 0 WHERE OLD.customer_id IS NOT NULL
    UNION SELECT NEW.customer_id, 0 WHERE NEW.customer_id IS NOT NULL
    ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER customer_totals_insert AFTER INSERT ON users BEGIN
    INSERT INTO customer_totals (customer_id, orders_count, total_spent) VALUES (NEW.id, 0, 0);
END;
"""

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
    INSERT INTO stale_totals (customer_id, shard) VALUES (of_customer, txid_current())
    ON CONFLICT DO NOTHING;
END $$;

CREATE OR REPLACE FUNCTION customer_totals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO customer_totals (customer_id, orders_count, total_spent)
    SELECT id, 0, 0 FROM added;
    RETURN NULL;
END $$;

CREATE TRIGGER customer_totals_insert AFTER INSERT ON users REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION customer_totals();
"""

NEW_PARTS = re.compile(
    "    INSERT INTO stale_totals[^;]*;\n|\nCREATE [A-Z ]* customer_totals.*", re.DOTALL
)
"""What this migration adds to the triggers."""

SQLITE_BEFORE, ADD_ORDER_SUM_BEFORE = (NEW_PARTS.sub("", each) for each in (SQLITE, POSTGRESQL))

ADD_MISSING = """
INSERT INTO customer_totals (customer_id, orders_count, total_spent)
SELECT id, 0, 0 FROM users WHERE id > :after AND id <= :until
"""


def upgrade() -> None:
    op.create_table(
        "customer_totals",
        sa.Column("customer_id", ID, autoincrement=False, nullable=False),
        sa.Column("orders_count", ID, nullable=False),
        sa.Column("total_spent", SUM, nullable=False),
        sa.ForeignKeyConstraint(
            ["customer_id"],
            ["users.id"],
            name=op.f("fk_customer_totals_customer_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("customer_id", name=op.f("pk_customer_totals")),
        sqlite_with_rowid=False,
        if_not_exists=True,  # the migration was interrupted
    )
    for column in ("orders_count", "total_spent"):
        op.create_index(
            f"ix_customer_totals_{column}",
            "customer_totals",
            [column, "customer_id"],
            if_not_exists=True,
        )
    op.create_table(
        "stale_totals",
        sa.Column("customer_id", ID, autoincrement=False, nullable=False),
        sa.Column("shard", ID, autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("customer_id", "shard", name=op.f("pk_stale_totals")),
        sqlite_with_rowid=False,
        if_not_exists=True,
    )
    op.create_table(
        "total_statuses",
        sa.Column("id", ID, autoincrement=False, nullable=False),
        sa.Column("statuses", KEY, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_total_statuses")),
        if_not_exists=True,
    )
    if op.get_bind().dialect.name == "sqlite":
        _replace_triggers(SQLITE)
        _add_missing()
        return
    release_locks()
    op.execute("DROP TRIGGER IF EXISTS customer_totals_insert ON users")
    _execute(POSTGRESQL)
    # The triggers are committed first, and each batch is a transaction of its own.
    with op.get_context().autocommit_block():
        _add_missing()


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP TRIGGER customer_totals_insert ON users")
        op.execute("DROP FUNCTION customer_totals()")
        _execute(ADD_ORDER_SUM_BEFORE)
    else:
        op.execute("DROP TRIGGER customer_totals_insert")
        _replace_triggers(SQLITE_BEFORE)
    for table in ("total_statuses", "stale_totals", "customer_totals"):
        op.drop_table(table)


def _replace_triggers(statements: str) -> None:
    for event in EVENTS:
        op.execute(f"DROP TRIGGER order_sums_{event}")
    _execute(statements)


def _execute(statements: str) -> None:
    for statement in statements.split("\n\n"):
        op.execute(sa.text(statement.replace(":", "\\:")))


def _add_missing() -> None:
    connection = op.get_bind()
    # A user who is deleted meanwhile is left out.
    lock = " FOR KEY SHARE" if connection.dialect.name == "postgresql" else ""
    adding = sa.text(f"{ADD_MISSING}{lock} ON CONFLICT DO NOTHING")
    last = connection.scalar(sa.text("SELECT max(id) FROM users")) or 0
    for after in range(0, last, BATCH):
        connection.execute(adding, {"after": after, "until": after + BATCH})
