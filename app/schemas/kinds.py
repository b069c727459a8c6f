"""What the OpenAPI document says of each kind of value: JSON Schema, as OpenAPI 3.1 writes it.

Whatever an input schema here allows is understood. What the conversions of the specification
forgive beyond that (spec 2.1: "any date string") is told in words, not promised by a pattern.
``app.api.openapi`` writes the same for OpenAPI 3.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.emails import EMAIL_MAX_LENGTH
from app.numbers import INT64_MAX
from app.text import CODE_MAX_LENGTH, USERNAME_MAX_LENGTH

Schema = Mapping[str, Any]

_NO_NUL = r"^[^\u0000]*$"
_DAY = r"[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_ZONE = r"[+-]([01][0-9]|2[0-3]):?[0-5][0-9]"
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]"
_ISO = rf"{_DAY}([T ]{_CLOCK}(:[0-5][0-9](\.[0-9]{{1,9}})?)?(Z|{_ZONE})?)?"
_UNIX = r"-?[0-9]{5,10}"
_MONTH = (
    "(Jan(uary)?|Feb(ruary)?|Mar(ch)?|Apr(il)?|May|June?|July?|Aug(ust)?|Sep(tember)?|Oct(ober)?|"
    "Nov(ember)?|Dec(ember)?)"
)
_WORDED = (
    rf"((Mon|Tue|Wed|Thu|Fri|Sat|Sun), )?(0?[1-9]|[12][0-9]|3[01]) {_MONTH} [1-9][0-9]{{3}}"
    rf"( {_CLOCK}(:[0-5][0-9])?( (GMT|{_ZONE}))?)?"
)
_AMERICAN = r"(0?[1-9]|1[0-2])/(0?[1-9]|[12][0-9]|3[01])/[1-9][0-9]{3}"
_RELATIVE = r"today|tomorrow|yesterday|[+-][0-9]{1,3} (day|week|month|year)s?"

# --- output ---

IDENTIFIER: Schema = {"type": "integer", "format": "int64", "minimum": 0, "examples": [7]}
OPTIONAL_IDENTIFIER: Schema = {"type": ["integer", "null"], "format": "int64", "minimum": 1}
NUMBER: Schema = {"type": "integer", "format": "int64", "minimum": 0}
AMOUNT: Schema = {"type": "string", "pattern": r"^-?[0-9]+\.[0-9]{2}$", "examples": ["10.00"]}
TIMESTAMP: Schema = {"type": "string", "format": "date-time", "examples": ["2026-11-20T09:38:00Z"]}

# --- input ---
# `maxLength` and `maxItems` are the limits of decisions 17; app.schemas.inputs enforces them.

TEXT_MAX_LENGTH = 1000
"""Characters in a name, in a part of an address, and in text that is read as a number or a date."""

LONG_TEXT_MAX_LENGTH = 65_536
"""Characters in a description, and in a password."""

TEXT_IN: Schema = {"type": ["string", "number"], "maxLength": TEXT_MAX_LENGTH, "pattern": _NO_NUL}
CODE_IN: Schema = {
    **TEXT_IN,
    "minLength": 1,
    "maxLength": CODE_MAX_LENGTH,
    "examples": ["summer-2030"],
}
LONG_TEXT_IN: Schema = {**TEXT_IN, "maxLength": LONG_TEXT_MAX_LENGTH}
EMAIL_IN: Schema = {**TEXT_IN, "maxLength": EMAIL_MAX_LENGTH}
ADDRESS_IN: Schema = {**EMAIL_IN, "type": "string", "format": "idn-email"}
USERNAME_IN: Schema = {**TEXT_IN, "maxLength": USERNAME_MAX_LENGTH}
PASSWORD_IN: Schema = {**TEXT_IN, "maxLength": LONG_TEXT_MAX_LENGTH, "format": "password"}
# 16 digits before the point; of the many ways to write an exponent, those that stay below that.
AMOUNT_IN: Schema = {
    "type": ["string", "number"],
    "maxLength": TEXT_MAX_LENGTH,
    "pattern": r"^\s*([+-]?"
    r"(0*[0-9]{1,16}(\.[0-9]*)?|\.[0-9]+|[0-9]{1,7}(\.[0-9]*)?[eE][+-]?[0-9]))?\s*$",
    "exclusiveMinimum": -(10**16),
    "exclusiveMaximum": 10**16,
    "examples": ["10.00"],
}
# The integer that a text begins with; 18 digits are surely within 64 bits.
_LEADING_INTEGER = r"^\s*[+-]?0*[0-9]{0,18}([^0-9\u0000][^\u0000]*)?$"
INTEGER_IN: Schema = {
    "type": ["integer", "number", "string", "boolean"],
    "minimum": -INT64_MAX - 1,
    "maximum": INT64_MAX,
    "maxLength": TEXT_MAX_LENGTH,
    "pattern": _LEADING_INTEGER,
}
COUNT_IN: Schema = {**INTEGER_IN, "minimum": -INT64_MAX}
DAY_IN: Schema = {
    "type": ["string", "integer"],
    "maxLength": TEXT_MAX_LENGTH,
    "pattern": rf"^\s*({_ISO}|{_WORDED}|{_AMERICAN}|{_RELATIVE}|{_UNIX})?\s*$",
    "minimum": 1,
    "maximum": 253402300799,
    "examples": ["2030-12-31", "31 December 2030", "12/31/2030", "+1 month", 1924905600],
}
IDS_IN: Schema = {
    "type": "array",
    "items": {**INTEGER_IN, "type": [*INTEGER_IN["type"], "null"]},
    "maxItems": 10_000,
}
EMAILS_IN: Schema = {
    "type": "array",
    "items": {**EMAIL_IN, "type": ["string", "number", "null"]},
    "maxItems": 1000,
}
TIMESTAMP_IN: Schema = {
    "type": ["string", "integer"],
    "pattern": rf"^({_ISO}|{_UNIX})?$",
    "minimum": -62135596800,
    "maximum": 253402300799,
    "examples": ["2026-11-20T09:38:00Z"],
}
ITEM_ID_IN: Schema = {"type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]{0,18}$"}
REMAINING_IN: Schema = {
    "type": ["integer", "string"],
    "minimum": 0,
    "maximum": INT64_MAX,
    "pattern": "^[0-9]{0,18}$",
    "examples": [3],
}
QUANTITY_IN: Schema = {**INTEGER_IN, "examples": [2]}
CUSTOMER_ID_IN: Schema = {
    "type": ["integer", "string"],
    "minimum": 0,
    "maximum": INT64_MAX,
    "pattern": "^[0-9]{1,18}$",
    "examples": [2],
}
CURRENCY_IN: Schema = {"type": "string", "pattern": "^[A-Za-z]{3}$", "examples": ["EUR"]}
ORDER_NUMBER_IN: Schema = {"type": "string", "minLength": 1, "maxLength": 191, "pattern": _NO_NUL}
RECORD_ID_IN: Schema = {
    "type": ["integer", "string"],
    "minimum": 0,
    "pattern": "^[0-9]*$",
    "maxLength": 4000,
}

# Plugins add coupon types and order statuses; ``app.api.openapi`` writes the known ones at the end.
KNOWN = "x-known"
KNOWN_ORDER_STATUS: Schema = {"type": "string", KNOWN: "order_statuses"}
KNOWN_COUPON_TYPE: Schema = {"type": "string", KNOWN: "coupon_types"}

# --- query parameters ---

TEXT_PARAMETER: Schema = {"type": "string", "maxLength": 1000, "pattern": _NO_NUL}
FIELDS_PARAMETER: Schema = {"type": "string", "pattern": _NO_NUL, "examples": ["id,code"]}
# At most 10 stars.
SEARCH_PARAMETER: Schema = {
    **TEXT_PARAMETER,
    "pattern": r"^[^*\u0000]*(\*[^*\u0000]*){0,10}$",
    "examples": ["*@example.com"],
}
MOMENT_PARAMETER: Schema = {
    "type": "string",
    "pattern": rf"^\s*({_ISO}|{_UNIX})?\s*$",
    "examples": ["2026-11-20T09:38:00Z"],
}
IDS_PARAMETER: Schema = {
    "type": "string",
    "pattern": r"^\s*([0-9]{1,100}\s*(,\s*[0-9]{1,100}\s*)*)?$",
    "examples": ["7,12"],
}

STATUSES_PARAMETER: Schema = {
    "type": "string",
    "maxLength": 1000,
    KNOWN: "order_statuses",
    "examples": ["processing,completed"],
}

_REDEMPTION_STATUS = "(reserved|confirmed|released)"
REDEMPTION_STATUSES_PARAMETER: Schema = {
    "type": "string",
    "pattern": rf"^[\s,]*({_REDEMPTION_STATUS}\s*,[\s,]*)*({_REDEMPTION_STATUS}\s*)?$",
    "maxLength": 1000,
    "examples": ["reserved,confirmed"],
}

# --- path parameters ---

PATH_ID: Schema = {
    "description": "One or more digits.",
    "type": "integer",
    "format": "int64",
    "minimum": 0,
    "examples": [7],
}
# Letters of any script; of ASCII's other signs only the underscore, and the hyphen further on.
PATH_CODE: Schema = {
    "description": "A word character, then word characters of any script, white space and hyphens.",
    "type": "string",
    "pattern": r"^[^\u0000-/:-@\[-^`{-\u007f]"
    r"[^\u0000-\u0008\u000e-\u001b!-,./:-@\[-^`{-\u007f]*$",
    "examples": ["summer-2030"],
}
PATH_EMAIL: Schema = {
    "description": "A valid e-mail address.",
    "type": "string",
    "minLength": 1,
    "examples": ["ada@example.com"],
}
