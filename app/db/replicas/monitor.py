"""State of a replica, checked every second in a thread of each worker."""

from __future__ import annotations

import logging
import re
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

from app.db.errors import is_schema_mismatch
from app.db.migrations import SCHEMA_VERSION, SchemaVersion
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


CHECK_SECONDS = 1.0
MAX_AGE_SECONDS = 3 * CHECK_SECONDS
"""Age of a check after which its result is no longer used, for example while the replica hangs."""

MAX_SAMPLES = 1000

_log = logging.getLogger(__name__)

# A standby switches to the timeline of a new primary some time before it has replayed its first
# checkpoint. ``pg_stat_wal_receiver`` shows the timeline at once, but only to pg_read_all_stats.
_STATE = text("""
SELECT pg_is_in_recovery(), (pg_last_wal_replay_lsn() - '0/0')::bigint, greatest(
    (SELECT timeline_id FROM pg_control_checkpoint()),
    (SELECT min_recovery_end_timeline FROM pg_control_recovery()),
    (SELECT received_tli FROM pg_stat_wal_receiver)
)
""")


class State(StrEnum):
    """State of a replica. Only OK replicas are used."""

    OK = "ok"
    UNKNOWN = "unknown"
    """not checked yet"""
    LAGGING = "lagging"
    """more than SHOP_REPLICA_LAG_SECONDS behind the primary"""
    UNAVAILABLE = "unavailable"
    NOT_A_STANDBY = "not_a_standby"
    """a primary: it was promoted, or the URL is wrong"""
    OTHER_TIMELINE = "other_timeline"
    """does not follow the current primary, for example after a failover"""
    OLD_SCHEMA = "old_schema"
    """lacks the newest migration"""


class Check(NamedTuple):
    """The result of a check.

    Args:
        timeline: timeline that the replica follows, or 0.
        replayed: LSN up to which it has replayed the log, or 0.
        current_at: monotonic time of a sample of the primary that the replica has replayed. The
            replica lags at most by the time since then. None if there is no such sample.
        at: monotonic time of the check.
    """

    state: State
    timeline: int
    replayed: int
    current_at: float | None
    at: float


_UNKNOWN = Check(State.UNKNOWN, 0, 0, None, float("-inf"))


class Monitor:
    """Watches a replica.

    The lag is measured without privileges and without writes: every second, the position of the
    primary is noted. Once the replica has replayed it, the replica lags at most by the age of the
    note. This is correct for idle primaries, paused standbys and interrupted replication, too.

    Args:
        number: the number of the replica, for the log.
        max_lag: SHOP_REPLICA_LAG_SECONDS.
        is_schema_current: function that takes the rows of ``alembic_version``.
    """

    def __init__(
        self,
        number: int,
        primary: Engine,
        replica: Engine,
        *,
        max_lag: float,
        is_schema_current: Callable[[Iterable[SchemaVersion]], bool],
    ) -> None:
        self._number = number
        self._primary, self._replica = primary, replica
        self._max_lag = max_lag
        self._is_schema_current = is_schema_current
        self._samples: deque[tuple[float, Position]] = deque(maxlen=MAX_SAMPLES)
        self._timeline_of_primary = 0
        self._current_at: float | None = None
        self._check = _UNKNOWN
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        # Also at the end of the process. The thread must not keep the engines of an unused app.
        weakref.finalize(self, self._stopped.set)
        self.observe: Callable[[State, float | None], None] = lambda *_: None

    # --- what requests ask ---

    @property
    def timeline(self) -> int:
        """The timeline that the replica follows, or 0."""
        return self._check.timeline

    @property
    def replayed(self) -> int:
        """The LSN that the replica had replayed at the last check, or 0."""
        return self._check.replayed

    @property
    def state(self) -> State:
        """The state, considering the time since the last check."""
        check, now = self._check, time.monotonic()
        if check.state is State.OK and now - check.at > MAX_AGE_SECONDS:
            return State.UNAVAILABLE
        if check.state is State.OK and not self._is_within(check, self._max_lag, now):
            return State.LAGGING
        return check.state

    @property
    def lag(self) -> float | None:
        """Upper limit of the lag in seconds, or None if it is not known."""
        current_at = self._check.current_at
        return None if current_at is None else time.monotonic() - current_at

    def is_usable(self, max_lag: float) -> bool:
        """Return whether the replica can be used and lags by at most some seconds."""
        return self.state is State.OK and self._is_within(self._check, max_lag, time.monotonic())

    @staticmethod
    def _is_within(check: Check, max_lag: float, now: float) -> bool:
        return check.current_at is not None and now - check.current_at <= max_lag

    # --- checks ---

    def start(self) -> None:
        """Start the thread, unless it runs already."""
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    watch = weakref.ref(self), self._stopped
                    self._thread = threading.Thread(target=_watch, args=watch, daemon=True)
                    self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self._stopped.set()
        if self._thread:
            self._thread.join()

    def suspend(self) -> None:
        """Do not use the replica until the next check succeeds."""
        self._check = self._check._replace(state=State.UNAVAILABLE)

    def check(self) -> Check:
        """Check the replica, note the result and return it."""
        before, found = self._check.state, self._find()
        self._check = found
        if before is not self.state and State.UNKNOWN is not before:
            _log.warning("replica %d: %s, before: %s", self._number, self.state, before)
        self.observe(self.state, self.lag)
        return found

    def _find(self) -> Check:
        self._sample_primary()
        try:
            with self._replica.connect() as connection:
                is_standby, replayed, timeline = connection.execute(_STATE).one()
                versions = [SchemaVersion(*row) for row in connection.execute(SCHEMA_VERSION)]
        except SQLAlchemyError as error:
            state = State.OLD_SCHEMA if is_schema_mismatch(error) else State.UNAVAILABLE
            return Check(state, 0, 0, None, time.monotonic())
        state = State.OK
        if not is_standby:
            state, replayed, timeline = State.NOT_A_STANDBY, 0, 0
        elif timeline != (self._timeline_of_primary or timeline):
            state = State.OTHER_TIMELINE
        elif not self._is_schema_current(versions):
            state = State.OLD_SCHEMA
        while self._samples and self._samples[0][1] <= (timeline, replayed):
            self._current_at = self._samples.popleft()[0]
        return Check(state, timeline, replayed or 0, self._current_at, time.monotonic())

    def _sample_primary(self) -> None:
        now = time.monotonic()
        try:
            with self._primary.connect() as connection:
                position = Position(*connection.execute(CURRENT).one())
        except SQLAlchemyError:
            return  # no new sample: the lag of the replica grows until there is one
        if self._timeline_of_primary != position.timeline:
            self._timeline_of_primary = position.timeline
            self._samples.clear()
        self._samples.append((now, position))


def _watch(reference: weakref.ref[Monitor], stopped: threading.Event) -> None:
    while not stopped.is_set() and (monitor := reference()) is not None:
        monitor.check()
        del monitor
        stopped.wait(CHECK_SECONDS)
