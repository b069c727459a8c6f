"""Names that other programs and people give to the columns of CSV files."""

import re
import unicodedata
from collections.abc import Mapping

_NAMES_OF_COUPONS = {
    "code": "coupon coupon_code discount_code post_title promo_code promotion_code voucher "
    "voucher_code",
    "type": "coupon_type discount_type",
    "amount": "coupon_amount discount_amount discount_value",
    "description": "coupon_description post_excerpt",
    "expiry_date": "date_expires expiration_date expire_date expires expires_at expires_on expiry",
    "usage_limit": "limit_of_uses max_uses maximum_uses usage_limit_per_coupon",
    "usage_limit_per_user": "limit_of_uses_per_customer usage_limit_per_customer",
    "limit_usage_to_x_items": "limit_of_items limit_usage_to_items",
    "enable_free_shipping": "allow_free_shipping free_shipping",
    "individual_use": "individual_use_only",
    "exclude_product_ids": "excluded_product_ids",
    "product_category_ids": "category_ids product_categories",
    "exclude_product_category_ids": "exclude_category_ids exclude_product_categories "
    "excluded_product_categories excluded_product_category_ids",
    "exclude_sale_items": "exclude_items_on_sale",
    "minimum_amount": "min_amount minimum_order_amount minimum_spend",
    "maximum_amount": "max_amount maximum_order_amount maximum_spend",
    "customer_emails": "allowed_emails customer_email e_mail email email_restrictions emails",
}
_NAMES_OF_CUSTOMERS = {
    "email": "customer_email e_mail e_mail_address email_address mail user_email",
    "username": "login user_login user_name",
    "first_name": "firstname forename given_name",
    "last_name": "family_name lastname surname",
}
_PARTS = {
    "first_name": "firstname",
    "last_name": "lastname",
    "company": "company_name",
    "address_1": "address address1 address_line_1 street street_address",
    "address_2": "address2 address_line_2",
    "city": "town",
    "state": "province province_code region",
    "postcode": "post_code postal_code zip zip_code",
    "country": "country_code",
    "phone": "phone_number telephone",
    "email": "e_mail email_address",
}
_OF_PERSON = ("first_name", "last_name", "email")


def _by_alias(names: Mapping[str, str], prefix: str = "", own: str = "") -> dict[str, str]:
    return {
        f"{prefix}{alias}": f"{own}{name}"
        for name, aliases in names.items()
        for alias in (name, *aliases.split())
    }


_PLACES = {part: names for part, names in _PARTS.items() if part not in _OF_PERSON}
COUPONS = _by_alias(_NAMES_OF_COUPONS)
CUSTOMERS = {
    # Columns without the kind of an address belong to the billing address.
    **_by_alias(_PLACES, "", "billing_"),
    **_by_alias(_PLACES, "default_address_", "billing_"),
    **_by_alias(_PARTS, "billing_", "billing_"),
    **_by_alias(
        {part: _PARTS[part] for part in _PARTS if part not in ("email", "phone")},
        "shipping_",
        "shipping_",
    ),
    **_by_alias(_NAMES_OF_CUSTOMERS),
}


def plain_name(header: str) -> str:
    """Return a name of a column in lower case, with ``_`` in place of blanks and signs.

    Invisible signs are removed, because programs copy them with a text.
    """
    visible = "".join(char for char in header if unicodedata.category(char) != "Cf")
    return re.sub(r"[^0-9a-z]+", "_", visible.casefold()).strip("_")
