"""Reporting changes: as events, and to the hooks of plugins (events 1, docs/plugins.md)."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import orjson
from sqlalchemy.orm import Session

from app.catalog import Change, ChangeHook, current_catalog
from app.db.records import Record
from app.db.session import call_after_commit
from app.services.events.bulk import is_summarized
from app.services.events.changes import changes_of
from app.services.events.erasure import without_deleted_customers
from app.services.events.outbox import Cause, NewEvent, cause_of, record

_log = logging.getLogger(__name__)

_NOTE = "order_note"
"""Resource whose deletion also reports the order."""

_IS_NOTIFYING = "shop_api_is_notifying"
"""Key in ``Session.info`` while hooks are called."""


def notify(session: Session, cause: Cause | None, changes: Sequence[Change]) -> None:
    """Write the events of the changes of a request, and notify the hooks.

    Called after everything is written, once for each write of a transaction.

    Args:
        cause: who made the changes; None for a command.
        changes: what was written, in its order. ``described`` may have completed some of them.

    Raises:
        ShopError: a hook rejects the changes.
    """
    if not changes or _is_silent():
        return
    changes = described(cause, changes)
    events = [
        NewEvent(
            change.event, change.record["id"], change.data, _customer_id(change), change.changes
        )
        for change in changes
    ]
    if is_summarized.get():
        texts = [orjson.dumps(event.data).decode() for event in events]
    else:
        texts = record(session, cause, events)
    _call_hooks(session, changes, texts)


def _is_silent() -> bool:
    """Return whether changes are reported neither as events nor to a hook."""
    return is_summarized.get() and not current_catalog().change_hooks


def publish_events(session: Session, cause: Cause | None, events: Sequence[NewEvent]) -> None:
    """Write events of a plugin in the transaction of a session, and notify the hooks.

    Hooks are not notified of events that a hook publishes. The customers of the events cannot be
    deleted until the commit.

    Args:
        session: the session of ``run_in_transaction``.
        cause: the principal of the request, or the change that a hook was notified of; None for a
            command.
        events: the events. The plugin has added their types to the catalog.

    Raises:
        KeyError: a type is unknown.
        ShopError: a hook rejects the events.
    """
    events = without_deleted_customers(session, events)
    texts = record(session, cause, events)
    if session.info.get(_IS_NOTIFYING):
        return
    causes = cause_of(cause)
    changes = [Change(event.type, None, None, **causes) for event in events]
    _call_hooks(session, changes, texts)


def described(cause: Cause | None, changes: Sequence[Change]) -> list[Change]:
    """Return changes with their cause and the data of their events, unless they have data.

    They stay as they are if they are not reported. ``notify`` calls this. A caller whose next
    statement makes other transactions wait calls it earlier, because the data can require reads and
    work by plugins.
    """
    if _is_silent():
        return list(changes)
    data: list[Record] = [{} for _ in changes]
    places: dict[str, list[int]] = {}
    for place, change in enumerate(changes):
        resource = change.resource
        if change.event.endswith(".deleted"):
            data[place] = {resource: {"id": change.record["id"]}, "permanent": change.after is None}
            if resource == _NOTE:
                data[place]["order_id"] = change.record["order_id"]
        elif not change.data:
            places.setdefault(resource, []).append(place)
    for resource, found in places.items():
        shown = current_catalog().event_data[resource]([changes[place].record for place in found])
        for place, each in zip(found, shown, strict=True):
            data[place] = dict(each)
            if redemption := changes[place].redemption:
                data[place]["redemption"] = redemption
    causes = cause_of(cause)
    # The change that the principal undoes is the first of the write.
    undone = [getattr(cause, "undo_of", None), *[None] * len(changes)]
    return [
        change
        if change.data
        else replace(
            change, data=each, changes=change.changes or changes_of(change, undo_of), **causes
        )
        for change, each, undo_of in zip(changes, data, undone, strict=False)
    ]


def _customer_id(change: Change) -> int | None:
    """Return the customer whose personal data the event of a change contains."""
    if change.event.endswith(".deleted"):
        return None
    customer_id: int | None = change.record.get(
        "id" if change.resource == "customer" else "customer_id"
    )
    return customer_id


def _call_hooks(session: Session, changes: Sequence[Change], texts: Sequence[str]) -> None:
    """Call the hooks that are for the changes."""
    catalog = current_catalog()
    if not any(hook.is_for(change.resource) for hook in catalog.change_hooks for change in changes):
        return
    changes = [
        replace(change, data=orjson.loads(text))
        for change, text in zip(changes, texts, strict=True)
    ]
    notified = [
        (hook, found)
        for hook in catalog.change_hooks
        if (found := [change for change in changes if hook.is_for(change.resource)])
    ]
    outer = session.info.get(_IS_NOTIFYING, False)
    session.info[_IS_NOTIFYING] = True
    try:
        for hook, found in notified:
            if hook.before_commit:
                hook.before_commit(found)
    finally:
        session.info[_IS_NOTIFYING] = outer
    for hook, found in notified:
        if hook.after_commit:
            call_after_commit(session, partial(_after_commit, hook, found))


def _after_commit(hook: ChangeHook, changes: Sequence[Change]) -> None:
    if hook.after_commit:
        try:
            hook.after_commit(changes)
        except Exception:  # noqa: BLE001  # the changes are stored: the client must not see an error
            _log.exception("A plugin failed after the commit of %d changes", len(changes))
