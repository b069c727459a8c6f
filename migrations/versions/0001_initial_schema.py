"""Initial schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
MOMENT = sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "users",
        sa.Column("id", ID, nullable=False),
        sa.Column("username", KEY, nullable=False),
        sa.Column("username_key", KEY, nullable=False),
        sa.Column("email", KEY, nullable=False),
        sa.Column("email_key", KEY, nullable=False),
        sa.Column("password_hash", sa.String(), nullable=True),
        sa.Column("first_name", KEY, nullable=False),
        sa.Column("last_name", KEY, nullable=False),
        sa.Column("name_key", KEY, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("search_text", KEY, nullable=False),
        sa.Column("billing_first_name", KEY, nullable=False),
        sa.Column("billing_last_name", KEY, nullable=False),
        sa.Column("billing_company", KEY, nullable=False),
        sa.Column("billing_address_1", KEY, nullable=False),
        sa.Column("billing_address_2", KEY, nullable=False),
        sa.Column("billing_city", KEY, nullable=False),
        sa.Column("billing_state", KEY, nullable=False),
        sa.Column("billing_postcode", KEY, nullable=False),
        sa.Column("billing_country", KEY, nullable=False),
        sa.Column("billing_email", KEY, nullable=False),
        sa.Column("billing_phone", KEY, nullable=False),
        sa.Column("shipping_first_name", KEY, nullable=False),
        sa.Column("shipping_last_name", KEY, nullable=False),
        sa.Column("shipping_company", KEY, nullable=False),
        sa.Column("shipping_address_1", KEY, nullable=False),
        sa.Column("shipping_address_2", KEY, nullable=False),
        sa.Column("shipping_city", KEY, nullable=False),
        sa.Column("shipping_state", KEY, nullable=False),
        sa.Column("shipping_postcode", KEY, nullable=False),
        sa.Column("shipping_country", KEY, nullable=False),
        sa.CheckConstraint("username <> ''", name=op.f("ck_users_username_not_empty")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("id", "created_at", name=op.f("uq_users_id_created_at")),
        sa.UniqueConstraint("username_key", name=op.f("uq_users_username_key")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("users", schema=None) as batch_op:
        batch_op.create_index("ix_users_created", ["created_at", "id"], unique=False)
        batch_op.create_index("ix_users_email", ["email_key", "id"], unique=False)
        batch_op.create_index("ix_users_updated", ["updated_at", "id"], unique=False)
        batch_op.create_index(
            "uq_users_email_key",
            ["email_key"],
            unique=True,
            sqlite_where=sa.text("email_key <> ''"),
            postgresql_where=sa.text("email_key <> ''"),
        )

    for name, column in (
        ("ix_users_name", "name_key"),
        ("ix_users_first_name", "first_name"),
        ("ix_users_last_name", "last_name"),
    ):
        op.create_index(name, "users", [sa.text(f"lower(substr({column}, 1, 200))"), "id"])

    op.create_table(
        "api_keys",
        sa.Column("id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("permission", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("consumer_key_hash", sa.String(), nullable=False),
        sa.Column("consumer_secret_hash", sa.String(), nullable=False),
        sa.Column("ending", sa.String(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.CheckConstraint(
            "permission IN ('read', 'write', 'read_write')", name=op.f("ck_api_keys_permission")
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_api_keys_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("consumer_key_hash", name=op.f("uq_api_keys_consumer_key_hash")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("api_keys", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_api_keys_user_id"), ["user_id"], unique=False)

    op.create_table(
        "coupons",
        sa.Column("id", ID, nullable=False),
        sa.Column("status", KEY, nullable=False),
        sa.Column("author_id", ID, nullable=True),
        sa.Column("code", KEY, nullable=False),
        sa.Column("type", KEY, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=True),
        sa.Column("individual_use", sa.Boolean(), nullable=False),
        sa.Column("product_ids", sa.JSON(), nullable=False),
        sa.Column("exclude_product_ids", sa.JSON(), nullable=False),
        sa.Column("usage_limit", ID, nullable=False),
        sa.Column("usage_limit_per_user", ID, nullable=False),
        sa.Column("limit_usage_to_x_items", ID, nullable=False),
        sa.Column("usage_count", ID, nullable=False),
        sa.Column("expiry_date", sa.Date(), nullable=True),
        sa.Column("enable_free_shipping", sa.Boolean(), nullable=False),
        sa.Column("product_category_ids", sa.JSON(), nullable=False),
        sa.Column("exclude_product_category_ids", sa.JSON(), nullable=False),
        sa.Column("exclude_sale_items", sa.Boolean(), nullable=False),
        sa.Column("minimum_amount", sa.BigInteger(), nullable=True),
        sa.Column("maximum_amount", sa.BigInteger(), nullable=True),
        sa.Column("customer_emails", sa.JSON(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("search_text", KEY, nullable=False),
        sa.CheckConstraint("code <> ''", name=op.f("ck_coupons_code_not_empty")),
        sa.CheckConstraint("status IN ('published', 'trash')", name=op.f("ck_coupons_status")),
        sa.ForeignKeyConstraint(
            ["author_id"], ["users.id"], name=op.f("fk_coupons_author_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_coupons")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("coupons", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_coupons_author_id"), ["author_id"], unique=False)
        batch_op.create_index("ix_coupons_status_amount", ["status", "amount", "id"], unique=False)
        batch_op.create_index(
            "ix_coupons_status_created", ["status", "created_at", "id"], unique=False
        )
        batch_op.create_index(
            "ix_coupons_status_expiry", ["status", "expiry_date", "id"], unique=False
        )
        batch_op.create_index(
            "ix_coupons_status_updated", ["status", "updated_at", "id"], unique=False
        )
        batch_op.create_index(
            "ix_coupons_status_usage_count", ["status", "usage_count", "id"], unique=False
        )
        batch_op.create_index(
            "uq_coupons_published_code",
            ["code"],
            unique=True,
            sqlite_where=sa.text("status = 'published'"),
            postgresql_where=sa.text("status = 'published'"),
        )

    op.create_table(
        "orders",
        sa.Column("id", ID, nullable=False),
        sa.Column("customer_id", ID, nullable=True),
        sa.Column("order_number", KEY, nullable=False),
        sa.Column("order_key", KEY, nullable=False),
        sa.Column("status", KEY, nullable=False),
        sa.Column("currency", KEY, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("completed_at", MOMENT, nullable=True),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.Column("subtotal", sa.BigInteger(), nullable=False),
        sa.Column("cart_tax", sa.BigInteger(), nullable=False),
        sa.Column("shipping_tax", sa.BigInteger(), nullable=False),
        sa.Column("total_shipping", sa.BigInteger(), nullable=False),
        sa.Column("total_discount", sa.BigInteger(), nullable=False),
        sa.Column("payment_method_id", KEY, nullable=False),
        sa.Column("payment_method_title", KEY, nullable=False),
        sa.Column("payment_paid", sa.Boolean(), nullable=False),
        sa.Column("note", KEY, nullable=False),
        sa.Column("customer_ip", KEY, nullable=False),
        sa.Column("customer_user_agent", KEY, nullable=False),
        sa.Column("line_items", sa.JSON(), nullable=False),
        sa.Column("shipping_lines", sa.JSON(), nullable=False),
        sa.Column("tax_lines", sa.JSON(), nullable=False),
        sa.Column("fee_lines", sa.JSON(), nullable=False),
        sa.Column("coupon_lines", sa.JSON(), nullable=False),
        sa.Column("search_text", KEY, nullable=False),
        sa.Column("billing_first_name", KEY, nullable=False),
        sa.Column("billing_last_name", KEY, nullable=False),
        sa.Column("billing_company", KEY, nullable=False),
        sa.Column("billing_address_1", KEY, nullable=False),
        sa.Column("billing_address_2", KEY, nullable=False),
        sa.Column("billing_city", KEY, nullable=False),
        sa.Column("billing_state", KEY, nullable=False),
        sa.Column("billing_postcode", KEY, nullable=False),
        sa.Column("billing_country", KEY, nullable=False),
        sa.Column("billing_email", KEY, nullable=False),
        sa.Column("billing_phone", KEY, nullable=False),
        sa.Column("shipping_first_name", KEY, nullable=False),
        sa.Column("shipping_last_name", KEY, nullable=False),
        sa.Column("shipping_company", KEY, nullable=False),
        sa.Column("shipping_address_1", KEY, nullable=False),
        sa.Column("shipping_address_2", KEY, nullable=False),
        sa.Column("shipping_city", KEY, nullable=False),
        sa.Column("shipping_state", KEY, nullable=False),
        sa.Column("shipping_postcode", KEY, nullable=False),
        sa.Column("shipping_country", KEY, nullable=False),
        sa.CheckConstraint("status <> ''", name=op.f("ck_orders_status_not_empty")),
        sa.CheckConstraint("abs(total) <= 1000000000000000", name=op.f("ck_orders_total_in_range")),
        sa.ForeignKeyConstraint(
            ["customer_id"], ["users.id"], name=op.f("fk_orders_customer_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_orders")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("orders", schema=None) as batch_op:
        batch_op.create_index("ix_orders_created", ["created_at", "id"], unique=False)
        batch_op.create_index(
            "ix_orders_customer", ["customer_id", "status", "total", "id"], unique=False
        )
        batch_op.create_index(
            "ix_orders_status_created", ["status", "created_at", "id"], unique=False
        )
        batch_op.create_index("ix_orders_total", ["total", "id"], unique=False)
        batch_op.create_index("ix_orders_updated", ["updated_at", "id"], unique=False)

    op.create_table(
        "user_roles",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("role", KEY, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("registered_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id", "registered_at"],
            ["users.id", "users.created_at"],
            name=op.f("fk_user_roles_user_id_registered_at"),
            ondelete="CASCADE",
            onupdate="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_id", "role", name=op.f("pk_user_roles")),
    )
    with op.batch_alter_table("user_roles", schema=None) as batch_op:
        batch_op.create_index(
            "ix_user_roles_role", ["role", "registered_at", "user_id"], unique=False
        )

    op.create_table(
        "download_permissions",
        sa.Column("id", ID, nullable=False),
        sa.Column("order_id", ID, nullable=False),
        sa.Column("product_id", ID, nullable=False),
        sa.Column("download_id", KEY, nullable=False),
        sa.Column("download_name", KEY, nullable=False),
        sa.Column("download_url", KEY, nullable=False),
        sa.Column("file_name", KEY, nullable=False),
        sa.Column("file_url", KEY, nullable=False),
        sa.Column("downloads_remaining", ID, nullable=True),
        sa.Column("access_expires", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["order_id"],
            ["orders.id"],
            name=op.f("fk_download_permissions_order_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_download_permissions")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("download_permissions", schema=None) as batch_op:
        batch_op.create_index("ix_download_permissions_order", ["order_id", "id"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("download_permissions", schema=None) as batch_op:
        batch_op.drop_index("ix_download_permissions_order")

    op.drop_table("download_permissions")
    with op.batch_alter_table("user_roles", schema=None) as batch_op:
        batch_op.drop_index("ix_user_roles_role")

    op.drop_table("user_roles")
    with op.batch_alter_table("orders", schema=None) as batch_op:
        batch_op.drop_index("ix_orders_updated")
        batch_op.drop_index("ix_orders_total")
        batch_op.drop_index("ix_orders_status_created")
        batch_op.drop_index("ix_orders_customer")
        batch_op.drop_index("ix_orders_created")

    op.drop_table("orders")
    with op.batch_alter_table("coupons", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_coupons_published_code",
            sqlite_where=sa.text("status = 'published'"),
            postgresql_where=sa.text("status = 'published'"),
        )
        batch_op.drop_index("ix_coupons_status_usage_count")
        batch_op.drop_index("ix_coupons_status_updated")
        batch_op.drop_index("ix_coupons_status_expiry")
        batch_op.drop_index("ix_coupons_status_created")
        batch_op.drop_index("ix_coupons_status_amount")
        batch_op.drop_index(batch_op.f("ix_coupons_author_id"))

    op.drop_table("coupons")
    with op.batch_alter_table("api_keys", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_api_keys_user_id"))

    op.drop_table("api_keys")
    with op.batch_alter_table("users", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_users_email_key",
            sqlite_where=sa.text("email_key <> ''"),
            postgresql_where=sa.text("email_key <> ''"),
        )
        batch_op.drop_index("ix_users_updated")
        batch_op.drop_index("ix_users_email")
        batch_op.drop_index("ix_users_created")

    op.drop_table("users")
