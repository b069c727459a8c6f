"""The triggers that maintain counts and search tables: ``sqlite.sql`` and ``postgresql.sql``.

A statement with ``{table}`` is for each table with a search, or with counts if its name begins with
``count_rows_``.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection

from app.db.sql.databases import database_name

_SEARCHED = "users", "coupons", "orders"

_COUNTED = {
    "users": ("created_at",),
    "user_roles": ("registered_at", "role"),
    "coupons": ("created_at", "status"),
    "orders": ("created_at", "status"),
    "redemptions": ("created_at",),
}
"""The column with the time of a row, and the column by which the rows are counted, if any."""

_TRIGGER = re.compile(r"CREATE TRIGGER (\w+) .*? ON (\w+)", re.DOTALL)


def recreate(connection: Connection) -> None:
    """Replace all triggers and their functions by those of the file of this database.

    Only one migration may do so, because its effect must stay the same (CONTRIBUTING.md).
    """
    database = database_name(connection)
    for statement in _statements(Path(__file__).with_name(f"{database}.sql").read_text()):
        if found := _TRIGGER.search(statement):
            name, table = found.groups()
            on_table = f" ON {table}" if database == "postgresql" else ""
            connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {name}{on_table}")
        connection.exec_driver_sql(statement)


def _statements(source: str) -> Iterator[str]:
    for statement in source.split("\n\n"):
        if "{table}" not in statement:
            yield from [statement] if "CREATE " in statement else []  # not only a comment
        elif "count_rows_{table}" not in statement:
            yield from (statement.format(table=table) for table in _SEARCHED)
        else:
            for table, columns in _COUNTED.items():
                if f" count_rows_{table}()" not in source:  # whose function is written out
                    yield statement.format(table=table, **_parts(*columns))


def _parts(time: str, partition: str = "") -> dict[str, str]:
    columns = [time, partition] if partition else [time]
    return {
        "time": time,
        "partition": partition or "''",
        "old": f"OLD.{partition}" if partition else "''",
        "new": f"NEW.{partition}" if partition else "''",
        "columns": ", ".join(columns),
        "changed": " OR ".join(f"OLD.{column} <> NEW.{column}" for column in columns),
    }
