"""API keys: the table, a new key, rotation and revocation (admin 2)."""

from __future__ import annotations

from typing import Any

from flask import Response, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as BaseResponse

from app.admin import frame, html
from app.admin.calls import api_request, call, form_headers
from app.admin.frame import AdminBlueprint, NavigationItem, render, see_other
from app.admin.tables import Column, Table, list_query
from app.admin.texts import gettext as _
from app.auth.principals import ROLES
from app.catalog import current_catalog
from app.errors import ShopError

blp = AdminBlueprint("admin_keys", __name__)

NAVIGATION = NavigationItem("Keys", "admin_keys.show_list", "key", ("list_api_keys",), 800)

PERMISSIONS = {"read_write": "Read and write", "read": "Read only", "write": "Write only"}


def _name(key: dict[str, Any]) -> str:
    return key["description"] or f"…{key['truncated_key']}"


def _columns() -> list[Column]:
    def name(row: dict[str, Any]) -> Markup:
        return html.link(url_for("admin_keys.show", key_id=row["id"]), _name(row))

    return [
        Column(_("Key"), name),
        Column(_("User"), lambda row: row["username"], on_phone=True),
        Column(_("Permission"), lambda row: _(PERMISSIONS.get(row["permission"], ""))),
        Column(_("Resources"), lambda row: ", ".join(row["resources"])),
        Column(_("Expires"), lambda row: html.time(row["expires_at"]), is_number=True),
        Column(_("Last used"), lambda row: html.time(row["last_used_at"]), is_number=True,
               on_phone=True),
    ]  # fmt: skip


@blp.page("/keys", "list_api_keys")
def show_list() -> Response:
    """Show the keys of the user, or all for an administrator."""
    reply = call("list_api_keys", query=list_query(order="desc"))
    table = Table.of_reply(_("Keys"), _columns(), reply, "keys")
    return render("keys.html", title=_("Keys"), table=table)


@blp.page("/keys/<int:key_id>", "get_api_key")
def show(key_id: int) -> Response:
    """Show a key, without its secret."""
    key = call("get_api_key", key_id=key_id).body["key"]
    facts = [
        (_("User"), key["username"]),
        (_("Consumer key"), f"…{key['truncated_key']}"),
        (_("Permission"), _(PERMISSIONS.get(key["permission"], ""))),
        (_("Resources"), ", ".join(key["resources"])),
        (_("Created"), html.time(key["created_at"], utc=True)),
        (_("Expires"), html.time(key["expires_at"], utc=True) if key["expires_at"] else _("Never")),
        (_("Last used"), html.time(key["last_used_at"]) if key["last_used_at"] else _("Never")),
    ]
    is_own = frame.current_session().principal.key_id == key_id
    return render(
        "key.html", title=_name(key), key=key, facts=facts, is_own=is_own,
        sent=api_request("get_api_key", key_id=key_id),
    )  # fmt: skip


@blp.page("/keys/new", "create_api_key", methods=("GET", "POST"))
def create() -> Response:
    """Show the form of a new key, or create it and show its secret once."""
    errors: dict[str, str] = {}
    if request.method == "POST":
        try:
            reply = call("create_api_key", body={"key": _submitted()}, headers=form_headers())
            return _secret_page(reply.body["key"])
        except ShopError as error:
            if error.status not in {400, 401, 409}:
                raise
            errors = {
                str(entry.get("param") or "").rpartition(".")[2]: entry["message"]
                for entry in error.entries
            }
    return render(
        "key_form.html", title=_("Create key"), errors=errors, given=request.form,
        chosen=request.form.getlist("resources") or ["all"], roles=list(ROLES),
        resources=sorted(current_catalog().resources), permissions=PERMISSIONS,
        has_errors=bool(errors), status=400 if errors else 200,
    )  # fmt: skip


def _submitted() -> dict[str, Any]:
    """Return the key that was typed in. Without a username, it belongs to the user."""
    given = request.form
    key: dict[str, Any] = {
        "description": given.get("description", "").strip(),
        "permission": given.get("permission", "read"),
        "resources": given.getlist("resources") or ["all"],
    }
    if expires := given.get("expires_at", "").strip():
        key["expires_at"] = expires
    if username := given.get("username", "").strip():
        key["username"] = username
        key["role"] = given.get("role", "")
    return key


def _secret_page(key: dict[str, Any]) -> Response:
    """Return the page that shows a secret once."""
    return render("key_secret.html", title=_name(key), key=key)


@blp.action("/keys/<int:key_id>/rotate", "rotate_api_key")
def rotate(key_id: int) -> Response:
    """Replace the consumer key and secret of a key, and show the new ones once."""
    reply = call("rotate_api_key", headers=form_headers(), key_id=key_id)
    return _secret_page(reply.body["key"])


@blp.action("/keys/<int:key_id>/revoke", "delete_api_key")
def revoke(key_id: int) -> BaseResponse:
    """Revoke a key. Its sessions end."""
    call("delete_api_key", key_id=key_id)
    return see_other("admin_keys.show_list", done="revoked")
