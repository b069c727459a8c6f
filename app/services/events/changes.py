"""What a write changed: the fields that differ before and after it (people 1)."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from app.catalog import Change, current_catalog
from app.services.common.metadata import BEFORE, ITEMS_METADATA, METADATA

MAX_SIZE = 65_536
"""Size of stored changes in bytes. The event of a larger change has none."""

_OF_DELETED_ORDER = ("order_number", "status", "currency", "total")
"""What remains of an order that was deleted permanently."""

Values = Mapping[str, Any]
Pair = tuple[Values, Values]


def changes_of(change: Change, undo_of: int | None) -> Mapping[str, object] | None:
    """Return ``changes`` of the event of a change, or None if it has none.

    Args:
        undo_of: the event that the change undoes, which is always part of its changes.
    """
    before, after = ({}, {}) if change.before is None else _compared(change, change.before)
    changes: dict[str, Values] = {"before": before, "after": after}
    if (not before and not after) or len(orjson.dumps(changes)) > MAX_SIZE:
        changes = {"before": {}, "after": {}}
    if undo_of is not None:
        return {**changes, "undo_of": undo_of}
    return changes if changes["before"] or changes["after"] else None


def _compared(change: Change, stored: Values) -> Pair:
    values = current_catalog().event_values.get(change.resource)
    if values is None:
        return {}, {}
    if change.event.endswith(".updated") and change.after is not None:
        before = dict(stored)
        for name in (METADATA, ITEMS_METADATA):  # an earlier item of the request can have set it
            before.pop(name, None)
            if name + BEFORE in change.after:
                before[name] = change.after[name + BEFORE]
        return difference(values(before), values(change.after))
    if change.after is None and change.resource in {"coupon", "order"}:
        shown = values(stored)
        if change.resource == "order":
            return {name: shown[name] for name in _OF_DELETED_ORDER}, {}
        (data,) = current_catalog().event_data["coupon"]([stored])
        return {**data["coupon"], **shown}, {}
    return {}, {}


def difference(before: Values, after: Values) -> Pair:
    """Return the fields of two records that differ, in the form of ``changes``.

    Of a nested object, these are the parts that differ; of metadata, the keys, null if absent; of a
    list of objects with an ``id``, the items that differ, each with its differences.
    """
    old, new = dict[str, object](), dict[str, object]()
    for name in {**before, **after}:
        first, second = before.get(name), after.get(name)
        if first == second and name != METADATA:
            continue
        if name == METADATA:
            pair: tuple[object, object] = _of_metadata(first or {}, second or {})
        elif isinstance(first, Mapping) and isinstance(second, Mapping):
            pair = difference(first, second)
        elif _has_items(first) or _has_items(second):
            pair = _of_items(first or (), second or ())
        else:
            pair = first, second
        if name in before and (pair[0] or pair[0] != pair[1]):
            old[name] = pair[0]
        if name in after and (pair[1] or pair[0] != pair[1]):
            new[name] = pair[1]
    return old, new


def is_same(one: object, other: object) -> bool:
    """Return whether two values are the same JSON, where 1 and true differ."""
    return orjson.dumps(one) == orjson.dumps(other)


def _of_metadata(before: Values, after: Values) -> Pair:
    changed = [key for key in {**before, **after} if not is_same(before.get(key), after.get(key))]
    return {key: before.get(key) for key in changed}, {key: after.get(key) for key in changed}


def _has_items(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _of_items(
    before: Sequence[Values], after: Sequence[Values]
) -> tuple[list[object], list[object]]:
    old, new = list[object](), list[object]()
    first, second = ({item["id"]: item for item in items} for items in (before, after))
    for item_id in {**first, **second}:
        one, other = first.get(item_id), second.get(item_id)
        if one is None or other is None:
            old += [one] if one is not None else []
            new += [other] if other is not None else []
            continue
        names = [name for name in {**one, **other} if name not in (METADATA, "id")]
        changed = [name for name in names if one.get(name) != other.get(name)]
        pair = _of_metadata(one.get(METADATA, {}), other.get(METADATA, {}))
        for values, differing, metadata in ((one, old, pair[0]), (other, new, pair[1])):
            shown = {name: values[name] for name in changed if name in values}
            shown |= {METADATA: metadata} if metadata else {}
            if shown:
                differing.append({"id": item_id, **shown})
    return old, new
