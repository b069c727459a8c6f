"""Replace the full-text tables of SQLite by indexes, which a search reads from start to end.

An index contains only the search texts, so 100,000 are compared in some milliseconds. A full-text
table kept parts of deleted texts until it was merged, and slowed down each write.
"""

from alembic import op

from app.db.migration_helpers import set_oldest_compatible

revision = "0053"
down_revision = "0052"

SEARCHED = ("users", "coupons", "orders")

CREATE = """
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
ADD = "INSERT INTO {table}_search (rowid, search_text) VALUES (NEW.id, NEW.search_text);"
TAKE = """
INSERT INTO {table}_search ({table}_search, rowid, search_text)
VALUES ('delete', OLD.id, OLD.search_text);
"""


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        return
    for table in SEARCHED:
        for event in ("insert", "update", "delete"):
            op.execute(f"DROP TRIGGER IF EXISTS {table}_search_{event}")
        op.execute(f"DROP TABLE IF EXISTS {table}_search")
        op.create_index(f"ix_{table}_search_sqlite", table, ["search_text"], if_not_exists=True)
    set_oldest_compatible("0053")  # older versions search in these tables


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        return
    set_oldest_compatible("0030")
    for table in SEARCHED:
        op.drop_index(f"ix_{table}_search_sqlite", table)
        add, take = ADD.format(table=table), TAKE.format(table=table)
        for statement in CREATE.format(table=table, add=add, take=take).split(";\n\n"):
            op.execute(statement)
