"""Kinds of columns that mean the same on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import orjson
from sqlalchemy import ARRAY, JSON, BigInteger, DateTime, Dialect
from sqlalchemy.types import Integer, String, TypeDecorator, TypeEngine

Id = BigInteger().with_variant(Integer, "sqlite")
"""A 64-bit key; SQLite numbers rows only in a column that is called INTEGER."""


Read = Callable[[Any], Any]
"""What turns a value as the driver gives it into a value of Python."""

Key = String().with_variant(String(collation="C"), "postgresql")
"""Text that sorts by its code points, so that both databases agree on every order."""

AUTOINCREMENT = {"sqlite_autoincrement": True}
"""A table option: the id of a record that is gone is not given to another one."""


class MoneyText(TypeDecorator[str]):
    """Whole cents, read as the text of an amount: 1050 is 10.50, and nothing is 0.00."""

    impl = BigInteger
    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: object) -> Read:
        """Return what reads cents."""
        return self.read

    @staticmethod
    def read(cents: Any) -> str:
        """Return the amount."""
        if type(cents) is int and cents > 99:  # as nearly all are
            text = str(cents)
            return f"{text[:-2]}.{text[-2:]}"
        whole = int(cents or 0)  # a sum of PostgreSQL is a Decimal
        units, rest = divmod(abs(whole), 100)
        return f"{'-' if whole < 0 else ''}{units}.{rest:02}"


class Money(TypeDecorator[Decimal]):
    """A decimal with two places, stored as whole cents.

    Both databases add, compare and sort cents exactly; SQLite has no decimal numbers of its own
    and would keep 9999999999999999.99 as a float.
    """

    impl = BigInteger
    cache_ok = True
    printed = MoneyText()
    """How answers print it, read without a Decimal in between."""

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> int | None:
        """Return cents."""
        return None if value is None else int(value.scaleb(2))

    def result_processor(self, dialect: Dialect, coltype: object) -> Read:
        """Return what reads cents as an amount, in one call for a value.

        A sum of PostgreSQL arrives as a Decimal of cents.
        """
        return lambda value: None if value is None else Decimal(int(value)).scaleb(-2)


class OptionalMoneyText(MoneyText):
    """Whole cents, read as the text of an amount; nothing is None."""

    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: object) -> Read:
        """Return what reads cents."""
        return lambda cents: None if cents is None else self.read(cents)


class OptionalMoney(Money):
    """A decimal with two places that may be missing, which answers show as null."""

    cache_ok = True
    printed = OptionalMoneyText()


class TimestampText(TypeDecorator[str]):
    """A moment, read as the text of UTC in whole seconds: 2026-11-20T09:38:00Z."""

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the type that the database knows: on SQLite, the text as it is stored."""
        kind = DateTime(timezone=True) if dialect.name == "postgresql" else String()
        return dialect.type_descriptor(kind)

    def result_processor(self, dialect: Dialect, coltype: object) -> Read:
        """Return what reads a moment as the driver gives it."""
        if dialect.name == "postgresql":  # the connection's zone is UTC
            return lambda value: None if value is None else f"{value.isoformat()[:19]}Z"
        return self.read

    @staticmethod
    def read(text: str | None) -> str | None:
        """Return the moment of an ISO 8601 text of UTC, which may have a fraction."""
        return None if text is None else f"{text[:10]}T{text[11:19]}Z"


class UtcDateTime(TypeDecorator[datetime]):
    """A moment with its zone: ``timestamptz`` on PostgreSQL, UTC text on SQLite."""

    impl = DateTime
    cache_ok = True
    printed = TimestampText()
    """How answers print it, read without a datetime in between."""

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the type that the database knows."""
        return dialect.type_descriptor(DateTime(timezone=dialect.name == "postgresql"))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return UTC; a moment without a zone is a mistake of ours and raises."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a moment needs a time zone")
        utc = value.astimezone(UTC)
        return utc if dialect.name == "postgresql" else utc.replace(tzinfo=None)

    def result_processor(self, dialect: Dialect, coltype: object) -> Read | None:
        """Return what reads an aware UTC moment, in one call for a value."""
        if dialect.name == "postgresql":  # the connection's zone is UTC
            return None
        return lambda text: None if text is None else datetime.fromisoformat(f"{text}+00:00")


class Json(TypeDecorator[Any]):
    """A list or an object, as text of JSON on SQLite."""

    impl = JSON
    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: object) -> Read | None:
        """Return what reads it in one call; the driver of PostgreSQL does it itself."""
        if dialect.name == "postgresql":
            return super().result_processor(dialect, coltype)
        return lambda text: None if text is None else orjson.loads(text)


class ValueList(TypeDecorator[Iterable[Any]]):
    """Any number of values as one parameter: an array, or a list in JSON on SQLite."""

    impl = String
    cache_ok = True

    def __init__(self, item: TypeEngine[Any]) -> None:
        """Take the type of the values."""
        super().__init__()
        self.item = item

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the type that the database knows."""
        kind: TypeEngine[Any] = ARRAY(self.item) if dialect.name == "postgresql" else String()
        return dialect.type_descriptor(kind)

    def process_bind_param(self, value: Iterable[Any] | None, dialect: Dialect) -> Any:
        """Return the values as the driver takes them."""
        values = list(value or ())
        return values if dialect.name == "postgresql" else orjson.dumps(values).decode()


IdList, TextList = ValueList(BigInteger()), ValueList(String())


class JsonTuple(TypeDecorator[list[Any]]):
    """Several values in their order, each as answers print it.

    Attributes:
        names: of the values.
    """

    impl = JSON
    cache_ok = True

    def __init__(self, reads: Mapping[str, Read | None]) -> None:
        """Take the names, each with what reads a value that JSON does not hold as it is printed."""
        super().__init__()
        self.names = tuple(reads)
        self.reads = tuple((place, read) for place, read in enumerate(reads.values()) if read)

    def result_processor(self, dialect: Dialect, coltype: object) -> Read:
        """Return what reads them; the driver of PostgreSQL has parsed them already."""
        loads: Read = orjson.loads if dialect.name == "sqlite" else list
        reads = self.reads

        def read(value: Any) -> list[Any]:
            values: list[Any] = loads(value)
            for place, as_printed in reads:
                values[place] = as_printed(values[place])
            return values

        return read


class JsonObjectText(TypeDecorator[orjson.Fragment]):
    """An object as its text, which orjson puts into an answer as it is."""

    impl = String
    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: object) -> Read:
        """Return what marks a text as JSON."""
        return orjson.Fragment
