"""Rename tables and columns to the terms of the field."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
TIMESTAMP = sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql")

# Table: its columns before and after.
RENAMED = {
    "users": {
        "username_key": "username_normalized",
        "email_key": "email_normalized",
        "name_key": "name_normalized",
    },
    "api_keys": {"ending": "truncated_key"},
    "oauth_nonces": {"sent": "timestamp"},
}

# Table: the column by which its rows are partitioned, and the timestamp that determines the week.
COUNTED = {
    "users": (None, "created_at"),
    "user_roles": ("role", "registered_at"),
    "coupons": ("status", "created_at"),
    "orders": ("status", "created_at"),
}

# The names of the table of counts, of its columns, and of its triggers and functions.
BEFORE = {
    "counts": "tallies",
    "table_name": "kind",
    "partition": "label",
    "shard": "slot",
    "count": "number",
    "prefix": "tally",
}
AFTER = {
    "counts": "row_counts",
    "table_name": "table_name",
    "partition": "partition",
    "shard": "shard",
    "count": "count",
    "prefix": "count_rows",
}

# The Monday on which a week begins, in UTC.
SQLITE_WEEK = "date({timestamp}, 'weekday 0', '-6 days')"
POSTGRESQL_WEEK = "date_trunc('week', {timestamp} AT TIME ZONE 'UTC')::date"

SQLITE_TRIGGERS = """
CREATE TRIGGER {prefix}_{table}_insert AFTER INSERT ON {table} BEGIN {add} END;

CREATE TRIGGER {prefix}_{table}_delete AFTER DELETE ON {table} BEGIN {subtract} END;

