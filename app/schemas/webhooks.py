"""Webhook and delivery schemas, and query parameters of their lists (events 2)."""

from decimal import Decimal

import marshmallow as ma

from app.conversions.numbers import INT64_MAX, integer
from app.conversions.webhooks import MAX_TOPICS, MAX_URL_LENGTH, secret_key
from app.errors import invalid
from app.schemas.base import Base, list_response, request, response
from app.schemas.fields import input as inputs
from app.schemas.fields import output as fields
from app.schemas.fields.form import FormField, set_form
from app.schemas.fields.input import Input
from app.schemas.fields.json_schema import COMPONENT, TEXT_IN, Schema
from app.schemas.fields.output import Output
from app.schemas.fields.query import ChoiceParam, IntegerParam
from app.schemas.queries import CountQuery, LimitQuery, PageQuery, Query, ReadQuery

STATUSES = "active", "paused", "disabled"

TOPICS: Schema = {"type": "array", "items": {"type": "string"}, "examples": [["coupon.*"]]}


class TopicArray(Input):
    """Event types, ``coupon.*`` or ``*``. The service checks that they are known."""

    openapi = {**TOPICS, "minItems": 1, "maxItems": MAX_TOPICS}

    def convert(self, value: object) -> list[str]:
        """Return the topics without duplicates, in their order, or raise ValueError."""
        if not isinstance(value, list) or not all(isinstance(topic, str) for topic in value):
            raise ValueError("must be an array of strings.")
        if len(value) > MAX_TOPICS:
            raise invalid("has more than {0:,} entries.", MAX_TOPICS)
        return list(dict.fromkeys(topic.strip() for topic in value))


class DeliveryUrl(inputs.Text):
    """URL of a receiver. The service checks it."""

    # Without the format "uri", because generators drop the limit of a URL.
    openapi = {
        **TEXT_IN,
        "maxLength": MAX_URL_LENGTH,
        "examples": ["https://receiver.example/hooks"],
    }

    def convert(self, value: object) -> str:
        """Return the URL without white space around it, or raise ValueError."""
        if not isinstance(value, str):
            raise ValueError("must be a string.")
        return value.strip()


# Base64 of 24 to 62, and of 63 or 64 bytes. A group of four characters stands for three bytes.
_BASE64 = "[A-Za-z0-9+/]"
_UP_TO_62_BYTES = f"({_BASE64}{{4}}){{8,20}}({_BASE64}{{2}}==|{_BASE64}{{3}}=)?"
_UP_TO_64_BYTES = f"({_BASE64}{{4}}){{21}}({_BASE64}{{2}}==)?"


class WebhookSecret(Input):
    """Secret in the form of Standard Webhooks."""

    # Without the format "password", because generators drop the pattern of a password.
    openapi = {
        "type": "string",
        "pattern": f"^whsec_({_UP_TO_62_BYTES}|{_UP_TO_64_BYTES})$",
        "examples": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqr"],
    }

    def convert(self, value: object) -> str:
        if not isinstance(value, str) or secret_key(value) is None:
            raise ValueError("must be 'whsec_' and the base64 form of 24 to 64 bytes.")
        return value


class WebhookStatusInput(inputs.Choice):
    """Status of a webhook."""

    openapi = {
        COMPONENT: "WebhookStatus",
        "type": "string",
        "enum": list(STATUSES),
        "description": "Status of a webhook.",
    }


