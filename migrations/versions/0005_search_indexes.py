"""Add trigram indexes for searches: FTS5 on SQLite, and pg_trgm on PostgreSQL servers with it."""

import click
import sqlalchemy as sa
from alembic import op
from sqlalchemy.exc import ProgrammingError

revision = "0005"
down_revision = "0004"

SEARCHED = ("users", "coupons", "orders")

# The texts stay in their table. The index is case-sensitive, because they are already lower-cased.
SQLITE = """
CREATE VIRTUAL TABLE {table}_search USING fts5(
    search_text, content='{table}', content_rowid='id', columnsize=0,
    tokenize='trigram case_sensitive 1'
);

INSERT INTO {table}_search ({table}_search) VALUES ('rebuild');

CREATE TRIGGER {table}_search_insert AFTER INSERT ON {table} BEGIN {add} END;

CREATE TRIGGER {table}_search_delete AFTER DELETE ON {table} BEGIN {take} END;

CREATE TRIGGER {table}_search_update AFTER UPDATE OF search_text ON {table}
WHEN OLD.search_text <> NEW.search_text BEGIN {take} {add} END
"""
SQLITE_ADD = """
INSERT INTO {table}_search (rowid, search_text) VALUES (NEW.id, NEW.search_text);
"""
SQLITE_TAKE = """
INSERT INTO {table}_search ({table}_search, rowid, search_text)
VALUES ('delete', OLD.id, OLD.search_text);
"""

POSTGRESQL = "CREATE INDEX ix_{table}_search ON {table} USING gin (search_text gin_trgm_ops)"
WITHOUT = (
    "Searches will read every record, because this user cannot create the extension pg_trgm. "
    "See docs/operations.md."
)


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        if not _has_trigrams():
            click.echo(WITHOUT, err=True)
            return
        for table in SEARCHED:
            op.execute(POSTGRESQL.format(table=table))
        return
    for table in SEARCHED:
        take, add = SQLITE_TAKE.format(table=table), SQLITE_ADD.format(table=table)
        for statement in SQLITE.format(table=table, take=take, add=add).split(";\n\n"):
            op.execute(statement)


def downgrade() -> None:
    for table in SEARCHED:
        if op.get_bind().dialect.name == "postgresql":
            # The extension is kept, because other programs may use it.
            op.execute(f"DROP INDEX IF EXISTS ix_{table}_search")
            continue
        for event in ("insert", "update", "delete"):
            op.execute(f"DROP TRIGGER {table}_search_{event}")
        op.execute(f"DROP TABLE {table}_search")


def _has_trigrams() -> bool:
    connection = op.get_bind()
    offered = "SELECT 1 FROM pg_available_extensions WHERE name = 'pg_trgm'"
    if not connection.execute(sa.text(offered)).first():
        return False
    try:
        with connection.begin_nested():
            connection.execute(sa.text("CREATE EXTENSION IF NOT EXISTS pg_trgm"))
    except ProgrammingError:  # not allowed
        return False
    return True
