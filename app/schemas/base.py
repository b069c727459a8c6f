"""Base classes of schemas, wrapper keys, bulk results, errors and counts."""

import copy
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, NoReturn

import marshmallow as ma

from app.errors import ShopError
from app.schemas.fields import json_schema
from app.schemas.fields import output as fields
from app.schemas.fields.input import InputObject, InputPart


class Base(ma.Schema):
    """Base of every schema. Unknown fields are ignored (decisions 3)."""

    read_only: ClassVar[frozenset[str]] = frozenset({"id", "created_at", "updated_at"})
    """Fields that a strict request ignores, so that a record can be sent as it was received."""

    class Meta:
        unknown = ma.EXCLUDE


class StrictBase(Base):
    """Base of input in a blueprint that is always strict. The OpenAPI document declares it."""

    class Meta:
        unknown = ma.RAISE


class Wrapped(InputObject):
    """The object under a wrapper key, for example ``coupon``.

    The error for a body without the key takes precedence over all other errors of the body
    (decisions 1 and 13).
    """

    def __init__(self, schema: type[Base], key: str) -> None:
        super().__init__(schema, required=True)
        self.key = key

    def absent(self) -> NoReturn:
        """Raise the error for a missing wrapper key."""
        raise missing_data(self.key)


class WrappedItems(ma.fields.List[Any]):
    """The array under the wrapper key of a bulk request, for example ``coupons``.

    Returns the items unchanged. ``app.api.bulk_requests`` loads each item, so that an invalid item
    does not affect the others. The schema of an item is for the OpenAPI document.
    """

    def __init__(self, item: type[Base], key: str) -> None:
        meaning = "Items, which can differ in their fields. Each succeeds or fails for itself."
        metadata = {json_schema.LIMIT: "SHOP_BULK_LIMIT", "description": meaning}
        super().__init__(ma.fields.Nested(item), required=True, metadata=metadata)
        self.key = key

    def deserialize(
        self,
        value: object,
        attr: str | None = None,
        data: Mapping[str, object] | None = None,
        **_: object,
    ) -> Any:
        if value is None or value is ma.missing:
            raise missing_data(self.key)
        if not isinstance(value, list):
            raise ma.ValidationError("must be an array.")
        return value


def missing_data(key: str) -> ShopError:
    """Return the error for a body without its wrapper key: ``shop_api_missing_coupon_data``."""
    return ShopError(f"shop_api_missing_{key}_data")


def made_schema(
    name: str, meaning: str | None, members: Mapping[str, object], *bases: type[Base]
) -> type[Base]:
    """Return a schema with a name, and with a description in the OpenAPI document.

    Args:
        members: fields by their names, and ``Meta``.
        bases: the schemas that it extends, by default Base.
    """
    return type(name, bases or (Base,), {**members, "__doc__": meaning})


def excluding(*names: str) -> Any:
    """Return the ``Meta`` of a schema without some of the fields that it inherits."""
    return type("Meta", (Base.Meta,), {"exclude": names})


def update_schema(create: type[Base], name: str, **more: ma.fields.Field[Any]) -> type[Base]:
    """Return the schema of an update: the same fields, all optional and without defaults.

    Args:
        more: additional fields, and fields that replace those of ``create``. With a field ``id``,
            it is the schema of an item that creates or updates a record.
    """
    optional: dict[str, ma.fields.Field[Any]] = {}
    for key, field in create._declared_fields.items():
        if isinstance(field, InputPart):
            part: Any = field.nested
            optional[key] = InputPart(_part_update(part))
            optional[key].metadata = {**optional[key].metadata, **field.metadata}
            continue
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
    base = StrictBase if issubclass(create, StrictBase) else Base
    members = {"read_only": create.read_only, **more, **optional, **more}
    return made_schema(name, meaning, members, base)


@cache
def _part_update(create: Any) -> type[Base]:
    """Return the schema of an object within an update: one for all records that contain it."""
    return update_schema(create, create.__name__.replace("Create", "Update"))


def response(record: type[Base], key: str) -> type[Base]:
    """Return the body with a single record under a key: ``CouponResponse`` of ``CouponSchema``."""
    meaning = f"Single {_words(record)}."
    member = ma.fields.Nested(record, required=True)
    return made_schema(f"{_noun(record)}Response", meaning, {key: member})


def list_response(record: type[Base], key: str) -> type[Base]:
    """Return the body with a list of records under a key: ``CouponList`` of ``CouponSchema``."""
    words = key.replace("_", " ")
    field = fields.objects(record, f"{words.capitalize()}, in the order of the list.")
    return made_schema(f"{_noun(record)}List", f"List of {words}.", {key: field})


def request(fields: type[Base], key: str) -> type[Base]:
    """Return the request body with fields under a key: ``CouponCreateRequest``."""
    meaning = f"Request with the key `{key}`."
    base = StrictBase if issubclass(fields, StrictBase) else Base
    return made_schema(f"{_noun(fields)}Request", meaning, {key: Wrapped(fields, key)}, base)


def bulk_request(item: type[Base], key: str) -> type[Base]:
    """Return the body of a bulk request: ``CouponBulkRequest`` of ``CouponBulkItem``."""
    name = f"{_noun(item).removesuffix('Item')}Request"
    meaning = f"Bulk request that creates and updates {key}."
    return made_schema(name, meaning, {key: WrappedItems(item, key)})


def bulk_response(record: type[Base], key: str) -> type[Base]:
    """Return the body of a response to a bulk request: ``CouponBulkResponse``."""
    noun, meaning = _noun(record), f"The {_words(record)}, or why the item failed."
    result = fields.either(f"{noun}BulkResult", meaning, BulkFailure, record)
    meaning = "Results of a bulk request, in the order of its items."
    results = ma.fields.List(result, required=True, **fields.described("Result of each item."))
    return made_schema(f"{noun}BulkResponse", meaning, {key: results})


def _noun(schema: type[Base]) -> str:
    return schema.__name__.removesuffix("Schema")


def _words(schema: type[Base]) -> str:
    words = re.findall("[A-Z][a-z]*", _noun(schema).removeprefix("Legacy"))
    return " ".join(words).lower().replace("api", "API")


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

    id = fields.Output(
        "ID in the item. 0 if the item would create a record.", openapi={"type": "integer"}
    )
    error = ma.fields.Nested(BulkError, required=True)


class ApiError(Base):
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

    errors = fields.objects(ApiError, "Errors, at least one.")


class CountResponse(Base):
    """Number of records that match."""

    count = fields.Number("Number of records that match.")
    complete = fields.Boolean(
        "False if more records can match than were counted, otherwise missing. A search, or a "
        "condition on a key of metadata with any value, counts up to 50,000 records. With one or "
        "two letters, a search counts up to 1,000, and looks in the 300,000 newest orders.",
        required=False,
    )


class DeleteResponse(Base):
    """Result of a deletion."""

    message = fields.String("Result of the operation.")


class EmptyTrashResponse(Base):
    """Result of emptying a trash."""

    deleted = fields.Number("Number of permanently deleted records.")
