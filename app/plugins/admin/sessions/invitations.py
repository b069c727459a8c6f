"""The sessions that are signed in, and invitations of colleagues (admin 1 and 5)."""

from flask import Response, request, url_for
from marshmallow import ValidationError
from werkzeug.wrappers import Response as BaseResponse

from app.api.authentication import current_principal
from app.errors import ShopError
from app.plugins.admin import frame, html
from app.plugins.admin.calls import Record, api_request
from app.plugins.admin.forms import Form, specs_of
from app.plugins.admin.frame import AdminBlueprint, render, see_other
from app.plugins.admin.nouns import FORM, form_page
from app.plugins.admin.nouns.keys import KEYS
from app.plugins.admin.pages import Button, record_page
from app.plugins.admin.tables import Column, Table
from app.plugins.admin.texts import gettext as _
from app.schemas import api_keys as schemas
from app.schemas.base import Base
from app.schemas.fields import input as inputs
from app.schemas.fields import json_schema
from app.schemas.fields.form import FormField, set_form
from app.schemas.loading import instance_of, invalid_params
from app.services.api_keys import links, sessions

blp = AdminBlueprint("admin_sessions", "Sessions", "monitor", 850)


def _browser(user_agent: str) -> str:
    """Return a short name for a browser, such as ``Firefox on Linux``."""
    browsers = ("Edg", "OPR", "Firefox", "Chrome", "Safari", "curl")
    systems = ("Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux")
    names = {"Edg": "Edge", "OPR": "Opera", "Mac OS X": "macOS"}
    found = [
        next((each for each in list_ if each in user_agent), "") for list_ in (browsers, systems)
    ]
    browser, system = (names.get(each, each) for each in found)
    if browser and system:
        return _("%(browser)s on %(system)s", browser=browser, system=system)
    return browser or system or user_agent[:40] or _("Unknown browser")


def _session_buttons(row: Record) -> list[Button]:
    actor = current_principal()
    if row["user_id"] != actor.user_id and not sessions.manages_keys(actor, "DELETE"):
        return []
    path = {"session_id": row["id"]}
    name = row["browser"]
    shown = {"browser": name}
    return [Button(_("Sign out"), "admin_sessions.end_session", path, name=name, shown=shown)]


def _session_columns() -> list[Column]:
    own = frame.current_session().id

    def browser(row: Record) -> object:
        mark = html.badge(_("This browser"), "ok") if row["id"] == own else ""
        return html.joined([row["browser"], mark], " ")

    return [
        Column(_("Browser"), browser),
        Column(_("User"), lambda row: row["username"], on_phone=True),
        Column(_("Key"), lambda row: row["description"] or f"…{row['truncated_key']}"),
        Column.of(_("Last used"), "last_used_at", html.time, on_phone=True),
        Column.of(_("Ends"), "expires_at", html.time),
    ]


@blp.page("/sessions")
def show() -> Response:
    """Show the sessions of the user, or all for an administrator."""
    rows = [
        row._asdict() | {"browser": _browser(row.user_agent)}
        for row in sessions.list_sessions(current_principal())
    ]
    table = Table(_("Sessions"), _session_columns(), rows, len(rows), buttons=_session_buttons)
    return render(
        "list.html",
        title=_("Sessions"),
        table=table,
        intro=_(
            "Browsers that are signed in. A session has the rights of its key and ends with it."
        ),
    )


@blp.action("/sessions/<id:session_id>/end")
def end_session(session_id: int) -> BaseResponse:
    """End a session."""
    with frame.pressed_again():
        sessions.end_session(current_principal(), session_id)
    return see_other("admin_sessions.show", done="ended")


class Invitation(Base):
    """A colleague who is invited, and the rights of the key."""

    login = inputs.Text("", openapi=json_schema.USERNAME_IN, required=True)
    role = inputs.Text("", load_default="")
    permission = schemas.PermissionInput("", load_default="read")
    resources = schemas.ResourceList("", load_default=lambda: ["all"])
    expires_at = schemas.ExpiryInput("", load_default=None)


set_form(
    Invitation,
    {
        "User": {
            "login": FormField("Username"),
            "role": FormField(
                values="roles",
                help="A shop assistant changes the status and the notes of orders, and neither "
                "refunds nor deletes. A shop manager administers coupons, customers and orders. An "
                "administrator also manages keys.",
            ),
        },
        "Key": {**schemas.RIGHTS, "permission": FormField(values="signs_in", help="")},
    },
)


@KEYS.blp.page("/invitations/new", "create_api_key", methods=FORM)
def invite() -> Response:
    """Invite a colleague: show the form, then the link once."""
    title, back = _("Invite a colleague"), (KEYS.url("show_list"), _("Keys"))
    form = Form.of_new(specs_of(Invitation), "invitation", KEYS.given)
    if request.method == "POST":
        form = Form.submitted(form.specs, "invitation")
        values = form.read(everything=True)
        key = {"username" if name == "login" else name: each for name, each in values.items()}
        form.sent = api_request("create_api_key", body={"key": key})
        try:
            if not form.errors and "_show" not in request.form:
                link = url_for("admin_sign_in.sign_in", token=_invite(values), _external=True)
                note = _(
                    "Send this link to your colleague. It works once within 48 hours, and is "
                    "shown only here."
                )
                secrets = [(_("Link"), link)]
                return record_page("record.html", title, back, secrets=secrets, note=note)
        except ShopError as error:
            form.note(error)
        if form.errors and "_show" not in request.form:
            form.note_all(values, _invite)
    return form_page(
        form,
        title,
        back,
        button=_("Create invitation"),
        request_note=_("It creates the user and the key at once, without a link."),
        intro=_(
            "Your colleague gets a link, a user and a key with the rights that you choose. "
            "They cannot exceed the rights of your key."
        ),
    )


def _invite(values: Record) -> str:
    """Store an invitation with the values of its form, and return the token of its link."""
    try:
        loaded = instance_of(Invitation).load(values)
    except ValidationError as error:
        raise invalid_params(error, depth=0) from None
    return links.invite(current_principal(), loaded, request.form.get("_form", ""))


@blp.action("/invitations/<id:link_id>/withdraw", "delete_api_key")
def withdraw(link_id: int) -> BaseResponse:
    """Withdraw an invitation."""
    with frame.pressed_again():
        links.withdraw_invitation(current_principal(), link_id)
    return see_other(KEYS.endpoint("show_list"), done="withdrawn")