class EventId(Input):
    """ID of an event, 0 for the beginning. Required."""

    rejects_absence = True
    openapi = {"type": "integer", "format": "int64", "minimum": 0, "examples": [105]}

    def convert(self, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
            raise ValueError("must be an integer.")
        if isinstance(value, Decimal) and value != value.to_integral_value():
            raise ValueError("must be an integer.")
        if isinstance(value, str) and not value.strip().isdecimal():
            raise ValueError("must be an integer of at least 0.")
        number = integer(value)
        if not 0 <= number <= INT64_MAX:
            raise ValueError("must be an integer of at least 0.")
        return number


_SIGNING = (
    "Secret that signs deliveries: `whsec_` and the base64 form of 24 to 64 bytes. Write-only."
)


_HTTP_STATUS: Schema = {"type": ["integer", "null"], "examples": [200]}

_DELIVERY_STATE: Schema = {
    COMPONENT: "WebhookDeliveryState",
    "type": "string",
    "enum": ["pending", "delivered", "failed"],
    "description": "State of a delivery.",
}


class Topics(Output):
    """Event types."""

    openapi = TOPICS


class WebhookStatusField(Output):
    """Status of a webhook."""

    openapi = WebhookStatusInput.openapi


class WebhookSchema(Base):
    """Webhook in a response."""

    id = fields.Identifier("Webhook ID.")
    name = fields.String("Name.")
    topics = Topics("Event types that are delivered; `coupon.*` or `*` for several.")
    delivery_url = fields.String("URL of the receiver.")
    status = WebhookStatusField("Status.")
    disabled_reason = fields.OptionalString("Reason why the webhook was disabled, or null.")
    user_id = fields.OptionalIdentifier(
        "ID of the user who created the webhook, or null if the user was deleted."
    )
    created_at = fields.Timestamp("Creation time, in UTC.")
    updated_at = fields.Timestamp("Time of the last update, in UTC.")
    last_delivery_at = fields.OptionalTimestamp("Time of the last attempt, in UTC, or null.")
    failing_since = fields.OptionalTimestamp(
        "Time from which on every attempt has failed, in UTC, or null."
    )


class WebhookWithSecretSchema(WebhookSchema):
    """Webhook with its secret, which no later response contains."""

    secret = fields.String(
        "Secret that signs deliveries, if it was generated. It is not shown again.", required=False
    )


class WebhookCreate(Base):
    """Fields of a new webhook. `topics` and `delivery_url` are required."""

    name = inputs.CleanText("Name. Default: `Webhook created on <date>`.", load_default="")
    topics = TopicArray("Event types, `coupon.*` or `*`.", required=True)
    delivery_url = DeliveryUrl(
        "URL of the receiver: http or https, without user information.", required=True
    )
    secret = WebhookSecret(f"{_SIGNING} Default: generated.", load_default=None)
    status = WebhookStatusInput("Status.", load_default="active")


class WebhookUpdate(Base):
    """Fields of a webhook that can be updated."""

    name = inputs.CleanText("Name.", load_default=ma.missing)
    topics = TopicArray("Event types, `coupon.*` or `*`.", load_default=ma.missing)
    delivery_url = DeliveryUrl("URL of the receiver.", load_default=ma.missing)
    secret = WebhookSecret(
        f"{_SIGNING} It replaces the secret immediately.", load_default=ma.missing
    )
    status = WebhookStatusInput(
        "Status. A webhook that becomes active receives the events from then on.",
        load_default=ma.missing,
    )


for _schema in (WebhookCreate, WebhookUpdate):
    set_form(
        _schema,
        {
            "Webhook": {
                "name": FormField(help="If empty, it is the date of the creation."),
                "delivery_url": FormField(
                    "Address of the receiver", help="An http or https URL, without a password."
                ),
                "topics": FormField(
                    "Events",
                    kind="checks",
                    values="topics",
                    help="`coupon.*` means all events of coupons.",
                ),
            }
        },
        hidden=("secret", "status"),
    )


WebhookCreateRequest = request(WebhookCreate, "webhook")
WebhookUpdateRequest = request(WebhookUpdate, "webhook")

WebhookResponse = response(WebhookSchema, "webhook")
WebhookWithSecretResponse = response(WebhookWithSecretSchema, "webhook")

WebhookList = list_response(WebhookSchema, "webhooks")


class WebhookReplayRequest(Base):
    """Request that sends the events after an ID again."""

    after = EventId("ID of an event. Later events are sent.", required=True)


set_form(
    WebhookReplayRequest,
    {
        "Replay": {
            "after": FormField(
                "After the event",
                help="Later events that match are sent again, in their order. 0 sends all.",
            )
        }
    },
)


class WebhookReplaySchema(Base):
    """Events that are sent again."""

    after = fields.Number("ID of the event after which the replay begins.")
    through = fields.Number("ID of the last event of the replay.")


WebhookReplayResponse = response(WebhookReplaySchema, "replay")


class WebhookPingSchema(Base):
    """Result of a ping."""

    status = Output("HTTP status of the response, or null.", openapi=_HTTP_STATUS)
    duration_ms = fields.Number("Duration in milliseconds.")
    error = fields.OptionalString(
        "`refused address`, `timeout` or `connection failed`; null with a response."
    )
    message = fields.OptionalString(
        "Explanation of `refused address` with the setting that allows the address, or null."
    )


WebhookPingResponse = response(WebhookPingSchema, "ping")


class WebhookDeliveryAttemptSchema(Base):
    """Attempt of a delivery."""

    at = fields.Timestamp("Start, in UTC.")
    status = Output("HTTP status of the response, or null.", openapi=_HTTP_STATUS)
    duration_ms = fields.Number("Duration in milliseconds.")
    error = fields.OptionalString(
        "`refused address`, `timeout`, `connection failed` or `unexpected status`; null after a "
        "success."
    )


class WebhookDeliverySchema(Base):
    """Delivery in a response."""

    id = fields.Identifier("Delivery ID.")
    event_id = fields.OptionalIdentifier("Event ID, or null for the first ping.")
    state = Output("State.", openapi=_DELIVERY_STATE)
    attempts = fields.Lines(WebhookDeliveryAttemptSchema, "Attempts, oldest first.")
    next_attempt_at = fields.OptionalTimestamp("Time of the next attempt, in UTC, or null.")
    response_body = fields.String("The first 4 KiB of the last response.")
    created_at = fields.Timestamp("Creation time, in UTC.")


WebhookDeliveryResponse = response(WebhookDeliverySchema, "webhook_delivery")
WebhookDeliveryList = list_response(WebhookDeliverySchema, "webhook_deliveries")


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
