"""Coupon schemas: the field tables of spec 2.1."""

from app.schemas.base import (
    Base,
    bulk_request,
    bulk_response,
    list_response,
    request,
    response,
    update_schema,
)
from app.schemas.fields import input as inputs
from app.schemas.fields import json_schema
from app.schemas.fields import list_input as list_inputs
from app.schemas.fields import output as fields
from app.schemas.fields.form import FormField, set_form
from app.schemas.fields.input import ZERO

_TYPE = "Discount type."
_ALONE = "Whether the coupon cannot be combined with other coupons."
_PRODUCTS = "IDs of the products that the coupon applies to. Empty means all products."
_NOT_PRODUCTS = "IDs of products that the coupon does not apply to."
_CATEGORIES = (
    "IDs of the product categories that the coupon applies to. Empty means all categories."
)
_NOT_CATEGORIES = "IDs of product categories that the coupon does not apply to."
_SHIPPING = "Whether the coupon grants free shipping."
_NOT_SALE = "Whether items on sale are excluded."
_DATE = (
    "Expiry date. The coupon expires at midnight UTC at the beginning of this day, or with "
    "`SHOP_EXPIRY_IN_TIMEZONE` as this day ends in the shop. An empty string removes the date."
)
_ACTIVE = "Whether the coupon can be used. False pauses it."
_STARTS = "The first second in which the coupon can be used."
_TAGS = "Tags that other coupons can name in `combines_with`."
_COMBINES = (
    "Tags of the coupons with which this coupon can be combined. `-tag` excludes coupons with a "
    "tag, and `code:summer15` means the coupon with a code. Empty means all coupons."
)
_CUSTOMER_TAGS = (
    "Tags of the customers who can use the coupon. `-tag` excludes customers with a tag, and "
    "`role:wholesale` means the customers with a role. Empty means all customers."
)
_FIRST_ORDER = "Whether the coupon applies only to the first order of a customer."
_MAXIMUM = "Maximum discount of the coupon in a cart."
_BUY = "Of the type `buy_x_get_y`: how many units must be bought. 0 counts as 1."
_GET = "Of the type `buy_x_get_y`: how many units are discounted for them. 0 counts as 1."
_GET_PRODUCTS = (
    "Of the type `buy_x_get_y`: IDs of the discounted products. Empty means the products that the "
    "coupon applies to."
)
_AMOUNT = "Rounded half up to the cent. At most 16 digits before the decimal point."


class CouponSchema(Base):
    """Coupon in a response (spec 2.1)."""

    id = fields.Identifier("Coupon ID.")
    code = fields.String("Coupon code, in lower case.")
    type = fields.String(_TYPE)
    created_at = fields.Timestamp("Creation time, in UTC.")
    updated_at = fields.Timestamp("Time of the last update, in UTC.")
    amount = fields.Amount("Discount: an amount of money or a percentage, depending on the type.")
    individual_use = fields.Boolean(_ALONE)
    product_ids = fields.Identifiers(_PRODUCTS)
    exclude_product_ids = fields.Identifiers(_NOT_PRODUCTS)
    usage_limit = fields.Limit("Maximum number of uses. Null means no limit.")
    usage_limit_per_user = fields.Limit("Maximum number of uses per customer. Null means no limit.")
    limit_usage_to_x_items = fields.Number(
        "Maximum number of items that the discount applies to. 0 means all items."
    )
    usage_count = fields.Number("Number of uses.")
    expiry_date = fields.Date("Expiry date as midnight UTC, or null.")
    enable_free_shipping = fields.Boolean(_SHIPPING)
    product_category_ids = fields.Identifiers(_CATEGORIES)
    exclude_product_category_ids = fields.Identifiers(_NOT_CATEGORIES)
    exclude_sale_items = fields.Boolean(_NOT_SALE)
    minimum_amount = fields.Amount("Minimum order amount required to use the coupon.")
    maximum_amount = fields.Amount("Maximum order amount allowed to use the coupon.")
    customer_emails = fields.StringList(
        "E-mail addresses that can use the coupon. Empty means no restriction."
    )
    description = fields.String("Description for the shop's staff.")
    active = fields.Boolean(_ACTIVE, on_request=True)
    starts_at = fields.OptionalTimestamp(f"{_STARTS} Null means at once.", on_request=True)
    campaign_id = fields.OptionalIdentifier(
        "ID of the campaign of the coupon, or null.", on_request=True
    )
    tags = fields.StringList(_TAGS, on_request=True)
    combines_with = fields.StringList(_COMBINES, on_request=True)
    customer_tags = fields.StringList(_CUSTOMER_TAGS, on_request=True)
    first_order_only = fields.Boolean(_FIRST_ORDER, on_request=True)
    maximum_discount = fields.Amount(f"{_MAXIMUM} 0.00 means no maximum.", on_request=True)
    buy_quantity = fields.Number(_BUY, on_request=True)
    get_quantity = fields.Number(_GET, on_request=True)
    get_product_ids = fields.Identifiers(_GET_PRODUCTS, on_request=True)
    metadata = fields.Metadata()


