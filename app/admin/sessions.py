"""Sessions and invitations (admin 1 and 5)."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from flask import Response, request, url_for
from werkzeug.wrappers import Response as BaseResponse

from app.admin import frame, html, rights
from app.admin.frame import AdminBlueprint, NavigationItem, render, see_other
from app.admin.tables import Column, Table
from app.admin.texts import gettext as _
from app.api.authentication import current_principal
from app.auth.principals import ROLES
from app.catalog import current_catalog
from app.errors import ShopError
from app.services.api_keys import links, sessions

blp = AdminBlueprint("admin_sessions", __name__)

NAVIGATION = NavigationItem("Sessions", "admin_sessions.show", "monitor", position=850)


def _browser(user_agent: str) -> str:
    """Return a short name for a browser, such as ``Firefox on Linux``."""
    browsers = ("Edg", "OPR", "Firefox", "Chrome", "Safari", "curl")
    systems = ("Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux")
    names = {"Edg": "Edge", "OPR": "Opera", "Mac OS X": "macOS"}
    browser = next((each for each in browsers if each in user_agent), "")
    system = next((each for each in systems if each in user_agent), "")
    found = [names.get(each, each) for each in (browser, system) if each]
    return " on ".join(found) or user_agent[:40] or "Unknown browser"


def _session_columns(own: int) -> list[Column]:
    actor = current_principal()
    ends_all = sessions.manages_keys(actor, "DELETE")

    def end(row: dict[str, Any]) -> Any:
        if row["user_id"] != actor.user_id and not ends_all:
            return ""
        return html.action(
            url_for("admin_sessions.end_session", session_id=row["id"]),
            _("Sign out"),
            name=row["browser"],
        )

    def browser(row: dict[str, Any]) -> Any:
        mark = html.badge(_("this browser"), "ok") if row["id"] == own else ""
        return html.joined([row["browser"], mark], " ")

    return [
        Column(_("Browser"), browser),
        Column(_("User"), lambda row: row["username"], on_phone=True),
        Column(_("Key"), lambda row: row["description"] or f"…{row['truncated_key']}"),
        Column(_("Last used"), lambda row: html.time(row["last_used_at"]), on_phone=True),
        Column(_("Ends"), lambda row: html.time(row["expires_at"])),
        Column("", end, on_phone=True),
    ]


@blp.page("/sessions")
def show() -> Response:
    """Show the sessions of the user, or all for an administrator, and the open invitations."""
    actor = current_principal()
    rows = [
        row._asdict() | {"browser": _browser(row.user_agent)}
        for row in sessions.list_sessions(actor)
    ]
    table = Table(
        _("Sessions"), _session_columns(frame.current_session().id), rows, total=len(rows)
    )
    return render(
        "sessions.html",
        title=_("Sessions"),
        table=table,
        invitations=_invitations(),
    )


def _invitations() -> Table:
    """Return the table of open invitations."""

    def withdraw(row: dict[str, Any]) -> Any:
        if not rights.can("delete_api_key"):
            return ""
        href = url_for("admin_sessions.withdraw", link_id=row["id"])
        return html.action(href, _("Withdraw"), name=row["login"])

    columns = [
        Column(_("Username"), lambda row: row["login"]),
        Column(_("Role"), lambda row: html.words(row["role"]), on_phone=True),
        Column(_("Invited by"), lambda row: row["username"]),
        Column(_("Works until"), lambda row: html.time(row["expires_at"]), on_phone=True),
        Column("", withdraw, on_phone=True),
    ]
    rows = [asdict(each) for each in links.list_invitations(current_principal())]
    return Table(_("Open invitations"), columns, rows)


@blp.action("/sessions/<int:session_id>/end")
def end_session(session_id: int) -> BaseResponse:
    """End a session."""
    sessions.end_session(current_principal(), session_id)
    return see_other("admin_sessions.show", done="ended")


@blp.page("/invitations/new", "create_api_key", methods=("GET", "POST"))
def invite() -> Response:
    """Invite a colleague: show the form, then the link once."""
    given = request.form
    chosen = given.getlist("resources") or ["all"]
    context: dict[str, Any] = {
        "roles": list(ROLES),
        "resources": sorted(current_catalog().resources),
        "permissions": {"read_write": "Read and write", "read": "Read only"},
        "given": given,
        "chosen": chosen,
        "errors": {},
    }
    if request.method == "POST":
        try:
            context["link"] = _invitation_link(chosen)
        except ShopError as error:
            if error.status not in {400, 401}:
                raise
            context["errors"] = {
                entry.get("param", "").rpartition(".")[2]: entry["message"]
                for entry in error.entries
            }
    return render("invite.html", title=_("Invite a colleague"), **context)


def _invitation_link(resources: list[str]) -> str:
    expires = request.form.get("expires_at", "")
    try:
        until = datetime.fromisoformat(expires).replace(tzinfo=UTC) if expires else None
    except ValueError:
        raise ShopError(
            "shop_api_invalid_param", param="key.expires_at", reason="must be a date."
        ) from None
    token = links.invite(
        current_principal(),
        {
            "login": request.form.get("login", "").strip(),
            "role": request.form.get("role", ""),
            "permission": request.form.get("permission", "read"),
            "resources": resources,
            "expires_at": until,
        },
    )
    return url_for("admin_sign_in.sign_in", token=token, _external=True)


@blp.action("/invitations/<int:link_id>/withdraw", "delete_api_key")
def withdraw(link_id: int) -> BaseResponse:
    """Withdraw an invitation."""
    links.withdraw_invitation(current_principal(), link_id)
    return see_other("admin_sessions.show", done="withdrawn")
