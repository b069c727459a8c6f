"""JSON Schema of each type of value in the OpenAPI document, for OpenAPI 3.1.

An input schema describes canonical input: one type, and no pattern for input that is only tolerated
(decisions 16). The service accepts every value that a schema here allows, and more values due to
the conversions of the specification. ``app.api.openapi.fields`` converts the schemas to OpenAPI 3.0
and adds them to the document.
"""

from collections.abc import Mapping
from typing import Any

from app.conversions.emails import EMAIL_MAX_LENGTH
from app.conversions.text import CODE_MAX_LENGTH, USERNAME_MAX_LENGTH

Schema = Mapping[str, Any]

# Name of a component of the document, so that generated clients have one type for these values.
COMPONENT = "x-component"

_NO_NUL = r"^[^\u0000]*$"

# --- output ---

IDENTIFIER: Schema = {"type": "integer", "format": "int64", "minimum": 1, "examples": [7]}
OPTIONAL_IDENTIFIER: Schema = {"type": ["integer", "null"], "format": "int64", "minimum": 1}
NUMBER: Schema = {"type": "integer", "format": "int64", "minimum": 0}
AMOUNT: Schema = {"type": "string", "pattern": r"^-?[0-9]+\.[0-9]{2}$", "examples": ["10.00"]}
TIMESTAMP: Schema = {"type": "string", "format": "date-time", "examples": ["2026-11-20T09:38:00Z"]}

# --- input ---
# `maxLength` and `maxItems` are the limits of decisions 17; app.schemas.fields.input enforces them.

TEXT_MAX_LENGTH = 1000
"""Maximum length of names, parts of addresses, and text that contains a number or a date."""

LONG_TEXT_MAX_LENGTH = 65_536
"""Maximum length of descriptions, notes of orders and passwords."""

TEXT_IN: Schema = {"type": "string", "maxLength": TEXT_MAX_LENGTH, "pattern": _NO_NUL}
CODE_IN: Schema = {
    **TEXT_IN,
    "minLength": 1,
    "maxLength": CODE_MAX_LENGTH,
    "examples": ["summer-2030"],
}
LONG_TEXT_IN: Schema = {**TEXT_IN, "maxLength": LONG_TEXT_MAX_LENGTH}
EMAIL_IN: Schema = {**TEXT_IN, "maxLength": EMAIL_MAX_LENGTH, "examples": ["ada@example.com"]}
USERNAME_IN: Schema = {**TEXT_IN, "maxLength": USERNAME_MAX_LENGTH, "examples": ["ada"]}
# Without the format "password", because generators drop the pattern of a password.
PASSWORD_IN: Schema = {**TEXT_IN, "maxLength": LONG_TEXT_MAX_LENGTH}
# 16 digits before the decimal point. Empty text means no amount.
AMOUNT_IN: Schema = {
    "type": "string",
    "pattern": r"^(-?[0-9]{1,16}(\.[0-9]{1,2})?)?$",
    "examples": ["10.00"],
}
PRICE_IN: Schema = {
    "type": "string",
    "pattern": r"^[0-9]{1,9}(\.[0-9]{1,6})?$",
    "examples": ["13.95"],
}
INTEGER_IN: Schema = {"type": "integer", "format": "int64", "minimum": 0}
IDENTIFIER_IN: Schema = {**INTEGER_IN, "minimum": 1}
METADATA_IN: Schema = {"type": "object", "examples": [{"erp_id": "4711"}]}
DATE_IN: Schema = {"type": "string", "format": "date", "examples": ["2030-12-31"]}
# Without limits for the items, so that generated clients need no separate type for IDs.
IDS_IN: Schema = {
    "type": "array",
    "items": {"type": "integer", "format": "int64"},
    "maxItems": 10_000,
    "examples": [[7, 12]],
}
EMAILS_IN: Schema = {
    "type": "array",
    "items": {**EMAIL_IN, COMPONENT: "CouponEmail"},
    "maxItems": 1000,
    "examples": [["ada@example.com", "*@example.org"]],
}
TAG_MAX_LENGTH = 64
TAGS_IN: Schema = {
    "type": "array",
    # Every script is accepted, too; not every client has a pattern for it.
    "items": {"type": "string", "pattern": r"^[a-z0-9][a-z0-9_.-]{0,63}$"},
    "maxItems": 50,
    "examples": [["newsletter"]],
}
COMBINATION_IN: Schema = {
    "type": "array",
    "items": {"type": "string", "pattern": r"^-?(code:)?[a-z0-9][a-z0-9_.-]{0,63}$"},
    "maxItems": 100,
    "examples": [["loyalty", "-code:summer15"]],
}
CUSTOMER_TAGS_IN: Schema = {
    "type": "array",
    "items": {"type": "string", "pattern": r"^-?(role:)?[a-z0-9][a-z0-9_.-]{0,63}$"},
    "maxItems": 100,
    "examples": [["vip", "-role:wholesale"]],
}
CODES_IN: Schema = {"type": "array", "items": {**CODE_IN, COMPONENT: "CouponCode"}}
TIMESTAMP_IN: Schema = TIMESTAMP
REMAINING_IN: Schema = {"type": "string", "pattern": "^[0-9]{0,15}$", "examples": ["3"]}
QUANTITY_IN: Schema = {"type": "integer", "minimum": 1, "maximum": 10**9, "examples": [2]}
CURRENCY_IN: Schema = {"type": "string", "pattern": "^[A-Z]{3}$", "examples": ["EUR"]}
ORDER_NUMBER_IN: Schema = {**TEXT_IN, "minLength": 1, "maxLength": 191, "examples": ["2030-0001"]}
REFERENCE_IN: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 191,
    # Without surrounding white space, NUL, and the references of orders of this service.
    "pattern": r"^(?!order-[0-9]+$)[^\s\u0000]([^\u0000]*[^\s\u0000])?$",
    "examples": ["cart-4711"],
}
EXPIRES_IN: Schema = {"type": "integer", "minimum": 60, "maximum": 604_800, "examples": [900]}

