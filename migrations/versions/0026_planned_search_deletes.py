"""Plan the delete of many search texts each time, on PostgreSQL.

A trigger keeps the plan of its first call. If that call deleted nothing from an empty table, a later
one compared each of 10,000 deleted records with each search text, which took a minute.
"""

from alembic import op

revision = "0026"
down_revision = "0025"

SEARCHED = ("users", "coupons", "orders")

FUNCTION = """
CREATE OR REPLACE FUNCTION {table}_search() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO {table}_search SELECT id, search_text FROM added;
    ELSIF TG_OP = 'DELETE' THEN
        {delete};
    ELSE
        UPDATE {table}_search SET rowid = NEW.id, search_text = NEW.search_text
        WHERE rowid = OLD.id;
    END IF;
    RETURN NULL;
END $$
"""
DELETE = "DELETE FROM {table}_search USING taken WHERE rowid = taken.id"


def upgrade() -> None:
    _replace(f"EXECUTE '{DELETE}'")


def downgrade() -> None:
    _replace(DELETE)


def _replace(delete: str) -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    for table in SEARCHED:
        op.execute(FUNCTION.format(table=table, delete=delete.format(table=table)))
