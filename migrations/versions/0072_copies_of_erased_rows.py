"""Let the worker remove copies of rows that were erased before erasures counted up user_version.

A backup of an earlier version is upgraded from an earlier migration, so this is done for it, too. A
shop that never had a row has nothing to remove.
"""

from alembic import op

from app.db.sql.databases import uses_sqlite

revision = "0072"
down_revision = "0071"


def upgrade() -> None:
    connection = op.get_bind()
    had_rows = "SELECT EXISTS (SELECT 1 FROM sqlite_sequence WHERE seq > 0)"
    if uses_sqlite(connection) and connection.exec_driver_sql(had_rows).scalar():
        connection.exec_driver_sql("PRAGMA user_version = 1")


def downgrade() -> None:
    pass
