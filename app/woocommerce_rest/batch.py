"""Batches: creates, updates and deletions in one request, each checked like a single one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.auth.principals import Capability
from app.conversions.numbers import INT64_MAX
from app.db.session import run_in_transaction, savepoint
from app.errors import ShopError
from app.woocommerce_rest import errors
from app.woocommerce_rest.errors import RestError
from app.woocommerce_rest.frame import EDITABLE, Call, Operation, Reply, Route, checked_arguments
from app.woocommerce_rest.lists import ANYTHING

LIMIT = 100

Run = Callable[[Call], Reply]


def batch_route(route: Route, item: Route) -> Route:
    """Return the route of batches of a resource.

    Args:
        route: the route with the create.
        item: the route with the update and the deletion.
    """
    create, edit = route.operations["POST"], item.operations["EDIT"]
    delete = item.operations["DELETE"]
    any_of: Sequence[Capability] = tuple(
        {need for each in (create, edit, delete) for need in each.needs[:1]}
    )
    operation = Operation(
        lambda call: _run(call, create, edit, delete),
        "batch",
        any_of,
        {"create": ANYTHING, "update": ANYTHING, "delete": ANYTHING},
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
    results: dict[str, list[Any]] = {}
    operations = {"create": create, "update": edit, "delete": delete}
    for name, items in lists.items():
        if items:
            results[name] = [_result(call, name, operations[name], item) for item in items]
    return Reply(results or [])


def _items(given: Any) -> list[Any]:
    return given if isinstance(given, list) else []


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
    except ShopError as error:
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
    text = str(value)
    return min(int(text), INT64_MAX) if text.isascii() and text.isdigit() else 0


METHODS = EDITABLE
