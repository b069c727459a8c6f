"""Kinds of records: one description each, and the pages and actions that all have in common.

A subclass of ``Noun`` describes a kind with attributes and small functions, as a model view of
Flask-Admin does: its columns, filters, forms, the parts of its page and its actions on several
records. The addresses follow from its name.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from flask import Response, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as BaseResponse

from app.admin import history, html, rights
from app.admin.calls import ApiRequest, Reply, api_request, call, form_headers, record_of
from app.admin.forms import FieldSpec, Form, specs_of
from app.admin.frame import AdminBlueprint, NavigationItem, panels, render, see_other
from app.admin.pages import Button, Section, Tile, allowed
from app.admin.tables import Column, Filter, Tab, Table, list_query
from app.admin.texts import gettext as _
from app.conversions.numbers import whole_number
from app.errors import InvalidParams, ShopError
from app.schemas.base import Base

PART = 100
"""The number of selected records that one request changes."""

MAX_UNDONE = 20_000
"""The number of records that can be undone. Their IDs must fit into a form."""

MAX_FAILURES = 20
"""The number of failures that the result names."""

Record = dict[str, Any]
FORM = ("GET", "POST")


@dataclass(frozen=True, slots=True)
class Action:
    """An action on several records.

    Args:
        label: the text of its button.
        title: what is done: "Moving coupons to the trash". Empty if it changes nothing.
        operation: the operation that it runs for each record.
        undo: the action that undoes it, or an empty string.
        spec: the field of the record that it changes, which is asked for first.
        in_trash: whether it is for the trash, or None for both.
    """

    label: str
    title: str
    operation: str
    undo: str = ""
    spec: FieldSpec | None = None
    in_trash: bool | None = False

    def value(self) -> Any:
        """Return the submitted value of its field; without one, the first that it offers.

        Raises:
            InvalidParams: the field does not have this value.
        """
        assert self.spec is not None  # noqa: S101  # nosec B101  # only such actions have a value
        name, options = self.spec.name, self.spec.options
        text = request.form.get(name, next(iter(options), ""))
        try:
            if options and text not in options:
                raise ValueError(_("Choose one of the values."))
            return self.spec.value(text)
        except ValueError as error:
            raise InvalidParams({name: str(error)}) from None


class Noun:
    """A kind of record. Its pages are endpoints of its blueprint ``admin_<plural>``."""

    name = ""
    """The record in addresses and variables: ``coupon``."""
    plural = ""
    """The records in addresses and in the key of a list. By default, the name with an *s*."""
    operation = ""
    """The record in the names of operations. By default, its name."""
    create_key = ""
    """The wrapper key of the request that creates a record. By default, the name."""
    title = ""
    """The title of the table."""
    navigation = ("", 0)
    """Icon and position in the navigation."""
    menu = ""
    """The text in the navigation. By default, the title."""
    intro = ""
    """A sentence above the table."""
    empty: tuple[str, ...] = ("", "")
    """Title and text of an empty table; if nothing creates records, endpoint and text of a link."""
    create_label = ""
    """The button that creates a record."""
    named_by: tuple[str, ...] = ()
    """The fields that name the record in the titles of forms."""
    create_schema: type[Base] | None = None
    update_schema: type[Base] | None = None
    given: Mapping[str, Any] = {}
    """The values that the form of a new record shows at first."""
    has_trash = False
    sorts = True
    searches = ""
    """The label of the search box."""
    resource = ""
    """The kind of record in events, which its page shows as its history."""
    also_reads: tuple[str, ...] = ()
    """Operations that its page needs in addition to the one that reads the record."""
    delete_note = ""
    """What the question before deleting a record adds."""
    deletes = True

    def __init__(self) -> None:
        self.plural = self.plural or f"{self.name}s"
        self.operation = self.operation or self.name
        self.blp = blp = AdminBlueprint(f"admin_{self.plural}")
        root, one = f"/{self.plural}", f"/{self.plural}/<int:{self.name}_id>"
        noun = self.operation
        blp.page(root, f"list_{self.operations}")(self.show_list)
        blp.page(one, f"get_{noun}", *self.also_reads)(self.show)
        if self.create_schema:
            blp.page(f"{root}/new", f"create_{noun}", methods=FORM)(self.create)
        if self.update_schema:
            blp.page(f"{one}/edit", f"get_{noun}", f"update_{noun}", methods=FORM)(self.edit)
        if self.deletes:
            blp.action(f"{one}/delete", f"delete_{noun}")(self.delete)
        if self.has_trash:
            blp.action(f"{one}/trash", f"delete_{noun}")(self.trash)
            blp.action(f"{one}/restore", f"restore_{noun}")(self.restore)
            blp.action(f"{root}/selected", f"list_{self.operations}")(self.act)
        NOUNS[self.resource] = self

    # What subclasses describe

    def columns(self, *, trashed: bool) -> list[Column]:
        """Return the columns of the table, or of the trash."""
        raise NotImplementedError

    def filters(self) -> list[Filter]:
        """Return the choices above the table."""
        return []

    def tabs(self, reply: Reply) -> list[Tab]:
        """Return the tabs above the table with their numbers."""
        return []

    def query(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Return the parameters of the API for those of the table."""
        return {each.name: given.get(each.name, "") for each in self.filters()}

    def prepared(self, records: list[Record]) -> list[Record]:
        """Return records with what else their table or their page needs."""
        return records

    def name_of(self, record: Record) -> str:
        """Return what names a record in labels and titles."""
        raise NotImplementedError

    def title_of(self, record: Record) -> str:
        """Return the title of the page of a record."""
        return self.name_of(record)

    def badge(self, record: Record) -> Markup | str:
        """Return the state of a record, beside its title."""
        return ""

    def list_notice(self) -> str:
        """Return what the table is limited to by a link of another page."""
        return ""

    def list_buttons(self) -> list[Button]:
        """Return further buttons above the table."""
        return []

    def actions(self) -> dict[str, Action]:
        """Return the actions on several records, by the values of their buttons."""
        return {}

    def notices(self, record: Record) -> list[str]:
        """Return what the page of a record says at its top."""
        return []

    def buttons(self, record: Record) -> list[Button]:
        """Return the buttons at the top of the page of a record."""
        return []

    def tiles(self, record: Record) -> list[Tile]:
        """Return the figures of a record."""
        return []

    def main(self, record: Record) -> list[Section]:
        """Return the sections of a record, before its history."""
        return []

    def side(self, record: Record) -> list[Section]:
        """Return the sections in the side column."""
        return []

    def dangers(self, record: Record) -> list[Button]:
        """Return the actions that cannot be undone, at the end of the page."""
        return []

    def new_values(self) -> Mapping[str, Any]:
        """Return the values that the form of a new record shows at first."""
        return self.given

    def created(self, record: Record) -> Response | BaseResponse:
        """Return the response after a record was created."""
        return self.see(record["id"], "created")

    # What all have in common

    @property
    def operations(self) -> str:
        """The records in the names of operations, such as ``list_coupons``."""
        return f"{self.operation}{'es' if self.operation.endswith('h') else 's'}"

    @property
    def item(self) -> NavigationItem:
        """The entry of the navigation."""
        icon, position = self.navigation
        needs = (f"list_{self.operations}",)
        return NavigationItem(
            self.menu or self.title, f"{self.blp.name}.show_list", icon, needs, position
        )

    def url(self, endpoint: str, record_id: int | None = None, **more: Any) -> str:
        """Return the address of a page or an action."""
        path = {} if record_id is None else self._path(record_id)
        return url_for(f"{self.blp.name}.{endpoint}", **path, **more)

    def _path(self, record_id: int) -> Record:
        return {f"{self.name}_id": record_id}

    def see(self, record_id: int, done: str) -> BaseResponse:
        """Return the redirect to the page of a record after an action."""
        return see_other(f"{self.blp.name}.show", done=done, **self._path(record_id))

    def link(self, record: Record, text: Any = None) -> Markup:
        """Return a link to the page of a record."""
        return html.link(self.url("show", record["id"]), text or self.name_of(record))

    def link_to(self, record_id: int | None, text: str) -> Markup | str:
        """Return a link to the page of a record, if the session may read it."""
        if not record_id or not rights.can(f"get_{self.operation}", *self.also_reads):
            return text
        return html.link(self.url("show", record_id), text)

    def restore_column(self) -> Column:
        """Return the column of the trash that restores a record."""

        def button(row: Record) -> Markup | str:
            if not rights.can(f"restore_{self.operation}"):
                return ""
            return html.action(self.url("restore", row["id"]), _("Restore"), self.name_of(row))

        return Column("", button, on_phone=True)

    def read(self, record_id: int) -> tuple[Record, str]:
        """Return a record and its entity tag."""
        record, etag = record_of(f"get_{self.operation}", self.name, **self._path(record_id))
        return self.prepared([record])[0], etag

    def show_list(self) -> Response:
        """Show the table, or the trash."""
        table, trashed = self.table(), _in_trash(request.args)
        creates = [
            Button(_(self.create_label), self.url("create"), (f"create_{self.operation}",),
                   tone="primary")
        ] if self.create_schema else []  # fmt: skip
        return render(
            "list.html", title=_(self.title), notice=self.list_notice(), intro=_(self.intro),
            empty=self.empty, table=table, trashed=trashed,
            acts=self.has_trash and self.url("act"),
            buttons=allowed([*self.list_buttons(), *creates]),
            bulk=self._allowed_actions(trashed=trashed),
        )  # fmt: skip

    def table(self) -> Table:
        """Return the table of the current address."""
        given = request.args.to_dict()
        trashed = self.has_trash and _in_trash(given)
        operation = f"list_{'trashed_' if trashed else ''}{self.operations}"
        reply = call(operation, query=list_query() | self.query(given))
        table = Table.of_reply(_(self.title), self.columns(trashed=trashed), reply, self.plural)
        table.rows = self.prepared(list(table.rows))
        table.sorts, table.name, table.tabs = self.sorts, self.name_of, self.tabs(reply)
        table.searches, table.filters = _(self.searches) if self.searches else "", self.filters()
        acts = self._allowed_actions(trashed=trashed).values()
        table.selects = bool(acts)
        table.requests += [
            (each.label, self._request(each, self._body(each), row["id"]))
            for row in table.rows[:1] for each in acts if each.title
        ]  # fmt: skip
        return table

    def _body(self, action: Action) -> dict[str, Any] | None:
        """Return the body of the requests of an action.

        Raises:
            InvalidParams: its field does not have the submitted value.
        """
        return {self.name: {action.spec.name: action.value()}} if action.spec else None

    def _request(self, action: Action, body: dict[str, Any] | None, record_id: int) -> ApiRequest:
        """Return the request of an action for a record."""
        return api_request(action.operation, body=body, **self._path(record_id))

    def _allowed_actions(self, *, trashed: bool) -> dict[str, Action]:
        return {
            name: action
            for name, action in self.actions().items()
            if action.in_trash in {None, trashed} and rights.can(action.operation)
        }

    def show(self, **path: Any) -> Response:
        """Show a record."""
        return self.page(*path.values())

    def page(
        self,
        record_id: int,
        *,
        result: str = "",
        secrets: Sequence[tuple[str, str]] = (),
        note: str = "",
        sent: ApiRequest | None = None,
    ) -> Response:
        """Return the page of a record, with the result of an action.

        Args:
            result: what an action reports.
            secrets: what is shown only once: titles and values.
            note: what to do with them.
            sent: the request of a small form, which it shows instead of sending it.
        """
        record, _etag = self.read(record_id)
        main = self.main(record)
        if self.resource in history.RESOURCES:
            may_read = rights.can("list_events")
            labels = self._labels()
            entries = history.history(self.resource, record_id, labels) if may_read else None
            main.append(Section(_("History"), "history", entries, what=_("events")))
        buttons = allowed(self.buttons(record))
        dangers = allowed([*self.dangers(record), *self._delete_button(record)])
        requests = [("", sent or api_request(f"get_{self.operation}", **self._path(record_id)))]
        requests += [
            (each.label, api_request(
                each.needs[0], query=each.query, **self._path(record_id),
                body={self.name: dict(each.fields)} if each.fields else None,
            ))
            for each in (*buttons, *dangers) if each.kind != "link"
        ]  # fmt: skip
        plugins = [Section(label, "plain", value) for label, value in panels(self.name, record)]
        return render(
            "record.html", title=self.title_of(record), status_badge=self.badge(record),
            back=(self.url("show_list"), _(self.title)), notices=self.notices(record),
            buttons=buttons, tiles=self.tiles(record), main=main,
            side=[*self.side(record), *plugins], dangers=dangers, requests=requests,
            opens=bool(sent), result=result, secrets=secrets, note=note,
        )  # fmt: skip

    def send(self, record_id: int, operation: str, body: Any, done: str) -> Response | BaseResponse:
        """Run the operation of a small form of a page, or show its request there.

        Args:
            record_id: the ID of the record.
            operation: the operation.
            body: its body.
            done: what it reports.
        """
        path = self._path(record_id)
        if wanted := request.form.get("_show"):
            sent = api_request(operation, body=body, **path)
            return self.page(record_id, sent=sent if wanted == "request" else None)
        call(operation, body=body, headers=form_headers(), **path)
        return self.see(record_id, done)

    def _labels(self) -> dict[str, str]:
        """Return the labels of the fields of a record, not those of its parts."""
        specs = specs_of(self.update_schema) if self.update_schema else []
        return {spec.name: spec.label for spec in specs if "." not in spec.name}

    def _delete_button(self, record: Record) -> list[Button]:
        if not self.deletes:
            return []
        name = self.name_of(record)
        return [Button(
            _("Delete permanently"), self.url("delete", record["id"]),
            (f"delete_{self.operation}",), "confirm", name=name,
            question=_("Delete %(noun)s %(name)s permanently?", noun=self.name, name=name),
            note=_(self.delete_note), query=self._forced(),
        )]  # fmt: skip

    def create(self) -> Response | BaseResponse:
        """Show the form of a new record, or create the record."""
        schema, operation = self.create_schema, f"create_{self.operation}"
        assert schema is not None  # noqa: S101  # nosec B101  # or the page does not exist
        key = self.create_key or self.name
        if request.method == "GET":
            return self._form(Form.of_new(schema, key, self.new_values()))
        form = Form.submitted(schema, key)
        body = {key: self.body(form.read(everything=True))}
        sent = api_request(operation, body=body)
        if form.errors or "_show" in request.form:
            return self._form(form, sent=sent)
        try:
            reply = call(operation, body=body, headers=form_headers())
        except ShopError as error:
            form.note(error)
            return self._form(form, sent=sent)
        return self.created(reply.body[self.name])

    def body(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return what is sent of the values of a new record."""
        return values

    def edit(self, **path: Any) -> Response | BaseResponse:
        """Show the form of a record, or save what was changed."""
        (record_id,) = path.values()
        schema, noun = self.update_schema, self.operation
        assert schema is not None  # noqa: S101  # nosec B101  # or the page does not exist
        if request.method == "GET":
            record, etag = self.read(record_id)
            return self._form(Form.of_record(schema, self.name, record, etag), record_id)
        form = Form.submitted(schema, self.name)
        if "_show" in request.form:
            sent = api_request(f"update_{noun}", body={self.name: form.read()}, **path)
            return self._form(form, record_id, sent=sent)
        if conflict := form.save(f"get_{noun}", f"update_{noun}", **path):
            return render(
                "conflict.html", title=_("Someone else changed this %(noun)s", noun=noun),
                form=form, differences=conflict, back=self.url("show", record_id), status=409,
                merged=form.shown | {each.spec.name: each.theirs for each in conflict},
            )  # fmt: skip
        if form.errors:
            return self._form(form, record_id)
        return self.see(record_id, "saved" if form.texts != form.shown else "unchanged")

    def _form(self, form: Form, record_id: int | None = None, *, sent: Any = None) -> Response:
        """Return the page of a form; without an ID, that of a new record."""
        name = " ".join(filter(None, (form.shown.get(each, "") for each in self.named_by)))
        if record_id is None:
            title, back = _(self.create_label), (self.url("show_list"), _(self.title))
        else:
            title = _("Edit %(name)s", name=name or self.name)
            back = self.url("show", record_id), name or self.name.capitalize()
        return form_page(
            form, title, back, button="" if record_id is None else _("Save"), sent=sent,
            **self.form_values(form),
        )  # fmt: skip

    def form_values(self, form: Form) -> dict[str, Any]:
        """Return further values of the template of the forms."""
        return {}

    def _forced(self) -> dict[str, str]:
        """Return the parameters that delete a record instead of moving it to the trash."""
        return {"force": "true"} if self.has_trash else {}

    def delete(self, **path: Any) -> BaseResponse:
        """Delete a record permanently."""
        call(f"delete_{self.operation}", query=self._forced(), **path)
        return see_other(f"{self.blp.name}.show_list", done="deleted")

    def trash(self, **path: Any) -> BaseResponse:
        """Move a record to the trash. For a minute, the table offers to restore it."""
        call(f"delete_{self.operation}", **path)
        undo = {"undo": path[f"{self.name}_id"], "at": int(time.time())}
        return see_other(f"{self.blp.name}.show_list", done="trashed", **undo)

    def restore(self, **path: Any) -> BaseResponse:
        """Restore a record from the trash."""
        call(f"restore_{self.operation}", **path)
        return self.see(path[f"{self.name}_id"], "restored")

    def _trash_actions(self) -> dict[str, Action]:
        """Return the actions that move records to the trash, and restore them."""
        trashing = _("Moving %(nouns)s to the trash", nouns=self.plural)
        restoring = _("Restoring %(nouns)s", nouns=self.plural)
        return {
            "trash": Action(
                _("Move to the trash"), trashing, f"delete_{self.operation}", "restore"
            ),
            "restore": Action(_("Restore"), restoring, f"restore_{self.operation}", in_trash=True),
        }

    def ids_after(self, given: Mapping[str, str], after: int, limit: int) -> Sequence[int]:
        """Return the IDs of the records that match a table and follow an ID.

        Args:
            given: the parameters of the table.
            after: the ID.
            limit: the maximum number of IDs.
        """
        raise NotImplementedError

    def matching_ids(self, after: int, limit: int) -> Sequence[int]:
        """Return the IDs of the records that match the table of the submitted selection."""
        shown = parse_qs(request.form.get("query", "")).items()
        return self.ids_after({name: each[0] for name, each in shown}, after, limit)

    def act(self) -> Response:
        """Run the chosen action for the next part of the selected records."""
        name, query = request.form.get("action", ""), request.form.get("query", "")
        actions = self.actions()
        if name not in actions:
            raise InvalidParams({"action": f"must be {' or '.join(actions)}."})
        position = _number("after")
        if request.form.get("everything"):
            part = self.matching_ids(position, PART)
            is_last = len(part) < PART
        else:
            ids = sorted(each for each in selected_ids() if each > position)
            part, is_last = ids[:PART], len(ids) <= PART
        back = self.url("show_list") + (f"?{query}" if query else ""), _(self.title)
        return self._process(part, actions[name], back, is_last=is_last)

    def _process(
        self, part: Sequence[int], action: Action, back: tuple[str, str], *, is_last: bool
    ) -> Response:
        """Run an action for each record of a part, and show the progress or the result."""
        given = request.form
        failures = list(zip(given.getlist("failed_id"), given.getlist("failed"), strict=False))
        done, failed = _number("done"), _number("failures")
        changed = [each for each in given.get("changed", "").split(",") if each]
        body = self._body(action)
        for record_id in part:
            try:
                call(action.operation, body=body, **self._path(record_id))
                done += 1
                changed.append(str(record_id))
            except ShopError as error:
                failed += 1
                failures.append((str(record_id), error.message))
        state = {"after", "done", "failures", "failed", "failed_id", "changed"}
        return render(
            "progress.html", title=action.title, back=back, done_count=done, failed=failed,
            failures=failures[:MAX_FAILURES], is_last=is_last, after=max(part, default=0),
            kept=[each for each in given.items(multi=True) if each[0] not in state],
            changed=",".join(changed[: MAX_UNDONE + 1]) if action.undo else "",
            undo_action=action.undo if is_last and 0 < done <= MAX_UNDONE else "",
            requests=[("", self._request(action, body, part[0]))] if is_last and part else [],
        )  # fmt: skip


NOUNS: dict[str, Noun] = {}
"""The kinds of records by their names in events."""


def _in_trash(given: Mapping[str, str]) -> bool:
    return given.get("state") == "trash"


def form_page(
    form: Form,
    title: str,
    back: tuple[str, str],
    *,
    button: str = "",
    sent: ApiRequest | None = None,
    **more: Any,
) -> Response:
    """Return the page of a form.

    Args:
        back: address and text of the link above the title.
        button: the text of the button, by default the title.
        sent: the request that the form stands for, which is shown if it was asked for.
        more: further values of the template, such as ``intro``, ``facts`` above the fields, and
            ``request_note``.
    """
    return render(
        "record_form.html", title=title, form=form, back=back, button=button or title,
        has_errors=bool(form.errors), status=400 if form.errors else 200,
        sent=sent if request.form.get("_show") == "request" and not form.errors else None,
        **more,
    )  # fmt: skip


def selected_ids() -> list[int]:
    """Return the IDs of the rows that were selected, or of those that are undone."""
    texts = *request.form.getlist("id"), *request.form.get("ids", "").split(",")
    return [number for each in texts if (number := whole_number(each)) is not None]


def _number(name: str) -> int:
    return whole_number(request.form.get(name, "")) or 0
