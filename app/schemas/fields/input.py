"""Input fields: the base class, and fields of text, flags, numbers and dates.

An input field converts a JSON value and does not check rules of the shop. A value that cannot be
interpreted is a validation error, which becomes ``shop_api_invalid_param``. ``null`` means "not
supplied" in all fields (decisions 3).

The conversion has two steps. ``convert`` is fast, checks the type and the length, and raises all
errors. ``clean`` can be slow and never fails, so it is skipped for users without the required
capability (decisions 17).
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import marshmallow as ma

from app.conversions import dates, numbers, text
from app.conversions.emails import is_email
from app.conversions.metadata import contains_nul
from app.errors import Sentence, invalid, reason_of
from app.schemas.fields import json_schema
from app.schemas.fields.given import load_given
from app.schemas.fields.output import described

ZERO = Decimal("0.00")

METADATA = (
    "Metadata: keys to set, with any JSON as values. Null removes a key; other keys keep their "
    "values."
)
"""Description of metadata in requests."""

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
        self,
        meaning: str = "",
        *,
        openapi: json_schema.Schema | None = None,
        **kwargs: Any,
    ) -> None:
        # The OpenAPI document does not show that required fields tolerate null.
        kwargs.setdefault("allow_none", not kwargs.get("required"))
        super().__init__(**described(meaning), **kwargs)
        if openapi is not None:
            self.openapi = openapi

    def deserialize(
        self,
        value: object,
        attr: str | None = None,
        data: Mapping[str, object] | None = None,
        **kwargs: object,
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
            raise ma.ValidationError([reason_of(error)]) from error
        return self.clean(converted) if self.cleans else converted

    def convert(self, value: object) -> Any:
        """Return the converted value, or raise ValueError with a reason."""
        raise NotImplementedError

    def clean(self, value: Any) -> object:
        """Return the converted value in its stored form."""
        return value

    def loss(self, value: Any, converted: Any) -> str | Sentence:
        """Return why the stored value differs from the value that was sent, or an empty string.

        Called only in strict handling (``app.schemas.strict``), which compares numbers and booleans
        itself.
        """
        return ""

    def _serialize(self, value: object, attr: str | None, obj: object, **kwargs: object) -> object:
        # The OpenAPI document shows defaults as a client would send them.
        return str(value) if isinstance(value, Decimal) else value


def require_length(value: str, limit: int | None) -> None:
    """Raise ValueError if a text is longer than its limit in characters (decisions 17)."""
    if limit is not None and len(value) > limit:
        raise invalid("is longer than {0:,} characters.", limit)


class Text(Input):
    """A string, kept as it was sent."""

    openapi = json_schema.TEXT_IN

    def convert(self, value: object) -> str:
        string = text.to_string(value)
        if string is not value:  # a number, which becomes text
            require_length(string, self.openapi.get("maxLength"))
        return string


class MetadataInput(Input):
    """Keys of metadata to set, with null for keys to remove (records 1)."""

    openapi = json_schema.METADATA_IN

    def convert(self, value: object) -> dict[str, Any]:
        """Return the object, or raise ValueError. The service checks keys and values."""
        if not isinstance(value, dict):
            raise ValueError("must be an object.")
        for key, each in value.items():
            if contains_nul([key, each]):
                name = "a key" if "\0" in key else repr(key[:100])
                raise invalid("{0} must not contain a NUL character.", name)
        return value


class Choice(Input):
    """One of the names in the ``enum`` of its JSON Schema."""

    def convert(self, value: object) -> str:
        names = self.openapi["enum"]
        if value not in names:
            raise invalid("must be one of {0}.", ", ".join(names))
        return str(value)


class Code(Text):
    """A coupon code, normalized (decisions 4)."""

    openapi = json_schema.CODE_IN

    def clean(self, value: str) -> str:
        return text.coupon_code(value)

    def loss(self, value: object, converted: str) -> str:
        """Return why a code is changed beyond letter case, blanks, and its form in Unicode."""
        same = text.folded_code(converted)
        return "" if self.clean(converted) == same else _CHANGED_TEXT


class CleanText(Text):
    """Text without markup. Removes tags and control characters, and collapses white space."""

    def clean(self, value: str) -> str:
        return text.clean(value)

    def loss(self, value: object, converted: str) -> str:
        """Return why a text is changed beyond white space."""
        same = " ".join(converted.split())
        return "" if self.clean(converted) == same else _CHANGED_TEXT


class InputObject(ma.fields.Nested):
    """An object in a request. ``null`` means "not supplied"."""

    def absent(self) -> object:
        """Return the value of an object that is not supplied, or raise an error."""
        return ma.missing

    def deserialize(
        self,
        value: object,
        attr: str | None = None,
        data: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> Any:
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

    def _deserialize(self, value: Mapping[str, object], *place: Any, **given: Any) -> object:
        if given.get("partial") is not True:
            return super()._deserialize(value, *place, **given)
        return load_given(self.schema, value)


class StrictTrue(Input):
    """True only for the boolean true. Any other value is false (spec 2.1)."""

    openapi = {"type": "boolean"}
    rejects_nul = False  # "any other value" is false (spec 2.1)

    def convert(self, value: object) -> bool:
        return value is True


class Email(Input):
    """A valid e-mail address without surrounding white space (decisions 13), or empty text."""

    openapi = {**json_schema.EMAIL_IN, "format": "email"}

    def convert(self, value: object) -> str:
        email = text.to_string(value).strip()
        if len(email) > 254:  # the limit of RFC 5321
            raise ValueError("must have at most 254 characters.")
        if email and not is_email(email):
            raise ValueError("must be a valid e-mail address.")
        return email


class RecordId(Input):
    """The ID of a bulk item, which ``app.services.common.bulk`` interprets (spec 4.3 rule 3)."""

    openapi = json_schema.INTEGER_IN

    def convert(self, value: object) -> Any:
        return value


class DecimalInput(Input):
    """A decimal, rounded to the cent. Empty text means no amount."""

    openapi = json_schema.AMOUNT_IN
    max_text_length = json_schema.TEXT_MAX_LENGTH

    def convert(self, value: object) -> Decimal | None:
        return numbers.money(value)


class AmountInput(DecimalInput):
    """A decimal, rounded to the cent. Empty text means 0.00 (decisions 3)."""

    def convert(self, value: object) -> Decimal:
        return super().convert(value) or ZERO


class Discount(DecimalInput):
    """A discount, at least 0."""

    openapi = {**DecimalInput.openapi, "pattern": r"^([0-9]{1,16}(\.[0-9]{1,2})?)?$"}

    def convert(self, value: object) -> Decimal | None:
        amount = super().convert(value)
        if amount and amount < 0:
            raise ValueError("must not be negative.")
        return amount


class Count(Input):
    """A non-negative integer: the absolute value of the integer at the start of a text."""

    openapi: json_schema.Schema = {**json_schema.INTEGER_IN, "maximum": numbers.MAX_COUNT}
    max_text_length = json_schema.TEXT_MAX_LENGTH

    def convert(self, value: object) -> int:
        return numbers.count(value)


class Integer(Input):
    """An integer: the integer at the start of a text, or 0 without one (decisions 3)."""

    openapi = json_schema.INTEGER_IN
    max_text_length = json_schema.TEXT_MAX_LENGTH

    def convert(self, value: object) -> int:
        return numbers.integer(value)


class ExactInteger(Input):
    """An integer, as a number or as text. Never a part of another value."""

    openapi = json_schema.INTEGER_IN

    def convert(self, value: object) -> int:
        return numbers.exact_integer(value)


class CampaignId(ExactInteger):
    """The ID of a campaign. 0 and empty text mean none."""

    def convert(self, value: object) -> int | None:  # type: ignore[override] # None is no campaign
        return None if value == "" else super().convert(value) or None


class Quantity(Input):
    """A number of units, from 1 to 1,000,000,000. Never a part of another value."""

    openapi = json_schema.QUANTITY_IN

    def convert(self, value: object) -> int:
        number = numbers.exact_integer(value)
        if not 1 <= number <= 10**9:
            raise ValueError("must be between 1 and 1,000,000,000.")
        return number


class Price(Input):
    """A price per unit, at least 0, with up to 6 decimals. Required."""

    rejects_absence = True
    openapi = json_schema.PRICE_IN
    max_text_length = json_schema.TEXT_MAX_LENGTH

    def __init__(self, meaning: str) -> None:
        super().__init__(meaning, required=True)

    def convert(self, value: object) -> Decimal:
        amount = numbers.price(value)
        if amount is None:
            raise ValueError("is required.")
        if amount < 0:
            raise ValueError("must not be negative.")
        return amount


class ExpiresIn(Input):
    """Seconds until a reservation expires, from 60 to 604,800."""

    openapi = json_schema.EXPIRES_IN

    def convert(self, value: object) -> int:
        seconds = numbers.integer(value)
        if not 60 <= seconds <= 604_800:  # redemptions 4
            raise ValueError("must be between 60 and 604,800 seconds.")
        return seconds


class TimestampInput(Input):
    """A date-time. A date means midnight UTC. Empty text means no time."""

    openapi = json_schema.TIMESTAMP_IN
    max_text_length = json_schema.TEXT_MAX_LENGTH

    def convert(self, value: object) -> datetime | None:
        number = numbers.int_if_integral(value)
        if isinstance(number, int) and not isinstance(number, bool):
            value = f"@{number}"  # Unix seconds, even if the digits could be a year
        if isinstance(value, str) and not value.strip():
            return None
        return dates.parse_timestamp(value).replace(microsecond=0)


class DateText(Input):
    """A date in any of several formats (decisions 4). Empty text means no date."""

    openapi = json_schema.DATE_IN
    max_text_length = json_schema.TEXT_MAX_LENGTH

    def convert(self, value: object) -> date | None:
        return dates.parse_date(value, datetime.now(UTC).date())


class MomentText(DateText):
    """A date-time in the formats of a date, without a fraction. Empty text means no time."""

    openapi = json_schema.TIMESTAMP_IN

    def convert(self, value: object) -> datetime | None:
        found = dates.parse_moment(value, datetime.now(UTC))
        return found.replace(microsecond=0) if found else None


def without_cleaning(schema: ma.Schema) -> ma.Schema:
    """Change an instance of a schema so that it checks input without cleaning, and return it."""
    for field in schema.fields.values():
        if isinstance(field, Input):
            field.cleans = False
        elif isinstance(field, ma.fields.Nested):
            without_cleaning(field.schema)
    return schema
