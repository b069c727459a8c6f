"""Export of the records that match, to a file that is complete or does not exist."""

import csv
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import IO

import orjson
from sqlalchemy import ColumnElement, Connection, Executable, func, select

from app.db import timeouts
from app.db.read_pool import Parameters, ReadRow, stream_connection
from app.db.records import Record
from app.import_export.csv_format import flattened
from app.import_export.export_kinds import PASSWORD_HASH, Kind, with_items_metadata

CHUNK = 500
"""Number of records in memory at a time."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A connection whose statements all see the same state of the database."""

    connection: Connection

    def fetch(self, statement: Executable, parameters: Parameters = None) -> Sequence[ReadRow]:
        """Return all rows of a select."""
        return self.connection.execute(statement, parameters).all()

    def chunks(self, statement: Executable) -> Iterator[Sequence[ReadRow]]:
        """Yield the rows of a select, CHUNK at a time. Other selects can run in between."""
        options = {"yield_per": CHUNK}
        # Closed also where nobody reads further, as by a client that ends a download.
        with self.connection.execute(statement, execution_options=options) as result:
            yield from result.partitions()


@contextmanager
def whole_snapshot() -> Iterator[Snapshot]:
    """Yield a snapshot without a time limit."""
    with stream_connection() as connection:
        try:
            timeouts.lift_limit(connection)
            yield Snapshot(connection)
        finally:
            connection.invalidate()  # without a time limit, and with an open transaction


def number_of(snapshot: Snapshot, kind: Kind, conditions: Sequence[ColumnElement[bool]]) -> int:
    """Return the number of records that match."""
    counted = select(func.count()).select_from(kind.table).where(*conditions)
    return int(snapshot.fetch(counted)[0][0])


def records(
    snapshot: Snapshot,
    kind: Kind,
    conditions: Sequence[ColumnElement[bool]] = (),
    *,
    password_hashes: bool = False,
) -> Iterator[list[Record]]:
    """Yield the records that match in batches, in the order of their IDs."""
    more = (PASSWORD_HASH,) if password_hashes and kind.name == "customers" else ()
    identity = kind.table.c.id
    statement = select(*kind.selected(more), identity).where(*conditions).order_by(identity)
    for rows in snapshot.chunks(statement):
        found = [kind.record(row, more) for row in rows]
        if kind.related:
            related = kind.related(snapshot.fetch, [record["id"] for record in found])
            found = [with_items_metadata(record | related[record["id"]]) for record in found]
        yield found


STANDARD = "-"

Write = Callable[[Record], object]


def ndjson_writer(file: IO[bytes]) -> Write:
    """Return a function that writes a record as a line of JSON."""
    return lambda record: file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))


@contextmanager
def csv_writer(file: IO[bytes], kind: Kind) -> Iterator[Write]:
    """Yield a function that writes a record as a row. The header is written first."""
    text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=False)
    try:
        rows = csv.writer(text)
        columns = kind.csv_columns
        rows.writerow(columns)
        yield lambda record: rows.writerow(flattened(kind, record, columns))
        text.flush()
    finally:
        text.detach()


@contextmanager
def complete_file(path: str) -> Iterator[IO[bytes]]:
    """Yield a file that gets its final name when it is complete.

    Until then, it has a temporary name in the same folder. Only its owner can read it. After an
    error, it is removed, and an existing file with the final name is unchanged. ``-`` means
    standard output.
    """
    if path == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path).resolve()  # the target of a symbolic link
    if target.exists() and not target.is_file():  # a device or a named pipe; open() rejects folders
        with target.open("wb") as file:
            yield file
        return
    try:
        descriptor, unfinished = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=".part", dir=target.parent
        )
    except OSError as error:  # names the temporary file
        raise OSError(error.errno, error.strerror, path) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(unfinished).replace(target)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
