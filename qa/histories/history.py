"""What a run has recorded: operations, events, and the state of the shop at each pause."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict, dataclass, field
from typing import Any

UNKNOWN = None
"""Status of a request without a response, or with one after which the outcome is unknown."""


@dataclass(eq=False)
class Operation:
    """A request of a client.

    Attributes:
        client: number of the client, which sends one request at a time.
        kind: what it does, such as ``reserve``.
        args: what the checkers need to know about it.
        request_id: ``X-Request-Id``, which the events of the request contain.
        invoked: seconds since the start of the run, by the clock of all clients.
        returned: the same; of an operation without a result, when the client gave up.
        status: of the response, or UNKNOWN.
        key: ``Idempotency-Key``, or an empty string.
        replayed: whether the response is a stored one.
        position: the ``X-Shop-Position`` that a read has sent.
        api_key: number of the API key that the client uses.
    """

    client: int
    kind: str
    method: str
    path: str
    body: Any
    args: dict[str, Any]
    request_id: str
    key: str = ""
    position: str = ""
    invoked: float = 0.0
    returned: float = 0.0
    status: int | None = UNKNOWN
    response: Any = None
    replayed: bool = False
    api_key: int = 0

    @property
    def is_done(self) -> bool:
        """Return whether the request has succeeded."""
        return self.status is not None and self.status < 400

    @property
    def reasons(self) -> set[str]:
        """Return the codes of the reasons why a coupon was rejected."""
        errors = (self.response or {}).get("errors", [{}]) if self.status == 400 else [{}]
        return {reason["code"] for reason in errors[0].get("reasons", ())}

    def __str__(self) -> str:
        """Return the operation as a line of text."""
        wanted = json.dumps(self.body, sort_keys=True) if self.body else ""
        result = "unknown" if self.status is UNKNOWN else str(self.status)
        if self.reasons:
            result += f" {', '.join(sorted(self.reasons))}"
        elif self.is_done and isinstance(self.response, dict):
            result += f" {_summary(self.response)}"
        when = f"{self.invoked:9.3f} to {self.returned:9.3f}"
        stored = " (stored response)" if self.replayed else ""
        return f"{when}  client {self.client:2}  {self.method} {self.path} {wanted} -> {result}{stored}"


def _summary(response: dict[str, Any]) -> str:
    names = ("id", "status", "usage_count", "usage_limit", "usage_limit_per_user", "code")
    for record in response.values():
        if isinstance(record, dict):
            return json.dumps({name: record[name] for name in names if name in record})
    return json.dumps(response)[:200]


@dataclass(eq=False)
class Event:
    """An event of the feed, and between which times it was committed at all.

    Attributes:
        seen: when the reader that has returned it was invoked, and when it returned.
        earliest: not before this time, in seconds since the start of the run.
        latest: not after this time.
    """

    data: dict[str, Any]
    earliest: float = 0.0
    latest: float = 0.0

    @property
    def id(self) -> int:
        """Return the position in the feed."""
        return int(self.data["id"])

    @property
    def type(self) -> str:
        """Return the type, such as ``coupon.redeemed``."""
        return str(self.data["type"])

    @property
    def record(self) -> dict[str, Any]:
        """Return the record that the event shows, or the ID of a deleted one."""
        return dict(self.data["data"][self.data["resource"]])

    @property
    def request_id(self) -> str | None:
        """Return the ID of the request that has caused the event, or None."""
        return self.data["request_id"]


def bounds_of(event: Event, operation: Operation | None) -> tuple[float, float]:
    """Return the times between which an event was committed, given the request that caused it."""
    if operation is None:
        return event.earliest, event.latest
    returned = event.latest if operation.status is UNKNOWN else operation.returned
    return max(event.earliest, operation.invoked), min(event.latest, returned)


@dataclass
class Segment:
    """Two seconds of a run, between two pauses.

    Attributes:
        skew: largest difference between two clocks that has mattered, in seconds.
        wall: what to add to a time to get the seconds since 1970.
        operations: in the order of their invocations.
        events: in the order of the feed.
        before, after: the records at the pauses, by kind and ID (see ``snapshots``).
        delivered: (event ID, resource, resource ID) of the deliveries, in the order of arrival.
    """

    number: int
    started: float
    wall: float
    skew: float = 0.0
    ended: float = 0.0
    operations: list[Operation] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    delivered: list[tuple[int, str, int]] = field(default_factory=list)

    def by_request(self) -> dict[str, Operation]:
        """Return the operations by the IDs of their requests."""
        return {operation.request_id: operation for operation in self.operations}


@dataclass
class Violation:
    """Something that a checker has found.

    Attributes:
        checker: the promise that is broken.
        text: what is wrong.
        operations: the shortest history that shows it.
        events: the events that show it.
    """

    checker: str
    text: str
    operations: list[Operation] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


def dump(segments: list[Segment]) -> bytes:
    """Return segments as compressed JSON."""
    text = json.dumps([asdict(segment) for segment in segments])
    return gzip.compress(text.encode(), mtime=0)  # the same bytes for the same segments


def load(content: bytes) -> list[Segment]:
    """Return the segments of ``dump``. IDs of records are texts in JSON."""
    segments = []
    for given in json.loads(gzip.decompress(content)):
        given["operations"] = [Operation(**each) for each in given["operations"]]
        given["events"] = [Event(**each) for each in given["events"]]
        given["delivered"] = [tuple(each) for each in given["delivered"]]
        for name in ("before", "after"):
            given[name] = {
                kind: {int(key): value for key, value in records.items()}
                if isinstance(records, dict) and kind != "tags"
                else records
                for kind, records in given[name].items()
            }
        segments.append(Segment(**given))
    return segments
