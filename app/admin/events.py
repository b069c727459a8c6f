"""The feed of events, newest first (admin 2)."""

from __future__ import annotations

from typing import Any

import orjson
from flask import Response, request, url_for
from markupsafe import Markup

from app.admin import html, rights
from app.admin.calls import api_request, call, loaded_query
from app.admin.frame import AdminBlueprint, NavigationItem, render
from app.admin.tables import Column, Filter, Table
from app.admin.texts import gettext as _
from app.api.authentication import current_principal
from app.api.representations import EVENT
from app.auth.principals import Capability as Cap
from app.catalog import current_catalog
from app.conversions.numbers import whole_number
from app.schemas.events import EventListQuery
from app.services.events.history import recent_events

blp = AdminBlueprint("admin_events", __name__)

NAVIGATION = NavigationItem("Events", "admin_events.show_list", "activity", ("list_events",), 500)

rights.add_capabilities({
    "get_event": ("shop_api_user_cannot_read_event", (Cap.READ_EVENTS,)),
})  # fmt: skip

SIZE = 50

PAGES = {
    "coupon": ("admin_coupons.show", "coupon_id", "get_coupon"),
    "customer": ("admin_customers.show", "customer_id", "get_customer"),
    "order": ("admin_orders.show", "order_id", "get_order"),
    "webhook": ("admin_webhooks.show", "webhook_id", "get_webhook"),
    "coupon_batch": ("admin_generate.show", "batch_id", "get_coupon_batch"),
}
"""The page of a record by the type of the record: endpoint, its variable, and the right to it."""


def _record(row: dict[str, Any]) -> Markup | str:
    text = f"{row['resource'].replace('_', ' ')} {row['resource_id']}"
    endpoint, variable, needed = PAGES.get(row["resource"], ("", "", ""))
    if not endpoint or row["type"].endswith(".deleted") or not rights.can(needed):
        return text
    return html.link(url_for(endpoint, **{variable: row["resource_id"]}), text)


def _columns() -> list[Column]:
    def event(row: dict[str, Any]) -> Markup:
        href = url_for("admin_events.show", event_id=row["id"])
        return html.link(href, f"{row['id']} {row['type']}")

    return [
        Column(_("Event"), event),
        Column(_("Record"), _record, on_phone=True),
        Column(_("By"), lambda row: row["username"] or html.NONE),
        Column(_("Time"), lambda row: html.time(row["created_at"]), is_number=True, on_phone=True),
    ]


@blp.page("/events", "list_events")
def show_list() -> Response:
    """Show the latest events."""
    given = request.args
    wanted = {name: given.get(name, "") for name in ("type", "resource", "resource_id")}
    query = loaded_query(EventListQuery, wanted)
    before = whole_number(given.get("before", "")) or 0
    rows = recent_events(current_principal(), query, before, EVENT.columns, SIZE + 1)
    events = [EVENT.row(row[:-4]) | {"username": row[-4]} for row in rows]
    table = Table(_("Events"), _columns(), events[:SIZE], total=len(events[:SIZE]))
    catalog = current_catalog()
    records = {name: name.replace("_", " ").capitalize() for name in catalog.event_resources}
    types = {name: name for name in catalog.event_types}
    table.filters = [
        Filter("resource", _("Record"), {"": _("All records"), **records}),
        Filter("type", _("Type"), {"": _("All types"), **types}),
    ]
    table.request = api_request("list_events", query=wanted)
    older = events[SIZE - 1]["id"] if len(events) > SIZE else None
    return render("events.html", title=_("Events"), table=table, older=older, before=before)


@blp.page("/events/<int:event_id>", "get_event")
def show(event_id: int) -> Response:
    """Show an event with its data."""
    event = call("get_event", event_id=event_id).body["event"]
    rows = [
        (_("Type"), event["type"]),
        (_("Record"), _record(event)),
        (_("Time"), html.time(event["created_at"], utc=True)),
        (_("Request ID"), event["request_id"]),
    ]
    return render(
        "event.html", title=_("Event %(id)s", id=event_id), event=event,
        facts=[(label, value) for label, value in rows if value],
        data=orjson.dumps(event["data"], option=orjson.OPT_INDENT_2).decode(),
        sent=api_request("get_event", event_id=event_id),
    )  # fmt: skip
