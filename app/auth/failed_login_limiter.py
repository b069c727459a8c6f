"""Limits for failed logins, counted in the memory of each worker or in Redis for all workers."""

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
"""Timeout for Redis. Only requests with invalid credentials use Redis."""

REDIS_PAUSE = 30
"""Seconds to wait before using Redis again after a failure."""

_log = logging.getLogger(__name__)


class FailedLoginLimiter:
    """Limits failed logins per minute, under several names at once.

    While Redis is unavailable, each worker counts in its own memory.

    Args:
        redis_url: the Redis server for the counters, or None for the memory of this process.
    """

    def __init__(self, redis_url: str | None) -> None:
        self._local = MovingWindowRateLimiter(MemoryStorage())
        self._shared = MovingWindowRateLimiter(_redis(redis_url)) if redis_url else None
        self._pause_until = 0.0

    def hit(self, limits: Mapping[str, int]) -> int:
        """Count an attempt under each name, one by one, and stop at a name that is over its limit.

        A client that is over its limit therefore cannot create more counters.

        Args:
            limits: the number of allowed attempts per minute for each name.

        Returns:
            Seconds to wait until the next attempt, or 0 if this attempt is within the limits.
        """
        if self._shared and time.monotonic() >= self._pause_until:
            try:
                return self._hit(self._shared, limits)
            except StorageError as error:
                self._pause_until = time.monotonic() + REDIS_PAUSE
                _log.warning(
                    "Redis is unavailable. Each worker counts failed logins in its memory: %s",
                    type(error.storage_error).__name__,
                )
        return self._hit(self._local, limits)

    def _hit(self, limiter: MovingWindowRateLimiter, limits: Mapping[str, int]) -> int:
        for name, per_minute in limits.items():
            limit = RateLimitItemPerMinute(per_minute)
            if not limiter.hit(limit, name):
                reset = limiter.get_window_stats(limit, name).reset_time
                return max(1, math.ceil(reset - time.time()))
        return 0


def is_redis_available(url: str) -> bool:
    """Return whether Redis responds and accepts the credentials in the URL."""
    return _redis(url).check()


def _redis(url: str) -> RedisStorage:
    from redis.backoff import NoBackoff  # noqa: PLC0415  # slow import, needed only with Redis
    from redis.retry import Retry  # noqa: PLC0415  # see above

    return RedisStorage(
        url,
        key_prefix="shop",
        wrap_exceptions=True,
        socket_timeout=REDIS_SECONDS,
        socket_connect_timeout=REDIS_SECONDS,
        retry=Retry(NoBackoff(), 0),  # type: ignore[arg-type] # passed to redis.from_url
    )


def network(address: str) -> str:
    """Return the IPv4 address, or the /64 network of an IPv6 address, which one client can own."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or IPv6Network((int(parsed), 64), strict=False))
