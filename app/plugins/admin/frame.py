"""The frame of the pages: blueprints with a session and rights, rendering, headers and errors."""

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import flask
from flask import Response, current_app, g, redirect, render_template, request, url_for
from markupsafe import Markup
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as BaseResponse

from app.api.authentication import limit_body
from app.api.dialect import SAFE_METHODS
from app.api.openapi.info import guides_url
from app.errors import Sentence, ShopError
from app.plugins.admin import html
from app.plugins.admin.calls import can, require, require_reading
from app.plugins.admin.sessions import cookies, held
from app.plugins.admin.sessions.cookies import Session, find_session
from app.plugins.admin.texts import gettext as _

if TYPE_CHECKING:
    from app.plugins.admin.nouns import Noun

ADMIN = "shop_api_admin"  # on app.extensions

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)

DONE = {
    "created": "Created.",
    "saved": "Saved.",
    "unchanged": "Nothing was changed.",
    "trashed": "Moved to the trash.",
    "restored": "Restored from the trash.",
    "undone": "Undone.",
    "deleted": "Deleted permanently.",
    "released": "The use was released.",
    "redeemed": "The use was recorded.",
    "ended": "The session was ended.",
    "withdrawn": "The invitation is not open any more.",
    "revoked": "The key was revoked.",
    "link_revoked": "The sign-in link does not work any more.",
    "started": "Started.",
    "loading": "The demo shop is being loaded already. Open this page again in a few seconds.",
    "note": "The note was added.",
    "queued": "Queued. The worker sends it within seconds.",
    "refunded": "The refund was recorded.",
    "merged": "The accounts were merged.",
    "claimed": "The orders now belong to this customer.",
    "windows": "The file is not UTF-8, so it was read as Windows-1252. If letters such as ä or é "
    "would be wrong, cancel the import, save the file as UTF-8, and choose it again.",
    "lost": "The action was not performed. Open its page again, and repeat it.",
}
"""What the parameter ``done`` of an address reports after an action, by its value."""

KEPT = ("done", "undo", "at", "ping", "ms")
"""Parameters that report an action, which no other address of the page repeats."""


