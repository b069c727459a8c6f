"""Campaign schemas, and query parameters of their lists (campaigns 2)."""

from app.schemas.base import Base, StrictBase, list_response, request, response, update_schema
from app.schemas.fields import input as inputs
from app.schemas.fields import json_schema
from app.schemas.fields import list_input as list_inputs
from app.schemas.fields import output as fields
from app.schemas.fields.form import FormField, set_form
from app.schemas.fields.query import ChoiceParam, CodeParam, TextParam, TimestampParam
from app.schemas.queries import TIMES, CountQuery, LimitQuery, PageQuery, Query, ReadQuery

MAX_NAME_LENGTH = 200
STATES = ("ended", "paused", "scheduled", "used_up", "active")

_NAME = "Name for the shop's staff, 1 to 200 characters. Names may repeat."
_ACTIVE = "Whether the coupons of the campaign can be used. False pauses them."
_STARTS = "The first second in which the coupons can be used."
_ENDS = "The first second in which they can no longer be used."
_LIMIT = "Maximum number of uses of all coupons together, confirmed and reserved."
_LIMIT_PER_USER = "Maximum number of uses of all coupons together by one customer."
_BUDGET = "Maximum sum of the discounts, confirmed and reserved, in the currency of the shop."
_TAGS = "Tags that each coupon of the campaign has in addition to its own."
_COMBINES = "Tags in addition to `combines_with` of each coupon of the campaign."


class CampaignState(fields.Output):
    """State of a campaign."""

    openapi = {
        json_schema.COMPONENT: "CampaignState",
        "type": "string",
        "enum": list(STATES),
        "description": "State of a campaign: the first that holds.",
    }


class EventCampaign(Base):
    """Campaign in an event."""

    id = fields.Identifier("Campaign ID.")
    name = fields.String(_NAME)
    created_at = fields.Timestamp("Creation time, in UTC.")
    updated_at = fields.Timestamp("Time of the last update, in UTC.")
    active = fields.Boolean(_ACTIVE)
    starts_at = fields.OptionalTimestamp(f"{_STARTS} Null means at once.")
    ends_at = fields.OptionalTimestamp(f"{_ENDS} Null means never.")
    usage_limit = fields.Limit(f"{_LIMIT} Null means no limit.")
    usage_limit_per_user = fields.Limit(f"{_LIMIT_PER_USER} Null means no limit.")
    budget = fields.Amount(f"{_BUDGET} 0.00 means no budget.")
    tags = fields.StringList(_TAGS)
    combines_with = fields.StringList(_COMBINES)


class CampaignSchema(EventCampaign):
    """Campaign in a response."""

    state = CampaignState("State, the first that holds.")
    uses = fields.Number("Number of confirmed and reserved uses.")
    discount = fields.Amount("Sum of the discounts of these uses.")


class CampaignName(inputs.CleanText):
    """Name of a campaign. The service rejects an empty one."""

    openapi = {**json_schema.TEXT_IN, "minLength": 1, "maxLength": MAX_NAME_LENGTH}

    def convert(self, value: object) -> str:
        return super().convert(value).strip()


class CampaignCreate(StrictBase):
    """Fields of a new campaign. Only `name` is required."""

    read_only = StrictBase.read_only | {"state", "uses", "discount"}

    name = CampaignName(_NAME)
    active = inputs.StrictTrue(f"{_ACTIVE} Campaigns are created active.")
    starts_at = inputs.MomentText(f"{_STARTS} An empty string removes it.")
    ends_at = inputs.MomentText(f"{_ENDS} An empty string removes it.")
    usage_limit = inputs.Count(f"{_LIMIT} 0 means no limit.")
    usage_limit_per_user = inputs.Count(f"{_LIMIT_PER_USER} 0 means no limit.")
    budget = inputs.Discount(f"{_BUDGET} Empty means no budget.")
    tags = list_inputs.TagArray(_TAGS)
    combines_with = list_inputs.CombinationArray(_COMBINES)


set_form(
    CampaignCreate,
    {
        "Campaign": {
            "name": FormField(help="Only the shop's staff sees it.", is_required=True),
            "active": FormField(default="true", help="Without it, all its coupons are paused."),
            "starts_at": FormField(
                "Starts at",
                help="Its coupons work from this time on, in the time zone of the shop. "
                "Empty means at once.",
            ),
            "ends_at": FormField(
                "Ends at", help="From this time on, they do not work any more. Empty means never."
            ),
        },
        "Limits": {
            "usage_limit": FormField(
                "Limit of uses",
                help="How often all its coupons can be used together. Empty means no limit.",
                is_empty_zero=True,
            ),
            "usage_limit_per_user": FormField(
                "Limit of uses per customer",
                help="How often one customer can use its coupons together. Empty means no limit.",
                is_empty_zero=True,
            ),
            "budget": FormField(
                unit="currency",
                help="Maximum sum of the discounts of its coupons. Empty means no budget.",
                is_empty_zero=True,
            ),
        },
        "Combination": {
            "tags": FormField(help="Each of its coupons has them, one per line."),
            "combines_with": FormField(
                "Can be combined with",
                help="Tags of coupons, one per line. `-newsletter` means all others. "
                "Empty means all coupons.",
            ),
        },
    },
)

CampaignUpdate = update_schema(CampaignCreate, "CampaignUpdate")
CampaignCreateRequest = request(CampaignCreate, "campaign")
CampaignUpdateRequest = request(CampaignUpdate, "campaign")
CampaignResponse = response(CampaignSchema, "campaign")
CampaignList = list_response(CampaignSchema, "campaigns")


class CampaignFilter(Query):
    """Filter of campaigns."""

    q = TextParam("filter[q]", "Text in the name, in any letter case.")
    state = ChoiceParam("filter[state]", "Only campaigns in this state.", *STATES)
    tag = CodeParam("filter[tag]", "Only campaigns with this tag, in any letter case.")
    created_at_min = TimestampParam(
        "filter[created_at_min]", f"Only campaigns created at or after this time. {TIMES}"
    )
    created_at_max = TimestampParam(
        "filter[created_at_max]", f"Only campaigns created at or before this time. {TIMES}"
    )


class CampaignCountQuery(CountQuery, LimitQuery, CampaignFilter):
    """Query of a count of campaigns."""


class CampaignListQuery(PageQuery, LimitQuery, CampaignFilter, ReadQuery):
    """Query of a list of campaigns."""
