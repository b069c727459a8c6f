"""Input fields: the base class, and fields of text and flags.

An input field converts a JSON value and does not check rules of the shop. A value that cannot be
interpreted is a validation error, which becomes ``shop_api_invalid_param``. ``null`` means "not
supplied" in all fields (decisions 3).

The conversion has two steps. ``convert`` is fast, checks the type and the length, and raises all
errors. ``clean`` can be slow and never fails, so it is skipped for users without the required
capability (decisions 17).
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import marshmallow as ma

from app import text
from app.schemas import json_schema
from app.schemas.fields import described

_CHANGED_TEXT = "contains markup, entities or control characters, which would be removed."


class Input(ma.fields.Field[Any]):
    """A value of a request. Subclasses define its conversion.

    Args:
        meaning: the description in the OpenAPI document.
        openapi: the JSON Schema, if it differs from the JSON Schema of the class.
    """

    openapi: json_schema.Schema = {}
    """JSON Schema of canonical input, for the OpenAPI document."""

    max_text_length: int | None = None
    """Maximum length of text, for fields whose JSON Schema has no ``maxLength``."""

    rejects_absence = False
    """Whether a missing value is converted as empty text, so that ``convert`` rejects it."""

    null_is_absent = True
    rejects_nul = True  # before any cleaning (decisions 13)
    cleans = True

    def __init__(
        self, meaning: str = "", *, openapi: json_schema.Schema | None = None, **kwargs: Any
    ) -> None:
        # The OpenAPI document does not show that required fields tolerate null.
        kwargs.setdefault("allow_none", not kwargs.get("required"))
        super().__init__(**described(meaning), **kwargs)
        if openapi is not None:
            self.openapi = openapi

    def deserialize(
        self,
        value: Any,
        attr: str | None = None,
        data: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Convert a value. ``null`` means "not supplied" (spec 2.2, decisions 3)."""
        if value is None or value is ma.missing:
            if self.rejects_absence:
                return self.deserialize("", attr, data)
            default = self.load_default
            return default() if callable(default) else default
        try:
            if isinstance(value, str):
                require_length(value, self.max_text_length or self.openapi.get("maxLength"))
                if self.rejects_nul and "\0" in value:
                    raise ValueError("must not contain a NUL character.")
            converted = self.convert(value)
        except ValueError as error:
            raise ma.ValidationError(str(error)) from error
        return self.clean(converted) if self.cleans else converted

    def convert(self, value: Any) -> Any:
        """Return the converted value, or raise ValueError with a reason."""
        raise NotImplementedError

    def clean(self, value: Any) -> Any:
        """Return the converted value in its stored form."""
        return value

    def loss(self, value: Any, converted: Any) -> str:
        """Return why the stored value differs from the value that was sent, or an empty string.

        Called only in strict handling (``app.schemas.strict``), which compares numbers and booleans
        itself.
        """
        return ""

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        # The OpenAPI document shows defaults as a client would send them.
        return str(value) if isinstance(value, Decimal) else value


def require_length(value: str, limit: int | None) -> None:
    """Raise ValueError if a text is longer than its limit in characters (decisions 17)."""
    if limit is not None and len(value) > limit:
        raise ValueError(f"is longer than {limit:,} characters.")


class Text(Input):
    """A string, kept as it was sent."""

    openapi = json_schema.TEXT_IN

    def convert(self, value: Any) -> str:
        """Return the text."""
        string = text.to_string(value)
        require_length(string, self.openapi.get("maxLength"))  # also for numbers, which become text
        return string


class Choice(Input):
    """One of the names in the ``enum`` of its JSON Schema."""

    def convert(self, value: Any) -> str:
        """Return the name, or raise ValueError."""
        names = self.openapi["enum"]
        if value not in names:
            raise ValueError(f"must be one of {', '.join(names)}.")
        return str(value)


class CouponTypeInput(Text):
    """The name of a coupon type. The service checks that the type exists (decisions 4)."""

    openapi = json_schema.KNOWN_COUPON_TYPE


class Code(Text):
    """A coupon code, normalized (decisions 4)."""

    openapi = json_schema.CODE_IN

    def clean(self, value: str) -> str:
        """Return the normalized code."""
        return text.coupon_code(value)

    def loss(self, value: Any, converted: str) -> str:
        """Return why a code is changed beyond letter case, white space and Unicode form."""
        same = text.nfc(" ".join(converted.lower().split()))
        return "" if not self.cleans or self.clean(converted) == same else _CHANGED_TEXT


class CleanText(Text):
    """Text without markup. Removes tags and control characters, and collapses white space."""

    def clean(self, value: str) -> str:
        """Return the cleaned text."""
        return text.clean(value)

    def loss(self, value: Any, converted: str) -> str:
        """Return why a text is changed beyond white space."""
        same = " ".join(converted.split())
        return "" if not self.cleans or self.clean(converted) == same else _CHANGED_TEXT


class InputObject(ma.fields.Nested):
    """An object in a request. ``null`` means "not supplied"."""

    def absent(self) -> Any:
        """Return the value of an object that is not supplied, or raise an error."""
        return ma.missing

    def deserialize(
        self,
        value: Any,
        attr: str | None = None,
        data: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the converted object."""
        if value is None or value is ma.missing:
            return self.absent()
        if not isinstance(value, dict):
            raise ma.ValidationError("must be an object.")
        return super().deserialize(value, attr, data, **kwargs)


class InputPart(InputObject):
    """An optional object within a record."""

    null_is_absent = True

    def __init__(self, schema: type[ma.Schema], **kwargs: Any) -> None:
        super().__init__(schema, allow_none=True, **kwargs)


class StrictTrue(Input):
    """True only for the boolean true. Any other value is false (spec 2.1)."""

    openapi = {"type": "boolean"}
    rejects_nul = False  # "any other value" is false (spec 2.1)

    def convert(self, value: Any) -> bool:
        """Return whether the value is the boolean true."""
        return value is True


class Email(Input):
    """An e-mail address without surrounding white space, or empty text."""

    openapi = json_schema.EMAIL_IN

    def convert(self, value: Any) -> str:
        """Return the address, or raise ValueError."""
        email = text.to_string(value).strip()
        if len(email) > 254:  # the limit of RFC 5321
            raise ValueError("must have at most 254 characters.")
        return email


class RecordId(Input):
    """The ID of a bulk item, which ``app.services.bulk`` interprets (spec 4.3 rule 3)."""

    openapi = json_schema.INTEGER_IN

    def convert(self, value: Any) -> Any:
        """Return the value unchanged."""
        return value


def without_cleaning(schema: ma.Schema) -> ma.Schema:
    """Change an instance of a schema so that it checks input without cleaning, and return it."""
    for field in schema.fields.values():
        if isinstance(field, Input):
            field.cleans = False
        elif isinstance(field, ma.fields.Nested):
            without_cleaning(field.schema)
    return schema
