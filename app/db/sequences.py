"""The IDs that tables assign next: sequences of PostgreSQL, and ``sqlite_sequence`` of SQLite."""

from collections.abc import Sequence

from sqlalchemy import (
    BigInteger,
    Connection,
    String,
    Table,
    cast,
    column,
    func,
    insert,
    literal,
    select,
    table,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import REGCLASS

from app.db.read_pool import fetch, on_postgresql
from app.db.session import db
from app.db.sql.databases import uses_sqlite

_SQLITE = table("sqlite_sequence", column("name"), column("seq"))


def new_ids(connection: Connection, of: Table, number: int) -> list[int]:
    """Return new IDs of a table, ascending."""
    if uses_sqlite(connection):
        last = last_ids(connection, [of]).get(of.name, 0)
        set_last_id(connection, of, last + number)
        return list(range(last + 1, last + number + 1))
    next_id = func.nextval(func.pg_get_serial_sequence(of.name, "id"))
    several = select(next_id).select_from(func.generate_series(1, number))
    return sorted(connection.scalars(several))


def advance(connection: Connection, of: Table, last: int) -> None:
    """Let a table assign only IDs that are greater than ``last`` and all earlier ones."""
    used = last_ids(connection, [of]).get(of.name, 0)
    if last > used:
        set_last_id(connection, of, last)


def last_ids(connection: Connection, tables: Sequence[Table]) -> dict[str, int]:
    """Return the last ID that each table has assigned, by its name."""
    if uses_sqlite(connection):
        names = [each.name for each in tables]
        rows = connection.execute(select(_SQLITE).where(_SQLITE.c.name.in_(names)))
        return {row.name: row.seq for row in rows}
    found = {}
    for each in tables:
        if sequence := _sequence_of(connection, each):
            last = func.pg_sequence_last_value(cast(sequence, REGCLASS), type_=BigInteger)
            found[each.name] = connection.scalar(select(func.coalesce(last, 0))) or 0
    return found


def set_last_id(connection: Connection, of: Table, last: int) -> None:
    """Let a table assign IDs that follow ``last``."""
    if uses_sqlite(connection):
        is_of_table = _SQLITE.c.name == of.name
        if not connection.execute(update(_SQLITE).where(is_of_table).values(seq=last)).rowcount:
            # SQLite adds the row of a table with its first row.
            connection.execute(insert(_SQLITE).values(name=of.name, seq=last))
    elif sequence := _sequence_of(connection, of):
        current = func.pg_sequence_last_value(cast(sequence, REGCLASS), type_=BigInteger)
        # A concurrent transaction may have taken more IDs.
        connection.execute(select(func.setval(sequence, func.greatest(current, last))))


def _sequence_of(connection: Connection, of: Table) -> str | None:
    """Return the quoted name of the sequence of a table on PostgreSQL, or None."""
    if of.autoincrement_column is None:
        return None
    name = func.pg_get_serial_sequence(of.name, of.autoincrement_column.name, type_=String)
    return connection.scalar(select(name))


def sequences_behind() -> list[tuple[str, int]]:
    """Return the sequences that would assign an ID in use next, and the highest ID of each.

    A restore of data without its sequences leaves them behind. SQLite assigns IDs above the highest
    one by itself.
    """
    if not on_postgresql():
        return []
    selects = []
    for each in db.metadata.sorted_tables:
        if (id_column := each.autoincrement_column) is not None:
            name = func.pg_get_serial_sequence(each.name, id_column.name, type_=String)
            last = func.pg_sequence_last_value(cast(name, REGCLASS), type_=BigInteger)
            highest = func.coalesce(func.max(id_column), literal(0))
            selects.append(select(name.label("name"), last.label("last"), highest.label("highest")))
    found = union_all(*selects).subquery()
    is_behind = func.coalesce(found.c.last, 0) < found.c.highest
    rows = fetch(select(found.c.name, found.c.highest).where(is_behind).order_by(found.c.name))
    return [(row.name, row.highest) for row in rows]
