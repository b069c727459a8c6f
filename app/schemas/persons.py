"""Schemas of persons: their data, erasure, merging accounts and claiming orders (people 3 to 6)."""

import marshmallow as ma

from app.schemas.base import Base, StrictBase, request, response
from app.schemas.customers import CustomerSchema
from app.schemas.fields import input as inputs
from app.schemas.fields import json_schema
from app.schemas.fields import output as fields
from app.schemas.fields.list_input import IdArray
from app.schemas.fields.query import ExactText, IntegerParam
from app.schemas.queries import Query

_CUSTOMER = "ID of the account."
_EMAIL = "E-mail address of an account, of a guest's order or of a use of a coupon."
_ORDER = "ID of an order: its account, or the guest with its e-mail address."


class PersonQuery(Query):
    """Query that names a person: exactly one parameter."""

    customer_id = IntegerParam("customer_id", _CUSTOMER)
    email = ExactText("email", _EMAIL)
    order_id = IntegerParam("order_id", _ORDER)


class PersonName(StrictBase):
    """Name of a person: exactly one field."""

    customer_id = inputs.ExactInteger(_CUSTOMER)
    email = inputs.Text(_EMAIL)
    order_id = inputs.ExactInteger(_ORDER)


PersonRequest = request(PersonName, "person")


class PersonNumbers(Base):
    """Number of records of each kind. Plugins can add further kinds."""

    customers = fields.Number("Accounts.")
    orders = fields.Number("Orders.")
    order_notes = fields.Number("Notes of the orders.")
    order_refunds = fields.Number("Refunds of the orders.")
    downloads = fields.Number("Download permissions of the orders.")
    redemptions = fields.Number("Uses of coupons with an account or an address.")
    keys = fields.Number("API keys of the account.")
    sessions = fields.Number("Sessions of the admin pages.")
    imports = fields.Number("Files that wait for their import and contain an address.")
    coupons = fields.Number("Coupons whose conditions name an address.")


class ErasureReason(Base):
    """Why a person cannot be erased."""

    code = fields.String("`open_orders` or `is_caller`.")
    message = fields.String("The reason.")


class ErasureResultSchema(Base):
    """What an erasure has erased."""

    customer_id = fields.OptionalIdentifier("ID of the account, or null for a guest.")
    complete = fields.Boolean(
        "Whether nothing remains to be erased. While it is false, send the request again."
    )
    erased = ma.fields.Nested(PersonNumbers, required=True)


class ErasureSchema(ErasureResultSchema):
    """What an erasure would erase."""

    emails = fields.StringList("E-mail addresses of the person.")
    other_emails = fields.StringList(
        "Billing e-mail addresses of the account and of its orders that anybody could have typed. "
        "Request them separately if they belong to the person."
    )
    reasons = fields.objects(ErasureReason, "Why the person cannot be erased, or an empty list.")


ErasurePreview = response(ErasureSchema, "erasure")
ErasureResponse = response(ErasureResultSchema, "erasure")


class PersonSession(Base):
    """Session of the admin pages."""

    created_at = fields.Timestamp("Start of the session, in UTC.")
    last_used_at = fields.Timestamp("Last use, in UTC, to the minute.")
    expires_at = fields.Timestamp("Latest end of the session, in UTC.")
    user_agent = fields.String("User agent of the browser.")


class PersonCoupon(Base):
    """Coupon whose conditions name an address of the person."""

    id = fields.Identifier("Coupon ID.")
    code = fields.String("Coupon code.")


class PersonRefusedCode(Base):
    """Code that was refused for a person."""

    created_at = fields.Timestamp("Time of the refusal, in UTC.")
    code = fields.String("Coupon code. Empty if it could be an address or a number of a card.")
    reason = fields.String("First reason.")
    total = fields.OptionalAmount("Sum of the items before discounts, or null if it is unknown.")
    currency = fields.String("Currency of the sum.")


