"""Add the sources of imports and the imported records."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
MOMENT = sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "import_sources",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", KEY, nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_import_sources")),
        sa.UniqueConstraint("name", name=op.f("uq_import_sources_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "imported_records",
        sa.Column("import_source_id", ID, nullable=False),
        sa.Column("kind", KEY, nullable=False),
        sa.Column("source_id", ID, autoincrement=False, nullable=False),
        sa.Column("target_id", ID, nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("updated_at", MOMENT, nullable=True),
        sa.Column("usage_count", ID, nullable=True),
        sa.ForeignKeyConstraint(
            ["import_source_id"], ["import_sources.id"],
            name=op.f("fk_imported_records_import_source_id"), ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "import_source_id", "kind", "source_id", name=op.f("pk_imported_records")
        ),
        sqlite_with_rowid=False,
    )  # fmt: skip


def downgrade() -> None:
    op.drop_table("imported_records")
    op.drop_table("import_sources")
