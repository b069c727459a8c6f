"""Add sort keys of customers, so that PostgreSQL reads their lists from an index alone.

PostgreSQL rewrites the table of users, which takes a minute for a million users. Requests for
customers wait during this time.
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"

# The column of each sort key.
SORT_KEYS = {"name": "name_normalized", "first_name": "first_name", "last_name": "last_name"}
# Coupons with the highest amount, or the latest expiry date, first. Nulls come last.
DESCENDING = {"amount": "amount", "expiry": "expiry_date"}


def upgrade() -> None:
    on_sqlite = op.get_bind().dialect.name == "sqlite"
    for name in SORT_KEYS:
        op.drop_index(f"ix_users_{name}", "users")
    if on_sqlite:
        # SQLite adds a virtual column in place, because a copy of the table would lose its triggers.
        for name, column in SORT_KEYS.items():
            op.execute(
                f"ALTER TABLE users ADD COLUMN {name}_sort VARCHAR NOT NULL"
                f" GENERATED ALWAYS AS (lower(substr({column}, 1, 200))) VIRTUAL"
            )
    else:
        # In one statement, because each statement rewrites the table.
        columns = ", ".join(
            f'ADD COLUMN {name}_sort VARCHAR COLLATE "C" NOT NULL'
            f" GENERATED ALWAYS AS (lower(substr({column}, 1, 200))) STORED"
            for name, column in SORT_KEYS.items()
        )
        op.execute(f"ALTER TABLE users {columns}")
        _make_username_unique("INCLUDE (id)")
        for name, column in DESCENDING.items():
            op.create_index(
                f"ix_coupons_status_{name}_desc",
                "coupons",
                ["status", sa.text(f"{column} DESC NULLS LAST"), sa.text("id DESC")],
            )
    for name in SORT_KEYS:
        op.create_index(f"ix_users_{name}", "users", [f"{name}_sort", "id"])


def downgrade() -> None:
    for name in SORT_KEYS:
        op.drop_index(f"ix_users_{name}", "users")
    for name in SORT_KEYS:
        op.execute(f"ALTER TABLE users DROP COLUMN {name}_sort")
    for name, column in SORT_KEYS.items():
        op.create_index(
            f"ix_users_{name}", "users", [sa.text(f"lower(substr({column}, 1, 200))"), "id"]
        )
    if op.get_bind().dialect.name == "postgresql":
        _make_username_unique("")
        for name in DESCENDING:
            op.drop_index(f"ix_coupons_status_{name}_desc", "coupons")


def _make_username_unique(option: str) -> None:
    op.execute(
        "ALTER TABLE users DROP CONSTRAINT uq_users_username_key,"
        f" ADD CONSTRAINT uq_users_username_key UNIQUE (username_normalized) {option}"
    )
