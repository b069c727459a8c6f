"""The history of a record: the differences of its events (admin 2 and 5)."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import orjson
from flask import current_app, url_for

from app.api.authentication import current_principal
from app.api.representations import EVENT
from app.catalog import current_catalog
from app.db.session import now
from app.plugins.admin import html
from app.plugins.admin.texts import gettext as _
from app.services.events.history import latest_events

RESOURCES = ("campaign", "coupon", "customer", "order")
"""The kinds of records whose pages show a history."""

LIMIT = 30
"""The number of events that a history shows."""

_IGNORED = {"updated_at", "meta_data"}

VERBS = {
    "created": "Created",
    "updated": "Changed",
    "deleted": "Moved to the trash",
    "restored": "Restored from the trash",
    "redeemed": "Used",
    "released": "Use released",
    "reserved": "Use reserved",
}


class Entry(NamedTuple):
    """An entry of a history."""

    title: str  # what happened
    at: str  # when, in UTC
    who: str  # the user and the key, and whether by a page or by the API
    changes: list[tuple[str, str, str]]  # label, value before and value after of each field


class History(NamedTuple):
    """The history of a record."""

    entries: list[Entry]  # newest first
    older: str  # the address of earlier events, if there are more than it shows
    kept_since: str  # the day from which changes are kept, if earlier ones may be missing


def history(resource: str, resource_id: int, labels: Mapping[str, str]) -> History:
    """Return the history of a record, for a session that may read events.

    Args:
        resource: its kind.
        resource_id: its ID.
        labels: the labels of fields by their names.
    """
    rows = latest_events(current_principal(), resource, resource_id, EVENT.columns, LIMIT + 1)
    events = [EVENT.row(row[:-4]) for row in rows]
    contents = [_content(event["data"]) for event in events]
    # The event of a deletion has only the ID of the record.
    records = [
        {} if event["type"].endswith(".deleted") else _part(content, resource)
        for event, content in zip(events, contents, strict=True)
    ]
    known: dict[str, Any] = {}
    for index in reversed(range(len(records))):
        # An event of a coupon has some fields only if its request wrote them.
        records[index] = known = {**known, **records[index]}
    entries = []
    for index, (event, row) in enumerate(zip(events[:LIMIT], rows, strict=False)):
        verb, after = event["type"].partition(".")[2], records[index]
        before = next(filter(None, records[index + 1 :]), None)
        found = differences(before, after) if before and after and verb != "created" else []
        changes = [
            (_(labels[name]) if name in labels else html.words(*name.split(".")), old, new)
            for name, old, new in found
        ]
        if _part(contents[index], "redemption").get("status") == "reserved":
            verb = "reserved"
        title = _(VERBS.get(verb) or html.words(verb))
        entries.append(Entry(title, event["created_at"], _who(event, *row[-4:]), changes))
    if len(events) > LIMIT:
        older = url_for(
            "admin_events.show_list",
            resource=resource,
            resource_id=resource_id,
            before=events[LIMIT - 1]["id"],
        )
        return History(entries, older, "")
    is_complete = events and events[-1]["type"].endswith(".created")
    since = now() - timedelta(days=current_app.config["SHOP_EVENTS_DAYS"])
    return History(entries, "", "" if is_complete else html.short_date(since.date()))


def _content(data: Any) -> Mapping[str, Any]:
    """Return the content of an event, whose type depends on the database."""
    if isinstance(data, orjson.Fragment):
        data = orjson.dumps(data)
    data = orjson.loads(data) if isinstance(data, str | bytes) else data
    return data if isinstance(data, Mapping) else {}


def _part(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object in the content of an event. Events of plugins can have other values."""
    found = content.get(name)
    return found if isinstance(found, Mapping) else {}


def _who(
    event: Mapping[str, Any],
    username: str | None,
    description: str | None,
    key_id: int | None,
    session_id: int | None,
) -> str:
    """Return who made a change: the user, the key, whether by a page or by the API, the plugin."""
    plugin, who = current_catalog().event_plugins.get(event["type"]), username
    if username is None and event["user_id"]:
        who = _("A user who was deleted")
    elif username is None and not plugin:
        who = _("A command or the worker")
    key = way = ""
    if username is not None and key_id is not None:
        way = _("on a page") if session_id else _("by the API")
        key = _("key %(id)s", id=key_id) if description is None else description
    by = _("plugin %(name)s", name=plugin) if plugin else ""
    return " · ".join(filter(None, (who, key, way, by)))


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the fields in which two representations differ: name, before and after."""
    found = []
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if old == new or name in _IGNORED:
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            found += [(f"{name}.{part}", *pair) for part, *pair in differences(old, new)]
        else:
            text = _time if name.endswith(("_at", "_date")) else shown
            found.append((name, text(old), text(new)))
    return found  # type: ignore[return-value]  # three texts each


def _time(value: Any) -> str:
    """Return a time as the pages show times, and another value, as metadata can have, as it is."""
    try:
        moment = datetime.strptime(value, "%Y-%m-%dT%H:%M:%S%z")
    except (TypeError, ValueError):
        return shown(value)
    if value.endswith("T00:00:00Z"):  # such as an expiry date, which never shifts
        return html.short_date(moment.date())
    return html.short_time(moment)


def shown(value: Any) -> str:
    """Return a JSON value as short text."""
    if value is None or value in ("", []):
        return html.NONE
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= 200 else f"{text[:200]}…"
