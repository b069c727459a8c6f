"""What the request tables of the specification are made of.

An input field converts what JSON gave and never decides; what cannot be understood is a
validation error, which becomes ``shop_api_invalid_param``. ``null`` means "not supplied"
everywhere (decisions 3).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import marshmallow as ma

from app import dates, sanitize
from app.errors import ShopError
from app.schemas import kinds
from app.schemas.fields import described

ZERO = Decimal("0.00")


class Input(ma.fields.Field[Any]):
    """A value of a request. Subclasses say how it is converted."""

    openapi: kinds.Schema = {}  # its JSON Schema without null; app.openapi writes it
    refuses_nul = True  # before any cleaning (decisions 13)

    def __init__(self, meaning: str = "", **kwargs: Any) -> None:
        # Null is not supplied, and of what is required the document says so.
        kwargs.setdefault("allow_none", not kwargs.get("required"))
        super().__init__(**described(meaning), **kwargs)

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
            if self.refuses_nul and isinstance(value, str) and "\0" in value:
                raise ValueError("must not contain a NUL character.")
            return self.convert(value)
        except ValueError as error:
            raise ma.ValidationError(str(error)) from error

    def convert(self, value: Any) -> Any:
        """Return the converted value, or raise ValueError with a reason."""
        raise NotImplementedError

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        # The document shows a default as a client would write it.
        return str(value) if isinstance(value, Decimal) else value


class Text(Input):
    """A string, kept as it was sent."""

    openapi = kinds.TEXT_IN

    def convert(self, value: Any) -> str:
        """Return the text."""
        return sanitize.text(value)


class CouponType(Text):
    """The name of a coupon type; which ones are known, only the app knows (decisions 4)."""

    openapi = kinds.KNOWN_COUPON_TYPE


class Address(Text):
    """The e-mail address of an account to create."""

    openapi = kinds.ADDRESS_IN


class Password(Text):
    """A password."""

    openapi = {**kinds.TEXT_IN, "format": "password"}


class Code(Input):
    """A coupon code, normalised (decisions 4)."""

    openapi = {**kinds.TEXT_IN, "minLength": 1, "examples": ["summer-2030"]}

    def convert(self, value: Any) -> str:
        """Return the code as it is stored and compared."""
        return sanitize.coupon_code(sanitize.text(value))


class CleanText(Input):
    """Text without markup: tags and control characters removed, white space collapsed."""

    openapi = kinds.TEXT_IN

    def convert(self, value: Any) -> str:
        """Return the clean text; empty text is a value."""
        return sanitize.plain(sanitize.text(value))


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
        return sanitize.money(value)


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
        return sanitize.count(value)


class Integer(Input):
    """An integer: what a text begins with, 0 when it begins with none (decisions 3)."""

    openapi = kinds.INTEGER_IN

    def convert(self, value: Any) -> int:
        """Return the integer."""
        return sanitize.integer(value)


class Timestamp(Input):
    """A date-time; a date is its midnight, UTC. Empty text means none."""

    openapi = kinds.TIMESTAMP_IN

    def convert(self, value: Any) -> datetime | None:
        """Return the moment in UTC, in whole seconds."""
        number = sanitize.whole(value)
        if isinstance(number, int) and not isinstance(number, bool):
            value = f"@{number}"  # Unix seconds, also where the digits could be a year
        if isinstance(value, str) and not value.strip():
            return None
        return dates.moment(value).replace(microsecond=0)


class _Array(Input):
    def convert(self, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise ValueError("must be an array.")
        if any(isinstance(entry, str) and "\0" in entry for entry in value):
            raise ValueError("must not contain a NUL character.")
        try:
            return [entry for entry in map(self.entry, value) if entry]
        except ValueError as error:
            raise ValueError(f"has an entry that {error}") from error

    def entry(self, value: Any) -> Any:
        raise NotImplementedError


_ID_IN = {**kinds.INTEGER_IN, "type": [*kinds.INTEGER_IN["type"], "null"]}


class IdArray(_Array):
    """An array of ids; entries that become 0 are dropped (spec 2.1)."""

    openapi = {"type": "array", "items": _ID_IN}

    def entry(self, value: Any) -> int:
        """Return an id, or 0."""
        return 0 if value is None else sanitize.integer(value)


class EmailArray(_Array):
    """An array of e-mail addresses; entries that become empty are dropped (spec 2.1)."""

    openapi = {"type": "array", "items": {**kinds.TEXT_IN, "type": ["string", "number", "null"]}}

    def entry(self, value: Any) -> str:
        """Return an address, or an empty string."""
        return "" if value is None else sanitize.sanitized_email(sanitize.text(value))


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


class DateText(Input):
    """Any date string (decisions 4); empty means none."""

    openapi = kinds.DAY_IN

    def convert(self, value: Any) -> date | None:
        """Return the day, UTC."""
        return dates.day(value, datetime.now(UTC).date())


class RecordId(Input):
    """Which record a bulk item edits; ``app.services.bulk`` reads it (spec 4.3 rule 3)."""

    openapi = kinds.RECORD_ID_IN

    def convert(self, value: Any) -> Any:
        """Return it unread."""
        return value
