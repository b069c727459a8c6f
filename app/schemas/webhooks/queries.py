"""Query parameters of lists and counts of webhooks and deliveries (events 2)."""

from __future__ import annotations

from app.schemas.fields.query import ChoiceParam, IntegerParam
from app.schemas.queries import CountQuery, LimitQuery, PageQuery, Query, ReadQuery


class WebhookFilter(Query):
    """Filter of webhooks (events 2)."""

    status = ChoiceParam(
        "filter[status]", "Only webhooks with this status.", "active", "paused", "disabled"
    )


class WebhookCountQuery(CountQuery, LimitQuery, WebhookFilter):
    """Query of a count of webhooks."""


class WebhookListQuery(PageQuery, LimitQuery, WebhookFilter, ReadQuery):
    """Query of a list of webhooks."""


class WebhookDeliveryFilter(Query):
    """Filter of the deliveries of a webhook."""

    state = ChoiceParam(
        "filter[state]", "Only deliveries in this state.", "pending", "delivered", "failed"
    )
    event_id = IntegerParam("filter[event_id]", "Only the delivery of this event.")


class WebhookDeliveryListQuery(PageQuery, LimitQuery, WebhookDeliveryFilter, ReadQuery):
    """Query of a list of deliveries."""
