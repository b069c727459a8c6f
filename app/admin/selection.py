"""Actions on several selected records, in parts with a progress page (admin 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from flask import Response, request, url_for
from werkzeug.datastructures import MultiDict

from app.admin.frame import render
from app.admin.texts import gettext as _
from app.conversions.numbers import whole_number
from app.errors import InvalidParams, ShopError

PART = 100
"""The number of records that one request changes."""

MAX_UNDONE = 20_000
"""The number of records that can be undone. Their IDs must fit into a form."""

MAX_FAILURES = 20
"""The number of failures that the result names."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action on several records.

    Args:
        title: what is done: "Moving coupons to the trash".
        run: changes the record with an ID. It raises ShopError for one that it cannot change.
        undo: the action that undoes it, or an empty string.
    """

    title: str
    run: Callable[[int], object]
    undo: str = ""


@dataclass(frozen=True, slots=True)
class Selected:
    """A part of a selection.

    Args:
        ids: the IDs of its records.
        is_last: whether no records follow.
    """

    ids: Sequence[int]
    is_last: bool


def selected_ids() -> list[int]:
    """Return the IDs of the rows that were selected, or of those that are undone."""
    texts = *request.form.getlist("id"), *_changed()
    return [number for each in texts if (number := whole_number(each)) is not None]


def _changed(name: str = "ids") -> list[str]:
    text = request.form.get(name, "")
    return text.split(",") if text else []


def is_everything() -> bool:
    """Return whether everything that matches the table was selected."""
    return bool(request.form.get("everything"))


def act(
    actions: Mapping[str, Action], ids_after: Callable[[int, int], Sequence[int]], table: str
) -> Response:
    """Run the chosen action for the next part of the selection.

    Args:
        actions: the actions by the value of their button.
        ids_after: returns the IDs of the matching records that follow an ID, and their maximum
            number.
        table: the endpoint of the table.

    Raises:
        InvalidParams: the action is unknown.
    """
    name, query = request.form.get("action", ""), request.form.get("query", "")
    if name not in actions:
        raise InvalidParams({"action": f"must be {' or '.join(actions)}."})
    back = url_for(table) + (f"?{query}" if query else "")
    return _process(_next_part(ids_after), actions[name], back)


def shown_query() -> dict[str, str]:
    """Return the parameters of the table in which the records were selected."""
    return {name: each[0] for name, each in parse_qs(request.form.get("query", "")).items()}


def _next_part(after: Callable[[int, int], Sequence[int]]) -> Selected:
    """Return the next part of the selection."""
    position = _number("after")
    if is_everything():
        ids = after(position, PART)
        return Selected(ids, len(ids) < PART)
    ids = sorted(each for each in selected_ids() if each > position)
    return Selected(ids[:PART], len(ids) <= PART)


def _number(name: str) -> int:
    return whole_number(request.form.get(name, "")) or 0


def _process(part: Selected, action: Action, back: str) -> Response:
    """Run an action for each record of a part, and show the progress or the result."""
    failures: list[tuple[str, str]] = [
        (record, message)
        for record, message in zip(
            request.form.getlist("failed_id"), request.form.getlist("failed"), strict=False
        )
    ]
    done, failed, changed = _number("done"), _number("failures"), _changed("changed")
    for record_id in part.ids:
        try:
            action.run(record_id)
            done += 1
            changed.append(str(record_id))
        except ShopError as error:
            failed += 1
            failures.append((str(record_id), error.message))
    kept: MultiDict[str, Any] = MultiDict(
        (name, value)
        for name, value in request.form.items(multi=True)
        if name not in {"after", "done", "failures", "failed", "failed_id", "changed"}
    )
    return render(
        "progress.html", title=_(action.title), back=back, done_count=done, failed=failed,
        failures=failures[:MAX_FAILURES], is_last=part.is_last, kept=list(kept.items(multi=True)),
        after=max(part.ids, default=0),
        changed=",".join(changed[: MAX_UNDONE + 1]) if action.undo else "",
        undo_action=action.undo if part.is_last and 0 < done <= MAX_UNDONE else "",
    )  # fmt: skip