# Names that plugins can add to. ``app.api.openapi.document`` lists the known names in the document.
KNOWN = "x-known"
KNOWN_ORDER_STATUS: Schema = {"type": "string", KNOWN: "order_statuses"}
KNOWN_COUPON_TYPE: Schema = {"type": "string", KNOWN: "coupon_types"}

# The name of the setting with the maximum number of items. ``app.api.openapi.document`` replaces
# it with ``maxItems``.
LIMIT = "x-limit"

# --- query parameters ---

TEXT_PARAMETER: Schema = {"type": "string", "maxLength": 1000, "pattern": _NO_NUL}
FIELDS_PARAMETER: Schema = {"type": "string", "pattern": _NO_NUL, "examples": ["id"]}
# At most 10 stars.
SEARCH_PARAMETER: Schema = {
    **TEXT_PARAMETER,
    "pattern": r"^[^*\u0000]*(\*[^*\u0000]*){0,10}$",
    "examples": ["*@example.com"],
}
TIMESTAMP_PARAMETER: Schema = TIMESTAMP
MAX_IDS = 1000
"""Maximum number of IDs in a parameter, below the limit of a database for a statement."""

# The number of digits has no limit here, because some regular expression engines reject patterns
# with repetitions of more than 1,000 in total.
IDS_PARAMETER: Schema = {
    "type": "string",
    "pattern": rf"^[0-9]+(,[0-9]+){{0,{MAX_IDS - 1}}}$",
    "examples": ["7,12"],
}

STATUSES_PARAMETER: Schema = {
    "type": "string",
    "maxLength": 1000,
    KNOWN: "order_statuses",
    "examples": ["processing,completed"],
}

EVENT_TYPES_PARAMETER: Schema = {
    "type": "string",
    "maxLength": 1000,
    KNOWN: "event_types",
    "examples": ["order.created,order.updated"],
}
EVENT_RESOURCES_PARAMETER: Schema = {
    "type": "string",
    "maxLength": 1000,
    KNOWN: "event_resources",
    "examples": ["order,customer"],
}

_REDEMPTION_STATUS = "(reserved|confirmed|released)"
REDEMPTION_STATUSES_PARAMETER: Schema = {
    "type": "string",
    "pattern": rf"^{_REDEMPTION_STATUS}(,{_REDEMPTION_STATUS})*$",
    "maxLength": 1000,
    "examples": ["reserved,confirmed"],
}

# --- path parameters ---

PATH_ID: Schema = {"type": "integer", "format": "int64", "minimum": 0}
# Letters and digits of any script and underscores. Later characters include hyphens and blanks.
PATH_CODE: Schema = {
    "type": "string",
    "pattern": r"^[^\u0000-/:-@\[-^`{-\u007f]"
    r"[^\u0000-\u0008\u000e-\u001b!-,./:-@\[-^`{-\u007f]*$",
}
PATH_EMAIL: Schema = {"type": "string", "minLength": 1}
