"""Signing in and out: with a key, with a link, and by accepting an invitation (admin 1 and 5)."""

import re
from urllib.parse import unquote, urlsplit

from flask import Response, current_app, g, redirect, request, url_for
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as BaseResponse

from app.api.authentication import record_failed_login
from app.auth.api_keys import ApiKeyCredentials, authenticate, principal_with_id
from app.auth.principals import InvalidCredentials
from app.errors import ShopError
from app.plugins.admin import frame, html, texts
from app.plugins.admin.form_fields import PERMISSIONS
from app.plugins.admin.frame import AdminBlueprint, plain_page, see_other, sign_in_page
from app.plugins.admin.sessions import cookies, held
from app.plugins.admin.texts import gettext as _
from app.services.api_keys import links, sessions

blp = AdminBlueprint("admin_sign_in", public=True)


def safe_next(address: str) -> str:
    """Return the address of a page below ``/admin/`` to open, or that of the overview."""
    overview = url_for("admin_overview.show")
    try:
        parts = urlsplit(address)
        current_app.url_map.bind("").match(unquote(parts.path))
    except (ValueError, HTTPException):
        return overview
    is_plain = not re.search(r"[\\\x00-\x20\x7f-\uffff]", address)
    is_own = not parts.scheme and not parts.netloc and not parts.path.startswith("//")
    below = parts.path.startswith(f"{frame.prefix()}/") and ".." not in unquote(parts.path)
    return address if is_plain and is_own and below else overview


@blp.page("/sign-in")
def sign_in() -> Response | BaseResponse:
    """Show the form to sign in, or what a link is for. Changes nothing."""
    if token := request.args.get("token", "").strip():
        return _show_link(token)
    if "admin_session" in g:
        return redirect(safe_next(request.args.get("next", "")), 303)
    return sign_in_page()


def _show_link(token: str) -> Response:
    link = links.find_link(token)
    if link is None:
        raise ShopError("shop_api_sign_in_link_used")
    title, button, intro = _("Sign in"), _("Sign in as %(who)s", who=link.username), ""
    last = _("Key"), link.description or _("Key without a description")
    if link.login:
        title, button = _("Accept the invitation"), _("Accept and create my key")
        intro = _("%(who)s invites you to administer this shop.", who=link.username)
        last = _("Role"), html.words(link.role)
    facts = [
        (_("User"), link.login or link.username),
        last,
        (_("Permission"), _(PERMISSIONS[link.rights.permission.value])),
        (_("Resources"), html.words(*sorted(link.rights.resources or ["all"]))),
        (_("Link works until"), html.time(link.expires_at)),
    ]
    return plain_page(title, button=button, intro=intro, facts=facts, hidden=[("token", token)])


@blp.action("/sign-in")
def submit_sign_in() -> Response | BaseResponse:
    """Begin a session with a key and its secret, or with a link."""
    if not cookies.is_possible():
        return sign_in_page(403)
    if token := request.form.get("token", "").strip():
        return _use_link(token)
    credentials = ApiKeyCredentials(
        request.form.get("consumer_key", "").strip(), request.form.get("consumer_secret", "")
    )
    try:
        principal = authenticate(credentials, record_failed_login)
        return _begin(principal.key_id or 0)
    except ShopError as error:
        if error.status == 429:
            raise
        return sign_in_page(
            error.status,
            error=texts.of_api(error.sentence()),
            consumer_key=credentials.consumer_key,
        )


def _use_link(token: str) -> Response | BaseResponse:
    link = links.find_link(token)
    if link is None:
        raise ShopError("shop_api_sign_in_link_used")
    if link.login is None:
        return _begin(links.take_link(token).key_id)
    try:
        inviter = principal_with_id(link.key_id)
    except InvalidCredentials:
        raise ShopError("shop_api_sign_in_link_used") from None
    try:
        key = links.accept_invitation(token, inviter)
    except ShopError as error:
        if error.status not in {400, 401}:
            raise
        reason = texts.of_api(error.sentence())
        if error.status == 401:
            reason = _(
                "%(who)s can no longer give the rights of this invitation.", who=link.username
            )
        raise ShopError("shop_api_sign_in_link_used", message="{reason}", reason=reason) from None
    intro = _(
        "This is your key. The secret is shown only once. Let your browser keep it, or copy "
        "it to your password manager."
    )
    button = _("I have kept it. Sign in")
    return plain_page(_("Keep your key"), button=button, intro=intro, credentials=key)


def _begin(key_id: int) -> Response | BaseResponse:
    """Begin a session, end the one that the browser had, and open the page it was meant for."""
    token = sessions.begin_session(key_id, request.headers.get("User-Agent", ""))
    if "admin_session" in g:
        sessions.end_session(g.admin_session.principal, g.admin_session.id)
    kept = held.held_form(request.form.get("held", ""))
    response: Response | BaseResponse
    if kept is None:
        response = redirect(safe_next(request.form.get("next", "")), 303)
    elif not kept.can_return:
        response = see_other("admin_overview.show", done="lost")
    else:
        g.pop("admin_session", None)
        values = [each for each in kept.values if each[0] != "_show"]
        response = plain_page(
            _("You are signed in"),
            button=_("Back to the form"),
            action=kept.path,
            hidden=values,
            intro=_("What you typed is kept. Go back to the form to save it."),
        )
    cookies.store(response, token)  # type: ignore[arg-type]  # both are responses of werkzeug
    return response


@blp.action("/language")
def choose_language() -> BaseResponse:
    """Keep the language that the user chooses, and return to the page."""
    return texts.chosen(request.form.get("language", ""), safe_next(request.form.get("next", "")))


@blp.action("/sign-out")
def sign_out() -> BaseResponse:
    """End the session, or with ``everywhere`` all sessions and unused links of the user."""
    if "admin_session" in g:
        principal = g.admin_session.principal
        if request.form.get("everywhere"):
            sessions.end_every_session(principal.user_id)
        else:
            sessions.end_session(principal, g.admin_session.id)
    response = redirect(url_for("admin_sign_in.sign_in"), 303)
    cookies.remove(response)  # type: ignore[arg-type]  # see above
    response.headers["Clear-Site-Data"] = '"cache", "storage"'
    return response
