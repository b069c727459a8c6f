"""Copying a shop from one database to another, with all IDs and sequences.

The tables are those of the models, so a new table is copied without further code. ``row_counts``,
``order_sums``, ``customer_totals``, ``order_products`` and the search tables are not copied: the
triggers of the target fill them from the copied rows.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson
from sqlalchemy import (
    Connection,
    Engine,
    Table,
    create_engine,
    event,
    exists,
    func,
    inspect,
    make_url,
    select,
)

from app.db.bulk_inserts import insert_many, loading
from app.db.migrations import REVISION, is_newer, migration_head
from app.db.read_pool import begin_snapshot
from app.db.sequences import last_ids, set_last_id
from app.db.session import db
from app.models import (
    TOTAL_STATUSES,
    CustomerTotal,
    OrderProduct,
    OrderSum,
    RowCount,
    StaleTotal,
    TotalStatuses,
)
from app.services.common.progress import Progress
from app.services.maintenance.stored_texts import NORMALIZED, SET_NORMALIZED

BATCH = 1000
"""Number of rows in memory, and in one INSERT or COPY."""

DERIVED = frozenset(
    model.__tablename__
    for model in (RowCount, OrderSum, OrderProduct, CustomerTotal, StaleTotal, TotalStatuses)
)
"""Tables that triggers fill."""


class CopyError(Exception):
    """A shop cannot be copied. The message says why."""


def tables() -> list[Table]:
    """Return the tables to copy, each after the tables that it refers to."""
    return [table for table in db.metadata.sorted_tables if table.name not in DERIVED]


def open_source(url: str) -> Engine:
    """Return an engine for the database to copy from, without connecting to it."""
    parsed = make_url(url)
    on_sqlite = parsed.get_backend_name() == "sqlite"
    if not on_sqlite:
        parsed = parsed.set(drivername="postgresql+psycopg")
    engine = create_engine(
        parsed,
        json_serializer=lambda value: orjson.dumps(value).decode(),
        json_deserializer=orjson.loads,
        hide_parameters=True,
        connect_args={} if on_sqlite else {"options": "-c timezone=UTC", "connect_timeout": 5},
    )
    if on_sqlite:
        event.listen(engine, "connect", _begin_explicitly)
    return engine


def _begin_explicitly(connection: Any, _: Any) -> None:
    connection.isolation_level = None


@contextmanager
def reading_one_state(engine: Engine) -> Iterator[Connection]:
    """Yield a connection whose selects all see the same state of the database."""
    with engine.connect() as connection:
        begin_snapshot(connection)
        yield connection


def copy_shop(source: Connection, target: Connection, progress: Progress) -> dict[str, int]:
    """Copy all rows and sequences, within the transactions of two connections.

    Args:
        source: connection to the database to copy from, from ``reading_one_state``.
        target: connection to an empty database, in a transaction. The caller commits.
        progress: called for each table.

    Returns:
        The number of copied rows of each table.

    Raises:
        CopyError: a schema is not current, the target contains data, or it does not contain the
            rows of the source afterwards.
    """
    _require_current_schema(source, "source")
    _require_current_schema(target, "target")
    _require_empty(target)
    with loading(target):
        copied = {table.name: _copy_table(source, target, table, progress) for table in tables()}
        _copy_sequences(source, target)
        target.execute(SET_NORMALIZED, {"version": source.scalar(NORMALIZED)})
        _verify(source, target, copied)
    return copied


def _require_current_schema(connection: Connection, name: str) -> None:
    found: set[str] = set()
    if inspect(connection).has_table("alembic_version"):
        found = set(connection.scalars(REVISION))
    if any(is_newer(revision) for revision in found):
        raise CopyError(
            f"The schema of the {name} database belongs to a newer version of the service. Copy it "
            "with that version."
        )
    if found != {migration_head()}:
        raise CopyError(
            f"The schema of the {name} database is not current. Run `shop-api db upgrade` "
            "with its DATABASE_URL first."
        )


def _require_empty(target: Connection) -> None:
    for table in db.metadata.sorted_tables:
        if table is TOTAL_STATUSES:  # `shop-api db upgrade` fills it
            continue
        if target.scalar(select(exists(select(1).select_from(table)))):
            raise CopyError(
                f"The target database contains data (table {table.name}). Copy into an empty "
                "database: create one, set DATABASE_URL and run `shop-api db upgrade`."
            )


def _copy_table(source: Connection, target: Connection, table: Table, progress: Progress) -> int:
    total = _count(source, table)
    # The database computes the other columns.
    columns = [column for column in table.columns if column.computed is None]
    names = [column.name for column in columns]
    rows = source.execute(
        select(*columns).order_by(*table.primary_key.columns),
        execution_options={"yield_per": BATCH},
    )
    copied = 0
    with progress(table.name, total) as note:
        for batch in rows.partitions():
            insert_many(target, table, names, batch)
            copied += len(batch)
            note(copied)
    return copied


def _count(connection: Connection, table: Table) -> int:
    return int(connection.scalar(select(func.count()).select_from(table)) or 0)


def _copy_sequences(source: Connection, target: Connection) -> None:
    """Let the target assign the IDs that the source would assign next.

    The IDs of deleted records are therefore not used again.
    """
    last = last_ids(source, tables())
    for table in tables():
        if value := last.get(table.name):
            set_last_id(target, table, value)


def _verify(source: Connection, target: Connection, copied: Mapping[str, int]) -> None:
    """Raise CopyError unless the target contains the copied rows, and its row counts are equal."""
    for table in tables():
        if not copied[table.name] == _count(source, table) == _count(target, table):
            raise CopyError(f"The table {table.name} was not copied completely. This is a bug.")
    if _sums_of_row_counts(source) != _sums_of_row_counts(target):
        raise CopyError("The row counts of the databases differ. This is a bug.")


def _sums_of_row_counts(connection: Connection) -> list[tuple[object, ...]]:
    key = RowCount.table_name, RowCount.partition, RowCount.week
    total = func.sum(RowCount.count)
    sums = select(*key, total).group_by(*key).having(total != 0).order_by(*key)
    return [(*row[:3], int(row[3])) for row in connection.execute(sums)]
