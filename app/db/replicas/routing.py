"""Standbys of the database that reads can use (``DATABASE_REPLICA_URLS``).

``app/api/replica_reads.py`` decides which requests may read from a replica. This module decides
whether a replica can serve such a request, and lets the primary serve it otherwise.
"""

import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from flask import Config, Flask, current_app
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from app.db import engines
from app.db.migrations import SchemaVersion
from app.db.read_pool import READ, STREAM, Source, current_source, reading_from
from app.db.replicas.monitor import Monitor, Position
from app.db.timeouts import is_statement_timeout

T = TypeVar("T")

WAIT_SECONDS = 0.1
"""How long a request waits until a replica has replayed the write that the request must see."""

POLL_SECONDS = 0.005

# A standby that was promoted still reports where replay ended.
_REPLAYED = text("SELECT (pg_last_wal_replay_lsn() - '0/0')::bigint WHERE pg_is_in_recovery()")
_INFO = "shop_replayed"
"""Key in ``Connection.info`` of the LSN that the server of a connection has replayed at least."""

_EXTENSION = "shop_api_replicas"

_log = logging.getLogger(__name__)


class ReplicaBehind(Exception):
    """A replica was promoted, or lacks a position that it had before it was restarted."""


class Replica(Source):
    """A standby, its engines and its state.

    Args:
        number: its place in DATABASE_REPLICA_URLS, from 1.
        app_engines: the engines of the app by name.
        monitor: watches the state of the replica.
        keeps_sessions: whether a connection always leads to the same server process. A pooler in
            transaction mode can reconnect between two transactions.
    """

    def __init__(
        self,
        number: int,
        app_engines: Mapping[str | None, Engine],
        monitor: Monitor,
        *,
        keeps_sessions: bool,
    ) -> None:
        self.number = number
        self.monitor = monitor
        self._engines = {
            kind: app_engines[engines.replica_name(number, kind)] for kind in (READ, STREAM)
        }
        self._keeps_sessions = keeps_sessions

    def engine(self, kind: str) -> Engine:
        """Return the engine for single statements (READ) or for streams (STREAM)."""
        return self._engines[kind]

    def replayed(self, connection: Connection) -> int:
        """Return the LSN up to which the server of a connection has replayed the log.

        Raises:
            ReplicaBehind: the server has been promoted, so its state has no position in the log
                that the replica followed.
        """
        lsn = connection.execute(_REPLAYED).scalar()
        if lsn is None:
            raise ReplicaBehind
        connection.info[_INFO] = int(lsn)
        return int(lsn)

    def has_replayed(self, lsn: int) -> bool:
        """Return whether the replica has replayed the log up to an LSN. Asks it if necessary."""
        if self.monitor.replayed >= lsn:
            return True
        with self._engines[READ].connect() as connection:
            return self.replayed(connection) >= lsn

    def check(self, connection: Connection, lsn: int) -> None:
        """Check a connection right before it is used.

        A replica that was restarted after a crash can be behind what it has shown before. A
        connection never outlives a restart, so the position that it reported last is still valid.

        Raises:
            ReplicaBehind: the server of the connection has not replayed the LSN.
        """
        known = connection.info.get(_INFO, 0) if self._keeps_sessions else 0
        if known < lsn and self.replayed(connection) < lsn:
            raise ReplicaBehind


