"""Event schemas (events 1)."""

from app.schemas.base import Base
from app.schemas.fields import json_schema
from app.schemas.fields import output as fields
from app.schemas.fields.query import IntegerParam, StatusListParam, TimestampParam
from app.schemas.queries import ReadQuery


class EventSchema(Base):
    """Event in a response."""

    id = fields.Identifier("Event ID. A later event has a higher ID.")
    type = fields.String("What happened: `<resource>.<what happened>`.")
    resource = fields.String("Kind of the record.")
    resource_id = fields.Identifier("ID of the record.")
    created_at = fields.Timestamp("Time of the change, in UTC.")
    data = fields.JsonObject(
        "The record at that time under the name of its resource, as the API returned it. For a "
        "deletion, only its ID, and `permanent`. For a use of a coupon, also `redemption` with its "
        "`id`, `status`, `reference` and `order_id`."
    )
    request_id = fields.OptionalString("`X-Request-Id` of the request. Null for a command.")
    user_id = fields.OptionalIdentifier("Owner of the API key. Null for a command.")


class EventListQuery(ReadQuery):
    """Query of the feed."""

    after = IntegerParam(
        "filter[after]",
        "Only events with a higher ID: the ID of the last event that you have processed. By "
        "default, the list starts at the oldest retained event.",
    )
    type = StatusListParam(
        "filter[type]",
        "Only these event types, separated by commas.",
        openapi=json_schema.EVENT_TYPES_PARAMETER,
    )
    resource = StatusListParam(
        "filter[resource]",
        "Only these resources, separated by commas.",
        openapi=json_schema.EVENT_RESOURCES_PARAMETER,
    )
    resource_id = IntegerParam("filter[resource_id]", "Only events of records with this ID.")
    created_at_min = TimestampParam(
        "filter[created_at_min]",
        "Only events created at or after this time.",
    )
    created_at_max = TimestampParam(
        "filter[created_at_max]",
        "Only events created at or before this time.",
    )
    limit = IntegerParam(
        "filter[limit]",
        "Number of events per page, up to 1,000. 0 means the page size of the shop.",
        maximum=1000,
    )
