"""Selects that are kept ready: their text, their parameters and what reads their rows.

SQLAlchemy writes them, once for each kind of database, and the driver runs them. To have SQLAlchemy
run them, too, takes four times as long as it takes to read a record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Dialect, Select
from sqlalchemy.exc import DBAPIError

Parameters = Mapping[str, Any]
Rows = Sequence[Sequence[Any]]

MAX_SELECTS = 100
"""How many selects of a kind are kept: one for each ``fields`` that clients ask for, say."""


class Ready:
    """A select to be run again and again.

    Args:
        select: what each run selects; its parameters have names, and no list takes the place of
            one (``in_``).
    """

    def __init__(self, select: Select[Any]) -> None:
        self.select = select
        self._plans: dict[str, _Plan] = {}

    def rows(self, connection: Connection, parameters: Parameters) -> Rows:
        """Run it on the driver of a connection and return its rows.

        Raises:
            DBAPIError: of the kind that SQLAlchemy raises.
        """
        dialect = connection.dialect
        plan = self._plans.get(dialect.name)
        if plan is None:
            plan = self._plans[dialect.name] = _Plan(self.select, dialect)
        driver: Any = connection.connection.driver_connection
        try:
            cursor = driver.cursor()  # by which a statement's time begins (app.timeouts)
            rows = cursor.execute(plan.text, plan.values(parameters)).fetchall()
        except dialect.loaded_dbapi.Error as error:
            raise DBAPIError.instance(
                plan.text, None, error, dialect.loaded_dbapi.Error, hide_parameters=True,
                dialect=dialect,
            ) from error  # fmt: skip
        return plan.read(rows) if plan.reads else rows


@lru_cache(MAX_SELECTS)
def ready(select: Select[Any]) -> Ready:
    """Return a select kept ready; for one and the same select, the same each time."""
    return Ready(select)


class _Plan:
    """How a driver runs a select, worked out by SQLAlchemy.

    Attributes:
        text: the statement.
        reads: what turns a value of the driver into one of Python, by its place in a row.
    """

    def __init__(self, select: Select[Any], dialect: Dialect) -> None:
        compiled: Any = select.compile(dialect=dialect)
        if compiled.post_compile_params:
            raise TypeError("a select that is kept ready has no lists of any length")
        self.text: str = compiled.string
        self._order: Sequence[str] | None = compiled.positiontup  # None: by name
        self._given: dict[str, Callable[[Any], Any] | None] = {}
        self._computed: list[tuple[str, Callable[[], Any], Callable[[Any], Any] | None]] = []
        self._fixed: dict[str, Any] = {}
        for parameter, name in compiled.bind_names.items():
            convert = parameter.type.dialect_impl(dialect).bind_processor(dialect)
            if parameter.callable:
                self._computed.append((name, parameter.callable, convert))
            elif parameter.required:
                self._given[name] = convert
            else:
                self._fixed[name] = convert(parameter.value) if convert else parameter.value
        readers = (
            column.type.dialect_impl(dialect).result_processor(dialect, None)
            for column in select.selected_columns
        )
        self.reads = [(place, read) for place, read in enumerate(readers) if read]

    def values(self, given: Parameters) -> Any:
        """Return the parameters as the driver takes them."""
        values = dict(self._fixed)
        for name, compute, convert in self._computed:
            values[name] = convert(compute()) if convert else compute()
        for name, convert in self._given.items():
            values[name] = convert(given[name]) if convert else given[name]
        return values if self._order is None else [values[name] for name in self._order]

    def read(self, rows: Rows) -> Rows:
        """Return rows of Python's values."""
        reads, done = self.reads, []
        for row in rows:
            values = list(row)
            for place, read in reads:
                values[place] = read(values[place])
            done.append(values)
        return done
