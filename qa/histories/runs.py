"""A run: segments of traffic with faults, and at each pause the checks."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

from qa import failed_runs
from qa.histories import report
from qa.histories.checkers import Checkers, errors
from qa.histories.checkers.queries import ask
from qa.histories.client import LOST, Client
from qa.histories.deliveries import Deliveries
from qa.histories.faults import Faults
from qa.histories.generator import (
    CAMPAIGNS,
    CODES,
    CONDITIONS,
    CUSTOMERS,
    GUESTS,
    MAX_PER_COUPON,
    Generator,
    World,
)
from qa.histories.history import UNKNOWN, Operation, Segment, Violation, dump
from qa.histories.snapshots import FeedReader, notes, reread, snapshot, tags
from qa.histories.system import SHOPS, Shop

CLIENTS = 16
OTHER_KEY = 5  # each fifth client has another API key, for which an Idempotency-Key is another one
LAST = 2  # segments that are kept, in which a violation can be examined
EARLIER = 30  # seconds; a snapshot has the redemptions that changed since this time before the last
BETWEEN = 0.05  # seconds from a read until a conditional update
SEGMENT, LONG_SEGMENT = 2.0, 4.0  # seconds; in a LONG run there are fewer pauses
LONGEST = 10.0  # seconds of traffic in a segment, while processes are started again
PLANTED_OPERATIONS = 100  # in a segment with a planted defect: a pause costs as much as they
MOST = 4  # times the segments that fit into the seconds, if something has not been tested
MOST_FAULTS = 4.5  # in a segment
LONG = 300  # seconds; a run of this length needs MANY of each kind of operation and fault
MANY, FEW = 20, 5
LEAST = 0.2  # weight of operations that must occur
INTERRUPTED = "interrupted"
OVERLAP = 4  # operations on a coupon at the same time
REFUSALS = 0.2, 0.8  # share of the attempts to use a coupon
Needs = Literal["everything", "faults", "nothing"]


@dataclass
class Result:
    """The result of a run.

    Attributes:
        violations: what the checkers have found.
        not_tested: kinds of operations and faults that did not occur often enough, and other
            reasons why the run shows little.
        figures: numbers of what has happened.
        segments: the last recorded segments, or all if the run keeps them.
        kept: folder with the logs, the last segments and the violations of a failed run.
    """

    violations: list[Violation] = field(default_factory=list)
    not_tested: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)
    kept: Path | None = None


def run(
    database: str,
    seed: int,
    seconds: float,
    *,
    plant: str = "",
    faults: bool = True,
    keep: bool = False,
    accounts: bool = False,
    needs: Needs = "everything",
    tell: Callable[[str], None] = lambda _: None,
) -> Result:
    """Run a run and return its result. It ends early at the first violation.

    What is known about an exception is kept as files, and about a violation unless a defect was
    planted. An internal error in a log is a violation, also if no client has seen it.

    Args:
        database: sqlite, postgresql or cluster.
        seed: of the operations and the faults.
        seconds: of traffic, without the pauses.
        plant: the planted defect, or an empty string.
        faults: whether to disturb the processes.
        keep: whether the result contains all segments.
        accounts: whether most operations are about accounts and their addresses. Other kinds of
            operations do not have to occur then.
        needs: what must have happened before the run ends after its seconds: ``everything`` often
            enough, each kind of fault once, or nothing. A run with a planted defect needs nothing.
        tell: is called with a line about each segment.
    """
    shop = SHOPS[database](seed, plant)
    result = Result()
    try:
        shop.start()
        this = _Run(shop, seed, seconds, faults=faults, keep=keep, accounts=accounts)
        this.needs, result = "nothing" if plant else needs, this.result
        try:
            this.run(tell)
        finally:
            this.close()
        if not plant:
            conclude(shop, result, database, seed)
        return result
    except Exception:
        folder = _keep(shop, result, database, seed, traceback.format_exc())
        tell(f"The run has failed. Its files are in {folder}.")
        raise
    finally:
        shop.close()


def conclude(shop: Shop, result: Result, database: str, seed: int) -> None:
    """Add the internal errors in the logs to the violations, and keep the files if there are any."""
    logged = failed_runs.internal_errors(shop.logs())
    result.violations += [Violation(errors.NAME, text) for text in logged]
    if result.violations:
        found = "\n\n".join(report.text(each, seed) for each in result.violations)
        result.kept = _keep(shop, result, database, seed, found)


def _keep(shop: Shop, result: Result, database: str, seed: int, found: str) -> Path:
    files = {"found.txt": found.encode(), "history.json.gz": dump(result.segments)}
    return failed_runs.keep(f"histories-{database}-{seed}", shop.logs(), files)


class _Run:
    def __init__(
        self, shop: Shop, seed: int, seconds: float, *, faults: bool, keep: bool, accounts: bool
    ) -> None:
        self._shop, self._seconds, self._keep = shop, seconds, keep
        self.needs: Needs = "everything"
        self.least_operations = 0  # of a segment that is shorter than LONGEST
        self._length = LONG_SEGMENT if seconds >= LONG else SEGMENT
        self._start = time.monotonic()
        needed = MANY if seconds >= LONG else FEW
        self._needed = needed
        self.result = Result()
        most = int(MAX_PER_COUPON * self._length / SEGMENT)
        self.world = World(seed, most, is_about_accounts=accounts)
        number = len(range(0, int(seconds), int(self._length))) or 1
        self.faults = Faults(shop, seed, needed if faults else 0, 0.0)
        if faults:
            each = min(MOST_FAULTS, max(1.0, 1.1 * needed * len(self.faults.kinds) / number))
            self.faults = Faults(shop, seed, needed, each)
        ports = shop.ports()
        self._clients = []
        for n in range(CLIENTS):
            number = int(n % OTHER_KEY == 0)
            client = Client(ports[n % len(ports)], shop.keys[number], number, shop.keys[2])
            self._clients.append((Generator(n, self.world, seed, needed), client))
        self._reader_client = Client(shop.services[0].port, shop.keys[0])
        self._feed = FeedReader(Client(shop.services[0].port, shop.keys[0]), self.clock)
        self._deliveries = Deliveries(seed)
        self._checkers = Checkers()
        self._number = 0  # of segments
        self._lost: list[Operation] = []
        self._kinds: Counter[str] = Counter()
        self._seen = Counter[str]()
        self._state: dict[str, Any] = {}
        self._tags: dict[str, str] = {}
        self._since = time.time() - EARLIER
        self._cursor = 0  # of the feed, at the last pause
        self._random = Random(f"queries-{seed}")

    def clock(self) -> float:
        """Return the seconds since the start of the run."""
        return time.monotonic() - self._start

    def run(self, tell: Callable[[str], None]) -> Result:
        """Run all segments and return the result. An interruption ends the run before its time."""
        self._create_records()
        self._feed.start()
        try:
            self._run_segments(tell)
        except KeyboardInterrupt:
            tell("interrupted: the last segment is not checked")
            self._finish(self._number)
            self.result.not_tested.append(INTERRUPTED)
            return self.result
        if not self.result.violations:
            self.result.violations += self._deliveries.missing(
                self._reader_client, self._checkers.feed
            )
        self._finish(self._number)
        return self.result

    def _run_segments(self, tell: Callable[[str], None]) -> None:
        active, most = 0.0, MOST * self._seconds / self._length
        while not self.result.violations and (
            active < self._seconds or (self._number < most and self._is_missed())
        ):
            segment = Segment(
                self._number, self.clock(), time.time() - self.clock(), before=self._state
            )
            self.result.segments.append(segment)
            if not self._keep:
                del self.result.segments[:-LAST]
            self._traffic(segment)
            segment.ended = self.clock()
            active += segment.ended - segment.started
            self._seen["seconds of traffic"] = round(active)
            self._pause(segment)
            began = self.clock()
            self.result.violations += self._checkers.check(segment)
            self.result.violations += self._deliveries.wrong(segment.events)
            self._note(segment, self.clock() - began)
            tell(
                f"{segment.ended:7.1f} s  segment {segment.number}: {len(segment.operations)} operations, "
                f"{len(segment.events)} events, {len(self.result.violations)} violations"
            )
            self._number += 1

    def _is_missed(self) -> bool:
        """Return whether something has not happened that the run needs."""
        if self.needs == "everything":
            return bool(self._not_tested())
        return self.needs == "faults" and not all(
            self.faults.done[kind] for kind in self.faults.kinds
        )

    def _create_records(self) -> None:
        client = self._reader_client
        self._deliveries.create_webhook(client)
        generator = self._clients[0][0]
        for new in CAMPAIGNS:
            status, body = client.exchange("POST", "/campaigns", {"campaign": new})
            assert status == 201, body
            self.world.campaigns[body["campaign"]["id"]] = body["campaign"]
        for code in CODES:
            client.exchange("POST", "/coupons", {"coupon": generator.new_coupon(code)})
        for code, conditions in CONDITIONS.items():
            new = {"code": code, "type": "fixed_cart", "amount": "1.00", **conditions}
            status, body = client.exchange("POST", "/coupons", {"coupon": new})
            assert status == 201, body
        for number in range(CUSTOMERS):
            new = {"email": f"Customer{number}@example.com", "first_name": "A"}
            client.exchange("POST", "/customers", {"customer": new})
        client.exchange("POST", "/customers", {"customer": {"email": GUESTS[2]}})
        self._read_state()
        self._feed.take()
        self._cursor = self._feed.cursor
        self._checkers.begin(self._state, self._feed.cursor)
        self._deliveries.begin(self._feed.cursor)

    def _read_state(self) -> None:
        """Read a state and all events until it, although reservations can expire in between."""
        for _ in range(50):
            self._feed.read()
            cursor, began = self._feed.cursor, time.time()
            state = snapshot(self._reader_client, self._since)
            state["queries"] = ask(self._get, self._random, state)
            self._tags = tags(self._reader_client, state, self._tags, self._random)
            state["tags"] = self._tags
            state["notes"] = notes(self._reader_client, state, self._random)
            state |= {"began": began, "taken": time.time()}
            self._feed.read()
            if self._feed.cursor == cursor:  # its thread reads, too
                self._state, self._since = state, began - EARLIER
                self.world.refresh(state)
                return
        raise AssertionError("the state changes during a pause")

    def _get(self, path: str) -> tuple[Any, dict[str, str]]:
        return self._reader_client.get(path), self._reader_client.headers

    def _traffic(self, segment: Segment) -> None:
        """Let the clients act for a time, and until what was killed is ready again."""
        self.world.hot = CODES[segment.number % len(CODES)]
        start = self.clock()
        faults = self.faults.start(self._length)
        segment.skew = self.faults.skew

        def is_over() -> bool:
            lasted = self.clock() - start
            goes_on = len(segment.operations) < self.least_operations
            goes_on |= any(thread.is_alive() for thread in faults)
            return lasted >= (LONGEST if goes_on else self._length)

        with ThreadPoolExecutor(CLIENTS) as pool:
            running = [
                pool.submit(self._act, generator, client, is_over, segment.operations)
                for generator, client in self._clients
            ]
            for each in running:
                each.result()
        for thread in faults:
            thread.join()

    def _act(
        self,
        generator: Generator,
        client: Client,
        is_over: Callable[[], bool],
        operations: list[Operation],
    ) -> None:
        while not is_over():
            operation = self._lost.pop() if self._lost else generator.next()
            operation.client = generator.client
            again: Operation | None = operation
            while again:
                operations.append(again)
                if again.args.get("needs_etag"):
                    self._take_etag(client, again)
                client.send(again, self.clock)
                generator.learn(again, client.headers)
                if again.status is UNKNOWN:
                    time.sleep(0.05)
                again = None if is_over() else generator.repeat(again)

    @staticmethod
    def _take_etag(client: Client, operation: Operation) -> None:
        try:
            status, body = client.exchange("GET", operation.path)
            if status == 200:
                (seen,) = body.values()
                operation.args |= {"etag": client.headers["etag"], "seen": seen}
                time.sleep(BETWEEN)  # so that others can change the record
        except LOST:
            return

    def _pause(self, segment: Segment) -> None:
        """Let all requests end, repair the shop, and read its state."""
        self._shop.repair()
        for _, client in self._clients:
            client.close()
        self._reader_client.close()
        self._read_state()
        segment.operations.sort(key=lambda operation: operation.invoked)
        segment.events = self._feed.take()
        segment.after = self._state
        segment.after["feed"] = reread(
            self._reader_client, self._cursor, segment.events, self._random
        )
        if segment.events:
            self._cursor = segment.events[-1].id
        segment.delivered = self._deliveries.take()
        # The outcome is known now, and a repetition must find it.
        self._lost = [
            operation
            for generator, _ in self._clients
            for lost in segment.operations
            if lost.client == generator.client and lost.status is UNKNOWN
            if (operation := generator.repeat(lost))
        ]

    def _note(self, segment: Segment, seconds: float) -> None:
        self._kinds.update(each.kind for each in segment.operations if each.status is not UNKNOWN)
        seen = self._seen
        seen["operations"] += len(segment.operations)
        seen["unknown"] += sum(each.status is UNKNOWN for each in segment.operations)
        seen["repetitions"] += sum(bool(each.args.get("is_repeat")) for each in segment.operations)
        seen["events"] += len(segment.events)
        seen["milliseconds of checks"] += int(1000 * seconds)
        grants = [each for each in segment.operations if each.kind in {"reserve", "create_order"}]
        seen["attempts"] += sum(each.status in {200, 201, 400} for each in grants)
        seen["refusals"] += sum(each.status == 400 for each in grants)
        seen["expiries"] = self._checkers.coupons.figures["expiries"]
        seen["restores"] += sum(event.type.endswith(".restored") for event in segment.events)

    def _finish(self, segments: int) -> None:
        result, seen = self.result, self._seen
        seen["cuts"] = self._shop.proxy.cuts
        overlap = self._checkers.overlap()
        refusals = seen["refusals"] / max(1, seen["attempts"])
        result.figures = {
            "segments": segments,
            **seen,
            "overlap per coupon": round(overlap, 1),
            "refusals": round(refusals, 2),
            **self._checkers.figures(),
            "faults": dict(self.faults.done),
        }
        result.not_tested = self._not_tested()

    def _not_tested(self) -> list[str]:
        """Return what did not occur often enough, and other reasons why the run shows little."""
        seen, overlap = self._seen, self._checkers.overlap()
        refusals = seen["refusals"] / max(1, seen["attempts"])
        seen["cuts"] = self._shop.proxy.cuts
        found = [
            f"{kind}: {self._kinds[kind]} times"
            for kind, weight in self.world.weights.items()
            if self._kinds[kind] < self._needed and weight >= LEAST
        ]
        found += [f"{kind}: {self.faults.done[kind]} times" for kind in self.faults.not_tested()]
        for name in ("expiries", "restores", "cuts", "repetitions"):
            if seen[name] < self._needed:
                found.append(f"{name}: {seen[name]} times")
        if overlap < OVERLAP:
            found.append(f"overlap per coupon: {overlap:.1f}")
        if not REFUSALS[0] <= refusals <= REFUSALS[1]:
            found.append(f"refusals: {refusals:.0%}")
        return found

    def close(self) -> None:
        """Stop the reader and the receiver."""
        if self._feed.is_alive():
            self._feed.stop()
        self._deliveries.close()
        for _, client in self._clients:
            client.close()
        self._reader_client.close()
