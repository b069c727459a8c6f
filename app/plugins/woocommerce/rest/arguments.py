"""Arguments of operations as fields of marshmallow: their check and conversion as in WordPress.

The same schemas serve requests, ``OPTIONS`` and the OpenAPI document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import marshmallow as ma

from app.conversions.dates import parse_date, with_plus
from app.conversions.emails import is_email
from app.conversions.metadata import contains_nul
from app.conversions.numbers import INT64_MAX, MAX_COUNT
from app.plugins.woocommerce.rest.schemas import Field
from app.schemas.base import Base, made_schema
from app.schemas.fields.given import load_given
from app.schemas.fields.json_schema import COMPONENT, LONG_TEXT_MAX_LENGTH, TEXT_MAX_LENGTH
from app.schemas.reports import LAST_YEAR

Arguments = Mapping[str, Field]
Schema = dict[str, Any]
"""A JSON Schema."""

_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?\s*", re.ASCII)
_MONEY = re.compile(r"-?\d*(\.\d*)?", re.ASCII)
_TOO_MUCH, _BEYOND = Decimal(10) ** 16, Decimal(INT64_MAX + 1)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DATE_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}(:\d{2})?)?", re.ASCII
)


class Problem(ma.ValidationError):
    """Why a value is invalid: a code of WordPress, and a reason.

    In the reason of an argument, ``{}`` is the name, such as ``line_items[0][total]``.
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code, self.messages = code, [self]  # which marshmallow collects


def _wrong_type(*kinds: str) -> Problem:
    return Problem("rest_invalid_type", f"{{}} is not of type {','.join(kinds)}.")


class _Value(Field):
    """What all arguments have: the error of WordPress for null. They need no validators."""

    kinds: tuple[str, ...] = ()  # types of JSON
    null_is_valid = True

    def deserialize(self, value: object, *_: object, **__: object) -> Any:
        """Return a converted value, or raise ValidationError."""
        if value is None and not self.allow_none:
            raise _wrong_type(*self.kinds)
        return None if value is None else self._deserialize(value, None, None)


