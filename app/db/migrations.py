"""The migrations of this version of the service, and the schemas that it can use."""

import re
from collections.abc import Collection, Iterable
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from sqlalchemy import text

from app.config.files import folder_of

MIGRATIONS = folder_of("migrations")

REVISION = text("SELECT version_num FROM alembic_version")
SCHEMA_VERSION = text("SELECT version_num, oldest_compatible FROM alembic_version")


class SchemaVersion(NamedTuple):
    """The version of a schema. Versions are consecutive numbers of four digits.

    Args:
        revision: the latest migration of the database.
        oldest_compatible: the latest migration of the oldest service that can use the schema.
    """

    revision: str
    oldest_compatible: str


class SchemaState(StrEnum):
    """Whether this version of the service can use a schema, as a sentence without a period."""

    CURRENT = "The database schema is current"
    OLD = "The database schema is not current"
    TOO_NEW = "The database schema requires a newer version of the service"


def state_of(versions: Iterable[SchemaVersion]) -> SchemaState:
    """Return the state of a schema. A newer schema that this version can use is CURRENT."""
    found = list(versions)
    if len(found) != 1:
        return SchemaState.OLD
    ((revision, oldest_compatible),) = found
    if is_newer(revision):
        is_usable = oldest_compatible <= migration_head()
        return SchemaState.CURRENT if is_usable else SchemaState.TOO_NEW
    return SchemaState.CURRENT if revision == migration_head() else SchemaState.OLD


def is_schema_current(versions: Iterable[SchemaVersion]) -> bool:
    """Return whether this version of the service can use a schema."""
    return state_of(versions) is SchemaState.CURRENT


def is_newer(revision: str) -> bool:
    """Return whether a migration belongs to a newer version of the service."""
    return revision.isdigit() and revision > migration_head()


def migration_head() -> str:
    """Return the latest migration of this version."""
    return migration_numbers()[-1]


def first_migrations(tables: Collection[str]) -> dict[str, str]:
    """Return the number of the migration that creates each of some tables.

    It is the first migration that names the table. A test compares this with the migrated database.
    """
    found: dict[str, str] = {}
    for path in sorted((MIGRATIONS / "versions").glob("[0-9]*_*.py")):
        for name in re.findall(r'"(\w+)"', path.read_text()):
            if name in tables:
                found.setdefault(name, path.name[:4])
    return found


@cache
def migration_numbers() -> list[str]:
    """Return all migrations of this version, the oldest first."""
    # Their names tell, and importing Alembic to read the files takes as long as many requests.
    return sorted(path.name[:4] for path in (MIGRATIONS / "versions").glob("[0-9]*_*.py"))
