"""Event schemas (events 1)."""

import marshmallow as ma

from app.schemas.base import Base, response
from app.schemas.fields import json_schema
from app.schemas.fields import output as fields
from app.schemas.fields.query import (
    ChoiceParam,
    IntegerParam,
    StatusListParam,
    TextParam,
    TimestampParam,
)
from app.schemas.queries import ReadQuery


class EventActorSchema(Base):
    """Who made a change. The names are the current ones; null if the user or key is gone."""

    user_id = fields.OptionalIdentifier("Owner of the API key. Null for a command.")
    username = fields.OptionalString("Username of the owner, or null.")
    key_id = fields.OptionalIdentifier("ID of the API key, or null.")
    key_description = fields.OptionalString("Description of the API key, or null.")
    origin = fields.Output(
        "`api` for a request to the API, `page` for a session of the admin pages, `command` for a "
        "command or the worker.",
        openapi={"type": "string", "enum": ["api", "page", "command"]},
    )


class EventChanges(Base):
    """The fields that a write changed."""

    before = fields.JsonObject("The values before the write.")
    after = fields.JsonObject("The values after the write.")
    undo_of = fields.Identifier("ID of the event that the write undid.", required=False)


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
    changes = fields.OptionalObject(
        EventChanges,
        "What the write changed: `before` and `after` with the fields that differ. Of nested "
        "objects, the parts; of `metadata`, the keys, null if absent; of items, those that differ, "
        "each with its `id`; an added item is complete in `after`, a removed one in `before`. "
        "`undo_of` is the event that the write undid. Null if the event has no changes. Only if "
        "`fields` names it.",
        on_request=True,
    )
    actor = fields.Composite(EventActorSchema, prefix="actor_", on_request=True)


class UndoReason(Base):
    """Why a write cannot be undone."""

    code = fields.String(
        "`not_undoable`, `no_changes`, `items`, `secret`, `not_found`, `erased` or `changed_since`."
    )
    message = fields.String("The reason. Names fields, not their values.")


class UndoChanges(Base):
    """The fields that an undo changes."""

    before = fields.JsonObject("The values now.")
    after = fields.JsonObject("The values after the undo.")


class UndoSchema(Base):
    """What the undo of an event does."""

    event_id = fields.Identifier("Event ID.")
    resource = fields.String("Kind of the record.")
    resource_id = fields.Identifier("ID of the record.")
    possible = fields.Boolean("Whether the write can be undone.")
    reasons = fields.objects(UndoReason, "Why not, or an empty list.")
    changes = ma.fields.Nested(UndoChanges, required=True)


UndoResponse = response(UndoSchema, "undo")


class EventListQuery(ReadQuery):
    """Query of the feed."""

    after = IntegerParam(
        "filter[after]",
        "Only events with a higher ID: the ID of the last event that you have processed. By "
        "default, the list starts at the oldest retained event.",
    )
    before = IntegerParam(
        "filter[before]",
        "Only events with a lower ID: the ID of the last event that you have read. Only with "
        "`filter[order]=desc`.",
    )
    order = ChoiceParam(
        "filter[order]",
        "`asc`, oldest first, is the default. `desc` returns the newest events first, also those "
        "whose `data` has been removed because of its age.",
        "asc",
        "desc",
    )
    user_id = IntegerParam("filter[user_id]", "Only changes by this user.")
    request_id = TextParam("filter[request_id]", "Only changes by the request with this ID.")
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
        "filter[created_at_min]", "Only events created at or after this time."
    )
    created_at_max = TimestampParam(
        "filter[created_at_max]", "Only events created at or before this time."
    )
    limit = IntegerParam(
        "filter[limit]",
        "Number of events per page, up to 1,000. 0 means the page size of the shop.",
        maximum=1000,
    )
