"""The customer on the wire: the field tables of the specification, section 2.2."""

from __future__ import annotations

import hashlib

import marshmallow as ma

from app.schemas import fields
from app.schemas.envelope import Base, BulkFailure, Wrapped, WrappedItems, edit_of
from app.schemas.fields import either


class ShippingAddressSchema(Base):
    """A shipping address: 9 subfields, no e-mail and no phone."""

    first_name = fields.Words()
    last_name = fields.Words()
    company = fields.Words()
    address_1 = fields.Words()
    address_2 = fields.Words()
    city = fields.Words()
    state = fields.Words()
    postcode = fields.Words()
    country = fields.Words()


class BillingAddressSchema(ShippingAddressSchema):
    """A billing address: 11 subfields."""

    email = fields.Words()
    phone = fields.Words()


class Avatar(fields.Output):
    """The address of the avatar image that belongs to an e-mail address (decisions 5)."""

    openapi = {"type": ["string", "null"], "format": "uri"}

    @staticmethod
    def wire(email: str | None) -> str | None:
        """Return the address, null without an e-mail."""
        if not email:
            return None
        digest = hashlib.md5(email.strip().lower().encode(), usedforsecurity=False).hexdigest()
        return f"https://secure.gravatar.com/avatar/{digest}?s=96&d=mm&r=g"


class CustomerSchema(Base):
    """A customer as it is read."""

    id = fields.Identifier()
    created_at = fields.Moment()
    email = fields.Words()
    first_name = fields.Words()
    last_name = fields.Words()
    username = fields.Words()
    role = fields.Words()
    last_order_id = fields.OptionalIdentifier()
    last_order_date = fields.OptionalMoment()
    orders_count = fields.Number()
    total_spent = fields.Amount()
    avatar_url = Avatar()
    billing_address = fields.Part(BillingAddressSchema, prefix="billing_")
    shipping_address = fields.Part(ShippingAddressSchema, prefix="shipping_")


class ShippingAddressInput(Base):
    """Subfields of a shipping address; other keys are ignored."""

    first_name = fields.Plain()
    last_name = fields.Plain()
    company = fields.Plain()
    address_1 = fields.Plain()
    address_2 = fields.Plain()
    city = fields.Plain()
    state = fields.Plain()
    postcode = fields.Plain()
    country = fields.Plain()


class BillingAddressInput(ShippingAddressInput):
    """Subfields of a billing address; other keys are ignored."""

    email = fields.Plain()
    phone = fields.Plain()


class CustomerCreate(Base):
    """A customer to create: `email`, and whatever else is known."""

    email = fields.Text(required=True)
    username = fields.Text()
    password = fields.Text(load_only=True)
    first_name = fields.Plain()
    last_name = fields.Plain()
    billing_address = fields.InputPart(BillingAddressInput)
    shipping_address = fields.InputPart(ShippingAddressInput)


CustomerEdit = edit_of(CustomerCreate, "CustomerEdit")
CustomerItem = edit_of(CustomerCreate, "CustomerItem", id=fields.RecordId())


class CustomerEnvelope(Base):
    """One customer."""

    customer = ma.fields.Nested(CustomerSchema, required=True)


class CustomerList(Base):
    """A page of customers."""

    customers = ma.fields.List(ma.fields.Nested(CustomerSchema), required=True)


class CustomerResults(Base):
    """The results of a bulk request, in the order of its items."""

    customers = ma.fields.List(either(BulkFailure, CustomerSchema), required=True)


class CustomerCreateBody(Base):
    """A customer to create."""

    customer = Wrapped(CustomerCreate, missing_code="shop_api_missing_customer_data")


class CustomerEditBody(Base):
    """Fields of a customer to change."""

    customer = Wrapped(CustomerEdit, missing_code="shop_api_missing_customer_data")


class CustomerBulkBody(Base):
    """Customers to create and to change."""

    customers = WrappedItems(CustomerItem, missing_code="shop_api_missing_customers_data")
