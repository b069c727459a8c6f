"""Batches: several records of a kind are created, changed and deleted in one request.

Each item is checked like a single request, and a failed one changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy.orm import Session

from app.db.session import run_in_transaction, savepoint
from app.plugins.woocommerce.rest import arguments as arg
from app.plugins.woocommerce.rest import errors
from app.plugins.woocommerce.rest.arguments import Problem, as_list
from app.plugins.woocommerce.rest.errors import Failure, RestError
from app.plugins.woocommerce.rest.frame import checked_arguments, in_context
from app.plugins.woocommerce.rest.operations import Call, Operation
from app.plugins.woocommerce.rest.site import Object

if TYPE_CHECKING:
    from app.plugins.woocommerce.rest.resources import Resource

Item = tuple[int, Object]
"""An item of a list of a batch: its ID, 0 for a new record, and its fields."""

LIMIT = 100
_DELETION: Object = {"force": True}
"""The parameters with which a batch deletes a record."""
ACTIONS = {"create": "create", "update": "edit", "delete": "delete"}
"""What the lists of a batch do with their items."""


def batch(resource: Resource, call: Call) -> object:
    """Create, change and delete several records. A failed item changes nothing."""
    given = {name: _items(call.args.get(name)) for name in ACTIONS}
    if sum(map(len, given.values())) > LIMIT:
        message = f"Unable to accept more than {LIMIT} items for this request."
        raise RestError("woocommerce_rest_request_entity_too_large", message, 413)
    items = {
        "create": [(0, item) for item in _objects(given["create"])],
        "update": [(_id_of(item.get("id")), item) for item in _objects(given["update"])],
        "delete": [(found, _DELETION) for found in map(_deleted_id, given["delete"]) if found],
    }
    results = {
        name: _results(resource, call, resource.operations[ACTIONS[name]], given)
        for name, given in items.items()
        if given
    }
    return results or []


def _results(
    resource: Resource, call: Call, operation: Operation, items: Sequence[Item]
) -> list[object]:
    """Return the object of each item of a list of a batch, or its error."""
    results: list[object] = [None] * len(items)
    ready = dict[int, tuple[Call, Object]]()
    for at, item in enumerate(items):
        with failing(results, at):
            own = _call_of(call, operation, item)
            if resource.save and operation.action != "delete":
                ready[at] = own, resource.given(own)  # before the transaction, as in a request
            else:
                results[at] = _alone(partial(operation.call, own))

    def work(session: Session) -> list[object]:
        resource.lock(session, [own for own, _ in ready.values()])
        return _written_together(resource, session, [*ready.values()])

    written = run_in_transaction(work) if ready else ()
    for at, result in zip(ready, written, strict=True):
        results[at] = result
    return [
        {"id": item_id, "error": in_context(result, operation).body}
        if isinstance(result, Failure)
        else result
        for (item_id, _), result in zip(items, results, strict=True)
    ]


def _written_together(
    resource: Resource, session: Session, items: Sequence[tuple[Call, Object]]
) -> list[object]:
    """Write items of a list of a batch like a bulk request of the native API.

    If items change the same record, or one needs more than one write, each half is written in
    its order, so that one such item leaves most others together.
    """
    if len(items) == 1:
        return [_alone(partial(resource.write, *items[0]))]
    calls, data = zip(*items, strict=True)
    ids = [call.ids["id"] for call in calls if call.ids]
    try:
        with savepoint(session):
            if len(set(ids)) < len(ids):
                raise MustBeAlone
            written = resource.write_all(calls, data)
    except MustBeAlone:
        middle = len(items) // 2
        halves = items[:middle], items[middle:]
        return [each for half in halves for each in _written_together(resource, session, half)]
    saved = [result for result in written if isinstance(result, int)]
    shown = {each["id"]: each for each in resource.objects(saved, resource.site(calls[0]))}
    return [shown[result] if isinstance(result, int) else result for result in written]


def _items(given: object) -> list[object]:
    """Return the items of a list, or the values of an object, which is a list in PHP."""
    return as_list(given) if isinstance(given, list | dict) else []


def _objects(items: Sequence[object]) -> list[Object]:
    """Return items with an object without fields in place of each other value."""
    return [item if isinstance(item, dict) else {} for item in items]


class MustBeAlone(Exception):  # no error
    """An item of a batch cannot be written together with others."""


def _alone(write: Callable[[], object]) -> object:
    """Return the object that a write returns, or its error. A failed write changes nothing."""

    def work(session: Session) -> object:
        with savepoint(session):
            return write()

    try:
        return run_in_transaction(work)
    except errors.FAILURES as error:
        return error


@contextmanager
def failing(results: list[Any], at: int) -> Iterator[None]:
    """Put the error of a record into the results."""
    try:
        yield
    except errors.FAILURES as error:
        results[at] = error


def _call_of(call: Call, operation: Operation, item: Item) -> Call:
    """Return the call of an item, whose parameters are checked like those of a request."""
    item_id, fields = item
    ids = {} if operation.action == "create" else {"id": item_id}
    args, given = checked_arguments(operation.args, fields)
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
