"""Add imports, so that an interrupted one is reported by an event, too."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
MOMENT = sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "import_runs",
        sa.Column("id", ID, nullable=False),
        sa.Column("source", KEY, nullable=False),
        sa.Column("kind", KEY, nullable=True),
        sa.Column("created", ID, nullable=False),
        sa.Column("updated", ID, nullable=False),
        sa.Column("progress_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_import_runs")),
        sqlite_autoincrement=True,
    )
    where = sa.text("finished_at IS NULL")
    op.create_index(
        "ix_import_runs_running",
        "import_runs",
        ["progress_at"],
        sqlite_where=where,
        postgresql_where=where,
    )


def downgrade() -> None:
    op.drop_table("import_runs")
