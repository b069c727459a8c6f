"""The kinds of records that can be imported from files (migration 2)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import marshmallow as ma
from sqlalchemy import bindparam, select

from app.auth.principals import Principal
from app.conversions.emails import comparable_email
from app.db.read_pool import fetch
from app.db.sql.functions import is_one_of
from app.db.sql.types import TextList
from app.import_export.cells import metadata_of_cell, value_of_cell, with_one_meaning
from app.import_export.column_names import COUPONS as COUPONS_ALIASES
from app.import_export.column_names import CUSTOMERS as CUSTOMERS_ALIASES
from app.import_export.column_names import plain_name
from app.import_export.export_kinds import KINDS, PASSWORD_HASH, Kind, Record
from app.models import COUPONS, USERS
from app.models.coupon import CouponStatus
from app.schemas.coupons.coupon import CouponCreate, CouponUpdate
from app.schemas.customers import CustomerCreate, CustomerUpdate, UnchangeableText
from app.schemas.fields.input import AccountId, Count, DecimalInput, Integer, StrictTrue
from app.schemas.loading import instance_of
from app.schemas.strict import unknown_names
from app.services.common.bulk import BulkItem, Earlier, WriteResult
from app.services.common.metadata import METADATA
from app.services.coupons import writes as coupons
from app.services.coupons.queries import PUBLISHED
from app.services.customers import writes as customers
from app.services.customers.columns import with_password_hashes

_NUMBERS = (StrictTrue, DecimalInput, Count, Integer, AccountId)
_KEYS = bindparam("keys", type_=TextList)


@dataclass(frozen=True)
class Target:
    """A kind of records that can be imported, with the schemas of creates and updates.

    Args:
        key: name of the field by which an existing record is found.
        normalized: function that returns the normalized key for comparison.
        existing: function that returns the IDs of existing records by their normalized key.
        save: function that writes records like a bulk request.
        check: function that returns the results of ``save`` without writing.
        prepare: function that hashes the passwords of records, before the transaction.
        aliases: names that other programs give to columns, with ours.
    """

    kind: Kind
    create: type[ma.Schema]
    update: type[ma.Schema]
    key: str
    normalized: Callable[[str], str]
    existing: Callable[[Sequence[str]], dict[str, int]]
    save: Callable[[Principal, Sequence[BulkItem]], Sequence[WriteResult]]
    check: Callable[[Principal, Sequence[BulkItem], Earlier], Sequence[WriteResult]]
    prepare: Callable[[Sequence[BulkItem]], Sequence[BulkItem]]
    aliases: Mapping[str, str]

    @cached_property
    def known_names(self) -> set[str]:
        """The names that a file can contain without a warning."""
        names = {"kind", *self.kind.csv_columns, *self.kind.parts, *self._fields}
        return names | {f"{part}.{name}" for part in self.kind.parts for name in self._parts[part]}

    @cached_property
    def columns(self) -> set[str]:
        """The names that a file of an import over HTTP can contain."""
        return self.known_names - {"password", PASSWORD_HASH}

    @cached_property
    def column_names(self) -> Mapping[str, str]:
        """The name of each column of a CSV file by the ``plain_name`` of its header."""
        fields = [name for name in self._fields if name not in self.kind.parts]
        own = {plain_name(name): name for name in (*fields, *self.kind.csv_columns)}
        return own | {alias: name for alias, name in self.aliases.items() if alias not in own}

    @cached_property
    def _fields(self) -> Mapping[str, ma.fields.Field[Any]]:
        return instance_of(self.create).fields

    @cached_property
    def _parts(self) -> Mapping[str, Mapping[str, ma.fields.Field[Any]]]:
        """The fields of each nested object."""
        fields = self._fields.items()
        return {n: each.schema.fields for n, each in fields if isinstance(each, ma.fields.Nested)}

    def names_of(self, record: Mapping[str, Any]) -> set[str]:
        """Return the names of a record, and those of its nested objects after a point."""
        inner = {
            f"{part}.{name}"
            for part in self._parts.keys() & record.keys()
            if isinstance(record[part], Mapping)
            for name in record[part]
        }
        return record.keys() | inner

    def read(self, record: Record, *, from_csv: bool, strict: bool = False) -> tuple[Record, Any]:
        """Return a record in the form of a request, and as the schema of creates loads it.

        Args:
            from_csv: whether the values are texts of CSV cells.
            strict: as in ``FileImport``.

        Raises:
            ValidationError: a value is not accepted, or is not understood as a whole.
        """
        flat = self._with_parts(record) if from_csv else record
        unknown = self.names_of(record) - self.columns if strict and not from_csv else ()
        errors: dict[str, Any] = {
            each.name: [each] for each in unknown_names(sorted(unknown), self.columns, "field")
        }
        given: Record = {}
        for name in self._fields.keys() & flat.keys():
            if strict and from_csv and self._is_absent(name, flat[name]):
                continue
            try:
                given[name] = self._value(name, flat[name], from_csv=from_csv)
            except ValueError as error:
                errors[name] = [str(error)]
        given = with_native_metadata(given)
        try:
            data = instance_of(self.create, strict=True).load(given)
        except ma.ValidationError as error:
            errors = error.messages_dict | errors
        if errors:
            names = dict.fromkeys([*self._fields, *errors])
            raise ma.ValidationError({name: errors[name] for name in names if name in errors})
        return given, data

    def _is_absent(self, name: str, cell: object) -> bool:
        """Return whether an empty cell of a field counts as not supplied."""
        return isinstance(self._fields[name], _NUMBERS) and not str(cell).strip()

    def without_fixed(self, data: Record) -> Record:
        """Return loaded data without the fields that an update ignores."""
        fields = instance_of(self.update).fields
        return {n: data[n] for n in data if not isinstance(fields.get(n), UnchangeableText)}

    def _with_parts(self, cells: Mapping[str, object]) -> Record:
        """Return the cells of a CSV row, with nested objects in place of their columns."""
        record = dict(cells)
        for name, prefix in self.kind.parts.items():
            parts = {key: record.pop(key) for key in cells if key.startswith(prefix)}
            if parts:
                record[name] = {key.removeprefix(prefix): value for key, value in parts.items()}
        return record

    def _value(self, name: str, value: Any, *, from_csv: bool) -> object:
        """Return a value as the schema loads it, or raise ValueError."""
        if name in self._parts and isinstance(value, Mapping):  # unknown names are warnings
            return {part: each for part, each in value.items() if part in self._parts[name]}
        if from_csv and name == METADATA:
            return metadata_of_cell(value)
        field = self._fields[name]
        return with_one_meaning(field, value_of_cell(field, value) if from_csv else value)


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


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("key"), str) and "value" in entry


def is_trashed(record: Mapping[str, object]) -> bool:
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
        coupons.check_coupons,
        list,  # coupons have no passwords
        COUPONS_ALIASES,
    ),
    "customers": Target(
        KINDS["customers"],
        CustomerCreate,
        CustomerUpdate,
        "email",
        comparable_email,
        _customers_with,
        customers.save_customers,
        customers.check_customers,
        with_password_hashes,
        CUSTOMERS_ALIASES,
    ),
}
