"""Kinds of records: their routes, and what the operations of all kinds have in common.

A subclass of ``Resource`` describes a kind, as a ``Noun`` of the admin pages does. A batch creates,
changes and deletes records in one request, each checked like a single one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from flask import Response
from sqlalchemy.orm import Session

from app.api.etags import precondition
from app.auth.principals import Capability, Principal
from app.catalog import TRASH
from app.db.session import run_in_transaction, savepoint
from app.errors import ShopError
from app.plugins.woocommerce.rest import arguments as arg
from app.plugins.woocommerce.rest import errors
from app.plugins.woocommerce.rest.arguments import Arguments, Problem, as_list
from app.plugins.woocommerce.rest.errors import RestError
from app.plugins.woocommerce.rest.frame import (
    Call,
    Operation,
    Route,
    checked_arguments,
    in_context,
)
from app.plugins.woocommerce.rest.lists import site_of
from app.plugins.woocommerce.rest.schemas import name_of
from app.plugins.woocommerce.rest.site import Object, Record, Site
from app.schemas.base import Base
from app.services.common.bulk import BulkItem, Precondition, WriteResult, single_result

LIMIT = 100
DELETION: Arguments = {"force": arg.FORCE}


class Resource:
    """A kind of records."""

    noun = ""  # a record: ``coupon``
    needs: tuple[Capability, ...] = ()  # to read, create, edit and delete records
    kind = ""  # a record in codes of errors: ``shop_coupon``
    existing = ""  # a record in the error of a create with an ID, by default its kind
    path = ""  # of the list, by default that of the noun
    result: type[Base]  # the schema of a record
    summaries: Mapping[str, str] = {}  # of operations, if they need other words
    listed: Arguments = {}  # the parameters of the list
    created: Arguments = {}  # those of a create
    edited: Arguments | None = None  # those of a change. Without, there are no batches, either
    viewed: Arguments = arg.ONE
    deleted: Arguments = DELETION
    # The functions of the service that delete and restore a record, of a kind with a trash.
    erase: Callable[..., None]
    restore: Callable[[Principal, int], object]
    # The function of the service that writes several records. Without, batches write each alone.
    save: Callable[[Principal, Sequence[BulkItem]], Sequence[WriteResult]] | None = None
    site = staticmethod(site_of)  # the site with the options of a request

    # What subclasses do

    def objects(self, ids: Sequence[int], site: Site) -> list[Object]:
        """Return the records with these IDs in the form of this dialect."""
        raise NotImplementedError

    def page(self, call: Call) -> Response:
        """Return a page of records, or all."""
        raise NotImplementedError

    def data(self, call: Call) -> Object:
        """Return the fields of a request as far as they do not depend on stored records."""
        raise NotImplementedError

    def lock(self, session: Session, calls: Sequence[Call]) -> None:
        """Lock what writes read to decide, until the commit.

        It comes before all reads of the writes, and locks in the order of the service.
        """

    def insert(self, call: Call, data: Object) -> int:
        """Create a record, and return its ID."""
        record_id: int = self._saved(call, data, None, None)["id"]
        if call.given.get("status") == TRASH:
            self.erase(call.actor, record_id, force=False)
        return record_id

    def change(self, call: Call, data: Object, check: Precondition | None) -> None:
        """Change a record. A status moves it into the trash or out of it."""
        before, status = self.record(call, 400), call.given.get("status")
        is_trashed = before.get("status") == TRASH
        self.require_as_asked(call, self._saved(call, data, before, check))
        if status == TRASH and not is_trashed:
            self.erase(call.actor, call.ids["id"], force=False)

    def _saved(
        self, call: Call, data: Object, before: Record | None, check: Precondition | None
    ) -> Record:
        """Write a record with the service, and return it by its column names."""
        try:
            if before and self.is_moved(call, before) and call.given.get("status", TRASH) != TRASH:
                self.restore(call.actor, call.ids["id"])
                before = self.record(call)
            item = BulkItem(call.ids.get("id"), self.prepared(call, data, before), check)
            return single_result(self.save(call.actor, [item]) if self.save else ())
        except ShopError as error:
            raise self.failed(call, error, before) from None

    def record(self, call: Call, status: int = 404) -> Record:
        """Return a record as changes read it, or raise RestError."""
        if found := self.stored([call.ids["id"]], call):
            return found[0]
        raise self.unknown(call, status)

    def stored(self, ids: Sequence[int], call: Call) -> Sequence[Record]:
        """Return records as changes read them. Of a kind with ``save``, as the next five."""
        return self.objects(ids, call.site)

    def is_moved(self, call: Call, before: Record | None) -> bool:
        """Return whether a write moves a record into the trash or out of it."""
        is_trashed = before is not None and before.get("status") == TRASH
        return is_trashed or call.given.get("status") == TRASH

    def prepared(self, call: Call, data: Object, before: Record | None) -> Object:
        """Return the fields of a request as the service takes them.

        Args:
            before: the stored record, or None for a new one.
        """
        return data

    def failed(self, call: Call, error: ShopError, before: Record | None) -> Exception:
        """Return the error of a write in this dialect."""
        return error

    def require_as_asked(self, call: Call, after: Mapping[str, object]) -> None:
        """Raise RestError unless the service has written what a change asks for."""

    def remove(self, call: Call, shown: Object, check: Precondition | None) -> None:
        """Move a record to the trash, or delete it permanently with ``force``."""
        force = bool(call.args.get("force"))
        if shown["status"] == TRASH and not force:
            message = f"The {self.kind} has already been deleted."
            raise RestError("woocommerce_rest_already_trashed", message, 410)
        self.erase(call.actor, shown["id"], force=force, trashed_too=True, precondition=check)

    def require_deletable(self, call: Call) -> None:
        """Raise RestError if the record cannot be deleted by this request."""

    def require_force(self, call: Call, subject: str) -> None:
        """Raise RestError for a deletion without ``force`` of a record that has no trash."""
        if not call.args.get("force"):
            message = f"{subject} not support trashing."
            raise RestError("woocommerce_rest_trash_not_supported", message, 501)

    def unknown(self, call: Call, status: int) -> RestError:
        """Return the error of an unknown ID."""
        return RestError(f"woocommerce_rest_{self.kind}_invalid_id", "Invalid ID.", status)

    # Operations

    def condition(self, call: Call) -> Precondition | None:
        """Return the check of ``If-Match``, which compares a record with a read of it."""
        check = precondition(lambda record: self.shown(record["id"], call))
        return check and (lambda record: check({"id": record["id"]}))

    def shown(self, record_id: int, call: Call, status: int = 404) -> Object:
        """Return a record in the form of this dialect, or raise RestError."""
        if found := self.objects([record_id], self.site(call)):
            return found[0]
        raise self.unknown(call, status)

    def view(self, call: Call) -> Object:
        """Return a record, also one in the trash."""
        return self.shown(call.ids["id"], call)

    def create(self, call: Call) -> Object:
        """Create a record."""
        data = self._given(call)

        def work(session: Session) -> Object:
            self.lock(session, [call])
            return self.shown(self.insert(call, data), call)

        return run_in_transaction(work)

    def edit(self, call: Call) -> Object:
        """Change a record."""
        data, check = self.data(call), self.condition(call)

        def work(session: Session) -> Object:
            self.lock(session, [call])
            self.change(call, data, check)
            return self.shown(call.ids["id"], call)

        return run_in_transaction(work)

    def delete(self, call: Call) -> Object:
        """Delete a record, and return what it was."""
        check = self.condition(call)

        def work(session: Session) -> Object:
            self.lock(session, [call])
            self.require_deletable(call)
            shown = self.shown(call.ids["id"], call)
            self.remove(call, shown, check)
            return shown

        return run_in_transaction(work)

    def batch(self, call: Call) -> object:
        """Create, change and delete several records. A failed item changes nothing."""
        lists = {name: _items(call.args.get(name)) for name in _ACTIONS}
        if sum(map(len, lists.values())) > LIMIT:
            message = f"Unable to accept more than {LIMIT} items for this request."
            raise RestError("woocommerce_rest_request_entity_too_large", message, 413)
        lists = {
            "create": _objects(lists["create"]),
            "update": _objects(lists["update"]),
            "delete": list(filter(None, map(_deleted_id, lists["delete"]))),
        }
        results = {
            name: self._results(call, self.operations[_ACTIONS[name]], items)
            for name, items in lists.items()
            if items
        }
        return results or []

    def _given(self, call: Call) -> Object:
        if not call.ids.get("id") and call.args.get("id") not in (None, "", 0, "0"):
            message = f"Cannot create existing {self.existing or self.kind}."
            raise RestError(f"woocommerce_rest_{self.kind}_exists", message)
        return self.data(call)

    def _results(self, call: Call, operation: Operation, items: Sequence[Any]) -> list[object]:
        """Return the object of each item of a list of a batch, or its error."""
        if not self.save or operation.action == "delete" or len(items) < 2:
            return [_result(call, operation, item) for item in items]
        with suppress(_MustBeAlone):
            return self._saved_together(call, operation, items)
        # Each half, in their order, so that one such item leaves most others together.
        middle = len(items) // 2
        halves = items[:middle], items[middle:]
        return [each for half in halves for each in self._results(call, operation, half)]

    def _saved_together(
        self, call: Call, operation: Operation, items: Sequence[Object]
    ) -> list[object]:
        """Write the items of a list of a batch like a bulk request of the native API.

        Raises:
            _MustBeAlone: items change the same record, or one needs more than one write. Nothing is
                written.
        """
        results: list[object] = [None] * len(items)
        calls, data = dict[int, Call](), dict[int, Object]()
        for at, item in enumerate(items):
            item_id = _id_of(item.get("id")) if operation.action == "edit" else 0
            with _failing(results, at, operation, item_id):
                own = _call_of(call, operation, item, item_id)
                data[at] = self._given(own)
                calls[at] = own
        ids = [own.ids["id"] for own in calls.values() if own.ids]
        if len(set(ids)) < len(ids):
            raise _MustBeAlone

        def work(session: Session) -> list[object]:
            with savepoint(session):
                self.lock(session, list(calls.values()))
                return self._save_all(call, operation, results, calls, data)

        return run_in_transaction(work) if calls else results

    def _save_all(
        self,
        call: Call,
        operation: Operation,
        failures: Sequence[object],
        calls: Mapping[int, Call],
        data: Mapping[int, Object],
    ) -> list[object]:
        """Write accepted items by their positions, and return the results of all items."""
        ids = [own.ids["id"] for own in calls.values() if own.ids]
        stored = {each["id"]: each for each in self.stored(ids, call)} if ids else {}
        results, accepted = list(failures), dict[int, BulkItem]()
        for at, own in calls.items():
            item_id = own.ids.get("id", 0)
            before = stored.get(item_id)
            with _failing(results, at, operation, item_id):
                if own.ids and before is None:
                    raise self.unknown(own, 400)
                if self.is_moved(own, before):
                    raise _MustBeAlone
                ready = self.prepared(own, data[at], before)
                accepted[at] = BulkItem(item_id or None, ready)
        saved = dict[int, int]()
        written = self.save(call.actor, list(accepted.values())) if self.save and accepted else ()
        for (at, item), result in zip(accepted.items(), written, strict=True):
            with _failing(results, at, operation, item.id or 0):
                if isinstance(result, ShopError):
                    raise self.failed(calls[at], result, stored.get(item.id or 0))
                if item.id:
                    try:
                        self.require_as_asked(calls[at], result)
                    except RestError:
                        raise _MustBeAlone from None
                saved[at] = result["id"]
        site = self.site(next(iter(calls.values())))
        shown = {each["id"]: each for each in self.objects(list(saved.values()), site)}
        for at, record_id in saved.items():
            results[at] = shown[record_id]
        return results

    # Routes

    @cached_property
    def operations(self) -> dict[str, Operation]:
        """The operations by what they do."""
        noun, (read, *changing) = self.noun, self.needs
        create, edit, delete = changing
        one, all_ = f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}", f"{noun}s"
        created = {**self.created, "id": arg.ANYTHING}
        rows = (
            ("list", self.page, read, self.listed, f"List {all_}", f"list_{all_}"),
            ("create", self.create, create, created, f"Create {one}", f"create_{noun}"),
            ("view", self.view, read, self.viewed, f"Retrieve {one}", f"get_{noun}"),
            ("edit", self.edit, edit, self.edited, f"Update {one}", f"update_{noun}"),
            ("delete", self.delete, delete, self.deleted, f"Delete {one}", f"delete_{noun}"),
        )
        batch = Operation(
            self.batch,
            "batch",
            tuple(changing),
            arg.query(dict.fromkeys(_ACTIONS, arg.ANYTHING)),
            f"Create, update and delete several {all_}",
            self.result,
            name=f"batch_{all_}",
            any_of=True,
        )
        return ({} if self.edited is None else {"batch": batch}) | {
            action: Operation(
                call,
                action,
                (need,),
                arg.schema(name_of(self.result) + name.split("_")[0].title(), f"{summary}.", args),
                self.summaries.get(action, summary),
                self.result,
                name=name,
                is_list=action == "list",
            )
            for action, call, need, args, summary, name in rows
            if args is not None
        }

    @property
    def routes(self) -> tuple[Route, ...]:
        """The routes of the list, of batches and of a record."""
        does, path = self.operations, self.path or f"/{self.noun}s"
        places: Mapping[str, Mapping[str, str]] = {
            path: {"GET": "list", "POST": "create"},
            f"{path}/batch": {"EDIT": "batch"},
            f"{path}/<id:id>": {"GET": "view", "EDIT": "edit", "DELETE": "delete"},
        }
        routes = (
            Route(place, {way: does[action] for way, action in actions.items() if action in does})
            for place, actions in places.items()
        )
        return tuple(route for route in routes if route.operations)


_ACTIONS = {"create": "create", "update": "edit", "delete": "delete"}
"""What the lists of a batch do with their items."""


def _items(given: object) -> list[Any]:
    """Return the items of a list, or the values of an object, which is a list in PHP."""
    return as_list(given) if isinstance(given, list | dict) else []


def _objects(items: Sequence[object]) -> list[Object]:
    """Return items with an object without fields in place of each other value."""
    return [item if isinstance(item, dict) else {} for item in items]


class _MustBeAlone(Exception):  # no error
    """An item of a batch cannot be written together with others."""


def _result(call: Call, operation: Operation, item: Any) -> object:
    """Return the object of an item, or its error. A failed item changes nothing."""
    results: list[object] = [None]
    is_deletion = operation.action == "delete"
    item_id = item if is_deletion else 0
    if operation.action == "edit":
        item_id = _id_of(item.get("id"))
    with _failing(results, 0, operation, item_id):
        given = {"force": True} if is_deletion else item

        def work(session: Session) -> object:
            with savepoint(session):
                return operation.call(_call_of(call, operation, given, item_id))

        results[0] = run_in_transaction(work)
    return results[0]


@contextmanager
def _failing(results: list[object], at: int, operation: Operation, item_id: int) -> Iterator[None]:
    """Put the error of an item into the results of a batch."""
    try:
        yield
    except (*errors.FAILURES, RestError) as error:
        shown = error if isinstance(error, RestError) else in_context(error, operation)
        results[at] = {"id": item_id, "error": shown.body}


def _call_of(call: Call, operation: Operation, item: Mapping[str, object], item_id: int) -> Call:
    """Return the call of an item, whose parameters are checked like those of a request."""
    ids = {"id": item_id} if item_id or operation.action != "create" else {}
    args, given = checked_arguments(operation.args, item)
    if not call.actor.can(*operation.needs):
        raise errors.forbidden(operation.action, is_known=True)
    return replace(call, ids=ids, args=args, given=given, sent={})


def _deleted_id(item: object) -> int:
    """Return the ID of a record to delete, which is sent alone or in an object.

    An entry without an ID is 0, which the batch leaves out, as on the original.
    """
    return _id_of(item.get("id") if isinstance(item, dict) else item)


def _id_of(value: object) -> int:
    """Return an ID, of a number or a text; 0 for another value."""
    try:
        number: int = arg.INTEGER.deserialize(value)
    except Problem:
        return 0
    return max(number, 0)
