"""Schemas of each event type, in the feed and in the body of a delivery (events 1 and 2).

They only describe events in the OpenAPI document. Events are stored as JSON, and ``EventSchema``
returns them.
"""

import re
from collections.abc import Mapping
from typing import Any

import marshmallow as ma

from app.catalog import EVENT_TYPES
from app.conversions.webhooks import is_delivered
from app.schemas.base import Base, made_schema
from app.schemas.campaigns import CampaignSchema, EventCampaign
from app.schemas.coupons.coupon import CouponSchema
from app.schemas.customers import CustomerSchema
from app.schemas.events import EventSchema
from app.schemas.fields import output as fields
from app.schemas.orders.note import OrderNoteSchema
from app.schemas.orders.order import OrderSchema
from app.schemas.orders.refund import OrderRefundSchema
from app.schemas.persons import PersonNumbers
from app.schemas.redemptions import RedemptionStatusField
from app.schemas.webhooks import Topics, WebhookStatusField


class Constant(fields.Output):
    """A text that is always the same, also as an ``enum`` for generators without ``const``."""

    def __init__(self, meaning: str, value: str) -> None:
        super().__init__(meaning)
        self.value = value
        self.openapi = {"type": "string", "const": value, "enum": [value]}


class DeletedRecord(Base):
    """Record that was deleted."""

    id = fields.Identifier("ID of the record.")


class EventRedemption(Base):
    """Use of a coupon after a change."""

    id = fields.Identifier("Redemption ID.")
    status = RedemptionStatusField("Status. An expired reservation is released.")
    reference = fields.String("The caller's cart or order number; `order-<ID>` for an order.")
    order_id = fields.OptionalIdentifier("ID of the order that controls the redemption, or null.")
    campaign_id = fields.Identifier(
        "ID of the campaign for which the use counts. Only if it counts for one.", required=False
    )
    amount = fields.OptionalAmount(
        "Discount, or null. Only if the use counts for a campaign.", required=False
    )


class MergedAccount(Base):
    """Account that was merged into a customer and removed."""

    id = fields.Identifier("ID of the removed account.")
    orders = fields.Number("Number of orders that were moved.")
    redemptions = fields.Number("Number of uses of coupons that were moved.")


class CouponBatchSummary(Base):
    """Coupons that were generated together."""

    id = fields.Identifier("Batch ID.")
    count = fields.Number("Number of generated coupons.")
    prefix = fields.String("Text that all codes begin with.")
    pattern = fields.String("Text that follows the prefix.")
    charset = fields.String("The random characters, in lower case.")
    created_at = fields.Timestamp("Creation time, in UTC.")


class ImportSummary(Base):
    """Import, with the numbers of its records by their kind."""

    id = fields.Identifier("ID of the import.")
    source = fields.String("`file`, `restore`, `demo`, or the name of a shop.")
    kind = fields.String("Kind of the records, for a file.", required=False)
    created = fields.Number("Number of records that were created, for a file.", required=False)
    updated = fields.Number("Number of records that were updated, for a file.", required=False)
    skipped = fields.Number("Number of skipped records, over HTTP.", required=False)
    failed = fields.Number("Number of lines that failed, over HTTP.", required=False)
    status = fields.String(
        "`finished`, `cancelled` or `failed`, for an import over HTTP.", required=False
    )
    interrupted = fields.Boolean("`true` if the import of a file was killed.", required=False)


class EventApiKey(Base):
    """API key in an event."""

    id = fields.Identifier("Key ID.")
    user_id = fields.Identifier("User of the key.")
    permission = fields.String("`read`, `write` or `read_write`.")
    resources = fields.StringList("Resources that the key allows, or `all`.")
    expires_at = fields.OptionalTimestamp("When the key expires, in UTC, or null.")


