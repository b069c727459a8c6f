"""Parameters of a request: one parser for bracket names of queries and forms, and JSON bodies."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, urlencode

import orjson
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.wrappers import Request

from app.plugins.woocommerce.rest.arguments import Problem
from app.plugins.woocommerce.rest.errors import RestError, invalid

Names = dict[str, "Names"]

MAX_NAMES, MAX_DEPTH = 1000, 5
"""Names in a query or a form, and brackets in a name."""
MAX_FORM_BYTES = 64 * 1024
"""Size of a form that is read to check its signature."""

_NAME = re.compile(r"([^\[]+)((?:\[[^\]]*\])*)")
_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json\s*(?:;|$)", re.IGNORECASE)
_FORM = re.compile(r"application/x-www-form-urlencoded\s*(?:;|$)", re.IGNORECASE)
_MALFORMED = "Malformed UTF-8 characters, possibly incorrectly encoded"


def nested(text: str) -> dict[str, object]:
    """Parse a query or a form with names such as ``status[]`` and ``billing[city]``.

    A name that occurs twice is a list, as ``status[]`` is.

    Raises:
        RestError: there are too many names, or too many brackets in a name.
    """
    pairs = parse_qsl(text, keep_blank_values=True)
    if len(pairs) > MAX_NAMES:
        raise _invalid("query", f"has more than {MAX_NAMES} names.")
    # Some clients send a parameter twice, once as given and once as signed.
    is_signed = "oauth_signature" in dict(pairs)
    result: dict[str, object] = {}
    for name, value in pairs:
        if not (found := _NAME.match(name)):
            continue
        path = [found[1], *re.findall(r"\[([^\]]*)\]", found[2])]
        if len(path) > MAX_DEPTH + 1:
            raise _invalid(found[1], f"has more than {MAX_DEPTH} brackets.")
        place = result
        for part in path[:-1]:
            place = _inner(place, part or str(len(place)))
        key = path[-1] or str(len(place))
        if key not in place:
            place[key] = value
        elif not (is_signed and place[key] == value):
            inner = _inner(place, key)
            inner[str(len(inner))] = value
    return {name: _with_lists(value) for name, value in result.items()}


def _inner(place: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the object with a key. A value that is there already becomes its first item."""
    if not isinstance(place.get(key), dict):
        place[key] = {"0": place[key]} if key in place else {}
    inner: dict[str, object] = place[key]
    return inner


def _with_lists(value: object) -> object:
    """Return an object whose keys are numbers as a list."""
    if not isinstance(value, dict):
        return value
    inner = {key: _with_lists(each) for key, each in value.items()}
    return list(inner.values()) if all(map(str.isdecimal, inner)) else inner


def written(parameters: Iterable[tuple[str, object]]) -> str:
    """Return parameters as a query with bracket names."""
    return urlencode(list(_pairs(parameters)))


def _pairs(parameters: Iterable[tuple[str, object]]) -> Iterable[tuple[str, str]]:
    for name, value in parameters:
        if isinstance(value, list):
            yield from _pairs((f"{name}[{at}]", each) for at, each in enumerate(value))
        elif isinstance(value, dict):
            yield from _pairs((f"{name}[{key}]", each) for key, each in value.items())
        elif value is not None:
            yield name, str(int(value)) if isinstance(value, bool) else str(value)


def form_of(request: Request) -> str:
    """Return the fields of a form in the body as sent, which belong to an OAuth signature.

    They are read before the caller is known, and therefore only up to MAX_FORM_BYTES.

    Raises:
        RequestEntityTooLarge: the form is larger.
    """
    if request.method in {"GET", "HEAD"} or not _FORM.match(
        request.headers.get("Content-Type", "")
    ):
        return ""
    limit = request.max_content_length
    request.max_content_length = min(limit or MAX_FORM_BYTES, MAX_FORM_BYTES)
    body = _body(request)
    request.max_content_length = limit
    return body.decode("utf-8", "replace")


def _body(request: Request) -> bytes:
    body = request.get_data()
    # For a body without Content-Length, werkzeug reads up to the limit without an error.
    if len(body) >= (request.max_content_length or len(body) + 1) and request.stream.read(1):
        raise RequestEntityTooLarge
    return body


def body_of(request: Request) -> dict[str, object]:
    """Return the parameters in the body. A body of another type than JSON or a form is not read.

    Raises:
        RestError: the JSON is malformed.
    """
    kind = request.headers.get("Content-Type", "")
    if not (_JSON.match(kind) or _FORM.match(kind)):
        return {}
    body = _body(request)
    if _FORM.match(kind):
        return nested(body.decode("utf-8", "replace"))
    if not body.strip():
        return {}
    try:
        orjson.loads(body)  # rejects NaN, lone surrogates and deep nesting
        loaded = json.loads(body, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError):
        is_text = body.decode("utf-8", "ignore").encode() == body
        number, reason = (4, "Syntax error") if is_text else (5, _MALFORMED)
        details = {"json_error_code": number, "json_error_message": reason}
        raise RestError("rest_invalid_json", "Invalid JSON body passed.", 400, details) from None
    return loaded if isinstance(loaded, dict) else {}


def _invalid(name: str, reason: str) -> RestError:
    return invalid({name: Problem("rest_invalid_param", f"{name} {reason}")})


def names_in(fields: object) -> list[str]:
    """Return the names in ``_fields``: a list, or a text with commas."""
    names = fields if isinstance(fields, list) else str(fields or "").split(",")
    return [name for name in (str(each).strip() for each in names) if name]


def selected(body: object, fields: object) -> Any:
    """Return an object or a list with only the fields of ``_fields``, which can have dots."""
    tree: Names = {}
    for name in names_in(fields):
        place = tree
        for part in name.split("."):
            place = place.setdefault(part, {})
    if not tree:
        return body
    if isinstance(body, list):
        return [_pick(each, tree) or [] for each in body]  # an empty object is a list, as in PHP
    return _pick(body, tree)


def _pick(value: object, tree: Names) -> object:
    if not isinstance(value, dict):
        return value
    picked = {}
    for name, each in value.items():
        inner = tree.get(name)
        if inner is None or (inner and not isinstance(each, dict)):
            continue
        picked[name] = _pick(each, inner) if inner else each
    return picked
