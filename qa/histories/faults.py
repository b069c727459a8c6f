"""What is done to the processes of a shop during a run, drawn from the seed."""

from __future__ import annotations

import threading
import time
from collections import Counter
from random import Random

from qa.histories.system import SKEW, Shop

KINDS = ("kill_worker", "kill_main", "kill_deliverer", "stop_worker", "clock", "exhaust", "reload")

RECOVERY = 8  # seconds; the start of a service takes three. After this, the pause waits for it.


class Faults:
    """Disturbs a shop during each segment, whose traffic goes on until the shop is ready again.

    Args:
        per_segment: how many faults a segment has.

    Attributes:
        done: number of faults by kind.
        skew: largest difference between clocks in the current segment.
    """

    def __init__(self, shop: Shop, seed: int, needed: int, per_segment: float) -> None:
        self._shop, self._random = shop, Random(f"faults-{seed}")
        self.kinds = [*KINDS, *shop.targets]
        self.needed, self._per_segment, self._due = needed, per_segment, 0.0
        self.done: Counter[str] = Counter()
        self.skew = 0.0

    def start(self, seconds: float) -> list[threading.Thread]:
        """Begin the faults of a segment; return their threads."""
        self._due += self._per_segment
        number, self._due = int(self._due), self._due % 1
        rarest = sorted(self.kinds, key=lambda kind: (self.done[kind], self._random.random()))
        self.skew = 0.0
        threads = []
        for kind in rarest[:number]:
            delay = self._random.uniform(0.0, 1.4)
            if kind == "clock":
                self.skew, delay = float(SKEW), 0.0
            thread = threading.Thread(target=self._let, args=(kind, delay, seconds), daemon=True)
            thread.start()
            threads.append(thread)
        return threads

    def _let(self, kind: str, delay: float, seconds: float) -> None:
        time.sleep(delay)
        if kind != "clock":
            self.done[kind] += getattr(self._shop, kind)()
            end = time.monotonic() + RECOVERY
            while time.monotonic() < end and not self._shop.is_ready():
                time.sleep(0.1)
            return
        self._shop.set_clock(self._random.choice((-SKEW, SKEW)))
        time.sleep(seconds)
        self._shop.set_clock(0)
        self.done[kind] += 1

    def not_tested(self) -> list[str]:
        """Return the kinds of faults that did not occur often enough."""
        return [kind for kind in self.kinds if self.done[kind] < self.needed]
