"""Conversion of the values of an exported line to the rows of a restored record."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from typing import Any, cast

import marshmallow as ma
from sqlalchemy import Boolean as BooleanColumn
from sqlalchemy import Column, Date, Integer, Table
from sqlalchemy import String as StringColumn

from app.conversions.emails import comparable_email
from app.conversions.metadata import contains_nul
from app.conversions.numbers import INT64_MAX
from app.db.records import Record
from app.db.search import email_key, search_text
from app.db.sql.types import Json, JsonText, Money, UtcDateTime
from app.import_export.export_kinds import MERGED, PASSWORD_HASH, Kind
from app.models import (
    COUPON_METADATA,
    CUSTOMER_METADATA,
    DOWNLOADS,
    ITEM_METADATA,
    MERGED_ACCOUNTS,
    ORDER_METADATA,
    ORDER_NOTES,
    REFUND_METADATA,
    USER_ROLES,
    USER_TAGS,
)
from app.models.address import SHIPPING_PHONE
from app.models.coupon import ON_REQUEST as LATER_IN_COUPONS
from app.models.coupon import CouponOptions
from app.models.user import ON_REQUEST as LATER_IN_USERS
from app.models.user import role_of, with_normalized
from app.schemas.coupons.coupon import CouponCreate
from app.schemas.fields.output import (
    Amount,
    Boolean,
    Identifier,
    Lines,
    Metadata,
    Number,
    OptionalIdentifier,
    OptionalString,
    String,
)
from app.schemas.loading import instance_of
from app.schemas.orders.order import OrderSchema
from app.schemas.orders.refund import RefundItemSchema
from app.services.campaigns.writes import with_search_text
from app.services.common.metadata import METADATA
from app.services.common.metadata_changes import with_found_value, without_metadata
from app.services.common.metadata_rules import json_text
from app.services.coupons.writes import columns_of
from app.services.orders.columns import derived_columns
from app.services.orders.items import KINDS as ITEM_LISTS

Rows = dict[Table, list[Record]]

RESTARTED = {"revision", "edited_at"}
"""Columns that begin again after a restore."""

_AMOUNT = re.compile(r"-?[0-9]{1,16}\.[0-9]{2}")
_ITEM_AMOUNT = re.compile(r"-?[0-9]{1,16}(\.[0-9]{1,6})?")
_REFUNDED = Lines(RefundItemSchema)
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_NO_LIMIT = ("usage_limit", "usage_limit_per_user")  # null in responses, 0 in the table
_NO_AMOUNT = ("minimum_amount", "maximum_amount")  # 0.00 in responses, usually null in the table
_GUEST = "customer_id"  # 0 in responses, null in the table
# Types of the entries of lists with one type.
_ENTRIES: Mapping[str, type] = {
    "product_ids": int,
    "exclude_product_ids": int,
    "product_category_ids": int,
    "exclude_product_category_ids": int,
    "customer_emails": str,
    "combines_with": str,
    "tags": str,
    "line_items": dict,
    "shipping_lines": dict,
    "tax_lines": dict,
    "fee_lines": dict,
    "coupon_lines": dict,
}
_MISSING = object()
# Columns that files of earlier versions do not have, with their values.
_ADDED: Mapping[tuple[str, str], object] = {
    **{("orders", name): "" for name in ("transaction_id", "created_via", "cart_hash", "version")},
    **{("orders", name): None for name in ("paid_at", "parent_id", "items", "fees")},
    **{("orders", name): "0.00" for name in ("discount_tax", "total_refunded")},
    ("orders", "prices_include_tax"): False,
    **{(table, SHIPPING_PHONE): "" for table in ("orders", "users")},
    ("order_notes", "author"): "",
    **{("coupons", name): value for name, value in LATER_IN_COUPONS.items()},
    **{("users", name): value for name, value in LATER_IN_USERS.items()},
    **{(table, "campaign_id"): None for table in ("coupon_batches", "redemptions")},
    ("redemptions", "confirmed_at"): None,
    ("orders", "erased_at"): None,
}
_NAMES_OF_ACCOUNT = dict.fromkeys(("username", "email", "first_name", "last_name"), "")
_NORMALIZED = with_normalized(_NAMES_OF_ACCOUNT).keys() - _NAMES_OF_ACCOUNT.keys()


def rows_of(kind: Kind, record: Mapping[str, object]) -> Rows:
    """Return the rows of a record, by the table into which they are inserted, in this order.

    Raises:
        ValueError: a value is missing or has the wrong type. The message contains its name.
    """
    flat = dict(record)
    for name, prefix in kind.parts.items():
        part = flat.pop(name, None)
        if not isinstance(part, dict):
            raise ValueError(f"{name}: must be an object.")
        flat |= {f"{prefix}{key}": value for key, value in part.items()}
    return _ROWS[kind.name](kind.table, flat)


def _row(table: Table, record: Mapping[str, object], **computed: object) -> Record:
    """Return the row of a record in a table, with some values computed here."""
    row = {}
    for column in table.c:
        if column.name in computed or column.computed is not None or column.name in RESTARTED:
            continue
        value = record.get(column.name, _ADDED.get((table.name, column.name), _MISSING))
        if value is _MISSING:
            raise ValueError(f"{column.name}: is missing.")
        row[column.name] = _stored(column, value)
    return row | {name: value for name, value in computed.items() if name in table.c}


def _customer(table: Table, record: Record) -> Rows:
    record.setdefault(PASSWORD_HASH, None)
    record["tags"] = record.get("tags") or None
    row = with_normalized(_row(table, record, **dict.fromkeys(_NORMALIZED, "")))
    roles = record.get("roles")
    if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
        raise ValueError("roles: must be an array of strings.")
    return {
        table: [row],
        USER_ROLES: [
            role_of(row["id"], _text("roles", role), row["created_at"], position)
            for position, role in enumerate(roles)
        ],
        USER_TAGS: [{"user_id": row["id"], "tag": tag} for tag in row["tags"] or ()],
        MERGED_ACCOUNTS: _merged_accounts(row["id"], record.get(MERGED, [])),
        **_metadata(CUSTOMER_METADATA, record, customer_id=row["id"]),
    }


def _merged_accounts(customer_id: int, given: Any) -> list[Record]:
    """Return the accounts that were merged into a customer. Files of earlier versions have none."""
    if not _are_objects(given):
        raise ValueError(f"{MERGED}: must be an array of objects.")
    return [
        _row(
            MERGED_ACCOUNTS,
            each,
            customer_id=customer_id,
            email_normalized=comparable_email(_text(MERGED, each.get("email"))) or None,
        )
        for each in given
    ]


def _coupon(table: Table, record: Record) -> Rows:
    record |= {name: record[name] or 0 for name in _NO_LIMIT if name in record}
    record |= {name: None for name in _NO_AMOUNT if record.get(name) == "0.00"}
    row = _row(table, record, search_text="", options=_options(record))
    row["search_text"] = search_text(row["code"], row["description"])
    return {table: [row], **_metadata(COUPON_METADATA, record, coupon_id=row["id"])}


def _campaign(table: Table, record: Record) -> Rows:
    record |= {name: record[name] or 0 for name in _NO_LIMIT if name in record}
    record |= {"budget": None if record.get("budget") == "0.00" else record.get("budget")}
    numbers = {"stored_uses": 0, "stored_discount": Decimal(0)}  # counted after all records
    row = _row(table, record, search_text="", **numbers)
    return {table: [with_search_text(row)]}


def _options(record: Record) -> CouponOptions:
    """Return the fields that few coupons use. Files of earlier versions have none."""
    fields = instance_of(CouponCreate, strict=True).fields
    given: Record = {}
    for name in CouponOptions._fields:
        try:
            given |= {name: fields[name].deserialize(record[name])} if name in record else {}
        except ma.ValidationError as error:
            raise ValueError(f"{name}: {error.messages[0]}") from None
    options: CouponOptions = columns_of(given)["options"] if given else CouponOptions()
    return options


def _order(table: Table, record: Record) -> Rows:
    for name in ITEM_LISTS:
        _require_items(name, cast("Lines", instance_of(OrderSchema).fields[name]), record.get(name))
    details = record.get("item_details")
    if isinstance(details, dict) and not all(isinstance(each, dict) for each in details.values()):
        raise ValueError("item_details: must be an object of objects.")
    lists, of_items = _items(record, "id")
    of_parent = {"parent_id": record.get("parent_id") or None}  # 0 in responses
    derived = {"search_text": "", "billing_email_normalized": None}
    row = _row(table, _of_guest(record) | lists | of_parent, **derived)
    row |= derived_columns(row)
    rows = {table: [row], **_metadata(ORDER_METADATA, record, order_id=row["id"])}
    rows[ITEM_METADATA] = _of_items(row["id"], of_items)
    for name, child in (("notes", ORDER_NOTES), ("downloads", DOWNLOADS)):
        given = record.get(name)
        if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
            raise ValueError(f"{name}: must be an array of objects.")
        rows[child] = [_row(child, each, order_id=row["id"]) for each in given]
    return rows


def _items(record: Record, key: str) -> tuple[Record, list[tuple[int, Record]]]:
    """Return the lists of items without metadata, and each item that has metadata, with its ID."""
    lists: Record = {}
    of_items = []
    for name in ITEM_LISTS:
        if isinstance(given := record.get(name), list):
            of_items += [
                (_integer(f"{name}.{key}", item.get(key)), item)
                for item in given
                if isinstance(item, dict) and METADATA in item
            ]
            lists[name] = [
                without_metadata(item) if isinstance(item, dict) else item for item in given
            ]
    return lists, of_items


def _metadata(table: Table, record: Record, **owner: int) -> Rows:
    return {table: list(_entries(table, record, **owner))}


def _entries(table: Table, record: Record, **owner: int) -> Iterator[Record]:
    """Yield the rows of the metadata of a record. Files of earlier versions have none."""
    given = record.get(METADATA, [])
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise ValueError(f"{METADATA}: must be an array of objects.")
    for each in given:
        if "value" not in each:
            raise ValueError(f"{METADATA}.value: is missing.")
        if contains_nul(each["value"]):
            raise ValueError(f"{METADATA}.value: must not contain NUL.")
        try:
            text = json_text(each["value"])
        except ValueError as error:
            raise ValueError(f"{METADATA}.value: {error}") from None
        row = _row(table, {"internal": False, **each, "value": text, **owner}, found_value=None)
        yield with_found_value(table, row)


def _refund(table: Table, record: Record) -> Rows:
    # The ID of an item of the order is 0 if an import did not find it.
    _require_items("line_items", _REFUNDED, record.get("line_items"), least_id=0)
    lists, of_items = _items(record, "item_id")
    row = _row(table, record | lists)
    rows = {table: [row], **_metadata(REFUND_METADATA, record, refund_id=row["id"])}
    rows[ITEM_METADATA] = _of_items(row["order_id"], of_items)
    return rows


def _of_items(order_id: int, items: Iterable[tuple[int, Record]]) -> list[Record]:
    """Return the rows of the metadata of items."""
    return [
        entry
        for item_id, item in items
        for entry in _entries(ITEM_METADATA, item, order_id=order_id, item_id=item_id)
    ]


def _redemption(table: Table, record: Record) -> Rows:
    if record.get("status") == "confirmed":
        record.setdefault("confirmed_at", record.get("updated_at"))
    row = _row(table, _of_guest(record), email_normalized="")
    row["email_normalized"] = email_key(row["email"])
    return {table: [row]}


_ROWS: Mapping[str, Callable[[Table, Record], Rows]] = {
    "customers": _customer,
    "campaigns": _campaign,
    "batches": lambda table, record: {table: [_row(table, record)]},
    "coupons": _coupon,
    "orders": _order,
    "refunds": _refund,
    "redemptions": _redemption,
}


def _of_guest(record: Record) -> Record:
    return record | {_GUEST: record.get(_GUEST) or None}


def _stored(column: Column[Any], value: object) -> Any:
    """Return a value of a line as the column stores it."""
    if value is None:
        if column.nullable:
            return None
        raise ValueError(f"{column.name}: must not be null.")
    read = next(read for known, read in _READ.items() if isinstance(column.type, known))
    if isinstance(column.type, Integer):
        return _natural(column.name, value, 1 if column.name == "id" else 0)
    return read(column.name, value)


def _natural(name: str, value: Any, least: int) -> int:
    if _integer(name, value) < least:
        raise ValueError(f"{name}: must be at least {least}.")
    return int(value)


def _amount(name: str, value: object) -> Decimal:
    if not isinstance(value, str) or not _AMOUNT.fullmatch(value):
        raise ValueError(f'{name}: must be an amount such as "10.00".')
    return Decimal(value)


def _timestamp(name: str, value: object) -> datetime:
    if isinstance(value, str) and _TIMESTAMP.fullmatch(value):
        with suppress(ValueError):  # for example 31 February
            return datetime.fromisoformat(value)
    raise ValueError(f'{name}: must be a time such as "2026-11-20T09:38:00Z".')


def _date(name: str, value: object) -> date:
    return _timestamp(name, value).date()


def _boolean(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name}: must be true or false.")
    return value


def _integer(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > INT64_MAX:
        raise ValueError(f"{name}: must be a 64-bit integer.")
    return value


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f"{name}: must be a string without NUL.")
    return value


def _json(name: str, value: object) -> object:
    entry = _ENTRIES.get(name)
    if entry is None:
        if not isinstance(value, dict):
            raise ValueError(f"{name}: must be an object.")
    elif not isinstance(value, list) or not all(type(each) is entry for each in value):
        raise ValueError(f"{name}: must be an array of {_NAMES[entry]}.")
    elif entry is str:
        for each in value:
            _text(name, each)
    return value


def _require_items(name: str, shown: Lines, items: Any, least_id: int = 1) -> None:
    """Raise ValueError if items have not the values that responses show.

    Items are stored as JSON, whose values the database does not check.
    """
    if not _are_objects(items):
        raise ValueError(f"{name}: must be an array of objects.")
    # Responses complete items of earlier versions, which lack some values.
    complete = shown.wire(items) if shown.wire else items
    for at, item in enumerate(complete):
        for part, field in shown.line._declared_fields.items():
            place = f"{name}[{at}].{part}"
            if part in item:
                _require_shown(place, field, item[part], least_id)
            elif not isinstance(field, Metadata):
                raise ValueError(f"{place}: is missing.")


def _are_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _require_parts(place: str, fields: Mapping[str, object], value: Any) -> None:
    """Raise ValueError if a list within an item has not the values that responses show."""
    if not _are_objects(value):
        raise ValueError(f"{place}: must be an array of objects.")
    for each in value:
        for part, field in fields.items():
            if part in each:
                _require_shown(f"{place}.{part}", field, each[part], 0)
            elif part == "key":
                raise ValueError(f"{place}.{part}: is missing.")


def _require_shown(place: str, field: object, value: object, least_id: int) -> None:
    if isinstance(field, Metadata):
        return  # ``_entries`` checks it
    if isinstance(field, ma.fields.List):
        _require_parts(place, cast("Any", field.inner).schema.fields, value)
    elif isinstance(field, Identifier):
        _natural(place, value, least_id)
    elif isinstance(field, Number):
        _natural(place, value, 0)
    elif isinstance(field, Boolean):
        _boolean(place, value)
    elif isinstance(field, Amount):
        if not isinstance(value, str) or not _ITEM_AMOUNT.fullmatch(value):
            raise ValueError(f'{place}: must be an amount such as "10.00".')
    elif isinstance(field, String) or (isinstance(field, OptionalString) and value is not None):
        _text(place, value)
    elif isinstance(field, OptionalIdentifier) and value is not None:
        _natural(place, value, 0)  # 0 is no product


_NAMES = {int: "integers", str: "strings", dict: "objects"}
# The custom column types are not subclasses of the types in which they are stored.
_READ: Mapping[type, Callable[[str, Any], Any]] = {
    Money: _amount,
    UtcDateTime: _timestamp,
    Json: _json,
    JsonText: _text,
    Date: _date,
    BooleanColumn: _boolean,
    Integer: _integer,
    StringColumn: _text,
}