def _records(meaning: str) -> fields.Output:
    """Return the field of a list of records, whose fields are documented elsewhere."""
    records = {"type": "array", "items": {"type": "object", "additionalProperties": True}}
    return fields.Output(meaning, openapi=records)


class PersonDataSchema(Base):
    """Everything that the shop knows of a person. Plugins can add further lists."""

    generated_at = fields.Timestamp("Time of the data, in UTC.")
    customer_ids = fields.Identifiers("IDs of the account and of those merged into it.")
    emails = fields.StringList("E-mail addresses of the person.")
    other_emails = fields.StringList("Other billing e-mail addresses; see the preview.")
    customers = _records("The account, as a line of `shop-api export customers`.")
    orders = _records("Orders, also in the trash, as lines of `shop-api export orders`.")
    refunds = _records("Refunds of the orders, as lines of `shop-api export refunds`.")
    redemptions = _records("Uses of coupons, as lines of `shop-api export redemptions`.")
    events = _records("Events of the account and of the orders, as `GET /events`, with `changes`.")
    keys = _records("API keys, as `GET /keys` returns them.")
    sessions = fields.objects(PersonSession, "Sessions of the admin pages.")
    coupons = fields.objects(PersonCoupon, "Coupons whose conditions name an address.")
    refused_codes = fields.objects(
        PersonRefusedCode, "Codes that were refused for the person in the last 7 days."
    )


PersonDataResponse = response(PersonDataSchema, "person_data")


class ClaimedIds(IdArray):
    """IDs of the orders of one claim. None of them is dropped or converted."""

    openapi = {**json_schema.IDS_IN, "maxItems": 1_000}

    def convert(self, value: object) -> list[int]:
        """Return the IDs, or raise ValueError if an entry is not one."""
        converted = super().convert(value)
        if loss := self.loss(value, converted):
            raise ValueError(loss)
        return converted


class MergeReason(Base):
    """Why an account cannot be merged into another one."""

    code = fields.String("`is_caller`, `has_keys`, `has_capabilities` or `too_many_orders`.")
    message = fields.String("The reason.")


class MergeSchema(Base):
    """What a merge moves into the account that is kept."""

    customer = ma.fields.Nested(CustomerSchema, required=True)
    customer_id = fields.Identifier("ID of the account that would be removed.")
    orders = fields.Number("Number of its orders, with those in the trash.")
    redemptions = fields.Number("Number of its uses of coupons.")
    metadata = fields.Number("Number of its metadata keys that the kept account lacks.")
    guest_orders = fields.Number(
        "Number of orders of guests with its addresses, which can be claimed after the merge."
    )
    reasons = fields.objects(MergeReason, "Why it cannot be merged, or an empty list.")


class MergeCreate(StrictBase):
    """The account to merge into the one in the path."""

    customer_id = inputs.ExactInteger("ID of the account to remove.", load_default=0)


class MergeQuery(Query):
    """Query of the preview of a merge."""

    customer_id = IntegerParam("customer_id", "ID of the account to remove.", load_default=0)


class ClaimSchema(Base):
    """Orders of guests that an account can claim."""

    orders = fields.Number("Number of the orders.")
    order_ids = fields.Identifiers("IDs of the oldest of them, up to 1,000.")


class ClaimCreate(StrictBase):
    """The orders to claim."""

    order_ids = ClaimedIds(
        "IDs of the orders. If absent, the oldest 1,000 are claimed.", load_default=None
    )


class ClaimResult(Base):
    """What a claim has done."""

    orders = fields.Number("Number of orders that were claimed.")
    complete = fields.Boolean("Whether no order is left to claim.")


MergeResponse = response(MergeSchema, "merge")
MergeRequest = request(MergeCreate, "merge")
ClaimResponse = response(ClaimSchema, "claim")
ClaimRequest = request(ClaimCreate, "claim")
ClaimResultResponse = response(ClaimResult, "claim")
