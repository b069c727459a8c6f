"""The tables of a WooCommerce database that an import reads, from public facts about its schema.

Table names have no prefix. Columns that do not exist in a version are read as NULL.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.models.address import BILLING_PARTS
from app.plugins.woocommerce import stored_keys


class SourceError(Exception):
    """A source cannot be read. The message is shown to the operator."""


Row = tuple[str | None, ...]
"""The values of a row, in the order of the columns of its table."""

TRASH_KEYS = frozenset({"_wp_trash_meta_status", "_wp_trash_meta_time"})
ORDER_KEYS = stored_keys.ORDER_KEYS | TRASH_KEYS
"""Metadata of orders in posts that are fields of an order."""
COUPON_KEYS = stored_keys.COUPON_KEYS | TRASH_KEYS
"""Metadata of coupons that are fields of a coupon. ``_used_by`` becomes redemptions."""
REFUND_KEYS = frozenset({"_refund_amount", "_refund_reason", "_refunded_by"})
"""Metadata of refunds in posts and in order tables that are fields of a refund."""
ITEM_KEYS: Mapping[str, frozenset[str]] = {
    "line_item": frozenset({
        "_qty", "_tax_class", "_product_id", "_variation_id", "_line_subtotal",
        "_line_subtotal_tax", "_line_total", "_line_tax", "_line_tax_data",
    }),
    "shipping": frozenset({"method_id", "instance_id", "cost", "total_tax", "taxes"}),
    "fee": frozenset({"_tax_class", "_line_total", "_line_tax", "_line_tax_data"}),
    "tax": frozenset({"rate_id", "label", "compound", "tax_amount"}),
    "coupon": frozenset({"discount_amount"}),
}  # fmt: skip
"""Metadata of items that are fields of an item, by its kind."""


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table to read.

    Attributes:
        name: its name without the prefix.
        columns: the columns to read. ``key`` is the first column.
        primary: the primary key. A server is read in ranges of it.
        filtered: the column that selects rows; None to read all rows.
        values: the values of ``filtered`` that select a row.
        is_meta: whether rows are a key and a value that belong to the record ``key``.
        of_users: whether it has the prefix of the tables of users.
    """

    name: str
    columns: tuple[str, ...]
    primary: str
    filtered: str | None = None
    values: tuple[str, ...] = ()
    is_meta: bool = False
    of_users: bool = False

    @property
    def key(self) -> str:
        """The column with the ID by which rows are grouped and read."""
        return self.columns[0]


def _meta(name: str, key: str, *, primary: str = "meta_id", of_users: bool = False) -> SourceTable:
    columns = (key, "meta_key", "meta_value", primary)
    return SourceTable(name, columns, primary, is_meta=True, of_users=of_users)


_TABLES = (
    SourceTable(
        "options", ("option_id", "option_name", "option_value"), "option_id",
        filtered="option_name",
        values=(
            "siteurl", "home", "timezone_string", "gmt_offset", "woocommerce_currency",
            "woocommerce_custom_orders_table_enabled", "woocommerce_version",
        ),
    ),
    SourceTable(
        "users", ("ID", "user_login", "user_email", "user_registered"), "ID", of_users=True
    ),
    _meta("usermeta", "user_id", primary="umeta_id", of_users=True),
    SourceTable(
        "posts",
        (
            "ID", "post_type", "post_status", "post_title", "post_excerpt", "post_author",
            "post_date", "post_date_gmt", "post_modified", "post_modified_gmt", "post_parent",
        ),
        "ID", filtered="post_type",
        values=(
            "shop_order", "shop_order_refund", "shop_coupon", "shop_webhook", "product",
            "product_variation",
        ),
    ),
    _meta("postmeta", "post_id"),
    SourceTable(
        "comments",
        ("comment_post_ID", "comment_ID", "comment_date", "comment_date_gmt",
         "comment_content", "comment_type", "comment_approved", "comment_author"),
        "comment_ID", filtered="comment_type", values=("order_note",),
    ),
    _meta("commentmeta", "comment_id"),
    SourceTable(
        "woocommerce_order_items",
        ("order_id", "order_item_id", "order_item_name", "order_item_type"), "order_item_id",
    ),
    _meta("woocommerce_order_itemmeta", "order_item_id"),
    SourceTable(
        "woocommerce_downloadable_product_permissions",
        (
            "order_id", "permission_id", "download_id", "product_id", "order_key",
            "user_email", "downloads_remaining", "access_expires",
        ),
        "permission_id",
    ),
    SourceTable(
        "woocommerce_api_keys",
        (
            "key_id", "user_id", "description", "permissions", "consumer_key",
            "consumer_secret", "truncated_key",
        ),
        "key_id",
    ),
    SourceTable("wdr_rules", ("id", "title"), "id"),
    SourceTable(
        "woocommerce_attribute_taxonomies",
        ("attribute_id", "attribute_name", "attribute_label"), "attribute_id",
    ),
    SourceTable(
        "wc_webhooks",
        (
            "webhook_id", "status", "name", "user_id", "delivery_url", "secret", "topic",
            "date_created_gmt", "date_modified_gmt", "api_version",
        ),
        "webhook_id",
    ),
    SourceTable(
        "wc_orders",
        (
            "id", "type", "status", "currency", "tax_amount", "total_amount", "customer_id",
            "billing_email", "date_created_gmt", "date_updated_gmt", "parent_order_id",
            "payment_method", "payment_method_title", "ip_address", "user_agent",
            "customer_note", "transaction_id",
        ),
        "id", filtered="type", values=("shop_order", "shop_order_refund"),
    ),
    SourceTable(
        "wc_order_addresses",
        ("order_id", "address_type", *BILLING_PARTS), "id",
    ),
    SourceTable(
        "wc_order_operational_data",
        (
            "order_id", "order_key", "date_paid_gmt", "date_completed_gmt",
            "shipping_tax_amount", "shipping_total_amount", "discount_total_amount",
            "coupon_usages_are_counted", "created_via", "woocommerce_version",
            "prices_include_tax", "cart_hash", "discount_tax_amount",
        ),
        "id",
    ),
    _meta("wc_orders_meta", "order_id", primary="id"),
)  # fmt: skip


SOURCE_TABLES: Mapping[str, SourceTable] = {table.name: table for table in _TABLES}
"""The tables to read, by their name without the prefix."""
