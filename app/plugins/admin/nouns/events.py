"""The feed of events, newest first (admin 2)."""

import orjson
from flask import request
from markupsafe import Markup

from app.api.authentication import current_principal
from app.api.representations import EVENT
from app.catalog import current_catalog
from app.conversions.numbers import whole_number
from app.plugins.admin import html
from app.plugins.admin.calls import api_request, loaded_query
from app.plugins.admin.nouns import NOUNS, Noun, Record
from app.plugins.admin.pages import Parts, Section
from app.plugins.admin.tables import Column, Filter, Table
from app.plugins.admin.texts import gettext as _
from app.schemas.events import EventListQuery
from app.services.events.history import recent_events

SIZE = 50


class Events(Noun):
    """The events of the shop. Their table has no numbers of pages: it goes back in time."""

    name, resource, deletes = "event", "event", False
    title, navigation = "Events", ("activity", 500)
    empty = ("No events yet", "Every change of a coupon, customer or order appears here.")

    def name_of(self, record: Record) -> str:
        return f"{record['id']} {record['type']}"

    def title_of(self, record: Record) -> str:
        return _("Event %(id)s", id=record["id"])

    def columns(self, *, trashed: bool) -> list[Column]:
        return [
            Column(_("Event"), self.link),
            Column(_("Record"), _record, on_phone=True),
            Column(_("By"), lambda row: row["username"] or html.NONE),
            Column.of(_("Time"), "created_at", html.time, on_phone=True),
        ]

    def filters(self) -> list[Filter]:
        catalog = current_catalog()
        records = {name: html.words(name) for name in catalog.event_resources}
        types = {name: name for name in catalog.event_types}
        return [
            Filter("resource", _("Record"), _("All records"), records),
            Filter("type", _("Type"), _("All types"), types),
        ]

    def list_notice(self) -> str:
        given = request.args
        if not (number := given.get("resource_id")):
            return ""
        return _("Only events of %(record)s %(id)s.", record=given.get("resource", ""), id=number)

    def table(self) -> Table:
        """Return the latest events, or those before the one in the address."""
        given = request.args
        wanted = {name: given.get(name, "") for name in ("type", "resource", "resource_id")}
        query = loaded_query(EventListQuery, wanted)
        before = whole_number(given.get("before", "")) or 0
        rows = recent_events(current_principal(), query, before, EVENT.columns, SIZE + 1)
        events = [EVENT.row(row[:-4]) | {"username": row[-4]} for row in rows]
        table = Table(
            _("Events"),
            self.columns(trashed=False),
            events[:SIZE],
            total=len(events[:SIZE]),
            filters=self.filters(),
            own_requests=[("", api_request("list_events", query=wanted))],
        )
        if len(events) > SIZE:
            table.older = table.address(before=events[SIZE - 1]["id"])
        table.newest = table.address(before="") if before else ""
        return table

    def parts(self, record: Record) -> Parts:
        facts = [
            (_("Type"), record["type"]),
            (_("Record"), _record(record)),
            (_("Time"), html.time(record["created_at"], utc=True)),
            (_("Request ID"), record["request_id"]),
        ]
        data = orjson.dumps(record["data"], option=orjson.OPT_INDENT_2).decode()
        details = Section(_("Details"), "facts", facts)
        return Parts(main=[details, Section(_("Data"), "copyable", data)])


def _record(row: Record) -> Markup | str:
    text = f"{html.words(row['resource'])} {row['resource_id']}"
    noun = NOUNS.get(row["resource"])
    if noun is None or row["type"].endswith(".deleted"):
        return text
    return noun.link_to(row["resource_id"], text)


EVENTS = Events()
blp = EVENTS.blp
