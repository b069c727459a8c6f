"""Removal of expired events, deliveries, nonces and idempotency records (events 2)."""

import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from flask import current_app
from sqlalchemy import ColumnElement, Delete, Table, Update, delete, exists, func, select, update
from sqlalchemy.orm import Session

from app.db.session import now, run_in_transaction, run_statement, truncate_write_ahead_log
from app.db.sql.index_hints import has_constant
from app.models import (
    ADMIN_SESSIONS,
    COUPON_REFUSALS,
    EVENT_FEED,
    EVENTS,
    IDEMPOTENCY_RECORDS,
    IMPORT_RUNS,
    OAUTH_NONCES,
    SIGN_IN_LINKS,
    WEBHOOK_DELIVERIES,
    WEBHOOKS,
)
from app.models.idempotency_record import RETENTION
from app.models.oauth_nonce import CLOCK_SKEW
from app.models.refused_cart import REFUSED_CARTS, REFUSED_CARTS_DAYS
from app.models.webhook import WebhookStatus
from app.models.webhook_delivery import DeliveryState
from app.services.api_keys.sessions import has_ended
from app.services.customers import totals
from app.services.customers.traces import clear_next_batch
from app.services.events.retention import (
    HAS_DATA,
    Removal,
    remove_expired_data,
    remove_expired_events,
)
from app.services.imports.runs import delete_files
from app.services.maintenance.import_runs import report_interrupted_imports
from app.services.maintenance.order_sums import complete_figures
from app.services.persons.orders import erase_old_guest_orders
from app.services.redemptions.expiry import BATCH as EXPIRY_BATCH
from app.services.redemptions.expiry import expire_reservations
from app.services.webhooks.states import disable_without_capability

BATCH = 500
"""Maximum number of rows that one transaction removes, so that other writers do not wait long."""

MAX_BATCHES = 20
"""Maximum number of batches of one kind in a sweep. The next sweep continues."""


_IS_PENDING = has_constant(WEBHOOK_DELIVERIES.c.state, DeliveryState.PENDING)
_IS_ACTIVE = WEBHOOKS.c.status == WebhookStatus.ACTIVE

_log = logging.getLogger(__name__)


def sweep() -> None:
    """Remove expired records. Several workers can do this at the same time."""
    _in_batches(lambda: int(clear_next_batch()), 1)
    for step in SWEEPS:
        step()


def release_expired_reservations() -> None:
    """Write the events of reservations that have expired. Several workers can do this."""
    _in_batches(expire_reservations, EXPIRY_BATCH)


def refresh_totals() -> None:
    """Compute sort keys of customers whose orders have changed. Several workers can do this."""
    totals.refresh(MAX_BATCHES)


MOST_REFUSED_CARTS = 100_000
"""Number of refused carts that are kept. An attack with codes cannot fill the disk."""


def _in_batches(remove: Callable[[], int], size: int = BATCH) -> int:
    total = 0
    for _ in range(MAX_BATCHES):
        removed = remove()
        total += removed
        if removed < size:
            break
    return total


def _remove(table: Table, *conditions: ColumnElement[bool]) -> int:
    """Delete up to BATCH rows that no other worker is deleting."""
    rows = select(table.c.id).where(*conditions).limit(BATCH).with_for_update(skip_locked=True)
    return _change(delete(table).where(table.c.id.in_(rows)))


def _change(statement: Delete | Update) -> int:
    """Run a statement in a transaction, and return the number of rows that it changed."""
    return run_in_transaction(lambda session: session.connection().execute(statement).rowcount)


def _remove_events() -> int:
    """Remove expired events without pending deliveries, and their data, in batches.

    Batches of events that must stay do not count, so that they do not stop the removal.
    """
    is_needed = exists(select(1).where(WEBHOOK_DELIVERIES.c.event_id == EVENTS.c.id, _IS_PENDING))
    is_collected = EVENTS.c.id <= func.coalesce(
        select(func.min(WEBHOOKS.c.position)).where(_IS_ACTIVE).scalar_subquery(), EVENTS.c.id
    )
    _remove_late_data(is_needed)
    total = _remove_all(partial(remove_expired_data, ~is_needed, is_collected), None)
    return total + _remove_all(partial(remove_expired_events, ~is_needed), 0)


def _remove_all(remove: Callable[..., Removal], after: int | None) -> int:
    total = batches = 0
    while batches < MAX_BATCHES:
        removed, after = remove(after=after)
        total += removed
        batches += removed > 0
        if after is None:
            break
    return total


def _of_events() -> datetime:
    """Return the time before which the data of events is removed."""
    return now() - timedelta(days=current_app.config["SHOP_EVENTS_DAYS"])


def _remove_late_data(is_needed: ColumnElement[bool]) -> None:
    """Remove the data of events that had a pending delivery when they expired."""
    before = _of_events()
    delivered = select(WEBHOOK_DELIVERIES.c.event_id).where(
        ~_IS_PENDING, WEBHOOK_DELIVERIES.c.created_at < before
    )
    is_late = EVENTS.c.id <= select(func.max(EVENT_FEED.c.removed_id)).scalar_subquery()
    late = update(EVENTS).where(EVENTS.c.id.in_(delivered), is_late, HAS_DATA, ~is_needed)
    run_statement(late.values(data="{}"))


