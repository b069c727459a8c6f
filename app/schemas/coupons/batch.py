"""Schemas of generated coupons (migration 3)."""

import copy

from app.conversions import numbers
from app.conversions.text import CODE_MAX_LENGTH
from app.errors import invalid
from app.schemas.base import Base, StrictBase, list_response, request, response
from app.schemas.coupons.coupon import CouponCreate
from app.schemas.fields import input as inputs
from app.schemas.fields import json_schema
from app.schemas.fields import output as fields
from app.schemas.fields.form import FormField, set_form
from app.schemas.fields.query import IntegerParam, TimestampParam
from app.schemas.queries import TIMES, LimitQuery, PageQuery, Query, ReadQuery

MAX_COUNT = 10_000
"""How many coupons a request can generate."""

CHARSET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Letters and digits that are not mistaken for each other."""

MAX_CHARSET_LENGTH = 256

MAX_NAME_LENGTH = 200

_TEXT = {**json_schema.TEXT_IN, "maxLength": CODE_MAX_LENGTH}


class CodeCount(inputs.Input):
    """Number of coupons to generate. Required."""

    rejects_absence = True
    openapi = {"type": "integer", "minimum": 1, "maximum": MAX_COUNT, "examples": [1000]}

    def convert(self, value: object) -> int:
        count = numbers.integer(value)
        if not 1 <= count <= MAX_COUNT:
            raise invalid("must be between 1 and {0:,}.", MAX_COUNT)
        return count


GeneratedCouponCreate = type(
    "GeneratedCouponCreate",
    (StrictBase,),
    {
        **{
            name: copy.deepcopy(field)
            for name, field in CouponCreate._declared_fields.items()
            if name not in {"code", "metadata"}
        },
        "__doc__": "Fields that all generated coupons have. None is required.",
    },
)


class GeneratedCouponPart(inputs.InputPart):
    """The fields of every generated coupon. ``null`` means the defaults."""

    def absent(self) -> object:
        """Return the defaults of a new coupon."""
        return self.deserialize({})


class CodesInput(StrictBase):
    """Codes to generate, without their number."""

    prefix = inputs.Text("Text that all codes begin with.", openapi=_TEXT, load_default="")
    pattern = inputs.Text(
        "Text that follows the prefix. Each `#` becomes a random character of the charset.",
        openapi={**_TEXT, "examples": ["####-####"]},
        load_default="####-####",
    )
    charset = inputs.Text(
        "Letters and digits for the random characters. Letters are converted to lower case.",
        openapi={
            **_TEXT,
            # Letters of other scripts are accepted, too; not every client has a pattern for them.
            "pattern": "^[A-Za-z0-9]+$",
            "minLength": 1,
            "maxLength": MAX_CHARSET_LENGTH,
        },
        load_default=CHARSET,
    )
    allow_guessable = inputs.StrictTrue(
        "Accept a pattern with only 100 times as many codes as requested, instead of a million "
        "times. The codes are easier to guess.",
        load_default=False,
    )
    name = inputs.Text(
        "Name of the batch, such as the campaign.",
        openapi={
            **json_schema.TEXT_IN,
            "maxLength": MAX_NAME_LENGTH,
            "examples": ["Summer mailing"],
        },
        load_default="",
    )
    coupon = GeneratedCouponPart(GeneratedCouponCreate)


class CouponBatchCreate(CodesInput):
    """Coupons to generate. Only `count` is required."""

    count = CodeCount(f"Number of coupons, at most {MAX_COUNT:,}.", required=True)


set_form(
    CouponBatchCreate,
    {
        "Codes": {
            "name": FormField(help="Such as that of the campaign."),
            "count": FormField("Number of coupons", help=f"At most {MAX_COUNT:,}."),
            "prefix": FormField(),
            "pattern": FormField(
                help="It follows the prefix. Each `#` becomes one of the characters below."
            ),
            "charset": FormField("Characters"),
            "allow_guessable": FormField(
                "Allow codes that are easier to guess", help="Accepts a shorter pattern."
            ),
        }
    },
)

CouponBatchCreateRequest = request(CouponBatchCreate, "generate")


class CouponBatchSchema(Base):
    """Coupons that were generated together."""

    id = fields.Identifier("Batch ID.")
    name = fields.String("Name of the batch. Empty if it has none.")
    created_at = fields.Timestamp("Creation time, in UTC.")
    count = fields.Number("Number of generated coupons.")
    prefix = fields.String("Text that all codes begin with, as it was sent.")
    pattern = fields.String("Text that follows the prefix, as it was sent.")
    charset = fields.String("The random characters, in lower case.")
    unused = fields.Number(
        "Number of published coupons without a confirmed use and without a reservation."
    )
    reserved = fields.Number(
        "Number of published coupons with a reservation and without a confirmed use."
    )
    used = fields.Number("Number of published coupons with a confirmed use.")
    trashed = fields.Number("Number of coupons in the trash.")
    campaign_id = fields.OptionalIdentifier(
        "ID of the campaign for which it was generated, or null.", on_request=True
    )


class CouponBatchFilter(Query):
    """Filter of batches (migration 3)."""

    created_at_min = TimestampParam(
        "filter[created_at_min]", f"Only batches created at or after this time. {TIMES}"
    )
    created_at_max = TimestampParam(
        "filter[created_at_max]", f"Only batches created at or before this time. {TIMES}"
    )

    campaign = IntegerParam("filter[campaign]", "Only batches of this campaign.")


class CouponBatchListQuery(PageQuery, LimitQuery, CouponBatchFilter, ReadQuery):
    """Query of a list of batches."""


CouponBatchResponse = response(CouponBatchSchema, "batch")
CouponBatchList = list_response(CouponBatchSchema, "batches")


class CouponBatchDeleteResponse(Base):
    """Result of moving the unused coupons of a batch to the trash."""

    trashed = fields.Number("Number of coupons that were moved to the trash.", required=True)
