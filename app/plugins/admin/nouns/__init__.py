"""Kinds of records: one description each, and the pages and actions that all have in common.

A subclass of ``Noun`` describes a kind with attributes and small functions, as a model view of
Flask-Admin does: its columns, filters, forms and its actions on several records. The template of
its name shows a record. The addresses follow from its name.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from flask import Response, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as BaseResponse

from app.api.metadata import RecordSerializer
from app.api.serializers import Serializer
from app.plugins.admin import form_pages, history, html
from app.plugins.admin.calls import (
    ApiRequest,
    Record,
    Reply,
    api_request,
    call,
    can,
    form_headers,
    record_of,
)
from app.plugins.admin.conflicts import remove
from app.plugins.admin.form_fields import FieldSpec, specs_of
from app.plugins.admin.form_pages import AnyResponse, add_action
from app.plugins.admin.forms import Form
from app.plugins.admin.frame import AdminBlueprint, may_open, panels, see_other
from app.plugins.admin.lists import csv_page, list_page, table_of
from app.plugins.admin.pages import Button, record_page
from app.plugins.admin.selections import Action, act
from app.plugins.admin.tables import CsvColumns, Tab, Table
from app.plugins.admin.texts import gettext as _
from app.schemas.base import Base
from app.services.common.filtering import ListQuery
from app.services.common.pagination import Page

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
    rotates = ""  # the operation that replaces them
    delete_note = ""  # what the question before deleting a record adds
    deletes = True

    def __init__(self) -> None:
        self.plural = self.plural or f"{self.name}s"
        self.operation = noun = self.operation or self.name
        self.operations = noun.removesuffix(self.name) + self.plural
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
        if self.rotates:
            blp.action(f"{one}/rotate", self.rotates)(self.rotate)
        if self.has_trash:
            blp.action(f"{one}/trash", f"delete_{noun}")(self.trash)
            add_action(self, "restore", f"restore_{noun}", "restored")
        if self.queries:
            blp.action(f"{root}/selected", f"list_{self.operations}")(self.act)
        if self.pauses:
            update = f"update_{noun}"
            add_action(
                self, "switch", update, "saved", path="active", key=noun, specs=lambda: [ACTIVE]
            )

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
            return csv_page(self)
        return list_page(self)

    def table(self) -> Table:
        """Return the table of the current address."""
        return table_of(self)

    def listed(self, operation: str, query: Record, rows: int | None) -> Reply:
        """Return a page of a list, with a number of rows or as many as the API returns."""
        return call(operation, query=query | {"limit": rows})

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
        return form_pages.create(self)

    def edit(self, **path: int) -> AnyResponse:
        return form_pages.edit(self, *path.values())

    def rotate(self, **path: Any) -> Response:
        """Replace the secrets of a record, and show the new ones once."""
        return self.with_secrets(call(self.rotates, headers=form_headers(), **path).content)

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

    def act(self) -> Response:
        """Run the chosen action for the next part of the selected records."""
        return act(self)


_LABELS = {"usage_count": "Uses"}
