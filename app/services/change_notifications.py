"""Notifying plugins of changes, before and after the commit (docs/plugins.md)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

from sqlalchemy.orm import Session

from app.catalog import Change, ChangeHook, current_catalog
from app.db.session import call_after_commit
from app.errors import ShopError
from app.services.bulk import BulkItem, WriteResult

_log = logging.getLogger(__name__)


def notify(session: Session, changes: Sequence[Change]) -> None:
    """Notify the hooks of the changes of a request.

    Called after everything is written, once for each write of a transaction.

    Args:
        session: the session of the transaction.
        changes: what was written, in its order.

    Raises:
        ShopError: a hook rejects the changes.
    """
    notified = [
        (hook, found)
        for hook in current_catalog().change_hooks
        if (found := [change for change in changes if change.resource == hook.resource])
    ]
    for hook, found in notified:
        if hook.before_commit:
            hook.before_commit(found)
    for hook, found in notified:
        if hook.after_commit:
            call_after_commit(session, partial(_after_commit, hook, found))


def write_items(
    session: Session,
    resource: str,
    items: Sequence[BulkItem],
    write: Callable[[Sequence[BulkItem]], list[WriteResult]],
) -> list[WriteResult]:
    """Write the items of a request, so that a hook that rejects one does not affect the others.

    All items are written and notified of at once. Only if a hook rejects them, they are written
    one by one, to find out which ones it rejects.

    Args:
        session: the session of the transaction.
        resource: kind of the records.
        items: what to write.
        write: writes some of the items and calls ``notify``.
    """
    can_be_rejected = any(
        hook.before_commit and hook.resource == resource for hook in current_catalog().change_hooks
    )
    if len(items) == 1 or not can_be_rejected:
        return write(items)
    try:
        with session.begin_nested():
            return write(items)
    except ShopError:
        return [_write_alone(session, item, write) for item in items]


def _write_alone(
    session: Session,
    item: BulkItem,
    write: Callable[[Sequence[BulkItem]], list[WriteResult]],
) -> WriteResult:
    try:
        with session.begin_nested():
            (result,) = write([item])
    except ShopError as error:
        return error
    return result


def _after_commit(hook: ChangeHook, changes: Sequence[Change]) -> None:
    if hook.after_commit:
        try:
            hook.after_commit(changes)
        except Exception:  # noqa: BLE001  # the changes are stored: the client must not see an error
            _log.exception("A plugin failed after the commit of %d changes", len(changes))
