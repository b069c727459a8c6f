"""Topics of webhooks: which exist, and which a key may receive (events 2 and 3, decisions 2)."""

from collections.abc import Mapping, Sequence

from app.auth.principals import Permission, Principal
from app.catalog import current_catalog
from app.conversions.webhooks import known_topics, unknown_topics
from app.errors import Sentence, ShopError

EVENTS = "events"
"""The resource of the feed. A key that allows it reads every event."""

RESOURCES: Mapping[str, str] = {
    "campaign": "coupons",
    "coupon": "coupons",
    "coupon_batch": "coupons",
    "customer": "customers",
    "order": "orders",
    "order_note": "orders",
    "order_refund": "orders",
}
"""The resource that a key must allow to read the data of events, by the resource of the event."""


def require_topics(topics: Sequence[str], form: str) -> None:
    """Raise ShopError unless a webhook can have these topics.

    Args:
        topics: one for the form of a plugin, at least one otherwise.
        form: what the webhook sends.
    """
    if own := current_catalog().webhook_forms.get(form):
        if len(topics) != 1 or not own.is_topic(topics[0]):
            invalid = "Webhook topic is required and must be valid."
            raise ShopError("shop_api_invalid_webhook_topic", reason=invalid)
        return
    event_types = current_catalog().event_types
    reason: str | Sentence
    if not topics:
        reason = "At least one topic is required."
    elif unknown := unknown_topics(topics, event_types):
        reason = Sentence(
            "Unknown topics: {0}. Known topics: {1}.",
            ", ".join(unknown)[:500],
            ", ".join(known_topics(event_types)),
        )
    else:
        return
    raise ShopError("shop_api_invalid_webhook_topic", param="webhook.topics", reason=reason)


def require_readable(actor: Principal, topics: Sequence[str]) -> None:
    """Raise ShopError unless the key of the actor may read the events of all topics.

    Otherwise, a key that is limited to webhooks could send itself every order.
    """
    if not can_read(actor, topics):
        raise ShopError("shop_api_insufficient_key_rights", param="webhook.topics")


def can_read(actor: Principal, topics: Sequence[str]) -> bool:
    """Return whether the key of an actor may read the events of all topics.

    It needs read permission, and the resource of each topic or ``events``.
    """
    if Permission.READ not in actor.permission.parts:
        return False
    allowed = actor.resources
    if allowed is None or EVENTS in allowed:
        return True
    return all(RESOURCES.get(topic.partition(".")[0]) in allowed for topic in topics)
