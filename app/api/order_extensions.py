"""What is added to every order that the service answers (spec 1, 2.3).

Our own views read orders through an ``OrderView``, which extends them on their way to JSON. The
orders of everybody else, a plugin's or a plain Flask view's, are found in the finished response.
Either way an extension is asked once for all orders of a response, or of a batch of a long list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import marshmallow as ma
from flask import Response, current_app, request

from app.api.serializers import Serializer, narrowed
from app.db.session import reading_own_writes
from app.plugins import registry
from app.schemas.orders import OrderSchema
from app.schemas.parameters import FieldList
from app.services.order_queries import COLUMNS

Selection = Mapping[str, Any] | None

ORDER = Serializer(OrderSchema, COLUMNS)
_KNOWN = "shop_api_views_with_orders"  # on app.extensions
_OWN = "app.blueprints."
_MAY_HOLD_ORDERS = re.compile(rb'"orders?"\s*:')


class OrderView:
    """Turns rows into the orders of a response, extended, as far as ``fields`` selected them.

    Args:
        selection: what ``fields`` selected; None for everything.
        serializer: of a schema of orders.
    """

    def __init__(self, selection: Selection, serializer: Serializer = ORDER) -> None:
        extensions = registry().order_extensions
        self._selection = selection
        self._extends = selection is None or not extensions.keys().isdisjoint(selection)
        # An extension sees whole orders, also when the client wants little of them.
        self._view = serializer if self._extends else serializer.only(selection)
        self.columns = self._view.columns

    def rows(self, rows: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the orders of several rows."""
        return self._extended(self._view.rows(rows))

    def records(self, records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the orders of records that are known by their column names.

        In a transaction, what extends them is read as it is there.
        """
        with reading_own_writes():
            return self._extended([self._view.record(record) for record in records])

    def _extended(self, orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if not self._extends:
            return orders
        results = [dict(narrowed(order, self._selection)) for order in orders]
        _extend(results, orders, self._selection)
        return results

    def row(self, row: Any) -> dict[str, Any]:
        """Return the order of one row."""
        return self.rows([row])[0]


def extend_response(response: Response) -> Response:
    """Extend the orders in a response that a view made by other means.

    Where the view is documented with an OrderSchema, they are wherever the body holds orders;
    elsewhere they are under the wrapper keys ``order`` and ``orders``. What is no JSON, an error
    or streamed passes untouched, and so does a key ``order`` whose value is no order. Views of our
    own leave none for here.
    """
    documented = _is_documented_with_orders()
    if (
        documented is None
        or response.status_code >= 300
        or response.is_streamed
        or not response.is_json
    ):
        return response
    data = response.get_data()
    if not documented and not _MAY_HOLD_ORDERS.search(data):
        return response
    try:
        body = json.loads(data)  # keeps integers beyond 64 bits
    except ValueError:
        return response
    if orders := list(_orders_in(body)) if documented else _wrapped_orders(body):
        selection = FieldList().deserialize(request.args.get("fields"))
        _extend(orders, orders, selection if request.method in {"GET", "HEAD"} else None)
        response.set_data(current_app.json.dumps(body))
        response.headers.pop("ETag", None)  # it was of another body
    return response


def _is_documented_with_orders() -> bool | None:
    """Tell whether a response schema of the current view holds an OrderSchema, anywhere in it.

    None of a view of our own, which extends the orders that it answers itself.
    """
    known: dict[tuple[str | None, str], bool | None]
    known = current_app.extensions.setdefault(_KNOWN, {})
    operation = request.endpoint, request.method
    if operation not in known:
        view: Any = current_app.view_functions.get(request.endpoint or "")
        if view is not None and view.__module__.startswith(_OWN):
            known[operation] = None
            return None
        method = getattr(view, "view_class", None)  # flask-smorest documents a class by methods
        view = getattr(method, request.method.lower(), view)
        responses = getattr(view, "_apidoc", {}).get("response", {}).get("responses", {})
        known[operation] = any(
            _holds_orders(doc.get("schema"), frozenset())
            for docs in responses.values()
            for doc in docs
            if isinstance(doc, dict)
        )
    return known[operation]


def _holds_orders(part: Any, seen: frozenset[type]) -> bool:
    """Tell whether a schema or a field is, or holds, an OrderSchema."""
    if isinstance(part, ma.fields.Nested):
        part = part.schema
    if isinstance(part, ma.fields.List):
        return _holds_orders(part.inner, seen)
    if isinstance(part, ma.fields.Dict):
        return _holds_orders(part.value_field, seen)
    if isinstance(part, OrderSchema):
        return True
    if not isinstance(part, ma.Schema) or type(part) in seen:
        return False
    return any(_holds_orders(field, seen | {type(part)}) for field in part.fields.values())


def _orders_in(body: Any) -> Iterator[dict[str, Any]]:
    """Return every order in a body, however deep."""
    if _is_order(body):
        yield body
    elif isinstance(body, dict | list):
        for inner in body.values() if isinstance(body, dict) else body:
            yield from _orders_in(inner)


def _wrapped_orders(body: Any) -> list[dict[str, Any]]:
    """Return the orders under the wrapper keys; none of a list that holds anything else."""
    if not isinstance(body, dict):
        return []
    lists = [[body["order"]]] if "order" in body else []
    if isinstance(body.get("orders"), list):
        lists.append(body["orders"])
    return [order for orders in lists if all(map(_is_order, orders)) for order in orders]


def _is_order(value: Any) -> bool:
    return isinstance(value, dict) and all(
        type(value.get(key)) is int and value[key] >= 0 for key in ("id", "customer_id")
    )


def _extend(
    results: Sequence[dict[str, Any]], orders: Sequence[dict[str, Any]], selection: Selection
) -> None:
    """Add to each result what the extensions make of its order, as far as ``fields`` selected it.

    The extension that came first comes last in an order: ``customer`` is the last key.
    """
    for extension in reversed(registry().order_extensions.values()):
        if selection is not None and extension.key not in selection:
            continue
        inner = None if selection is None else selection[extension.key]
        values = extension.values(orders)
        for result, value in zip(results, values, strict=True):
            result.pop(extension.key, None)  # whoever wrote one by hand: it goes to its place
            result[extension.key] = narrowed(value, inner)
