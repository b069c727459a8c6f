"""Columns of customers: conversion of input, and computed columns of written accounts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from flask import current_app
from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from app.auth.hashes import hash_passwords
from app.conversions.emails import comparable_email
from app.db.records import WANTED, Record
from app.db.session import now
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.errors import ShopError
from app.models import USERS
from app.models.address import ADDRESS_COLUMNS, SHIPPING_PHONE
from app.models.user import ON_REQUEST, with_normalized
from app.services.common.bulk import BulkItem, Data, Precondition, WriteResult, single_result
from app.services.customers.statistics import COLUMNS, COMPUTED

NEW_ROLE = "customer"
"""The role of an account that the API creates."""

NEW_HASH = "password"
"""Name in the account after a write that sets the password, for its event."""

WRITABLE = [column for column in USERS.c if column.computed is None]
"""The stored columns. The database computes the other columns."""

BLANK = {"password_hash": None, **ON_REQUEST} | dict.fromkeys(
    ("first_name", "last_name", *ADDRESS_COLUMNS, SHIPPING_PHONE), ""
)
"""The columns of an account that a create may omit, with their defaults."""

_COMPUTED = select(USERS.c.id, *(COLUMNS[name].label(name) for name in COMPUTED)).where(
    is_one_of(USERS.c.id, bindparam(WANTED, type_=IdList))
)


def with_password_hashes(items: Sequence[BulkItem]) -> list[BulkItem]:
    """Return items with the hashes of passwords in place of the passwords.

    Call this before the transaction begins, because hashing is slow.
    """
    given = [position for position, item in enumerate(items) if item.data.get("password")]
    hashes = hash_passwords([items[position].data["password"] for position in given])
    prepared = [
        replace(item, data={k: v for k, v in item.data.items() if k != "password"})
        for item in items
    ]
    for position, hashed in zip(given, hashes, strict=True):
        data = {**prepared[position].data, "password_hash": hashed}
        prepared[position] = replace(prepared[position], data=data)
    return prepared


def has_email(account: Mapping[str, object], email: str) -> bool:
    """Return whether an account has an address. An update ignores that of another (decisions 5)."""
    return comparable_email(str(account["email"])) == comparable_email(email)


def columns_of(data: Data) -> Record:
    """Return the columns for the supplied fields, except those that a rule decides about."""
    names = ("first_name", "last_name", "password_hash", *ON_REQUEST)
    columns = {name: data[name] for name in names if name in data}
    for kind in ("billing", "shipping"):
        parts = data.get(f"{kind}_address", {})
        columns |= {f"{kind}_{part}": value for part, value in parts.items()}
    return columns


def new_account(data: Mapping[str, object], username: str, email: str) -> Record:
    """Return a new account with the columns that ``data`` supplies."""
    timestamp = data.get("created_at") or now()
    return with_normalized(
        {
            **BLANK,
            **columns_of(data),
            "username": username,
            "email": email,
            "created_at": timestamp,
            "updated_at": timestamp,
        }
    )


def public_account(
    account: Mapping[str, object], before: Mapping[str, object] | None = None
) -> Record:
    """Return an account without its password hash, for events and plugins.

    Args:
        before: the account before a write, with which NEW_HASH is added if the password was set.
    """
    public = {name: value for name, value in account.items() if name != "password_hash"}
    is_set = before is not None and before["password_hash"] != account["password_hash"]
    return public | ({NEW_HASH: True} if is_set else {})


def with_computed(session: Session, results: Sequence[WriteResult]) -> list[WriteResult]:
    """Return accounts with computed columns, read in one statement. Errors are unchanged."""
    ids = {result["id"] for result in results if not isinstance(result, ShopError)}
    if not ids:
        return list(results)
    rows = session.execute(_COMPUTED, {WANTED: list(ids)}).mappings()
    computed = {row["id"]: dict(row) for row in rows}
    # The avatar depends on the e-mail address in this result, which a later item may have changed.
    avatars = current_app.config["SHOP_GRAVATAR"]
    return [
        result
        if isinstance(result, ShopError)
        else {
            **result,
            **computed[result["id"]],
            "avatar_url": result["email"] if avatars else None,
        }
        for result in results
    ]


def check_precondition(
    session: Session, precondition: Precondition | None, account: Mapping[str, object] | None
) -> None:
    """Check a precondition, if there is one, against the account as a read returns it."""
    if precondition and account:
        precondition(single_result(with_computed(session, [account])))
