"""What the page of a record consists of: buttons, tiles and sections (``record.html``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from app.admin import rights
from app.admin.calls import ApiRequest, api_request
from app.admin.forms import FieldSpec


@dataclass(frozen=True, slots=True)
class Button:
    """An action: a link, or a form that sends a POST request.

    Args:
        label: its text, a verb.
        href: the address of its page, or of the action.
        needs: the operations that the session must be able to run.
        kind: ``link``, ``post``, or ``confirm`` for a POST request after a question.
        tone: ``primary`` for the main action of a page.
        name: the record, which the accessible name ends with.
        fields: names and values of hidden inputs.
        spec: an input before the button, with the first value of ``fields`` as its value.
        question: what is asked before an action that cannot be undone.
        note: what the question adds.
        query: the parameters of its operation, the first of ``needs``.
    """

    label: str
    href: str
    needs: tuple[str, ...] = ()
    kind: str = "link"
    tone: str = ""
    name: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    spec: FieldSpec | None = None
    question: str = ""
    note: str = ""
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The ID of its question in the page."""
        return self.href.strip("/").replace("/", "-")


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure.

    Args:
        label: what it is.
        value: its value.
        notes: what stands below it, such as the change against the previous period.
        line: its sparkline.
    """

    label: str
    value: Any
    notes: Sequence[Any] = ()
    line: Markup | str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page with a title.

    Args:
        title: its title.
        kind: the macro of ``ui.html`` that shows the content: ``rows`` of a table, ``items``,
            ``facts``, ``history``, ``plots``, ``copyable`` text or ``plain`` content.
        content: the content, or None if the key cannot read it.
        empty: what is said instead of empty content.
        what: what the key cannot read, if the content is None.
        link: address and text of a link beside the title.
        form: a small form below the content: address, fields and the text of its button.
        after: what follows the content in its box.
        note: what follows the box.
        requests: the requests of its buttons, by their labels.
        id: its ID in the page.
    """

    title: str
    kind: str
    content: Any
    empty: str = ""
    what: str = ""
    link: tuple[str, str] | None = None
    form: tuple[str, Sequence[FieldSpec], str] | None = None
    after: Markup | str = ""
    note: str = ""
    requests: Sequence[tuple[str, ApiRequest]] = ()
    id: str = ""


def allowed(buttons: Sequence[Button]) -> list[Button]:
    """Return the buttons that the session can use."""
    return [each for each in buttons if rights.can(*each.needs)]


def requests_of(label: str, operation: str, **path: Any) -> list[tuple[str, ApiRequest]]:
    """Return the request of a button with its label, unless the session cannot use it."""
    return [(label, api_request(operation, **path))] if rights.can(operation) else []


def filled(pairs: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return facts without those that have no value."""
    return [(label, value) for label, value in pairs if value]
