"""Index lists that read or sorted many entries, and count redemptions.

- The last order of a customer in a status is the last entry of ``ix_orders_customer_last``.
- Redemptions are counted as in migration 0033: the triggers first, then what is missing.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from app.db.migration_helpers import (
    create_index_concurrently,
    drop_index_concurrently,
    replace_index_concurrently,
)

revision = "0034"
down_revision = "0033"

CONDITIONS = {
    "ix_orders_customer_last": sa.text("customer_id IS NOT NULL"),
    "ix_coupons_code": sa.text("status = 'published'"),
    "ix_redemptions_confirmed": sa.text("status = 'confirmed'"),
}
INDEXES: tuple[tuple[str, str, list[str]], ...] = (
    ("ix_orders_customer_last", "orders", ["customer_id", "status", "id"]),
    ("ix_coupons_status_id", "coupons", ["status", "id"]),
    ("ix_coupons_code", "coupons", ["code", "id", "status"]),
    ("ix_redemptions_expires", "redemptions", ["expires_at", "id"]),
    ("ix_redemptions_updated", "redemptions", ["updated_at", "id", "status", "expires_at"]),
    ("ix_redemptions_confirmed", "redemptions", ["created_at", "id", "status"]),
    ("ix_webhook_deliveries_webhook", "webhook_deliveries", ["webhook_id", "id"]),
    ("ix_webhook_deliveries_state", "webhook_deliveries", ["webhook_id", "state", "id"]),
)
DESCENDING = "ix_redemptions_expires_desc"
EVENTS = "insert", "update", "delete"

POSTGRESQL = """
CREATE OR REPLACE FUNCTION count_rows_redemptions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM count_rows('redemptions', '', week, change) FROM (
            SELECT date_trunc('week', created_at AT TIME ZONE 'UTC')::date AS week,
                count(*) AS change FROM added GROUP BY 1 ORDER BY 1
        ) AS changes;
    ELSIF TG_OP = 'DELETE' THEN
        PERFORM count_rows('redemptions', '', week, change) FROM (
            SELECT date_trunc('week', created_at AT TIME ZONE 'UTC')::date AS week,
                -count(*) AS change FROM removed GROUP BY 1 ORDER BY 1
        ) AS changes;
    ELSE
        PERFORM count_rows(
            'redemptions', '', date_trunc('week', OLD.created_at AT TIME ZONE 'UTC')::date, -1
        );
        PERFORM count_rows(
            'redemptions', '', date_trunc('week', NEW.created_at AT TIME ZONE 'UTC')::date, 1
        );
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER count_rows_redemptions_insert AFTER INSERT ON redemptions
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION count_rows_redemptions();

CREATE TRIGGER count_rows_redemptions_delete AFTER DELETE ON redemptions
REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION count_rows_redemptions();

CREATE TRIGGER count_rows_redemptions_update AFTER UPDATE OF created_at ON redemptions
FOR EACH ROW WHEN (OLD.created_at <> NEW.created_at) EXECUTE FUNCTION count_rows_redemptions();
"""

SQLITE = """
CREATE TRIGGER count_rows_redemptions_insert AFTER INSERT ON redemptions BEGIN
    INSERT INTO row_counts (table_name, partition, week, shard, count)
    VALUES ('redemptions', '', date(NEW.created_at, 'weekday 0', '-6 days'), 0, 1)
    ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;

CREATE TRIGGER count_rows_redemptions_delete AFTER DELETE ON redemptions BEGIN
    INSERT INTO row_counts (table_name, partition, week, shard, count)
    VALUES ('redemptions', '', date(OLD.created_at, 'weekday 0', '-6 days'), 0, -1)
    ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;

CREATE TRIGGER count_rows_redemptions_update AFTER UPDATE OF created_at ON redemptions
WHEN OLD.created_at <> NEW.created_at BEGIN
    INSERT INTO row_counts (table_name, partition, week, shard, count)
    VALUES ('redemptions', '', date(OLD.created_at, 'weekday 0', '-6 days'), 0, -1)
    ON CONFLICT DO UPDATE SET count = count + excluded.count;
    INSERT INTO row_counts (table_name, partition, week, shard, count)
    VALUES ('redemptions', '', date(NEW.created_at, 'weekday 0', '-6 days'), 0, 1)
    ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;
"""

ADD_MISSING = """
INSERT INTO row_counts (table_name, partition, week, shard, count)
SELECT 'redemptions', '', week, {shard}, sum(count) FROM (
    SELECT {week} AS week, count(*) AS count FROM redemptions GROUP BY 1
    UNION ALL
    SELECT week, -sum(count) FROM row_counts WHERE table_name = 'redemptions' GROUP BY 1
) AS differences
GROUP BY week HAVING sum(count) <> 0
"""


def upgrade() -> None:
    created = ["created_at", "id", "status", "expires_at"]
    replace_index_concurrently("ix_redemptions_created", "redemptions", created)
    for name, table, columns in INDEXES:
        options: dict[str, Any] = {}
        if (condition := CONDITIONS.get(name)) is not None:
            options = {"sqlite_where": condition, "postgresql_where": condition}
        create_index_concurrently(name, table, columns, **options)
    if op.get_bind().dialect.name == "sqlite":
        _execute(SQLITE)
        week = "date(created_at, 'weekday 0', '-6 days')"
        op.execute(ADD_MISSING.format(shard="0", week=week))
        return
    # PostgreSQL reads an index backwards with the nulls first.
    last_first = [sa.text("expires_at DESC NULLS LAST"), sa.text("id DESC")]
    create_index_concurrently(DESCENDING, "redemptions", last_first)
    for event in EVENTS:  # the migration was interrupted
        op.execute(f"DROP TRIGGER IF EXISTS count_rows_redemptions_{event} ON redemptions")
    _execute(POSTGRESQL)
    with op.get_context().autocommit_block():
        week = "date_trunc('week', created_at AT TIME ZONE 'UTC')::date"
        op.execute(ADD_MISSING.format(shard="txid_current()", week=week))


def downgrade() -> None:
    replace_index_concurrently("ix_redemptions_created", "redemptions", ["created_at", "id"])
    for name, table, _ in INDEXES:
        drop_index_concurrently(name, table)
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    if on_postgresql:
        drop_index_concurrently(DESCENDING, "redemptions")
    for event in EVENTS:
        on_table = " ON redemptions" if on_postgresql else ""
        op.execute(f"DROP TRIGGER count_rows_redemptions_{event}{on_table}")
    if on_postgresql:
        op.execute("DROP FUNCTION count_rows_redemptions()")
    op.execute("DELETE FROM row_counts WHERE table_name = 'redemptions'")


def _execute(statements: str) -> None:
    for statement in statements.split("\n\n"):
        op.execute(statement)
