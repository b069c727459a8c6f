"""Kinds of records: their routes, and what the operations of all kinds have in common.

A subclass of ``Resource`` describes a kind, as a ``Noun`` of the admin pages does. A batch creates,
changes and deletes records in one request, each checked like a single one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from sqlalchemy.orm import Session

from app.api.etags import precondition
from app.auth.principals import Capability
from app.catalog import TRASH
from app.db.session import run_in_transaction, savepoint
from app.services.common.bulk import Precondition
from app.woocommerce_rest import arguments as arg
from app.woocommerce_rest import errors
from app.woocommerce_rest.arguments import Arguments, Problem, as_list, checked
from app.woocommerce_rest.errors import RestError
from app.woocommerce_rest.frame import Call, Operation, Page, Route, checked_arguments
from app.woocommerce_rest.lists import site_of
from app.woocommerce_rest.site import Object, Site

LIMIT = 100
DELETION: Arguments = {"force": arg.FORCE}


class Resource:
    """A kind of records."""

    noun = ""  # a record: ``coupon``
    needs: tuple[Capability, ...] = ()  # to read, create, edit and delete records
    kind = ""  # a record in codes of errors: ``shop_coupon``
    existing = ""  # a record in the error of a create with an ID, by default its kind
    path = ""  # of the list, by default that of the noun
    result = ""  # the schema of a record, by default that of the noun
    summaries: Mapping[str, str] = {}  # of operations, if they need other words
    listed: Arguments = {}  # the parameters of the list
    created: Arguments = {}  # those of a create
    edited: Arguments | None = None  # those of a change. Without, there are no batches, either
    viewed: Arguments = arg.ONE
    deleted: Arguments = DELETION
    erase: Callable[..., None]  # the function of the service that deletes, of a kind with a trash
    site = staticmethod(site_of)  # the site with the options of a request

    # What subclasses do

    def objects(self, ids: Sequence[int], site: Site) -> list[Object]:
        """Return the records with these IDs in the form of this dialect."""
        raise NotImplementedError

    def page(self, call: Call) -> Page | list[Object]:
        """Return a page of records, or all."""
        raise NotImplementedError

    def data(self, call: Call) -> Object:
        """Return the fields of a request as far as they do not depend on stored records."""
        raise NotImplementedError

    def lock(self, session: Session, call: Call) -> None:
        """Lock what a write reads to decide, until the commit.

        It comes before all reads of the write, and locks in the order of the service.
        """

    def insert(self, call: Call, data: Object) -> int:
        """Create a record, and return its ID."""
        raise NotImplementedError

    def change(self, call: Call, data: Object, check: Precondition | None) -> None:
        """Change a record."""
        raise NotImplementedError

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
        if call.args.get("id") not in (None, "", 0, "0"):
            message = f"Cannot create existing {self.existing or self.kind}."
            raise RestError(f"woocommerce_rest_{self.kind}_exists", message)
        data = self.data(call)

        def work(session: Session) -> Object:
            self.lock(session, call)
            return self.shown(self.insert(call, data), call)

        return run_in_transaction(work)

    def edit(self, call: Call) -> Object:
        """Change a record."""
        data, check = self.data(call), self.condition(call)

        def work(session: Session) -> Object:
            self.lock(session, call)
            self.change(call, data, check)
            return self.shown(call.ids["id"], call)

        return run_in_transaction(work)

    def delete(self, call: Call) -> Object:
        """Delete a record, and return what it was."""
        check = self.condition(call)

        def work(session: Session) -> Object:
            self.lock(session, call)
            self.require_deletable(call)
            shown = self.shown(call.ids["id"], call)
            self.remove(call, shown, check)
            return shown

        return run_in_transaction(work)

    def batch(self, call: Call) -> Any:
        """Create, change and delete several records. A failed item changes nothing."""
        lists = {name: _items(call.args.get(name)) for name in _ACTIONS}
        if sum(map(len, lists.values())) > LIMIT:
            message = f"Unable to accept more than {LIMIT} items for this request."
            raise RestError("woocommerce_rest_request_entity_too_large", message, 413)
        lists["delete"] = list(filter(None, map(_deleted_id, lists["delete"])))
        results = {
            name: [_result(call, self.operations[_ACTIONS[name]], item) for item in items]
            for name, items in lists.items()
            if items
        }
        return results or []

    # Routes

    @cached_property
    def operations(self) -> dict[str, Operation]:
        """The operations by what they do."""
        noun, (read, *changing) = self.noun, self.needs
        create, edit, delete = changing
        one, all_ = f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}", f"{noun}s"
        created, result = {**self.created, "id": {}}, self.result or noun.title()
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
            dict.fromkeys(_ACTIONS, arg.ANYTHING),
            f"Create, update and delete several {all_}",
            f"{result}Batch",
            name=f"batch_{all_}",
            any_of=True,
        )
        return ({} if self.edited is None else {"batch": batch}) | {
            action: Operation(
                call,
                action,
                (need,),
                args,
                self.summaries.get(action, summary),
                result,
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


def _items(given: Any) -> list[Any]:
    """Return the items of a list, or the values of an object, which is a list in PHP."""
    return as_list(given) if isinstance(given, list | dict) else []


def _result(call: Call, operation: Operation, item: Any) -> Any:
    """Return the object of an item, or its error. A failed item changes nothing."""
    item_id, action = 0, operation.action
    try:
        if action == "delete":
            item_id, item = item, {"force": True}
        elif not isinstance(item, dict):
            item = {}
        if action == "edit":
            item_id = _id_of(item.get("id"))
        return run_in_transaction(
            lambda session: _in_savepoint(session, call, operation, item, item_id)
        )
    except errors.FAILURES as error:
        failed = errors.as_rest_error(error)
        if action == "edit" and failed.status == 404 and failed.code.startswith("woocommerce"):
            failed = failed.with_status(400)
    except RestError as error:
        failed = error
    return {"id": item_id, "error": failed.body}


def _in_savepoint(
    session: Session, call: Call, operation: Operation, item: Mapping[str, Any], item_id: int
) -> Any:
    with savepoint(session):
        ids = {"id": item_id} if item_id or operation.action != "create" else {}
        args, given = checked_arguments(operation.args, item, ids)
        if not call.actor.can(*operation.needs):
            raise errors.forbidden(operation.action, is_known=True)
        return operation.call(replace(call, ids=ids, args=args, given=given, fields=frozenset()))


def _deleted_id(item: Any) -> int:
    """Return the ID of a record to delete, which is sent alone or in an object.

    An entry without an ID is 0, which the batch leaves out, as on the original.
    """
    return _id_of(item.get("id") if isinstance(item, dict) else item)


def _id_of(value: Any) -> int:
    """Return an ID, of a number or a text; 0 for another value."""
    try:
        number: int = checked(arg.INTEGER, value, "id")
    except Problem:
        return 0
    return max(number, 0)
