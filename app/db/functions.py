"""Functions of SQL that mean the same on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, literal_column
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import Numeric

from app.db.types import JsonObjectText, JsonTuple


class is_one_of(FunctionElement[bool]):  # noqa: N801  # named as a function of SQL
    """Whether a value is one of a ``ValueList``, by an index where there is one.

    ``in_`` has a placeholder for each value: SQLAlchemy writes them anew in each statement, which
    takes as long as to read ten records, and PostgreSQL prepares one statement for each number.
    """

    inherit_cache = True


@compiles(is_one_of)
def _is_in_list(element: is_one_of, compiler: Any, **kwargs: Any) -> str:
    value, several = (compiler.process(clause, **kwargs) for clause in element.clauses)
    # Names and placeholders, which SQLAlchemy has written.
    return f"{value} IN (SELECT value FROM json_each({several}))"  # noqa: S608  # nosec B608


@compiles(is_one_of, "postgresql")
def _is_element(element: is_one_of, compiler: Any, **kwargs: Any) -> str:
    value, several = (compiler.process(clause, **kwargs) for clause in element.clauses)
    return f"{value} = ANY({several})"


class json_tuple(FunctionElement[Any]):  # noqa: N801  # named as a function of SQL
    """Several values as one: whatever finds all of them has to look only once."""

    inherit_cache = True

    def __init__(self, values: Mapping[str, ColumnElement[Any]]) -> None:
        super().__init__(*values.values())
        printed = {name: getattr(value.type, "printed", None) for name, value in values.items()}
        self.type = JsonTuple({name: kind and kind.read for name, kind in printed.items()})


@compiles(json_tuple)
def _json_array(element: json_tuple, compiler: Any, **kwargs: Any) -> str:
    return f"json_array({compiler.process(element.clauses, **kwargs)})"


@compiles(json_tuple, "postgresql")
def _json_build_array(element: json_tuple, compiler: Any, **kwargs: Any) -> str:
    return f"json_build_array({compiler.process(element.clauses, **kwargs)})"


class json_text(FunctionElement[Any]):  # noqa: N801  # named as a function of SQL
    """TextList under their names, written by the database: nobody makes objects of them first."""

    inherit_cache = True
    type = JsonObjectText()

    def __init__(self, values: Mapping[str, ColumnElement[str]]) -> None:
        parts: list[ColumnElement[Any]] = []
        for name, value in values.items():
            parts += [literal_column(f"'{name}'"), value]
        super().__init__(*parts)


@compiles(json_text)
def _json_object(element: json_text, compiler: Any, **kwargs: Any) -> str:
    return f"json_object({compiler.process(element.clauses, **kwargs)})"


@compiles(json_text, "postgresql")
def _row_to_json(element: json_text, compiler: Any, **kwargs: Any) -> str:
    # json_build_object would write blanks, which SQLite does not.
    parts = [compiler.process(clause, **kwargs) for clause in element.clauses]
    named = zip(parts[::2], parts[1::2], strict=True)
    row = ", ".join(f'{value} AS "{name[1:-1]}"' for name, value in named)
    # Names of ours, and what SQLAlchemy has written.
    return f"(SELECT row_to_json(part)::text FROM (SELECT {row}) AS part)"  # noqa: S608  # nosec B608


class leading_number(FunctionElement[Any]):  # noqa: N801  # named as a function of SQL
    """The number that a text begins with, 0 when it begins with none."""

    inherit_cache = True
    type = Numeric()


@compiles(leading_number)
def _cast(element: leading_number, compiler: Any, **kwargs: Any) -> str:
    return f"CAST({compiler.process(element.clauses, **kwargs)} AS REAL)"


@compiles(leading_number, "postgresql")
def _cast_postgresql(element: leading_number, compiler: Any, **kwargs: Any) -> str:
    text = compiler.process(element.clauses, **kwargs)
    # So many digits and no more, so that a text of thousands is a number for both databases.
    digits = r"[-+]?([0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})([eE][-+]?[0-9]{1,2})?"
    return f"coalesce(substring({text} from '^\\s*({digits})')::float8, 0)"
