"""Counting wrong credentials: in the memory of a worker, or in Redis for all of them."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from ipaddress import IPv6Address, IPv6Network, ip_address

from limits import RateLimitItemPerMinute
from limits.errors import StorageError
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import MovingWindowRateLimiter

REDIS_SECONDS = 0.5
"""How long a request waits for Redis. Only one with wrong credentials asks it."""

REDIS_PAUSE = 30
"""Seconds until Redis is asked again after it did not answer."""

_log = logging.getLogger(__name__)


class FailedLoginLimiter:
    """Counts attempts in a minute, under several names at once.

    While Redis is away, each worker counts for itself: an attempt is neither free nor an error.

    Args:
        redis_url: where to count; None: in the memory of this process.
    """

    def __init__(self, redis_url: str | None) -> None:
        self._own = MovingWindowRateLimiter(MemoryStorage())
        self._shared = MovingWindowRateLimiter(_redis(redis_url)) if redis_url else None
        self._pause_until = 0.0

    def hit(self, limits: Mapping[str, int]) -> int:
        """Count an attempt under each name in turn, up to one that has had too many.

        So one who has had too many makes no more names known.

        Args:
            limits: how many are let through under a name in a minute.

        Returns:
            Seconds after which another attempt makes sense; 0 when this one is let through.
        """
        if self._shared and time.monotonic() >= self._pause_until:
            try:
                return self._hit(self._shared, limits)
            except StorageError as error:
                self._pause_until = time.monotonic() + REDIS_PAUSE
                _log.warning(
                    "Redis does not answer, each worker counts attempts for itself: %s",
                    type(error.storage_error).__name__,
                )
        return self._hit(self._own, limits)

    def _hit(self, limiter: MovingWindowRateLimiter, limits: Mapping[str, int]) -> int:
        for name, per_minute in limits.items():
            limit = RateLimitItemPerMinute(per_minute)
            if not limiter.hit(limit, name):
                reset = limiter.get_window_stats(limit, name).reset_time
                return max(1, math.ceil(reset - time.time()))
        return 0


def is_redis_available(url: str) -> bool:
    """Tell whether a Redis answers, and lets us in."""
    return _redis(url).check()


def _redis(url: str) -> RedisStorage:
    from redis.backoff import NoBackoff  # noqa: PLC0415  # who has no Redis pays nothing for it
    from redis.retry import Retry  # noqa: PLC0415  # see above

    return RedisStorage(
        url,
        key_prefix="shop",
        wrap_exceptions=True,
        socket_timeout=REDIS_SECONDS,
        socket_connect_timeout=REDIS_SECONDS,
        retry=Retry(NoBackoff(), 0),  # type: ignore[arg-type] # handed on to redis.from_url
    )


def network(address: str) -> str:
    """Return what one caller surely has: an IPv4 address, or the /64 of an IPv6 address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or IPv6Network((int(parsed), 64), strict=False))