class CouponCreate(Base):
    """Fields of a new coupon. Only `code` is required."""

    code = inputs.Code(
        "Coupon code. Tags are removed, white space is collapsed, and letters are converted to "
        "lower case. Must be unique among published coupons.",
        required=True,
    )
    type = inputs.Text(  # the service checks that the type exists (decisions 4)
        _TYPE, openapi=json_schema.KNOWN_COUPON_TYPE, load_default="fixed_cart"
    )
    amount = inputs.AmountInput(
        f"Discount: an amount of money or a percentage. {_AMOUNT}", load_default=ZERO
    )
    individual_use = inputs.StrictTrue(_ALONE, load_default=False)
    product_ids = list_inputs.IdArray(_PRODUCTS, load_default=list)
    exclude_product_ids = list_inputs.IdArray(_NOT_PRODUCTS, load_default=list)
    usage_limit = inputs.Count("Maximum number of uses. 0 means no limit.", load_default=0)
    usage_limit_per_user = inputs.Count(
        "Maximum number of uses per customer. 0 means no limit.", load_default=0
    )
    limit_usage_to_x_items = inputs.Count(
        "Maximum number of items that the discount applies to. 0 means all items.", load_default=0
    )
    usage_count = inputs.Count("Number of uses.", load_default=0)
    expiry_date = inputs.DateText(_DATE, load_default=None)
    enable_free_shipping = inputs.StrictTrue(_SHIPPING, load_default=False)
    product_category_ids = list_inputs.IdArray(_CATEGORIES, load_default=list)
    exclude_product_category_ids = list_inputs.IdArray(_NOT_CATEGORIES, load_default=list)
    exclude_sale_items = inputs.StrictTrue(_NOT_SALE, load_default=False)
    minimum_amount = inputs.DecimalInput(
        f"Minimum order amount required to use the coupon. Empty means no minimum. {_AMOUNT}",
        load_default=None,
    )
    maximum_amount = inputs.DecimalInput(
        f"Maximum order amount allowed to use the coupon. Empty means no maximum. {_AMOUNT}",
        load_default=None,
    )
    customer_emails = list_inputs.EmailArray(
        "E-mail addresses that can use the coupon. `*@example.com` matches a domain. Invalid "
        "addresses are dropped.",
        load_default=list,
    )
    description = inputs.Text(
        "Description for the shop's staff.", openapi=json_schema.LONG_TEXT_IN, load_default=""
    )
    active = inputs.StrictTrue(f"{_ACTIVE} Coupons are created active.")
    starts_at = inputs.MomentText(f"{_STARTS} An empty string removes the start.")
    campaign_id = inputs.CampaignId("ID of the campaign of the coupon. 0 removes it.")
    tags = list_inputs.TagArray(_TAGS)
    combines_with = list_inputs.CombinationArray(_COMBINES)
    customer_tags = list_inputs.CustomerTagArray(_CUSTOMER_TAGS)
    first_order_only = inputs.StrictTrue(_FIRST_ORDER)
    maximum_discount = inputs.Discount(f"{_MAXIMUM} Empty means no maximum. {_AMOUNT}")
    buy_quantity = inputs.Count(_BUY)
    get_quantity = inputs.Count(_GET)
    get_product_ids = list_inputs.IdArray(_GET_PRODUCTS)
    metadata = inputs.MetadataInput(inputs.METADATA)


