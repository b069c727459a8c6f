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
from app.admin.frame import AdminBlueprint, NavigationItem, render, see_other
from app.admin.record_actions import add_actions
from app.admin.record_forms import RecordForms
from app.admin.tables import Column, Filter, Table, list_query
from app.admin.texts import gettext as _
from app.auth.principals import Capability as Cap
from app.conversions.numbers import whole_number
from app.errors import ShopError
from app.schemas.webhooks import WebhookCreate, WebhookUpdate

blp = AdminBlueprint("admin_webhooks", __name__)

NAVIGATION = NavigationItem("Webhooks", "admin_webhooks.show_list", "send", ("list_webhooks",), 400)

_EDIT = ("shop_api_user_cannot_edit_webhook", (Cap.MANAGE_WEBHOOKS,))
_READ = ("shop_api_user_cannot_read_webhook", (Cap.MANAGE_WEBHOOKS,))
rights.add_capabilities({
    "list_webhooks": ("shop_api_user_cannot_read_webhooks_count", (Cap.MANAGE_WEBHOOKS,)),
    "get_webhook": _READ,
    "list_webhook_deliveries": _READ,
    "get_webhook_delivery": _READ,
    "create_webhook": ("shop_api_user_cannot_create_webhook", (Cap.MANAGE_WEBHOOKS,)),
    "delete_webhook": ("shop_api_user_cannot_delete_webhook", (Cap.MANAGE_WEBHOOKS,)),
    **dict.fromkeys(("update_webhook", "rotate_webhook_secret", "ping_webhook", "replay_webhook",
                     "redeliver_webhook_delivery"), _EDIT),
})  # fmt: skip

STATUSES = {
    "active": ("Active", "ok"), "paused": ("Paused", "warning"), "disabled": ("Disabled", "danger"),
}  # fmt: skip
STATES = {
    "pending": ("Pending", "warning"), "delivered": ("Delivered", "ok"),
    "failed": ("Failed", "danger"),
}  # fmt: skip


def _columns() -> list[Column]:
    def name(row: dict[str, Any]) -> Markup:
        return html.link(url_for("admin_webhooks.show", webhook_id=row["id"]), row["name"])

    def state(row: dict[str, Any]) -> Markup:
        badge = html.state_badge(STATUSES, row["status"])
        if not row["failing_since"]:
            return badge
        return html.joined([badge, html.badge(_("failing"), "danger")], " ")

    return [
        Column(_("Name"), name),
        Column(_("Status"), state, on_phone=True),
        Column(_("Events"), lambda row: ", ".join(row["topics"])),
        Column(_("Receiver"), lambda row: urlsplit(row["delivery_url"]).netloc),
        Column(_("Last delivery"), lambda row: html.time(row["last_delivery_at"]), is_number=True,
               on_phone=True),
    ]  # fmt: skip


@blp.page("/webhooks", "list_webhooks")
def show_list() -> Response:
    """Show the table of webhooks."""
    reply = call("list_webhooks", query=list_query(status=request.args.get("status", "")))
    table = Table.of_reply(_("Webhooks"), _columns(), reply, "webhooks")
    labels = {name: _(word) for name, (word, _tone) in STATUSES.items()}
    table.filters = [Filter("status", _("Status"), {"": _("All statuses"), **labels})]
    return render("webhooks.html", title=_("Webhooks"), table=table)


def _delivery_columns(webhook_id: int) -> list[Column]:
    def event(row: dict[str, Any]) -> Markup:
        path = {"webhook_id": webhook_id, "delivery_id": row["id"]}
        text = _("Event %(id)s", id=row["event_id"]) if row["event_id"] else _("Ping")
        return html.link(url_for("admin_webhooks.show_delivery", **path), text)

    def result(row: dict[str, Any]) -> str:
        attempts = row["attempts"]
        return _attempt_result(attempts[-1]) if attempts else html.NONE

    def actions(row: dict[str, Any]) -> Markup | str:
        if not rights.can("redeliver_webhook_delivery"):
            return ""
        path = {"webhook_id": webhook_id, "delivery_id": row["id"]}
        href = url_for("admin_webhooks.redeliver", **path)
        return html.action(href, _("Send again"), name=_("event %(id)s", id=row["event_id"]))

    return [
        Column(_("Delivery"), event),
        Column(_("State"), lambda row: html.state_badge(STATES, row["state"]), on_phone=True),
        Column(_("Attempts"), lambda row: html.number(len(row["attempts"])), is_number=True),
        Column(_("Last result"), result),
        Column(_("Created"), lambda row: html.time(row["created_at"]), on_phone=True),
        Column("", actions, on_phone=True),
    ]


def _attempt_result(attempt: dict[str, Any]) -> str:
    """Return the result of an attempt: its HTTP status or its error, and its duration."""
    result = attempt["error"] or str(attempt["status"])
    if attempt["error"] and attempt["status"]:
        result = f"{attempt['status']}, {attempt['error']}"
    return _("%(result)s in %(ms)s ms", result=result, ms=html.number(attempt["duration_ms"]))


@blp.page("/webhooks/<int:webhook_id>", "get_webhook", "list_webhook_deliveries")
def show(webhook_id: int) -> Response:
    """Show a webhook with its deliveries."""
    return _webhook_page(webhook_id)


