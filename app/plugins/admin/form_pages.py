"""Forms of a kind of records: those of a new and of a stored record, and small ones (admin 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flask import Response, request
from werkzeug.wrappers import Response as BaseResponse

from app.errors import InvalidParams, ShopError
from app.plugins.admin.calls import api_request, call, form_headers
from app.plugins.admin.conflicts import changed_page, is_done
from app.plugins.admin.form_fields import FieldSpec
from app.plugins.admin.forms import Form
from app.plugins.admin.frame import render
from app.plugins.admin.texts import gettext as _

if TYPE_CHECKING:
    from app.plugins.admin.nouns import Noun

AnyResponse = Response | BaseResponse


def create(noun: Noun) -> AnyResponse:
    """Show the form of a new record, or create the record."""
    specs, key = noun.form_specs(None, is_new=True), noun.create_key or noun.name
    if request.method == "GET":
        return _form(noun, Form.of_new(specs, key, noun.new_values()))
    form = _submitted(noun, specs, key)
    values = noun.body(form.read(everything=True))
    if reply := form.send(f"create_{noun.operation}", values):
        return noun.created(reply.body[noun.name])
    return _form(noun, form)


def edit(noun: Noun, record_id: int) -> AnyResponse:
    """Show the form of a record, or save it."""
    if request.method == "GET":
        record, etag = noun.read(record_id)
        specs = noun.form_specs(record, is_new=False)
        return _form(noun, Form.of_record(specs, noun.name, record, etag), record_id)
    form = _submitted(noun, noun.form_specs(None, is_new=False), noun.name)
    return save(noun, form, f"update_{noun.operation}", record_id)


def _submitted(noun: Noun, specs: Sequence[FieldSpec], key: str) -> Form:
    form = Form.submitted(specs, key)
    form.warnings = [] if "_show" in request.form else noun.warnings(form)
    return form


def save(noun: Noun, form: Form, operation: str, record_id: int, done: str = "") -> AnyResponse:
    """Save a form, or show what another editor has changed of its fields in between.

    Args:
        form: the form with the entity tag that it showed.
        operation: the operation that updates the record.
        record_id: the ID of the record.
        done: what a small form reports; a form with a page of its own shows its errors there.
    """
    path, check = noun.path_of(record_id), noun.check(form)
    if conflict := form.save(f"get_{noun.operation}", operation, check, **path):
        return changed_page(noun, form, conflict)
    if form.errors and done:
        raise InvalidParams(form.errors)
    return noun.see(record_id, form.done) if form.done else _form(noun, form, record_id)


def _form(noun: Noun, form: Form, record_id: int | None = None) -> Response:
    """Return the page of a form; without an ID, that of a new record."""
    name = " ".join(filter(None, (form.shown.get(each, "") for each in noun.named_by)))
    title, button = _(noun.create_label), ""
    back = noun.url("show_list"), _(noun.title)
    if record_id is not None:
        name = name or f"#{record_id}"
        title, button = _("Edit %(name)s", name=name), _("Save")
        back = noun.url("show", record_id), name
    return form_page(form, title, back, button=button, **noun.form_values(form))


def add_action(
    noun: Noun,
    endpoint: str,
    operation: str,
    done: str,
    *,
    path: str = "",
    key: str = "",
    specs: Callable[[], Sequence[FieldSpec]] = list,
) -> None:
    """Add an action that runs one operation for a record, and leads back to its page.

    Args:
        endpoint: its endpoint, and by default its path.
        operation: the operation.
        done: what it reports (``frame.DONE``).
        path: its path below that of the record.
        key: the wrapper key of its body, if it has one.
        specs: returns the fields of its form, whose values are its body.
    """

    def run(**variables: Any) -> AnyResponse:
        record_id, headers, body = variables[f"{noun.name}_id"], {}, None
        if fields := specs():
            form, headers = Form.submitted(fields, key), form_headers()
            if form.etag and "_show" not in request.form:
                return save(noun, form, operation, record_id, done)
            values = form.read(everything=True)
            body = {key: values} if key else values
            form.sent = api_request(operation, body=body, **variables)
            if "_show" in request.form:
                return noun.page(record_id, sent=form.asked_for)
            if form.errors:
                raise InvalidParams(form.errors)
        try:
            call(operation, body=body, headers=headers, **variables)
        except ShopError as error:
            if not is_done(noun, operation, record_id, error):
                raise
        return noun.see(record_id, done)

    run.__name__ = endpoint
    noun.blp.action(f"{noun.one}/{path or endpoint}", operation)(run)


def form_page(
    form: Form, title: str, back: tuple[str, str], *, button: str = "", **more: object
) -> Response:
    """Return the page of a form.

    Args:
        back: address and text of the link above the title.
        button: the text of the button, by default the title.
        more: further values of the template, such as ``intro``, ``facts`` above the fields, and
            ``request_note``.
    """
    return render(
        "record_form.html",
        title=title,
        form=form,
        back=back,
        button=button or title,
        has_errors=bool(form.errors),
        status=400 if form.errors else 409 if form.unconfirmed else 200,
        **more,
    )