class Argument(_Value):
    """Number, flag, text, or a value of any type.

    Args:
        kinds: types of JSON that a value can have. Without, it can have any value.
        null_is_valid: whether null means that the argument is not sent.
        is_absolute: drops a minus sign.
        note: added to the message about a value that is not in ``enum``.
        prefix: what a value in ``enum`` can begin with.
        component: the name of ``enum`` in the OpenAPI document.
        shown: further keys of JSON Schema. ``enum`` can be a function, whose values plugins extend.
    """

    def __init__(self, *kinds: str, required: bool = False, **shown: Any) -> None:
        default = shown.get("default", ma.missing)
        super().__init__(required=required, load_default=default, allow_none=not kinds)
        self.null_is_valid = shown.pop("null_is_valid", True)
        self.is_absolute: bool = shown.pop("is_absolute", False)
        self.note: str = shown.pop("note", "")
        self.prefix: str = shown.pop("prefix", "")
        self.component: str = shown.pop("component", "")
        self.kinds, self.shown = kinds, shown

    def _deserialize(self, value: Any, *_: object, **__: object) -> Any:
        if self.kinds:
            # A number such as 1e2 is not an amount as text.
            is_text = self.shown.get("format") == "money" and isinstance(value, str)
            kinds = ("string",) if is_text else self.kinds
            kind = next((each for each in kinds if _CHECKS[each](value)), None)
            if kind is None:
                raise _wrong_type(*kinds)
            value = self._converted(kind, value)
            self._check(kind, value)
        if contains_nul(value):
            raise Problem("rest_invalid_param", "{} must not contain a NUL character.")
        return value

    def _converted(self, kind: str, value: object) -> object:
        """Return a number or a flag in its type, and other values as they are."""
        if kind == "integer":
            return abs(_integer(value)) if self.is_absolute else _integer(value)
        if kind == "boolean":
            return value if isinstance(value, bool) else str(value).lower() in {"1", "true"}
        return with_plus(value) if self.shown.get("format") == "date-time" else value

    def _check(self, kind: str, value: Any) -> None:
        """Raise Problem unless a converted value is allowed."""
        allowed, most = self.enum, self.shown.get("maxLength")
        own = value.removeprefix(self.prefix) if self.prefix else value
        if allowed and own is not None and own not in allowed:
            reason = f"{{}} is not {'one of ' * (len(allowed) > 1)}{listed(allowed)}."
            raise Problem("rest_not_in_enum", f"{reason} {self.note}".strip())
        if kind in {"integer", "number"} and (reason := self._out_of_bounds(value)):
            raise Problem("rest_out_of_bounds", f"{{}} must be {reason}")
        form = self.shown.get("format", "")
        if kind == "string":
            if most is not None and len(value) > most:
                raise Problem("rest_too_long", f"{{}}: is longer than {most:,} characters.")
            is_valid, *problem = _FORMATS.get(form, (bool,))
            if problem and not is_valid(value):
                raise Problem(*problem)
        if form == "money" and abs(Decimal(str(value or 0))) >= _TOO_MUCH:
            reason = "{} has more than 16 digits before the decimal point."
            raise Problem("rest_out_of_bounds", reason)

    @property
    def enum(self) -> list[object]:
        """The values that are allowed; empty if all are."""
        values = self.shown.get("enum", ())
        return list(values() if callable(values) else values)

    def _out_of_bounds(self, number: object) -> str:
        low, high = self.shown.get("minimum"), self.shown.get("maximum")
        if low is not None and high is not None and not low <= number <= high:
            return f"between {low} (inclusive) and {high} (inclusive)"
        if high is None and low is not None and number < low:
            return f"greater than or equal to {low}"
        return ""

    @property
    def openapi(self) -> Schema:
        """The JSON Schema in the OpenAPI document. Amounts and dates are described as text."""
        if not self.kinds:
            return {}
        is_nullable = "null" in self.kinds or self.allow_none
        kind = "string" if "string" in self.kinds else self.kinds[0]
        bounds = ("minimum", "maximum", "maxLength")
        found: Schema = {"type": [kind, "null"] if is_nullable else kind}
        found |= {key: self.shown[key] for key in bounds if key in self.shown}
        if self.shown.get("format") == "email":
            found["format"] = "email"
        if self.component:
            found |= {COMPONENT: self.component, "enum": list(map(str, self.enum))}
        return found


class Items(Argument):
    """List of a batch, whose items are checked one by one."""

    def _deserialize(self, value: Any, *_: object, **__: object) -> Any:
        return value


class ListArgument(_Value, ma.fields.List[Any]):
    """List, which can be sent as a text with commas. ``read`` returns it in the form of a list."""

    kinds = ("array",)
    null_is_absent = True  # in the OpenAPI document

    def __init__(self, read: Callable[[Any], Any] | None = None, **shown: Any) -> None:
        super().__init__(shown["items"], load_default=shown.get("default", ma.missing))
        self.read, self.shown = read, shown

    def _deserialize(self, value: object, *_: object, **__: object) -> list[object]:
        value = self.read(value) if self.read else value
        if not (isinstance(value, list | str | int | Decimal | bool) or value == {}):
            raise _wrong_type(*self.kinds)
        return super()._deserialize(as_list(value), None, None)


class ObjectArgument(_Value, ma.fields.Nested):
    """Object whose known fields are converted. Its ``meaning`` is in the OpenAPI document."""

    kinds = ("object",)

    def __init__(self, component: str, meaning: str, **arguments: Field) -> None:
        super().__init__(type(schema(component, meaning, arguments)))

    def _deserialize(self, value: object, *_: object, **__: object) -> dict[str, object]:
        if not isinstance(value, dict):
            if value not in ([], ""):
                raise _wrong_type(*self.kinds)
            return {}
        return value | load_given(self.schema, value)


def schema(name: str, meaning: str, arguments: Arguments) -> Base:
    """Return the schema of arguments, with its name and its meaning in the OpenAPI document."""
    return made_schema(name, meaning, {**arguments, "undocumented": ("context",)})()


def query(arguments: Arguments) -> Base:
    """Return the schema of the arguments of an operation that has no body."""
    return schema("Query", "", arguments)


def choice(component: str, enum: Any, **options: Any) -> Argument:
    """Return the argument of a text that is one of some values, with a name in the document."""
    return Argument("string", component=component, **options, enum=enum)