def _webhook_page(webhook_id: int, **more: Any) -> Response:
    """Return the page of a webhook, with the result of an action."""
    webhook = call("get_webhook", webhook_id=webhook_id).body["webhook"]
    query = list_query(state=request.args.get("delivered", ""))
    reply = call("list_webhook_deliveries", query=query, webhook_id=webhook_id)
    columns = _delivery_columns(webhook_id)
    table = Table.of_reply(_("Deliveries"), columns, reply, "webhook_deliveries")
    labels = {name: _(word) for name, (word, _tone) in STATES.items()}
    table.filters = [Filter("delivered", _("State"), {"": _("All deliveries"), **labels})]
    rows = [
        (_("Receiver"), html.external(webhook["delivery_url"])),
        (_("Events"), ", ".join(webhook["topics"])),
        *(
            (label, webhook[name] and html.time(webhook[name]))
            for label, name in ((_("Failing since"), "failing_since"),
                                (_("Last delivery"), "last_delivery_at"))
        ),
        (_("Reason"), webhook["disabled_reason"]),
        (_("Created"), html.time(webhook["created_at"], utc=True)),
    ]  # fmt: skip
    return render(
        "webhook.html", title=webhook["name"], webhook=webhook, table=table,
        state=html.state_badge(STATUSES, webhook["status"]),
        facts=[(label, value) for label, value in rows if value], **more,
    )  # fmt: skip


@blp.page(
    "/webhooks/<int:webhook_id>/deliveries/<int:delivery_id>", "get_webhook_delivery"
)  # fmt: skip
def show_delivery(webhook_id: int, delivery_id: int) -> Response:
    """Show a delivery: its attempts, what was sent, and the last response."""
    path: dict[str, Any] = {"webhook_id": webhook_id, "delivery_id": delivery_id}
    delivery = call("get_webhook_delivery", **path).body["webhook_delivery"]
    event = None
    if delivery["event_id"] and rights.can("get_event"):
        try:
            event = call("get_event", event_id=delivery["event_id"]).body["event"]
        except ShopError as error:
            if error.status not in {404, 410}:
                raise
    attempts = Table(
        _("Attempts"),
        [
            Column(_("Time"), lambda row: html.time(row["at"])),
            Column(_("Result"), _attempt_result, on_phone=True),
        ],
        delivery["attempts"],
    )
    return render(
        "delivery.html", title=_("Delivery %(id)s", id=delivery_id), delivery=delivery,
        webhook_id=webhook_id, attempts=attempts, event=event,
        state=html.state_badge(STATES, delivery["state"]),
        body=orjson.dumps(event, option=orjson.OPT_INDENT_2).decode() if event else "",
        sent=api_request("get_webhook_delivery", **path),
    )  # fmt: skip


FORMS = RecordForms(
    "webhook", blp.name, WebhookCreate, WebhookUpdate, "Create webhook", "Webhooks", "name"
)


@blp.page("/webhooks/new", "create_webhook", methods=("GET", "POST"))
def create() -> Response | BaseResponse:
    """Show the form of a new webhook, or create it and show its secret once."""

    def created(webhook: dict[str, Any]) -> Response:
        return _webhook_page(webhook["id"], secret=webhook.get("secret"))

    return FORMS.create({"topics": ["order.*"]}, then=created)


@blp.action("/webhooks/<int:webhook_id>/status", "update_webhook")
def change_status(webhook_id: int) -> BaseResponse:
    """Pause a webhook, or make it active."""
    body = {"webhook": {"status": request.form.get("status", "")}}
    call("update_webhook", body=body, webhook_id=webhook_id)
    return see_other("admin_webhooks.show", webhook_id=webhook_id, done="saved")


@blp.action("/webhooks/<int:webhook_id>/rotate", "rotate_webhook_secret")
def rotate(webhook_id: int) -> Response:
    """Rotate the secret of a webhook, and show the new one once."""
    webhook = call("rotate_webhook_secret", webhook_id=webhook_id).body["webhook"]
    return _webhook_page(webhook_id, secret=webhook["secret"])


@blp.action("/webhooks/<int:webhook_id>/ping", "ping_webhook")
def ping(webhook_id: int) -> Response:
    """Send a ping, and show what the receiver responded."""
    return _webhook_page(webhook_id, ping=call("ping_webhook", webhook_id=webhook_id).body["ping"])


@blp.action("/webhooks/<int:webhook_id>/replay", "replay_webhook")
def replay(webhook_id: int) -> BaseResponse:
    """Send the events after an ID again."""
    text = request.form.get("after", "").strip()
    number = whole_number(text)
    body = {"after": text if number is None else number}
    call("replay_webhook", body=body, webhook_id=webhook_id)
    return see_other("admin_webhooks.show", webhook_id=webhook_id, done="queued")


@blp.action(
    "/webhooks/<int:webhook_id>/deliveries/<int:delivery_id>/redeliver",
    "redeliver_webhook_delivery",
)
def redeliver(webhook_id: int, delivery_id: int) -> BaseResponse:
    """Send a delivery again."""
    call("redeliver_webhook_delivery", webhook_id=webhook_id, delivery_id=delivery_id)
    return see_other("admin_webhooks.show", webhook_id=webhook_id, done="queued")


FORMS.add_edit(blp)
add_actions(blp, "webhook", has_trash=False)
