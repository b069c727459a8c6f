"""Vacuum tables that are updated often sooner on PostgreSQL.

By default, a table is vacuumed after updates of a fifth of its rows: two million dead rows in a
table of ten million events, each of which is updated once when it is numbered. The lock of this
statement does not block reads and writes.
"""

from alembic import op

revision = "0029"
down_revision = "0028"

TABLES = "coupons", "events", "orders", "redemptions", "users", "webhook_deliveries"
PARAMETERS = {
    "autovacuum_vacuum_scale_factor": "0.02",
    "autovacuum_analyze_scale_factor": "0.02",
    "autovacuum_vacuum_insert_scale_factor": "0.05",
}


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        assigned = ", ".join(f"{name} = {value}" for name, value in PARAMETERS.items())
        for table in TABLES:
            op.execute(f"ALTER TABLE {table} SET ({assigned})")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for table in TABLES:
            op.execute(f"ALTER TABLE {table} RESET ({', '.join(PARAMETERS)})")
