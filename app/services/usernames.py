"""Generated usernames of customers (decisions 5)."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.db.search import comparable
from app.emails import username_from_email
from app.services.customer_statistics import TABLE

DEFAULT_USERNAME = "customer"
"""Username for an e-mail address whose local part has no usable characters."""

FIRST_USERNAMES = 9
"""Usernames per e-mail address that are checked first, before the rest is searched."""

_LOOKUP_SIZE = 40  # usernames per statement of the search
_MAX_DOUBLINGS = 30  # the search covers FIRST_USERNAMES * 2**30 usernames


def first_usernames(email: str) -> set[str]:
    """Return the first usernames for an e-mail address, normalized: john, john2, … john9."""
    return _normalized(_base(email), range(1, FIRST_USERNAMES + 1))


def free_username(session: Session, email: str, taken: set[str]) -> str:
    """Return an unused username that is based on an e-mail address (decisions 5).

    Checks the first usernames one by one. Beyond them, a binary search finds an unused number that
    follows a used one, so a few statements are enough for any number of used usernames.

    Args:
        session: the session of the transaction.
        email: the e-mail address.
        taken: normalized usernames that are in use, including those of ``first_usernames`` and
            those that this transaction creates. The function adds the usernames that it finds.
    """
    base = _base(email)

    def is_taken(number: int) -> bool:
        return comparable(_numbered(base, number)) in taken

    for number in range(1, FIRST_USERNAMES + 1):
        if not is_taken(number):
            return _numbered(base, number)
    low, high = FIRST_USERNAMES, FIRST_USERNAMES * 2**_MAX_DOUBLINGS
    numbers = [FIRST_USERNAMES * 2**power for power in range(1, _MAX_DOUBLINGS + 1)]
    while high - low > 1:
        taken |= set(_existing(session, _normalized(base, numbers)))
        for number in numbers:
            if not is_taken(number):
                high = number
                break
            low = number
        step = -(-(high - low) // (_LOOKUP_SIZE + 1))
        numbers = list(range(low + step, high, step))
    return _numbered(base, high)


def _existing(session: Session, names: Iterable[str]) -> Iterable[str]:
    return session.scalars(
        select(TABLE.c.username_normalized).where(TABLE.c.username_normalized.in_(names))
    )


def _base(email: str) -> str:
    return username_from_email(email)[:50] or DEFAULT_USERNAME


def _normalized(base: str, numbers: Iterable[int]) -> set[str]:
    return {comparable(_numbered(base, number)) for number in numbers}


def _numbered(base: str, number: int) -> str:
    """Return a numbered username: john, john2, john3 and so on."""
    return base if number == 1 else f"{base}{number}"
