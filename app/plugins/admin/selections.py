"""Actions on several selected records, in parts with a page of the progress (admin 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import orjson
from flask import Response, request

from app.api.authentication import current_principal
from app.conversions.numbers import whole_number
from app.errors import InvalidParams, ShopError
from app.plugins.admin import texts
from app.plugins.admin.calls import (
    ApiRequest,
    Record,
    absent_from_lists,
    api_request,
    call,
    can,
    loaded_query,
    record_of,
    require,
)
from app.plugins.admin.conflicts import is_done
from app.plugins.admin.form_fields import FieldSpec
from app.plugins.admin.forms import ATTEMPTS, Form
from app.plugins.admin.frame import render
from app.plugins.admin.texts import gettext as _

if TYPE_CHECKING:
    from app.plugins.admin.nouns import Noun

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
    values: Mapping[str, object] = field(default_factory=dict)  # what it sets without asking
    adds: bool = False  # whether it adds to the list that the field is

    def body(self) -> Record | None:
        """Return the body with the submitted value of its field, or the first that it offers.

        Raises:
            InvalidParams: the field does not have this value.
        """
        spec = self.spec
        if spec is None:
            return {self.noun: {**self.values}} if self.values else None
        options = spec.choices()
        text = request.form.get(spec.name, next(iter(options), ""))
        try:
            if options and text not in options:
                raise ValueError(_("Choose one of the values."))
            if self.adds and not text.strip() and request.method == "POST":
                raise ValueError(_("Fill in this field."))
            return {self.noun: {spec.name: spec.value(text)}}
        except ValueError as error:
            raise InvalidParams({spec.name: str(error)}) from None

    def is_done(self, record: Record, body: Any) -> bool:
        """Return whether a record has the value of the action already."""
        if (spec := self.spec) is None:
            return bool(self.values) and self.values.items() <= record.items()
        return spec.text(record[spec.name]) == spec.text(body[self.noun][spec.name])

    def complete(self, body: Any, record: Record) -> Any:
        """Return the body for a record, with the entries that its list has already."""
        if not (self.adds and self.spec):
            return body
        name = self.spec.name
        kept, added = record[name], body[self.noun][name]
        return {self.noun: {name: [*kept, *(each for each in added if each not in kept)]}}

    def request(self, record_id: int) -> ApiRequest:
        """Return the request for a record."""
        return api_request(self.operation, body=self.body(), **self.path(record_id))

    def path(self, record_id: int) -> Record:
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


def selected_table() -> dict[str, str]:
    """Return the parameters of the table whose rows were selected."""
    given = parse_qs(request.form.get("query", ""))
    return {name: each[0] for name, each in given.items()}


def matching_ids(noun: Noun, after: int, limit: int) -> Sequence[int]:
    """Return IDs of records that match the table of the submitted selection, after an ID."""
    given = selected_table()
    wanted = noun.query(given) | {"q": given.get("q", ""), "fields": ""}
    return noun.queries.ids_after(  # type: ignore[no-any-return]  # of any of its modules
        current_principal(),
        noun.query_type.of(loaded_query(noun.list_schema, wanted)),
        after,
        limit,
        trashed=given.get("state") == "trash",
    )


_STATE = {"after", "done", "failures", "failed", "failed_id", "changed"}
"""Fields of the form that describe the progress."""


def act(noun: Noun) -> Response:
    """Run the chosen action for the next part of the records, and show the progress or the result.

    Raises:
        InvalidParams: there is no such action.
        ShopError: the session may not run it.
    """
    given, actions = request.form, noun.actions()
    name, query = given.get("action", ""), given.get("query", "")
    if name not in actions:
        raise InvalidParams({"action": f"must be {' or '.join(actions)}."})
    action, states = actions[name], shown_states()
    require(action.operation)
    last, done, failed = (
        whole_number(given.get(each, "")) or 0 for each in ("after", "done", "failures")
    )
    part, is_last = _next_part(noun, last)
    failures = list(zip(given.getlist("failed_id"), given.getlist("failed"), strict=False))
    changed = [each for each in given.get("changed", "").split(",") if each]
    body = action.body()
    for record_id in part:
        try:
            _run(noun, action, states.get(record_id), record_id, body)
        except ShopError as error:
            failed += 1
            if len(failures) < MAX_FAILURES:
                failures.append((str(record_id), texts.of_api(error.sentence())))
            continue
        done += 1
        changed.append(str(record_id))
    undo = action.undo if action.undo and can(actions[action.undo].operation) else ""
    return render(
        "progress.html",
        title=action.title,
        back=(noun.url("show_list") + (f"?{query}" if query else ""), _(noun.title)),
        done_count=done,
        failed=failed,
        failures=failures[:MAX_FAILURES],
        is_last=is_last,
        after=max(part, default=0),
        kept=[each for each in given.items(multi=True) if each[0] not in _STATE],
        changed=",".join(changed[: MAX_UNDONE + 1]) if undo else "",
        undo_action=undo if is_last and 0 < done <= MAX_UNDONE else "",
        requests=[("", action.request(part[0]))] if is_last and part else [],
    )


def _next_part(noun: Noun, last: int) -> tuple[Sequence[int], bool]:
    """Return the IDs of the chosen records after the last one, and whether none follow them."""
    if request.form.get("everything"):
        ids = matching_ids(noun, last, PART)
        return ids, len(ids) < PART
    ids = [each for each in selected_ids() if each > last]
    return ids[:PART], len(ids) <= PART


def _run(
    noun: Noun, action: Action, shown: str | None, record_id: int, body: Record | None
) -> None:
    """Run an action for a selected record.

    Args:
        shown: the state that the table showed.
        body: the body of the request.

    Raises:
        ShopError: someone else has changed the record in between, or the operation fails.
    """
    for attempt in range(ATTEMPTS):
        try:
            path, headers = noun.path_of(record_id), {}
            sent = body
            if shown or action.adds:
                record, etag = record_of(f"get_{noun.operation}", **path)
                is_other = shown and not action.adds and state_of(noun, record) != shown
                if is_other and not action.is_done(record, body):
                    text = _("Someone else has changed it. It was left as it is.")
                    raise ShopError("shop_api_precondition_failed", message=text)
                headers = {"If-Match": etag} if etag else {}
                sent = action.complete(body, record)
            call(action.operation, body=sent, headers=headers, **path)
        except ShopError as error:
            is_changed = error.code == "shop_api_precondition_failed"
            if is_changed and attempt < ATTEMPTS - 1:
                continue
            if not is_done(noun, action.operation, record_id, error):
                raise
        return


def state_of(noun: Noun, record: Record) -> str:
    """Return a hash of the fields that are compared, of those that the table has."""
    listed = noun.query({}).get("fields", "").split(",")
    absent = absent_from_lists(f"get_{noun.operation}")
    specs = [
        each
        for each in noun.compared()
        if each.name in listed or (listed == [""] and each.name not in absent)
    ]
    texts = [*Form.of_record(specs, noun.name, record).shown.values()]
    return blake2b(orjson.dumps(texts), digest_size=8).hexdigest()


def allowed_actions(noun: Noun, *, trashed: bool) -> dict[str, Action]:
    """Return the actions on records, or on those in the trash, that the session can run."""
    return {
        name: action
        for name, action in noun.actions().items()
        if action.in_trash in {None, trashed} and can(action.operation)
    }
