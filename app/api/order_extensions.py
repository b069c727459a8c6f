"""What is added to every order that the service answers (spec 1, 2.3).

Our own views read orders through an ``OrderView``, which extends them on their way to JSON. The
orders of all other views, a plugin's or a plain Flask view's, are found in the finished response,
and the new keys are inserted into its text. Either way an extension is called once for all orders
of a response, or of a batch of a long list.
"""

from __future__ import annotations

import json
import json.decoder
import json.scanner
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import marshmallow as ma
from flask import Response, current_app, request

from app.api.serializers import Serializer, narrowed
from app.db.session import reading_own_writes
from app.errors import InvalidParams
from app.plugins import registry
from app.schemas.orders import OrderSchema
from app.schemas.parameters import FieldList
from app.services.order_queries import COLUMNS

Selection = Mapping[str, Any] | None

ORDER = Serializer(OrderSchema, COLUMNS)
_KNOWN = "shop_api_views_with_orders"  # on app.extensions
_MAY_HOLD_ORDERS = re.compile(rb'"orders?"\s*:')
_NOT_BLANK = re.compile(r"[^ \t\n\r]")
_PARTIAL = 206

# They describe the body that the view wrote. A part of it cannot be asked for any more, either.
_OF_ANOTHER_BODY = (
    "Accept-Ranges",
    "Content-Digest",
    "Content-MD5",
    "Digest",
    "ETag",
    "Last-Modified",
    "Repr-Digest",
)


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
    """Insert the extensions into the orders of a response that another view made.

    Where the view is documented with an OrderSchema, orders are wherever the body holds them;
    elsewhere they are under the wrapper keys ``order`` and ``orders``. All other bytes of the body
    stay as the view wrote them. A response that is an error, streamed, partial, compressed or not
    JSON passes unchanged, and so does a key ``order`` whose value is no order.

    Raises:
        InvalidParams: ``fields`` cannot be read.
    """
    documented = _is_documented_with_orders()
    if documented is None or not _is_whole_json(response):
        return response
    data = response.get_data()
    if not documented and not _MAY_HOLD_ORDERS.search(data):
        return response
    select: Any = _orders_in if documented else _wrapped_orders
    try:
        text = data.decode()
        # Python's scanner, which knows the places, is slow: most bodies hold no orders at all.
        if not any(select(json.loads(text, parse_int=_integer))):
            return response
        orders = list(select(_Decoder().decode(text)))
    except (ValueError, RecursionError):
        return response
    selection = None
    if request.method in {"GET", "HEAD"}:
        try:
            selection = FieldList().deserialize(request.args.get("fields"))
        except ma.ValidationError as error:
            raise InvalidParams({"fields": " ".join(map(str, error.messages))}) from None
    new: list[dict[str, Any]] = [{} for _ in orders]
    _extend(new, orders, selection)
    response.set_data(_with_members(text, orders, new))  # with its Content-Length
    for name in _OF_ANOTHER_BODY:
        response.headers.pop(name, None)
    return response


def _is_whole_json(response: Response) -> bool:
    """Return whether the body is in memory, whole, uncompressed JSON of a success."""
    return (
        response.status_code < 300
        and response.status_code != _PARTIAL
        and response.is_json
        and not response.is_streamed
        and not response.direct_passthrough
        and response.headers.get("Content-Encoding", "identity").strip().lower() == "identity"
    )


class _Object(dict[str, Any]):
    """An object of a JSON text, with the places of its braces."""

    start: int
    end: int


class _Decoder(json.JSONDecoder):
    """Decodes JSON into objects that know their places.

    Python's own scanner calls ``parse_object`` for each object; the one in C does not.
    """

    def __init__(self) -> None:
        super().__init__(parse_int=_integer)
        self.parse_object = self._parse_object
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]  # typeshed lacks it

    def _parse_object(self, text_and_place: tuple[str, int], *args: Any) -> tuple[_Object, int]:
        parsed, end = json.decoder.JSONObject(text_and_place, *args)  # type: ignore[attr-defined]  # typeshed lacks it
        found = _Object(parsed)
        found.start, found.end = text_and_place[1] - 1, end - 1
        return found, end


def _integer(digits: str) -> int | Decimal:
    """Return a number, also one with more digits than Python converts to an int."""
    try:
        return int(digits)
    except ValueError:
        return Decimal(digits)


def _with_members(
    text: str, objects: Sequence[_Object], members: Sequence[Mapping[str, Any]]
) -> str:
    """Return a JSON text in which some objects, in any order, have other members at their end.

    Members that an object has already under these names are removed.
    """
    edits: list[tuple[int, int, str]] = []  # from, to, and what takes the place of that
    for found, new in zip(objects, members, strict=True):
        if not found.keys().isdisjoint(new):
            edits.extend((*place, "") for place in _places_of(text, found, new))
        if new:
            written = ",".join(
                f"{json.dumps(name)}:{current_app.json.dumps(value)}" for name, value in new.items()
            )
            end = len(text[found.start : found.end].rstrip(" \t\n\r")) + found.start
            edits.append((end, end, f",{written}"))
    pieces, done = [], 0
    for start, end, replacement in sorted(edits):
        pieces += [text[done:start], replacement]
        done = end
    return "".join([*pieces, text[done:]])


def _places_of(text: str, found: _Object, names: Container[str]) -> Iterator[tuple[int, int]]:
    """Return the places of some members of an object, each with the comma that goes with it.

    The object keeps another member: an order keeps its id.
    """
    decode = json.JSONDecoder(parse_int=_integer).raw_decode
    members: list[tuple[str, int, int]] = []
    at = _after_blanks(text, found.start + 1)
    while at < found.end:
        start = at
        name, at = decode(text, at)
        _, at = decode(text, _after_blanks(text, _after_blanks(text, at) + 1))  # after the colon
        members.append((name, start, at))
        at = _after_blanks(text, _after_blanks(text, at) + 1)  # after the comma
    kept_one = False
    for place, (name, start, end) in enumerate(members):
        if name not in names:
            kept_one = True
        elif kept_one:
            yield members[place - 1][2], end  # from the comma before it
        else:
            yield start, members[place + 1][1]  # to the comma after it


def _after_blanks(text: str, at: int) -> int:
    found = _NOT_BLANK.search(text, at)
    return found.start() if found else len(text)


def _is_documented_with_orders() -> bool | None:
    """Tell whether a response schema of the current view holds an OrderSchema, anywhere in it.

    None where the blueprint declares that its views extend their orders themselves.
    """
    known: dict[tuple[str | None, str], bool | None]
    known = current_app.extensions.setdefault(_KNOWN, {})
    operation = request.endpoint, request.method
    if operation not in known:
        blueprint = current_app.blueprints.get(request.blueprint or "")
        if getattr(blueprint, "extends_orders", False):
            known[operation] = None
            return None
        view: Any = current_app.view_functions.get(request.endpoint or "")
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