class WebhookSummary(Base):
    """Webhook that was disabled."""

    id = fields.Identifier("Webhook ID.")
    name = fields.String("Name.")
    topics = Topics("Event types that were delivered.")
    delivery_url = fields.String("URL of the receiver.")
    status = WebhookStatusField("Status.")
    disabled_reason = fields.OptionalString("Reason why the webhook was disabled, or null.")
    user_id = fields.OptionalIdentifier("ID of the user who created the webhook, or null.")


class InvitationSummary(Base):
    """Invitation of a colleague to the admin pages."""

    id = fields.Identifier("ID of the invitation.")
    login = fields.String("Username of the new account.")
    role = fields.String("Role of the new account.")
    permission = fields.String("Permission of the new key, when it is created.", required=False)
    resources = fields.String(
        "Resources of the new key, separated by commas, when it is created.", required=False
    )
    expires_at = fields.OptionalTimestamp(
        "When the new key expires, or null, when it is created.", required=False
    )
    key_id = fields.Identifier("ID of the key, when it is accepted.", required=False)


class PersonSummary(Base):
    """Erasure of a person, without addresses."""

    id = fields.Identifier("ID of the account, otherwise of the first order.")
    customer_id = fields.OptionalIdentifier("ID of the account, or null for a guest.")
    complete = fields.Boolean("Whether the last orders were erased.")
    erased = ma.fields.Nested(PersonNumbers, required=True)
    order_ids = fields.Identifiers("IDs of the orders that were erased.")


class PingData(Base):
    """Data of a ping."""

    webhook_id = fields.Identifier("Webhook ID.")


class PluginEventSchema(EventSchema):
    """Event of a type that a plugin has added."""


class PluginPayload(Base):
    """Delivery of an event of a type that a plugin has added."""

    type = fields.String("What happened.")
    timestamp = fields.Timestamp("Time of the change, in UTC.")
    data = fields.JsonObject("Data of the event.")


def _data(name: str, meaning: str, **records: type[Base] | ma.fields.Field[Any]) -> type[Base]:
    """Return the schema of the data of events: ``CouponEventData``, with a key per record."""
    members: dict[str, object] = {
        key: value if isinstance(value, ma.fields.Field) else ma.fields.Nested(value, required=True)
        for key, value in records.items()
    }
    return made_schema(f"{name}EventData", meaning, members)


def _deleted(resource: str, meaning: str, **more: ma.fields.Field[Any]) -> type[Base]:
    permanent = fields.Boolean("Whether the record was removed, and not moved to the trash.")
    name = f"{_title(resource)}Deleted"
    return _data(name, meaning, **{resource: DeletedRecord}, permanent=permanent, **more)


def _title(name: str) -> str:
    return "".join(part.title() for part in re.split("[._]", name))


_CAMPAIGN = _data("Campaign", "Campaign after the change.", campaign=EventCampaign)
_COUPON = _data("Coupon", "Coupon after the change.", coupon=CouponSchema)
_USE = _data(
    "CouponUse",
    "Coupon and its use after the change.",
    coupon=CouponSchema,
    redemption=EventRedemption,
)
_CUSTOMER = _data("Customer", "Customer after the change.", customer=CustomerSchema)
_MERGED = _data(
    "CustomerMerged",
    "Customer after the merge, and the removed account.",
    customer=CustomerSchema,
    merged=MergedAccount,
)
_ORDER = _data("Order", "Order after the change, with its customer.", order=OrderSchema)
_REFUND = _data("OrderRefund", "Refund after the change.", order_refund=OrderRefundSchema)

_ORDER_ID = fields.Identifier("Order ID.")
_NOTE = _data(
    "OrderNote", "Note and the ID of its order.", order_note=OrderNoteSchema, order_id=_ORDER_ID
)

