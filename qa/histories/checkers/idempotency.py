"""Idempotency: one effect per key, also if the response was lost."""

from __future__ import annotations

from typing import Any

from qa.histories.checkers.feed import impersonal
from qa.histories.history import Operation, Segment, Violation

NAME = "idempotency"


REUSED = "shop_api_idempotency_key_reused"

Key = tuple[int, str, str, str]
"""Number of the API key, method, path and Idempotency-Key: they make a request another one."""

KEPT = 20
"""Segments without a request after which a key is forgotten: none is repeated that late."""


class IdempotencyChecker:
    """Compares all requests with one key."""

    def __init__(self) -> None:
        self._requests: dict[Key, list[Operation]] = {}
        self._effects: dict[Key, set[str]] = {}
        self._last_used: dict[Key, int] = {}

    def check(self, segment: Segment) -> list[Violation]:
        """Return the violations of the keys in a segment, with their earlier requests."""
        with_events = {event.request_id for event in segment.events}
        touched = set()
        for operation in segment.operations:
            if operation.key:
                key = operation.api_key, operation.method, operation.path, operation.key
                touched.add(key)
                self._requests.setdefault(key, []).append(operation)
                if operation.request_id in with_events:
                    self._effects.setdefault(key, set()).add(operation.request_id)
        found = [violation for key in sorted(touched) for violation in self._of_key(key)]
        # A request is repeated in one of the next segments: a pause of the database delays all.
        self._last_used |= dict.fromkeys(touched, segment.number)
        for key, number in list(self._last_used.items()):
            if number <= segment.number - KEPT:
                for kept in (self._requests, self._effects, self._last_used):
                    kept.pop(key, None)
        return found

    def _of_key(self, key: Key) -> list[Violation]:
        requests, effects = self._requests[key], self._effects.get(key, set())
        done = [each for each in requests if each.is_done]
        stored = [each for each in requests if each.replayed]
        bodies = {str(each.body) for each in requests}
        text = ""
        if len({str(each.body) for each in done}) > 1:
            text = "requests with one key and different bodies have succeeded"
        elif len(bodies) == 1 and any(_is_reused(each) for each in requests):
            text = "a repetition was rejected like another request"
        elif len(effects) > 1:
            text = f"{len(effects)} requests with one key had an effect"
        elif len(stored) == len(requests):
            text = "a response was stored for a request that nobody has sent"
        elif any(not each.is_done for each in stored):
            text = "the response to a rejected request was stored"
        elif len({_shown(each) for each in done}) > 1:
            text = "requests with one key have different responses"
        elif len(done) - len(stored) > 1:
            text = "several requests with one key were processed"
        elif done and not effects and _writes(done[0]):
            text = "a request has succeeded without an effect"
        return [Violation(NAME, text, requests)] if text else []


def _is_reused(operation: Operation) -> bool:
    errors = (operation.response or {}).get("errors") if not operation.is_done else None
    return bool(errors and errors[0]["code"] == REUSED)


def _writes(operation: Operation) -> bool:
    """Return whether a successful request always writes an event."""
    if operation.kind == "reserve":
        return operation.status == 201
    if operation.kind == "claim":
        return bool(operation.response["claim"]["orders"])
    if operation.kind == "bulk_orders":
        return any("error" not in each for each in operation.response["orders"])
    return True


def _shown(operation: Operation) -> str:
    """Return what all responses must have in common."""
    shown: Any = {}
    for name, value in (operation.response or {}).items():
        records = value if isinstance(value, list) else [value]
        shown[name] = [impersonal(each) if isinstance(each, dict) else each for each in records]
    return f"{operation.status} {shown}"
