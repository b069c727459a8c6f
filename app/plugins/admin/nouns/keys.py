"""API keys, invitations of colleagues, and the sessions that are signed in (admin 1, 2 and 5)."""

from dataclasses import asdict
from functools import partial

from flask import Response, request, url_for
from marshmallow import ValidationError
from werkzeug.wrappers import Response as BaseResponse

from app.api.authentication import current_principal
from app.auth.principals import Permission
from app.errors import ShopError
from app.plugins.admin import frame, html
from app.plugins.admin.calls import Record, api_request, call
from app.plugins.admin.form_fields import PERMISSIONS, specs_of
from app.plugins.admin.form_pages import form_page
from app.plugins.admin.forms import Form
from app.plugins.admin.frame import AdminBlueprint, render, see_other
from app.plugins.admin.lists import list_page
from app.plugins.admin.nouns import FORM, Noun
from app.plugins.admin.pages import Button, record_page
from app.plugins.admin.tables import Table
from app.plugins.admin.texts import gettext as _
from app.schemas import api_keys as schemas
from app.schemas.base import Base
from app.schemas.fields import input as inputs
from app.schemas.fields import json_schema
from app.schemas.fields.form import FormField, set_form
from app.schemas.loading import instance_of, invalid_params
from app.services.api_keys import links, sessions
from app.services.api_keys.rights import Rights
from app.services.api_keys.writes import require_rotated_key_again


def _may_rotate(key: Record) -> bool:
    """Return whether the key of the session has all rights of a key, whose secret it would get."""
    actor, ends = current_principal(), key["expires_at"]
    resources = None if "all" in key["resources"] else frozenset(key["resources"])
    held = Rights(Permission(key["permission"]), resources, ends and html.parse_time(ends))
    return not held.beyond(Rights(actor.permission, actor.resources, actor.expires_at))


def _end(label: str, endpoint: str, variable: str, named: str, row: Record) -> list[Button]:
    """Return the button at the end of a row that ends what the row shows.

    Args:
        label: its text.
        endpoint: its action.
        variable: that of the ID in the address of the action.
        named: the field that names what it ends.
    """
    name = row[named]
    return [Button(label, endpoint, {variable: row["id"]}, name=name, shown={named: name})]


def _end_own(label: str, endpoint: str, variable: str, named: str, row: Record) -> list[Button]:
    """Return such a button, if the session may end what belongs to the user of the row."""
    actor = current_principal()
    is_own = row["user_id"] == actor.user_id or sessions.manages_keys(actor, "DELETE")
    return _end(label, endpoint, variable, named, row) if is_own else []


