"""The migrations of this version of the service."""

from __future__ import annotations

from functools import cache

from app.files import folder_of

MIGRATIONS = folder_of("migrations")


def is_schema_current(versions: set[str]) -> bool:
    """Return whether migrations are the latest of this version of the service, or newer.

    The revisions of migrations are consecutive numbers of four digits.
    """
    return versions == migration_heads() or (
        len(versions) == 1
        and all(version.isdigit() and version > max(migration_heads()) for version in versions)
    )


@cache
def migration_heads() -> set[str]:
    """Return the latest migrations of this version."""
    # Import on first use, because only /readyz needs Alembic and the import is slow.
    from alembic.script import ScriptDirectory  # noqa: PLC0415  # see above

    return set(ScriptDirectory(str(MIGRATIONS)).get_heads())
