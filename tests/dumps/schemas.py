"""The tables of WooCommerce 2.6, 3.5 and 8 that a shop has, from public facts about its schema.

The types of columns are reduced to integer, text, time and decimal, which suffice for a dump.
"""

INTEGER, SMALL, TEXT, TIME, DECIMAL, BINARY = (
    "bigint(20) unsigned",
    "smallint(4)",
    "longtext",
    "datetime",
    "decimal(26,8)",
    "longblob",
)


def _table(columns, **kinds):
    """Return the columns of a table, by name, with their types."""
    types = {name: kind for kind, names in kinds.items() for name in names.split()}
    return {name: {"i": INTEGER, "s": SMALL, "t": TIME, "d": DECIMAL}.get(types.get(name), TEXT)
            for name in columns.split()}  # fmt: skip


POSTS = _table(
    "ID post_author post_date post_date_gmt post_content post_title post_excerpt post_status "
    "comment_status ping_status post_password post_name to_ping pinged post_modified "
    "post_modified_gmt post_content_filtered post_parent guid menu_order post_type "
    "post_mime_type comment_count",
    i="ID post_author post_parent menu_order comment_count",
    t="post_date post_date_gmt post_modified post_modified_gmt",
)
TABLES = {
    "commentmeta": _table("meta_id comment_id meta_key meta_value", i="meta_id comment_id"),
    "comments": _table(
        "comment_ID comment_post_ID comment_author comment_author_email comment_author_url "
        "comment_author_IP comment_date comment_date_gmt comment_content comment_karma "
        "comment_approved comment_agent comment_type comment_parent user_id",
        i="comment_ID comment_post_ID comment_karma comment_parent user_id",
        t="comment_date comment_date_gmt",
    ),
    "options": _table("option_id option_name option_value autoload", i="option_id"),
    "postmeta": _table("meta_id post_id meta_key meta_value", i="meta_id post_id"),
    "posts": POSTS,
    "usermeta": _table("umeta_id user_id meta_key meta_value", i="umeta_id user_id"),
    "users": _table(
        "ID user_login user_pass user_nicename user_email user_url user_registered "
        "user_activation_key user_status display_name",
        i="ID user_status",
        t="user_registered",
    ),
    "woocommerce_api_keys": _table(
        "key_id user_id description permissions consumer_key consumer_secret nonces "
        "truncated_key last_access",
        i="key_id user_id",
        t="last_access",
    ),
    "woocommerce_attribute_taxonomies": _table(
        "attribute_id attribute_name attribute_label attribute_type attribute_orderby "
        "attribute_public",
        i="attribute_id attribute_public",
    ),
    "woocommerce_downloadable_product_permissions": _table(
        "permission_id download_id product_id order_id order_key user_email user_id "
        "downloads_remaining access_granted access_expires download_count",
        i="permission_id product_id order_id user_id download_count",
        t="access_granted access_expires",
    ),
    "woocommerce_order_itemmeta": _table(
        "meta_id order_item_id meta_key meta_value", i="meta_id order_item_id"
    ),
    "woocommerce_order_items": _table(
        "order_item_id order_item_name order_item_type order_id", i="order_item_id order_id"
    ),
}
WEBHOOKS = _table(
    "webhook_id status name user_id delivery_url secret topic date_created date_created_gmt "
    "date_modified date_modified_gmt api_version failure_count pending_delivery",
    i="webhook_id user_id failure_count pending_delivery",
    s="api_version",
    t="date_created date_created_gmt date_modified date_modified_gmt",
)
ORDER_TABLES = {
    "wc_order_addresses": _table(
        "id order_id address_type first_name last_name company address_1 address_2 city state "
        "postcode country email phone",
        i="id order_id",
    ),
    "wc_order_operational_data": _table(
        "id order_id created_via woocommerce_version prices_include_tax "
        "coupon_usages_are_counted download_permission_granted cart_hash new_order_email_sent "
        "order_key order_stock_reduced date_paid_gmt date_completed_gmt shipping_tax_amount "
        "shipping_total_amount discount_tax_amount discount_total_amount recorded_sales",
        i="id order_id prices_include_tax coupon_usages_are_counted download_permission_granted "
        "new_order_email_sent order_stock_reduced recorded_sales",
        t="date_paid_gmt date_completed_gmt",
        d="shipping_tax_amount shipping_total_amount discount_tax_amount discount_total_amount",
    ),
    "wc_orders": _table(
        "id status currency type tax_amount total_amount customer_id billing_email "
        "date_created_gmt date_updated_gmt parent_order_id payment_method payment_method_title "
        "transaction_id ip_address user_agent customer_note",
        i="id customer_id parent_order_id",
        t="date_created_gmt date_updated_gmt",
        d="tax_amount total_amount",
    ),
    "wc_orders_meta": _table("id order_id meta_key meta_value", i="id order_id"),
}
LAYOUTS = {
    "2.6": TABLES,
    "3.5": TABLES | {"wc_webhooks": WEBHOOKS},
    "8": TABLES | {"wc_webhooks": WEBHOOKS} | ORDER_TABLES,
}
"""The tables of each version, by name without the prefix."""


def create_table(name, columns, *, charset="utf8mb4", engine="InnoDB"):
    """Return a CREATE TABLE statement, as mysqldump writes it, without the semicolon."""
    first = next(iter(columns))
    lines = [
        f"  `{column}` {kind} {'NOT NULL AUTO_INCREMENT' if column == first else 'DEFAULT NULL'}"
        for column, kind in columns.items()
    ]
    lines.append(f"  PRIMARY KEY (`{first}`)")
    body = ",\n".join(lines)
    return f"CREATE TABLE `{name}` (\n{body}\n) ENGINE={engine} DEFAULT CHARSET={charset}"
