"""Values in the serialization format of PHP, in which WordPress stores lists.

They are parsed without creating objects.
"""

from __future__ import annotations

from typing import Any

import phpserialize


class UnreadableValue(Exception):
    """A value that is not in the serialization format of PHP."""


def unserialized(text: str) -> Any:
    """Return a value. An array becomes a dict, and an object becomes a dict of its properties.

    Raises:
        UnreadableValue: the text is cut off, or not a serialized value.
    """
    try:
        return phpserialize.loads(
            text.encode(), errors="replace", decode_strings=True,
            object_hook=lambda _, properties: properties,
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise UnreadableValue(str(error)) from error


def list_of(text: str | None) -> list[str]:
    """Return the texts of a stored list: a serialized array, or comma-separated texts.

    Raises:
        UnreadableValue: a serialized value is damaged.
    """
    if not text:
        return []
    if text[:2] in {"a:", "s:", "i:", "b:", "d:", "N;", "O:"}:
        value = unserialized(text)
        values = list(value.values()) if isinstance(value, dict) else [value]
        return [str(each) for each in values if isinstance(each, str | int | float)]
    return text.split(",")


def keys_of(text: str | None) -> list[str]:
    """Return the keys with true values in a serialized array, such as the roles of a user.

    Raises:
        UnreadableValue: the value is damaged.
    """
    value = unserialized(text) if text else {}
    if not isinstance(value, dict):
        raise UnreadableValue("not an array")
    # Very old versions of WordPress stored lists of roles.
    return [str(held) if isinstance(key, int) else str(key) for key, held in value.items() if held]