@dataclass(frozen=True, slots=True)
class NavigationItem:
    """An entry of the navigation."""

    label: str
    endpoint: str  # of its page
    icon: str  # an icon of ``icons.html``
    position: int = 500  # the entries are sorted by it


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of a plugin on the page of a record (``extensions.add_panel``)."""

    record: str
    label: str
    content: Callable[[dict[str, object]], Markup | str]
    needs: tuple[str, ...] = ()


@dataclass(slots=True)
class Admin:
    """What the pages of an app consist of, in ``app.extensions``."""

    nouns: Mapping[str, "Noun"]  # the kinds of records by their names in events
    navigation: list[NavigationItem] = field(default_factory=list)
    panels: list[Panel] = field(default_factory=list)


def noun_of(resource: str) -> "Noun | None":
    """Return the kind of the records of an event, or None if it has no pages."""
    admin: Admin = current_app.extensions[ADMIN]
    return admin.nouns.get(resource)


def prefix() -> str:
    """Return the path of the pages."""
    return f"{current_app.config['SHOP_URL_PREFIX']}/admin"


class AdminBlueprint(flask.Blueprint):
    """A group of pages. Each requires a session, unless the blueprint is public.

    Args:
        label: the entry in the navigation, if there is one, with an icon and its position.
        page: the endpoint of the page that the entry opens.
    """

    def __init__(
        self,
        name: str,
        label: str = "",
        icon: str = "",
        position: int = 0,
        *,
        page: str = "show",
        public: bool = False,
    ) -> None:
        super().__init__(name, __name__, template_folder="templates")
        item = NavigationItem(label, f"{name}.{page}", icon, position)
        self.item = item if label else None
        self.before_request(_require_same_origin)
        self.before_request(_find_session if public else _require_session)
        self.after_request(secured)

    def page(
        self, rule: str, *needs: str | tuple[str, ...], methods: tuple[str, ...] = ("GET",)
    ) -> Callable[[Callable[..., object]], Callable[..., object]]:
        """Register a page, or with POST alone an action.

        Args:
            rule: the path below ``/admin``.
            needs: the operations of the API that it stands for. The session must be able to run
                all of them; of several in a tuple, one is enough.
            methods: the methods that it accepts.
        """

        def decorate(view: Callable[..., object]) -> Callable[..., object]:
            @wraps(view)
            def checked(**path: Any) -> Any:
                require(*needs)
                return view(**path)

            checked.needs = needs  # type: ignore[attr-defined]  # for ``may_open``
            checked.is_action = "GET" not in methods  # type: ignore[attr-defined]  # for ``Button``
            self.add_url_rule(rule, view.__name__, checked, methods=methods)
            return view

        return decorate

    def action(
        self, rule: str, *needs: str | tuple[str, ...]
    ) -> Callable[[Callable[..., object]], Callable[..., object]]:
        """Register an action: a POST request that ends with a redirect."""
        return self.page(rule, *needs, methods=("POST",))


def may_open(endpoint: str) -> bool:
    """Return whether the session can open a page, or run an action."""
    view: Any = current_app.view_functions[endpoint]
    return can(*view.needs)


def _require_same_origin() -> None:
    """Reject unsafe requests that no page of this origin has sent (admin 5)."""
    if request.method in SAFE_METHODS:
        return
    own = f"{request.scheme}://{request.headers.get('Host', '')}"
    is_own = request.headers.get("Origin", "").lower() == own.lower()
    if request.headers.get("Sec-Fetch-Site", "same-origin" if is_own else "") != "same-origin":
        raise ShopError("shop_api_cross_site_request")


def _find_session() -> None:
    token = cookies.token()
    session = find_session(token) if token else None
    if session is not None:
        request_id = g.request_start.ids["request_id"]
        principal = replace(session.principal, request_id=request_id, session_id=session.id)
        g.admin_session = replace(session, principal=principal)
        g.principal = principal
    if session is None or not session.principal.capabilities:
        limit_body()


def _require_session() -> BaseResponse | None:
    """Find the session, or lead to the sign-in and back."""
    _find_session()
    if "admin_session" in g:
        require_reading()
        return None
    if request.method in SAFE_METHODS:
        here = request.full_path.rstrip("?")
        return redirect(url_for("admin_sign_in.sign_in", next=here), 303)
    kept = held.hold()
    notice = _("Your session has ended. Sign in, and what you typed is kept.")
    if not kept:
        notice = _(
            "Your session has ended, and what you typed is too large to be kept here. Sign in in "
            "another tab, then go back and send it again."
        )
    return sign_in_page(401, kept=kept, notice=notice)


@contextmanager
def pressed_again() -> Iterator[None]:
    """Ignore that a record is gone, if the button was on a page that showed the record.

    An earlier press of the same button, or another user, has done its work.
    """
    try:
        yield
    except ShopError as error:
        if error.status not in {404, 410} or "_shown" not in request.form:
            raise


def current_session() -> Session:
    """Return the session of the request."""
    session: Session = g.admin_session
    return session


def secured(response: Response) -> Response:
    """Add the security headers of the pages to a response."""
    headers = response.headers
    headers.setdefault("Content-Security-Policy", POLICY)
    headers.setdefault("Referrer-Policy", "same-origin")
    headers.setdefault("Cache-Control", "no-store")
    # A browser would ask for a user name and a password.
    headers.pop("WWW-Authenticate", None)
    return response


def render(template: str, *, title: str, status: int = 200, **context: object) -> Response:
    """Return a page, made by a template in ``templates/admin``."""
    admin: Admin = current_app.extensions[ADMIN]
    session = g.get("admin_session")
    items = sorted(admin.navigation, key=lambda item: item.position) if session else []
    page = render_template(
        f"admin/{template}",
        title=title,
        session=session,
        can=can,
        may_open=may_open,
        shop=current_app.config["SHOP_NAME"],
        navigation=[item for item in items if may_open(item.endpoint)],
        done=_(DONE[done]) if (done := request.args.get("done", "")) in DONE else "",
        here=_address() if request.method in SAFE_METHODS else "",
        guides=guides_url(current_app.config),
        form_id=uuid.uuid4().hex,  # acts like an Idempotency-Key
        **context,
    )
    return Response(page, status, mimetype="text/html")


def _address() -> str:
    """Return the address of the page, without the parameters that report an action."""
    kept = [(name, value) for name, value in request.args.items(multi=True) if name not in KEPT]
    return f"{request.path}?{urlencode(kept)}" if kept else request.path


def plain_page(title: str, *, button: str = "", status: int = 200, **context: object) -> Response:
    """Return a page of the sign-in: a form with one button, by default *Sign in*.

    ``context`` has ``intro``, ``facts``, ``hidden`` inputs, and the ``credentials`` that are typed
    or shown.
    """
    return render(
        "sessions/sign_in.html",
        title=title,
        button=button or _("Sign in"),
        status=status,
        **{"is_possible": cookies.is_possible(), "hidden": []} | context,
    )


def sign_in_page(
    status: int = 200, *, kept: str | None = None, consumer_key: str = "", **context: Any
) -> Response:
    """Return the form that asks for a key and its secret.

    Args:
        kept: a form that was sent to another page without a session, as signed text.
        consumer_key: the key that was typed.
        context: ``notice`` and ``error``.
    """
    form = request.form if kept is None else {}
    # A link of another site could contain a form that its author has sent.
    held_text = form.get("held", "") if kept is None else kept
    address = form.get("next", "") or request.args.get("next", "")
    hidden = [("next", address), ("held", held_text)]
    typed = {"consumer_key": consumer_key, "consumer_secret": ""}
    return plain_page(
        _("Sign in"), status=status, hidden=hidden, credentials=typed, by_link=True, **context
    )


def panels(record: str, value: dict[str, object]) -> list[tuple[str, Markup | str]]:
    """Return the panels of plugins for a record: label and content."""
    admin: Admin = current_app.extensions[ADMIN]
    return [
        (panel.label, panel.content(value))
        for panel in admin.panels
        if panel.record == record and can(*panel.needs)
    ]


def see_other(endpoint: str, **values: Any) -> BaseResponse:
    """Return the redirect after an action."""
    return redirect(url_for(endpoint, **values), 303)


def _name_of(param: str) -> str:
    """Return the words of a parameter: ``Created at min`` for ``filter[created_at_min]``."""
    return html.words(re.findall(r"\w+", param)[-1])


def _typed() -> list[tuple[str, str]]:
    """Return what a user has typed in the form of a page: words for the fields, and the texts."""
    limit_body()  # unless the view has read it
    try:
        shown = json.loads(request.form.get("_shown", "{}"))
        texts = {name: "\n".join(request.form.getlist(name)) for name in request.form}
        return [
            (html.words(name.rpartition(".")[2]), text)
            for name, text in texts.items()
            if name in shown and text.replace("\r\n", "\n").strip() != shown[name]
        ]
    except (ValueError, TypeError, RecursionError, HTTPException):
        return []  # not what the page of a form sends


def error_page(error: ShopError) -> Response:
    """Return the page of an error below ``/admin``. It keeps what was typed in a form."""
    # Without a session, another site can have sent it. To read it can be what has failed.
    typed = _typed() if "admin_session" in g and error.status < 500 else []
    if error.status in {404, 405} and "admin_session" not in g:
        _find_session()  # no blueprint has this address
    messages = [html.of_api(part.sentence(_name_of)) for part in error.parts]
    if error.status == 409:  # another message contains its reasons
        texts_of = (each["message"] for each in error.reasons)
        messages += [html.of_api(each) for each in texts_of if isinstance(each, Sentence)]
    page = render(
        "error.html",
        title="",
        status=error.status,
        error=error,
        messages=messages,
        typed=typed,
        seconds=error.headers.get("Retry-After", "60"),
        request_id=g.request_start.ids["request_id"],
    )
    page.headers.update(error.headers)
    return secured(page)
