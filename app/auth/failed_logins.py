"""Limits of failed logins (decisions 13)."""

from __future__ import annotations

import time

from app.auth.api_keys import authentication_error
from app.auth.failed_login_limiter import FailedLoginLimiter, network
from app.auth.hashes import keyed_hash
from app.errors import ShopError

ADDRESSES_PER_KEY = 10
"""The limit of failed logins of a key, as a multiple of the limit of an address."""

MAX_ADDRESSES = 10_000
"""Maximum number of addresses over their limit that a worker stores."""


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
