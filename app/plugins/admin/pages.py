"""The page of a record (``record.html``), and its buttons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flask import Response, current_app, url_for

from app.plugins.admin.calls import ApiRequest, Record, Reply, api_request, call, can
from app.plugins.admin.form_fields import FieldSpec
from app.plugins.admin.frame import may_open, render
from app.plugins.admin.texts import gettext as _

Requests = Sequence[tuple[str, ApiRequest]]
"""Requests by the labels of their buttons. That of the page itself has none."""


@dataclass(frozen=True, slots=True)
class Button:
    """A link to a page, or a form that runs an action, after a question if there is one."""

    label: str  # a verb
    endpoint: str  # of the page or the action
    path: Record = field(default_factory=dict)  # the variables of its address
    tone: str = ""  # ``primary`` for the main action of a page
    name: str = ""  # the record, with which the accessible name ends
    fields: Mapping[str, object] = field(default_factory=dict)  # hidden inputs
    shown: Mapping[str, str] = field(default_factory=dict)  # what the page shows of what it changes
    spec: FieldSpec | None = None  # an input instead of the first hidden one
    question: str = ""
    note: str = ""  # what the question adds
    query: Mapping[str, str] = field(default_factory=dict)  # the parameters of its operation
    in_api: bool = True  # whether its action is an operation of the API

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
    def inputs(self) -> dict[str, object]:
        """The texts of its hidden inputs."""
        texts: dict[object, str] = {True: "true", False: ""}
        return {name: texts.get(value, value) for name, value in self.fields.items()}

    def request(self, key: str = "") -> ApiRequest:
        """Return the request of its action, whose body has a wrapper key."""
        body = {key: dict(self.fields)} if self.fields else None
        return api_request(self.view.needs[0], query=self.query, body=body, **self.path)


def record_page(
    template: str,
    title: str,
    back: tuple[str, str],
    sent: ApiRequest | None = None,
    key: str = "",
    *,
    buttons: Sequence[Button] = (),
    dangers: Sequence[Button] = (),
    **values: Any,
) -> Response:
    """Return the page of a record. It shows its request, and those of its buttons.

    Args:
        template: a template that extends ``record.html``.
        back: address and text of the link above the title.
        sent: its request.
        key: the wrapper key of the requests of its buttons.
        buttons: what the page can do, except for what cannot be undone.
        dangers: what cannot be undone.
        values: further values of the template: ``status_badge``, what an action reports as its
            ``result``, ``secrets`` that are shown only once with a ``note``, and whether the
            request ``opens``.
    """
    buttons, dangers = allowed(buttons), allowed(dangers)
    actions = [each for each in (*buttons, *dangers) if each.kind != "link" and each.in_api]
    requests = [("", sent), *((each.label, each.request(key)) for each in actions)] if sent else ()
    return render(
        template,
        title=title,
        back=back,
        requests=requests,
        buttons=buttons,
        dangers=dangers,
        **values,
    )


def allowed(buttons: Sequence[Button]) -> list[Button]:
    """Return the buttons that the session can use."""
    return [each for each in buttons if may_open(each.endpoint)]


def person_buttons(**names: int) -> tuple[list[Button], list[Button]]:
    """Return the buttons of the data of a person, and of its erasure, on the page of a record."""
    data = Button(_("Personal data"), "admin_privacy.download", names)
    erase = Button(_("Erase personal data"), "admin_privacy.show", names)
    return [data], [erase] if can("get_person_erasure") else []


def call_if_allowed(operation: str, query: Record | None = None, **path: Any) -> Reply | None:
    """Run an operation that reads, or return None if the session may not."""
    return call(operation, query=query, **path) if can(operation) else None
