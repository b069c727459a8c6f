"""API keys (admin 2)."""

from dataclasses import asdict

from flask import Response, url_for
from werkzeug.wrappers import Response as BaseResponse

from app.api.authentication import current_principal
from app.auth.principals import Permission
from app.plugins.admin import frame, html
from app.plugins.admin.calls import Record, call
from app.plugins.admin.forms import PERMISSIONS
from app.plugins.admin.frame import see_other
from app.plugins.admin.nouns import Noun
from app.plugins.admin.pages import Button
from app.plugins.admin.tables import Column, Table
from app.plugins.admin.texts import gettext as _
from app.schemas import api_keys as schemas
from app.services.api_keys import links
from app.services.api_keys.rights import Rights
from app.services.api_keys.sessions import manages_keys
from app.services.api_keys.writes import require_rotated_key_again


def _permission(key: Record) -> str:
    return _(PERMISSIONS.get(key["permission"], ""))


def _may_rotate(key: Record) -> bool:
    """Return whether the key of the session has all rights of a key, whose secret it would get."""
    actor, ends = current_principal(), key["expires_at"]
    resources = None if "all" in key["resources"] else frozenset(key["resources"])
    held = Rights(Permission(key["permission"]), resources, ends and html.parse_time(ends))
    return not held.beyond(Rights(actor.permission, actor.resources, actor.expires_at))


class Keys(Noun):
    """The keys of the user, or all for an administrator."""

    name, operation, resource = "key", "api_key", "key"
    title, navigation, create_label = "Keys", ("key", 800), "Create key"
    intro = "A program or a person needs a key to use the shop. Give each one its own."
    empty = ("No keys", "")
    create_schema, deletes = schemas.ApiKeyCreate, False
    secrets = {"consumer_key": "Consumer key", "consumer_secret": "Consumer secret"}
    secrets_note = "The secret is shown only here. Copy both to the program that uses the key."
    given = {"permission": "read_write", "resources": ["all"], "role": "shop_manager"}

    def name_of(self, record: Record) -> str:
        return record["description"] or f"…{record['truncated_key']}"

    def query(self, given: object) -> dict[str, object]:
        return {"order": "desc"}

    def columns(self, *, trashed: bool) -> list[Column]:
        return [
            Column(_("Key"), self.link),
            Column(_("User"), lambda row: row["username"], on_phone=True),
            Column(_("Permission"), _permission),
            Column(_("Resources"), lambda row: html.words(*row["resources"])),
            Column.of(_("Expires"), "expires_at", html.time),
            Column.of(_("Last used"), "last_used_at", html.time, on_phone=True),
        ]

    def list_buttons(self) -> list[Button]:
        return [Button(_("Invite a colleague"), "admin_keys.invite")]

    def show_list(self) -> Response:
        """Show the keys, and the open invitations and unused links if there are any."""

        def withdraw(row: Record) -> list[Button]:
            path = {"link_id": row["id"]}
            name = row["login"]
            shown = {"login": name}
            return [Button(_("Withdraw"), "admin_sessions.withdraw", path, name=name, shown=shown)]

        columns = [
            Column(_("Username"), lambda row: row["login"]),
            Column(_("Role"), lambda row: html.words(row["role"]), on_phone=True),
            Column(_("Invited by"), lambda row: row["username"]),
            Column.of(_("Works until"), "expires_at", html.time, on_phone=True),
        ]
        rows = [asdict(each) for each in links.list_invitations(current_principal())]
        tables = [Table(_("Open invitations"), columns, rows, buttons=withdraw), self._links()]
        return self.list_page(more=[each for each in tables if each.rows])

    def _links(self) -> Table:
        """Return the unused links that sign in with a key, each with a button that revokes it."""
        actor = current_principal()
        revokes_all = manages_keys(actor, "DELETE")

        def revoke(row: Record) -> list[Button]:
            if not revokes_all and row["user_id"] != actor.user_id:
                return []
            path, name = {"link_id": row["id"]}, row["username"]
            shown = {"username": name}
            return [Button(_("Revoke"), "admin_keys.revoke_link", path, name=name, shown=shown)]

        def key(row: Record) -> object:
            return self.link_to(row["key_id"], self.name_of(row))

        columns = [
            Column(_("Key"), key),
            Column(_("User"), lambda row: row["username"], on_phone=True),
            Column.of(_("Works until"), "expires_at", html.time, on_phone=True),
        ]
        rows = [asdict(each) for each in links.list_links(actor)]
        return Table(_("Unused sign-in links"), columns, rows, buttons=revoke)

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
            "permission": _permission(record),
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
