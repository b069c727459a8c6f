"""What the request tables of the specification are made of.

An input field converts what JSON gave and never decides; what cannot be understood is a
validation error, which becomes ``shop_api_invalid_param``. ``null`` means "not supplied"
everywhere (decisions 3).

A field works in two steps. ``convert`` checks the type and the length and raises every error; it is
cheap. ``clean`` may be expensive and never fails, so for a caller who will be refused anyway the
second step is left out (decisions 17).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import marshmallow as ma

from app import dates, emails, numbers, text
from app.errors import ShopError
from app.schemas import kinds
from app.schemas.fields import described

ZERO = Decimal("0.00")


class Input(ma.fields.Field[Any]):
    """A value of a request. Subclasses say how it is converted.

    Args:
        meaning: its description in the OpenAPI document.
        openapi: its JSON Schema, if it is not that of its class.
    """

    openapi: kinds.Schema = {}  # its JSON Schema without null; app.openapi writes it
    refuses_nul = True  # before any cleaning (decisions 13)
    cleans = True

    def __init__(
        self, meaning: str = "", *, openapi: kinds.Schema | None = None, **kwargs: Any
    ) -> None:
        # Null is not supplied, and of what is required the document says so.
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
        """Convert a supplied value; ``null`` is not supplied (spec 2.2, decisions 3)."""
        if value is None or value is ma.missing:
            default = self.load_default
            return default() if callable(default) else default
        try:
            if isinstance(value, str):
                require_length(value, self.openapi)
                if self.refuses_nul and "\0" in value:
                    raise ValueError("must not contain a NUL character.")
            converted = self.convert(value)
        except ValueError as error:
            raise ma.ValidationError(str(error)) from error
        return self.clean(converted) if self.cleans else converted

    def convert(self, value: Any) -> Any:
        """Return the converted value, or raise ValueError with a reason."""
        raise NotImplementedError

    def clean(self, value: Any) -> Any:
        """Return a converted value as it is stored."""
        return value

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        # The document shows a default as a client would write it.
        return str(value) if isinstance(value, Decimal) else value


def require_length(value: str, schema: kinds.Schema) -> None:
    """Raise ValueError if a text is longer than its schema allows (decisions 17)."""
    longest = schema.get("maxLength")
    if longest is not None and len(value) > longest:
        raise ValueError(f"is longer than {longest:,} characters.")


class Text(Input):
    """A string, kept as it was sent."""

    openapi = kinds.TEXT_IN

    def convert(self, value: Any) -> str:
        """Return the text."""
        string = text.to_string(value)
        require_length(string, self.openapi)  # of a number, too
        return string


class CouponType(Text):
    """The name of a coupon type; which ones are known, only the app knows (decisions 4)."""

    openapi = kinds.KNOWN_COUPON_TYPE


class Address(Text):
    """The e-mail address of an account to create."""

    openapi = kinds.ADDRESS_IN


class Password(Text):
    """A password."""

    openapi = kinds.PASSWORD_IN


class Code(Text):
    """A coupon code, normalised (decisions 4)."""

    openapi = kinds.CODE_IN

    def clean(self, value: str) -> str:
        """Return the code as it is stored and compared."""
        return text.coupon_code(value)


class CleanText(Text):
    """Text without markup: tags and control characters removed, white space collapsed."""

    def clean(self, value: str) -> str:
        """Return the clean text; empty text is a value."""
        return text.clean(value)


class InputPart(ma.fields.Nested):
    """An object inside a resource; ``null`` is not supplied."""

    def __init__(self, schema: type[ma.Schema], **kwargs: Any) -> None:
        super().__init__(schema, allow_none=True, **kwargs)

    def deserialize(
        self,
        value: Any,
        attr: str | None = None,
        data: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the converted object."""
        if value is None or value is ma.missing:
            return ma.missing
        if not isinstance(value, dict):
            raise ma.ValidationError("must be an object.")
        return super().deserialize(value, attr, data, **kwargs)


class DecimalInput(Input):
    """A decimal, kept to the cent; empty text is empty."""

    openapi = kinds.AMOUNT_IN

    def convert(self, value: Any) -> Decimal | None:
        """Return the amount."""
        return numbers.money(value)


class Amount(DecimalInput):
    """A decimal that is never empty: empty text is 0.00, as it prints (decisions 3)."""

    def convert(self, value: Any) -> Decimal:
        """Return the amount."""
        return super().convert(value) or ZERO


class StrictTrue(Input):
    """True only for exactly boolean true; any other value is false (spec 2.1)."""

    openapi = {"type": "boolean"}
    refuses_nul = False  # "any other value" is false (spec 2.1)

    def convert(self, value: Any) -> bool:
        """Return whether the value is true itself."""
        return value is True


