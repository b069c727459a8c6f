"""Base classes of schemas, wrapper keys, bulk results, errors and counts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NoReturn

import marshmallow as ma

from app.errors import ShopError
from app.schemas import fields, json_schema
from app.schemas.inputs import InputObject


class Base(ma.Schema):
    """Base of every schema. Unknown fields are ignored (decisions 3)."""

    class Meta:
        """Options of marshmallow."""

        unknown = ma.EXCLUDE


class OptionalFields(Base):
    """Base of request schemas, in which most fields are usually missing.

    marshmallow converts missing fields too, which took a fifth of the time of a bulk request that
    creates records. This class skips missing fields and sets their defaults afterwards. Missing
    required fields are converted as null.
    """

    def load(
        self,
        data: Any,
        *,
        many: bool | None = None,
        partial: Any = None,
        unknown: Any = None,
    ) -> Any:
        """Return the converted fields, and the defaults of missing fields."""
        if not isinstance(data, Mapping):
            return super().load(data, many=many, partial=partial, unknown=unknown)
        loaded = super().load({**self._required, **data}, partial=True, unknown=unknown)
        created = {name: create() for name, create in self._factories if name not in loaded}
        return {**self._defaults, **created, **loaded}

    @cached_property
    def _required(self) -> dict[str, None]:
        fields = self.load_fields.items()
        return {field.data_key or name: None for name, field in fields if field.required}

    @cached_property
    def _defaults(self) -> dict[str, Any]:
        """Return the default of each field, or the function that creates it."""
        return {
            field.attribute or name: field.load_default
            for name, field in self.load_fields.items()
            if field.load_default is not ma.missing
        }

    @cached_property
    def _factories(self) -> list[tuple[str, Callable[[], Any]]]:
        return [(name, default) for name, default in self._defaults.items() if callable(default)]


class Wrapped(InputObject):
    """The object under a wrapper key, for example ``coupon``.

    Args:
        schema: the schema of the object.
        missing_code: the error code for a body without the key, which takes precedence over all
            other errors of the body (decisions 1 and 13).
    """

    def __init__(self, schema: type[Base], *, missing_code: str) -> None:
        super().__init__(schema, required=True)
        self.missing_code = missing_code

    def absent(self) -> NoReturn:
        """Raise the error for a missing wrapper key."""
        raise ShopError(self.missing_code)


class WrappedItems(ma.fields.List[Any]):
    """The array under the wrapper key of a bulk request, for example ``coupons``.

    Returns the items unchanged. ``app.api.bulk_requests`` loads each item, so that an invalid item
    does not affect the others.

    Args:
        item: the schema of an item, for the OpenAPI document.
        missing_code: the error code for a body without the key.
    """

    def __init__(self, item: type[Base], *, missing_code: str) -> None:
        metadata = {json_schema.LIMIT: "SHOP_BULK_LIMIT"}
        super().__init__(ma.fields.Nested(item), required=True, metadata=metadata)
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
    """Return the schema of an update: the same fields, all optional and without defaults.

    Args:
        create: the schema of a new record.
        name: the name of the schema.
        more: additional fields, and fields that replace those of ``create``. With a field ``id``,
            it is the schema of an item that creates or updates a record.
    """
    optional = {}
    for key, field in create._declared_fields.items():
        optional[key] = copied = copy.deepcopy(field)
        copied.required = False
        copied.allow_none = True
        copied.load_default = ma.missing
        copied.metadata = {k: v for k, v in copied.metadata.items() if k != "default"}
    meaning = (
        "Fields to create a record, or with an `id`, fields to update a record."
        if "id" in more
        else "Fields to update. Fields that are absent keep their values."
    )
    base = OptionalFields if issubclass(create, OptionalFields) else Base
    return type(name, (base,), {**more, **optional, **more, "__doc__": meaning})


class ReasonSchema(Base):
    """Reason why a coupon is not applicable."""

    code = fields.String("Machine-readable code of the reason.")
    message = fields.String("Human-readable reason.")


_REASONS = "All reasons why a coupon is not applicable. Only for `shop_api_coupon_not_applicable`."


class BulkError(Base):
    """Error of a bulk item."""

    code = fields.String("Error code, the same as for a single request.")
    message = fields.String("Human-readable description of the error.")
    reasons = ma.fields.List(ma.fields.Nested(ReasonSchema), metadata={"description": _REASONS})


class BulkFailure(Base):
    """Result of a bulk item that failed (spec 4.3 rule 4)."""

    id = fields.EchoedIdentifier("ID in the item. 0 if the item would create a record.")
    error = ma.fields.Nested(BulkError, required=True)


class Error(Base):
    """Error."""

    code = fields.String("Machine-readable error code.")
    message = fields.String("Human-readable description of the error.")
    param = fields.String(
        "Name of the invalid input, for example `coupon.amount`. Only for errors in inputs.",
        required=False,
    )
    reasons = ma.fields.List(ma.fields.Nested(ReasonSchema), metadata={"description": _REASONS})


class ErrorResponse(Base):
    """Body of every error response (decisions 1)."""

    errors = ma.fields.List(ma.fields.Nested(Error), required=True)


class CountResponse(Base):
    """Number of records that match."""

    count = fields.Number("Number of records that match.")


class DeleteResponse(Base):
    """Result of a deletion."""

    message = fields.String("Result of the operation.")


class DeletedResponse(Base):
    """Result of emptying a trash."""

    deleted = fields.Number("Number of permanently deleted records.")
