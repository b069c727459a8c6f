"""Records of a source, converted to the columns of this shop."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b

import orjson

from app.db.records import Record
from app.models.coupon import CouponOptions
from app.plugins.woocommerce.importer.convert.metadata import SourceEntry
from app.plugins.woocommerce.importer.convert.stored_values import Alterations

ADDED: Mapping[str, object] = {"active": True, "starts_at": None, "options": CouponOptions()}
"""Columns that an earlier release did not import, with their defaults.

The fingerprint leaves out defaults, so that the records of earlier imports are unchanged.
"""


@dataclass(slots=True)
class Converted:
    """A record to write.

    Attributes:
        table: the table of the source, for reports.
        values: its columns. References to other records are resolved when it is written.
        altered: reasons why it is not imported unchanged.
        references: IDs of other records at the source, by name.
        is_absent: whether it is written only if an earlier import created it.
        resolved: columns that the fingerprint excludes: references, and random values.
        items_metadata: the metadata of items of the record, by their ID.
    """

    source_id: int
    table: str
    values: Record
    altered: Alterations = field(default_factory=Alterations)
    references: Mapping[str, int] = field(default_factory=dict)
    roles: tuple[str, ...] = ()
    is_absent: bool = False
    resolved: Record = field(default_factory=dict)
    metadata: Sequence[SourceEntry] = ()
    items_metadata: Mapping[int, Sequence[SourceEntry]] = field(default_factory=dict)

    def fingerprint(self) -> bytes:
        """Return a hash that changes when the record changes at the source."""
        content = (
            {name: each for name, each in self.values.items() if ADDED.get(name, self) != each},
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


def edited_at(stored: Record) -> datetime | None:
    """Return the time of the last update of a stored record other than by a use of a coupon."""
    at: datetime | None = stored.get("edited_at") or stored.get("updated_at")
    return at


@dataclass(slots=True)
class Pending:
    """A record that is about to be created, or updated if an earlier import created it."""

    converted: Converted
    values: Record
    imported: Imported | None = None

    @property
    def target_id(self) -> int:
        """The ID in this shop, or 0 if it is not assigned yet."""
        return int(self.values.get("id", 0))


class LeftOut(Exception):
    """A record is not imported. The message says why."""
