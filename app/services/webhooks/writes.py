"""The rules for writing webhooks (events 2 and 3)."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from flask import current_app
from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from app.auth.encryption import encrypt
from app.auth.principals import Principal
from app.catalog import current_catalog
from app.conversions.numbers import INT64_MAX
from app.conversions.webhooks import is_delivery_url
from app.db.records import Record, row_dicts, with_columns
from app.db.session import now, run_in_transaction
from app.errors import ShopError, reason_of
from app.models import WEBHOOKS
from app.models.webhook import WebhookFormat, WebhookRow, WebhookStatus, columns_of, form_of
from app.outbound.client import has_valid_host, require_receiver
from app.outbound.network import REMEDY, RefusedAddressError, parse_networks
from app.outbound.signatures import new_secret
from app.services.common.bulk import Data, Precondition
from app.services.events.sequence import last_event_id
from app.services.webhooks import states
from app.services.webhooks.queries import Forms, has_form
from app.services.webhooks.topics import require_readable, require_topics

OVERLAP = timedelta(hours=24)
"""Time after a rotation during which deliveries are signed with both secrets."""

SECRET = "secret"  # noqa: S105  # the key of a record
"""Key of the generated secret in a returned webhook."""


def create_webhook(
    actor: Principal, data: Data, form: WebhookFormat = WebhookFormat.STANDARD
) -> Record:
    """Create a webhook and return it by its column names.

    A generated secret is returned under ``secret``.

    Args:
        data: a loaded ``WebhookCreate``.
        form: what the webhook sends.

    Raises:
        ShopError: the capability is missing, a topic or the delivery URL is invalid, or the key may
            not read the events of a topic.
    """
    actor.require("shop_api_user_cannot_create_webhook")
    require_topics(data.get("topics", []), form)
    require_readable(actor, data["topics"])
    require_url(data.get("delivery_url", ""))
    secret = data["secret"] or new_secret()

    def work(session: Session) -> Record:
        webhook = _new_columns(data) | {
            **columns_of(form),
            "secret_encrypted": encrypt(secret),
            "user_id": actor.user_id,
            "position": last_event_id(session),
        }
        webhook["id"] = session.execute(
            insert(WEBHOOKS).values(webhook).returning(WEBHOOKS.c.id)
        ).scalar_one()
        if form in current_catalog().webhook_forms and webhook["status"] == WebhookStatus.ACTIVE:
            states.queue_first_ping(session, webhook["id"])
        return webhook

    webhook = run_in_transaction(work)
    return webhook if data["secret"] else webhook | {SECRET: secret}


def _new_columns(data: Data) -> Record:
    """Return the columns of a new webhook that do not depend on other records."""
    timestamp = data.get("created_at") or now()
    return {
        "name": data["name"] or f"Webhook created on {timestamp:%Y-%m-%d}",
        "status": data["status"],
        "disabled_reason": states.BY_A_USER if data["status"] == WebhookStatus.DISABLED else None,
        "topics": data["topics"],
        "delivery_url": data["delivery_url"],
        "previous_secret_encrypted": None,
        "previous_secret_until": None,
        "created_at": timestamp,
        "updated_at": timestamp,
        "last_delivery_at": None,
        "failing_since": None,
        "failure_count": 0,
        "resume_at": None,
        "lease_owner": None,
        "lease_until": None,
    }


def require_creator(actor: Principal, topics: Sequence[str]) -> None:
    """Raise ShopError unless an actor can create a webhook with these topics."""
    actor.require("shop_api_user_cannot_create_webhook")
    require_readable(actor, topics)


def update_webhook(
    actor: Principal,
    webhook_id: int,
    data: Data,
    precondition: Precondition | None = None,
    forms: Forms = None,
) -> WebhookRow:
    """Update a webhook and return it by its column names.

    Args:
        data: a loaded ``WebhookUpdate``: only the fields to change.
        forms: forms of webhooks that can be updated.

    Raises:
        ShopError: the webhook does not exist, the capability is missing, a value is invalid, or the
            key may not read the events of the webhook.
    """

    def work(session: Session) -> WebhookRow:
        webhook = locked(session, actor, webhook_id, forms=forms)
        if precondition:
            precondition(webhook)
        if "topics" in data:
            require_topics(data["topics"], form_of(webhook))
        require_readable(actor, data.get("topics", webhook["topics"]))
        if data.get("delivery_url", webhook["delivery_url"]) != webhook["delivery_url"]:
            require_url(data["delivery_url"])
        changes = {name: data[name] for name in ("topics", "delivery_url") if name in data}
        if data.get("name"):
            changes["name"] = data["name"]
        if data.get("secret"):
            changes |= {
                "secret_encrypted": encrypt(data["secret"]),
                "previous_secret_encrypted": None,
                "previous_secret_until": None,
            }
        status = data.get("status", webhook["status"])
        if status != webhook["status"]:
            changes |= _status_changes(session, actor, webhook, status)
        if "delivery_url" in changes:  # earlier failures do not apply to the new receiver
            changes |= {"failing_since": None, "failure_count": 0, "resume_at": None}
        # Equal times of a bare webhook mean that it has not been changed.
        earliest = webhook["created_at"] + timedelta(seconds=int(webhook["is_bare"]))
        return changed(session, webhook, changes | {"updated_at": max(now(), earliest)})

    return run_in_transaction(work)


def delete_webhook(
    actor: Principal, webhook_id: int, precondition: Precondition | None = None, forms: Forms = None
) -> None:
    """Delete a webhook and its deliveries.

    Raises:
        ShopError: the webhook does not exist, the capability is missing, or the precondition fails.
    """

    def work(session: Session) -> None:
        code = "shop_api_user_cannot_delete_webhook"
        webhook = locked(session, actor, webhook_id, code, forms)
        if precondition:
            precondition(webhook)
        session.execute(delete(WEBHOOKS).where(WEBHOOKS.c.id == webhook_id))

    run_in_transaction(work)


def rotate_secret(actor: Principal, webhook_id: int) -> Record:
    """Generate a new secret and return the webhook with it under ``secret``.

    For 24 hours, deliveries are signed with both the new and the previous secret.

    Raises:
        ShopError: the webhook does not exist, the capability is missing, or the key may not read
            the events of the webhook.
    """
    secret = new_secret()

    def work(session: Session) -> WebhookRow:
        webhook = locked(session, actor, webhook_id)
        require_readable(actor, webhook["topics"])  # the secret makes deliveries credible
        timestamp = now()
        changes = {
            "secret_encrypted": encrypt(secret),
            "previous_secret_encrypted": webhook["secret_encrypted"],
            "previous_secret_until": timestamp + OVERLAP,
            "updated_at": timestamp,
        }
        return changed(session, webhook, changes)

    return {**run_in_transaction(work), SECRET: secret}


def locked(
    session: Session,
    actor: Principal,
    webhook_id: int,
    code: str = "shop_api_user_cannot_edit_webhook",
    forms: Forms = None,
) -> WebhookRow:
    """Return a webhook, locked until the commit.

    Raises:
        ShopError: the webhook does not exist; or with ``code``, if the capability is missing.
    """
    found: list[WebhookRow] = row_dicts(
        session.execute(
            select(WEBHOOKS)
            .where(WEBHOOKS.c.id == min(webhook_id, INT64_MAX), has_form(forms))
            .with_for_update()
        )
    )
    if not found:
        raise ShopError("shop_api_invalid_webhook_id")
    actor.require(code)
    return found[0]


def changed(session: Session, webhook: WebhookRow, changes: Mapping[str, object]) -> WebhookRow:
    """Write columns of a webhook and return it."""
    session.execute(update(WEBHOOKS).where(WEBHOOKS.c.id == webhook["id"]).values(changes))
    return with_columns(webhook, changes)


def _status_changes(session: Session, actor: Principal, webhook: WebhookRow, status: str) -> Record:
    if status == WebhookStatus.ACTIVE:
        changes = states.activate(session, webhook)
        if not states.can_manage(session, webhook["user_id"]):
            # Otherwise the worker would disable the webhook again.
            changes["user_id"] = actor.user_id
        return changes
    if status == WebhookStatus.DISABLED:
        return states.deactivate(session, [webhook["id"]], states.BY_A_USER)
    return {"status": status, "disabled_reason": None}


def require_url(url: str) -> None:
    """Check the URL of a receiver. The address of a name is checked at each delivery (events 2).

    Raises:
        ShopError: the URL is invalid, or webhooks are never delivered to its host or its port.
    """
    code = "shop_api_invalid_webhook_delivery_url"
    if not is_delivery_url(url) or not has_valid_host(url):
        raise ShopError(code)
    allowed = parse_networks(current_app.config["SHOP_WEBHOOK_ALLOWED_NETWORKS"])
    try:
        require_receiver(url, allowed)
    except RefusedAddressError as refused:
        message = "The delivery URL is not allowed: {refused}. {remedy}"
        raise ShopError(code, message=message, refused=reason_of(refused), remedy=REMEDY) from None
