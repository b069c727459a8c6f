"""Generated usernames of customers (decisions 5)."""

from collections.abc import Iterable, Sequence

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from app.conversions.emails import username_from_email
from app.conversions.text import USERNAME_MAX_LENGTH, comparable
from app.db.sql.functions import is_one_of
from app.db.sql.types import TextList
from app.models import USERS

DEFAULT_USERNAME = "customer"
"""Username for an e-mail address whose local part has no usable characters."""

FIRST_USERNAMES = 9
"""Usernames per e-mail address that are checked before the others are looked up."""

MAX_SMALLEST = 500
"""Up to this number, the smallest number that is not in use is found."""

_PROBES = 100  # usernames per statement beyond it

_EXISTING = select(USERS.c.username_normalized).where(
    is_one_of(USERS.c.username_normalized, bindparam("usernames", type_=TextList))
)


def first_usernames(email: str) -> set[str]:
    """Return the first usernames for an e-mail address, normalized: john, john2, … john9."""
    base = _base(email)
    return {comparable(_numbered(base, number)) for number in range(1, FIRST_USERNAMES + 1)}


def free_username(session: Session, email: str, taken: set[str]) -> str:
    """Return an unused username that is based on an e-mail address (decisions 5).

    Finds the smallest unused number up to ``MAX_SMALLEST``. Beyond it, a search finds an unused
    number that follows a used number, so a few statements are enough for any number of used
    usernames.

    Args:
        taken: normalized usernames that are in use, including those of ``first_usernames`` and
            those that this transaction creates. The function adds the usernames that it finds.
    """
    base = _base(email)
    number = _smallest_free(session, base, taken) or _following_free(session, base, taken)
    return _numbered(base, number)


def _smallest_free(session: Session, base: str, taken: set[str]) -> int | None:
    """Return the smallest unused number, or None if it is larger than ``MAX_SMALLEST``."""
    first, others = range(1, FIRST_USERNAMES + 1), range(FIRST_USERNAMES + 1, MAX_SMALLEST + 1)
    for numbers in (first, others):
        names = {number: comparable(_numbered(base, number)) for number in numbers}
        if numbers is others:
            _look_up(session, names.values(), taken)
        for number, name in names.items():
            if name not in taken:
                return number
    return None


def _following_free(session: Session, base: str, taken: set[str]) -> int:
    """Return an unused number that follows a used number, larger than ``MAX_SMALLEST``.

    Doubles the number until it is unused, which ends because the number of users is finite. A
    search between the last two numbers follows.
    """
    low, high = MAX_SMALLEST, None
    while high is None or high - low > 1:
        if high is None:
            numbers: Sequence[int] = [low << power for power in range(1, _PROBES + 1)]
        else:
            step = -(-(high - low) // (_PROBES + 1))
            numbers = range(low + step, high, step)
        names = {number: comparable(_numbered(base, number)) for number in numbers}
        _look_up(session, names.values(), taken)
        for number, name in names.items():
            if name not in taken:
                high = number
                break
            low = number
    return high


def _look_up(session: Session, names: Iterable[str], taken: set[str]) -> None:
    """Add those of the normalized usernames that are in use to ``taken``."""
    if unknown := [name for name in names if name not in taken]:
        taken.update(session.scalars(_EXISTING, {"usernames": unknown}))


def _base(email: str) -> str:
    return username_from_email(email)[:50] or DEFAULT_USERNAME


def _numbered(base: str, number: int) -> str:
    """Return a numbered username: john, john2, john3 and so on, shortened before the number."""
    suffix = "" if number == 1 else str(number)
    return base[: USERNAME_MAX_LENGTH - len(suffix)] + suffix
