"""The history of a record: what its events have changed (admin 2 and 5)."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import NamedTuple

import orjson
from flask import current_app, url_for

from app.api.authentication import current_principal
from app.api.undo import undone_fields
from app.catalog import current_catalog
from app.conversions.numbers import INT64_MAX
from app.db.session import now
from app.plugins.admin import html, texts
from app.plugins.admin.calls import Record, call, can, operations
from app.plugins.admin.form_fields import is_percent, may_refund
from app.plugins.admin.frame import may_open
from app.plugins.admin.texts import gettext as _
from app.services.campaigns.queries import states_of
from app.services.orders.columns import REFUNDED
from app.services.orders.writes import rights_to_change

RESOURCES = ("campaign", "coupon", "customer", "order")
"""The kinds of records whose pages show a history."""

LIMIT = 30
"""The number of events that a history shows."""

VERBS = {
    "created": "Created",
    "updated": "Changed",
    "deleted": "Moved to the trash",
    "restored": "Restored from the trash",
    "redeemed": "Used",
    "released": "Use released",
    "reserved": "Use reserved",
}


TITLES = {
    "order_note.created": "Note added",
    "order_note.updated": "Note changed",
    "order_note.deleted": "Note deleted",
    "order_refund.created": "Refund recorded",
    "order_refund.updated": "Refund changed",
    "order_refund.deleted": "Refund deleted",
}
"""Titles of events of what belongs to a record."""

CHILD_FIELDS = {"amount": "Amount", "reason": "Reason", "note": "Note"}
"""Labels of what the entry of a new one shows, and of a changed one beside what has changed."""

AMOUNTS = {
    "amount", "budget", "discount", "minimum_amount", "maximum_amount", "maximum_discount",
    "total", "subtotal", "price", "total_tax", "subtotal_tax", "cart_tax", "shipping_tax",
    "discount_tax", "total_shipping", "total_discount", "total_refunded",
}  # fmt: skip
"""Names of the fields of records and of their items that are amounts of money."""

NUMBERS = {
    "quantity", "usage_count", "usage_limit", "usage_limit_per_user", "limit_usage_to_x_items",
    "buy_quantity", "get_quantity", "total_line_items_quantity",
}  # fmt: skip
"""Names of the fields of records and of their items that are numbers of something."""

NOTHING: Mapping[str, object] = MappingProxyType({})

Event = dict[str, object]

ANCHOR = "undo"
"""Where the page of an event asks whether to undo it."""


class Entry(NamedTuple):
    """An entry of a history."""

    title: str  # what happened
    at: str  # when, in UTC
    who: str  # the user and the key, and whether by a page or by the API
    changes: list[tuple[str, str, str]]  # label, value before and value after of each field
    undo: str  # the address of the page that can undo it, or an empty string


class History(NamedTuple):
    """The history of a record."""

    entries: list[Entry]  # newest first
    older: str  # the address of earlier events, if there are more than it shows
    kept_since: str  # the day from which changes are kept, if earlier ones may be missing


FIELDS = "id,type,resource,resource_id,created_at,request_id,data,changes,actor"
"""The fields of events from which entries are made."""


def history(
    resource: str,
    resource_id: int,
    labels: Mapping[str, str],
    with_children: Callable[[list[Event]], list[Event]] = lambda events: events,
    currency: object = None,
) -> History:
    """Return the history of a record, for a session that may read events.

    Args:
        resource: its kind.
        resource_id: its ID.
        labels: the labels of fields by their names.
        with_children: adds the events of what belongs to the record to its latest events.
        currency: that of the amounts of an order.
    """
    of_record: Record = {"resource": resource, "resource_id": resource_id}
    query = {**of_record, "order": "desc", "limit": LIMIT + 1, "fields": FIELDS}
    events = call("list_events", query=query).content
    entries = [entry(event, labels, currency) for event in with_children(events[:LIMIT])]
    if len(events) > LIMIT:
        before = events[LIMIT - 1]["id"]
        older = url_for("admin_events.show_list", **of_record, before=before)
        return History(entries, older, "")
    is_complete = events and events[-1]["type"].endswith(".created")
    days = max(current_app.config[name] for name in ("SHOP_HISTORY_DAYS", "SHOP_EVENTS_DAYS"))
    since = now() - timedelta(days=days)
    return History(entries, "", "" if is_complete else html.short_date(since.date()))


def entry(event: Record, labels: Mapping[str, str], currency: object = None) -> Entry:
    """Return the entry of an event with FIELDS.

    Args:
        labels: the labels of fields by their names.
        currency: that of the amounts of an order, unless the event has another one.
    """
    verb, changes = event["type"].partition(".")[2], event["changes"] or {}
    redemption, data = event["data"].get("redemption"), event["data"]
    if isinstance(redemption, Mapping) and redemption.get("status") == "reserved":
        verb = "reserved"
    title = _(TITLES.get(event["type"]) or VERBS.get(verb, ""))
    if data.get("permanent") and event["type"] not in TITLES:
        title = _("Deleted permanently")
    can_undo = verb == "restored" or (verb == "updated" and changes)
    can_undo = can_undo or (verb == "deleted" and not data.get("permanent", True))
    undo = ""
    if can_undo and may_open("admin_events.undo") and _may_undo(event, changes):
        undo = url_for("admin_events.show", event_id=event["id"], _anchor=ANCHOR)
    if event["type"] in TITLES:
        labels = CHILD_FIELDS
    record = {"currency": currency} | record_of(event)
    listed = differences(changes.get("before", {}), changes.get("after", {}), labels, record)
    child = record if event["type"] in TITLES else {}
    listed += [
        (_(label), "", _text(name, child[name], record))
        for name, label in CHILD_FIELDS.items()
        if child.get(name) and name not in changes.get("after", {})
    ]
    return Entry(title or html.words(verb), event["created_at"], _who(event), listed, undo)


def record_of(event: Record) -> Record:
    """Return the record that an event contains, empty if the event has no data any more.

    The event of a plugin can have any value in its place. Amounts of a record without a currency of
    its own, such as a coupon, are in that of the shop.
    """
    given = event["data"].get(event["resource"])
    found: Record = given if isinstance(given, dict) else {}
    own = found and event["resource"] in {"campaign", "coupon"}
    return {"currency": current_app.config["SHOP_CURRENCY"]} | found if own else found


def _may_undo(event: Record, changes: Record) -> bool:
    """Return whether the session may run the operation that undoes an event."""
    resource, _dot, verb = event["type"].partition(".")
    name = f"{'delete' if verb == 'restored' else 'update'}_{resource}"
    if name in operations() and not can(name):
        return False
    if resource != "order":
        return True
    more = rights_to_change(undone_fields(resource, changes))
    refunds = changes.get("before", {}).get("status") == REFUNDED
    return current_principal().can(*more) and (not refunds or may_refund())


def _who(event: Record) -> str:
    """Return who made a change: the user, the key, whether by a page or by the API, the plugin."""
    actor, plugin = event["actor"], current_catalog().event_plugins.get(event["type"])
    who, key_id = actor["username"], actor["key_id"]
    if who is None and actor["user_id"]:
        who = _("A user who was deleted")
    elif who is None and not plugin:
        who = _("A command or the worker")
    key = way = ""
    if actor["username"] is not None and key_id is not None:
        way = _("on a page") if actor["origin"] == "page" else _("by the API")
        key = actor["key_description"]
        key = _("key %(id)s", id=key_id) if key is None else key
    by = _("plugin %(name)s", name=plugin) if plugin else ""
    undone = (event["changes"] or {}).get("undo_of")
    of = _("undo of event %(id)s", id=undone) if undone else ""
    return " · ".join(filter(None, (who, key, way, by, of)))


def differences(
    before: Mapping[str, object],
    after: Mapping[str, object],
    labels: Mapping[str, str],
    record: Mapping[str, object] = NOTHING,
) -> list[tuple[str, str, str]]:
    """Return label, value before and value after of the fields and parts of ``changes``.

    Args:
        labels: the labels of fields by their names.
        record: what the values belong to. Its ``currency`` and ``type`` are the units of amounts.
    """
    found = []
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            parts = {**old, **new}
            found += [(f"{name}.{part}", old.get(part), new.get(part)) for part in parts]
        else:
            found.append((name, old, new))
    was, is_now = {**record, **before}, {**record, **after}
    return [
        (label_of(name, labels), _text(name, old, was), _text(name, new, is_now))
        for name, old, new in found
    ]


def label_of(name: str, labels: Mapping[str, str]) -> str:
    """Return the label of a field or of a part of one."""
    return _(labels[name]) if name in labels else html.words(*name.split("."))


def _text(name: str, value: object, record: Mapping[str, object]) -> str:
    """Return the value of a field, an item or a part of one as the pages show it.

    Args:
        record: what the value belongs to, with the units of its amounts.
    """
    if "." in name:  # such as a key of metadata, which can have any name
        return shown(value)
    if name == "campaign_id":
        return _campaign(value)
    if name.endswith(("_at", "_date")):
        return _time(value)
    if name in AMOUNTS and isinstance(value, str) and value:
        return _amount(name, value, record)
    if name in NUMBERS and isinstance(value, int):
        return html.number(value)
    return shown(value, record)


def _amount(name: str, value: str, record: Mapping[str, object]) -> str:
    """Return an amount with its unit. That of an order whose currency is unknown has none.

    Another text, as events of plugins can have, stays as it is.
    """
    if not re.fullmatch(r"-?[0-9]{1,20}(\.[0-9]{1,4})?", value):
        return shown(value)
    kind, currency = record.get("type"), record.get("currency")
    if name == "amount" and isinstance(kind, str) and is_percent(kind):
        return f"{texts.decimal(Decimal(value), 2, trimmed=True)}%"
    return html.money(value, str(currency)) if currency else texts.decimal(Decimal(value), 2)


def _campaign(value: object) -> str:
    """Return the name and the ID of a campaign, or its ID alone if it has been deleted."""
    if not isinstance(value, int) or value > INT64_MAX:
        return shown(value)
    found = states_of([value]) if can("get_campaign") else {}
    return " ".join([*(each["name"] for each in found.values()), f"(#{value})"])


def _time(value: object) -> str:
    """Return a time as the pages show times, and another value, as metadata can have, as it is."""
    if not isinstance(value, str):
        return shown(value)
    try:
        moment = datetime.strptime(value, "%Y-%m-%dT%H:%M:%S%z")
        if value.endswith("T00:00:00Z"):  # such as an expiry date, which never shifts
            return html.short_date(moment.date())
        return html.short_time(moment)
    except (OverflowError, ValueError):  # before the first year in the zone of the shop
        return shown(value)


def shown(value: object, record: Mapping[str, object] | None = None) -> str:
    """Return a JSON value as short text.

    Args:
        record: what the items of a list belong to, with the units of their amounts. Without it, as
            in metadata, which can have any names, the values of items stay as they are.
    """
    if value is None or value in ("", []):
        return html.NONE
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, list):
        text = ", ".join(_item(each, record) for each in value)
    else:
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= 200 else f"{text[:200]}…"


_NAMES = ("name", "title", "method_title", "code")


def _item(value: object, record: Mapping[str, object] | None) -> str:
    """Return a value of a list: of an item its name and quantity, or what differs."""
    if not isinstance(value, Mapping) or "id" not in value:
        return shown(value)
    parts = {
        key: shown(each) if record is None else _text(key, each, record)
        for key, each in value.items()
        if key != "id"
    }
    name = next((value[key] for key in _NAMES if value.get(key)), None)
    if name is not None:
        return f"{name}: {parts['quantity']}" if "quantity" in value else str(name)
    described = ", ".join(f"{html.words(key)} {text}" for key, text in parts.items())
    return f"#{value['id']} {described}"
