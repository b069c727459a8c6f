"""The times of retries, and the back-off of webhooks after failed attempts (events 2)."""

import random
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from app.outbound.client import Outcome

RETRY_SECONDS = (
    5,
    60,
    5 * 60,
    30 * 60,
    2 * 3600,
    5 * 3600,
    10 * 3600,
    14 * 3600,
    20 * 3600,
    24 * 3600,
)
"""Wait after each failed attempt. After one more failure, the delivery is ``failed``."""

JITTER = 0.1
"""Maximum random extension of each wait, as a share, so that retries do not coincide."""

MAX_RETRY_AFTER = 24 * 3600
"""Maximum wait in seconds that ``Retry-After`` can request."""

BREAKER = 5
"""Consecutive failures after which a webhook backs off and gets one delivery at a time."""

BACKOFF_SECONDS = 5, 10, 20, 30
"""Duration of the back-off after BREAKER failures, and after each further failure."""


def next_attempt(attempt_count: int, outcome: Outcome, at: datetime) -> datetime | None:
    """Return the time of the next attempt after a failed attempt, or None after the last one.

    Args:
        attempt_count: number of failed attempts, including this one.
        outcome: what the receiver responded. A later time in ``Retry-After`` is respected.
        at: the start of the attempt.
    """
    if attempt_count > len(RETRY_SECONDS):
        return None
    ended = at + timedelta(milliseconds=outcome.duration_ms)
    wait = RETRY_SECONDS[attempt_count - 1] * random.uniform(1, 1 + JITTER)  # nosec B311  # no secret
    return ended + timedelta(seconds=max(wait, retry_after(outcome, ended)))


def retry_after(outcome: Outcome, timestamp: datetime) -> float:
    """Return the seconds that ``Retry-After`` asks for, as seconds or a date: at most a day."""
    text = outcome.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return min(float(text[:9]), MAX_RETRY_AFTER)
    try:
        until = parsedate_to_datetime(text)
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        return min(max((until - timestamp).total_seconds(), 0.0), MAX_RETRY_AFTER)
    except (ValueError, OverflowError):
        return 0.0


def resume_time(failure_count: int, outcome: Outcome, at: datetime) -> datetime | None:
    """Return the end of the back-off of a webhook after a failed attempt, or None.

    ``Retry-After`` applies to the receiver, so no other delivery is sent to it before that time.

    Args:
        failure_count: consecutive failed attempts, including this one.
    """
    ended = at + timedelta(milliseconds=outcome.duration_ms)
    seconds = retry_after(outcome, ended)
    if failure_count >= BREAKER:
        seconds = max(
            seconds, BACKOFF_SECONDS[min(failure_count - BREAKER, len(BACKOFF_SECONDS) - 1)]
        )
    return ended + timedelta(seconds=seconds) if seconds else None
