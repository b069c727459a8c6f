"""The slots of a worker, which limit how many requests run at the same time."""

from __future__ import annotations

import threading
import time


class Slot:
    """A slot of one of the kinds of requests. All its semaphores are acquired together.

    Args:
        semaphores: the limits for this kind, the most specific one first.
    """

    def __init__(self, *semaphores: threading.Semaphore) -> None:
        self._semaphores = semaphores

    def acquire(self, seconds: float | None = None) -> bool:
        """Wait for a slot, at most for some seconds. Return whether there is one."""
        end = None if seconds is None else time.monotonic() + seconds
        for number, semaphore in enumerate(self._semaphores):
            left = None if end is None else max(end - time.monotonic(), 0)
            if not semaphore.acquire(timeout=left):
                self._release(number)
                return False
        return True

    def release(self) -> None:
        """Release the slot."""
        self._release(len(self._semaphores))

    def _release(self, number: int) -> None:
        for semaphore in self._semaphores[:number]:
            semaphore.release()
