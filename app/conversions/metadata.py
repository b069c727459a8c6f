"""Keys and values of metadata in requests (records 1 and 5)."""

from collections.abc import Mapping


def contains_nul(value: object) -> bool:
    """Return whether a text in parsed JSON contains NUL, which PostgreSQL cannot store."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            if "\0" in each:
                return True
        elif isinstance(each, Mapping):
            waiting += [*each, *each.values()]
        elif isinstance(each, list):
            waiting += each
    return False
