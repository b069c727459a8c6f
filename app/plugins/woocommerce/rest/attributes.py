"""Attributes of order lines with a label, which this dialect shows as metadata.

Lines of an import and of native requests have them. What a request writes otherwise is metadata of
the line.
"""

from __future__ import annotations

from app.plugins.woocommerce.rest.site import Object, Record, shown_value
from app.services.orders.items import META_IDS


def change_attributes(item: Object, order: Record) -> None:
    """Let entries of ``meta_data`` that name attributes of a stored line change these (surface 6).

    An entry with an ID changes that attribute, another one the first with its key, and removes
    further ones. Null removes. A list or an object is metadata, which replaces the attribute.

    Args:
        item: the change of the line, in the native form, with ``meta_data``.
        order: the stored order.
    """
    line = next(each for each in order["line_items"] if each["id"] == item["id"])
    details = (order["item_details"] or {}).get(str(item["id"]), {})
    places = {number: at for at, number in enumerate(details.get(META_IDS, ())) if number}
    metadata = {entry[1] for entry in order["items_metadata"].get(item["id"], ())}
    left, entries = dict(enumerate(line.get("meta") or ())), []
    for entry in item["meta_data"]:
        key, number, given = entry.get("key"), entry.get("id"), entry.get("value")
        found = [at for at, each in left.items() if each["key"] == key]
        named = [places[number]] if number in places else found * (not number)
        value = None if given is None else shown_value(given)
        if not named or key in metadata or isinstance(value, list | dict):
            own = key or (line["meta"][named[0]]["key"] if named else None)
            entries.append({**entry, "key": own})
            value = None
        if "value" in entry and (key or value is None):
            _change(left, named, key, value)
    item["meta_data"] = entries
    if list(left.values()) != (line.get("meta") or []):
        item["meta"] = list(left.values())


def _change(left: dict[int, Object], named: list[int], key: str | None, value: str | None) -> None:
    """Change the first of the named attributes, or remove it, and remove the others."""
    for at in named if value is None else named[1:]:
        left.pop(at, None)
    if value is not None and named[0] in left:
        label = left[named[0]].get("label") if left[named[0]]["key"] == key else key
        left[named[0]] = {"key": key, "label": label, "value": value}
