"""SQL functions that work the same on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, literal_column
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import Numeric, String

from app.db.sql.types import JsonObjectText, JsonTuple, UtcDateTime


class is_one_of(FunctionElement[bool]):  # noqa: N801  # named like an SQL function
    """Whether a value is in a ``ValueList``. Uses an index if available.

    ``in_`` has one placeholder per value. SQLAlchemy renders the placeholders for each statement,
    which takes as long as reading ten records, and PostgreSQL prepares a separate statement for
    each number of values.
    """

    inherit_cache = True


@compiles(is_one_of)
def _is_in_list(element: is_one_of, compiler: Any, **kwargs: Any) -> str:
    value, several = (compiler.process(clause, **kwargs) for clause in element.clauses)
    return f"{value} IN (SELECT value FROM json_each({several}))"  # noqa: S608  # nosec B608  # of SQLAlchemy


@compiles(is_one_of, "postgresql")
def _is_element(element: is_one_of, compiler: Any, **kwargs: Any) -> str:
    value, several = (compiler.process(clause, **kwargs) for clause in element.clauses)
    return f"{value} = ANY({several})"


class json_tuple(FunctionElement[Any]):  # noqa: N801  # named like an SQL function
    """Several values in one column, so that a lookup of all values runs only once."""

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
    values = (_in_utc(clause, compiler, **kwargs) for clause in element.clauses)
    return f"json_build_array({', '.join(values)})"


def _in_utc(value: Any, compiler: Any, **kwargs: Any) -> str:
    """Return a value as SQL. JSON would contain a timestamp in the time zone of the connection."""
    sql: str = compiler.process(value, **kwargs)
    return f"({sql} AT TIME ZONE 'UTC')" if isinstance(value.type, UtcDateTime) else sql


class json_text(FunctionElement[Any]):  # noqa: N801  # named like an SQL function
    """Text values as a JSON object that the database creates, without Python objects."""

    inherit_cache = True
    type = JsonObjectText()

    def __init__(self, values: Mapping[str, ColumnElement[Any]]) -> None:
        parts: list[ColumnElement[Any]] = []
        for name, value in values.items():
            parts += [literal_column(f"'{name}'"), value]
        super().__init__(*parts)


@compiles(json_text)
def _json_object(element: json_text, compiler: Any, **kwargs: Any) -> str:
    return f"json_object({compiler.process(element.clauses, **kwargs)})"


@compiles(json_text, "postgresql")
def _row_to_json(element: json_text, compiler: Any, **kwargs: Any) -> str:
    # Unlike json_object on SQLite, json_build_object would insert blanks.
    parts = [compiler.process(clause, **kwargs) for clause in element.clauses]
    named = zip(parts[::2], parts[1::2], strict=True)
    row = ", ".join(f'{value} AS "{name[1:-1]}"' for name, value in named)
    return f"(SELECT row_to_json(part)::text FROM (SELECT {row}) AS part)"  # noqa: S608  # nosec B608  # of SQLAlchemy


class leading_number(FunctionElement[Any]):  # noqa: N801  # named like an SQL function
    """The number at the start of a text, or 0 if there is no number."""

    inherit_cache = True
    type = Numeric()


@compiles(leading_number)
def _cast(element: leading_number, compiler: Any, **kwargs: Any) -> str:
    return f"CAST({compiler.process(element.clauses, **kwargs)} AS REAL)"


@compiles(leading_number, "postgresql")
def _cast_postgresql(element: leading_number, compiler: Any, **kwargs: Any) -> str:
    text = compiler.process(element.clauses, **kwargs)
    # Limit the digits, so that both databases accept a text with thousands of digits.
    digits = r"[-+]?([0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})([eE][-+]?[0-9]{1,2})?"
    # The pattern takes six seconds for a million texts. Most texts need none: they are empty, begin
    # with a letter (from : to ~), or consist of a few digits.
    first = f'{text} COLLATE "C"'
    return f"""CASE
        WHEN {text} = '' OR ({first} >= ':' AND {first} < chr(127)) THEN 0
        WHEN length({text}) <= 15 AND translate({text}, '0123456789', '') = '' THEN {text}::float8
        ELSE coalesce(substring({text} from '^\\s*({digits})')::float8, 0)
    END"""


class json_entries(FunctionElement[str]):  # noqa: N801  # named like an SQL function
    """An aggregate: IDs, texts and JSON texts of rows as a JSON array of arrays, in any order.

    Reading one long text for each record takes a third of the time of reading its rows.
    """

    inherit_cache = True
    type = String()


@compiles(json_entries)
def _json_entries(element: json_entries, compiler: Any, **kwargs: Any) -> str:
    row, text, value = (compiler.process(clause, **kwargs) for clause in element.clauses)
    entry = f"'[' || {row} || ',' || json_quote({text}) || ',' || {value} || ']'"
    return f"'[' || group_concat({entry}, ',') || ']'"


@compiles(json_entries, "postgresql")
def _json_entries_on_postgresql(element: json_entries, compiler: Any, **kwargs: Any) -> str:
    row, text, value = (compiler.process(clause, **kwargs) for clause in element.clauses)
    entry = f"'[' || {row} || ',' || to_json({text})::text || ',' || {value} || ']'"
    return f"'[' || string_agg({entry}, ',') || ']'"


class json_record(json_text):  # noqa: N801  # named like an SQL function
    """Values of any type as the text of a JSON object, also of aggregates."""

    inherit_cache = True
    type = String()  # type: ignore[assignment] # text, which is not part of a response


@compiles(json_record, "postgresql")
def _json_build_object(element: json_record, compiler: Any, **kwargs: Any) -> str:
    return f"CAST(json_build_object({compiler.process(element.clauses, **kwargs)}) AS text)"


class json_list(FunctionElement[str]):  # noqa: N801  # named like an SQL function
    """An aggregate: the values of a column as a JSON array, in any order. Can be NULL if empty."""

    inherit_cache = True


@compiles(json_list)
def _json_group_array(element: json_list, compiler: Any, **kwargs: Any) -> str:
    return f"json_group_array({compiler.process(element.clauses, **kwargs)})"


@compiles(json_list, "postgresql")
def _json_agg(element: json_list, compiler: Any, **kwargs: Any) -> str:
    return f"json_agg({compiler.process(element.clauses, **kwargs)})"


class has_unicode(FunctionElement[bool]):  # noqa: N801  # named like an SQL function
    """Whether a text contains characters beyond ASCII, which the databases lower differently."""

    inherit_cache = True


@compiles(has_unicode)
def _has_more_bytes(element: has_unicode, compiler: Any, **kwargs: Any) -> str:
    text = compiler.process(element.clauses, **kwargs)
    return f"length(CAST({text} AS BLOB)) > length({text})"


@compiles(has_unicode, "postgresql")
def _has_more_octets(element: has_unicode, compiler: Any, **kwargs: Any) -> str:
    text = compiler.process(element.clauses, **kwargs)
    return f"octet_length({text}) > length({text})"


class json_lookup(FunctionElement[str]):  # noqa: N801  # named like an SQL function
    """The value of a key in a JSON object, or NULL."""

    inherit_cache = True
    type = String()


@compiles(json_lookup)
def _entry(element: json_lookup, compiler: Any, **kwargs: Any) -> str:
    record, key = (compiler.process(clause, **kwargs) for clause in element.clauses)
    return f"(SELECT value FROM json_each({record}) WHERE key = {key})"  # noqa: S608  # nosec B608  # of SQLAlchemy


@compiles(json_lookup, "postgresql")
def _value_of_key(element: json_lookup, compiler: Any, **kwargs: Any) -> str:
    record, key = (compiler.process(clause, **kwargs) for clause in element.clauses)
    return f"(CAST({record} AS json) ->> {key})"


class email_is(FunctionElement[bool]):  # noqa: N801  # named like an SQL function
    """Whether an e-mail address in ASCII has a lower-case form. Uses its index."""

    inherit_cache = True


@compiles(email_is)
def _equals_in_any_case(element: email_is, compiler: Any, **kwargs: Any) -> str:
    email, lower = (compiler.process(clause, **kwargs) for clause in element.clauses)
    return f"{email} = {lower} COLLATE NOCASE"


@compiles(email_is, "postgresql")
def _equals_lower(element: email_is, compiler: Any, **kwargs: Any) -> str:
    # Index entries have a maximum size, so the index contains the start of long addresses.
    email, lower = (compiler.process(clause, **kwargs) for clause in element.clauses)
    start = f"lower(substr({email}, 1, 200)) = substr({lower}, 1, 200)"
    return f"({start} AND lower({email}) = {lower})"
