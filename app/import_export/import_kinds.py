"""The kinds of records that can be imported from files (migration 2)."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import marshmallow as ma
import orjson
from sqlalchemy import bindparam, select

from app.auth.principals import Principal
from app.conversions.emails import comparable_email
from app.db.read_pool import fetch
from app.db.records import Record
from app.db.sql.functions import is_one_of
from app.db.sql.types import TextList
from app.errors import invalid, reason_of
from app.import_export.column_names import COUPONS as COUPONS_ALIASES
from app.import_export.column_names import CUSTOMERS as CUSTOMERS_ALIASES
from app.import_export.column_names import plain_name
from app.import_export.csv_format import split
from app.import_export.export_kinds import KINDS, PASSWORD_HASH, Kind
from app.models import COUPONS, USERS
from app.models.coupon import CouponStatus
from app.schemas.coupons.coupon import CouponCreate, CouponUpdate
from app.schemas.customers import CustomerCreate, CustomerUpdate, UnchangeableText
from app.schemas.fields.given import Defaults, defaults_of, load_given
from app.schemas.fields.input import (
    AmountInput,
    Count,
    DateText,
    DecimalInput,
    ExactInteger,
    Integer,
    StrictTrue,
)
from app.schemas.fields.list_input import EmailArray, IdArray, TagArray
from app.schemas.loading import instance_of
from app.schemas.strict import unknown_names
from app.services.common.bulk import BulkItem, Earlier, WriteResult
from app.services.common.metadata import METADATA
from app.services.coupons import writes as coupons
from app.services.coupons.queries import PUBLISHED
from app.services.customers import writes as customers
from app.services.customers.columns import with_password_hashes

FLAGS = {"true": True, "1": True, "false": False, "0": False, "": False}

_SEPARATORS = re.compile(r"[,;|\s]+")
_AMOUNT = re.compile(r"|-?[0-9]+(\.[0-9]+)?")
_THOUSANDS = re.compile(r"[0-9]{1,3}([.,' \u00a0\u202f][0-9]{3})+")
_DAY_OR_MONTH = re.compile(r"([0-9]{1,2})([/-])([0-9]{1,2})\2[0-9]{4}.*", re.DOTALL)
_SERIAL = re.compile(r"[0-9]{1,6}([.,][0-9]+)?")


def split_list(cell: str) -> list[str]:
    r"""Return the entries of a list of IDs or addresses.

    They are separated by commas, semicolons, blanks or ``|``. A backslash escapes ``|`` and itself.
    """
    return [entry for text in split(cell) for entry in _SEPARATORS.split(text) if entry]


def value_of_cell(field: ma.fields.Field[Any], cell: str) -> object:
    """Return the value of a cell as a request contains it.

    Raises:
        ValueError: the cell is not understood as a whole.
    """
    text = cell.strip()
    if isinstance(field, IdArray | EmailArray | TagArray):
        entries = split(cell) if isinstance(field, TagArray) else split_list(cell)
        if isinstance(field, IdArray):
            return [_whole_number(entry, is_id=True) for entry in entries]
        return entries
    if isinstance(field, StrictTrue):
        if not text and field.load_default is ma.missing:  # true or false without the column
            return None
        if text.lower() not in FLAGS:
            raise ValueError("must be true or false.")
        return FLAGS[text.lower()]
    if isinstance(field, Count):
        return cell if text else 0
    return cell


def _whole_number(text: str, *, is_id: bool) -> int | str:
    """Return a number, or digits of a number that the schema rejects, or raise ValueError."""
    if re.fullmatch("[0-9]+", text):
        return int(text) if len(text) < 19 else text
    if _THOUSANDS.fullmatch(text):
        digits = re.sub("[^0-9]", "", text)
        raise invalid(
            "{0} has two readings. Write {1} without separators.", repr(text[:100]), digits[:100]
        )
    template = "{0} is not an ID." if is_id else "{0} is not a whole number."
    raise invalid(template, repr(text[:100]))


def metadata_of_cell(cell: str) -> object:
    """Return the metadata of a cell, which is JSON, or raise ValueError."""
    try:
        return orjson.loads(cell or "null")
    except orjson.JSONDecodeError as error:
        raise invalid("is not valid JSON: {0} (column {1}).", error.msg, error.colno) from None


def with_one_meaning(field: ma.fields.Field[Any], value: object) -> object:
    """Return a value of a line as the schema loads it.

    Raises:
        ValueError: the value has two readings, or cannot be what a shop means.
    """
    if isinstance(field, IdArray) and isinstance(value, list):
        for entry in value:
            if str(entry).strip().startswith("-") or str(entry).strip() == "0":
                raise invalid("{0} is not an ID. An ID is 1 or more.", repr(str(entry)[:100]))
    if isinstance(field, Count) and isinstance(value, str):
        return _whole_number(value.strip(), is_id=False)
    if isinstance(field, DecimalInput):
        if isinstance(value, str):
            return _amount(value.strip()) or ("0" if isinstance(field, AmountInput) else "")
        if isinstance(value, float):
            return Decimal(str(value))
    if isinstance(field, DateText):
        _require_date(str(value).strip())
    return value


def _amount(text: str) -> str:
    if _THOUSANDS.fullmatch(text.lstrip("-")):
        digits = re.sub("[^0-9-]", "", text)
        raise invalid(
            "{0} has two readings. Write {1}, or an amount with two decimals after a point.",
            repr(text[:100]),
            digits[:100],
        )
    if not _AMOUNT.fullmatch(text):
        raise ValueError("write a number with a point, for example 1000.50.")
    return text


def _require_date(text: str) -> None:
    """Raise ValueError for the forms of dates that spreadsheets and countries read differently."""
    found = _DAY_OR_MONTH.fullmatch(text)
    if found and int(found[1]) != int(found[3]) and max(int(found[1]), int(found[3])) <= 12:
        raise invalid(
            "{0} has two readings. Write the date as year, month and day: 2030-12-31.",
            repr(text[:100]),
        )
    if _SERIAL.fullmatch(text):
        raise invalid(
            "{0} is a number. A spreadsheet writes dates in this way in cells that are "
            "not formatted as a date. Write the date as year, month and day: 2030-12-31.",
            repr(text[:100]),
        )


_NUMBERS = (StrictTrue, DecimalInput, Count, Integer, ExactInteger)
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
    def _defaults(self) -> Defaults:
        return defaults_of(instance_of(self.create, strict=True))

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
                errors[name] = [reason_of(error)]
        given = with_native_metadata(given)
        schema = instance_of(self.create, strict=True)
        try:
            if self.key in given:  # the only required field
                data = load_given(schema, given, self._defaults)
            else:
                data = schema.load(given)
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
