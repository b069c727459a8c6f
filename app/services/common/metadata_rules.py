"""The rules for metadata: entries, their values, and the limits of a record (records 1 and 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import orjson
from flask import current_app

from app.conversions.numbers import INT64_MAX
from app.errors import ShopError

Metadata = dict[str, Any]
"""The first value of each key, as parsed JSON."""

Patches = Sequence[Mapping[str, Any]]
"""Entries to write with ``id``, ``key`` and ``value``; see ``patched_entries``."""

FOUND_LENGTH = 255
"""Length in characters of the longest text that filters find."""

MAX_DEPTH = 100
"""How deeply lists and objects can be nested. orjson writes 254 levels."""

_NOT_FOUND = ("[", "{", "null")


@dataclass(slots=True)
class Entry:
    """An entry of metadata.

    Attributes:
        value: the value as JSON.
        id: None for a new entry.
        internal: whether an import brought it with a key that begins with an underscore.
        is_changed: whether it has to be written.
    """

    key: str
    value: str
    id: int | None = None
    internal: bool = False
    is_changed: bool = False

    @property
    def size(self) -> int:
        """Return the size of the value in bytes."""
        return len(self.value.encode())


def shown(entries: Sequence[Entry]) -> Metadata:
    """Return entries in the native form: of several entries with one key, the first."""
    found: Metadata = {}
    for entry in entries:
        if entry.key not in found:
            found[entry.key] = orjson.loads(entry.value)
    return found


def changed_entries(before: Sequence[Entry], given: Mapping[str, Any], place: str) -> list[Entry]:
    """Return the entries of a record after a change.

    Setting a key changes its first entry, which keeps its ID. Null removes all entries of a key.

    Raises:
        ShopError: the result is beyond a limit, and larger than before in this respect.
    """
    after = list(before)
    added: list[str] = []
    grown = ""
    for key, value in given.items():
        first = next((at for at, entry in enumerate(after) if entry.key == key), None)
        if value is None:
            after = [entry for entry in after if entry.key != key]
            continue
        try:
            text = json_text(value)
        except ValueError as error:
            raise invalid_metadata(place, key, str(error)) from None
        if first is None:
            _require_key(place, key)
            after.append(Entry(key, "", is_changed=True))
            added.append(key)
            first = len(after) - 1
        entry = replace(after[first], value=text, internal=False, is_changed=True)
        _require_value(place, entry, after[first].size)
        grown = key if entry.size > after[first].size else grown
        after[first] = entry
    _require_number(place, len(before), len(after), added)
    _require_total(place, before, after, grown)
    return after


def patched_entries(before: Sequence[Entry], given: Patches, place: str) -> list[Entry]:
    """Return the entries of a record after entries were written by ID or key (wc-v3).

    With the ID of an entry, a key and a value change this entry, and the value null removes it.
    Otherwise, a value becomes the only one of its key, and null removes all of its entries. An
    unknown ID adds an entry. What has no key, or no value for a new entry, is skipped. The limits
    are those of ``changed_entries``.
    """
    after = list(before)
    for patch in given:
        key, value = str(patch.get("key") or ""), patch.get("value")
        own = [entry for entry in after if entry.id is not None and entry.id == patch.get("id")]
        same = own if patch.get("id") else [entry for entry in after if entry.key == key]
        if value is None:
            if "value" in patch:
                after = [entry for entry in after if entry not in same]
            continue
        if not key:
            continue
        try:
            text = json_text(value)
        except ValueError as error:
            raise invalid_metadata(place, key, str(error)) from None
        _require_key(place, key)
        first = same[0] if same else Entry(key, "")
        entry = replace(first, key=key, value=text, internal=False, is_changed=True)
        _require_value(place, entry, first.size)
        at = next((at for at, each in enumerate(after) if each is first), len(after))
        after[at : at + 1] = [entry]
        after = [each for each in after if each is entry or each not in same[1:]]
    _require_number(place, len(before), len(after), [entry.key for entry in after])
    _require_total(place, before, after, after[-1].key if after else "")
    return after


def invalid_metadata(place: str, key: str, reason: str) -> ShopError:
    """Return the error of a key."""
    param = f"{place}.{key}" if key else place
    return ShopError("shop_api_invalid_metadata", param=param, reason=reason)


def _limit(name: str) -> int:
    limit: int = current_app.config[f"SHOP_METADATA_{name}"]
    return limit


def _require_key(place: str, key: str) -> None:
    longest = _limit("KEY_LENGTH")
    if not 1 <= len(key) <= longest:
        raise invalid_metadata(place, key, f"a key must have 1 to {longest:,} characters.")


def _require_value(place: str, entry: Entry, before: int) -> None:
    largest = _limit("VALUE_BYTES")
    if entry.size > max(largest, before):
        raise invalid_metadata(place, entry.key, f"the value is larger than {largest:,} bytes.")


def _require_number(place: str, before: int, after: int, added: Sequence[str]) -> None:
    most = _limit("ENTRIES")
    if after > max(most, before):
        first = added[max(len(added) - (after - most), 0)]
        raise invalid_metadata(place, first, f"the record would have more than {most:,} entries.")


def _require_total(place: str, before: Sequence[Entry], after: Sequence[Entry], grown: str) -> None:
    largest = _limit("BYTES")
    if sum(entry.size for entry in after) > max(largest, sum(entry.size for entry in before)):
        reason = f"the values of the record would be larger than {largest:,} bytes together."
        raise invalid_metadata(place, grown, reason)


def json_text(value: Any) -> str:
    """Return the JSON text of a value, without blanks and with the keys of objects as sent.

    Args:
        value: parsed JSON, with numbers as int, float or Decimal.

    Raises:
        ValueError: an integer is outside 64 bits, or the value is nested too deeply.
    """
    return orjson.dumps(_storable(value, MAX_DEPTH)).decode()


def _storable(value: Any, depth: int) -> Any:
    if isinstance(value, Decimal):
        return float(value)  # written as the shortest text of this double
    if isinstance(value, int) and not -INT64_MAX - 1 <= value <= INT64_MAX:
        raise ValueError("contains an integer outside 64 bits.")
    if isinstance(value, list | Mapping):
        if not depth:
            raise ValueError(f"is nested more than {MAX_DEPTH} levels deep.")
        if isinstance(value, list):
            return [_storable(each, depth - 1) for each in value]
        return {name: _storable(each, depth - 1) for name, each in value.items()}
    return value


def found_text(text: str) -> str | None:
    """Return the text by which filters find a value, or None if they do not find it.

    Args:
        text: the value as ``json_text`` returns it. Numbers and booleans are found by this text.
    """
    if text.startswith(_NOT_FOUND):
        return None
    found: str = orjson.loads(text) if text.startswith('"') else text
    return found if len(found) <= FOUND_LENGTH else None
