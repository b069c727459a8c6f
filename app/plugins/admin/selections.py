"""Actions on several selected records, in parts with a page of the progress (admin 5)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flask import Response, request

from app.conversions.numbers import whole_number
from app.errors import InvalidParams, ShopError
from app.plugins.admin.calls import ApiRequest, api_request
from app.plugins.admin.forms import FieldSpec
from app.plugins.admin.frame import render
from app.plugins.admin.texts import gettext as _

PART = 100
"""The number of selected records that one request changes."""

MAX_UNDONE = 20_000
"""The number of records that can be undone. Their IDs must fit into a form."""

MAX_FAILURES = 20
"""The number of failures that the result names."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action on several records."""

    noun: str  # the record in variables and bodies
    label: str  # the text of its button
    title: str  # what is done: "Moving coupons to the trash". Empty if it changes nothing
    operation: str  # for each record
    undo: str = ""  # the action that undoes it
    spec: FieldSpec | None = None  # the field of the record that it changes, asked for first
    in_trash: bool | None = False  # whether it is for the trash, or None for both
    values: Mapping[str, Any] = field(default_factory=dict)  # what it sets without asking
    adds: bool = False  # whether it adds to the list that the field is

    def body(self) -> dict[str, Any] | None:
        """Return the body with the submitted value of its field, or the first that it offers.

        Raises:
            InvalidParams: the field does not have this value.
        """
        spec = self.spec
        if spec is None:
            return {self.noun: {**self.values}} if self.values else None
        text = request.form.get(spec.name, next(iter(spec.options), ""))
        try:
            if spec.options and text not in spec.options:
                raise ValueError(_("Choose one of the values."))
            if self.adds and not text.strip() and request.method == "POST":
                raise ValueError(_("Fill in this field."))
            return {self.noun: {spec.name: spec.value(text)}}
        except ValueError as error:
            raise InvalidParams({spec.name: str(error)}) from None

    def is_done(self, record: Mapping[str, Any], body: Any) -> bool:
        """Return whether a record has the value of the action already."""
        if (spec := self.spec) is None:
            return bool(self.values) and self.values.items() <= record.items()
        return spec.text(record[spec.name]) == spec.text(body[self.noun][spec.name])

    def complete(self, body: Any, record: Mapping[str, Any]) -> Any:
        """Return the body for a record, with the entries that its list has already."""
        if not (self.adds and self.spec):
            return body
        name = self.spec.name
        kept, added = record[name], body[self.noun][name]
        return {self.noun: {name: [*kept, *(each for each in added if each not in kept)]}}

    def request(self, record_id: int) -> ApiRequest:
        """Return the request for a record."""
        return api_request(self.operation, body=self.body(), **self.path(record_id))

    def path(self, record_id: int) -> dict[str, Any]:
        """Return the variables of the path of a record."""
        return {f"{self.noun}_id": record_id}


def selected_ids() -> list[int]:
    """Return the IDs of the rows that were selected, or of those that are undone."""
    texts = *request.form.getlist("id"), *request.form.get("ids", "").split(",")
    return sorted(number for each in texts if (number := whole_number(each)) is not None)


def shown_states() -> dict[int, str]:
    """Return the state in which the submitted table showed each record, by its ID."""
    parts = (each.partition(".") for each in request.form.getlist("row"))
    found = ((whole_number(number), state) for number, _dot, state in parts)
    return {number: state for number, state in found if number is not None}


_STATE = {"after", "done", "failures", "failed", "failed_id", "changed"}
"""Fields of the form that describe the progress."""


def process(
    action: Action,
    back: tuple[str, str],
    matching_ids: Callable[[int, int], Sequence[int]],
    run: Callable[[int, Any], None],
) -> Response:
    """Run an action for the next part of the records, and show the progress or the result.

    Args:
        back: address and text of the link to the table.
        matching_ids: returns IDs of records that match the table, after an ID.
        run: runs the action for a record, with the body of its request.
    """
    given = request.form
    last, done, failed = (
        whole_number(given.get(name, "")) or 0 for name in ("after", "done", "failures")
    )
    if given.get("everything"):
        is_last = len(part := matching_ids(last, PART)) < PART
    else:
        ids = [each for each in selected_ids() if each > last]
        part, is_last = ids[:PART], len(ids) <= PART
    failures = list(zip(given.getlist("failed_id"), given.getlist("failed"), strict=False))
    changed = [each for each in given.get("changed", "").split(",") if each]
    body = action.body()
    for record_id in part:
        try:
            run(record_id, body)
        except ShopError as error:
            failed += 1
            failures.append((str(record_id), error.text(translate=_)))
            continue
        done += 1
        changed.append(str(record_id))
    return render(
        "progress.html",
        title=action.title,
        back=back,
        done_count=done,
        failed=failed,
        failures=failures[:MAX_FAILURES],
        is_last=is_last,
        after=max(part, default=0),
        kept=[each for each in given.items(multi=True) if each[0] not in _STATE],
        changed=",".join(changed[: MAX_UNDONE + 1]) if action.undo else "",
        undo_action=action.undo if is_last and 0 < done <= MAX_UNDONE else "",
        requests=[("", action.request(part[0]))] if is_last and part else [],
    )
