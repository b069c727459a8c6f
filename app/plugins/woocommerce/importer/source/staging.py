"""The rows of a source in a temporary file, so that records can be read by their ID.

A dump contains its tables in alphabetical order, so most meta rows precede their records. Only the
current page of records is in memory.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from app.plugins.woocommerce.importer.tables import Row, SourceError, SourceTable

USED_BY = "used_by"
"""The staged table of coupon uses. A coupon can have hundreds of thousands of uses."""

_SPLIT = {"posts", "wc_orders"}
"""Tables with several kinds of records, which are staged by kind: ``posts:shop_order``."""

_IN = "(SELECT value FROM json_each(?))"

Meta = Mapping[str | None, str | None]
Rows = list[list[Any]]
MetaRows = Sequence[str | None]
"""Alternating keys, values and IDs of metadata, in the order of the source."""
Pages = Mapping[int, Rows]


@contextmanager
def staging() -> Iterator[Staging]:
    """Open a staging file that only its owner can read, and remove it at the end.

    The name of the file is removed immediately, so that the file does not remain if the process is
    killed.
    """
    descriptor, name = tempfile.mkstemp(prefix="shop-import-", suffix=".db")
    os.close(descriptor)
    connection = sqlite3.connect(name, isolation_level=None)
    try:
        connection.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
            "PRAGMA cache_size = -32000; CREATE TABLE opened (file INTEGER);"
        )
        with suppress(OSError):
            Path(name).unlink()
        yield Staging(connection)
    finally:
        connection.close()
        Path(name).unlink(missing_ok=True)


class Staging:
    """Staged rows: a JSON list for each row, by the ID of its record."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._names: dict[tuple[str, str], str] = {}  # tables by database and name
        self._last_ids: dict[tuple[str, str], int] = {}
        self._database = ""

    def take(self, database: str, table: SourceTable, rows: Sequence[Row]) -> None:
        """Store rows of a table, in its columns, or raise SourceError for an ID beyond 64 bits."""
        try:
            if table.is_meta:
                self._take_meta(database, table, rows)
            elif table.name in _SPLIT:
                kinds: dict[str, list[Row]] = {}
                for row in rows:
                    kinds.setdefault(str(row[1]), []).append(row)
                for kind, found in kinds.items():
                    self._take_rows(database, f"{table.name}:{kind}", table, found)
            else:
                self._take_rows(database, table.name, table, rows)
        except (TypeError, ValueError, OverflowError) as error:
            reason = f"A row of the table {table.name} has an ID that is not a 64-bit integer."
            raise SourceError(reason) from error

    def _take_rows(self, database: str, name: str, table: SourceTable, rows: Sequence[Row]) -> None:
        self._note_last_id(database, name, table, rows)
        staged = ((int(row[0] or 0), orjson.dumps(row[1:])) for row in rows)
        self._insert(database, name, staged)

    def _note_last_id(
        self, database: str, name: str, table: SourceTable, rows: Sequence[Row]
    ) -> None:
        if table.primary in table.columns:
            place, key = table.columns.index(table.primary), (database, name)
            highest = max(int(row[place] or 0) for row in rows)
            self._last_ids[key] = max(highest, self._last_ids.get(key, 0))

    def _take_meta(self, database: str, table: SourceTable, rows: Sequence[Row]) -> None:
        """Store keys, values and IDs. Consecutive rows of a record are stored in one row."""
        grouped: list[tuple[int, list[object]]] = []
        used: list[tuple[int, bytes]] = []
        values: list[object] = []
        last: str | None = ""
        for owner, key, value, meta_id in rows:
            if key == "_used_by":
                used.append((int(owner or 0), orjson.dumps([int(meta_id or 0), value])))
            elif owner == last:
                values += (key, value, meta_id)
            else:
                values = [key, value, meta_id]
                grouped.append((int(owner or 0), values))
                last = owner
        self._note_last_id(database, table.name, table, rows)
        staged = ((owner, orjson.dumps(values)) for owner, values in grouped)
        self._insert(database, table.name, staged)
        if used:
            self._insert(database, USED_BY, used)

    def _insert(self, database: str, name: str, rows: Iterable[tuple[int, bytes]]) -> None:
        table = self._names.get((database, name))
        if table is None:
            table = f"t{len(self._names)}"
            self._names[database, name] = table
            self.connection.execute(f"CREATE TABLE {table} (id INTEGER, data BLOB)")
        self.connection.execute("BEGIN")
        self.connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)  # nosec B608  # a constant name
        self.connection.execute("COMMIT")

    def finish(self, database: str) -> None:
        """Select the database to read, and index its staged rows by ID."""
        self._database = database
        for (of, _), table in self._names.items():
            if of == database:
                self.connection.execute(f"CREATE INDEX {table}_id ON {table} (id)")

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        (pages,) = self.connection.execute("PRAGMA page_count").fetchone()
        (size,) = self.connection.execute("PRAGMA page_size").fetchone()
        return int(pages * size)

    def count(self, name: str) -> int:
        """Return the number of records of a table."""
        if (table := self._table(name)) is None:
            return 0
        statement = f"SELECT count(DISTINCT id) FROM {table}"  # nosec B608  # a constant name
        return int(self.connection.execute(statement).fetchone()[0])

    def last_id(self, name: str) -> int:
        """Return the highest primary key of a table, or 0 without rows."""
        return self._last_ids.get((self._database, name), 0)

    def pages(self, name: str, size: int) -> Iterator[dict[int, Rows]]:
        """Yield the rows of a table in pages, sorted by ID."""
        if (table := self._table(name)) is None:
            return
        after = -1
        ids = f"SELECT DISTINCT id FROM {table} WHERE id > ? ORDER BY id LIMIT ?"  # nosec B608  # a constant name
        while found := [row[0] for row in self.connection.execute(ids, (after, size))]:
            yield self.by_id(name, found)
            after = found[-1]

    def by_id(self, name: str, ids: Sequence[int]) -> dict[int, Rows]:
        """Return the rows of some IDs, in their order at the source."""
        found: dict[int, Rows] = {}
        if (table := self._table(name)) is None or not ids:
            return found
        statement = f"SELECT id, data FROM {table} WHERE id IN {_IN} ORDER BY id, rowid"  # nosec B608  # a constant name
        for record_id, data in self.connection.execute(statement, (_json(ids),)):
            found.setdefault(record_id, []).append(orjson.loads(data))
        return found

    def one_by_id(self, name: str, ids: Sequence[int]) -> dict[int, list[Any]]:
        """Return the row of each ID. If a dump contains several, the last row is used."""
        return {record_id: rows[-1] for record_id, rows in self.by_id(name, ids).items()}

    def missing(self, name: str, ids: Sequence[int]) -> list[int]:
        """Return the IDs for which a table has no row."""
        if (table := self._table(name)) is None:
            return list(ids)
        statement = f"SELECT id FROM {table} WHERE id IN {_IN}"  # nosec B608  # a constant name
        present = {row[0] for row in self.connection.execute(statement, (_json(ids),))}
        return [each for each in ids if each not in present]

    def meta_of(self, name: str, ids: Sequence[int]) -> dict[int, Meta]:
        """Return the keys and values of some records."""
        return {record_id: meta_in(rows) for record_id, rows in self.meta_rows(name, ids).items()}

    def meta_rows(self, name: str, ids: Sequence[int]) -> dict[int, MetaRows]:
        """Return keys, values and IDs of all metadata of some records, alternating."""
        return {
            record_id: [value for row in rows for value in row] if len(rows) > 1 else rows[0]
            for record_id, rows in self.by_id(name, ids).items()
        }

    def _table(self, name: str) -> str | None:
        return self._names.get((self._database, name))


