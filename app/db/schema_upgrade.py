"""Upgrading the schema of the database, for commands."""

from dataclasses import dataclass

from flask import current_app
from sqlalchemy import Connection, inspect

from app.db.migrations import (
    REVISION,
    SCHEMA_VERSION,
    SchemaVersion,
    is_newer,
    is_schema_current,
    migration_head,
    migration_numbers,
)
from app.db.schema_differences import HOW_TO_RESTORE, differences_from


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
