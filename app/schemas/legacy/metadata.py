"""Metadata in the legacy API: ``coupon_meta`` and ``customer_meta`` (records 1).

``legacy.orders`` has ``order_meta``.
"""

import marshmallow as ma

from app.schemas.base import Base, excluding, request
from app.schemas.coupons.coupon import (
    CouponBulkItem,
    CouponCreate,
    CouponCreateRequest,
    CouponSchema,
    CouponUpdate,
    CouponUpdateRequest,
)
from app.schemas.customers import (
    CustomerBulkItem,
    CustomerCreate,
    CustomerCreateRequest,
    CustomerUpdate,
    CustomerUpdateRequest,
)
from app.schemas.fields.input import LegacyMetadataInput
from app.schemas.fields.output import LegacyMetadata

_MEANING = "Metadata to set. Keys that begin with `_`, lists, objects and null are ignored."


def with_meta(native: type[Base], key: str) -> type[Base]:
    """Return an input schema with a legacy name of the metadata, such as ``coupon_meta``."""
    parts = {
        key: LegacyMetadataInput(_MEANING, attribute="metadata"),
        "Meta": excluding("metadata"),
        "__doc__": native.__doc__,
    }
    return type(f"Legacy{native.__name__}", (native,), parts)


class LegacyCouponSchema(CouponSchema):
    """Coupon in responses of the legacy API."""

    coupon_meta = LegacyMetadata()

    Meta = excluding("metadata")


_COUPON: dict[type[ma.Schema], type[Base]] = {
    native: with_meta(native, "coupon_meta")
    for native in (CouponCreate, CouponUpdate, CouponBulkItem)
}
_CUSTOMER: dict[type[ma.Schema], type[Base]] = {
    native: with_meta(native, "customer_meta")
    for native in (CustomerCreate, CustomerUpdate, CustomerBulkItem)
}

LEGACY_METADATA: dict[type[ma.Schema], type[ma.Schema]] = {
    CouponSchema: LegacyCouponSchema,
    **_COUPON,
    **_CUSTOMER,
    CouponCreateRequest: request(_COUPON[CouponCreate], "coupon"),
    CouponUpdateRequest: request(_COUPON[CouponUpdate], "coupon"),
    CustomerCreateRequest: request(_CUSTOMER[CustomerCreate], "customer"),
    CustomerUpdateRequest: request(_CUSTOMER[CustomerUpdate], "customer"),
}
"""Replacements for native schemas of coupons and customers."""