class Replicas:
    """The replicas of an app."""

    def __init__(
        self,
        app_engines: Mapping[str | None, Engine],
        config: Config,
        is_schema_current: Callable[[Iterable[SchemaVersion]], bool],
    ) -> None:
        self.max_lag: float = config["SHOP_REPLICA_LAG_SECONDS"]
        self.observe: Callable[[str, str], None] = lambda *_: None
        self.all = [
            Replica(
                number,
                app_engines,
                Monitor(
                    number,
                    app_engines[READ],
                    app_engines[engines.replica_name(number, READ)],
                    max_lag=self.max_lag,
                    is_schema_current=is_schema_current,
                ),
                keeps_sessions=not engines.has_pooler(config),
            )
            for number in range(1, len(config["DATABASE_REPLICA_URLS"]) + 1)
        ]

    def start(self) -> None:
        """Start to watch the replicas. They are not used before the first check."""
        for replica in self.all:
            replica.monitor.start()

    def stop(self) -> None:
        """Stop to watch the replicas, before the engines of the app are disposed of."""
        for replica in self.all:
            replica.monitor.stop()

    def read(
        self,
        work: Callable[[], T],
        *,
        position: Position | None = None,
        max_lag: float | None = None,
        note_shown: Callable[[Position | None], None] = lambda _: None,
    ) -> T:
        """Run a read on a replica if one can serve it, otherwise on the primary.

        If the replica fails, for example because replay cancels the statement (40001), the work is
        run once more on the primary.

        Args:
            work: reads with ``fetch``, ``snapshot`` and ``RowStream``, and has no side effects.
            position: what the read must see.
            max_lag: seconds that the replica may lag behind, at most SHOP_REPLICA_LAG_SECONDS.
            note_shown: called with what the read has shown at most, or None if it has read from the
                primary. The last call applies.
        """
        note_shown(None)
        self.start()
        limit = self.max_lag if max_lag is None else min(max_lag, self.max_lag)
        replica = self._find(position, limit)
        if replica is None:
            self.observe("none", "primary")
            return work()
        timeline = replica.monitor.timeline
        with reading_from(replica, position.lsn if position else 0) as reading:
            try:
                result = work()
            except (DBAPIError, PoolTimeoutError, ReplicaBehind) as error:
                if current_source() is not replica or is_statement_timeout(error):
                    raise
                failure = error
            else:
                self.observe(str(replica.number), "replica")
                return result
            finally:
                # Also if the request is rejected, for example because a record is missing.
                if current_source() is replica and reading.shown:
                    note_shown(Position(timeline, reading.shown))
        note_shown(None)
        self._note(replica, failure)
        return work()

    def _find(self, position: Position | None, max_lag: float) -> Replica | None:
        usable = [replica for replica in self.all if replica.monitor.is_usable(max_lag)]
        if position is None:
            return random.choice(usable) if usable else None  # nosec B311  # no secret
        usable = [each for each in usable if each.monitor.timeline == position.timeline]
        usable.sort(key=lambda replica: replica.monitor.replayed, reverse=True)
        until = time.monotonic() + WAIT_SECONDS
        while usable:
            for replica in list(usable):
                try:
                    if replica.has_replayed(position.lsn):
                        return replica
                except (DBAPIError, PoolTimeoutError, ReplicaBehind) as error:
                    self._note(replica, error)
                    usable.remove(replica)
            if time.monotonic() >= until:
                break
            time.sleep(POLL_SECONDS)
        return None

    def _note(self, replica: Replica, error: Exception) -> None:
        """Log the failure of a replica, and do not use the replica until the next check."""
        cause = getattr(error, "orig", None) or error
        conflict = getattr(cause, "sqlstate", None) == "40001"
        if not conflict and not isinstance(error, PoolTimeoutError):
            replica.monitor.suspend()
        _log.warning(
            "replica %d: %s. The request is served by the primary.",
            replica.number,
            next(iter(str(cause).splitlines()), type(cause).__name__),
        )
        self.observe(str(replica.number), "conflict" if conflict else "failed")


def init_app(
    app: Flask,
    app_engines: Mapping[str | None, Engine],
    is_schema_current: Callable[[Iterable[SchemaVersion]], bool],
) -> None:
    """Prepare the replicas of an app, if it has any."""
    if app.config["DATABASE_REPLICA_URLS"]:
        app.extensions[_EXTENSION] = Replicas(app_engines, app.config, is_schema_current)


def current_replicas() -> Replicas | None:
    """Return the replicas of the current app, or None if it has none."""
    replicas: Replicas | None = current_app.extensions.get(_EXTENSION)
    return replicas
