"""SQL functions that work the same on SQLite and PostgreSQL."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import ColumnElement, literal_column
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import BigInteger, Float, Numeric, String

from app.db.sql.templates import Templated
from app.db.sql.types import IdList, JsonEntries, JsonObjectText, JsonTuple, Money, UtcDateTime


class is_one_of(Templated[bool]):
    """Whether a value is in a ``ValueList``. Uses an index if available.

    ``in_`` has one placeholder per value. SQLAlchemy renders the placeholders for each statement,
    which takes as long as reading ten records, and PostgreSQL prepares a separate statement for
    each number of values.
    """

    sqlite = "{0} IN (SELECT value FROM json_each({1}))"
    postgresql = "{0} = ANY({1})"


class is_selected(Templated[bool]):
    """Whether a value is one of those that a select returns, which runs once.

    PostgreSQL does not look up the values of ``IN`` in an index if an alternative is beside it.
    """

    sqlite = "{0} IN {1}"
    postgresql = "{0} = ANY(ARRAY{1})"


class json_tuple(Templated[list[object]]):
    """Several values in one column, so that a lookup of all values runs only once."""

    sqlite = "json_array({all})"

    def __init__(self, values: Mapping[str, ColumnElement[object]]) -> None:
        super().__init__(*values.values())
        printed = {name: getattr(value.type, "printed", None) for name, value in values.items()}
        self.type = JsonTuple({name: kind and kind.read for name, kind in printed.items()})


@compiles(json_tuple, "postgresql")
def _json_build_array(element: json_tuple, compiler: SQLCompiler, **kwargs: object) -> str:
    values = (_in_utc(clause, compiler, **kwargs) for clause in element.clauses)
    return f"json_build_array({', '.join(values)})"


def _in_utc(value: ColumnElement[object], compiler: SQLCompiler, **kwargs: object) -> str:
    """Return a value as SQL. JSON would contain a timestamp in the time zone of the connection."""
    sql: str = compiler.process(value, **kwargs)
    return f"({sql} AT TIME ZONE 'UTC')" if isinstance(value.type, UtcDateTime) else sql


class _JsonObject(Templated[Any]):
    sqlite = "json_object({all})"

    def __init__(self, values: Mapping[str, ColumnElement[object]]) -> None:
        parts: list[ColumnElement[object]] = []
        for name, value in values.items():
            parts += [literal_column(f"'{name}'"), value]
        super().__init__(*parts)


class json_text(_JsonObject):
    """Text values as a JSON object that the database creates, without Python objects."""

    type = JsonObjectText()


@compiles(json_text, "postgresql")
def _row_to_json(element: json_text, compiler: SQLCompiler, **kwargs: object) -> str:
    # Unlike json_object on SQLite, json_build_object would insert blanks.
    parts = [compiler.process(clause, **kwargs) for clause in element.clauses]
    named = zip(parts[::2], parts[1::2], strict=True)
    row = ", ".join(f'{value} AS "{name[1:-1]}"' for name, value in named)
    return f"(SELECT row_to_json(part)::text FROM (SELECT {row}) AS part)"  # nosec B608  # of SQLAlchemy


class json_record(_JsonObject):
    """Values of any type as the text of a JSON object, also of aggregates."""

    type = String()
    postgresql = "CAST(json_build_object({all}) AS text)"


class leading_number(Templated[Decimal]):
    """The number at the start of a text, or 0 if there is no number."""

    type = Numeric()
    sqlite = "CAST({0} AS REAL)"
    # The text is cut, so that thousands of digits are a number, too. Bounded repetitions and a
    # captured group would take forty times as long. Most texts need no pattern: they are empty,
    # begin with a letter (from : to ~), or consist of a few digits.
    postgresql = (
        """CASE
        WHEN {0} = '' OR ({0} COLLATE "C" >= ':' AND {0} COLLATE "C" < chr(127)) THEN 0
        WHEN length({0}) <= 15 AND translate({0}, '0123456789', '') = '' THEN {0}::float8
        ELSE coalesce(substring(substring({0}, 1, 100) from '"""
        r"^\s*[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,2})?"
        """')::float8, 0)
    END"""
    )


class money_sum(Templated[Decimal]):
    """An aggregate: the sum of amounts that are not negative, also beyond 64 bits. Can be NULL.

    SQLite adds integers of 64 bits, and fails beyond. There, such a sum is a text.
    """

    type = Money()
    sqlite = (
        "CASE WHEN total({0}) < 9.0e18"
        " THEN sum({0} / 1000000000) * 1000000000 + sum({0} % 1000000000)"
        " ELSE (sum({0} / 1000000000) + sum({0} % 1000000000) / 1000000000)"
        " || printf('%09d', sum({0} % 1000000000) % 1000000000) END"
    )
    postgresql = "sum({0})"


class json_entries(Templated[list[tuple[int, str, Any]]]):
    """An aggregate: an ID, a text and a JSON text of each row, as a JSON array of three arrays.

    Reading one text takes half of the time of reading rows.
    """

    type = JsonEntries()
    sqlite = (
        "'[[' || group_concat({0}) || '],' || json_group_array({1})"
        " || ',[' || group_concat({2}) || ']]'"
    )
    postgresql = (
        "'[[' || string_agg({0}::text, ',') || '],' || json_agg({1})::text"
        " || ',[' || string_agg({2}, ',') || ']]'"
    )


class json_list(Templated[str]):
    """An aggregate: the values of a column as a JSON array, in the order of the rows that it reads.

    Can be NULL if empty.
    """

    sqlite = "json_group_array({0})"
    postgresql = "json_agg({0})"


class id_list(Templated[Iterable[object]]):
    """An aggregate: the IDs of a column as an ``IdList``, in any order."""

    type = IdList
    sqlite = "json_group_array({0})"
    postgresql = "array_agg({0})"


class person(Templated[str]):
    """A value that differs for different customers: of their ID, and an e-mail without an ID."""

    sqlite = "coalesce({0}, {1})"
    postgresql = "coalesce(CAST({0} AS text), '@' || {1})"


class has_unicode(Templated[bool]):
    """Whether a text contains characters beyond ASCII, which the databases lower differently."""

    sqlite = "length(CAST({0} AS BLOB)) > length({0})"
    postgresql = "octet_length({0}) > length({0})"


class shared_clock(Templated[datetime]):
    """A time after that of the clock of the database, or a given time on SQLite, which has none."""

    sqlite = "{0}"
    postgresql = "(clock_timestamp() + {1})"


class transaction_id(Templated[int]):
    """The number of the current transaction, or 0 on SQLite."""

    type = BigInteger()
    sqlite = "0"
    postgresql = "txid_current()"


class clock_seconds(Templated[float]):
    """The seconds since 1970 by the clock of the database."""

    type = Float()
    sqlite = "(julianday('now') - 2440587.5) * 86400.0"
    postgresql = "CAST(extract(epoch FROM clock_timestamp()) AS float8)"


MAX_INDEXED = 1000
"""The bytes of the longest text that indexes of orders contain on PostgreSQL."""


class is_indexed(Templated[bool]):
    """Whether an index of orders contains a text on PostgreSQL, with MAX_INDEXED bytes at most.

    Texts of orders have any length, but an entry of an index has at most 2,704 bytes.
    """

    sqlite = f"(length(CAST({{0}} AS BLOB)) <= {MAX_INDEXED})"
    postgresql = f"(octet_length({{0}}) <= {MAX_INDEXED})"


class email_is(Templated[bool]):
    """Whether an e-mail address in ASCII has a lower-case form. Uses its index."""

    sqlite = "{0} = {1} COLLATE NOCASE"
    # Index entries have a maximum size, so the index contains the start of long addresses.
    postgresql = "(lower(substr({0}, 1, 200)) = substr({1}, 1, 200) AND lower({0}) = {1})"
