"""The kinds of records that can be imported from files (migration 2)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import marshmallow as ma
import orjson
from sqlalchemy import bindparam, select

from app.auth.principals import Principal
from app.conversions.emails import comparable_email
from app.db.read_pool import fetch
from app.db.sql.functions import is_one_of
from app.db.sql.types import TextList
from app.import_export.export_kinds import KINDS, Kind, Record
from app.models import COUPONS, USERS
from app.models.coupon import CouponStatus
from app.schemas.coupons.coupon import CouponCreate, CouponUpdate
from app.schemas.customers import CustomerCreate, CustomerUpdate
from app.schemas.fields.input import StrictTrue
from app.schemas.loading import instance_of
from app.services.common.bulk import BulkItem, WriteResult
from app.services.common.metadata import METADATA
from app.services.coupons import writes as coupons
from app.services.coupons.queries import PUBLISHED
from app.services.customers import writes as customers

_KEYS = bindparam("keys", type_=TextList)
_WORDS = {"true": True, "1": True, "false": False, "0": False, "": False}


@dataclass(frozen=True)
class Target:
    """A kind of records that can be imported, with the schemas of creates and updates.

    Args:
        key: name of the field by which an existing record is found.
        normalized: function that returns the normalized key for comparison.
        existing: function that returns the IDs of existing records by their normalized key.
        save: function that writes records like a bulk request.
    """

    kind: Kind
    create: type[ma.Schema]
    update: type[ma.Schema]
    key: str
    normalized: Callable[[str], str]
    existing: Callable[[Sequence[str]], dict[str, int]]
    save: Callable[[Principal, Sequence[BulkItem]], Sequence[WriteResult]]

    def known_names(self) -> set[str]:
        """Return the names that a file can contain without a warning."""
        return {"kind", *self.kind.csv_columns, *self.kind.parts, *self.create().fields}

    def read(self, record: Record, *, from_csv: bool) -> tuple[Record, Any]:
        """Return a record in the form of a request, and as the schema of creates loads it.

        Args:
            from_csv: whether the values are texts of CSV cells.

        Raises:
            ValidationError: a value is not accepted.
            ValueError: a cell cannot be read.
        """
        given = with_native_metadata(self.from_cells(record) if from_csv else record)
        return given, instance_of(self.create).load(given)

    def from_cells(self, cells: Mapping[str, Any]) -> Record:
        """Return the record of a CSV row in the form of a request.

        Raises:
            ValueError: the cell of a boolean is not true or false.
        """
        record = dict(cells)
        if METADATA in record:
            record[METADATA] = orjson.loads(record[METADATA] or "null")
        for name, prefix in self.kind.parts.items():
            parts = {key: record.pop(key) for key in cells if key.startswith(prefix)}
            if parts:
                record[name] = {key.removeprefix(prefix): value for key, value in parts.items()}
        for name in self.flags & record.keys():
            word = str(record[name]).strip().lower()
            if word not in _WORDS:
                raise ValueError(f"{name}: must be true or false.")
            record[name] = _WORDS[word]
        return record

    @cached_property
    def flags(self) -> frozenset[str]:
        """The names of the boolean fields."""
        fields = self.create().fields.items()
        return frozenset(name for name, field in fields if isinstance(field, StrictTrue))


def with_native_metadata(record: Record) -> Record:
    """Return an exported record with its metadata as a request contains it.

    Of several entries with one key, the first is imported.
    """
    entries = record.get(METADATA)
    if not isinstance(entries, list) or not all(_is_entry(entry) for entry in entries):
        return record
    metadata: Record = {}
    for each in entries:
        metadata.setdefault(each["key"], each["value"])
    return record | {METADATA: metadata}


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("key"), str) and "value" in entry


def is_trashed(record: Mapping[str, Any]) -> bool:
    """Return whether an exported record is in the trash."""
    return record.get("status") == CouponStatus.TRASH


def _coupons_with(codes: Sequence[str]) -> dict[str, int]:
    found = select(COUPONS.c.code, COUPONS.c.id).where(PUBLISHED, is_one_of(COUPONS.c.code, _KEYS))
    return {row.code: row.id for row in fetch(found, {"keys": codes})}


def _customers_with(emails: Sequence[str]) -> dict[str, int]:
    column = USERS.c.email_normalized
    found = select(column, USERS.c.id).where(is_one_of(column, _KEYS), column != "")
    return {row[0]: row[1] for row in fetch(found, {"keys": emails})}


TARGETS: Mapping[str, Target] = {
    "coupons": Target(
        KINDS["coupons"],
        CouponCreate,
        CouponUpdate,
        "code",
        str,  # the schema has normalized it
        _coupons_with,
        coupons.save_coupons,
    ),
    "customers": Target(
        KINDS["customers"],
        CustomerCreate,
        CustomerUpdate,
        "email",
        comparable_email,
        _customers_with,
        customers.save_customers,
    ),
}
