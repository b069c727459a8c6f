"""The slots of a worker, which limit how many requests run at the same time."""

from __future__ import annotations

from collections import deque
from threading import Lock


class Slots:
    """The slots that the requests of all kinds share. Requests get them in order of arrival.

    The releaser of a semaphore would take it again before the thread that it has woken.

    Args:
        number: how many requests run at the same time.
    """

    def __init__(self, number: int) -> None:
        self.free = number
        self.lock = Lock()
        self.waiting: deque[tuple[Slot, Lock]] = deque()


class Slot:
    """A slot of one of the kinds of requests.

    Args:
        slots: the slots of all kinds.
        limit: how many of them this kind may use.
    """

    def __init__(self, slots: Slots, limit: int) -> None:
        self._slots, self._free = slots, limit

    def acquire(self, seconds: float = -1) -> bool:
        """Wait for a slot, at most for some seconds. Return whether there is one."""
        with self._slots.lock:
            if self._take():  # what waits is of another kind, whose limit is reached
                return True
            if not seconds:
                return False
            turn = Lock()
            turn.acquire()
            self._slots.waiting.append((self, turn))
        if turn.acquire(timeout=seconds):
            return True
        with self._slots.lock:
            if (self, turn) in self._slots.waiting:
                self._slots.waiting.remove((self, turn))
                return False
        return True  # it came at the last moment

    def release(self) -> None:
        """Release the slot to the first request that may use it."""
        slots = self._slots
        with slots.lock:
            self._free += 1
            slots.free += 1
            for each in slots.waiting:
                slot, turn = each
                if slot._take():  # of the same class
                    slots.waiting.remove(each)
                    turn.release()
                    break

    def _take(self) -> bool:
        is_free = self._free > 0 and self._slots.free > 0
        if is_free:
            self._free -= 1
            self._slots.free -= 1
        return is_free
