"""Customer schemas: the field tables of spec 2.2."""

import hashlib
from dataclasses import replace

import marshmallow as ma

from app.conversions import emails
from app.schemas.base import (
    Base,
    bulk_request,
    bulk_response,
    list_response,
    made_schema,
    request,
    response,
    update_schema,
)
from app.schemas.fields import input as inputs
from app.schemas.fields import json_schema
from app.schemas.fields import output as fields
from app.schemas.fields.form import FormField, set_form
from app.schemas.fields.list_input import TagArray

_TAGS = "Tags of the customer, which coupons can name in `customer_tags`."
_CLEANED = "Tags are removed and white space is collapsed."


class AccountEmailUpdate(inputs.Text):
    """The e-mail address of an account in an update, where an invalid one is ignored (spec 4.2)."""

    openapi = json_schema.EMAIL_IN

    def loss(self, value: object, converted: str) -> str:
        """Return why the address is ignored or changed."""
        address = emails.lower_domain(converted)
        is_kept = not address or emails.sanitize_email(converted) == address
        return "" if is_kept else "is not a valid e-mail address."


class UnchangeableText(inputs.Text):
    """Text that is ignored, because it cannot be updated."""

    def loss(self, value: object, converted: str) -> str:
        """Return that the text is ignored."""
        return "cannot be updated."


class Password(inputs.Text):
    """A password."""

    openapi = json_schema.PASSWORD_IN


class ShippingAddressSchema(Base):
    """Shipping address: nine parts, without an e-mail address and a phone number."""

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
    """Billing address: eleven parts."""

    email = fields.String("Billing e-mail address.")
    phone = fields.String("Phone number.")


class Avatar(fields.Output):
    """URL of the avatar image for an e-mail address (decisions 5)."""

    openapi = {"type": ["string", "null"], "format": "uri"}

    @staticmethod
    def wire(email: str | None) -> str | None:
        if not email:
            return None
        digest = hashlib.md5(email.strip().lower().encode(), usedforsecurity=False).hexdigest()
        return f"https://secure.gravatar.com/avatar/{digest}?s=96&d=mm&r=g"


class CustomerSchema(Base):
    """Customer in a response (spec 2.2)."""

    id = fields.Identifier("Customer (user) ID.")
    created_at = fields.Timestamp("Registration time, in UTC.")
    email = fields.String("E-mail address of the account. Empty if the account has none.")
    first_name = fields.String("First name.")
    last_name = fields.String("Last name.")
    username = fields.String("Username.")
    role = fields.String("First role of the user.")
    last_order_id = fields.OptionalIdentifier("ID of the most recent order, or null.")
    last_order_date = fields.OptionalTimestamp(
        "Creation time of the most recent order, in UTC, or null."
    )
    orders_count = fields.Number("Number of orders.")
    total_spent = fields.Amount("Sum of the totals of paid orders.")
    avatar_url = Avatar("URL of the avatar image, or null.")
    billing_address = fields.Composite(BillingAddressSchema, prefix="billing_")
    shipping_address = fields.Composite(ShippingAddressSchema, prefix="shipping_")
    tags = fields.StringList(_TAGS, on_request=True, wire=lambda tags: tags or [])
    metadata = fields.Metadata()


_ADDRESS_FORM = {
    "address_1": FormField("Street and number", help=""),
    "address_2": FormField("Second line", help=""),
    "state": FormField("State, county or province", help=""),
    "country": FormField(help="The two-letter code, such as IT."),
    "email": FormField("E-mail address", help=""),
    "phone": FormField("Phone number", help=""),
}


def _address_input(shown: type[Base], name: str, meaning: str) -> type[Base]:
    """Return the schema of an address in a request, with the parts that responses show."""
    parts = {
        part: inputs.CleanText(field.metadata["description"])
        for part, field in shown._declared_fields.items()
    }
    schema = made_schema(name, meaning, parts)
    set_form(schema, {"More": {part: _ADDRESS_FORM.get(part, FormField()) for part in parts}})
    return schema


ShippingAddressCreate = _address_input(
    ShippingAddressSchema,
    "ShippingAddressCreate",
    "Parts of a shipping address. Other keys are ignored.",
)
BillingAddressCreate = _address_input(
    BillingAddressSchema,
    "BillingAddressCreate",
    "Parts of a billing address. Other keys are ignored.",
)


class CustomerCreate(Base):
    """Fields of a new customer. Only `email` is required."""

    email = inputs.Text(
        "E-mail address. Must be unique among all accounts.",
        openapi={**json_schema.EMAIL_IN, "format": "email"},
        required=True,
    )
    username = inputs.Text(
        "Username: 1 to 60 letters, digits, `_ . - @` and single inner spaces. If empty, it is "
        "generated from the e-mail address.",
        openapi=json_schema.USERNAME_IN,
    )
    password = Password("Password. If empty, the account has no usable password.", load_only=True)
    first_name = inputs.CleanText(f"First name. {_CLEANED}")
    last_name = inputs.CleanText(f"Last name. {_CLEANED}")
    billing_address = inputs.InputPart(BillingAddressCreate)
    shipping_address = inputs.InputPart(ShippingAddressCreate)
    tags = TagArray(_TAGS)
    metadata = inputs.MetadataInput(inputs.METADATA)


_EDITS: dict[str, ma.fields.Field[object]] = {
    "email": AccountEmailUpdate(
        "E-mail address. An invalid address or the address of another account is ignored. An empty "
        "string removes the address."
    ),
    "username": UnchangeableText(
        "Ignored. The username cannot be updated.", openapi=json_schema.USERNAME_IN
    ),
    "password": Password("New password. An empty string changes nothing.", load_only=True),
}
CustomerUpdate = update_schema(CustomerCreate, "CustomerUpdate", **_EDITS)
CustomerBulkItem = update_schema(
    CustomerCreate,
    "CustomerBulkItem",
    id=inputs.RecordId("ID of the customer to update. If absent or 0, a customer is created."),
    email=inputs.Text(
        "E-mail address. Required and unique on create.", openapi=json_schema.EMAIL_IN
    ),
)

_EMAIL_FIELD = FormField("E-mail address", kind="email", help="No two accounts can have the same.")
_NAME_FIELDS = {"first_name": FormField(help=""), "last_name": FormField(help="")}
_TAGS_FIELD = FormField(help="Coupons can name them, one per line.")
_USERNAME_FIELD = FormField(help="If empty, it is generated from the e-mail address.")
set_form(
    CustomerCreate,
    {
        "Account": {
            "email": _EMAIL_FIELD,
            **_NAME_FIELDS,
            "username": _USERNAME_FIELD,
            "tags": _TAGS_FIELD,
        }
    },
    hidden=("password",),
)
set_form(
    CustomerUpdate,
    {"Account": {"email": replace(_EMAIL_FIELD, help=""), **_NAME_FIELDS, "tags": _TAGS_FIELD}},
    hidden=("username", "password"),
)

CustomerResponse = response(CustomerSchema, "customer")
CustomerList = list_response(CustomerSchema, "customers")

CustomerBulkResponse = bulk_response(CustomerSchema, "customers")
CustomerCreateRequest = request(CustomerCreate, "customer")

CustomerUpdateRequest = request(CustomerUpdate, "customer")
CustomerBulkRequest = bulk_request(CustomerBulkItem, "customers")
