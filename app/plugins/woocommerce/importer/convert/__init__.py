"""Records of a source, converted to the columns of this shop, and what was altered."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from hashlib import blake2b

import orjson

from app.conversions.currencies import MOST_PLACES, decimal_places
from app.conversions.numbers import MAX_COUNT, money
from app.conversions.text import coupon_code
from app.db.records import Record
from app.models.coupon import CouponOptions
from app.services.orders.items import divided

_CENTS = re.compile(r"([0-9]{1,15})(?:\.([0-9]{2})0*)?")
_LEADING = re.compile(r"\s*[-+]?(?:[0-9]{1,15}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})")
_INTEGER = re.compile(r"\s*[-+]?[0-9]{1,18}")


Cents = int | Decimal
"""An amount in cents. A Decimal if the source stores fractions of a cent."""


class Alterations(list[str]):
    """Reasons why a record is not imported unchanged.

    Attributes:
        rounded: whether an amount had more than two decimals.
        keys: what became of keys of plugins, each of which is a line of the report.
    """

    rounded = False

    def __init__(self) -> None:
        super().__init__()
        self.keys: dict[str, str] = {}

    def cents(self, text: str | None, name: str) -> int:
        """Return an amount in cents, rounded half up, or 0 for an empty text."""
        if not text:
            return 0
        if plain := _CENTS.fullmatch(text):  # most amounts
            return int(plain[1] + (plain[2] or "00"))
        try:
            amount = money(text)
            self.rounded |= amount is not None and amount != Decimal(text.strip())
        except ValueError:
            found = _LEADING.match(text)
            amount = money(found.group()) if found else None
            self.append(f"{name} {text[:40]!r} is not an amount, and was read as {amount or 0}")
        return int((amount or Decimal(0)).scaleb(2))

    def currency(self, currency: str) -> None:
        """Report rounded amounts of a currency that has more than two decimals."""
        if self.rounded and decimal_places(currency) > MOST_PLACES:
            self.append(f"amounts in {currency} were rounded to two decimals")

    def exact(self, text: str | None, name: str) -> Cents:
        """Return an amount in cents with its fractions, or 0 for an empty text."""
        cents = self.cents(text, name)
        if not text or _CENTS.fullmatch(text):
            return cents
        try:
            exact = Decimal(text.strip()).scaleb(2)
            return exact if abs(exact - cents) < 1 else cents
        except InvalidOperation:  # reported by ``cents``
            return cents

    def text(self, text: str | None) -> str:
        """Return a text without NUL characters, which a database cannot store."""
        if not text:
            return ""
        if "\0" in text:
            self.append("NUL characters were removed")
            text = text.replace("\0", "")
        return text

    def number(self, text: str | None, name: str) -> int:
        """Return a non-negative number of at most 15 digits, or 0 for an empty text."""
        number = abs(whole(text))
        if number > MAX_COUNT:
            self.append(f"{name} had more than 15 digits, and was set to {MAX_COUNT}")
        return min(number, MAX_COUNT)


def rounded(cents: Cents) -> int:
    """Return an amount in whole cents, rounded half away from zero."""
    return cents if isinstance(cents, int) else int(cents.to_integral_value(ROUND_HALF_UP))


def quotient(cents: Cents, by: int) -> int:
    """Return an amount divided by a positive number, in whole cents."""
    return divided(cents, by) if isinstance(cents, int) else rounded(cents / by)


def whole(text: str | None) -> int:
    """Return the integer at the beginning of a text as in PHP, or 0 if there is no integer."""
    found = _INTEGER.match(text) if text else None
    return int(found.group()) if found else 0


def ids(texts: Iterable[str]) -> list[int]:
    """Return positive IDs without duplicates. Texts that are not numbers are dropped."""
    return list(dict.fromkeys(number for text in texts if (number := abs(whole(text)))))


def is_yes(text: str | None) -> bool:
    """Return whether a stored flag is set."""
    return text in {"yes", "1", "true"}


def code_of(title: str | None) -> str:
    """Return the code of a coupon from the title of its post."""
    return coupon_code((title or "").replace("\0", ""))


SourceEntry = tuple[int, str, str, str | None, bool]
"""A row of metadata, converted.

Its ID at the source, its key, its value as JSON, the text that filters compare, and whether the key
begins with an underscore. A named tuple takes ten times as long to create.
"""

ADDED: Mapping[str, object] = {"active": True, "starts_at": None, "options": CouponOptions()}
"""Columns that an earlier release did not import, with their defaults.

The fingerprint leaves out defaults, so that the records of earlier imports are unchanged.
"""


@dataclass(slots=True)
class Converted:
    """A record to write.

    Attributes:
        values: its columns. References to other records are resolved when it is written.
        altered: reasons why it is not imported unchanged.
        references: IDs of other records at the source, by name.
        is_absent: whether it is written only if an earlier import created it.
        resolved: columns that the fingerprint excludes: references, and random values.
        items_metadata: the metadata of items of the record, by their ID.
        table: the table of the source, for reports.
    """

    source_id: int
    values: Record
    altered: Alterations = field(default_factory=Alterations)
    references: Mapping[str, int] = field(default_factory=dict)
    roles: tuple[str, ...] = ()
    is_absent: bool = False
    resolved: Record = field(default_factory=dict)
    metadata: Sequence[SourceEntry] = ()
    items_metadata: Mapping[int, Sequence[SourceEntry]] = field(default_factory=dict)
    table: str = ""

    def fingerprint(self) -> bytes:
        """Return a hash that changes when the record changes at the source."""
        values = dict(self.values)
        for name, default in ADDED.items():
            if name in values and values[name] == default:
                del values[name]
        content = (
            values,
            self.references,
            self.roles,
            _compared(self.metadata),
            [[item_id, _compared(entries)] for item_id, entries in self.items_metadata.items()],
        )
        written = orjson.dumps(content, default=str, option=orjson.OPT_SORT_KEYS)
        return blake2b(written, digest_size=12).digest()


def _compared(entries: Sequence[SourceEntry]) -> list[str]:
    """Return the keys and values of metadata. Another ID is not a change."""
    return [text for entry in entries for text in entry[1:3]]


@dataclass(slots=True)
class Imported:
    """A record that an earlier import created."""

    target_id: int
    fingerprint: bytes
    updated_at: datetime | None
    usage_count: int | None

    def is_edited(self, stored: Record) -> bool:
        """Return whether the stored record was edited in this shop, other than by a use."""
        return edited_at(stored) != self.updated_at


def edited_at(stored: Record) -> datetime | None:
    """Return the time of the last update of a stored record other than by a use of a coupon."""
    at: datetime | None = stored.get("edited_at") or stored.get("updated_at")
    return at


@dataclass(slots=True)
class Pending:
    """A record that is about to be created, or updated if an earlier import created it."""

    converted: Converted
    fingerprint: bytes
    values: Record
    imported: Imported | None = None

    @property
    def target_id(self) -> int:
        """The ID in this shop, or 0 if it is not assigned yet."""
        return int(self.values.get("id", 0))


class LeftOut(Exception):
    """A record is not imported. The message says why."""
