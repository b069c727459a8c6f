"""The triggers that maintain counts and search tables: ``sqlite.sql`` and ``postgresql.sql``."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import Connection

_TRIGGER = re.compile(r"CREATE TRIGGER (\w+) .*? ON (\w+)", re.DOTALL)


def recreate(connection: Connection) -> None:
    """Replace all triggers and their functions by those of the file of this database.

    Only one migration may do so, because its effect must stay the same (CONTRIBUTING.md).
    """
    database = connection.dialect.name
    for statement in Path(__file__).with_name(f"{database}.sql").read_text().split("\n\n"):
        if found := _TRIGGER.search(statement):
            name, table = found.groups()
            on_table = f" ON {table}" if database == "postgresql" else ""
            connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {name}{on_table}")
        if "CREATE " in statement:  # not only a comment
            connection.exec_driver_sql(statement)
