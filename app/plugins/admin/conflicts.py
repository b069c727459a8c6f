"""What others change while a page is open, and buttons that are pressed twice (admin 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from flask import Response, request, url_for

from app.api.authentication import current_principal
from app.errors import ShopError
from app.plugins.admin.calls import Record, call, loaded_query, record_of
from app.plugins.admin.forms import ATTEMPTS, Difference, Form
from app.plugins.admin.frame import render
from app.plugins.admin.texts import gettext as _

if TYPE_CHECKING:
    from app.plugins.admin.nouns import Noun
    from app.plugins.admin.pages import Button


def is_done(noun: Noun, operation: str, record_id: int, error: ShopError) -> bool:
    """Return whether an operation has failed because an earlier press has done its work."""
    if error.status != 404:
        return False
    if operation == f"delete_{noun.operation}":
        return _is_trashed(noun, record_id)
    if operation != f"restore_{noun.operation}" and "_shown" not in request.form:
        return False
    try:
        noun.read(record_id)
    except ShopError:
        return False
    return True


def _is_trashed(noun: Noun, record_id: int) -> bool:
    if not noun.has_trash:
        return False
    actor = current_principal()
    every = noun.query_type.of(loaded_query(noun.list_schema, {}))
    found = noun.queries.ids_after(actor, every, record_id - 1, 1, trashed=True)
    return list(found) == [record_id]


def remove(
    noun: Noun, record_id: int, button: Callable[[Record], Button], query: Mapping[str, str]
) -> Response | None:
    """Remove a record as its page showed it.

    An earlier press of the same button, or another user, can have done it in between.

    Returns:
        None, or the page that shows what another user has changed in between.
    """
    form, path = Form.submitted(noun.compared(), noun.name), noun.path_of(record_id)
    form.texts = dict(form.shown)
    is_from_page = "_shown" in request.form
    for attempt in range(ATTEMPTS):
        try:
            record, form.etag = record_of(f"get_{noun.operation}", **path)
            if is_from_page and (differences := form.differences(record)):
                return changed_page(noun, form, differences, button(record))
            headers = {"If-Match": form.etag} if form.etag else {}
            call(f"delete_{noun.operation}", query=query, headers=headers, **path)
            break
        except ShopError as error:
            if error.status == 404 and is_from_page and _is_removed(noun, record_id, query):
                break
            is_changed = error.code == "shop_api_precondition_failed"
            if not is_changed or attempt == ATTEMPTS - 1:
                raise
    return None


def _is_removed(noun: Noun, record_id: int, query: Mapping[str, str]) -> bool:
    """Return whether a record that has no page any more is where a button moves it.

    ``query`` is that of the button. A record in the trash is deleted if it shall be.
    """
    if not _is_trashed(noun, record_id):
        return bool(query) or not noun.has_trash
    if query:
        call(f"delete_{noun.operation}", query=query, **noun.path_of(record_id))
    return True


def changed_page(
    noun: Noun, form: Form, differences: Sequence[Difference], button: Button | None = None
) -> Response:
    """Return the page that shows what another user has changed in between.

    Args:
        form: the form that was sent.
        differences: its fields that have changed.
        button: the button that was pressed, unless the form was to be saved.
    """
    return render(
        "conflict.html",
        title=_("Someone else changed this %(noun)s", noun=noun.operation),
        form=form,
        differences=differences,
        button=button,
        back=url_for(noun.endpoint("show"), **request.view_args or {}),
        status=409,
        merged=form.shown | {each.spec.name: each.theirs for each in differences},
    )
