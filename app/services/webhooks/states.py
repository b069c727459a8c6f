"""Activating and disabling webhooks (events 2)."""

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from functools import partial

from sqlalchemy import ColumnElement, insert, select, update
from sqlalchemy.orm import Session

from app.auth.principals import Capability
from app.catalog import current_catalog
from app.db.records import Record, row_dicts, with_columns
from app.db.session import call_after_commit, now
from app.db.sql.index_hints import has_constant
from app.models import WEBHOOK_DELIVERIES, WEBHOOKS
from app.models.webhook import WebhookRow, WebhookStatus, form_of
from app.models.webhook_delivery import DeliveryState, new_delivery
from app.services.common.roles import capabilities_by_user
from app.services.events.outbox import NewEvent, record
from app.services.events.sequence import last_event_id
from app.services.webhooks.deliveries.statistics import count_results

BY_A_USER = "Disabled by a user."
NOT_READABLE = "The secret cannot be read, because SECRET_KEY has changed. Set a new secret."
NO_USER = "The user who created the webhook was deleted."
NO_CAPABILITY = "The user who created the webhook may no longer manage webhooks."
GONE = "The receiver responded with status 410 (Gone)."
FAILING = "Every attempt has failed for 5 days."

MAX_FAILING = timedelta(days=5)
"""Time after which ``deliveries/results.py`` disables a webhook if all attempts have failed."""

REACTIVATED: Mapping[str, object] = {
    "status": WebhookStatus.ACTIVE,
    "disabled_reason": None,
    "failing_since": None,
    "failure_count": 0,
    "resume_at": None,
}

_log = logging.getLogger(__name__)


def activate(session: Session, webhook: WebhookRow) -> Record:
    """Return the columns of a webhook that becomes active.

    It receives the events from now on. Events that happened before can be replayed.
    """
    if form_of(webhook) in current_catalog().webhook_forms:
        queue_first_ping(session, webhook["id"])
    return {**REACTIVATED, "position": last_event_id(session)}


def deactivate(session: Session, webhook_ids: Sequence[int], reason: str) -> Record:
    """Fail the pending deliveries of locked webhooks, and return their columns when disabled.

    The leases end, so that a failure of a delivery in flight is ignored.
    """
    session.execute(
        update(WEBHOOK_DELIVERIES)
        .where(
            WEBHOOK_DELIVERIES.c.webhook_id.in_(webhook_ids),
            has_constant(WEBHOOK_DELIVERIES.c.state, DeliveryState.PENDING),
        )
        .values(state=DeliveryState.FAILED, next_attempt_at=None)
    )
    return {
        "status": WebhookStatus.DISABLED,
        "disabled_reason": reason,
        "lease_owner": None,
        "lease_until": None,
    }


def queue_first_ping(session: Session, webhook_id: int) -> None:
    """Queue the ping of a webhook in the form of a plugin that becomes active (events 3)."""
    session.execute(insert(WEBHOOK_DELIVERIES).values(new_delivery(webhook_id, now())))


def disable(session: Session, webhooks: Sequence[WebhookRow], reason: str) -> None:
    """Disable webhooks that the service cannot or must not deliver to any more.

    Their pending deliveries fail. Each webhook gets a log line and an event ``webhook.disabled``.

    Args:
        webhooks: active or paused webhooks by column name, locked by the transaction.
    """
    if not webhooks:
        return
    ids = [webhook["id"] for webhook in webhooks]
    changes = {**deactivate(session, ids, reason), "updated_at": now()}
    session.execute(update(WEBHOOKS).where(WEBHOOKS.c.id.in_(ids)).values(changes))
    count_results(session, {"webhook_disabled": len(ids)})
    record(session, None, [_disabled_event(with_columns(webhook, changes)) for webhook in webhooks])
    for webhook in webhooks:
        call_after_commit(
            session, partial(_log.warning, "Webhook %d was disabled: %s", webhook["id"], reason)
        )


def disable_webhooks_of(session: Session, user_ids: Collection[int]) -> None:
    """Disable the webhooks of users that are about to be deleted."""
    disable(session, _locked(session, WEBHOOKS.c.user_id.in_(user_ids)), NO_USER)


def disable_without_capability(session: Session) -> None:
    """Disable the webhooks of users who lost the capability to manage webhooks."""
    found = _locked(session, WEBHOOKS.c.user_id.is_not(None))
    allowed = _managers(session, {user_id for each in found if (user_id := each["user_id"])})
    disable(session, [each for each in found if each["user_id"] not in allowed], NO_CAPABILITY)


def can_manage(session: Session, user_id: int | None) -> bool:
    """Return whether a user exists and may manage webhooks."""
    return user_id is not None and user_id in _managers(session, [user_id])


def _disabled_event(webhook: WebhookRow) -> NewEvent:
    """Return the event of a disabled webhook, which identifies the webhook and the reason."""
    shown = {
        "id": webhook["id"],
        "name": webhook["name"],
        "topics": webhook["topics"],
        "delivery_url": webhook["delivery_url"],
        "status": webhook["status"],
        "disabled_reason": webhook["disabled_reason"],
        "user_id": webhook["user_id"],
    }
    return NewEvent("webhook.disabled", webhook["id"], {"webhook": shown})


def _managers(session: Session, user_ids: Collection[int]) -> set[int]:
    found = capabilities_by_user(session, user_ids)
    return {user_id for user_id, held in found.items() if Capability.MANAGE_WEBHOOKS in held}


def _locked(session: Session, condition: ColumnElement[bool]) -> list[WebhookRow]:
    rows = session.execute(
        select(WEBHOOKS)
        .where(condition, WEBHOOKS.c.status != WebhookStatus.DISABLED)
        .order_by(WEBHOOKS.c.id)
        .with_for_update()
    )
    return row_dicts(rows)
