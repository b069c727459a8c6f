"""API keys: a key that was revoked or restricted is rejected, and no other one."""

from __future__ import annotations

from qa.histories.history import Operation, Segment, Violation

NAME = "sessions"


class KeyChecker:
    """Compares each use of a key with the changes of the key before and during it."""

    def __init__(self) -> None:
        self._changes: dict[int, list[Operation]] = {}

    def check(self, segment: Segment) -> list[Violation]:
        """Return the violations in a segment."""
        for operation in segment.operations:
            if "changes" in operation.args:
                self._changes.setdefault(operation.args["changes"], []).append(operation)
        found = []
        for operation in segment.operations:
            if operation.kind != "use_key" or operation.status is None:
                continue
            changes = self._changes.get(operation.args["uses"], [])
            before = [each for each in changes if each.invoked < operation.returned]
            over = [each for each in before if each.is_done and each.returned < operation.invoked]
            may_write = operation.status == 404
            if may_write and over:
                text = f"a key could write after {over[0].kind}"
                found.append(Violation(NAME, text, [*over, operation]))
            if not may_write and not before:
                text = f"a key that may write was rejected with {operation.status}"
                found.append(Violation(NAME, text, [operation]))
        return found
