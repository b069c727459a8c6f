"""Selects that recur in nearly every request, without SQLAlchemy's work for each statement."""

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import CompoundSelect, Connection, Dialect, Executable, Select

Convert = Callable[[Any], Any]
Parameters = Mapping[str, Any] | None
AnySelect = Select[Any] | CompoundSelect[Any]


class Form(NamedTuple):
    """A select in the form of a driver.

    Args:
        text: the SQL.
        names: the names of the parameters in order, or None if the driver takes them by name.
        constants: the parameters that always have the same value.
        variables: the other ones: their names, functions that return their values, and functions
            that convert the values for the driver.
        reads: the places of columns, and the functions that convert their values from the driver.
        make: function that gives the values of a row their names, or None.
    """

    text: str
    names: Sequence[str] | None
    constants: Mapping[str, Any]
    variables: Sequence[tuple[str, Callable[[], Any] | None, Convert | None]]
    reads: Sequence[tuple[int, Convert]]
    make: Callable[[Iterable[Any]], Any] | None

    def rows(self, driver: Any, parameters: Parameters) -> Sequence[Any]:
        """Run the select on a connection of the driver, and return all rows as tuples."""
        cursor = driver.cursor()
        try:
            cursor.execute(self.text, self._values(parameters))
            return self._converted(cursor.fetchall())
        finally:
            cursor.close()

    def _values(self, parameters: Parameters) -> Any:
        values, given = dict(self.constants), parameters or {}
        for name, call, convert in self.variables:
            value = given[name] if call is None else call()
            values[name] = convert(value) if convert else value
        return values if self.names is None else [values[name] for name in self.names]

    def _converted(self, rows: Sequence[Any]) -> Sequence[Any]:
        if self.reads and rows:
            columns: list[Iterable[Any]] = list(zip(*rows, strict=True))
            for place, read in self.reads:
                columns[place] = map(read, columns[place])
            rows = list(zip(*columns, strict=True))
        return rows if self.make is None else list(map(self.make, rows))


class RecurringSelect:
    """A select that is compiled once for each kind of database.

    It then runs on the connection of the driver. SQLAlchemy would find the compiled select in its
    cache and describe the result, which takes several times as long as SQLite for a record by ID.

    Args:
        has_names: whether the values of a row can be read by the names of their columns.
    """

    def __init__(self, select: AnySelect, *, has_names: bool = False) -> None:
        self.select = select
        self._has_names = has_names
        self._forms: dict[str, Form] = {}

    def form(self, dialect: Dialect) -> Form:
        """Return the select in the form of the driver of a dialect."""
        form = self._forms.get(dialect.name)
        if form is None:
            form = self._forms[dialect.name] = _form(
                self.select, dialect, has_names=self._has_names
            )
        return form


def _form(select: AnySelect, dialect: Dialect, *, has_names: bool) -> Form:
    binds: Any = select.compile(dialect=dialect).bind_names
    # SQLAlchemy writes the values of a list of constants only if all parameters have a value.
    given = {name: None for bind, name in binds.items() if bind.required}
    compiled: Any = select.params(given).compile(
        dialect=dialect, compile_kwargs={"render_postcompile": True}
    )
    constants: dict[str, Any] = {}
    variables: list[tuple[str, Callable[[], Any] | None, Convert | None]] = []
    for bind, name in binds.items():
        convert = bind.type.dialect_impl(dialect).bind_processor(dialect)
        if bind.required or bind.callable:
            variables.append((name, bind.callable, convert))
            continue
        # The values of a list of ``in_`` have a number each.
        numbered = enumerate(bind.value, 1) if bind.expanding else ()
        values = {f"{name}_{number}": value for number, value in numbered} or {name: bind.value}
        constants |= {key: convert(each) if convert else each for key, each in values.items()}
    columns = select.selected_columns
    reads = [each.type.dialect_impl(dialect).result_processor(dialect, None) for each in columns]
    row: Any = namedtuple("Row", columns.keys()) if has_names else None
    return Form(
        str(compiled),
        compiled.positiontup if compiled.positional else None,
        constants,
        variables,
        [(place, read) for place, read in enumerate(reads) if read],
        row and row._make,
    )


def rows_in(
    connection: Connection, statement: Executable | RecurringSelect, parameters: Parameters = None
) -> Sequence[Any]:
    """Return all rows of a select, run by SQLAlchemy, for example in a transaction that writes."""
    select = statement.select if isinstance(statement, RecurringSelect) else statement
    return connection.execute(select, parameters).all()
