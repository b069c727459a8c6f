"""What is added to every order that the service answers (spec 1, 2.3).

Our own views read orders through an ``OrderView``, which extends them on their way to JSON. The
orders of everybody else, a plugin's or a plain Flask view's, are found in the finished response.
Either way an extension is asked once, with all orders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import marshmallow as ma
import orjson
from flask import Response, current_app, g, request

from app.plugins import registry
from app.schemas.orders import OrderSchema
from app.schemas.queries import FieldList
from app.serializers import Serializer, narrowed
from app.services.orders import COLUMNS

Selection = Mapping[str, Any] | None
Place = tuple[str, ...]

ORDER = Serializer(OrderSchema, COLUMNS)
WRAPPERS: tuple[Place, ...] = (("order",), ("orders",))
_MAY_HOLD_ORDERS = re.compile(rb'"orders?"\s*:')


class OrderView:
    """Turns rows into the orders of a response, extended, as far as ``fields`` selected them."""

    def __init__(self, selection: Selection) -> None:
        extensions = registry().order_extensions
        self._selection = selection
        self._extends = selection is None or not extensions.keys().isdisjoint(selection)
        # An extension sees whole orders, also when the client wants little of them.
        self._view = ORDER if self._extends else ORDER.only(selection)
        self.columns = self._view.columns
        g.orders_are_extended = True

    def rows(self, rows: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the orders of several rows."""
        orders = self._view.rows(rows)
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

    What is no JSON, an error or streamed passes untouched, and so does a key ``order`` whose value
    is no order.
    """
    if (
        g.get("orders_are_extended")
        or response.is_streamed
        or response.status_code >= 300
        or not response.is_json
    ):
        return response
    view = current_app.view_functions.get(request.endpoint or "")
    places = getattr(view, "order_places", WRAPPERS)
    data = response.get_data()
    if places == WRAPPERS and not _MAY_HOLD_ORDERS.search(data):
        return response
    try:
        body = orjson.loads(data)
    except ValueError:
        return response
    orders = [order for place in places for order in _orders_at(body, place)]
    if orders:
        selection = FieldList().deserialize(request.args.get("fields"))
        _extend(orders, orders, selection if request.method in {"GET", "HEAD"} else None)
        response.set_data(current_app.json.dumps(body))
    return response


def order_places(schema: Any, above: Place = ()) -> Iterator[Place]:
    """Return where a response schema holds orders: the names on the way to each OrderSchema."""
    schema = schema() if isinstance(schema, type) else schema
    if isinstance(schema, OrderSchema):
        yield above
    elif isinstance(schema, ma.Schema):
        for name, field in schema.fields.items():
            inner = field.inner if isinstance(field, ma.fields.List) else field
            if isinstance(inner, ma.fields.Nested) and len(above) < 3:
                yield from order_places(inner.schema, (*above, field.data_key or name))


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


def _orders_at(body: Any, place: Place) -> list[dict[str, Any]]:
    """Return the orders in a body; none unless everything at the place is an order."""
    for name in place:
        body = body.get(name) if isinstance(body, dict) else None
    found = body if isinstance(body, list) else [body]
    return found if all(_is_order(value) for value in found) else []


def _is_order(value: Any) -> bool:
    return isinstance(value, dict) and all(
        type(value.get(key)) is int and value[key] >= 0 for key in ("id", "customer_id")
    )
