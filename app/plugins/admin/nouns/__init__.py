"""Kinds of records: one description each, and the pages and actions that all have in common.

A subclass of ``Noun`` describes a kind with attributes and small functions, as a model view of
Flask-Admin does: its columns, filters, forms and its actions on several records. The template of
its name shows a record. The addresses follow from its name.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import parse_qs

import orjson
from flask import Response, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as BaseResponse

from app.api.authentication import current_principal
from app.api.metadata import RecordSerializer
from app.api.serializers import Serializer
from app.conversions.numbers import whole_number
from app.db.read_pool import RowStream
from app.db.records import Row
from app.errors import InvalidParams, ShopError
from app.plugins.admin import history, html
from app.plugins.admin.calls import (
    ApiRequest,
    Record,
    Reply,
    api_request,
    call,
    can,
    form_headers,
    loaded_query,
    record_of,
)
from app.plugins.admin.conflicts import changed_page, is_done, remove
from app.plugins.admin.form_fields import FieldSpec, specs_of
from app.plugins.admin.forms import Form
from app.plugins.admin.frame import (
    AdminBlueprint,
    may_open,
    panels,
    render,
    see_other,
)
from app.plugins.admin.pages import Button, allowed, record_page
from app.plugins.admin.reports import from_replica
from app.plugins.admin.selections import Action, act, allowed_actions, state_of
from app.plugins.admin.tables import (
    CsvColumns,
    Tab,
    Table,
    csv_file,
    list_query,
    rows_per_page,
)
from app.plugins.admin.texts import gettext as _
from app.schemas.base import Base
from app.services.common.filtering import ListQuery
from app.services.common.pagination import Page

UNDO_SECONDS = 60
"""How long a table offers to restore what was moved to the trash."""

AnyResponse = Response | BaseResponse
Listing = tuple[Serializer | RecordSerializer, Callable[..., Page]]
"""The serializer of a loaded query, and the function of the service for its list."""

FORM = ("GET", "POST")
ACTIVE = FieldSpec("active", "Active", "checkbox")


class Noun:
    """A kind of record. Its pages are endpoints of its blueprint ``admin_<plural>``."""

    name = ""  # the record in addresses and variables: ``coupon``
    plural = ""  # the records in addresses. By default, the name with an *s*
    operation = ""  # the record in the names of operations. By default, its name
    create_key = ""  # the wrapper key of the request that creates a record. By default, the name
    title = ""  # the title of the table
    navigation = ("", 0)  # icon and position
    menu = ""  # the text in the navigation. By default, the title
    create_label = ""  # the button that creates a record
    named_by: tuple[str, ...] = ()  # the fields that name the record
    create_schema: type[Base] | None = None
    update_schema: type[Base] | None = None
    list_schema: type[Base] = Base  # the parameters of its list
    query_type: type[ListQuery] = ListQuery  # of its service
    queries: Any = None  # the module of its service that finds IDs, if several can be selected
    given: Mapping[str, object] = {}  # what the form of a new record shows at first
    has_trash = False
    has_csv = False  # whether its table offers a CSV file, and numbers of rows
    pauses = False  # whether its page has *Pause* and *Resume*
    resource = ""  # the kind of record in events
    also_reads: tuple[str, ...] = ()  # operations that its page needs beside that of the record
    secrets: Mapping[str, str] = {}  # labels of fields that are shown only when they are new
    secrets_note = ""  # what to do with them
    delete_note = ""  # what the question before deleting a record adds
    deletes = True

    def __init__(self) -> None:
        self.plural = self.plural or f"{self.name}s"
        self.operation = noun = self.operation or self.name
        self.operations = f"{noun}{'es' if noun.endswith('h') else 's'}"
        label = self.menu or self.title
        self.blp = blp = AdminBlueprint(
            f"admin_{self.plural}", label, *self.navigation, page="show_list"
        )
        root = f"/{self.plural}"
        self.one = one = f"{root}/<id:{self.name}_id>"
        blp.page(root, f"list_{self.operations}")(self.show_list)
        blp.page(one, f"get_{noun}", *self.also_reads)(self.show)
        if self.create_schema:
            blp.page(f"{root}/new", f"create_{noun}", methods=FORM)(self.create)
        if self.update_schema:
            blp.page(f"{one}/edit", f"get_{noun}", f"update_{noun}", methods=FORM)(self.edit)
        if self.deletes:
            blp.action(f"{one}/delete", f"delete_{noun}")(self.delete)
        if self.secrets:
            blp.action(f"{one}/rotate", self._rotation)(self.rotate)
        if self.has_trash:
            blp.action(f"{one}/trash", f"delete_{noun}")(self.trash)
            self.runs("restore", f"restore_{noun}", "restored")
        if self.queries:
            blp.action(f"{root}/selected", f"list_{self.operations}")(self.act)
        if self.pauses:
            update = f"update_{noun}"
            self.runs("switch", update, "saved", path="active", key=noun, specs=lambda: [ACTIVE])
        NOUNS[self.resource] = self

    def runs(
        self,
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
            record_id, headers, body = variables[f"{self.name}_id"], {}, None
            if fields := specs():
                form, headers = Form.submitted(fields, key), form_headers()
                if form.etag and "_show" not in request.form:
                    return self._save(form, operation, record_id, done)
                values = form.read(everything=True)
                body = {key: values} if key else values
                form.sent = api_request(operation, body=body, **variables)
                if "_show" in request.form:
                    return self.page(record_id, sent=form.asked_for)
                if form.errors:
                    raise InvalidParams(form.errors)
            try:
                call(operation, body=body, headers=headers, **variables)
            except ShopError as error:
                if not is_done(self, operation, record_id, error):
                    raise
            return self.see(record_id, done)

        run.__name__ = endpoint
        self.blp.action(f"{self.one}/{path or endpoint}", operation)(run)

    # What subclasses describe

    def csv_columns(self, *, trashed: bool) -> CsvColumns:
        """Return the columns of the CSV file of what the table shows."""
        raise NotImplementedError

    def listing(self, query: Record, *, trashed: bool) -> Listing:
        """Return the serializer of a loaded query and the function of the service for its list."""
        raise NotImplementedError

    def filters(self) -> Sequence[str]:
        """Return the parameters of the filters above the table."""
        return ()

    def tabs(self, reply: Reply) -> list[Tab]:
        return []

    def query(self, given: Mapping[str, str]) -> Record:
        """Return the parameters of the API for those of the table."""
        return {name: given.get(name, "") for name in self.filters()}

    def prepared(self, records: list[Record]) -> list[Record]:
        """Return records with what else their table or their page needs."""
        return records

    def name_of(self, record: Record) -> str:
        """Return what names a record in labels and titles."""
        return " ".join(record[each] for each in self.named_by).strip()

    def title_of(self, record: Record) -> str:
        return self.name_of(record)

    def badge(self, record: Record) -> Markup | str:
        """Return the state of a record, beside its title."""
        return ""

    def list_buttons(self) -> list[Button]:
        """Return further buttons above the table."""
        return []

    def actions(self) -> dict[str, Action]:
        """Return the actions on several records, by the values of their buttons."""
        if not self.has_trash:
            return {}
        trashing = _("Moving %(nouns)s to the trash", nouns=self.plural)
        restoring = _("Restoring %(nouns)s", nouns=self.plural)
        delete, restore = f"delete_{self.operation}", f"restore_{self.operation}"
        return {
            "restore": Action(self.name, _("Restore"), restoring, restore, in_trash=True),
            "trash": Action(self.name, _("Move to the trash"), trashing, delete, "restore"),
        }

    def values(self, record: Record) -> Record:
        """Return the values of the template of a record: its buttons, and what it shows."""
        raise NotImplementedError

    def form_specs(self, record: Record | None, *, is_new: bool) -> Sequence[FieldSpec]:
        """Return the fields of a form.

        Args:
            record: the record that it shows, or None for a new one and for a submitted form.
            is_new: whether it creates a record.
        """
        return specs_of(self.create_schema if is_new else self.update_schema)

    def new_values(self) -> Mapping[str, object]:
        """Return the values that the form of a new record shows at first."""
        return self.given

    def body(self, values: dict[str, object]) -> dict[str, object]:
        """Return what is sent of the values of a new record."""
        return values

    def created(self, record: Record) -> AnyResponse:
        """Return the response after a record was created."""
        return self.with_secrets(record) if self.secrets else self.see(record["id"], "created")

    def warnings(self, form: Form) -> list[str]:
        """Return what is rarely meant in a submitted form. It is saved after a second press."""
        return []

    def check(self, form: Form) -> Callable[[Reply], None] | None:
        """Return what raises ShopError if an update has not stored what a submitted form says."""
        return None

    def form_values(self, form: Form) -> dict[str, object]:
        """Return further values of the template of the forms."""
        return {}

    # Addresses and links

    def endpoint(self, name: str) -> str:
        return f"{self.blp.name}.{name}"

    def url(self, endpoint: str, record_id: int | None = None, **more: Any) -> str:
        """Return the address of a page or an action."""
        path = {} if record_id is None else self.path_of(record_id)
        return url_for(self.endpoint(endpoint), **path, **more)

    def path_of(self, record_id: int) -> Record:
        return {f"{self.name}_id": record_id}

    def see(self, record_id: int, done: str) -> BaseResponse:
        """Return the redirect to the page of a record after an action."""
        return see_other(self.endpoint("show"), done=done, **self.path_of(record_id))

    def link(self, record: Record) -> Markup:
        return html.link(self.url("show", record["id"]), self.name_of(record))

    def link_to(self, record_id: int | None, text: str) -> Markup | str:
        """Return a link to the page of a record, if the session may read it."""
        if not record_id or not may_open(self.endpoint("show")):
            return text
        return html.link(self.url("show", record_id), text)

    def button(self, label: str, endpoint: str, record: Record, **more: Any) -> Button:
        """Return the button of a page or an action of a record."""
        path, name = self.path_of(record["id"]), self.name_of(record)
        return Button(label, self.endpoint(endpoint), path, name=name, **more)

    def switch_button(self, record: Record) -> Button:
        """Return *Pause* or *Resume* of a record."""
        active, label = record["active"], _("Pause") if record["active"] else _("Resume")
        shown = {"active": ACTIVE.text(active)}
        return self.button(label, "switch", record, fields={"active": not active}, shown=shown)

    # Pages

    def read(self, record_id: int) -> tuple[Record, str]:
        record, etag = record_of(f"get_{self.operation}", **self.path_of(record_id))
        return self.prepared([record])[0], etag

    def show_list(self) -> Response:
        if self.has_csv and request.args.get("format") == "csv":
            return self._csv()
        return self.list_page()

    def list_page(self, **values: Any) -> Response:
        """Return the page of the table, with further values of the template."""
        table, trashed, buttons = self.table(), _in_trash(request.args), self.list_buttons()
        if self.create_schema:
            buttons.append(Button(_(self.create_label), self.endpoint("create"), tone="primary"))
        return render(
            f"{self.plural}.html",
            title=_(self.title),
            noun=self,
            table=table,
            trashed=trashed,
            buttons=allowed(buttons),
            undo=self._undo_address(),
            acts=self.queries and self.url("act"),
            **values,
        )

    def table(self) -> Table:
        """Return the table of the current address."""
        given = request.args.to_dict()
        trashed = self.has_trash and _in_trash(given)
        operation = f"list_{'trashed_' if trashed else ''}{self.operations}"
        reply = self.listed(
            operation, list_query() | self.query(given), rows_per_page() if self.has_csv else None
        )
        table = Table.of_reply(_(self.title), reply)
        table.rows = self.prepared(list(table.rows))
        table.has_csv = self.has_csv
        table.sorts, table.tabs, table.filters = True, self.tabs(reply), self.filters()
        table.bulk = allowed_actions(self, trashed=trashed)
        table.state = None if trashed else partial(state_of, self)
        table.own_requests = [
            *table.own_requests,
            *(
                (each.label, each.request(row["id"]))
                for row in table.rows[:1]
                for each in table.bulk.values()
                if each.title
            ),
        ]
        if trashed:
            table.buttons = lambda row: [self.button(_("Restore"), "restore", row)]
        return table

    def listed(self, operation: str, query: Record, rows: int | None) -> Reply:
        """Return a page of a list, with a number of rows or as many as the API returns."""
        return call(operation, query=query | {"limit": rows})

    def selected_rows(
        self, query: Record, **more: object
    ) -> tuple[Page, Callable[..., list[Record]]]:
        """Return a page of the list of a query, and what converts its rows.

        Args:
            query: parameters of the API.
            more: further values of the loaded query.
        """
        trashed = self.has_trash and _in_trash(request.args)
        fields = query.get("fields", "")
        loaded = loaded_query(self.list_schema, query | {"page": "", "fields": ""}) | more
        loaded["selection"] = dict.fromkeys(fields.split(",")) if fields else None
        serializer, find = self.listing(loaded, trashed=trashed)
        in_trash = {"trashed": trashed} if self.has_trash else {}
        wanted = self.query_type.of(loaded)
        found = find(current_principal(), wanted, serializer.columns, **in_trash)
        return found, partial(self.converted, serializer)

    def converted(
        self, serializer: Serializer | RecordSerializer, rows: Sequence[Row]
    ) -> list[Record]:
        """Return selected rows as the table shows them."""
        return self.prepared(orjson.loads(orjson.dumps(serializer.rows(rows))))

    def _csv(self) -> Response:
        """Return all records that the table of the address shows as CSV."""
        query = list_query() | self.query(request.args)
        found, converted = from_replica(lambda: self.selected_rows(query, limit=-1, page=1))
        stream = found.rows if isinstance(found.rows, RowStream) else None
        batches = (converted(rows) for rows in (stream.batches() if stream else ()))
        return self.csv_of(batches, stream, trashed=_in_trash(request.args))

    def csv_of(
        self, batches: Iterable[list[Record]], stream: RowStream | None = None, *, trashed: bool
    ) -> Response:
        """Return records as CSV."""
        columns = self.csv_columns(trashed=trashed)
        rows = (
            [{label: cell(row) for label, cell in columns.items()} for row in part]
            for part in batches
        )
        return csv_file(self.plural, [*columns], rows, stream)

    def selected_table(self) -> dict[str, str]:
        """Return the parameters of the table whose rows were selected."""
        given = parse_qs(request.form.get("query", ""))
        return {name: each[0] for name, each in given.items()}

    def show(self, **path: int) -> Response:
        return self.page(*path.values())

    def page(self, record_id: int, *, sent: ApiRequest | None = None, **more: Any) -> Response:
        """Return the page of a record, with the result of an action.

        Args:
            record_id: the ID of the record.
            sent: the request of a small form, which it shows instead of sending it.
            more: further values of ``record_page``.
        """
        record, etag = self.read(record_id)
        values = self.values(record)
        trash = [self._trash_button(record)] if self.has_trash else []
        delete = [self._delete_button(record)] if self.deletes else []
        values["dangers"] = [*values.get("dangers", ()), *trash, *delete]
        if self.resource in history.RESOURCES:
            values |= {"keeps_history": True, "history": self._history(record)}
        return record_page(
            f"{self.name}.html",
            self.title_of(record),
            (self.url("show_list"), _(self.title)),
            sent or api_request(f"get_{self.operation}", **self.path_of(record_id)),
            self.name,
            noun=self,
            record=record,
            panels=panels(self.name, record),
            status_badge=self.badge(record),
            opens=bool(sent),
            etag=etag,
            **values,
            **more,
        )

    def labels(self) -> dict[str, str]:
        """Return the labels of fields in a history by their names."""
        specs = specs_of(self.update_schema)
        return {spec.name: spec.label for spec in specs if "." not in spec.name} | _LABELS

    def with_children(self, record: Record, events: list[Record]) -> list[Record]:
        """Return the latest events of a record with those of what belongs to it."""
        return events

    def _history(self, record: Record) -> history.History | None:
        if not can("list_events"):
            return None
        add = partial(self.with_children, record)
        currency = record.get("currency")
        return history.history(self.resource, record["id"], self.labels(), add, currency)

    def _trash_button(self, record: Record) -> Button:
        return self.button(_("Move to the trash"), "trash", record, shown=self._shown(record))

    def _shown(self, record: Record) -> Mapping[str, str]:
        return Form.of_record(self.compared(), self.name, record).shown

    def _delete_button(self, record: Record) -> Button:
        question = _(
            "Delete %(noun)s %(name)s permanently?", noun=self.name, name=self.name_of(record)
        )
        return self.button(
            _("Delete permanently"),
            "delete",
            record,
            question=question,
            note=_(self.delete_note),
            query=self._forced(),
            shown=self._shown(record),
        )

    def _forced(self) -> dict[str, str]:
        """Return the parameters that delete a record instead of moving it to the trash."""
        return {"force": "true"} if self.has_trash else {}

    def create(self) -> AnyResponse:
        """Show the form of a new record, or create the record."""
        specs, key = self.form_specs(None, is_new=True), self.create_key or self.name
        if request.method == "GET":
            return self._form(Form.of_new(specs, key, self.new_values()))
        form = self._submitted(specs, key)
        values = self.body(form.read(everything=True))
        if reply := form.send(f"create_{self.operation}", values):
            return self.created(reply.body[self.name])
        return self._form(form)

    def edit(self, **path: int) -> AnyResponse:
        (record_id,) = path.values()
        noun = self.operation
        if request.method == "GET":
            record, etag = self.read(record_id)
            specs = self.form_specs(record, is_new=False)
            return self._form(Form.of_record(specs, self.name, record, etag), record_id)
        form = self._submitted(self.form_specs(None, is_new=False), self.name)
        return self._save(form, f"update_{noun}", record_id)

    def _submitted(self, specs: Sequence[FieldSpec], key: str) -> Form:
        form = Form.submitted(specs, key)
        form.warnings = [] if "_show" in request.form else self.warnings(form)
        return form

    def _save(self, form: Form, operation: str, record_id: int, done: str = "") -> AnyResponse:
        """Save a form, or show what another editor has changed of its fields in between.

        Args:
            form: the form with the entity tag that it showed.
            operation: the operation that updates the record.
            record_id: the ID of the record.
            done: what a small form reports; a form with a page of its own shows its errors there.
        """
        path, check = self.path_of(record_id), self.check(form)
        if conflict := form.save(f"get_{self.operation}", operation, check, **path):
            return changed_page(self, form, conflict)
        if form.errors and done:
            raise InvalidParams(form.errors)
        return self.see(record_id, form.done) if form.done else self._form(form, record_id)

    def _form(self, form: Form, record_id: int | None = None) -> Response:
        """Return the page of a form; without an ID, that of a new record."""
        name = " ".join(filter(None, (form.shown.get(each, "") for each in self.named_by)))
        title, button = _(self.create_label), ""
        back = self.url("show_list"), _(self.title)
        if record_id is not None:
            name = name or f"#{record_id}"
            title, button = _("Edit %(name)s", name=name), _("Save")
            back = self.url("show", record_id), name
        return form_page(form, title, back, button=button, **self.form_values(form))

    @property
    def _rotation(self) -> str:
        return f"rotate_{self.operation}{'_secret' if len(self.secrets) == 1 else ''}"

    def rotate(self, **path: Any) -> Response:
        """Replace the secrets of a record, and show the new ones once."""
        return self.with_secrets(call(self._rotation, headers=form_headers(), **path).content)

    def with_secrets(self, record: Record) -> Response:
        secrets = [(_(label), record[name]) for name, label in self.secrets.items()]
        return self.page(record["id"], secrets=secrets, note=_(self.secrets_note))

    def delete(self, **path: int) -> AnyResponse:
        (record_id,) = path.values()
        return remove(self, record_id, self._delete_button, self._forced()) or see_other(
            self.endpoint("show_list"), done="deleted"
        )

    def trash(self, **path: int) -> AnyResponse:
        """Move a record to the trash. For a minute, the table offers to restore it."""
        (record_id,) = path.values()
        undo = {"undo": record_id, "at": int(time.time())}
        return remove(self, record_id, self._trash_button, {}) or see_other(
            self.endpoint("show_list"), done="trashed", **undo
        )

    def compared(self) -> Sequence[FieldSpec]:
        """Return the fields whose changes in between are shown before a record is removed."""
        return specs_of(self.update_schema)

    def _undo_address(self) -> str:
        """Return the address of the action that undoes the last one, or an empty string."""
        at, record_id = (whole_number(request.args.get(name, "")) for name in ("at", "undo"))
        is_recent = at is not None and 0 <= time.time() - at <= UNDO_SECONDS
        if not (self.has_trash and record_id and is_recent and may_open(self.endpoint("restore"))):
            return ""
        return self.url("restore", record_id)

    def matching_ids(self, after: int, limit: int) -> Sequence[int]:
        """Return IDs of records that match the table of the submitted selection, after an ID."""
        given = self.selected_table()
        wanted = self.query(given) | {"q": given.get("q", ""), "fields": ""}
        return self.queries.ids_after(  # type: ignore[no-any-return]  # of any of its modules
            current_principal(),
            self.query_type.of(loaded_query(self.list_schema, wanted)),
            after,
            limit,
            trashed=_in_trash(given),
        )

    def act(self) -> Response:
        """Run the chosen action for the next part of the selected records."""
        return act(self)


_LABELS = {"usage_count": "Uses"}

NOUNS: dict[str, Noun] = {}
"""The kinds of records by their names in events."""


def _in_trash(given: Mapping[str, str]) -> bool:
    return given.get("state") == "trash"


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