def _fail_expired_deliveries() -> int:
    """Fail the pending deliveries of paused and disabled webhooks whose events have expired.

    Otherwise a webhook that stays paused would keep its events forever.
    """
    before = _of_events()
    rows = (
        select(WEBHOOK_DELIVERIES.c.id)
        .join(WEBHOOKS, WEBHOOKS.c.id == WEBHOOK_DELIVERIES.c.webhook_id)
        .join(EVENTS, EVENTS.c.id == WEBHOOK_DELIVERIES.c.event_id)
        .where(_IS_PENDING, ~_IS_ACTIVE, EVENTS.c.created_at < before)
        .limit(BATCH)
    )
    changes = {"state": DeliveryState.FAILED, "next_attempt_at": None}
    is_left = WEBHOOK_DELIVERIES.c.id.in_(rows)
    return _change(update(WEBHOOK_DELIVERIES).where(is_left).values(changes))


def _remove_deliveries() -> int:
    """Remove the finished deliveries of events without data."""
    has_event = exists(select(1).where(EVENTS.c.id == WEBHOOK_DELIVERIES.c.event_id, HAS_DATA))
    before = _of_events()
    is_old = WEBHOOK_DELIVERIES.c.created_at < before
    return _remove(WEBHOOK_DELIVERIES, ~_IS_PENDING, is_old, ~has_event)


def _remove_refusals() -> int:
    """Remove the refused codes of days that are older than the events."""
    before = _of_events() - timedelta(days=1)
    is_old = delete(COUPON_REFUSALS).where(COUPON_REFUSALS.c.day < before.date())
    return _change(is_old)


def _is_beyond_limit() -> ColumnElement[bool]:
    """Return the condition of refused carts that are older than the latest 100,000."""
    latest = select(func.max(REFUSED_CARTS.c.id)).scalar_subquery()
    return REFUSED_CARTS.c.id <= latest - MOST_REFUSED_CARTS


def _complete_figures() -> int:
    """Complete the orders that a previous release wrote during an upgrade."""
    return run_in_transaction(partial(complete_figures, limit=BATCH))


def _erase_old_orders() -> None:
    """Erase old orders of guests, and log their number."""
    if number := erase_old_guest_orders():
        _log.info("Erased the personal data of %d orders of guests.", number)


def _forget_previous_secrets(session: Session) -> None:
    session.execute(
        update(WEBHOOKS)
        .where(WEBHOOKS.c.previous_secret_until <= now())
        .values(previous_secret_encrypted=None, previous_secret_until=None)
    )


def _removing(what: str, remove: Callable[[], int]) -> Callable[[], None]:
    """Return a function that removes expired records and logs their number."""

    def step() -> None:
        if number := remove():
            _log.info("Removed %d expired %s.", number, what)

    return step


def _removing_rows(
    what: str, table: Table, is_expired: Callable[[], ColumnElement[bool]]
) -> Callable[[], None]:
    """Return a function that removes the expired rows of a table and logs their number."""
    return _removing(what, lambda: _in_batches(lambda: _remove(table, is_expired())))


SWEEPS: Sequence[Callable[[], object]] = (
    partial(run_in_transaction, disable_without_capability),
    partial(run_in_transaction, _forget_previous_secrets),
    report_interrupted_imports,
    partial(_in_batches, _complete_figures),
    _removing_rows(
        "idempotency records",
        IDEMPOTENCY_RECORDS,
        lambda: IDEMPOTENCY_RECORDS.c.created_at <= now() - RETENTION,
    ),
    _removing_rows("sessions", ADMIN_SESSIONS, lambda: has_ended(now())),
    _removing_rows("sign-in links", SIGN_IN_LINKS, lambda: SIGN_IN_LINKS.c.expires_at <= now()),
    _removing("files of imports", partial(_in_batches, delete_files, 1)),
    _removing_rows("imports", IMPORT_RUNS, lambda: IMPORT_RUNS.c.finished_at < _of_events()),
    _removing("refused codes", _remove_refusals),
    _removing_rows(
        "refused carts",
        REFUSED_CARTS,
        lambda: REFUSED_CARTS.c.created_at < now() - timedelta(days=REFUSED_CARTS_DAYS),
    ),
    _removing_rows("refused carts beyond the limit", REFUSED_CARTS, _is_beyond_limit),
    _erase_old_orders,
    truncate_write_ahead_log,
    _removing_rows(
        "nonces", OAUTH_NONCES, lambda: OAUTH_NONCES.c.timestamp < int(time.time()) - CLOCK_SKEW
    ),
    _removing(
        "pending deliveries of inactive webhooks", partial(_in_batches, _fail_expired_deliveries)
    ),
    _removing("events", _remove_events),
    _removing("deliveries", partial(_in_batches, _remove_deliveries)),
)
"""The steps of a sweep. Each takes a short time."""
