"""Webhooks and their deliveries (admin 2)."""

from collections.abc import Sequence
from urllib.parse import urlsplit

import orjson
from flask import Response, request
from markupsafe import Markup
from werkzeug.wrappers import Response as BaseResponse

from app.api.authentication import current_principal
from app.conversions.numbers import whole_number
from app.errors import ShopError
from app.outbound.client import FAILED, REFUSED, TIMEOUT
from app.outbound.network import REMEDY
from app.plugins.admin import html
from app.plugins.admin.calls import Record, api_request, call, can
from app.plugins.admin.form_fields import FieldSpec, specs_of
from app.plugins.admin.form_pages import add_action
from app.plugins.admin.frame import see_other
from app.plugins.admin.nouns import Noun
from app.plugins.admin.pages import Button, record_page
from app.plugins.admin.tables import Table, list_query
from app.plugins.admin.texts import gettext as _
from app.schemas.webhooks import WebhookCreate, WebhookReplayRequest, WebhookUpdate
from app.services.webhooks.topics import can_read

STATUSES = {
    "active": ("Active", "ok"),
    "paused": ("Paused", "warning"),
    "disabled": ("Disabled", "danger"),
}
STATES = {
    "pending": ("Pending", "warning"),
    "delivered": ("Delivered", "ok"),
    "failed": ("Failed", "danger"),
}


class WebhookPages(Noun):
    """The webhooks of the shop."""

    name = resource = "webhook"
    title, navigation, create_label = "Webhooks", ("send", 400), "Create webhook"
    named_by, create_schema, update_schema = ("name",), WebhookCreate, WebhookUpdate
    given = {"topics": ["order.*"]}
    secrets, rotates = {"secret": "Secret"}, "rotate_webhook_secret"
    secrets_note = "It signs the deliveries, and is shown only here. Copy it to your program."
    also_reads = ("list_webhook_deliveries",)

    def badge(self, record: Record) -> Markup:
        return html.state_badge(STATUSES, record["status"])

    def receiver_of(self, record: Record) -> str:
        return urlsplit(record["delivery_url"]).netloc

    def delivery_badge(self, delivery: Record) -> Markup:
        return html.state_badge(STATES, delivery["state"])

    def sent_by(self, delivery: Record) -> str:
        """Return what a delivery sends."""
        event_id = delivery["event_id"]
        return _("Event %(id)s", id=event_id) if event_id else _("Ping")

    def result_of(self, attempt: Record) -> str:
        """Return the result of an attempt: its HTTP status or its error, and its duration."""
        parts = [_(str(each)) for each in (attempt["status"], attempt["error"]) if each]
        ms = html.number(attempt["duration_ms"])
        return _("%(result)s in %(ms)s\u00a0ms", result=", ".join(parts), ms=ms)

    def statuses(self) -> dict[str, str]:
        return html.state_words(STATUSES)

    def delivery_states(self) -> dict[str, str]:
        return html.state_words(STATES)

    def filters(self) -> Sequence[str]:
        return ("status",)

    def show(self, **path: int) -> Response:
        """Show a webhook, and after a ping what the receiver responded."""
        ping, ms = (request.args.get(name, "") for name in ("ping", "ms"))
        text, status = "", whole_number(ping)
        if ping in (FAILED, REFUSED, TIMEOUT):
            text = _("The ping failed: %(error)s.", error=_(ping))
            text += f" {_(REMEDY)}" if ping == REFUSED else ""
        elif status is not None and ms.isdecimal():
            text = _("The receiver responded with %(status)s in %(ms)s ms.", status=status, ms=ms)
        return self.page(*path.values(), result=text, result_ok=200 <= (status or 0) < 300)

    def values(self, record: Record) -> dict[str, object]:
        label, status = _("Activate"), "active"
        if record["status"] == "active":
            label, status = _("Pause"), "paused"
        change = self.button(
            label,
            "change_status",
            record,
            fields={"status": status},
            shown={"status": record["status"]},
        )
        question = _("Rotate the secret of %(name)s?", name=record["name"])
        rotate = self.button(_("Rotate the secret"), "rotate", record, question=question)
        ping = self.button(_("Ping"), "ping", record)
        edit = self.button(_("Edit"), "edit", record, tone="primary")
        reason = record["disabled_reason"] or ""
        may_change = can_read(current_principal(), record["topics"])
        replay = self.url("replay", record["id"]), specs_of(WebhookReplayRequest), _("Replay")
        return {
            "buttons": [change, ping, edit] if may_change else [ping],
            "dangers": [rotate] if may_change else [],
            "deliveries": self._deliveries(record["id"]),
            "reason": _(reason),  # here, because a template would trust the text
            "replay": replay if can("replay_webhook") else None,
        }

    def _deliveries(self, webhook_id: int) -> Table:
        def again(row: Record) -> list[Button]:
            path = {"webhook_id": webhook_id, "delivery_id": row["id"]}
            return [
                Button(_("Send again"), self.endpoint("redeliver"), path, name=self.sent_by(row))
            ]

        query = list_query(state=request.args.get("delivered", ""))
        reply = call("list_webhook_deliveries", query=query, webhook_id=webhook_id)
        table = Table.of_reply(_("Deliveries"), reply)
        table.filters = ("delivered",)
        table.buttons = again
        return table


