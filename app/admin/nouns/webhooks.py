"""Webhooks and their deliveries (admin 2)."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import orjson
from flask import Response, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as BaseResponse

from app.admin import html, rights
from app.admin.calls import api_request, call
from app.admin.forms import specs_of
from app.admin.frame import render, see_other
from app.admin.nouns import Noun, Record
from app.admin.pages import Button, Section, allowed, filled, requests_of
from app.admin.tables import Column, Filter, Table, list_query
from app.admin.texts import gettext as _
from app.conversions.numbers import whole_number
from app.errors import ShopError
from app.schemas.webhooks import WebhookCreate, WebhookReplayRequest, WebhookUpdate

STATUSES = {
    "active": ("Active", "ok"), "paused": ("Paused", "warning"), "disabled": ("Disabled", "danger"),
}  # fmt: skip
STATES = {
    "pending": ("Pending", "warning"), "delivered": ("Delivered", "ok"),
    "failed": ("Failed", "danger"),
}  # fmt: skip


class Webhooks(Noun):
    """The webhooks of the shop."""

    name = resource = "webhook"
    title, navigation, create_label = "Webhooks", ("send", 400), "Create webhook"
    empty = (
        "No webhooks yet",
        "A webhook sends changes of the shop to a program of yours as soon as they happen.",
    )
    named_by, create_schema, update_schema = ("name",), WebhookCreate, WebhookUpdate
    given = {"topics": ["order.*"]}
    sorts, also_reads = False, ("list_webhook_deliveries",)

    def name_of(self, record: Record) -> str:
        return str(record["name"])

    def badge(self, record: Record) -> Markup:
        return html.state_badge(STATUSES, record["status"])

    def columns(self, *, trashed: bool) -> list[Column]:
        def state(row: Record) -> Markup:
            failing = [html.badge(_("Failing"), "danger")] if row["failing_since"] else []
            return html.joined([self.badge(row), *failing], " ")

        return [
            Column(_("Name"), self.link),
            Column(_("Status"), state, on_phone=True),
            Column(_("Events"), lambda row: ", ".join(row["topics"])),
            Column(_("Receiver"), lambda row: urlsplit(row["delivery_url"]).netloc),
            Column(_("Last delivery"), lambda row: html.time(row["last_delivery_at"]),
                   is_number=True, on_phone=True),
        ]  # fmt: skip

    def filters(self) -> list[Filter]:
        return [_filter("status", _("Status"), _("All statuses"), STATUSES)]

    def notices(self, record: Record) -> list[str]:
        if record["status"] == "disabled":
            return [_("The webhook is disabled. Fix the receiver, activate the webhook, then "
                      "replay the events that it has missed.")]  # fmt: skip
        text = _("Deliveries fail. Fix the receiver, then send a ping.")
        return [text] if record["failing_since"] else []

    def buttons(self, record: Record) -> list[Button]:
        number, name, needs = record["id"], record["name"], ("update_webhook",)
        active = record["status"] == "active"
        label, status = (_("Pause"), "paused") if active else (_("Activate"), "active")
        return [
            Button(label, self.url("change_status", number), needs, "post", name=name,
                   fields={"status": status}),
            Button(_("Ping"), self.url("ping", number), ("ping_webhook",), "post", name=name),
            Button(_("Edit"), self.url("edit", number), needs, tone="primary"),
        ]  # fmt: skip

    def main(self, record: Record) -> list[Section]:
        number = record["id"]
        query = list_query(state=request.args.get("delivered", ""))
        reply = call("list_webhook_deliveries", query=query, webhook_id=number)
        columns = self._delivery_columns(number)
        table = Table.of_reply(_("Deliveries"), columns, reply, "webhook_deliveries")
        table.filters = [_filter("delivered", _("State"), _("All deliveries"), STATES)]
        for row in table.rows[:1]:
            path = {"webhook_id": number, "delivery_id": row["id"]}
            table.requests += requests_of(_("Send again"), "redeliver_webhook_delivery", **path)
        none = _("Nothing was delivered yet. Send a ping, or change a record.")
        return [Section(_("Deliveries"), "table", table, none)]

    def _delivery_columns(self, webhook_id: int) -> list[Column]:
        def event(row: Record) -> Markup:
            text = _("Event %(id)s", id=row["event_id"]) if row["event_id"] else _("Ping")
            return html.link(self.url("show_delivery", webhook_id, delivery_id=row["id"]), text)

        def actions(row: Record) -> Markup | str:
            if not rights.can("redeliver_webhook_delivery"):
                return ""
            href = self.url("redeliver", webhook_id, delivery_id=row["id"])
            return html.action(href, _("Send again"), _("event %(id)s", id=row["event_id"]))

        def result(row: Record) -> str:
            return _result(row["attempts"][-1]) if row["attempts"] else html.NONE

        return [
            Column(_("Delivery"), event),
            Column(_("State"), lambda row: html.state_badge(STATES, row["state"]), on_phone=True),
            Column(_("Last result"), result),
            Column(_("Created"), lambda row: html.time(row["created_at"]), on_phone=True),
            Column("", actions, on_phone=True),
        ]

    def side(self, record: Record) -> list[Section]:
        times = {"failing_since": _("Failing since"), "last_delivery_at": _("Last delivery")}
        facts = [
            (_("Receiver"), html.external(record["delivery_url"])),
            (_("Events"), ", ".join(record["topics"])),
            *((label, record[key] and html.time(record[key])) for key, label in times.items()),
            (_("Reason"), record["disabled_reason"]),
            (_("Created"), html.time(record["created_at"], utc=True)),
        ]
        form = self.url("replay", record["id"]), specs_of(WebhookReplayRequest), _("Replay")
        replay = Section(_("Replay events"), "plain", Markup(), form=form)
        may_replay = rights.can("replay_webhook")
        return [Section(_("Details"), "facts", filled(facts)), *([replay] if may_replay else [])]

    def dangers(self, record: Record) -> list[Button]:
        name, href = record["name"], self.url("rotate", record["id"])
        question = _("Rotate the secret of %(name)s?", name=name)
        return [Button(_("Rotate the secret"), href, ("rotate_webhook_secret",), "confirm",
                       name=name, question=question)]  # fmt: skip

    def created(self, record: Record) -> Response:
        """Return the page of a new webhook, which shows its secret once."""
        return self.with_secret(record)

    def with_secret(self, webhook: Record) -> Response:
        """Return the page of a webhook, which shows its secret once."""
        note = _("It signs the deliveries, and is shown only here. Copy it to your program.")
        return self.page(webhook["id"], secrets=[(_("Secret"), webhook["secret"])], note=note)


def _filter(name: str, label: str, every: str, states: dict[str, tuple[str, str]]) -> Filter:
    words = {state: _(word) for state, (word, _tone) in states.items()}
    return Filter(name, label, {"": every, **words})


def _result(attempt: Record) -> str:
    """Return the result of an attempt: its HTTP status or its error, and its duration."""
    parts = [str(each) for each in (attempt["status"], attempt["error"]) if each]
    ms = html.number(attempt["duration_ms"])
    return _("%(result)s in %(ms)s\u00a0ms", result=", ".join(parts), ms=ms)


WEBHOOKS = Webhooks()
blp = WEBHOOKS.blp
ONE = "/webhooks/<int:webhook_id>"


@blp.page(f"{ONE}/deliveries/<int:delivery_id>", "get_webhook_delivery")
def show_delivery(webhook_id: int, delivery_id: int) -> Response:
    """Show a delivery: its attempts, what was sent, and the last response."""
    path: dict[str, Any] = {"webhook_id": webhook_id, "delivery_id": delivery_id}
    delivery = call("get_webhook_delivery", **path).body["webhook_delivery"]
    columns = [
        Column(_("Time"), lambda row: html.time(row["at"])),
        Column(_("Result"), _result, on_phone=True),
    ]
    attempts = Table(_("Attempts"), columns, delivery["attempts"])
    no_event = _("A ping has no event.")
    if delivery["event_id"]:
        no_event = _("The event is not kept any more, or your key cannot read events.")
    href, needs = url_for("admin_webhooks.redeliver", **path), ("redeliver_webhook_delivery",)
    next_at = delivery["next_attempt_at"]
    return render(
        "record.html", title=_("Delivery %(id)s", id=delivery_id),
        back=(WEBHOOKS.url("show", webhook_id), _("Webhook")),
        status_badge=html.state_badge(STATES, delivery["state"]),
        buttons=allowed([Button(_("Send again"), href, needs, "post", "primary")]),
        notices=[html.joined([_("Next attempt:"), html.time(next_at)], " ")] if next_at else [],
        main=[
            Section(_("Attempts"), "rows", attempts, _("Not sent yet.")),
            Section(_("Response"), "copyable", delivery["response_body"],
                    _("The last response had no body.")),
            Section(_("Event"), "copyable", _event(delivery["event_id"]), no_event),
        ],
        requests=[("", api_request("get_webhook_delivery", **path)),
                  *requests_of(_("Send again"), "redeliver_webhook_delivery", **path)],
    )  # fmt: skip


def _event(event_id: int | None) -> str:
    """Return an event as JSON, or an empty string if it cannot be read."""
    if not event_id or not rights.can("get_event"):
        return ""
    try:
        event = call("get_event", event_id=event_id).body["event"]
    except ShopError as error:
        if error.status not in {404, 410}:
            raise
        return ""
    return orjson.dumps(event, option=orjson.OPT_INDENT_2).decode()


@blp.action(f"{ONE}/status", "update_webhook")
def change_status(webhook_id: int) -> Response | BaseResponse:
    """Pause a webhook, or make it active."""
    body = {"webhook": {"status": request.form.get("status", "")}}
    return WEBHOOKS.send(webhook_id, "update_webhook", body, "saved")


@blp.action(f"{ONE}/rotate", "rotate_webhook_secret")
def rotate(webhook_id: int) -> Response:
    """Rotate the secret of a webhook, and show the new one once."""
    reply = call("rotate_webhook_secret", webhook_id=webhook_id)
    return WEBHOOKS.with_secret(reply.body["webhook"])


@blp.action(f"{ONE}/ping", "ping_webhook")
def ping(webhook_id: int) -> Response:
    """Send a ping, and show what the receiver responded."""
    found = call("ping_webhook", webhook_id=webhook_id).body["ping"]
    text = _("The receiver responded with %(status)s in %(ms)s ms.",
             status=found["status"], ms=found["duration_ms"])  # fmt: skip
    if found["error"]:
        failed = _("The ping failed: %(error)s.", error=found["error"])
        text = f"{failed} {found['message'] or ''}"
    return WEBHOOKS.page(webhook_id, result=text)


@blp.action(f"{ONE}/replay", "replay_webhook")
def replay(webhook_id: int) -> Response | BaseResponse:
    """Send the events after an ID again."""
    text = request.form.get("after", "").strip()
    number = whole_number(text)
    body = {"after": text if number is None else number}
    return WEBHOOKS.send(webhook_id, "replay_webhook", body, "queued")


@blp.action(f"{ONE}/deliveries/<int:delivery_id>/redeliver", "redeliver_webhook_delivery")
def redeliver(webhook_id: int, delivery_id: int) -> BaseResponse:
    """Send a delivery again."""
    call("redeliver_webhook_delivery", webhook_id=webhook_id, delivery_id=delivery_id)
    return see_other("admin_webhooks.show", webhook_id=webhook_id, done="queued")
