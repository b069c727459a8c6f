"""The checkers of a segment (docs/reliability.md). Each returns the violations that it finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qa.histories.checkers.changes import ChangeChecker, check_expiries, check_links, check_tags
from qa.histories.checkers.conditions import check_conditions
from qa.histories.checkers.coupons import CouponChecker
from qa.histories.checkers.errors import check_errors
from qa.histories.checkers.feed import FeedChecker
from qa.histories.checkers.idempotency import IdempotencyChecker
from qa.histories.checkers.keys import KeyChecker
from qa.histories.checkers.orders import check_orders
from qa.histories.checkers.queries import check_queries
from qa.histories.checkers.records import RecordChecker
from qa.histories.checkers.statistics import check_statistics
from qa.histories.history import Segment, Violation


class Checkers:
    """All checkers of a run, which see one segment after the other."""

    def __init__(self) -> None:
        self.coupons = CouponChecker()
        self.feed = FeedChecker()
        self.idempotency = IdempotencyChecker()
        self.records = RecordChecker()
        self.changes = ChangeChecker()
        self.keys = KeyChecker()

    def begin(self, state: dict[str, Any], cursor: int) -> None:
        """Take over the state before the first segment."""
        self.coupons.begin(state)
        self.feed.begin(cursor)

    def check(self, segment: Segment) -> list[Violation]:
        """Return the violations in a segment."""
        found = check_errors(segment) + self.feed.check(segment)
        found += self.coupons.check(segment)
        found += self.records.check(segment)
        found += self.idempotency.check(segment)
        found += self.changes.check(segment)
        found += self.keys.check(segment)
        found += check_links(segment)
        found += check_tags(segment) + check_expiries(segment)
        found += check_orders(segment)
        found += check_conditions(segment)
        found += check_statistics(segment)
        found += check_queries(segment)
        return found

    def overlap(self) -> float:
        """Return how many operations on a coupon run at the same time, on average."""
        return self.coupons.overlap()

    def figures(self) -> dict[str, Any]:
        """Return what the checkers have counted."""
        return dict(self.coupons.figures) | dict(self.records.figures)


def check_recorded(segments: list[Segment]) -> Iterator[Violation]:
    """Yield the violations in the segments of a run; a segment is checked when it is needed."""
    checkers = Checkers()
    first = segments[0]
    checkers.begin(first.before, min((event.id for event in first.events), default=1) - 1)
    for segment in segments:
        yield from checkers.check(segment)
