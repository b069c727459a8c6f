"""What bodies are wrapped in: the key named after the resource, pages, bulk results, errors."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import marshmallow as ma

from app.errors import ShopError
from app.schemas import fields


class Base(ma.Schema):
    """Every schema: unknown fields are ignored (decisions 3)."""

    class Meta:
        """marshmallow's switchboard."""

        unknown = ma.EXCLUDE


class Wrapped(ma.fields.Nested):
    """The object under a wrapper key.

    A body without the key is refused with the operation's own code, before anything else is
    looked at (decisions 1 and 13).
    """

    def __init__(self, schema: type[Base], *, missing_code: str) -> None:
        super().__init__(schema, required=True)
        self.missing_code = missing_code

    def deserialize(
        self,
        value: Any,
        attr: str | None = None,
        data: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the converted object."""
        if value is None or value is ma.missing:
            raise ShopError(self.missing_code)
        if not isinstance(value, dict):
            raise ma.ValidationError("must be an object.")
        return super().deserialize(value, attr, data, **kwargs)


class WrappedItems(ma.fields.List[Any]):
    """The array under a bulk wrapper key. Its items stay as they are: each one fails alone."""

    def __init__(self, item: type[Base], *, missing_code: str) -> None:
        super().__init__(ma.fields.Nested(item), required=True)
        self.missing_code = missing_code

    def deserialize(
        self, value: Any, attr: str | None = None, data: Mapping[str, Any] | None = None, **_: Any
    ) -> Any:
        """Return the array."""
        if value is None or value is ma.missing:
            raise ShopError(self.missing_code)
        if not isinstance(value, list):
            raise ma.ValidationError("must be an array.")
        return value


def update_schema(create: type[Base], name: str, **more: ma.fields.Field[Any]) -> type[Base]:
    """Return the schema of an edit: the same fields, none required, none with a default.

    A schema of its own, because a generated client that filled in the defaults of a create would
    reset every field that its user did not mention.
    """
    optional = {}
    for key, field in create._declared_fields.items():
        optional[key] = copied = copy.deepcopy(field)
        copied.required = False
        copied.allow_none = True
        copied.load_default = ma.missing
        copied.metadata = {k: v for k, v in copied.metadata.items() if k != "default"}
    return type(
        name, (Base,), {**more, **optional, **more, "__doc__": f"{name}: any subset of fields."}
    )


class ReasonSchema(Base):
    """Reason why a coupon is not applicable."""

    code = fields.String("Reason, for programs.", required=True)
    message = fields.String("Reason, for people.", required=True)


_REASONS = "All reasons why a coupon is not applicable; with `shop_api_coupon_not_applicable`."


class BulkError(Base):
    """Why a bulk item was refused."""

    code = fields.String("A code as the single operation answers it.", required=True)
    message = fields.String("What is wrong, for people.", required=True)
    reasons = ma.fields.List(ma.fields.Nested(ReasonSchema), metadata={"description": _REASONS})


class BulkFailure(Base):
    """The result of a bulk item that failed; id 0 for a create (spec 4.3 rule 4).

    ``error`` is required and a failure is the first alternative: generated clients take the first
    one that fits, and a record, which requires nothing, fits always.
    """

    id = fields.EchoedIdentifier("The id that the item gave; 0 for a create.", required=True)
    error = ma.fields.Nested(BulkError, required=True)


class Error(Base):
    """One error."""

    code = fields.String("What is wrong, for programs.", required=True)
    message = fields.String("What is wrong, for people.", required=True)
    param = fields.String("The input that the error is about.")
    reasons = ma.fields.List(ma.fields.Nested(ReasonSchema), metadata={"description": _REASONS})


class ErrorResponse(Base):
    """The body of every error (decisions 1)."""

    errors = ma.fields.List(ma.fields.Nested(Error), required=True)


class CountResponse(Base):
    """How many records match."""

    count = fields.Number("How many records match.", required=True)


class DeleteResponse(Base):
    """What was done."""

    message = fields.String("What was done.", required=True)


class DeletedResponse(Base):
    """Result of emptying a trash."""

    deleted = fields.Number("Number of permanently deleted records.", required=True)
