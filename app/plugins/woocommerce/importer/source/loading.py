"""Loading of a source into the staging file: from a dump, or from a server."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.plugins.woocommerce.importer.dump.scanner import DumpScanner
from app.plugins.woocommerce.importer.errors import SourceError
from app.plugins.woocommerce.importer.source.server import ServerSource, is_server
from app.plugins.woocommerce.importer.source.staging import Staging
from app.plugins.woocommerce.importer.tables import SOURCE_TABLES, SourceTable

Advance = Callable[[int], None]

REQUIRED = ("users", "usermeta", "posts", "postmeta", "woocommerce_order_items")
"""Tables of every shop."""

_MARK = "woocommerce_order_items"


@dataclass(frozen=True, slots=True)
class Location:
    """The location of a source.

    Args:
        source: the URL of a database, or the path of a file.
        prefix: the prefix of the tables of the shop.
        users_prefix: the prefix of the tables of users, which several shops can share; None for
            ``prefix``.
        database: the database to read if a dump contains several shops.
    """

    source: str
    prefix: str = "wp_"
    users_prefix: str | None = None
    database: str | None = None

    def tables(self) -> dict[str, SourceTable]:
        """Return the tables to read, by their full name."""
        of_users = self.prefix if self.users_prefix is None else self.users_prefix
        return {
            f"{of_users if table.of_users else self.prefix}{name}": table
            for name, table in SOURCE_TABLES.items()
        }

    @property
    def size(self) -> int:
        """The size of the file in bytes; 0 for a server."""
        return 0 if is_server(self.source) else Path(self.source).stat().st_size


def load(
    location: Location, staging: Staging, progress: Advance, warn: Callable[[str], None]
) -> None:
    """Load a source.

    Args:
        progress: called with the number of bytes read so far, or of rows from a server.
        warn: called with a message for the operator.

    Raises:
        SourceError: the source cannot be read, or is not a shop.
        OSError: the file cannot be read.
    """
    tables = location.tables()
    if is_server(location.source):
        server = ServerSource(location.source, tables, staging.take, progress, warn)
        server.read()
        staging.finish("")
        _require(location, tables, {"": server.names})
        return
    scanner = DumpScanner(tables, staging.take, progress)
    scanner.scan(Path(location.source))
    if scanner.lacks_its_end:
        warn("The dump does not end with '-- Dump completed'. It may be incomplete.")
    staging.finish(_require(location, tables, scanner.names))


def _require(location: Location, tables: dict[str, SourceTable], names: dict[str, set[str]]) -> str:
    """Return the database that contains the shop."""
    required = {name for name, table in tables.items() if table.name in REQUIRED}
    found = [database for database, present in names.items() if required <= present]
    if location.database is not None:
        found = [database for database in found if database == location.database]
    if len(found) == 1:
        return found[0]
    if found:
        raise SourceError(
            f"The dump contains several shops, in the databases {', '.join(sorted(found))}. "
            "Choose one with --database."
        )
    everything = set().union(*names.values())
    prefixes = sorted({name.removesuffix(_MARK) for name in everything if name.endswith(_MARK)})
    if prefixes and location.prefix not in prefixes:
        raise SourceError(
            f"There are no tables with the prefix {location.prefix!r}. The tables of a shop have "
            f"the prefix {', '.join(map(repr, prefixes))}: add --prefix {prefixes[0]}"
        )
    missing = sorted(required - everything)
    of_users = {name for name, table in tables.items() if table.of_users}
    if missing and of_users.issuperset(missing) and (others := _prefixes_of_users(everything)):
        raise SourceError(
            f"The table {missing[0]} is missing. Several shops can share user tables, here "
            f"with the prefix {', '.join(map(repr, others))}: add --users-prefix {others[0]}"
        )
    if missing:
        raise SourceError(f"This is not a WooCommerce database. Missing: {', '.join(missing)}.")
    if location.database is not None:
        raise SourceError(f"There is no shop in the database {location.database!r}.")
    raise SourceError("No database of the dump contains all tables of a shop.")


def _prefixes_of_users(names: set[str]) -> list[str]:
    """Return the prefixes for which tables of users and of their metadata exist."""
    found = (name.removesuffix("usermeta") for name in names if name.endswith("usermeta"))
    return sorted(prefix for prefix in found if f"{prefix}users" in names)