def nullable(**arguments: Argument) -> dict[str, Field]:
    """Return the arguments of an object in which null means that a value is not sent."""
    copies = {name: copy(each) for name, each in arguments.items()}
    for each in copies.values():
        each.allow_none = True
    return {**copies}


def described(arguments: Base) -> dict[str, object]:
    """Return arguments as ``OPTIONS`` shows them."""
    fields = arguments.fields.items()
    return {name: {"required": each.required, **_shown(each)} for name, each in fields}


def _shown(field: Any) -> Schema:
    if isinstance(field, ObjectArgument):
        parts = {name: _shown(each) for name, each in field.schema.fields.items()}
        return {"type": "object", "properties": parts}
    if isinstance(field, ListArgument):
        return {"type": "array", **field.shown, "items": _shown(field.inner)}
    kinds = field.kinds[0] if len(field.kinds) == 1 else field.kinds
    found: Schema = ({"type": kinds} if kinds else {}) | field.shown
    found.pop("maxLength", None)  # as on the original
    if found.get("format") in {"money", "day", "report-date"}:
        del found["format"]
    return found | ({"enum": field.enum} if "enum" in found else {})


INTEGER = Argument("integer")
COUNT = Argument("integer", minimum=-MAX_COUNT, maximum=MAX_COUNT)
ABSOLUTE = Argument("integer", is_absolute=True)
DECIMALS = Argument("integer", is_absolute=True, default=2)
MAX_DECIMALS = 8
TEXT = Argument("string")
NEEDED = Argument("string", required=True)
NAME = Argument("string", maxLength=TEXT_MAX_LENGTH)
LONG_TEXT = Argument("string", maxLength=LONG_TEXT_MAX_LENGTH)
BOOLEAN = Argument("boolean")
IDS = ListArgument(  # of filters, which find nothing beyond 64 bits
    lambda value: [min(abs(_integer(each)), INT64_MAX) for each in as_list(value)],
    items=INTEGER,
    default=[],
)
INTEGERS = ListArgument(items=INTEGER)
MONEY = Argument("number", "string", format="money", maxLength=TEXT_MAX_LENGTH)
DAY = Argument("null", "string", format="day")
DATE = Argument("string", format="date-time")
ANYTHING = Argument()
CONTEXT = Argument("string", enum=["view", "edit"], default="view")
FORCE = Argument("boolean", default=False)
_ENTRY = ObjectArgument(
    "MetadataCreate",
    "Entry of metadata to write.",
    **nullable(id=INTEGER),
    key=TEXT,
    value=ANYTHING,
)
METADATA = ListArgument(items=_ENTRY)
ONE: Arguments = {"context": CONTEXT}
VIEW: Arguments = {"context": Argument("string", enum=["view"], default="view")}
"""The parameters of records that nobody can change."""


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
    # Python does not write thousands of digits. Services reject what 64 bits cannot store.
    return int(max(min(number, _BEYOND), -_BEYOND))


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
    return bool(_DATE_TIME.fullmatch(text)) and _year(text.upper()) > 0


def _is_day(text: str) -> bool:
    """Return whether a text is a date, or a date and a time, in any form of the native API."""
    try:
        parse_date(text, date(2000, 1, 1))
    except ValueError:
        return is_date_time(text)
    return True


def _year(text: str) -> int:
    """Return the year of a date, or of a date and a time; 0 for another text."""
    try:
        return datetime.fromisoformat(text).year
    except ValueError:
        return 0


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
    "null": lambda value: value is None or value == "",
}
_FORMATS: Mapping[str, tuple[Callable[[str], bool], str, str]] = {
    "date-time": (is_date_time, "rest_invalid_date", "Invalid date."),
    "email": (is_email, "rest_invalid_email", "Invalid email address."),
    "money": (
        lambda text: bool(_MONEY.fullmatch(text)) and text not in {"-", ".", "-."},
        *("rest_invalid_pattern", "{} is not a decimal number such as 12.50."),
    ),
    "day": (_is_day, "rest_invalid_date", "Invalid date."),
    "report-date": (
        lambda text: bool(_DATE.fullmatch(text)) and 0 < _year(text) <= LAST_YEAR,
        *("woocommerce_rest_invalid_date", "The date you provided is invalid."),
    ),
}
