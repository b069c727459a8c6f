"""What the page of a record consists of: buttons, tiles and sections (``record.html``)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flask import Response, current_app, url_for
from markupsafe import Markup

from app.plugins.admin.calls import ApiRequest, Reply, api_request, call, can
from app.plugins.admin.forms import FieldSpec
from app.plugins.admin.frame import may_open, render
from app.plugins.admin.texts import gettext as _

Requests = Sequence[tuple[str, ApiRequest]]
"""Requests by the labels of their buttons. That of the page itself has none."""


@dataclass(frozen=True, slots=True)
class Button:
    """A link to a page, or a form that runs an action, after a question if there is one."""

    label: str  # a verb
    endpoint: str  # of the page or the action
    path: Mapping[str, Any] = field(default_factory=dict)  # the variables of its address
    tone: str = ""  # ``primary`` for the main action of a page
    name: str = ""  # the record, with which the accessible name ends
    fields: Mapping[str, Any] = field(default_factory=dict)  # hidden inputs
    shown: Mapping[str, str] = field(default_factory=dict)  # what the page shows of what it changes
    spec: FieldSpec | None = None  # an input instead of the first hidden one
    question: str = ""
    note: str = ""  # what the question adds
    query: Mapping[str, str] = field(default_factory=dict)  # the parameters of its operation

    @property
    def view(self) -> Any:
        return current_app.view_functions[self.endpoint]

    @property
    def kind(self) -> str:
        """How it is shown: ``link``, ``post``, or ``confirm`` with a question."""
        if not self.view.is_action:
            return "link"
        return "confirm" if self.question else "post"

    @property
    def href(self) -> str:
        return url_for(self.endpoint, **self.path)

    @property
    def id(self) -> str:
        """The ID of its question in the page."""
        return self.href.strip("/").replace("/", "-")

    @property
    def inputs(self) -> dict[str, str]:
        """The texts of its hidden inputs."""
        texts = {True: "true", False: ""}
        return {name: texts.get(value, value) for name, value in self.fields.items()}

    def request(self, key: str = "") -> ApiRequest:
        """Return the request of its action, whose body has a wrapper key."""
        body = {key: dict(self.fields)} if self.fields else None
        return api_request(self.view.needs[0], query=self.query, body=body, **self.path)


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure."""

    label: str
    value: Any
    notes: Sequence[Any] = ()  # what stands below it, such as the change
    line: Markup | str = ""  # its sparkline


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page with a title."""

    title: str
    kind: str  # the macro of ``ui.html`` that shows the content, or ``plain``
    content: Any  # None if the key cannot read it
    empty: str = ""  # what is said instead of empty content
    what: str = ""  # what the key cannot read
    link: tuple[str, str] | None = None  # address and text, beside the title
    form: tuple[str, Sequence[FieldSpec], str] | None = None  # address, fields, text of its button
    after: Markup | str = ""  # what follows the content in its box
    note: str = ""  # what follows the box
    id: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)  # of the fields of its form, by name

    @property
    def is_shown(self) -> bool:
        """Whether it says anything."""
        return bool(self.content is None or self.content or self.empty or self.form)


@dataclass(frozen=True, slots=True)
class Parts:
    """What the page of a record shows, from its top. Buttons that cannot be used are left out."""

    notices: Sequence[Any] = ()
    buttons: Sequence[Button] = ()
    tiles: Sequence[Tile] = ()
    main: Sequence[Section] = ()
    side: Sequence[Section] = ()
    dangers: Sequence[Button] = ()  # what cannot be undone


def record_page(
    title: str,
    back: tuple[str, str],
    parts: Parts,
    sent: ApiRequest | None = None,
    key: str = "",
    **more: Any,
) -> Response:
    """Return the page of a record. It shows its request, and those of its buttons.

    Args:
        back: address and text of the link above the title.
        sent: its request.
        key: the wrapper key of the requests of its buttons.
        more: further values of the template: ``status_badge``, what an action reports as its
            ``result``, ``secrets`` that are shown only once with a ``note``, and whether the
            request ``opens``.
    """
    shown = {name: getattr(parts, name) for name in Parts.__slots__}
    shown |= {name: allowed(shown[name]) for name in ("buttons", "dangers")}
    shown |= {name: [each for each in shown[name] if each.is_shown] for name in ("main", "side")}
    actions = [each for each in (*shown["buttons"], *shown["dangers"]) if each.kind != "link"]
    requests = [("", sent), *((each.label, each.request(key)) for each in actions)] if sent else ()
    return render("record.html", title=title, back=back, requests=requests, **shown, **more)


def allowed(buttons: Sequence[Button]) -> list[Button]:
    """Return the buttons that the session can use."""
    return [each for each in buttons if may_open(each.endpoint)]


def person_buttons(**names: int) -> tuple[list[Button], list[Button]]:
    """Return the buttons of the data of a person, and of its erasure, on the page of a record."""
    data = Button(_("Personal data"), "admin_privacy.download", names)
    erase = Button(_("Erase personal data"), "admin_privacy.show", names)
    return [data], [erase] if can("get_person_erasure") else []


def call_if_allowed(operation: str, **arguments: Any) -> Reply | None:
    """Run an operation that reads, or return None if the session may not."""
    return call(operation, **arguments) if can(operation) else None
