"""Limits of failed logins, counted in the memory of each worker or in Redis (decisions 13)."""

import logging
import math
import time
from collections.abc import Mapping
from ipaddress import IPv6Address, IPv6Network, ip_address

from limits import RateLimitItemPerMinute
from limits.errors import StorageError
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import MovingWindowRateLimiter

from app.auth.api_keys import authentication_error
from app.auth.hashes import keyed_hash
from app.errors import ShopError

ADDRESSES_PER_KEY = 10
"""The limit of failed logins of a key, as a multiple of the limit of an address."""

MAX_ADDRESSES = 10_000
"""Maximum number of addresses over their limit that a worker stores."""

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


class FailedLogins:
    """Counts failed logins for each address and each key, and creates the error responses.

    Args:
        per_minute: failed logins of an address that receive 401 before the status becomes 429. A
            key has ADDRESSES_PER_KEY times as many. 0 disables the limits.
        redis_url: the Redis server that counts for all workers, or None to count in the memory of
            each worker.
    """

    def __init__(self, per_minute: int, redis_url: str | None = None) -> None:
        self._per_minute = per_minute
        self._limiter = FailedLoginLimiter(redis_url)
        self._blocked_until: dict[str, float] = {}

    def is_blocked(self, address: str) -> bool:
        """Return whether this worker sent a 429 response to an address that has not expired.

        This check does not count anything or use Redis, so it costs valid requests nothing.
        """
        return (
            bool(self._blocked_until)
            and self._blocked_until.get(network(address), 0) > time.monotonic()
        )

    def record(self, address: str, consumer_key: str, reason: str) -> ShopError:
        """Count a failed login and return the error for the response."""
        limits = {
            f"address {network(address)}": self._per_minute,
            f"key {keyed_hash(consumer_key)}": self._per_minute * ADDRESSES_PER_KEY,
        }
        seconds = self._limiter.hit(limits) if self._per_minute else 0
        if not seconds:
            return authentication_error(reason)
        if len(self._blocked_until) >= MAX_ADDRESSES:
            self._blocked_until.clear()
        self._blocked_until[network(address)] = time.monotonic() + seconds
        return ShopError("shop_api_too_many_requests", headers={"Retry-After": str(seconds)})