class Keys(Noun):
    """The keys of the user, or all for an administrator."""

    name, operation, resource = "key", "api_key", "key"
    title, navigation, create_label = "Keys", ("key", 800), "Create key"
    create_schema, deletes = schemas.ApiKeyCreate, False
    secrets = {"consumer_key": "Consumer key", "consumer_secret": "Consumer secret"}
    rotates = "rotate_api_key"
    secrets_note = "The secret is shown only here. Copy both to the program that uses the key."
    given = {"permission": "read_write", "resources": ["all"], "role": "shop_manager"}

    def name_of(self, record: Record) -> str:
        return record["description"] or f"…{record['truncated_key']}"

    def permission_of(self, record: Record) -> str:
        return _(PERMISSIONS.get(record["permission"], ""))

    def query(self, given: object) -> dict[str, object]:
        return {"order": "desc"}

    def list_buttons(self) -> list[Button]:
        return [Button(_("Invite a colleague"), "admin_keys.invite")]

    def show_list(self) -> Response:
        """Show the keys, and the open invitations and unused links if there are any."""
        actor = current_principal()

        withdraw = partial(_end, _("Withdraw"), "admin_sessions.withdraw", "link_id", "login")
        revoke = partial(_end_own, _("Revoke"), "admin_keys.revoke_link", "link_id", "username")
        found = [*map(asdict, links.list_invitations(actor))]
        unused = [*map(asdict, links.list_links(actor))]
        return list_page(
            self,
            invitations=Table(_("Open invitations"), found, buttons=withdraw),
            unused=Table(_("Unused sign-in links"), unused, buttons=revoke),
        )

    def values(self, record: Record) -> dict[str, object]:
        name = self.name_of(record)
        rotate = self.button(
            _("Rotate"),
            "rotate",
            record,
            question=_("Rotate the key %(name)s?", name=name),
            note=_("The old consumer key and secret stop working at once."),
        )
        revoke = self.button(
            _("Revoke"),
            "revoke",
            record,
            shown={"username": record["username"]},
            question=_("Revoke the key %(name)s?", name=name),
            note=_("Programs that use it lose access at once. This cannot be undone."),
        )
        return {
            "is_own": frame.current_session().principal.key_id == record["id"],
            "permission": self.permission_of(record),
            "resources": html.words(*record["resources"]),
            "buttons": [self.button(_("New sign-in link"), "new_link", record, in_api=False)]
            if _may_rotate(record) and record["permission"] != "write"
            else [],
            "dangers": [rotate, revoke] if _may_rotate(record) else [revoke],
        }

    def body(self, values: dict[str, object]) -> dict[str, object]:
        """Return the new key. Without a username, it belongs to the user of the session."""
        if "username" not in values:
            values.pop("role", None)
        return values | {"resources": values.get("resources") or ["all"]}


KEYS = Keys()
blp = KEYS.blp


@blp.action("/keys/<id:key_id>/link", "rotate_api_key")
def new_link(key_id: int) -> Response:
    """Show a link that signs in once with a key, to whoever could also get its secret."""
    require_rotated_key_again(current_principal(), key_id)
    token = links.create_link(key_id, links.INVITATION_TIME)
    link = url_for("admin_sign_in.sign_in", token=token, _external=True)
    note = _(
        "Send this link to the user of the key. It works once within 48 hours, and is shown "
        "only here. The page of all keys lists it and can revoke it."
    )
    return KEYS.page(key_id, secrets=[(_("Link"), link)], note=note)


@blp.action("/keys/<id:key_id>/revoke", "delete_api_key")
def revoke(key_id: int) -> BaseResponse:
    """Revoke a key. Its sessions end."""
    with frame.pressed_again():
        call("delete_api_key", key_id=key_id)
    return see_other("admin_keys.show_list", done="revoked")


@blp.action("/keys/links/<id:link_id>/revoke")
def revoke_link(link_id: int) -> BaseResponse:
    """Revoke a link that signs in with a key."""
    with frame.pressed_again():
        links.revoke_link(current_principal(), link_id)
    return see_other("admin_keys.show_list", done="link_revoked")


sessions_blp = AdminBlueprint("admin_sessions", "Sessions", "monitor", 850)


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


@sessions_blp.page("/sessions")
def show() -> Response:
    """Show the sessions of the user, or all for an administrator."""
    rows = [
        row._asdict() | {"browser": _browser(row.user_agent)}
        for row in sessions.list_sessions(current_principal())
    ]
    end = partial(_end_own, _("Sign out"), "admin_sessions.end_session", "session_id", "browser")
    table = Table(_("Sessions"), rows, len(rows), buttons=end)
    return render("sessions.html", title=_("Sessions"), table=table)


@sessions_blp.action("/sessions/<id:session_id>/end")
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


@blp.page("/invitations/new", "create_api_key", methods=FORM)
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


@sessions_blp.action("/invitations/<id:link_id>/withdraw", "delete_api_key")
def withdraw(link_id: int) -> BaseResponse:
    """Withdraw an invitation."""
    with frame.pressed_again():
        links.withdraw_invitation(current_principal(), link_id)
    return see_other(KEYS.endpoint("show_list"), done="withdrawn")
