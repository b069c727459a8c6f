"""A connection pool for a PostgreSQL server whose connections may all be in use."""

import math
import select
import threading
import time
from typing import Any

import psycopg
from psycopg.errors import ConnectionTimeout
from sqlalchemy import PoolProxiedConnection, QueuePool, event
from sqlalchemy.exc import DisconnectionError, InvalidRequestError

from app.db import deadline

POLL_SECONDS = 0.01

RETRY_SECONDS = 0.2
"""How long a request waits before it tries to connect again, without a connection of its worker."""

_FROM_SERVER = ":  "
"""What libpq puts between the severity and the message of an error that a server has sent."""

_NOT_FULL = (
    "the database system is ",  # starting up, in recovery mode, shutting down
    "(server_login_retry)",  # the server behind PgBouncer cannot be reached
    "authentication failed",
    "does not exist",
)
"""English messages of a server that is not full. Others are taken for a full server.

The error of a failed connection has no SQLSTATE: libpq gives its fields with results of statements
only, and ``error.sqlstate`` and ``error.diag.sqlstate`` of psycopg are None."""


class PatientPool(QueuePool):
    """A pool that waits for a connection while the server accepts no other.

    The reason of a rejection is known only as text in the language of the server, so every
    rejection counts while a connection of the pool is open. If the server has stopped, its
    connections end, and the wait ends with them. A pool without a connection tries again, unless
    the server cannot be reached or states another reason.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._holders: dict[int, int] = {}
        """The threads that use connections, by the identity of the pool's record."""
        self._idle: dict[int, Any] = {}
        """The connections that were open when they were returned, by the same."""
        event.listen(self, "checkout", self._note_use)
        event.listen(self, "checkin", self._note_return)
        event.listen(self, "close", self._note_close)

    def connect(self) -> PoolProxiedConnection:
        """Return a connection."""
        while True:
            try:
                return super().connect()
            except InvalidRequestError:  # not an error of the driver, so that none would handle it
                raise psycopg.OperationalError("new connections were closed at once") from None
            except (ConnectionTimeout, deadline.DeadlineExceeded):
                raise
            except psycopg.OperationalError as error:
                # Commands do not wait, because they have no deadline. Streams do not, because their
                # clients determine how long they take.
                if deadline.left() == math.inf or not self.timeout():
                    raise
                if not self._wait() and not _wait_for_server(error):
                    raise

    def _wait(self) -> bool:
        """Wait until a connection is idle. Return False if that will not happen in time."""
        number_of_misses = 0
        while number_of_misses < 2 and not deadline.is_over():
            time.sleep(POLL_SECONDS)
            # The next attempt can take another record than theirs, so they must be open.
            if any(is_open(connection) for connection in list(self._idle.values())):
                return True
            # A thread that takes over a connection from another is missing for a moment.
            number_of_misses = 0 if self._is_used_by_others() else number_of_misses + 1
        return False

    def _is_used_by_others(self) -> bool:
        me = threading.get_ident()
        return any(holder != me for holder in list(self._holders.values()))

    def _note_use(self, _: object, record: object, __: object) -> None:
        self._idle.pop(id(record), None)
        self._holders[id(record)] = threading.get_ident()

    def _note_return(self, connection: object, record: object) -> None:
        self._holders.pop(id(record), None)
        if connection is not None:
            self._idle[id(record)] = connection

    def _note_close(self, _: object, record: object) -> None:
        self._idle.pop(id(record), None)


def require_open(connection: psycopg.Connection[object], _: object, __: object) -> None:
    """Make the pool replace a connection that the server has closed. For the event ``checkout``."""
    if not is_open(connection):
        raise DisconnectionError


def is_open(connection: psycopg.Connection[object]) -> bool:
    """Return whether the server has kept an idle connection open.

    A server sends nothing on an idle connection until it closes the connection. Polling the socket
    takes a microsecond, while ``pool_pre_ping`` would send a query each time.
    """
    try:
        descriptor = connection.fileno()
    except psycopg.OperationalError:  # closed here, perhaps by another thread
        return False
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return not poll.poll(0)


def _wait_for_server(error: psycopg.OperationalError) -> bool:
    """Wait before the next attempt to connect. Return False if that is useless or too late."""
    reason = str(error)
    if _FROM_SERVER not in reason or any(text in reason for text in _NOT_FULL):
        return False
    if deadline.left() <= RETRY_SECONDS:
        return False
    time.sleep(RETRY_SECONDS)
    return True
