"""Upgrading the schema of the database, and comparing it with the migrations, for commands."""

from collections.abc import Sequence
from dataclasses import dataclass

from flask import current_app
from sqlalchemy import Connection, inspect

from app.db.migrations import (
    REVISION,
    SCHEMA_VERSION,
    SchemaVersion,
    first_migrations,
    is_newer,
    is_schema_current,
    migration_head,
    migration_numbers,
)
from app.db.search import is_of_models
from app.db.session import db


class NewerSchemaError(Exception):
    """Raised when the schema belongs to a newer version that this version is incompatible with."""


class MixedSchemaError(Exception):
    """Raised when the database has tables of later migrations than it has run."""


@dataclass(slots=True)
class SchemaUpgrade:
    """An upgrade of the schema. ``migrations/env.py`` calls ``is_needed`` while it has the lock."""

    before: str | None = None
    """The latest migration of the database before the upgrade, or None for an empty database."""

    def is_needed(self, connection: Connection) -> bool:
        """Note the latest migration of the database, and return whether others can follow it.

        Raises:
            NewerSchemaError: this version cannot use the schema.
            MixedSchemaError: the database has tables of later migrations.
        """
        found = None
        if inspect(connection).has_table("alembic_version"):
            found = connection.scalar(REVISION)
        if self.before is None:  # the first attempt
            self.before = found
        if found is None or not is_newer(found):
            if found and (later := differences_from(connection, found).later):
                raise MixedSchemaError(
                    f"The database has migration {found}, but tables of later migrations: "
                    f"{', '.join(later)}. {HOW_TO_RESTORE}."
                )
            return True
        versions = [SchemaVersion(*row) for row in connection.execute(SCHEMA_VERSION)]
        if is_schema_current(versions):
            return False
        raise NewerSchemaError(
            f"The database has migration {found} of a newer version of the service, and requires a "
            f"version with migration {versions[0].oldest_compatible} or later. This version has "
            f"{migration_head()}. Install a newer version."
        )

    def description(self) -> str:
        """Return a sentence that says what was done."""
        head = migration_head()
        if self.before == head:
            return f"The database schema is current (migration {head})."
        if self.before and is_newer(self.before):
            return (
                f"The database schema belongs to a newer version (migration {self.before}). This "
                f"version (migration {head}) can use it. Nothing was changed."
            )
        count = sum(number > (self.before or "") for number in migration_numbers())
        applied = f"{count} {'migration' if count == 1 else 'migrations'}"
        if self.before is None:
            return f"The database schema was created with {applied}, up to {head}."
        return f"The database schema was upgraded from {self.before} to {head} with {applied}."


def upgrade_schema() -> SchemaUpgrade:
    """Run all migrations that the database lacks, once no other process migrates it.

    Raises:
        CommandError: the database has an unknown migration.
        NewerSchemaError: this version cannot use the newer schema.
        MixedSchemaError: the database has tables of later migrations than it has run.
    """
    from alembic import command  # noqa: PLC0415  # slow import, rarely needed

    config = current_app.extensions["migrate"].migrate.get_config()
    config.attributes["upgrade"] = upgrade = SchemaUpgrade()
    command.upgrade(config, "head")
    return upgrade


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
