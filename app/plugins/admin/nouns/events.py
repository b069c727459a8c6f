"""The feed of events, newest first (admin 2)."""

from collections.abc import Mapping, Sequence
from functools import partial

import orjson
from flask import request
from markupsafe import Markup

from app.catalog import current_catalog
from app.conversions.numbers import whole_number
from app.errors import ShopError
from app.plugins.admin import html, texts
from app.plugins.admin.calls import Record, api_request, call, form_headers
from app.plugins.admin.form_pages import AnyResponse
from app.plugins.admin.frame import noun_of
from app.plugins.admin.history import FIELDS, History, differences, entry, label_of, record_of
from app.plugins.admin.nouns import Noun
from app.plugins.admin.tables import Table
from app.plugins.admin.texts import gettext as _

SIZE = 50


class Events(Noun):
    """The events of the shop. Their table has no numbers of pages: it goes back in time."""

    name, resource, deletes = "event", "event", False
    title, navigation = "Events", ("activity", 500)

    def name_of(self, record: Record) -> str:
        return f"{record['id']} {record['type']}"

    def title_of(self, record: Record) -> str:
        return _("Event %(id)s", id=record["id"])

    def __init__(self) -> None:
        super().__init__()
        self.blp.action(f"{self.one}/undo", "undo_event")(self.undo)

    def read(self, record_id: int) -> tuple[Record, str]:
        return call("get_event", query={"fields": FIELDS}, event_id=record_id).content, ""

    def link_of(self, event: Record) -> Markup | str:
        """Return the record of an event, as a link unless it was deleted."""
        text = f"{html.words(event['resource'])} {event['resource_id']}"
        noun = noun_of(event["resource"])
        if noun is None or event["type"].endswith(".deleted"):
            return text
        return noun.link_to(event["resource_id"], text)

    def filters(self) -> Sequence[str]:
        return "resource", "type", "user_id", "request_id"

    def resources(self) -> dict[str, str]:
        return {name: html.words(name) for name in current_catalog().event_resources}

    def types(self) -> dict[str, str]:
        return {name: name for name in current_catalog().event_types}

    def table(self) -> Table:
        """Return the latest events, or those before the one in the address."""
        names = ("type", "resource", "resource_id", "user_id", "request_id")
        wanted = {name: request.args.get(name, "") for name in names}
        before = whole_number(request.args.get("before", ""))
        fields = "id,type,resource,resource_id,created_at,actor.username"
        query = {**wanted, "order": "desc", "before": before, "limit": SIZE + 1, "fields": fields}
        events = call("list_events", query=query).content
        table = Table(
            _("Events"),
            events[:SIZE],
            total=len(events[:SIZE]),
            filters=self.filters(),
            own_requests=[("", api_request("list_events", query={**wanted, "order": "desc"}))],
        )
        if len(events) > SIZE:
            table.older = table.address(before=events[SIZE - 1]["id"])
        table.newest = table.address(before="") if before else ""
        return table

    def values(self, record: Record) -> dict[str, object]:
        data = orjson.dumps(record["data"], option=orjson.OPT_INDENT_2).decode()
        changed = entry(record, _labels(record))
        return {
            "changes": History([changed._replace(undo="")], "", ""),
            "can_undo": bool(changed.undo),
            "data": data if record["data"] else "",
            **(_undo(record) if changed.undo else {}),
        }

    def undo(self, event_id: int) -> AnyResponse:
        """Undo an event, and lead to its record, unless the record is in the trash now."""
        if "_show" in request.form:
            return self.page(event_id, sent=api_request("undo_event", event_id=event_id))
        record, _tag = self.read(event_id)
        reply = call("undo_event", headers=form_headers(), event_id=event_id)
        noun = noun_of(record["resource"])
        if noun is None or "message" in reply.body:
            return self.see(event_id, "undone")
        return noun.see(record["resource_id"], "undone")


def _labels(record: Record) -> dict[str, str]:
    noun = noun_of(record["resource"])
    return noun.labels() if noun else {}


def _undo(record: Record) -> dict[str, object]:
    """Return the differences that an undo makes, or the problem if it is not possible."""
    try:
        in_words = partial(texts.of_api, value=partial(_fields, labels=_labels(record)))
        undo = call("get_event_undo", shown=in_words, event_id=record["id"]).content
    except ShopError as error:
        return {"problem": texts.of_api(error.sentence())}
    if not undo["possible"]:
        reason = undo["reasons"][0]["message"]
        return {"problem": _("This change cannot be undone.") + f" {reason}"}
    changes = undo["changes"]
    labels, shown = _labels(record), record_of(record)
    found = differences(changes["before"], changes["after"], labels, shown)
    return {"undoes": [(label, f"{now} → {then}") for label, now, then in found]}


def _fields(names: str, labels: Mapping[str, str]) -> str:
    """Return the labels of fields and parts that a reason names."""
    return ", ".join(label_of(name, labels) for name in names.split(", "))


EVENTS = Events()
