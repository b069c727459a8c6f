"""Functions of SQL that mean the same on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import ColumnElement, false, literal_column, or_
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import Numeric

from app.db.types import IdList, JsonObjectText, JsonTuple


class is_one_of(FunctionElement[bool]):  # noqa: N801  # named as a function of SQL
    """Whether a value is one of some ``TextList`` or ``IdList``."""

    inherit_cache = True


@compiles(is_one_of)
def _is_in_text(element: is_one_of, compiler: Any, **kwargs: Any) -> str:
    value, several = (compiler.process(clause, **kwargs) for clause in element.clauses)
    if isinstance(list(element.clauses)[1].type, IdList):
        # Names and placeholders, which SQLAlchemy has written.
        return f"{value} IN (SELECT value FROM json_each({several}))"  # noqa: S608  # nosec B608
    # The ends of lines as they are: char(10) would be called for each row.
    return f"instr({several}, '\n' || {value} || '\n')"


@compiles(is_one_of, "postgresql")
def _is_element(element: is_one_of, compiler: Any, **kwargs: Any) -> str:
    value, several = (compiler.process(clause, **kwargs) for clause in element.clauses)
    return f"{value} = ANY({several})"


def equals_any(value: ColumnElement[Any], wanted: Iterable[Any]) -> ColumnElement[bool]:
    """Return the condition that a value is one of some, each of which an index finds.

    SQLAlchemy writes ``in_`` anew for each number of values, so that no select with it can be kept
    ready; of ``is_one_of`` TextList no index is used.
    """
    return or_(false(), *(value == each for each in wanted))


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
    """Texts under their names, written by the database: nobody makes objects of them first."""

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
