"""Count users, roles, coupons and orders per week with triggers."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")

# Table: the column by which its rows are partitioned, and the timestamp that determines the week.
COUNTED = {
    "users": (None, "created_at"),
    "user_roles": ("role", "registered_at"),
    "coupons": ("status", "created_at"),
    "orders": ("status", "created_at"),
}

# The Monday on which a week begins, in UTC.
SQLITE_WEEK = "date({moment}, 'weekday 0', '-6 days')"
POSTGRESQL_WEEK = "date_trunc('week', {moment} AT TIME ZONE 'UTC')::date"

SQLITE = """
CREATE TRIGGER tally_{table}_insert AFTER INSERT ON {table} BEGIN {add} END;

CREATE TRIGGER tally_{table}_delete AFTER DELETE ON {table} BEGIN {take} END;

CREATE TRIGGER tally_{table}_update AFTER UPDATE OF {columns} ON {table}
WHEN {changed} BEGIN {take} {add} END
"""
SQLITE_CHANGE = """
INSERT INTO tallies (kind, label, week, slot, number)
VALUES ('{table}', {label}, {week}, 0, {change})
ON CONFLICT DO UPDATE SET number = number + excluded.number;
"""

# A slot that another transaction has changed is left alone. A new slot has the number of this
# connection, so that no two connections create the same one at the same time.
POSTGRESQL_TALLY = """
CREATE FUNCTION tally(of_kind text, of_label text, of_week date, change bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tallies SET number = number + change
    WHERE kind = of_kind AND label = of_label AND week = of_week AND slot = (
        SELECT slot FROM tallies WHERE kind = of_kind AND label = of_label AND week = of_week
        LIMIT 1 FOR UPDATE SKIP LOCKED
    );
    IF NOT FOUND THEN
        INSERT INTO tallies (kind, label, week, slot, number)
        VALUES (of_kind, of_label, of_week, pg_backend_pid(), change)
        ON CONFLICT (kind, label, week, slot) DO UPDATE
        SET number = tallies.number + excluded.number;
    END IF;
END $$
"""
# Called once per statement, regardless of the number of rows that it writes.
POSTGRESQL = """
CREATE FUNCTION tally_{table}() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE TRIGGER tally_{table}_insert AFTER INSERT ON {table}
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION tally_{table}();

CREATE TRIGGER tally_{table}_delete AFTER DELETE ON {table}
REFERENCING OLD TABLE AS taken FOR EACH STATEMENT EXECUTE FUNCTION tally_{table}();

CREATE TRIGGER tally_{table}_update AFTER UPDATE ON {table}
REFERENCING OLD TABLE AS taken NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION tally_{table}()
"""
POSTGRESQL_CHANGE = """
PERFORM tally('{table}', label, week, change) FROM (
    SELECT label, week, sum(change)::bigint AS change FROM ({rows}) AS rows
    GROUP BY label, week HAVING sum(change) <> 0 ORDER BY label, week
) AS changes;"""
POSTGRESQL_ROWS = "SELECT {label} AS label, {week} AS week, {change} AS change FROM {rows}"

BACKFILL = """
INSERT INTO tallies (kind, label, week, slot, number)
SELECT '{table}', {label}, {week}, 0, count(*) FROM {table} GROUP BY 2, 3
"""


def upgrade() -> None:
    op.create_table(
        "tallies",
        sa.Column("kind", KEY, nullable=False),
        sa.Column("label", KEY, nullable=False),
        sa.Column("week", sa.Date(), nullable=False),
        sa.Column("slot", ID, autoincrement=False, nullable=False),
        sa.Column("number", ID, nullable=False),
        sa.PrimaryKeyConstraint("kind", "label", "week", "slot", name=op.f("pk_tallies")),
        sqlite_with_rowid=False,
    )
    postgresql = op.get_bind().dialect.name == "postgresql"
    if postgresql:
        op.execute(POSTGRESQL_TALLY)
    for table, (label, moment) in COUNTED.items():
        # Create the triggers first, because they block other writers until the commit.
        triggers = (_postgresql if postgresql else _sqlite)(table, label, moment)
        for statement in triggers.split(";\n\n"):
            op.execute(statement)
        week = (POSTGRESQL_WEEK if postgresql else SQLITE_WEEK).format(moment=moment)
        op.execute(BACKFILL.format(table=table, label=label or "''", week=week))


def downgrade() -> None:
    postgresql = op.get_bind().dialect.name == "postgresql"
    for table in COUNTED:
        for event in ("insert", "update", "delete"):
            on = f" ON {table}" if postgresql else ""
            op.execute(f"DROP TRIGGER tally_{table}_{event}{on}")
        if postgresql:
            op.execute(f"DROP FUNCTION tally_{table}()")
    if postgresql:
        op.execute("DROP FUNCTION tally(text, text, date, bigint)")
    op.drop_table("tallies")


def _sqlite(table: str, column: str | None, moment: str) -> str:
    def change(row: str, number: int) -> str:
        label = f"{row}.{column}" if column else "''"
        week = SQLITE_WEEK.format(moment=f"{row}.{moment}")
        return SQLITE_CHANGE.format(table=table, label=label, week=week, change=number)

    columns = [name for name in (moment, column) if name]
    return SQLITE.format(
        table=table,
        columns=", ".join(columns),
        changed=" OR ".join(f"OLD.{name} <> NEW.{name}" for name in columns),
        take=change("OLD", -1),
        add=change("NEW", 1),
    )


def _postgresql(table: str, column: str | None, moment: str) -> str:
    what = {"label": column or "''", "week": POSTGRESQL_WEEK.format(moment=moment)}
    added = POSTGRESQL_ROWS.format(**what, change=1, rows="added")
    taken = POSTGRESQL_ROWS.format(**what, change=-1, rows="taken")
    rows = {"insert": added, "delete": taken, "update": f"{taken} UNION ALL {added}"}
    changes = {
        event: POSTGRESQL_CHANGE.format(table=table, rows=rows) for event, rows in rows.items()
    }
    return POSTGRESQL.format(table=table, **changes)
