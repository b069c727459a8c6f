"""Index what reports read.

Reports read these indexes alone, except for the e-mail addresses of guests on PostgreSQL, where an
entry of an index has a maximum size. Indexes of one database have its name at their end.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from app.db.migration_helpers import create_index_concurrently, drop_index_concurrently

revision = "0040"
down_revision = "0039"

REPORTED = [
    "currency", "created_at", "status", "customer_id", "total", "total_discount", "total_shipping",
    "cart_tax", "shipping_tax", "fees", "items",
]  # fmt: skip
FIRST = ["created_at", "id", "status", "currency"]
GUEST = "customer_id IS NULL"
UNICODE = {
    "sqlite": "length(CAST(billing_email AS BLOB)) > length(billing_email)",
    "postgresql": "octet_length(billing_email) > length(billing_email)",
}
CONFIRMED = "status = 'confirmed'"
USES = [
    "confirmed_at", "coupon_id", "order_id", "amount", "customer_id", "email_normalized", "code",
    "status",
]  # fmt: skip
INDEXES: tuple[tuple[str, str, list[Any], str | None], ...] = (
    (
        "ix_orders_customer_created",
        "orders",
        ["customer_id", *FIRST],
        "customer_id IS NOT NULL",
    ),
    ("ix_redemptions_report", "redemptions", USES, CONFIRMED),
    (
        "ix_redemptions_order_confirmed",
        "redemptions",
        ["order_id", "coupon_id", "code", "status"],
        CONFIRMED,
    ),
    ("ix_order_refunds_report", "order_refunds", ["created_at", "order_id", "amount"], None),
)


def upgrade() -> None:
    for name, table, columns, condition in _indexes():
        options = {}
        if condition:
            options = dict.fromkeys(("sqlite_where", "postgresql_where"), sa.text(condition))
        create_index_concurrently(name, table, columns, **options)


def downgrade() -> None:
    for name, table, *_ in _indexes():
        drop_index_concurrently(name, table)


def _indexes() -> list[tuple[str, str, list[Any], str | None]]:
    database = op.get_bind().dialect.name
    found = [("ix_orders_unicode_emails", "orders", ["created_at"], UNICODE[database]), *INDEXES]
    if database == "sqlite":
        reported, email = [*REPORTED, "billing_email"], "billing_email COLLATE NOCASE"
    else:
        reported, email = REPORTED, "lower(substr(billing_email, 1, 200))"
    return [
        *found,
        (f"ix_orders_report_{database}", "orders", reported, None),
        (
            f"ix_orders_guest_email_{database}",
            "orders",
            [sa.text(email), *FIRST, "customer_id"],
            GUEST,
        ),
    ]
