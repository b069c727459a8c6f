"""The slots of a worker, which limit how many requests run at the same time."""

from __future__ import annotations

import math
import time
from collections import deque
from threading import TIMEOUT_MAX, Lock

PATIENCE_SECONDS = 0.01
"""How long other requests may run before a request that waits.

A thread that continues with its next request costs less than a thread that is woken.
"""


class Slots:
    """The slots that the requests of all kinds share.

    A request that has waited for PATIENCE_SECONDS is next. With a semaphore, the thread that
    releases a slot would always take it again before the thread that it has woken.

    Args:
        number: how many requests run at the same time.
    """

    def __init__(self, number: int) -> None:
        self.free = number
        self.lock = Lock()
        self.waiting: deque[_Waiting] = deque()


class _Waiting:
    """A request that waits. Its thread sleeps until another one releases ``turn``."""

    def __init__(self, slot: Slot) -> None:
        self.slot, self.has_slot = slot, False
        self.since = time.monotonic()
        self.turn = Lock()
        self.turn.acquire()


class Slot:
    """A slot of one of the kinds of requests.

    Args:
        slots: the slots of all kinds.
        limit: how many of them this kind may use.
    """

    def __init__(self, slots: Slots, limit: int) -> None:
        self._slots, self._free = slots, limit

    def acquire(self, seconds: float = math.inf) -> bool:
        """Wait for a slot, at most for some seconds. Return whether there is one."""
        with self._slots.lock:
            if self._take():
                return True
            if not seconds:
                return False
            own = _Waiting(self)
            self._slots.waiting.append(own)
        ends = own.since + seconds
        while own.turn.acquire(timeout=min(max(ends - time.monotonic(), 0), TIMEOUT_MAX)):
            with self._slots.lock:
                if own.has_slot:
                    return True
                has_slot = self._take()
                if has_slot:
                    self._slots.waiting.remove(own)
                self._wake_next()  # what is free now, or what this request cannot use
            if has_slot:
                return True
        with self._slots.lock:
            if not own.has_slot:  # it did not come at the last moment
                self._slots.waiting.remove(own)
                self._wake_next()
            return own.has_slot

    def release(self) -> None:
        """Release the slot, and wake the first request that may use it."""
        with self._slots.lock:
            self._free += 1
            self._slots.free += 1
            self._wake_next()

    def _wake_next(self) -> None:
        for each in self._slots.waiting:
            if each.slot._is_free():
                if time.monotonic() - each.since >= PATIENCE_SECONDS:
                    each.has_slot = each.slot._take()
                    self._slots.waiting.remove(each)
                if each.turn.locked():
                    each.turn.release()
                return

    def _is_free(self) -> bool:
        return self._free > 0 and self._slots.free > 0

    def _take(self) -> bool:
        if is_free := self._is_free():
            self._free -= 1
            self._slots.free -= 1
        return is_free