class Count(Input):
    """A non-negative integer: the absolute value of what the text begins with."""

    openapi = kinds.COUNT_IN

    def convert(self, value: Any) -> int:
        """Return the count."""
        return numbers.count(value)


class Integer(Input):
    """An integer: what a text begins with, 0 when it begins with none (decisions 3)."""

    openapi = kinds.INTEGER_IN

    def convert(self, value: Any) -> int:
        """Return the integer."""
        return numbers.integer(value)


class Timestamp(Input):
    """A date-time; a date is its midnight, UTC. Empty text means none."""

    openapi = kinds.TIMESTAMP_IN

    def convert(self, value: Any) -> datetime | None:
        """Return the moment in UTC, in whole seconds."""
        number = numbers.int_if_integral(value)
        if isinstance(number, int) and not isinstance(number, bool):
            value = f"@{number}"  # Unix seconds, also where the digits could be a year
        if isinstance(value, str) and not value.strip():
            return None
        return dates.parse_timestamp(value).replace(microsecond=0)


class _Array(Input):
    def convert(self, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise ValueError("must be an array.")
        most = self.openapi.get("maxItems")
        if most is not None and len(value) > most:
            raise ValueError(f"has more than {most:,} entries.")
        try:
            return [entry for entry in map(self._entry, value) if entry]
        except ValueError as error:
            raise ValueError(f"has an entry that {error}") from error

    def _entry(self, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, str):
            require_length(value, self.openapi["items"])
            if "\0" in value:
                raise ValueError("must not contain a NUL character.")
        return self.entry(value)

    def entry(self, value: Any) -> Any:
        """Return a converted entry, or raise ValueError; what is false is dropped."""
        raise NotImplementedError


class IdArray(_Array):
    """An array of ids; entries that become 0 are dropped (spec 2.1)."""

    openapi = kinds.IDS_IN

    def entry(self, value: Any) -> int:
        """Return an id, or 0."""
        return numbers.integer(value)


class EmailArray(_Array):
    """An array of e-mail addresses; entries that become empty are dropped (spec 2.1)."""

    openapi = kinds.EMAILS_IN

    def entry(self, value: Any) -> str:
        """Return the text of an address."""
        string = text.to_string(value)
        require_length(string, self.openapi["items"])  # of a number, too
        return string

    def clean(self, value: list[str]) -> list[str]:
        """Return the addresses."""
        return [address for address in map(emails.sanitize_email, value) if address]


class ItemArray(ma.fields.List[Any]):
    """An array of objects; ``null`` is not supplied.

    Args:
        item: schema of an object: its keys have no defaults, and it has no hooks.
        meaning: description of the array.
        limit: how many objects are accepted.
        too_large: the error code when there are more.
    """

    def __init__(
        self, item: type[ma.Schema], meaning: str, *, limit: int, too_large: str, **kwargs: Any
    ) -> None:
        metadata = {"description": meaning, "maxItems": limit}
        super().__init__(ma.fields.Nested(item), allow_none=True, metadata=metadata, **kwargs)
        self.item = item
        self.limit = limit
        self.too_large = too_large

    def deserialize(
        self,
        value: Any,
        attr: str | None = None,  # marshmallow's signature
        data: Mapping[str, Any] | None = None,  # marshmallow's signature
        **_: Any,
    ) -> Any:
        """Return the converted objects; the errors of all of them are reported together."""
        if value is None or value is ma.missing:
            return self.load_default
        if not isinstance(value, list):
            raise ma.ValidationError("must be an array.")
        if len(value) > self.limit:
            raise ShopError(self.too_large, limit=self.limit)
        loaded: list[Any] = []
        errors: dict[int, Any] = {}
        for index, item in enumerate(value):
            if not isinstance(item, dict):
                errors[index] = ["must be an object."]
                continue
            try:
                loaded.append(self._loaded(item))
            except ma.ValidationError as error:
                errors[index] = error.messages
        if errors:
            raise ma.ValidationError(errors)
        return loaded

    def _loaded(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """Convert the supplied keys of an object.

        ``Schema.load`` takes several times as long: an order can have thousands of objects, each
        with few of its keys.
        """
        loaded, errors = {}, {}
        fields: Mapping[str, ma.fields.Field[Any]] = self.inner.schema.load_fields  # type: ignore[attr-defined] # a Nested
        for name, field in fields.items():
            if name not in item:
                continue
            try:
                converted = field.deserialize(item[name], name, item)
            except ma.ValidationError as error:
                errors[name] = error.messages
                continue
            if converted is not ma.missing:
                loaded[name] = converted
        if errors:
            raise ma.ValidationError(errors)
        return loaded


class CodeArray(_Array):
    """An array of coupon codes, normalised; empty ones are dropped."""

    openapi = {
        "type": "array",
        "items": {**kinds.TEXT_IN, "type": ["string", "number", "null"], "examples": ["summer"]},
    }

    def entry(self, value: Any) -> str:
        """Return a code, or an empty string."""
        return "" if value is None else text.coupon_code(text.to_string(value))


class Price(Input):
    """A price per unit, at least 0, with up to 6 decimals. Required."""

    openapi = {
        "type": "string",
        "maxLength": kinds.TEXT_MAX_LENGTH,
        "pattern": r"^[0-9]{1,9}(\.[0-9]{1,6})?$",
        "examples": ["13.95"],
    }

    def __init__(self, meaning: str) -> None:
        super().__init__(meaning, required=True)

    def deserialize(
        self,
        value: Any,
        attr: str | None = None,
        data: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the price; there is no default."""
        return super().deserialize("" if value in (None, ma.missing) else value, attr, data)

    def convert(self, value: Any) -> Decimal:
        """Return the price."""
        amount = numbers.price(value)
        if amount is None:
            raise ValueError("is required.")
        if amount < 0:
            raise ValueError("must not be below 0.")
        return amount


class Quantity(Input):
    """A number of units, from 1 to 1,000,000,000."""

    openapi = {"type": "integer", "minimum": 1, "maximum": 10**9, "examples": [2]}

    def convert(self, value: Any) -> int:
        """Return the number."""
        number = numbers.integer(value)
        if not 1 <= number <= 10**9:
            raise ValueError("must be from 1 to 1000000000.")
        return number


class AccountId(Input):
    """The ID of a customer account, 0 for a guest. Text that is no number is not understood."""

    openapi = {
        "type": ["integer", "string"],
        "minimum": 0,
        "maximum": numbers.INT64_MAX,
        "pattern": "^[0-9]{1,18}$",
    }

    def convert(self, value: Any) -> int:
        """Return the ID, which may be negative."""
        if isinstance(value, bool) or (
            isinstance(value, str) and not re.fullmatch(r"\s*[+-]?[0-9]+\s*", value)
        ):
            raise ValueError("must be an integer.")
        return numbers.integer(value)


class Reference(Input):
    """What a use of a coupon is reserved for: 1 to 191 characters. Required."""

    openapi = {
        "type": ["string", "number"],
        "minLength": 1,
        "maxLength": 191,
        # No blanks around it, no NUL, and no reference of an order of this service.
        "pattern": r"^(?!order-[0-9]+$)[^\s\u0000]([^\u0000]*[^\s\u0000])?$",
        "examples": ["cart-4711"],
    }

    def deserialize(
        self,
        value: Any,
        attr: str | None = None,
        data: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the reference; there is no default."""
        return super().deserialize("" if value in (None, ma.missing) else value, attr, data)

    def convert(self, value: Any) -> str:
        """Return the reference without blanks around it."""
        reference = text.to_string(value).strip()
        if not 1 <= len(reference) <= 191:  # redemptions 4
            raise ValueError("must have 1 to 191 characters.")
        if re.fullmatch("order-[0-9]+", reference):
            raise ValueError("must not be order-<number>: orders of this service have it.")
        return reference


class ExpiresIn(Input):
    """Seconds until a reservation expires, from 60 to 604,800."""

    openapi = {"type": "integer", "minimum": 60, "maximum": 604_800, "examples": [900]}

    def convert(self, value: Any) -> int:
        """Return the seconds."""
        seconds = numbers.integer(value)
        if not 60 <= seconds <= 604_800:  # redemptions 4
            raise ValueError("must be from 60 to 604800 seconds.")
        return seconds


class Email(Input):
    """An e-mail as it was given, without blanks around it; may be empty."""

    openapi = {**kinds.TEXT_IN, "maxLength": 254}

    def convert(self, value: Any) -> str:
        """Return the e-mail."""
        email = text.to_string(value).strip()
        if len(email) > 254:  # RFC 5321: no address is longer
            raise ValueError("must have at most 254 characters.")
        return email


class DateText(Input):
    """Any date string (decisions 4); empty means none."""

    openapi = kinds.DAY_IN

    def convert(self, value: Any) -> date | None:
        """Return the day, UTC."""
        return dates.parse_date(value, datetime.now(UTC).date())


class RecordId(Input):
    """Which record a bulk item edits; ``app.services.bulk`` reads it (spec 4.3 rule 3)."""

    openapi = kinds.RECORD_ID_IN

    def convert(self, value: Any) -> Any:
        """Return it unread."""
        return value


def without_cleaning(schema: ma.Schema) -> ma.Schema:
    """Let a schema raise its errors and leave out what is expensive; return it."""
    for field in schema.fields.values():
        if isinstance(field, Input):
            field.cleans = False
        elif isinstance(field, ma.fields.Nested):
            without_cleaning(field.schema)
    return schema
