"""Coupons and customers in the legacy API, with ``coupon_meta`` and ``customer_meta`` (records 1).

``orders`` has ``order_meta``.
"""

import marshmallow as ma

from app.schemas import customers
from app.schemas.base import Base, excluding, made_schema, request
from app.schemas.coupons import coupon
from app.schemas.fields import output as fields
from app.schemas.fields.input import MetadataInput
from app.schemas.fields.list_input import ItemArray
from app.schemas.fields.output import Metadata

HIDDEN = "_"
"""Beginning of internal keys of metadata."""


class LegacyMetadata(Metadata):
    """Metadata in a response of the legacy API."""

    hides = HIDDEN
    is_in_writes = False

    def __init__(self) -> None:
        super().__init__("Metadata: values by key. Only with `filter[meta]=true`.")


class LegacyMetadataInput(MetadataInput):
    """Metadata in a body of the legacy API, which ignores hidden keys and lists (records 5)."""

    def convert(self, value: object) -> dict[str, object]:
        """Return the keys that are not hidden and whose values are scalars."""
        # PHP writes an empty array and one with the keys 0, 1 and so on as a list.
        given = {} if value == "" or isinstance(value, list) else value
        return {
            key: each
            for key, each in super().convert(given).items()
            if not key.startswith(HIDDEN) and not isinstance(each, dict | list | None)
        }


_MEANING = "Metadata to set. Keys that begin with `_`, lists, objects and null are ignored."


def with_meta(native: type[Base], key: str, *without: str, **more: ItemArray) -> type[Base]:
    """Return an input schema with a legacy name of the metadata, such as ``coupon_meta``.

    Args:
        without: names of fields that only the native API has.
        more: fields that replace those of the native API.
    """
    parts = {
        key: LegacyMetadataInput(_MEANING, attribute="metadata"),
        "Meta": excluding("metadata", *without),
        **more,
    }
    return made_schema(f"Legacy{native.__name__}", native.__doc__, parts, native)


class LegacyCouponSchema(coupon.CouponSchema):
    """Coupon in responses of the legacy API."""

    coupon_meta = LegacyMetadata()

    Meta = excluding("metadata", *fields.on_request(coupon.CouponSchema))


class LegacyCustomerSchema(customers.CustomerSchema):
    """Customer in responses of the legacy API."""

    role = fields.String(
        "First role of the user; `customer` for a user without a role.",
        attribute="role_or_customer",
    )
    customer_meta = LegacyMetadata()

    Meta = excluding("metadata", *fields.on_request(customers.CustomerSchema))


class CustomerV3Schema(LegacyCustomerSchema):
    """Customer in responses of version 3 of the legacy API (decisions 12)."""

    last_update = fields.Timestamp("Time of the last update, in UTC.", attribute="updated_at")

    class Meta(Base.Meta):
        _names = list(LegacyCustomerSchema().fields)
        fields = (*_names[:2], "last_update", *_names[2:])


_COUPON: dict[type[ma.Schema], type[Base]] = {
    native: with_meta(native, "coupon_meta", *fields.on_request(coupon.CouponSchema))
    for native in (coupon.CouponCreate, coupon.CouponUpdate, coupon.CouponBulkItem)
}
_CUSTOMER: dict[type[ma.Schema], type[Base]] = {
    native: with_meta(native, "customer_meta", *fields.on_request(customers.CustomerSchema))
    for native in (customers.CustomerCreate, customers.CustomerUpdate, customers.CustomerBulkItem)
}

RECORDS: dict[type[ma.Schema], type[ma.Schema]] = {
    coupon.CouponSchema: LegacyCouponSchema,
    customers.CustomerSchema: LegacyCustomerSchema,
    **_COUPON,
    **_CUSTOMER,
    coupon.CouponCreateRequest: request(_COUPON[coupon.CouponCreate], "coupon"),
    coupon.CouponUpdateRequest: request(_COUPON[coupon.CouponUpdate], "coupon"),
    customers.CustomerCreateRequest: request(_CUSTOMER[customers.CustomerCreate], "customer"),
    customers.CustomerUpdateRequest: request(_CUSTOMER[customers.CustomerUpdate], "customer"),
}
"""Replacements for native schemas of coupons and customers."""