_DATA: Mapping[str, type[Base]] = {
    **dict.fromkeys(("campaign.created", "campaign.updated"), _CAMPAIGN),
    **dict.fromkeys(("coupon.created", "coupon.updated", "coupon.restored"), _COUPON),
    **dict.fromkeys(("coupon.redeemed", "coupon.released"), _USE),
    **dict.fromkeys(("customer.created", "customer.updated"), _CUSTOMER),
    "customer.merged": _MERGED,
    **dict.fromkeys(("order.created", "order.updated", "order.restored"), _ORDER),
    **dict.fromkeys(("order_refund.created", "order_refund.updated"), _REFUND),
    **dict.fromkeys(("order_note.created", "order_note.updated"), _NOTE),
    "order_note.deleted": _deleted(
        "order_note", "IDs of the deleted note and of its order.", order_id=_ORDER_ID
    ),
    **{
        f"{resource}.deleted": _deleted(resource, f"ID of the deleted {words}.")
        for resource, words in (
            ("campaign", "campaign"), ("coupon", "coupon"),
            ("customer", "customer"), ("order", "order"),
            ("order_refund", "refund"), ("key", "API key"),
        )
    },
    "coupon_batch.created": _data(
        "CouponBatch", "Summary of the generated coupons.", coupon_batch=CouponBatchSummary
    ),
    **dict.fromkeys(
        ("key.created", "key.updated", "key.rotated"),
        _data("Key", "API key after the change.", key=EventApiKey),
    ),
    "import.completed": _data("Import", "Summary of the import.", **{"import": ImportSummary}),
    **dict.fromkeys(
        ("invitation.created", "invitation.accepted"),
        _data("Invitation", "Invitation.", invitation=InvitationSummary),
    ),
    "person.erased": _data("Person", "Erasure of a person.", person=PersonSummary),
    "webhook.disabled": _data("Webhook", "Webhook that was disabled.", webhook=WebhookSummary),
}  # fmt: skip
"""The schema of ``data`` of each built-in event type."""


def _event(name: str, data: type[Base]) -> type[Base]:
    members = {
        "type": Constant("What happened.", name),
        "resource": Constant("Kind of the record.", name.partition(".")[0]),
        "data": ma.fields.Nested(data, required=True),
    }
    return made_schema(f"{_title(name)}Event", EVENT_TYPES[name], members, EventSchema)


def _payload(name: str, meaning: str, data: type[Base]) -> type[Base]:
    members = {
        "type": Constant("What happened.", name),
        "timestamp": fields.Timestamp("Time of the change, in UTC."),
        "data": ma.fields.Nested(data, required=True),
    }
    return made_schema(f"{_title(name)}Payload", meaning, members)


EVENTS: Mapping[str, type[Base]] = {name: _event(name, _DATA[name]) for name in EVENT_TYPES}
"""The schema of each built-in event type in the feed."""

PAYLOADS: Mapping[str, type[Base]] = {
    **{
        name: _payload(name, EVENT_TYPES[name], _DATA[name])
        for name in EVENT_TYPES
        if is_delivered(name)
    },
    "ping": _payload("ping", "Checks that the receiver can be reached.", PingData),
}
"""The schema of the body of the deliveries of each built-in event type."""


def _union() -> fields.either:
    meaning = "Event. `type` determines the form of `data`."
    return fields.either("Event", meaning, *EVENTS.values(), by={"type": list(EVENTS)})


class EventResponse(Base):
    """Single event."""

    event = _union()


class EventList(Base):
    """List of events."""

    events = ma.fields.List(_union(), required=True, **fields.described("Events, oldest first."))


class UndoneRecord(Base):
    """The record after the undo, under its name, or the message of a move to the trash."""

    campaign = ma.fields.Nested(CampaignSchema)
    coupon = ma.fields.Nested(CouponSchema)
    customer = ma.fields.Nested(CustomerSchema)
    order = ma.fields.Nested(OrderSchema)
    order_note = ma.fields.Nested(OrderNoteSchema)
    order_refund = ma.fields.Nested(OrderRefundSchema)
    message = fields.String("Confirmation of a move to the trash.", required=False)
