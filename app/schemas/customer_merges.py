"""Schemas of merging accounts and of claiming orders of guests (people 6)."""

import marshmallow as ma

from app.schemas.base import Base, StrictBase, request, response
from app.schemas.customers import CustomerSchema
from app.schemas.fields import input as inputs
from app.schemas.fields import json_schema
from app.schemas.fields import output as fields
from app.schemas.fields.list_input import IdArray
from app.schemas.fields.query import IntegerParam
from app.schemas.queries import Query


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

    customer_id = inputs.AccountId("ID of the account to remove.", load_default=0)


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
