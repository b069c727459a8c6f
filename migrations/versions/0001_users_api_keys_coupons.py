"""Users, API keys, coupons."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "users",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("username", sa.String(), nullable=False),
        sa.Column("username_key", sa.String(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql"),
            nullable=False,
        ),
        sa.CheckConstraint("username <> ''", name=op.f("ck_users_username_not_empty")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("username_key", name=op.f("uq_users_username_key")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("permission", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("consumer_key_hash", sa.String(), nullable=False),
        sa.Column("consumer_secret_hash", sa.String(), nullable=False),
        sa.Column("ending", sa.String(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql"),
            nullable=False,
        ),
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
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("author_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("code", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql"),
            nullable=False,
        ),
        sa.Column("amount", sa.BigInteger(), nullable=True),
        sa.Column("individual_use", sa.Boolean(), nullable=False),
        sa.Column("product_ids", sa.JSON(), nullable=False),
        sa.Column("exclude_product_ids", sa.JSON(), nullable=False),
        sa.Column(
            "usage_limit", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column(
            "usage_limit_per_user",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            nullable=False,
        ),
        sa.Column(
            "limit_usage_to_x_items",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            nullable=False,
        ),
        sa.Column(
            "usage_count", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("expiry_date", sa.Date(), nullable=True),
        sa.Column("enable_free_shipping", sa.Boolean(), nullable=False),
        sa.Column("product_category_ids", sa.JSON(), nullable=False),
        sa.Column("exclude_product_category_ids", sa.JSON(), nullable=False),
        sa.Column("exclude_sale_items", sa.Boolean(), nullable=False),
        sa.Column("minimum_amount", sa.BigInteger(), nullable=True),
        sa.Column("maximum_amount", sa.BigInteger(), nullable=True),
        sa.Column("customer_emails", sa.JSON(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("search_text", sa.String(), nullable=False),
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
        "user_roles",
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_user_roles_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "role", name=op.f("pk_user_roles")),
    )


def downgrade() -> None:
    op.drop_table("user_roles")
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
    op.drop_table("users")
