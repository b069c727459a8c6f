"""What several planted defects have in common."""

from __future__ import annotations

import time
from typing import Any

from app.models import COUPONS
from app.services.redemptions import reservations, slots


def take_with(*conditions: Any, per_user: bool) -> None:
    """Let slots be taken with other conditions, and with or without the limit per user."""
    for published, confirmed, check in slots._TAKE:
        column = COUPONS.c.usage_count if confirmed else COUPONS.c.reserved_count
        more = [slots.PUBLISHED] if published else []
        more += slots._CONDITIONS[check] if per_user else []
        slots._TAKE[published, confirmed, check] = slots._taking(column, *conditions, *more)
    reservations._reserve_at_once = lambda *_: None  # has the conditions in a statement of its own


def cached(read: Any) -> Any:
    """Return a function whose results of the last half second are used again."""
    cache: dict[Any, Any] = {}

    def cached(actor: Any, *args: Any, **kwargs: Any) -> Any:
        key = str(args)
        if key not in cache or time.monotonic() - cache[key][0] > 0.5:
            cache[key] = time.monotonic(), read(actor, *args, **kwargs)
        return cache[key][1]

    return cached