def entries_in(rows: MetaRows) -> Iterator[tuple[str | None, str | None, str | None]]:
    """Return key, value and ID of each row of metadata."""
    return zip(rows[::3], rows[1::3], rows[2::3], strict=True)


def meta_in(rows: MetaRows) -> Meta:
    """Return the first value of each key in alternating keys, values and IDs, as WordPress does."""
    return dict(zip(rows[-3::-3], rows[-2::-3], strict=True))


def _json(values: Iterable[int | str]) -> str:
    return orjson.dumps(list(values)).decode()


class SourceIndex:
    """Unique values and coupon uses of a source, collected before records are written.

    They are in the staging file to keep memory constant.
    """

    def __init__(self, staging: Staging) -> None:
        self._connection: sqlite3.Connection = staging.connection
        self._connection.executescript(
            """
            CREATE TABLE unique_values (
                kind TEXT, value TEXT, owner INTEGER, PRIMARY KEY (kind, value)
            ) WITHOUT ROWID;
            CREATE TABLE codes (
                code TEXT PRIMARY KEY, rank TEXT, coupon INTEGER
            ) WITHOUT ROWID;
            CREATE TABLE order_uses (coupon INTEGER, customer TEXT);
            CREATE TABLE stored_uses (coupon INTEGER, customer TEXT, meta_id INTEGER);
            CREATE TABLE beyond_orders (coupon INTEGER, customer TEXT, meta_id INTEGER);
            CREATE INDEX beyond_orders_meta_id ON beyond_orders (meta_id);
            """
        )

    def add_values(self, kind: str, values: Sequence[tuple[str, int]]) -> dict[str, int]:
        """Store unique values of records, and return the first record that has each value."""
        self._connection.executemany(
            "INSERT OR IGNORE INTO unique_values VALUES (?, ?, ?)",
            [(kind, value, owner) for value, owner in values],
        )
        rows = self._connection.execute(
            "SELECT value, owner FROM unique_values WHERE kind = ? "
            "AND value IN (SELECT value FROM json_each(?))",
            (kind, _json(value for value, _ in values)),
        )
        return dict(rows.fetchall())

    def add_code(self, code: str, coupon: int, created: datetime, *, published: bool) -> None:
        """Add the code of a coupon. A published coupon takes precedence, then the newest coupon."""
        rank = f"{int(published)} {created.isoformat()} {coupon:020}"
        self._connection.execute(
            "INSERT INTO codes VALUES (?, ?, ?) ON CONFLICT (code) DO UPDATE "
            "SET rank = excluded.rank, coupon = excluded.coupon WHERE excluded.rank > rank",
            (code, rank, coupon),
        )

    def coupons_of(self, codes: Iterable[str]) -> dict[str, int]:
        """Return the ID at the source of the coupon of each code."""
        rows = self._connection.execute(
            "SELECT code, coupon FROM codes WHERE code IN (SELECT value FROM json_each(?))",
            (_json(codes),),
        )
        return dict(rows.fetchall())

    def add_order_uses(self, uses: Sequence[tuple[int, str]]) -> None:
        """Add uses of coupons by orders: the coupon and the customer."""
        self._connection.executemany("INSERT INTO order_uses VALUES (?, ?)", uses)

    def add_stored_uses(self, uses: Sequence[tuple[int, str, int]]) -> None:
        """Add uses that coupons store: the coupon, the customer and the ID of the entry."""
        self._connection.executemany("INSERT INTO stored_uses VALUES (?, ?, ?)", uses)

    def find_uses_beyond_orders(self) -> int:
        """Find the uses that belong to no order, after all were added. Return their number."""
        return self._connection.execute(_FIND_BEYOND_ORDERS).rowcount

    def uses_beyond_orders(self) -> Iterable[list[tuple[int, str, int]]]:
        """Yield the uses that were found, in pages by the ID of the entry."""
        cursor = self._connection.execute("SELECT * FROM beyond_orders ORDER BY meta_id")
        while rows := cursor.fetchmany(1000):
            yield rows

    def not_beyond(self, ids: Sequence[int]) -> list[int]:
        """Return the IDs of entries that are not stored or that belong to an order."""
        beyond = f"SELECT meta_id FROM beyond_orders WHERE meta_id IN {_IN}"  # nosec B608  # a constant statement
        found = {row[0] for row in self._connection.execute(beyond, (_json(ids),))}
        return [each for each in ids if each not in found]


_FIND_BEYOND_ORDERS = """
    INSERT INTO beyond_orders SELECT coupon, customer, meta_id FROM (
        SELECT *, row_number() OVER (
            PARTITION BY coupon, customer ORDER BY meta_id
        ) AS number FROM stored_uses
    ) LEFT JOIN (
        SELECT coupon AS c, customer AS k, count(*) AS uses FROM order_uses GROUP BY 1, 2
    ) ON c = coupon AND k = customer
    WHERE number > coalesce(uses, 0)
"""
