"""Operations for migrations: locks of tables in use, indexes, and compatible versions.

Released migrations use these functions, so what they do to a database must not change.
"""

import re
from collections.abc import Sequence
from typing import Any

from alembic import op
from alembic.util import CommandError
from sqlalchemy import Column, inspect, text

from app.db.sql.databases import uses_sqlite

SECOND_LOCK_MILLISECONDS = 200
"""How long a migration waits for the lock of a table while it keeps requests from another."""


def release_locks() -> None:
    """Commit what a migration has done on PostgreSQL, so that requests need not wait for it.

    A request that waits for a lock of a migration keeps its own locks. Both wait for each other if
    the migration then needs a stronger lock, or one of another table. So each table that requests
    use is changed in a transaction of its own, and what comes before is not done again when the
    migration is interrupted.
    """
    if _is_postgresql():
        with op.get_context().autocommit_block():
            pass


def has_table(name: str) -> bool:
    """Return whether a table exists, because the migration was interrupted after its creation."""
    return inspect(op.get_bind()).has_table(name)


def add_columns(table: str, *columns: Column[object]) -> None:
    """Add the columns that a table lacks, and release its lock on PostgreSQL."""
    known = {column["name"] for column in inspect(op.get_bind()).get_columns(table)}
    for column in columns:
        if column.name not in known:
            op.add_column(table, column._copy())
    release_locks()


def create_index_concurrently(
    name: str, table: str, columns: Sequence[Any], **options: Any
) -> None:
    """Create an index without blocking writes on PostgreSQL.

    The transaction of the migration is committed first. If the migration is interrupted and runs
    again, the index is kept if it is complete and created again if it is invalid.

    Args:
        name: a name that no earlier index of the table had. Otherwise, use
            ``replace_index_concurrently``.
        columns: names of columns, or expressions.
        options: more arguments of ``op.create_index``. A condition needs both ``sqlite_where`` and
            ``postgresql_where``.
    """
    if not _is_postgresql():
        op.create_index(name, table, columns, **options)
        return
    with op.get_context().autocommit_block():
        is_valid = op.get_bind().scalar(_IS_VALID, {"name": name})
        if is_valid is False:
            _drop(name, table)
        if not is_valid:
            op.create_index(name, table, columns, postgresql_concurrently=True, **options)


def drop_index_concurrently(name: str, table: str) -> None:
    """Drop an index, if it exists, without blocking writes on PostgreSQL.

    The transaction of the migration is committed first.
    """
    if not _is_postgresql():
        op.drop_index(name, table, if_exists=True)
        return
    with op.get_context().autocommit_block():
        _drop(name, table)


def replace_index_concurrently(
    name: str, table: str, columns: Sequence[Any], **options: Any
) -> None:
    """Create an index in place of the one with the same name, which serves queries until then.

    The arguments are those of ``create_index_concurrently``.
    """
    if not _is_postgresql():
        op.drop_index(name, table, if_exists=True)
        op.create_index(name, table, columns, **options)
        return
    create_index_concurrently(f"{name}_new", table, columns, **options)
    drop_index_concurrently(name, table)
    op.execute(f'ALTER INDEX "{name}_new" RENAME TO "{name}"')


def drop_foreign_key(name: str, table: str, target: str) -> None:
    """Drop a foreign key, if it exists. A key on delete SET NULL, for ``restore_foreign_key``.

    PostgreSQL locks both tables. It gets the second lock while it keeps requests from the first
    table, and one of them may use the second. So this locks the target first, as requests do, and
    gives both up before the server detects a deadlock (``deadlock_timeout``, 1 s).
    The migration then runs again.

    SQLite cannot drop it. Its text is removed from that of the table, which SQLite documents for
    constraints that change no row, instead of a copy of the table with all its indexes.
    """
    if _is_postgresql():
        op.execute(f'LOCK TABLE "{target}" IN ACCESS EXCLUSIVE MODE')
        op.execute(f"SET LOCAL lock_timeout = '{SECOND_LOCK_MILLISECONDS}ms'")
        op.execute(f'LOCK TABLE "{table}" IN ACCESS EXCLUSIVE MODE')
        op.execute(f'ALTER TABLE "{table}" DROP CONSTRAINT IF EXISTS "{name}"')
        release_locks()
        return
    _replace_in_table(
        table, rf",\s*CONSTRAINT {name} FOREIGN KEY\([^()]*\)[^(]*\([^()]*\)[^,)]*", ""
    )


def restore_foreign_key(name: str, table: str, column: str, target: str) -> None:
    """Add a foreign key again that ``drop_foreign_key`` has dropped."""
    key = f"FOREIGN KEY({column}) REFERENCES {target} (id) ON DELETE SET NULL"
    if _is_postgresql():
        op.execute(f'ALTER TABLE "{table}" ADD CONSTRAINT "{name}" {key}')
        return
    _replace_in_table(table, r"\s*\)\s*$", f", \n\tCONSTRAINT {name} {key}\n)")


def _replace_in_table(table: str, pattern: str, replacement: str) -> None:
    """Replace one place in the text of a table on SQLite."""
    bind = op.get_bind()
    this = {"name": table}
    found = bind.scalar(text("SELECT sql FROM sqlite_schema WHERE name = :name"), this)
    changed, number = re.subn(pattern, replacement, found)
    if number != 1:
        raise CommandError(f"The table {table} has an unexpected form.")
    bind.exec_driver_sql("PRAGMA writable_schema = ON")
    statement = text("UPDATE sqlite_schema SET sql = :sql WHERE type = 'table' AND name = :name")
    bind.execute(statement, this | {"sql": changed})
    version = bind.exec_driver_sql("PRAGMA schema_version").scalar() or 0
    bind.exec_driver_sql(
        f"PRAGMA schema_version = {version + 1}"
    )  # other connections read it again
    bind.exec_driver_sql("PRAGMA writable_schema = RESET")


def set_oldest_compatible(revision: str) -> None:
    """Set the oldest version of the service that can use the schema, by its latest migration.

    A migration that removes what an older version needs calls this. Older versions then report
    that they are not ready. ``downgrade`` sets the revision that was set before.
    """
    statement = text("UPDATE alembic_version SET oldest_compatible = :revision")
    op.get_bind().execute(statement, {"revision": revision})


def _is_postgresql() -> bool:
    return not uses_sqlite(op.get_bind())


def _drop(name: str, table: str) -> None:
    op.drop_index(name, table, if_exists=True, postgresql_concurrently=True)


_IS_VALID = text("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:name)")
