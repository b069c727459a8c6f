"""Extension of all orders in responses (spec 1, 2.3).

The views of the core use an ``OrderSerializer`` (``api/representations.py``), which extends orders
before they are converted to JSON. For other views, of plugins or of plain Flask, the orders are
found in the finished response, and the new keys are inserted into its text. In both cases, an
extension is called once for all orders of a response or of a batch of a long list.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import marshmallow as ma
from flask import Response, current_app, request

from app.api.dialect import Dialect, current_dialect
from app.api.error_handlers import handle_exception
from app.api.json_text import PositionDecoder, insert_members, parse_integer
from app.api.serializers import Object, Selection, narrowed
from app.api.view_docs import response_schemas
from app.catalog import current_catalog
from app.errors import InvalidParams, joined
from app.schemas.fields.query import FieldList
from app.schemas.orders.order import OrderSchema

_MAY_CONTAIN_ORDERS = re.compile(rb'"orders?"\s*:')
_PARTIAL = 206

# Headers that describe the body of the view, and Accept-Ranges, because ranges no longer work.
_BODY_HEADERS = (
    "Accept-Ranges",
    "Content-Digest",
    "Content-MD5",
    "Digest",
    "ETag",
    "Last-Modified",
    "Repr-Digest",
)


def extend_response(response: Response) -> Response:
    """Extend the orders in the response of any view that does not extend them itself."""
    blueprint = current_app.blueprints.get(request.blueprint or "")
    if getattr(blueprint, "extends_orders", False) or not _is_whole_json(response):
        return response
    try:
        return _with_extensions(response)
    except InvalidParams as error:
        # For Flask, an exception in this hook would be an internal error.
        return handle_exception(error)


def _with_extensions(response: Response) -> Response:
    """Insert the extensions into the orders of a response of another view.

    If the view is documented with an OrderSchema, orders can be anywhere in the body. Otherwise,
    only the wrapper keys ``order`` and ``orders`` are considered. All other bytes of the body
    remain unchanged, as do responses that are errors, streamed, partial, compressed or not JSON,
    and a key ``order`` whose value is not an order.

    Raises:
        InvalidParams: ``fields`` is invalid.
    """
    documented = _is_documented_with_orders()
    data = response.get_data()
    if not documented and not _MAY_CONTAIN_ORDERS.search(data):
        return response
    select: Any = _orders_in if documented else _wrapped_orders
    try:
        text = data.decode()
        # Parse with the fast decoder first, because most bodies contain no orders and the decoder
        # that records positions is slow.
        if not any(select(json.loads(text, parse_int=parse_integer))):
            return response
        orders = list(select(PositionDecoder().decode(text)))
    except (ValueError, RecursionError):
        return response
    selection = None
    if request.method in {"GET", "HEAD"}:
        try:
            selection = FieldList().deserialize(",".join(request.args.getlist("fields")))
        except ma.ValidationError as error:
            raise InvalidParams({"fields": joined(error.messages)}) from None
    new: list[Object] = [{} for _ in orders]
    extend(new, orders, selection, current_dialect())
    response.set_data(insert_members(text, orders, new))  # with its Content-Length
    for name in _BODY_HEADERS:
        response.headers.pop(name, None)
    return response


def _is_whole_json(response: Response) -> bool:
    """Return whether the response is successful, complete, uncompressed JSON in memory."""
    return (
        response.status_code < 300
        and response.status_code != _PARTIAL
        and response.is_json
        and not response.is_streamed
        and not response.direct_passthrough
        and response.headers.get("Content-Encoding", "identity").strip().lower() == "identity"
    )


def _is_documented_with_orders() -> bool:
    """Return whether a response schema of the current view contains an OrderSchema."""
    view: object = current_app.view_functions.get(request.endpoint or "")
    method = getattr(view, "view_class", None)  # flask-smorest documents the methods of a class
    view = getattr(method, request.method.lower(), view)
    return any(_contains_orders(schema, frozenset()) for schema in response_schemas(view))


def _contains_orders(part: object, seen: frozenset[type]) -> bool:
    """Return whether a schema or field is or contains an OrderSchema."""
    if isinstance(part, ma.fields.Nested):
        part = part.schema
    if isinstance(part, ma.fields.List):
        return _contains_orders(part.inner, seen)
    if isinstance(part, ma.fields.Dict):
        return _contains_orders(part.value_field, seen)
    if isinstance(part, OrderSchema):
        return True
    if not isinstance(part, ma.Schema) or type(part) in seen:
        return False
    return any(_contains_orders(field, seen | {type(part)}) for field in part.fields.values())


def _orders_in(body: Any) -> Iterator[dict[str, object]]:
    """Yield all orders in a body at any depth."""
    if _is_order(body):
        yield body
    elif isinstance(body, dict | list):
        for inner in body.values() if isinstance(body, dict) else body:
            yield from _orders_in(inner)


def _wrapped_orders(body: object) -> list[dict[str, object]]:
    """Return the orders under the wrapper keys, except from lists with other values."""
    if not isinstance(body, dict):
        return []
    lists = [[body["order"]]] if "order" in body else []
    if isinstance(body.get("orders"), list):
        lists.append(body["orders"])
    return [order for orders in lists if all(map(_is_order, orders)) for order in orders]


def _is_order(value: object) -> bool:
    return isinstance(value, dict) and all(
        type(value.get(key)) is int and value[key] >= 0 for key in ("id", "customer_id")
    )


def extend(
    results: Sequence[Object], orders: Sequence[Object], selection: Selection, dialect: Dialect
) -> None:
    """Add the selected extensions to each result, which can be the order itself.

    Extensions are added in reverse order of registration, so that ``customer`` is the last key.
    Each one gets the orders without the others.
    """
    added = [
        (extension.key, extension.values_in(dialect.schemas, orders))
        for extension in reversed(current_catalog().order_extensions.values())
        if selection is None or extension.key in selection
    ]
    for key, values in added:
        inner = None if selection is None else selection[key]
        for result, value in zip(results, values, strict=True):
            result.pop(key, None)  # moves an existing key to its position
            result[key] = narrowed(value, inner)