WEBHOOKS = WebhookPages()
blp = WEBHOOKS.blp
ONE = "/webhooks/<id:webhook_id>"


@blp.page(f"{ONE}/deliveries/<id:delivery_id>", "get_webhook_delivery")
def show_delivery(webhook_id: int, delivery_id: int) -> Response:
    """Show a delivery: its attempts, what was sent, and the last response."""
    path: Record = {"webhook_id": webhook_id, "delivery_id": delivery_id}
    delivery = call("get_webhook_delivery", **path).content
    return record_page(
        "delivery.html",
        _("Delivery %(id)s", id=delivery_id),
        (WEBHOOKS.url("show", webhook_id), _("Webhook")),
        api_request("get_webhook_delivery", **path),
        buttons=[Button(_("Send again"), WEBHOOKS.endpoint("redeliver"), path, tone="primary")],
        delivery=delivery,
        attempts=Table(_("Attempts"), delivery["attempts"]),
        event=_event(delivery["event_id"]),
        status_badge=WEBHOOKS.delivery_badge(delivery),
    )


def _event(event_id: int | None) -> str:
    """Return an event as JSON, or an empty string if it cannot be read."""
    if not event_id or not can("get_event"):
        return ""
    try:
        event = call("get_event", event_id=event_id).content
    except ShopError as error:
        if error.status not in {404, 410}:
            raise
        return ""
    return orjson.dumps(event, option=orjson.OPT_INDENT_2).decode()


@blp.action(f"{ONE}/ping", "ping_webhook")
def ping(webhook_id: int) -> BaseResponse:
    """Send a ping. The page shows what the receiver responded."""
    found = call("ping_webhook", webhook_id=webhook_id).content
    result = {"ping": found["error"] or found["status"], "ms": found["duration_ms"]}
    return see_other(WEBHOOKS.endpoint("show"), webhook_id=webhook_id, **result)


STATUS = FieldSpec("status", "Status", "text")
add_action(
    WEBHOOKS,
    "change_status",
    "update_webhook",
    "saved",
    path="status",
    key="webhook",
    specs=lambda: [STATUS],
)
add_action(
    WEBHOOKS, "replay", "replay_webhook", "queued", specs=lambda: specs_of(WebhookReplayRequest)
)
add_action(
    WEBHOOKS,
    "redeliver",
    "redeliver_webhook_delivery",
    "queued",
    path="deliveries/<id:delivery_id>/redeliver",
)
