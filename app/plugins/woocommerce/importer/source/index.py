"""Index of a source: unique values and coupon uses, collected before records are written."""

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime

import orjson

from app.plugins.woocommerce.importer.source.staging import Staging


class SourceIndex:
    """Unique values and coupon uses, stored in the staging file to keep memory constant."""

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

    def uses_beyond_orders(self) -> Iterable[list[tuple[int, str, int]]]:
        """Yield the stored uses that belong to no order, in pages by the ID of the entry."""
        cursor = self._connection.execute(
            """
            SELECT coupon, customer, meta_id FROM (
                SELECT *, row_number() OVER (
                    PARTITION BY coupon, customer ORDER BY meta_id
                ) AS number FROM stored_uses
            ) LEFT JOIN (
                SELECT coupon AS c, customer AS k, count(*) AS uses FROM order_uses GROUP BY 1, 2
            ) ON c = coupon AND k = customer
            WHERE number > coalesce(uses, 0) ORDER BY meta_id
            """
        )
        while rows := cursor.fetchmany(1000):
            yield rows


def _json(values: Iterable[str]) -> str:
    return orjson.dumps(list(values)).decode()
