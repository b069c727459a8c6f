"""The rules for metadata: entries, their values, and the limits of a record (records 1 and 5)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import orjson
from flask import current_app

from app.conversions.numbers import INT64_MAX
from app.errors import Sentence, ShopError, invalid, reason_of

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
class MetadataEntry:
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


def shown(entries: Sequence[MetadataEntry]) -> Metadata:
    """Return entries in the native form: of several entries with one key, the first."""
    found: Metadata = {}
    for entry in entries:
        if entry.key not in found:
            found[entry.key] = orjson.loads(entry.value)
    return found


def added_keys(given: Mapping[str, object] | Patches) -> list[str]:
    """Return the keys to which a change gives a value, in either of its forms."""
    if isinstance(given, Mapping):
        return [key for key, value in given.items() if value is not None]
    values = ((each.get("key"), each.get("value")) for each in given)
    return [key for key, value in values if key and value is not None]


def changed_entries(
    before: Sequence[MetadataEntry], given: Mapping[str, object], place: str
) -> list[MetadataEntry]:
    """Return the entries of a record after a change.

    Setting a key changes its first entry, which keeps its ID. Null removes all entries of a key.

    Raises:
        ShopError: the result is beyond a limit, and larger than before in this respect.
    """
    first = {entry.key: entry for entry in reversed(before)}
    values = {key: value for key, value in given.items() if value is not None}
    added = {key: MetadataEntry(key, "") for key in values if key not in first}
    kept = [entry for entry in before if given.get(entry.key, "") is not None]
    _require_number(place, len(before), len(kept) + len(added), list(added))
    changed, grown = dict[str, MetadataEntry](), ""
    for key, value in values.items():
        earlier = first.get(key) or added[key]
        changed[key] = _with_value(place, earlier, key, value, is_new=key in added)
        grown = key if changed[key].size > earlier.size else grown
    after = [changed.get(each.key, each) if each is first[each.key] else each for each in kept]
    after += [changed[key] for key in added]
    _require_total(place, before, after, grown)
    return after


def _with_value(
    place: str, first: MetadataEntry, key: str, value: object, *, is_new: bool
) -> MetadataEntry:
    """Return an entry with another key and value, or raise ShopError if they are beyond a limit."""
    try:
        text = json_text(value)
    except ValueError as error:
        raise invalid_metadata(place, key, "{0}", reason_of(error)) from None
    if is_new:
        _require_key(place, key)
    entry = replace(first, key=key, value=text, internal=False, is_changed=True)
    _require_value(place, entry, first.size)
    return entry


def patched_entries(
    before: Sequence[MetadataEntry], given: Patches, place: str
) -> list[MetadataEntry]:
    """Return the entries of a record after entries were written by ID or key.

    With the ID of an entry, a key and a value change this entry, and the value null removes it.
    Otherwise, a value becomes the only one of its key, and null removes all of its entries. An
    unknown ID adds an entry. What has no key, or no value for a new entry, is skipped. The limits
    are those of ``changed_entries``, also for the number of values that are written.
    """
    _require_patches(place, len(before), given)
    after = dict(enumerate(before))  # by a number that grows with the place
    places: dict[str, set[int]] = defaultdict(set)  # the numbers of the entries of a key
    for at, entry in after.items():
        places[entry.key].add(at)
    numbers: dict[object, int] = {
        entry.id: at for at, entry in after.items() if entry.id is not None
    }
    for new, patch in enumerate(given, len(before)):
        key, value, own_id = str(patch.get("key") or ""), patch.get("value"), patch.get("id")
        own = [at for at in (numbers.get(own_id),) if at in after]
        first, *others = (own if own_id else sorted(places[key])) or [new]
        if value is None:
            gone = [first, *others] if "value" in patch else []
        elif key:
            stored = after.get(first, MetadataEntry(key, ""))
            after[first] = _with_value(place, stored, key, value, is_new=True)
            places[stored.key].discard(first)
            places[key].add(first)
            gone = others
        else:
            continue
        for at in gone:
            if at in after:
                places[after.pop(at).key].discard(at)
    found = list(after.values())
    _require_number(place, len(before), len(found), [entry.key for entry in found])
    _require_total(place, before, found, found[-1].key if found else "")
    return found


def invalid_metadata(place: str, key: str, template: str, *values: object) -> ShopError:
    """Return the error of a key, with a sentence as its reason."""
    param, reason = f"{place}.{key}" if key else place, Sentence(template, *values)
    return ShopError("shop_api_invalid_metadata", param=param, reason=reason)


def _limit(name: str) -> int:
    limit: int = current_app.config[f"SHOP_METADATA_{name}"]
    return limit


def _require_key(place: str, key: str) -> None:
    longest = _limit("KEY_LENGTH")
    if not 1 <= len(key) <= longest:
        raise invalid_metadata(place, key, "a key must have 1 to {0:,} characters.", longest)


def _require_value(place: str, entry: MetadataEntry, before: int) -> None:
    largest = _limit("VALUE_BYTES")
    if entry.size > max(largest, before):
        raise invalid_metadata(place, entry.key, "the value is larger than {0:,} bytes.", largest)


def _require_number(place: str, before: int, after: int, added: Sequence[str]) -> None:
    most = _limit("ENTRIES")
    if after > max(most, before):
        first = added[max(len(added) - (after - most), 0)]
        raise invalid_metadata(place, first, "the record would have more than {0:,} entries.", most)


def _require_patches(place: str, before: int, given: Patches) -> None:
    """Raise ShopError if more values are written than a record can have entries."""
    keys = [
        str(patch["key"]) for patch in given if patch.get("key") and patch.get("value") is not None
    ]
    _require_number(place, before, len(keys), keys)


def _require_total(
    place: str, before: Sequence[MetadataEntry], after: Sequence[MetadataEntry], grown: str
) -> None:
    largest = _limit("BYTES")
    if sum(entry.size for entry in after) > max(largest, sum(entry.size for entry in before)):
        reason = "the values of the record would be larger than {0:,} bytes together."
        raise invalid_metadata(place, grown, reason, largest)


def json_text(value: object) -> str:
    """Return the JSON text of a value, without blanks and with the keys of objects as sent.

    Args:
        value: parsed JSON, with numbers as int, float or Decimal.

    Raises:
        ValueError: an integer is outside 64 bits, or the value is nested too deeply.
    """
    return orjson.dumps(_storable(value, MAX_DEPTH)).decode()


def _storable(value: object, depth: int) -> object:
    if isinstance(value, Decimal):
        return float(value)  # written as the shortest text of this double
    if isinstance(value, int) and not -INT64_MAX - 1 <= value <= INT64_MAX:
        raise ValueError("contains an integer outside 64 bits.")
    if isinstance(value, list | Mapping):
        if not depth:
            raise invalid("is nested more than {0} levels deep.", MAX_DEPTH)
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
