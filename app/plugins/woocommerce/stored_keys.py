"""Keys of metadata under which WooCommerce stores fields of records.

The importer reads fields from them, and wc/v3 does not show them as metadata.
"""

from app.models.address import BILLING_PARTS, SHIPPING_PARTS, SHIPPING_PHONE

ADDRESS_KEYS = (
    *(f"billing_{part}" for part in BILLING_PARTS),
    *(f"shipping_{part}" for part in SHIPPING_PARTS),
    SHIPPING_PHONE,
)
ORDER_TEXTS = {
    "order_key": ("_order_key", "order_key"),
    "currency": ("_order_currency", "currency"),
    "total": ("_order_total", "total_amount"),
    "cart_tax": ("_order_tax", "tax_amount"),
    "shipping_tax": ("_order_shipping_tax", "shipping_tax_amount"),
    "total_shipping": ("_order_shipping", "shipping_total_amount"),
    "total_discount": ("_cart_discount", "discount_total_amount"),
    "payment_method_id": ("_payment_method", "payment_method"),
    "payment_method_title": ("_payment_method_title", "payment_method_title"),
    "customer_ip": ("_customer_ip_address", "ip_address"),
    "customer_user_agent": ("_customer_user_agent", "user_agent"),
    "note": ("", "customer_note"),  # the excerpt of the post
    "transaction_id": ("_transaction_id", "transaction_id"),
    "created_via": ("_created_via", "created_via"),
    "prices_include_tax": ("_prices_include_tax", "prices_include_tax"),
    "discount_tax": ("_cart_discount_tax", "discount_tax_amount"),
    "cart_hash": ("_cart_hash", "cart_hash"),
    "version": ("_order_version", "woocommerce_version"),
}
"""The texts of an order: their key in the metadata of a post, and their column in order tables."""
ORDER_KEYS = frozenset(
    {
        *(f"_{key}" for key in ADDRESS_KEYS),
        *(key for key, _ in ORDER_TEXTS.values() if key),
        "_customer_user",
        "_completed_date",
        "_date_completed",
        "_paid_date",
        "_date_paid",
    }
)
"""Metadata of orders in posts that are fields of an order."""
COUPON_KEYS = frozenset({
    "discount_type", "coupon_amount", "individual_use", "product_ids", "exclude_product_ids",
    "usage_limit", "usage_limit_per_user", "limit_usage_to_x_items", "usage_count",
    "date_expires", "expiry_date", "free_shipping", "product_categories",
    "exclude_product_categories", "exclude_sale_items", "minimum_amount", "maximum_amount",
    "customer_email",
})  # fmt: skip
"""Metadata of coupons that are fields of a coupon. ``_used_by`` becomes redemptions."""
USER_KEYS = frozenset({"first_name", "last_name", "last_update", *ADDRESS_KEYS})
"""Metadata of users that are fields of a customer, in addition to the roles."""
