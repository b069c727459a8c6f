"""Errors: no request fails with an internal error, whatever was disturbed."""

from __future__ import annotations

from qa.histories.history import Segment, Violation

NAME = "errors"
INTERNAL = 500


def check_errors(segment: Segment) -> list[Violation]:
    """Return the requests with an internal error: a lost database has a status of its own, 503."""
    return [
        Violation(NAME, f"{each.method} {each.path} is an internal error", [each])
        for each in segment.operations
        if each.args.get("undecided") == INTERNAL
    ]
