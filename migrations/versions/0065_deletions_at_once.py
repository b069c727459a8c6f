"""Delete accounts and coupons at once, whatever the number of their orders and uses.

Foreign keys set a column of each order and each use in the transaction of the deletion, which is
0.4 ms each. A trigger does it instead, also for the previous version, unless the account is in
``erased_accounts``: the worker then clears them in batches. The uses of a coupon keep its ID.
"""

import sqlalchemy as sa
from alembic import op

from app.db.migration_helpers import (
    drop_foreign_key,
    has_table,
    release_locks,
    restore_foreign_key,
)

revision = "0065"
down_revision = "0064"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEYS = (
    ("orders", "customer_id", "users"),
    ("redemptions", "customer_id", "users"),
    ("redemptions", "coupon_id", "coupons"),
)
TRIGGERS = (("unlink_account", "users"), ("note_deleted_coupon", "coupons"))
ON_SQLITE = (
    """
CREATE TRIGGER unlink_account AFTER DELETE ON users
WHEN NOT EXISTS (SELECT 1 FROM erased_accounts WHERE customer_id = OLD.id) BEGIN
    UPDATE orders SET customer_id = NULL WHERE customer_id = OLD.id;
    UPDATE redemptions SET customer_id = NULL WHERE customer_id = OLD.id;
END;
""",
    """
CREATE TRIGGER note_deleted_coupon AFTER DELETE ON coupons
WHEN EXISTS (SELECT 1 FROM redemptions WHERE coupon_id = OLD.id) BEGIN
    INSERT INTO deleted_coupons (id) VALUES (OLD.id) ON CONFLICT DO NOTHING;
END;
""",
)
FUNCTIONS = (
    """
CREATE OR REPLACE FUNCTION unlink_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM erased_accounts WHERE customer_id = OLD.id) THEN
        UPDATE orders SET customer_id = NULL WHERE customer_id = OLD.id;
        UPDATE redemptions SET customer_id = NULL WHERE customer_id = OLD.id;
    END IF;
    RETURN NULL;
END $$;
""",
    """
CREATE OR REPLACE FUNCTION note_deleted_coupon() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO deleted_coupons (id) SELECT id FROM removed
    WHERE EXISTS (SELECT 1 FROM redemptions WHERE coupon_id = removed.id)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
""",
)
ON_POSTGRESQL = (
    """
CREATE TRIGGER unlink_account AFTER DELETE ON users
FOR EACH ROW EXECUTE FUNCTION unlink_account();
""",
    """
CREATE TRIGGER note_deleted_coupon AFTER DELETE ON coupons REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION note_deleted_coupon();
""",
)


def upgrade() -> None:
    if not has_table("erasures"):
        op.create_table(
            "erasures",
            sa.Column("id", ID, nullable=False),
            sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
            sa.Column("traces_encrypted", sa.String(), nullable=False),
            sa.Column("step", ID, nullable=False),
            sa.Column("after", ID, nullable=False),
            sa.Column("erased", ID, server_default=sa.text("0"), nullable=False),
            sa.PrimaryKeyConstraint("id", name="pk_erasures"),
            sqlite_autoincrement=True,
        )
        op.create_table(
            "erased_accounts",
            sa.Column("customer_id", ID, autoincrement=False, nullable=False),
            sa.Column("erasure_id", ID, nullable=False),
            sa.PrimaryKeyConstraint("customer_id", name="pk_erased_accounts"),
            sa.ForeignKeyConstraint(
                ["erasure_id"],
                ["erasures.id"],
                name="fk_erased_accounts_erasure_id",
                ondelete="CASCADE",
            ),
        )
        op.create_index("ix_erased_accounts_erasure_id", "erased_accounts", ["erasure_id"])
    if not has_table("deleted_coupons"):
        op.create_table(
            "deleted_coupons",
            sa.Column("id", ID, autoincrement=False, nullable=False),
            sa.PrimaryKeyConstraint("id", name="pk_deleted_coupons"),
        )
    release_locks()
    if op.get_bind().dialect.name == "postgresql":
        for (name, table), function, trigger in zip(
            TRIGGERS, FUNCTIONS, ON_POSTGRESQL, strict=True
        ):
            op.execute(function)
            op.execute(f"DROP TRIGGER IF EXISTS {name} ON {table}")
            op.execute(trigger)
            release_locks()
    else:
        for trigger in ON_SQLITE:
            op.execute(trigger)
    for table, column, target in KEYS:
        drop_foreign_key(f"fk_{table}_{column}", table, target)


def downgrade() -> None:
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    for name, table in TRIGGERS:
        op.execute(f"DROP TRIGGER {name}" + f" ON {table}" * on_postgresql)
        if on_postgresql:
            op.execute(f"DROP FUNCTION {name}")
    for table, column, target in KEYS:
        linked = sa.table(table, sa.column(column, ID))
        existing = sa.select(sa.table(target, sa.column("id", ID)).c.id)
        is_missing = linked.c[column].not_in(existing)
        op.execute(sa.update(linked).where(is_missing).values({column: None}))
        restore_foreign_key(f"fk_{table}_{column}", table, column, target)
    op.drop_table("deleted_coupons")
    op.drop_table("erased_accounts")
    op.drop_table("erasures")
