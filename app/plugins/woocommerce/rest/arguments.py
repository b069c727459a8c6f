"""Arguments of operations as JSON Schema: their validation and conversion, as in WordPress.

One table of arguments serves requests, ``OPTIONS`` and the OpenAPI document. Some keys are not JSON
Schema: ``is_checked=False`` only converts a list of IDs, ``null_is_valid=False`` rejects null,
``is_nullable=True`` accepts null in an object, where it means that the value is not sent,
``is_absolute=True`` drops a minus sign, ``note`` is added to the message about a value that is not
in an ``enum``, ``prefix`` is what a value in it can begin with, and ``read`` is a function that
returns a value in the form of the schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from app.conversions.dates import with_plus
from app.conversions.emails import is_email
from app.conversions.metadata import contains_nul
from app.conversions.numbers import INT64_MAX
from app.schemas.reports import LAST_YEAR

Schema = Mapping[str, Any]
Arguments = Mapping[str, Schema]

INTEGER: Schema = {"type": "integer"}
OPTIONAL_INTEGER: Schema = {**INTEGER, "is_nullable": True}
ABSOLUTE: Schema = {"type": "integer", "is_absolute": True}
DECIMALS: Schema = {**ABSOLUTE, "default": 2}
MAX_DECIMALS = 8
TEXT: Schema = {"type": "string"}
BOOLEAN: Schema = {"type": "boolean"}
IDS: Schema = {"type": "array", "items": INTEGER, "default": [], "is_checked": False}
INTEGERS: Schema = {"type": "array", "items": INTEGER}
MONEY: Schema = {"type": ["number", "string"], "format": "money"}
DATE: Schema = {"type": "string", "format": "date-time", "read": with_plus}
ANYTHING: Schema = {}
CONTEXT: Schema = {"type": "string", "enum": ["view", "edit"], "default": "view"}
FORCE: Schema = {"type": "boolean", "default": False}
METADATA: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"id": OPTIONAL_INTEGER, "key": TEXT, "value": ANYTHING},
    },
}
ONE: Arguments = {"context": CONTEXT}
VIEW: Arguments = {"context": {**CONTEXT, "enum": ["view"]}}
"""The parameters of records that nobody can change."""

_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?\s*", re.ASCII)
_MONEY = re.compile(r"-?\d*(\.\d*)?", re.ASCII)
_DATE_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}(:\d{2})?)?", re.ASCII
)


class Problem(Exception):
    """Why a value is invalid: a code of WordPress, and a reason that names the argument."""

    def __init__(self, code: str, message: str, data: object = None) -> None:
        self.code, self.data = code, data
        super().__init__(message)


def checked(schema: Schema, value: Any, name: str) -> Any:
    """Return a value in the type of its schema.

    Args:
        schema: the schema of the argument.
        value: text of a query or a form, or a value of a JSON body.
        name: the name for the message, such as ``line_items[0][total]``.

    Raises:
        Problem: the value is invalid.
    """
    if value is None and schema.get("is_nullable"):
        return None
    if "type" not in schema:
        _require_no_nul(value, name)
        return value
    if "read" in schema:
        value = schema["read"](value)
    if not schema.get("is_checked", True):
        return [abs(_integer(each)) for each in as_list(value)]
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    if schema.get("format") == "money" and isinstance(value, str):
        types = ["string"]  # a number such as 1e2 is not an amount as text
    found = next((each for each in types if _CHECKS[each](value)), None)
    if found is None:
        message = f"{name} is not of type {','.join(types)}."
        raise Problem("rest_invalid_type", message, {"param": name})
    if found == "array":
        items = schema.get("items", {})
        return [checked(items, each, f"{name}[{at}]") for at, each in enumerate(as_list(value))]
    if found == "object":
        inner, given = schema.get("properties", {}), value or {}
        known = [key for key in inner if key in given]
        return given | {key: checked(inner[key], given[key], f"{name}[{key}]") for key in known}
    shown = _converted(schema, found, value)
    _check(schema, found, shown, name)
    _require_no_nul(shown, name)
    return shown


def _require_no_nul(value: object, name: str) -> None:
    if contains_nul(value):
        raise Problem("rest_invalid_param", f"{name} must not contain a NUL character.")


def _converted(schema: Schema, kind: str, value: object) -> object:
    """Return a number or a flag in its type, and other values as they are."""
    if kind == "integer":
        number = _integer(value)
        return abs(number) if schema.get("is_absolute") else number
    if kind == "boolean":
        return value if isinstance(value, bool) else str(value).lower() in {"1", "true"}
    return value


def _check(schema: Schema, kind: str, value: Any, name: str) -> None:
    """Raise Problem unless a converted value is allowed."""
    allowed = enum_of(schema)
    own = value.removeprefix(schema["prefix"]) if "prefix" in schema else value
    if allowed and own is not None and own not in allowed:
        reason = f"{name} is not {'one of ' * (len(allowed) > 1)}{listed(allowed)}."
        raise Problem("rest_not_in_enum", f"{reason} {schema.get('note', '')}".strip())
    if kind in {"integer", "number"} and (reason := _out_of_bounds(schema, value)):
        raise Problem("rest_out_of_bounds", f"{name} must be {reason}")
    if kind != "string":
        return
    form = schema.get("format")
    if form == "date-time" and not is_date_time(value):
        raise Problem("rest_invalid_date", "Invalid date.")
    if form == "email" and not is_email(value):
        raise Problem("rest_invalid_email", "Invalid email address.")
    if form == "money" and not (_MONEY.fullmatch(value) and value not in {"-", ".", "-."}):
        raise Problem("rest_invalid_pattern", f"{name} is not a decimal number such as 12.50.")
    if form == "report-date" and not _is_date(value):
        raise Problem("woocommerce_rest_invalid_date", "The date you provided is invalid.")
    if len(value) > schema.get("maxLength", len(value)):
        reason = f"must be at most {schema['maxLength']} characters long."
        raise Problem("rest_too_long", f"{name} {reason}")


def enum_of(schema: Schema) -> list[object]:
    """Return the values of an argument; a function returns those that plugins extend."""
    values = schema.get("enum", ())
    return list(values() if callable(values) else values)


def _out_of_bounds(schema: Schema, number: object) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None and not low <= number <= high:
        return f"between {low} (inclusive) and {high} (inclusive)"
    if high is None and low is not None and number < low:
        return f"greater than or equal to {low}"
    return ""


def listed(values: Iterable[object]) -> str:
    """Return values as an English list: ``a, b, and c``."""
    *others, last = map(str, values)
    if not others:
        return last
    return f"{', '.join(others)}{',' if len(others) > 1 else ''} and {last}"


def _integer(value: object) -> int:
    """Return the integer of a number or a text; 0 for a text that is not a number."""
    text = str(value)
    if not _NUMBER.fullmatch(text):
        return 0
    number = Decimal(text.strip())
    # Python does not write thousands of digits. PHP's integers end here, too.
    return int(max(min(number, Decimal(INT64_MAX)), Decimal(-INT64_MAX)))


def as_list(value: object) -> list[object]:
    """Return a list, the items of a comma-separated text, or a scalar in a list.

    ``{}`` is an empty list, as in PHP.
    """
    if isinstance(value, list | dict):
        return list(value.values() if isinstance(value, dict) else value)
    if isinstance(value, str):
        return [each for each in re.split(r"[\s,]+", value) if each]
    return [value]


def is_date_time(text: str) -> bool:
    """Return whether a text is a date and a time of RFC 3339, with or without a zone."""
    if not _DATE_TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text.upper())
    except ValueError:
        return False
    return True


def _is_date(text: str) -> bool:
    try:
        is_date = re.fullmatch(r"\d{4}-\d{2}-\d{2}", text)
        return bool(is_date) and date.fromisoformat(text).year <= LAST_YEAR
    except ValueError:
        return False


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        return bool(_NUMBER.fullmatch(value))
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    if not _is_number(value):
        return False
    number = Decimal(str(value).strip())
    return number == number.to_integral_value()


def _is_boolean(value: object) -> bool:
    if isinstance(value, str):
        return value.lower() in {"true", "false", "0", "1"}
    return isinstance(value, bool) or (isinstance(value, int) and value in {0, 1})


_CHECKS: Mapping[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": _is_integer,
    "number": _is_number,
    "boolean": _is_boolean,
    "array": lambda value: isinstance(value, list | str | int | Decimal | bool) or value == {},
    "object": lambda value: isinstance(value, dict) or value in ([], ""),
    "null": lambda value: value is None or value == "",
    "mixed": lambda _: True,
}
_CHECKS = {**_CHECKS, "date-time": _CHECKS["string"]}


def described(arguments: Arguments) -> dict[str, object]:
    """Return arguments as ``OPTIONS`` shows them."""
    return {name: {"required": False, **_public(each)} for name, each in arguments.items()}


_PRIVATE = {"is_checked", "is_nullable", "is_absolute", "null_is_valid", "note", "prefix", "read"}


def _public(schema: Schema) -> dict[str, object]:
    shown = {name: value for name, value in schema.items() if name not in _PRIVATE}
    if shown.get("format") in {"money", "report-date"}:
        del shown["format"]
    if "enum" in shown:
        shown["enum"] = enum_of(schema)
    if "items" in shown:
        shown["items"] = _public(shown["items"])
    for name, each in shown.get("properties", {}).items():
        shown["properties"] = {**shown["properties"], name: _public(each)}
    return shown
