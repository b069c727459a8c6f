"""Add parts and errors of imports, which replace the table ``uploads``.

The previous version still uses this table, so a later one removes it. Its rows go with their sessions.
"""

import sqlalchemy as sa
from alembic import op

from app.db.migration_helpers import add_columns, has_table, release_locks

revision = "0064"
down_revision = "0063"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
TIME = sa.DateTime(timezone=True)
COUNTS = ("size", "position", "skipped", "failed")
KEYS = ("status", "format", "on_conflict")
IDS = ("user_id", "key_id")
TIMES = ("created_at", "started_at", "claimed_at")


def _create(name: str, number: str, *columns: sa.Column[object]) -> None:
    op.create_table(
        name,
        sa.Column("import_id", ID, nullable=False),
        sa.Column(number, ID, nullable=False),
        *columns,
        sa.PrimaryKeyConstraint("import_id", number, name=f"pk_{name}"),
        sa.ForeignKeyConstraint(
            ["import_id"], ["import_runs.id"], name=f"fk_{name}_import_id", ondelete="CASCADE"
        ),
    )
    release_locks()


def upgrade() -> None:
    add_columns(
        "import_runs",
        sa.Column("status", KEY),
        sa.Column("name", sa.String(), server_default=sa.text("''"), nullable=False),
        sa.Column("format", KEY),
        sa.Column("on_conflict", KEY),
        sa.Column("dry_run", sa.Boolean(), server_default=sa.false(), nullable=False),
        *(sa.Column(name, ID, server_default=sa.text("0"), nullable=False) for name in COUNTS),
        sa.Column("reason", sa.String()),
        *(sa.Column(name, ID) for name in IDS),
        *(sa.Column(name, TIME) for name in TIMES),
    )
    if not has_table("import_parts"):
        content = sa.Column("content", sa.LargeBinary(), nullable=False)
        _create("import_parts", "position", content)
    if not has_table("import_errors"):
        columns = sa.Column("message", sa.String(), nullable=False), sa.Column("param", sa.String())
        _create("import_errors", "line", sa.Column("code", KEY, nullable=False), *columns)


def downgrade() -> None:
    for name in ("import_errors", "import_parts"):
        op.drop_table(name)
    for name in (*TIMES, *IDS, "reason", *COUNTS, "dry_run", *KEYS, "name"):
        op.drop_column("import_runs", name)
