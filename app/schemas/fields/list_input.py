"""Input fields of lists."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import marshmallow as ma

from app.config.current import current_limit
from app.conversions import emails, numbers, text
from app.errors import Sentence, invalid, reason_of
from app.schemas.fields import json_schema
from app.schemas.fields.given import load_given
from app.schemas.fields.input import Input, require_length

MAX_INVALID_ITEMS = 10
"""Maximum number of invalid items of a list that an error reports."""

_LOSS = "Other entries would be dropped or converted."


class _Array(Input):
    def convert(self, value: object) -> list[Any]:
        if not isinstance(value, list):
            raise ValueError("must be an array.")
        most = self.openapi.get("maxItems")
        if most is not None and len(value) > most:
            raise invalid("has more than {0:,} entries.", most)
        converted = []
        for index, entry in enumerate(value):
            try:
                converted.append(self._entry(entry))
            except ValueError as error:
                raise invalid("the entry at index {0} {1}", index, reason_of(error)) from error
        return [entry for entry in converted if entry]

    def _entry(self, value: object) -> object:
        if value is None:
            return None
        if isinstance(value, str):
            limit = self.openapi["items"].get("maxLength", json_schema.TEXT_MAX_LENGTH)
            require_length(value, limit)
            if "\0" in value:
                raise ValueError("must not contain a NUL character.")
        return self.entry(value)

    def entry(self, value: object) -> object:
        """Return a converted entry, or raise ValueError. Falsy entries are dropped."""
        raise NotImplementedError


class IdArray(_Array):
    """An array of IDs. Entries that are converted to 0 are dropped (spec 2.1)."""

    openapi = json_schema.IDS_IN

    def entry(self, value: object) -> int:
        return numbers.integer(value)

    def loss(self, value: Any, converted: list[int]) -> str | Sentence:
        """Return why an entry is dropped or changed."""
        ids = [numbers.int_if_integral(entry) for entry in value]
        is_kept = not any(isinstance(entry, bool) for entry in ids)
        is_kept &= [str(entry).strip().lstrip("+") for entry in ids] == list(map(str, converted))
        return "" if is_kept else Sentence("must contain only IDs. {0}", _LOSS)


class EmailArray(_Array):
    """An array of e-mail addresses. Invalid addresses are dropped (spec 2.1)."""

    openapi = json_schema.EMAILS_IN

    def entry(self, value: object) -> str:
        string = text.to_string(value)
        require_length(string, self.openapi["items"]["maxLength"])  # of numbers, too
        return string

    def clean(self, value: list[str]) -> list[str]:
        return [address for address in map(emails.sanitize_email, value) if address]

    def loss(self, value: Sequence[object], converted: list[str]) -> str | Sentence:
        """Return why an entry is dropped or changed beyond letter case."""
        same = [emails.lower_domain(entry) if isinstance(entry, str) else "" for entry in value]
        is_kept = self.clean(converted) == same
        return "" if is_kept else Sentence("must contain only valid e-mail addresses. {0}", _LOSS)


class CodeArray(_Array):
    """An array of coupon codes, normalized. Empty codes are dropped."""

    openapi = json_schema.CODES_IN

    def entry(self, value: object) -> str:
        return "" if value is None else text.coupon_code(text.to_string(value))

    def loss(self, value: Sequence[object], converted: list[str]) -> str | Sentence:
        """Return why an entry is dropped or changed beyond letter case and white space."""
        same = [text.folded_code(str(entry)) for entry in value]
        is_kept = None not in value and converted == same
        return "" if is_kept else Sentence("must contain only coupon codes. {0}", _LOSS)


class TagArray(_Array):
    """An array of tags, normalized like coupon codes, without duplicates (campaigns 1)."""

    openapi = json_schema.TAGS_IN
    most_characters = json_schema.TAG_MAX_LENGTH

    def convert(self, value: object) -> list[str]:
        return list(dict.fromkeys(super().convert(value)))

    def _entry(self, value: object) -> object:
        if value is None:
            raise ValueError("must be a string.")
        if isinstance(value, str):
            require_length(value, self.most_characters)
        return super()._entry(value)

    def entry(self, value: object) -> str:
        return tag(text.coupon_code(text.to_string(value)))

    def loss(self, value: Sequence[object], converted: list[str]) -> str | Sentence:
        """Return why an entry is changed beyond letter case and white space."""
        same = list(dict.fromkeys(text.folded_code(str(entry)) for entry in value))
        return "" if converted == same else Sentence("must contain only tags. {0}", _LOSS)


class TagCondition(TagArray):
    """An array of tags that others must have, or must not have after ``-`` (campaigns 4 and 5)."""

    prefix = ""
    """Beginning of an entry that names something else than a tag."""
    longest = 0
    """Most characters after the prefix."""

    def entry(self, value: object) -> str:
        entry = text.coupon_code(text.to_string(value))
        sign = "-" if entry.startswith("-") else ""
        rest = entry.removeprefix("-").strip()
        if not rest.startswith(self.prefix):
            return sign + tag(rest)
        name = rest.removeprefix(self.prefix).strip()
        if not 1 <= len(name) <= self.longest:
            raise invalid(
                "must have 1 to {0} characters after {1}.", self.longest, repr(self.prefix)
            )
        return f"{sign}{self.prefix}{name}"


class CombinationArray(TagCondition):
    """Tags of coupons. An entry can name a code instead (campaigns 1)."""

    openapi = json_schema.COMBINATION_IN
    prefix, longest = "code:", text.CODE_MAX_LENGTH
    most_characters = len("-code:") + longest


class CustomerTagArray(TagCondition):
    """Tags of customers. An entry can name a role instead (campaigns 1)."""

    openapi = json_schema.CUSTOMER_TAGS_IN
    prefix, longest = "role:", json_schema.TAG_MAX_LENGTH
    most_characters = len("-role:") + longest


def tag(value: str) -> str:
    """Return a normalized tag, or raise ValueError if it is not one (campaigns 1)."""
    if not 1 <= len(value) <= json_schema.TAG_MAX_LENGTH:
        raise invalid("must have 1 to {0} characters.", json_schema.TAG_MAX_LENGTH)
    if value.startswith(("-", "code:", "role:")):
        raise ValueError("must not begin with '-', 'code:' or 'role:'.")
    return value


class ItemArray(ma.fields.List[object]):
    """An array of objects. ``null`` means "not supplied".

    Args:
        item: schema of an object, without defaults and hooks.
        meaning: description of the array.
        limit: maximum number of objects, or the name of the setting with this number.
        too_large: returns the error for more objects, from the ``limit``.
    """

    inner: ma.fields.Nested
    null_is_absent = True
    keeps_keys = False
    """Whether an object in place of the array keeps its keys, in a dialect that accepts one."""

    def __init__(
        self,
        item: type[ma.Schema],
        meaning: str,
        *,
        limit: int | str,
        too_large: Callable[..., Exception],
        **kwargs: Any,
    ) -> None:
        maximum = "maxItems" if isinstance(limit, int) else json_schema.LIMIT
        metadata = {"description": meaning, maximum: limit}
        super().__init__(ma.fields.Nested(item), allow_none=True, metadata=metadata, **kwargs)
        self.item = item
        self._limit = limit
        self._too_large = too_large

    @property
    def limit(self) -> int:
        """Return the maximum number of objects."""
        return self._limit if isinstance(self._limit, int) else current_limit(self._limit)

    def deserialize(
        self,
        value: object,
        attr: str | None = None,  # marshmallow's signature
        data: Mapping[str, object] | None = None,  # marshmallow's signature
        **_: object,
    ) -> Any:
        """Return the converted objects, or raise ValidationError with the first errors."""
        if value is None or value is ma.missing:
            default = self.load_default
            return default() if callable(default) else default
        if not isinstance(value, list):
            raise ma.ValidationError("must be an array.")
        if len(value) > self.limit:
            raise self._too_large(limit=self.limit)
        loaded: list[dict[str, object]] = []
        errors: dict[int, object] = {}
        for index, item in enumerate(value):
            if not isinstance(item, dict):
                errors[index] = ["must be an object."]
            else:
                try:
                    loaded.append(self.load_item(item))
                except ma.ValidationError as error:
                    errors[index] = error.messages
            if len(errors) == MAX_INVALID_ITEMS:
                break
        if errors:
            raise ma.ValidationError(errors)
        return loaded

    def load_item(self, item: dict[str, object]) -> dict[str, object]:
        """Convert the fields that an object has."""
        return load_given(self.inner.schema, item)