CREATE TRIGGER {prefix}_{table}_update AFTER UPDATE OF {columns} ON {table}
WHEN {changed} BEGIN {subtract} {add} END
"""
SQLITE_CHANGE = """
INSERT INTO {counts} ({table_name}, {partition}, week, {shard}, {count})
VALUES ('{table}', {value}, {week}, 0, {change})
ON CONFLICT DO UPDATE SET {count} = {count} + excluded.{count};
"""

# A shard that another transaction has changed is left alone. A new shard has the number of this
# connection, so that no two connections create the same one at the same time.
POSTGRESQL_FUNCTION = """
CREATE FUNCTION {prefix}(of_table text, of_partition text, of_week date, change bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE {counts} SET {count} = {counts}.{count} + change
    WHERE {table_name} = of_table AND {partition} = of_partition AND week = of_week AND {shard} = (
        SELECT {shard} FROM {counts}
        WHERE {table_name} = of_table AND {partition} = of_partition AND week = of_week
        LIMIT 1 FOR UPDATE SKIP LOCKED
    );
    IF NOT FOUND THEN
        INSERT INTO {counts} ({table_name}, {partition}, week, {shard}, {count})
        VALUES (of_table, of_partition, of_week, pg_backend_pid(), change)
        ON CONFLICT ({table_name}, {partition}, week, {shard}) DO UPDATE
        SET {count} = {counts}.{count} + excluded.{count};
    END IF;
END $$
"""
# Called once per statement, regardless of the number of rows that it writes.
POSTGRESQL_TRIGGERS = """
CREATE FUNCTION {prefix}_{table}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        {insert}
    ELSIF TG_OP = 'DELETE' THEN
        {delete}
    ELSE
        {update}
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER {prefix}_{table}_insert AFTER INSERT ON {table}
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION {prefix}_{table}();

CREATE TRIGGER {prefix}_{table}_delete AFTER DELETE ON {table}
REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION {prefix}_{table}();

CREATE TRIGGER {prefix}_{table}_update AFTER UPDATE ON {table}
REFERENCING OLD TABLE AS removed NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION {prefix}_{table}()
"""
POSTGRESQL_CHANGE = """
PERFORM {prefix}('{table}', value, week, change) FROM (
    SELECT value, week, sum(change)::bigint AS change FROM ({rows}) AS rows
    GROUP BY value, week HAVING sum(change) <> 0 ORDER BY value, week
) AS changes;"""
POSTGRESQL_ROWS = "SELECT {value} AS value, {week} AS week, {change} AS change FROM {rows}"


def upgrade() -> None:
    _rename(RENAMED)
    op.drop_index("ix_oauth_nonces_sent", "oauth_nonces")
    op.create_index("ix_oauth_nonces_timestamp", "oauth_nonces", ["timestamp"])
    _move_email_index("email_normalized", before="uq_users_email_key")
    _move_records(("kept_answers", "answer"), ("idempotency_records", "response_body"))
    _move_counts(BEFORE, AFTER)


def downgrade() -> None:
    _move_counts(AFTER, BEFORE)
    _move_records(("idempotency_records", "response_body"), ("kept_answers", "answer"))
    op.drop_index("ix_oauth_nonces_timestamp", "oauth_nonces")
    _rename({table: {new: old for old, new in names.items()} for table, names in RENAMED.items()})
    op.create_index("ix_oauth_nonces_sent", "oauth_nonces", ["sent"])
    _move_email_index("email_key", before="uq_users_email_normalized")


def _is_postgresql() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def _rename(columns: dict[str, dict[str, str]]) -> None:
    # Both databases rename a column in indexes and triggers, too, without reading a row.
    for table, names in columns.items():
        for old, new in names.items():
            op.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")


def _move_email_index(column: str, before: str) -> None:
    after = f"uq_users_{column}"
    if _is_postgresql():
        op.execute(f"ALTER INDEX {before} RENAME TO {after}")
        return
    op.drop_index(before, "users")
    op.create_index(after, "users", [column], unique=True, sqlite_where=sa.text(f"{column} <> ''"))


def _move_records(before: tuple[str, str], after: tuple[str, str]) -> None:
    """Move the stored responses of the last 24 hours to a table with other names."""
    (old, old_body), (new, new_body) = before, after
    op.create_table(
        new,
        sa.Column("id", ID, nullable=False),
        sa.Column("request_hash", sa.String(), nullable=False),
        sa.Column("body_hash", sa.String(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column(new_body, sa.LargeBinary(), nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{new}")),
        sa.UniqueConstraint("request_hash", name=op.f(f"uq_{new}_request_hash")),
    )
    op.create_index(op.f(f"ix_{new}_created_at"), new, ["created_at"])
    columns = "request_hash, body_hash, status, {body}, created_at"
    into, values = columns.format(body=new_body), columns.format(body=old_body)
    op.execute(f"INSERT INTO {new} ({into}) SELECT {values} FROM {old} ORDER BY id")  # noqa: S608  # nosec B608  # our own names
    op.drop_table(old)


def _move_counts(before: dict[str, str], after: dict[str, str]) -> None:
    """Move the counts to a table with other names, and create the triggers that keep them."""
    for table in COUNTED:
        for event in ("insert", "update", "delete"):
            on = f" ON {table}" if _is_postgresql() else ""
            op.execute(f"DROP TRIGGER {before['prefix']}_{table}_{event}{on}")
        if _is_postgresql():
            op.execute(f"DROP FUNCTION {before['prefix']}_{table}()")
    if _is_postgresql():
        op.execute(f"DROP FUNCTION {before['prefix']}(text, text, date, bigint)")
    new, old = after["counts"], before["counts"]
    key = [after["table_name"], after["partition"], "week", after["shard"]]
    op.create_table(
        new,
        sa.Column(after["table_name"], KEY, nullable=False),
        sa.Column(after["partition"], KEY, nullable=False),
        sa.Column("week", sa.Date(), nullable=False),
        sa.Column(after["shard"], ID, autoincrement=False, nullable=False),
        sa.Column(after["count"], ID, nullable=False),
        sa.PrimaryKeyConstraint(*key, name=op.f(f"pk_{new}")),
        sqlite_with_rowid=False,
    )
    names = ("table_name", "partition", "shard", "count")
    into, values = (", ".join(of[name] for name in names) for of in (after, before))
    op.execute(f"INSERT INTO {new} ({into}, week) SELECT {values}, week FROM {old}")  # noqa: S608  # nosec B608  # our own names
    op.drop_table(old)
    if _is_postgresql():
        op.execute(POSTGRESQL_FUNCTION.format(**after))
    for table, (column, timestamp) in COUNTED.items():
        triggers = (_postgresql if _is_postgresql() else _sqlite)(after, table, column, timestamp)
        for statement in triggers.split(";\n\n"):
            op.execute(statement)


def _sqlite(names: dict[str, str], table: str, column: str | None, timestamp: str) -> str:
    def change(row: str, number: int) -> str:
        value = f"{row}.{column}" if column else "''"
        week = SQLITE_WEEK.format(timestamp=f"{row}.{timestamp}")
        return SQLITE_CHANGE.format(**names, table=table, value=value, week=week, change=number)

    columns = [name for name in (timestamp, column) if name]
    return SQLITE_TRIGGERS.format(
        **names,
        table=table,
        columns=", ".join(columns),
        changed=" OR ".join(f"OLD.{name} <> NEW.{name}" for name in columns),
        subtract=change("OLD", -1),
        add=change("NEW", 1),
    )


def _postgresql(names: dict[str, str], table: str, column: str | None, timestamp: str) -> str:
    what = {"value": column or "''", "week": POSTGRESQL_WEEK.format(timestamp=timestamp)}
    added = POSTGRESQL_ROWS.format(**what, change=1, rows="added")
    removed = POSTGRESQL_ROWS.format(**what, change=-1, rows="removed")
    rows = {"insert": added, "delete": removed, "update": f"{removed} UNION ALL {added}"}
    changes = {
        event: POSTGRESQL_CHANGE.format(**names, table=table, rows=rows)
        for event, rows in rows.items()
    }
    return POSTGRESQL_TRIGGERS.format(**names, table=table, **changes)
