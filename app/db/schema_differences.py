"""Differences between the tables of a database and its latest migration.

A backup from before an upgrade that is restored over the upgraded database leaves newer tables, and
old tables that newer ones refer to. The result is a mixture of two states.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, inspect

from app.db.migrations import first_migrations, is_newer, migration_head, migration_numbers
from app.db.search import is_of_models
from app.db.session import db

HOW_TO_RESTORE = (
    "A backup was probably restored over a newer database. Restore it into an empty database, as "
    "docs/going-back.md describes"
)

_OWN_OF_DATABASE = ("alembic_version", "sqlite_")


@dataclass(frozen=True, slots=True)
class SchemaDifferences:
    """Differences between a database and the schema that its latest migration leaves.

    Attributes:
        missing: tables that the migrations have created and the database lacks, and columns as
            ``table.column``.
        later: tables that only migrations after the next one create. The next migration can have
            been interrupted.
        unknown: tables of no migration of this version, for example of another program.
    """

    missing: Sequence[str] = ()
    later: Sequence[str] = ()
    unknown: Sequence[str] = ()


def differences_from(connection: Connection, revision: str) -> SchemaDifferences:
    """Compare the tables of a database with its latest migration.

    Columns are compared if it is the latest migration of this version. A newer schema can have any
    tables and columns.
    """
    if is_newer(revision):
        return SchemaDifferences()
    models = db.metadatas[None].tables
    created = first_migrations(models.keys())
    inspector = inspect(connection)
    found = {name for name in inspector.get_table_names() if is_of_models(name)}
    following = next((number for number in migration_numbers() if number > revision), "")
    missing = [name for name, number in created.items() if number <= revision and name not in found]
    if revision == migration_head():
        for (_, name), columns in inspector.get_multi_columns().items():
            if name in models:
                stored = {column["name"] for column in columns}
                missing += [f"{name}.{each}" for each in set(models[name].c.keys()) - stored]
    return SchemaDifferences(
        sorted(missing),
        sorted(name for name in found & created.keys() if created[name] > max(revision, following)),
        sorted(name for name in found - created.keys() if not name.startswith(_OWN_OF_DATABASE)),
    )
