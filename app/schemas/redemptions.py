"""Redemption schemas, and query parameters of their lists (redemptions 4)."""

import re

from app.conversions import text
from app.schemas.base import Base, list_response, request, response
from app.schemas.fields import input as inputs
from app.schemas.fields import json_schema
from app.schemas.fields import output as fields
from app.schemas.fields.form import FormField, set_form
from app.schemas.fields.query import (
    ChoiceParam,
    CodeParam,
    IntegerParam,
    StatusListParam,
    TextParam,
)
from app.schemas.orders.order import OptionalId
from app.schemas.queries import CountQuery, LimitQuery, PageQuery, ReadQuery, Times


class Reference(inputs.Input):
    """The caller's cart or order number: 1 to 191 characters. Required."""

    rejects_absence = True
    openapi = json_schema.REFERENCE_IN

    def convert(self, value: object) -> str:
        """Return the reference without blanks around it, or raise ValueError."""
        reference = text.to_string(value).strip()
        if not 1 <= len(reference) <= 191:  # redemptions 4
            raise ValueError("must have 1 to 191 characters.")
        if re.fullmatch("order-[0-9]+", reference):
            raise ValueError(
                "must not be order-<number>, which is reserved for orders of this service."
            )
        return reference


class RedemptionStatusField(fields.Output):
    """Status of a redemption."""

    openapi = {
        json_schema.COMPONENT: "RedemptionStatus",
        "type": "string",
        "enum": ["reserved", "confirmed", "released"],
        "description": "Status of a redemption.",
    }


class RedemptionSchema(Base):
    """Redemption in a response."""

    id = fields.Identifier("Redemption ID.")
    coupon_id = fields.OptionalIdentifier(
        "Coupon ID, or null if the coupon was permanently deleted."
    )
    code = fields.String("Coupon code.")
    reference = fields.String("The caller's cart or order number; `order-<ID>` for an order.")
    order_id = fields.OptionalIdentifier("ID of the order that controls the redemption, or null.")
    customer_id = OptionalId("ID of the customer account, 0 for a guest.")
    email = fields.String("E-mail address given with the redemption.")
    amount = fields.OptionalAmount("Discount as given by the caller, or null.")
    status = RedemptionStatusField("Status. An expired reservation is released.")
    created_at = fields.Timestamp("Creation time, in UTC.")
    updated_at = fields.Timestamp("Time of the last change of the status, in UTC.")
    confirmed_at = fields.OptionalTimestamp(
        "Time of the last confirmation, in UTC. Null unless the redemption is confirmed."
    )
    expires_at = fields.OptionalTimestamp(
        "Time when the reservation expires, in UTC. Null once confirmed, and for orders."
    )
    campaign_id = fields.OptionalIdentifier(
        "ID of the campaign for which the use counts, or null.", on_request=True
    )


class RedemptionCreate(Base):
    """Use of a coupon to reserve. Only `code` and `reference` are required."""

    code = inputs.Code("Coupon code, in any letter case.", required=True)
    reference = Reference(
        "The caller's cart or order number, 1 to 191 characters. The same code and reference again "
        "return the same redemption.",
        required=True,
    )
    customer_id = inputs.ExactInteger("ID of the customer account, 0 for a guest.", load_default=0)
    email = inputs.Email("E-mail address of the customer, or empty.", load_default="")
    amount = inputs.Discount("Discount amount, at least 0, for the reports.", load_default=None)
    expires_in = inputs.ExpiresIn("Seconds until the reservation expires.", load_default=900)


set_form(
    RedemptionCreate,
    {
        "Customer": {
            "email": FormField(
                "E-mail address", help="The limit of uses per customer applies to this address."
            ),
            "customer_id": FormField("Customer ID", help="If the customer has an account."),
            "amount": FormField(
                "Discount", unit="currency", help="Discount that was granted, for the reports."
            ),
        }
    },
    hidden=("code", "reference", "expires_in"),
)

RedemptionCreateRequest = request(RedemptionCreate, "redemption")
RedemptionResponse = response(RedemptionSchema, "redemption")

RedemptionList = list_response(RedemptionSchema, "redemptions")


class RedemptionFilter(Times):
    """Filter of redemptions (redemptions 4)."""

    code = CodeParam("filter[code]", "Only redemptions of this coupon code.")
    coupon_id = IntegerParam("filter[coupon_id]", "Only redemptions of this coupon.")
    campaign = IntegerParam("filter[campaign]", "Only redemptions that count for this campaign.")
    customer_id = IntegerParam(
        "filter[customer_id]", "Only redemptions of this customer. 0 means guests."
    )
    email = TextParam(
        "filter[email]", "Only redemptions with this e-mail address, in any letter case."
    )
    reference = TextParam("filter[reference]", "Only redemptions with this reference.")
    order_id = IntegerParam("filter[order_id]", "Only redemptions of this order.")
    status = StatusListParam(
        "filter[status]",
        "Only redemptions in these statuses, separated by commas.",
        openapi=json_schema.REDEMPTION_STATUSES_PARAMETER,
    )


class RedemptionOrder(LimitQuery, RedemptionFilter):
    """Filter and order of redemptions."""

    orderby = ChoiceParam(
        "filter[orderby]",
        "Sort key. `date` is the creation time.",
        "date",
        "id",
        "expires_at",
        default="date",
    )


class RedemptionCountQuery(CountQuery, RedemptionOrder):
    """Query of a count of redemptions."""


class RedemptionListQuery(PageQuery, RedemptionOrder, ReadQuery):
    """Query of a list of redemptions."""
