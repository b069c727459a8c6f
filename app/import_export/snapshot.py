"""Reading of many records from one database snapshot, in constant memory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Executable

from app.db import timeouts
from app.db.read_pool import Parameters, stream_connection

CHUNK = 500
"""Number of records in memory at a time."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A connection whose statements all see the same state of the database."""

    connection: Connection

    def fetch(self, statement: Executable, parameters: Parameters = None) -> Sequence[Any]:
        """Return all rows of a select."""
        return self.connection.execute(statement, parameters).all()

    def chunks(self, statement: Executable) -> Iterator[Sequence[Any]]:
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
