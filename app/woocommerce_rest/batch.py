"""Batches: creates, updates and deletions in one request, each checked like a single one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.auth.principals import Capability
from app.db.session import run_in_transaction, savepoint
from app.woocommerce_rest import arguments as arg
from app.woocommerce_rest import errors
from app.woocommerce_rest.arguments import Arguments, Problem, as_list, checked
from app.woocommerce_rest.errors import RestError
from app.woocommerce_rest.frame import Call, Operation, Reply, Route, checked_arguments

LIMIT = 100
DELETION: Arguments = {"force": arg.FORCE}


def resource_routes(
    noun: str,
    calls: Sequence[Callable[[Call], Reply]],
    needs: Sequence[Capability],
    *,
    listed: Arguments,
    created: Arguments,
    edited: Arguments,
    viewed: Arguments = arg.ONE,
    deleted: Arguments = DELETION,
) -> tuple[Route, ...]:
    """Return the routes of a resource: of its list, of batches and of a record.

    Args:
        noun: what a record is, such as ``coupon``.
        calls: the functions that list, create, view, edit and delete records.
        needs: the capability for each.
        listed: the parameters of the list.
        created: those of a create, without ``id``.
        edited: those of a change.
        viewed: those of a read.
        deleted: those of a deletion.
    """
    one = f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
    rows = (
        ("list", listed, f"List {noun}s"), ("create", {**created, "id": {}}, f"Create {one}"),
        ("view", viewed, f"Retrieve {one}"), ("edit", edited, f"Update {one}"),
        ("delete", deleted, f"Delete {one}"),
    )  # fmt: skip
    list_, create, view, edit, delete = (
        Operation(
            call, action, (need,), args, summary, noun.title(),
            is_list=action == "list",
        )
        for call, need, (action, args, summary) in zip(calls, needs, rows, strict=True)
    )  # fmt: skip
    records = Route(f"/{noun}s", {"GET": list_, "POST": create})
    record = Route(f"/{noun}s/<id:id>", {"GET": view, "EDIT": edit, "DELETE": delete})
    return records, _batch_route(records, record), record


def _batch_route(route: Route, item: Route) -> Route:
    """Return the route of batches, given those with the create and with the changes."""
    create, edit = route.operations["POST"], item.operations["EDIT"]
    delete = item.operations["DELETE"]
    any_of: Sequence[Capability] = tuple(
        {need for each in (create, edit, delete) for need in each.needs[:1]}
    )
    operation = Operation(
        lambda call: _run(call, create, edit, delete),
        "batch",
        any_of,
        {"create": arg.ANYTHING, "update": arg.ANYTHING, "delete": arg.ANYTHING},
        f"Create, update and delete several {route.resource}",
        result=f"{create.result}Batch",
        any_of=True,
    )
    return Route(f"{route.path}/batch", {"EDIT": operation})


def _run(call: Call, create: Operation, edit: Operation, delete: Operation) -> Reply:
    lists = {name: _items(call.args.get(name)) for name in ("create", "update", "delete")}
    if sum(map(len, lists.values())) > LIMIT:
        message = f"Unable to accept more than {LIMIT} items for this request."
        raise RestError("woocommerce_rest_request_entity_too_large", message, 413)
    lists["delete"] = [item for item in lists["delete"] if _id_of(item)]  # as on the original
    operations = {"create": create, "update": edit, "delete": delete}
    results = {
        name: [_result(call, name, operations[name], item) for item in items]
        for name, items in lists.items()
        if items
    }
    return Reply(results or [])


def _items(given: Any) -> list[Any]:
    """Return the items of a list, or the values of an object, which is a list in PHP."""
    return as_list(given) if isinstance(given, list | dict) else []


def _result(call: Call, name: str, operation: Operation, item: Any) -> Any:
    """Return the object of an item, or its error. A failed item changes nothing."""
    item_id = 0
    try:
        if name == "delete":
            item_id, item = _id_of(item), {"force": True}
        elif not isinstance(item, dict):
            item = {}
        if name == "update":
            item_id = _id_of(item.get("id"))
        return run_in_transaction(
            lambda session: _in_savepoint(session, call, operation, item, item_id)
        )
    except errors.FAILURES as error:
        failed = errors.as_rest_error(error)
        if name == "update" and failed.status == 404 and failed.code.startswith("woocommerce"):
            failed = failed.with_status(400)
    except RestError as error:
        failed = error
    return {"id": item_id, "error": failed.body}


def _in_savepoint(
    session: Any, call: Call, operation: Operation, item: Mapping[str, Any], item_id: int
) -> Any:
    with savepoint(session):
        ids = {"id": item_id} if item_id or operation.action != "create" else {}
        args, given = checked_arguments(operation.args, item, ids)
        if not call.actor.can(*operation.needs):
            raise errors.forbidden(operation.action, is_known=True)
        return operation.call(
            replace(call, ids=ids, args=args, given=given, fields=frozenset())
        ).body


def _id_of(value: Any) -> int:
    """Return an ID, of a number or a text; 0 for another value."""
    try:
        number: int = checked(arg.INTEGER, value, "id")
    except Problem:
        return 0
    return max(number, 0)
