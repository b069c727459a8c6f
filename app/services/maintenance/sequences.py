"""Verifying the sequences of IDs on PostgreSQL."""

from sqlalchemy import BigInteger, String, cast, func, literal, select, union_all
from sqlalchemy.dialects.postgresql import REGCLASS

from app.db.read_pool import fetch, read_engine
from app.db.session import db


def sequences_behind() -> list[tuple[str, int]]:
    """Return the sequences that would assign an ID in use next, and the highest ID of each.

    A restore of data without its sequences leaves them behind. SQLite assigns IDs above the highest
    one by itself.
    """
    if read_engine().dialect.name == "sqlite":
        return []
    selects = []
    for table in db.metadata.sorted_tables:
        if (column := table.autoincrement_column) is not None:
            name = func.pg_get_serial_sequence(table.name, column.name, type_=String)
            last = func.pg_sequence_last_value(cast(name, REGCLASS), type_=BigInteger)
            highest = func.coalesce(func.max(column), literal(0))
            selects.append(select(name.label("name"), last.label("last"), highest.label("highest")))
    found = union_all(*selects).subquery()
    is_behind = func.coalesce(found.c.last, 0) < found.c.highest
    rows = fetch(select(found.c.name, found.c.highest).where(is_behind).order_by(found.c.name))
    return [(row.name, row.highest) for row in rows]
