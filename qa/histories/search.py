"""The search of Wing and Gong for an order of operations in which a response is right.

Wing and Gong, "Testing and Verifying Concurrent Objects", 1993: choose an operation that no other
one precedes in time, apply it to the model, and continue; go back where the model does not permit
it. States that were reached before with the same operations are not tried again (Lowe, 2017).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from qa.histories.model import Coupon, Rejected

SECONDS = 10.0
"""After this time, a history counts as one without an order."""


@dataclass(frozen=True)
class Action:
    """An operation on a coupon: returns the coupon after it, or raises Rejected."""

    name: str
    invoked: float
    returned: float
    apply: Callable[[Coupon], Coupon]
    is_certain: bool = True


def find_order(
    coupon: Coupon, actions: list[Action], seconds: float = SECONDS
) -> list[Action] | None:
    """Return an order of operations that the model permits, or None.

    Operations that are not certain, because their result is unknown, can be left out.

    Args:
        coupon: the coupon before all operations.
        actions: the operations. One that only reads raises Rejected in a state that it cannot show.
        seconds: when to give up.
    """
    end = time.monotonic() + seconds
    actions = sorted(actions, key=lambda action: action.invoked)
    seen: set[Any] = set()

    def continued(state: Coupon, done: frozenset[int], order: list[Action]) -> list[Action] | None:
        rest = [number for number in range(len(actions)) if number not in done]
        if not any(actions[number].is_certain for number in rest):
            return order
        key = done, state.key()
        if key in seen or time.monotonic() > end:
            return None
        seen.add(key)
        first = min(actions[number].returned for number in rest if actions[number].is_certain)
        for number in rest:
            action = actions[number]
            if action.invoked > first:
                break
            try:
                after = action.apply(state)
            except Rejected:
                continue
            if found := continued(after, done | {number}, [*order, action]):
                return found
        return None

    return continued(coupon, frozenset(), [])
