"""The customer on the wire: the field tables of the specification, section 2.2."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

import marshmallow as ma

from app.schemas import fields, inputs
from app.schemas.envelope import Base, BulkFailure, Wrapped, WrappedItems, update_schema
from app.schemas.fields import either

_CLEANED = "Markup is removed, white space collapsed."


class ShippingAddressSchema(Base):
    """A shipping address: 9 subfields, no e-mail and no phone."""

    first_name = fields.String("First name.")
    last_name = fields.String("Last name.")
    company = fields.String("Company.")
    address_1 = fields.String("Street and number.")
    address_2 = fields.String("Second line of the street address.")
    city = fields.String("City.")
    state = fields.String("State, county or province.")
    postcode = fields.String("Postcode.")
    country = fields.String("Country, usually its two-letter code.")


class BillingAddressSchema(ShippingAddressSchema):
    """A billing address: 11 subfields."""

    email = fields.String("E-mail address of the address.")
    phone = fields.String("Phone number.")


class Avatar(fields.Output):
    """The address of the avatar image that belongs to an e-mail address (decisions 5)."""

    openapi = {"type": ["string", "null"], "format": "uri"}

    @staticmethod
    @lru_cache(10_000)
    def wire(email: str | None) -> str | None:
        """Return the address, null without an e-mail."""
        if not email:
            return None
        digest = hashlib.md5(email.strip().lower().encode(), usedforsecurity=False).hexdigest()
        return f"https://secure.gravatar.com/avatar/{digest}?s=96&d=mm&r=g"


class CustomerSchema(Base):
    """A customer as it is read."""

    id = fields.Identifier("Customer (user) id.")
    created_at = fields.Timestamp("When the account was registered, UTC.")
    email = fields.String("E-mail address of the account; empty when it has none.")
    first_name = fields.String("First name.")
    last_name = fields.String("Last name.")
    username = fields.String("Login name.")
    role = fields.String("The first of the user's roles.")
    last_order_id = fields.OptionalIdentifier("Id of the most recent order, or null.")
    last_order_date = fields.OptionalTimestamp("When that order was created, UTC, or null.")
    orders_count = fields.Number("How many orders the customer has.")
    total_spent = fields.Amount("The total of the paid ones.")
    avatar_url = Avatar("Address of the avatar image, or null.")
    billing_address = fields.Part(BillingAddressSchema, prefix="billing_")
    shipping_address = fields.Part(ShippingAddressSchema, prefix="shipping_")


class CustomerV3Schema(CustomerSchema):
    """A customer as version 3 of the legacy API shows it (decisions 12)."""

    last_update = fields.Timestamp(
        "When the account was last changed, UTC.", attribute="updated_at"
    )

    class Meta(Base.Meta):
        """Its place is after ``created_at``."""

        _names = list(CustomerSchema._declared_fields)
        fields = (*_names[:2], "last_update", *_names[2:])


class ShippingAddressInput(Base):
    """Subfields of a shipping address; other keys are ignored."""

    first_name = inputs.CleanText("First name.")
    last_name = inputs.CleanText("Last name.")
    company = inputs.CleanText("Company.")
    address_1 = inputs.CleanText("Street and number.")
    address_2 = inputs.CleanText("Second line of the street address.")
    city = inputs.CleanText("City.")
    state = inputs.CleanText("State, county or province.")
    postcode = inputs.CleanText("Postcode.")
    country = inputs.CleanText("Country, usually its two-letter code.")


class BillingAddressInput(ShippingAddressInput):
    """Subfields of a billing address; other keys are ignored."""

    email = inputs.CleanText("E-mail address of the address.")
    phone = inputs.CleanText("Phone number.")


class CustomerCreate(Base):
    """A customer to create: `email`, and whatever else is known."""

    email = inputs.Address("E-mail address, which no other account has.", required=True)
    username = inputs.Text(
        "Login name: 1 to 60 letters, digits, `_ . - @` and inner single blanks. Empty: one made "
        "of the e-mail address."
    )
    password = inputs.Password("Empty: no password opens the account.", load_only=True)
    first_name = inputs.CleanText(f"First name. {_CLEANED}")
    last_name = inputs.CleanText(f"Last name. {_CLEANED}")
    billing_address = inputs.InputPart(BillingAddressInput)
    shipping_address = inputs.InputPart(ShippingAddressInput)


_EDITS: dict[str, ma.fields.Field[Any]] = {
    "email": inputs.Text(
        "E-mail address. One that is not valid or has another account changes nothing; empty "
        "removes the address."
    ),
    "username": inputs.Text("Never changes."),
    "password": inputs.Password("The new password; empty changes nothing.", load_only=True),
}
CustomerUpdate = update_schema(CustomerCreate, "CustomerUpdate", **_EDITS)
CustomerBulkItem = update_schema(
    CustomerCreate,
    "CustomerBulkItem",
    id=inputs.RecordId("Which customer to edit; absent or 0 creates."),
    email=inputs.Text("E-mail address; a create needs a valid one that no other account has."),
)


class CustomerResponse(Base):
    """One customer."""

    customer = ma.fields.Nested(CustomerSchema, required=True)


class CustomerList(Base):
    """A page of customers."""

    customers = ma.fields.List(ma.fields.Nested(CustomerSchema), required=True)


class CustomerBulkResponse(Base):
    """The results of a bulk request, in the order of its items."""

    customers = ma.fields.List(either(BulkFailure, CustomerSchema), required=True)


class CustomerCreateRequest(Base):
    """A customer to create."""

    customer = Wrapped(CustomerCreate, missing_code="shop_api_missing_customer_data")


class CustomerUpdateRequest(Base):
    """Fields of a customer to change."""

    customer = Wrapped(CustomerUpdate, missing_code="shop_api_missing_customer_data")


class CustomerBulkRequest(Base):
    """Customers to create and to change."""

    customers = WrappedItems(CustomerBulkItem, missing_code="shop_api_missing_customers_data")
