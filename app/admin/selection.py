"""Actions on several selected records, in parts with a progress page (admin 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Response, request
from werkzeug.datastructures import MultiDict

from app.admin.frame import render
from app.admin.texts import gettext as _
from app.errors import ShopError

PART = 100
"""The number of records that one request changes."""

MAX_FAILURES = 20
"""The number of failures that the result names."""


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
    """Return the IDs of the rows that were selected."""
    return [int(each) for each in request.form.getlist("id") if each.isdigit()]


def is_everything() -> bool:
    """Return whether everything that matches the table was selected."""
    return bool(request.form.get("everything"))


def next_part(after: Callable[[int, int], Sequence[int]]) -> Selected:
    """Return the next part of the selection.

    Args:
        after: returns the IDs of the matching records that follow an ID, and their maximum number.
    """
    position = _number("after")
    if is_everything():
        ids = after(position, PART)
        return Selected(ids, len(ids) < PART)
    ids = sorted(each for each in selected_ids() if each > position)
    return Selected(ids[:PART], len(ids) <= PART)


def _number(name: str) -> int:
    text = request.form.get(name, "")
    return int(text) if text.isdigit() else 0


def process(part: Selected, act: Callable[[int], object], *, title: str, back: str) -> Response:
    """Run an action for each record of a part, and show the progress or the result.

    Args:
        part: the part.
        act: the action. It raises ShopError for a record that it cannot change.
        title: what is done: "Moving coupons to the trash".
        back: the address of the table.
    """
    failures: list[tuple[str, str]] = [
        (record, message)
        for record, message in zip(
            request.form.getlist("failed_id"), request.form.getlist("failed"), strict=False
        )
    ]
    done, failed = _number("done"), _number("failures")
    for record_id in part.ids:
        try:
            act(record_id)
            done += 1
        except ShopError as error:
            failed += 1
            failures.append((str(record_id), error.message))
    kept: MultiDict[str, Any] = MultiDict(
        (name, value)
        for name, value in request.form.items(multi=True)
        if name not in {"after", "done", "failures", "failed", "failed_id"}
    )
    return render(
        "progress.html", title=title, back=back, done_count=done, failed=failed,
        failures=failures[:MAX_FAILURES], is_last=part.is_last, kept=list(kept.items(multi=True)),
        after=max(part.ids, default=0), heading=title if not part.is_last else _("Finished"),
    )  # fmt: skip
