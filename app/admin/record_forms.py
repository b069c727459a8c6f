"""The two forms of a record: the one that creates it, and the one that changes it (admin 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flask import Response, request, url_for
from werkzeug.wrappers import Response as BaseResponse

from app.admin import saving
from app.admin.calls import api_request, call, form_headers, record_of
from app.admin.forms import Form
from app.admin.frame import AdminBlueprint, render, see_other
from app.admin.texts import gettext as _
from app.errors import ShopError
from app.schemas.base import Base


@dataclass(frozen=True, slots=True)
class RecordForms:
    """The forms of a kind of record.

    Args:
        record: the record in the names of operations and variables: ``coupon``.
        pages: the blueprint with its pages ``show`` and ``show_list``.
        create_schema: the schema of the request that creates it.
        update_schema: the schema of the request that updates it, if there is one.
        title: the title of the form of a new record, and its button.
        back: the title of the list.
        named_by: the field that names the record in titles.
        key: the wrapper key of requests; the record by default.
        reply_key: the wrapper key of responses; the record by default.
        template: the template of the form.
    """

    record: str
    pages: str
    create_schema: type[Base]
    update_schema: type[Base] | None
    title: str
    back: str
    named_by: str
    key: str = ""
    reply_key: str = ""
    template: str = "record_form.html"

    def new(self, given: Mapping[str, Any]) -> Form:
        """Return the form of a new record that shows these values. All of them are sent."""
        form = Form.of_record(self.create_schema, self.key or self.record, given)
        form.shown = dict.fromkeys(form.shown, "")
        return form

    def create(
        self,
        given: Mapping[str, Any],
        then: Callable[[Any], Response | BaseResponse] | None = None,
        **more: Any,
    ) -> Response | BaseResponse:
        """Show the form of a new record, or create the record and open its page.

        Args:
            given: the values that the form shows at first.
            then: returns the response instead, for the record that was created.
            more: further values of the template. Functions get the form.

        Raises:
            ShopError: an error of the API that is not about the form.
        """
        if request.method == "GET":
            return self._page(self.new(given), more=more)
        form = Form.submitted(self.create_schema, self.key or self.record)
        body = {form.key: form.read(everything=True)}
        sent = api_request(f"create_{self.record}", body=body)
        if form.errors or "_show" in request.form:
            return self._page(form, sent=sent, more=more)
        try:
            reply = call(f"create_{self.record}", body=body, headers=form_headers())
        except ShopError as error:
            form.note(error)
            return self._page(form, sent=sent, more=more)
        created = reply.body[self.reply_key or self.record]
        if then is not None:
            return then(created)
        return see_other(f"{self.pages}.show", done="created", **self._path(created["id"]))

    def edit(self, record_id: int) -> Response | BaseResponse:
        """Show the form of a record, or save what was changed and open its page.

        Raises:
            ShopError: an error of the API that is not about the form.
        """
        if self.update_schema is None:
            raise TypeError(f"{self.record} cannot be changed.")
        path = self._path(record_id)
        read, update = f"get_{self.record}", f"update_{self.record}"
        if request.method == "GET":
            record, etag = record_of(read, self.record, **path)
            return self._page(Form.of_record(self.update_schema, self.record, record, etag), path)
        form = Form.submitted(self.update_schema, self.record)
        if "_show" in request.form:
            sent = api_request(update, body={self.record: form.read()}, **path)
            return self._page(form, path, sent=sent)
        conflict = saving.save(form, read, update, **path)
        if conflict:
            return render(
                "conflict.html", title=_("Someone else changed this %(noun)s", noun=self.record),
                form=form, differences=conflict, merged=saving.merged(form, conflict),
                back=url_for(f"{self.pages}.show", **path), status=409,
            )  # fmt: skip
        if form.errors:
            return self._page(form, path)
        done = "saved" if form.texts != form.shown else "unchanged"
        return see_other(f"{self.pages}.show", done=done, **path)

    def add_edit(self, blp: AdminBlueprint) -> None:
        """Add the endpoint ``edit`` to the blueprint of the pages."""
        noun = self.record

        @blp.page(
            f"/{noun}s/<int:{noun}_id>/edit", f"get_{noun}", f"update_{noun}",
            methods=("GET", "POST"),
        )  # fmt: skip
        def edit(**path: int) -> Response | BaseResponse:
            """Show the form of a record, or save what was changed."""
            return self.edit(path[f"{noun}_id"])

    def _path(self, record_id: int) -> dict[str, Any]:
        return {f"{self.record}_id": record_id}

    def _page(
        self,
        form: Form,
        path: Mapping[str, Any] | None = None,
        *,
        sent: Any = None,
        more: Mapping[str, Any] | None = None,
    ) -> Response:
        """Return the page of a form; without a path, that of a new record."""
        name = form.shown.get(self.named_by, "")
        extra = {key: each(form) if callable(each) else each for key, each in (more or {}).items()}
        return render(
            self.template,
            title=_("Edit %(name)s", name=name or self.record) if path else _(self.title),
            form=form,
            button=_("Save") if path else _(self.title),
            back=url_for(f"{self.pages}.{'show' if path else 'show_list'}", **(path or {})),
            back_label=name or self.record.capitalize() if path else _(self.back),
            sent=sent if request.form.get("_show") == "request" and not form.errors else None,
            has_errors=bool(form.errors),
            status=400 if form.errors else 200,
            **extra,
        )
