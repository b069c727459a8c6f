"""What several planted defects have in common."""

from __future__ import annotations

import time
from typing import Any

from app.services.redemptions import slots


def take_with(*conditions: Any) -> None:
    """Let slots be taken with other conditions: of the coupon, and then of its customer."""
    slots._TAKE = slots._taking(*conditions)
    slots._TAKE_OF_ALL_USES = slots._taking(*conditions[:1])


def cached(read: Any) -> Any:
    """Return a function whose results of the last half second are used again."""
    cache: dict[Any, Any] = {}

    def cached(actor: Any, *args: Any, **kwargs: Any) -> Any:
        key = str(args)
        if key not in cache or time.monotonic() - cache[key][0] > 0.5:
            cache[key] = time.monotonic(), read(actor, *args, **kwargs)
        return cache[key][1]

    return cached