_IDS = "IDs, one per line."
set_form(
    CouponCreate,
    {
        "Discount": {
            "code": FormField(help="What customers enter, in any letter case."),
            "type": FormField("Discount type", values="coupon_types", help=""),
            "amount": FormField(
                unit="amount",
                help="A percentage or an amount of money, depending on the discount type.",
            ),
            "enable_free_shipping": FormField("Free shipping", help=""),
            "expiry_date": FormField(
                "Expires on",
                help="The coupon stops working at midnight UTC at the beginning of this day. "
                "Empty means that it never expires.",
            ),
            "starts_at": FormField(
                "Starts at",
                help="The coupon works from this time on, in the time zone of the shop. "
                "Empty means at once.",
            ),
            "active": FormField(default="true", help="Without it, the coupon is paused."),
            "description": FormField(kind="textarea", help="Only the shop's staff sees it."),
        },
        "Buy some, get some cheaper": {
            "buy_quantity": FormField(
                "Units to buy", help="3 for 2 means 2 units to buy.", is_empty_zero=True
            ),
            "get_quantity": FormField(
                "Discounted units",
                help="3 for 2 means 1 discounted unit and an amount of 100 percent.",
                is_empty_zero=True,
            ),
            "get_product_ids": FormField(
                "Discounted products",
                help=f"{_IDS} Empty means the products that the coupon applies to.",
            ),
        },
        "Limits": {
            "usage_limit": FormField(
                "Limit of uses",
                help="How often the coupon can be used in total. Empty means no limit.",
                is_empty_zero=True,
            ),
            "usage_limit_per_user": FormField(
                "Limit of uses per customer",
                help="How often one customer can use it. Empty means no limit.",
                is_empty_zero=True,
            ),
            "limit_usage_to_x_items": FormField(
                "Limit of items",
                help="The maximum number of items that are discounted. Empty means all items.",
                is_empty_zero=True,
            ),
            "maximum_discount": FormField(
                "Maximum discount",
                unit="currency",
                help="Of the coupon in a cart. Empty means no maximum.",
                is_empty_zero=True,
            ),
            "campaign_id": FormField(
                "Campaign",
                kind="number",
                values="campaigns",
                help="Its start and end, its limits and its budget count for the coupon as well.",
                is_empty_zero=True,
            ),
            "individual_use": FormField("Cannot be combined with other coupons", help=""),
            "tags": FormField(help="Other coupons can name them, one per line."),
            "combines_with": FormField(
                "Can be combined with",
                help="Tags of coupons, one per line. `-newsletter` means all others, and "
                "`code:summer15` one coupon. Empty means all coupons.",
            ),
        },
        "Restrictions": {
            "minimum_amount": FormField(
                "Minimum order amount",
                unit="currency",
                help="Minimum subtotal of the cart. Empty means no minimum.",
                is_empty_zero=True,
            ),
            "maximum_amount": FormField(
                "Maximum order amount",
                unit="currency",
                help="Maximum subtotal of the cart. Empty means no maximum.",
                is_empty_zero=True,
            ),
            "exclude_sale_items": FormField("Exclude items on sale", help=""),
            "customer_emails": FormField(
                "Customers",
                help="Only these e-mail addresses can use the coupon, one per line. "
                "`*@example.com` matches a domain. Empty means all customers.",
            ),
            "customer_tags": FormField(
                "Tags of customers",
                help="Only customers with one of these tags can use the coupon, one per line. "
                "`-staff` means all others, and `role:wholesale` a role. "
                "Empty means all customers.",
            ),
            "first_order_only": FormField(
                "Only for the first order",
                help="With a limit of uses per customer of 1, also of several unpaid orders only "
                "one has it. For many codes, set this limit in their campaign.",
            ),
            "product_ids": FormField("Products", help=f"{_IDS} Empty means all products."),
            "exclude_product_ids": FormField("Excluded products", help=_IDS),
            "product_category_ids": FormField(
                "Product categories", help=f"{_IDS} Empty means all categories."
            ),
            "exclude_product_category_ids": FormField("Excluded product categories", help=_IDS),
        },
    },
    hidden=("usage_count", "metadata"),
)

CouponUpdate = update_schema(CouponCreate, "CouponUpdate")
CouponBulkItem = update_schema(
    CouponCreate,
    "CouponBulkItem",
    id=inputs.RecordId("ID of the coupon to update. If absent or 0, a coupon is created."),
)

CouponResponse = response(CouponSchema, "coupon")
CouponList = list_response(CouponSchema, "coupons")


class TrashedCouponSchema(CouponSchema):
    """Coupon in the trash."""

    trashed_at = fields.Timestamp("Time when the coupon was moved to the trash, in UTC.")


TrashedCouponList = list_response(TrashedCouponSchema, "coupons")
CouponBulkResponse = bulk_response(CouponSchema, "coupons")

CouponCreateRequest = request(CouponCreate, "coupon")
CouponUpdateRequest = request(CouponUpdate, "coupon")

CouponBulkRequest = bulk_request(CouponBulkItem, "coupons")
