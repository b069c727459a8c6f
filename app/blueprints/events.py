"""Events: the feed of changes, and one event. Native only (events 1)."""

from flask import Response

from app.api.authentication import current_principal
from app.api.blueprint import Blueprint, Query
from app.api.etags import with_etag
from app.api.openapi.document import LINK_HEADER
from app.api.representations import EVENT
from app.api.responses import json_response, next_link
from app.schemas.event_types import EventList, EventResponse
from app.schemas.events import EventListQuery
from app.schemas.examples import events as examples
from app.schemas.queries import ReadQuery
from app.services.events import queries as event_queries

blp = Blueprint(
    "events", __name__, url_prefix="/events", description="Read the feed of all changes of records."
)
init_app = blp.init_app


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
    page = event_queries.list_events(current_principal(), query, serializer.columns)
    cursor = "filter[before]" if query["order"] == "desc" else "filter[after]"
    links = next_link(cursor, page.rows[-1][-1]) if page.has_more else {}
    return json_response({"events": serializer.rows(page.rows)}, headers=links)


@blp.route("/<id:event_id>")
@with_etag
@blp.errors(
    "shop_api_invalid_event_id", "shop_api_events_expired", "shop_api_user_cannot_read_event"
)
@blp.arguments(ReadQuery, location="query")
@blp.response(200, EventResponse, example={"event": examples.EVENT})
def get_event(query: Query, event_id: int) -> Response:
    """Retrieve an event.

    Events are retained for `SHOP_HISTORY_DAYS`, and their `data` for `SHOP_EVENTS_DAYS`.
    """
    serializer = EVENT.only(query["selection"])
    row = event_queries.get_event(current_principal(), event_id, serializer.columns)
    return json_response({"event": serializer.row(row)})
