"""Events: the feed of changes, and one event. Native only (events 1)."""

from flask import Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Query
from app.api.etags import with_etag
from app.api.idempotency import idempotent
from app.api.openapi.document import LINK_HEADER
from app.api.representations import EVENT
from app.api.responses import json_response, next_link
from app.api.undo import plan_undo, undo
from app.schemas.event_types import EventList, EventResponse, UndoneRecord
from app.schemas.events import EventListQuery, UndoResponse
from app.schemas.examples import coupons as coupon_examples
from app.schemas.examples import events as examples
from app.schemas.queries import ReadQuery
from app.services.events import queries as event_queries
from app.services.events.queries import EventQuery

blp = Blueprint(
    "events", __name__, url_prefix="/events", description="Read the feed of all changes of records."
)
init_app = blp.init_app

_OF_EVENT = (
    "shop_api_invalid_event_id",
    "shop_api_events_expired",
    "shop_api_user_cannot_read_event",
)
_RIGHTS = (
    "shop_api_user_cannot_edit_campaign",
    "shop_api_user_cannot_edit_coupon",
    "shop_api_user_cannot_delete_coupon",
    "shop_api_user_cannot_edit_customer",
    "shop_api_user_cannot_edit_order",
    "shop_api_user_cannot_delete_order",
    "shop_api_user_cannot_create_order_refund",
    "shop_api_user_cannot_edit_order_note",
    "shop_api_user_cannot_edit_order_refund",
)


@blp.route("")
@blp.errors("shop_api_user_cannot_read_events", "shop_api_events_expired")
@blp.arguments(EventListQuery, location="query")
@blp.response(200, EventList, headers=LINK_HEADER, example={"events": [examples.EVENT]})
def list_events(query: Query) -> Response:
    """List events.

    Returns the events that match, oldest first, or newest first with `filter[order]=desc`. Store
    the ID of the last event that you have processed, and pass it as `filter[after]` to continue. No
    event at or below an ID that you have read appears later. The history of a record is
    `filter[resource]=coupon&filter[resource_id]=12&filter[order]=desc`.
    """
    serializer = EVENT.only(query["selection"])
    page = event_queries.list_events(current_principal(), EventQuery.of(query), serializer.columns)
    cursor = "filter[before]" if query["order"] == "desc" else "filter[after]"
    links = next_link(cursor, page.rows[-1][-1]) if page.has_more else {}
    return json_response({"events": serializer.rows(page.rows)}, headers=links)


@blp.route("/<id:event_id>")
@with_etag
@blp.errors(*_OF_EVENT)
@blp.arguments(ReadQuery, location="query")
@blp.response(200, EventResponse, example={"event": examples.EVENT})
def get_event(query: Query, event_id: int) -> Response:
    """Retrieve an event.

    Events are retained for `SHOP_HISTORY_DAYS`, and their `data` for `SHOP_EVENTS_DAYS`.
    """
    serializer = EVENT.only(query["selection"])
    row = event_queries.get_event(current_principal(), event_id, serializer.columns)
    return json_response({"event": serializer.row(row)})


@blp.route("/<id:event_id>/undo")
@blp.errors(*_OF_EVENT, *_RIGHTS)
@blp.response(200, UndoResponse, example={"undo": examples.UNDO})
def get_event_undo(event_id: int) -> Response:
    """Preview the undo of an event.

    Returns whether the write can be undone, the reason if not, and the values now and after the
    undo.
    """
    return json_response({"undo": plan_undo(current_principal(), event_id).shown})


@blp.route("/<id:event_id>/undo", methods=["POST"])
@blp.errors(
    *_OF_EVENT,
    "shop_api_cannot_undo_event",
    *_RIGHTS,
    "shop_api_coupon_code_already_exists",
    "shop_api_coupon_not_applicable",
    "shop_api_invalid_campaign_id",
    "shop_api_invalid_customer_id",
)
@idempotent
@blp.response(200, UndoneRecord, example={"coupon": coupon_examples.COUPON})
def undo_event(event_id: int) -> Response:
    """Undo an event.

    Writes the values of the fields that the event changed as they were before, moves a record to
    the trash or restores it. It is a new write, with its rules and events, and can be undone as
    well. Later changes of other fields stay. Returns the record, or the response of a deletion.
    """
    return undo(current_principal(), event_id)
