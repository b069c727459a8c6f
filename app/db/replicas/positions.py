"""Positions in the write-ahead log of PostgreSQL.

A position identifies what had been written at a point in time: the timeline of the primary, which
changes with each failover, and the log sequence number (LSN). A standby on the same timeline that
has replayed the log up to the position shows everything that was written before.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from sqlalchemy import text

from app.db.read_pool import fetch

_TEXT = re.compile(r"1\.([0-9a-f]{1,8})\.([0-9a-f]{1,16})")

CURRENT = text("""
SELECT ('x' || left(pg_walfile_name(lsn), 8))::bit(32)::int, (lsn - '0/0')::bigint
FROM (
    -- Without synchronous_commit, a commit may not have been written to the log yet.
    SELECT CASE current_setting('synchronous_commit')
        WHEN 'off' THEN pg_current_wal_insert_lsn() ELSE pg_current_wal_flush_lsn()
    END AS lsn
) AS position
""")
"""Statement that returns the timeline and the LSN of the primary."""


class Position(NamedTuple):
    """A position in the write-ahead log.

    Args:
        timeline: timeline of the primary.
        lsn: log sequence number, in bytes.
    """

    timeline: int
    lsn: int

    def __str__(self) -> str:
        """Return the text for clients. They must not interpret it."""
        return f"1.{self.timeline:x}.{self.lsn:x}"

    @classmethod
    def parse(cls, value: str) -> Position | None:
        """Return the position of a text, or None for a text of another version or form."""
        found = _TEXT.fullmatch(value)
        return cls(int(found[1], 16), int(found[2], 16)) if found else None


def current_position() -> Position:
    """Return the position of the primary, which includes every commit until now."""
    (row,) = fetch(CURRENT)
    return Position(*row)
