"""Column types that work the same on SQLite and PostgreSQL."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from operator import itemgetter
from typing import Any

import orjson
from sqlalchemy import ARRAY, JSON, BigInteger, DateTime, Dialect, Text
from sqlalchemy.types import Integer, Numeric, String, TypeDecorator, TypeEngine

Id = BigInteger().with_variant(Integer, "sqlite")
"""A 64-bit key. SQLite assigns row IDs only to columns of type INTEGER."""


Read = Callable[[Any], Any]
"""Function that converts a value from the driver to a Python value."""

Key = String().with_variant(String(collation="C"), "postgresql")
"""Text that sorts by code point, so that both databases sort in the same order."""

AUTOINCREMENT = {"sqlite_autoincrement": True}
"""Table option that prevents the reuse of IDs of deleted records."""


class MoneyText(TypeDecorator[str]):
    """Integer cents, read as formatted text: 1050 becomes 10.50, and NULL becomes 0.00."""

    impl = BigInteger
    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: object) -> Read:
        return self.read

    @staticmethod
    @lru_cache(10_000)  # most amounts of a shop repeat
    def read(cents: Any) -> str:
        whole = int(cents or 0)  # PostgreSQL returns sums as Decimal
        units, rest = divmod(abs(whole), 100)
        return f"{'-' if whole < 0 else ''}{units}.{rest:02}"


class Money(TypeDecorator[Decimal]):
    """A decimal with two places, stored as integer cents.

    Both databases add, compare and sort cents exactly. SQLite has no decimal type and would store
    9999999999999999.99 as a float.
    """

    impl = BigInteger
    cache_ok = True
    printed = MoneyText()
    """The type for responses, which formats the value without a Decimal."""

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> int | None:
        return None if value is None else int(value.scaleb(2))

    def result_processor(self, dialect: Dialect, coltype: object) -> Read:
        """Return the function that converts cents to an amount.

        PostgreSQL returns sums as a Decimal of cents.
        """
        return lambda value: None if value is None else Decimal(int(value)).scaleb(-2)


class MoneySum(Money):
    """A sum of amounts. On PostgreSQL, it may exceed 64 bits, as the sums of a select."""

    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        is_postgresql = dialect.name == "postgresql"
        return dialect.type_descriptor(Numeric(38, 0) if is_postgresql else BigInteger())


class OptionalMoneyText(MoneyText):
    """Integer cents, read as formatted text, or None for NULL."""

    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: object) -> Read:
        return lambda cents: None if cents is None else self.read(cents)


class OptionalMoney(Money):
    """A decimal with two places or NULL, which responses contain as null."""

    cache_ok = True
    printed = OptionalMoneyText()


class TimestampText(TypeDecorator[str]):
    """A timestamp, read as formatted text in UTC and whole seconds: 2026-11-20T09:38:00Z."""

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        kind = DateTime(timezone=True) if dialect.name == "postgresql" else String()
        return dialect.type_descriptor(kind)

    def result_processor(self, dialect: Dialect, coltype: object) -> Read:
        if dialect.name == "postgresql":  # in the time zone of the connection
            return lambda value: (
                None if value is None else f"{value.astimezone(UTC).isoformat()[:19]}Z"
            )
        return self.read

    @staticmethod
    def read(text: str | None) -> str | None:
        """Return the formatted timestamp for an ISO 8601 text in UTC, without fractions."""
        return None if text is None else f"{text[:19]}Z".replace(" ", "T")


class UtcDateTime(TypeDecorator[datetime]):
    """A timestamp with time zone: ``timestamptz`` on PostgreSQL, UTC text on SQLite."""

    impl = DateTime
    cache_ok = True
    printed = TimestampText()
    """The type for responses, which formats the value without a datetime."""

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(DateTime(timezone=dialect.name == "postgresql"))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert a timestamp to UTC. Raises ValueError for a timestamp without a time zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a timestamp needs a time zone")
        utc = value if value.tzinfo is UTC else value.astimezone(UTC)
        return utc if dialect.name == "postgresql" else utc.replace(tzinfo=None)

    def result_processor(self, dialect: Dialect, coltype: object) -> Read | None:
        """Return the function that converts a value from the driver to a UTC timestamp."""
        if dialect.name == "postgresql":  # in the time zone of the connection
            return lambda value: None if value is None else value.astimezone(UTC)
        return lambda text: None if text is None else datetime.fromisoformat(f"{text}+00:00")


class Json(TypeDecorator[object]):
    """A list or an object, stored as JSON text on SQLite. The engines parse it with orjson."""

    impl = JSON
    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: object) -> Read | None:
        """Return the function that parses the text. The PostgreSQL driver parses it itself."""
        if dialect.name == "postgresql":
            return None
        # That of SQLAlchemy makes two more calls for each value of a list.
        return lambda text: None if text is None else orjson.loads(text)


class JsonFields(TypeDecorator[object]):
    """Fields that have their defaults in most rows, as a NamedTuple whose defaults are all false.

    Stored as a JSON object with the other values, or NULL if there are none.
    """

    impl = JSON
    cache_ok = True

    def __init__(self, fields: type[Any]) -> None:
        """Create the type from the class of the fields. Its values are those of JSON."""
        super().__init__(none_as_null=True)
        self.fields = fields
        self.names: tuple[str, ...] = fields._fields

    def process_bind_param(self, value: Any, dialect: Dialect) -> dict[str, object] | None:
        given = zip(self.names, value or (), strict=False)
        return {name: each for name, each in given if each} or None

    def result_processor(self, dialect: Dialect, coltype: object) -> Read:
        """Return the function that reads the fields. The PostgreSQL driver parses the JSON."""
        blank = self.fields()

        def read(value: Any) -> Any:
            if value is None:
                return blank
            stored = orjson.loads(value) if isinstance(value, str) else value
            return self.fields(*map(stored.get, self.names, blank))

        return read


class ValueList(TypeDecorator[Iterable[object]]):
    """A list of values as one parameter: an array on PostgreSQL, JSON text on SQLite."""

    impl = String
    cache_ok = True

    def __init__(self, item: TypeEngine[Any]) -> None:
        """Create the type from the type of the values."""
        super().__init__()
        self.item = item

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        kind: TypeEngine[Any] = ARRAY(self.item) if dialect.name == "postgresql" else String()
        return dialect.type_descriptor(kind)

    def process_bind_param(self, value: Iterable[object] | None, dialect: Dialect) -> object:
        values = list(value or ())
        return values if dialect.name == "postgresql" else orjson.dumps(values).decode()


IdList, TextList = ValueList(BigInteger()), ValueList(String())


class JsonTuple(TypeDecorator[list[Any]]):
    """Several values with names, in order, each formatted for responses."""

    impl = JSON
    cache_ok = True

    def __init__(self, reads: Mapping[str, Read | None]) -> None:
        """Create the type from names, each with a function that formats the JSON value, or None."""
        super().__init__()
        self.names = tuple(reads)
        self.reads = tuple((place, read) for place, read in enumerate(reads.values()) if read)

    def result_processor(self, dialect: Dialect, coltype: object) -> Read:
        """Return the function that formats the values. The PostgreSQL driver parses the JSON."""
        loads: Read = orjson.loads if dialect.name == "sqlite" else list
        reads = self.reads

        def read(value: object) -> list[object]:
            values: list[object] = loads(value)
            for place, format_value in reads:
                values[place] = format_value(values[place])
            return values

        return read


class JsonEntries(TypeDecorator[list[tuple[int, str, Any]]]):
    """The rows of a ``json_entries``, by ID."""

    impl = String
    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: object) -> Read:
        return lambda text: sorted(zip(*orjson.loads(text), strict=True), key=itemgetter(0))


class JsonObjectText(TypeDecorator[orjson.Fragment]):
    """A JSON object as text, which orjson inserts into responses unchanged."""

    impl = String
    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: object) -> Read:
        return lambda text: None if text is None else orjson.Fragment(text)


class JsonText(TypeDecorator[str]):
    """JSON as text, exactly as it was written."""

    impl = Text
    cache_ok = True
    printed = JsonObjectText()
    """The type for responses, which inserts the text unchanged."""
