"""Removal of the personal data of a deleted customer (events 1, docs/customers.md)."""

import re
from collections.abc import Collection, Mapping
from typing import Any

import orjson
from sqlalchemy import Table, and_, bindparam, delete, or_, select, union, update
from sqlalchemy.orm import Session

from app.auth.encryption import decrypt, encrypt
from app.auth.principals import capabilities_of
from app.conversions.emails import comparable_email
from app.conversions.text import comparable
from app.db.search import contains, email_key
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList, TextList
from app.models import (
    API_KEYS,
    EVENTS,
    IDEMPOTENCY_PERSONS,
    IDEMPOTENCY_RECORDS,
    ORDER_NOTES,
    ORDER_REFUNDS,
    ORDERS,
    REDEMPTIONS,
    UPLOADS,
    USER_ROLES,
    USERS,
)
from app.models.api_key import INVITATION_OF
from app.models.user import UserRow
from app.services.campaigns.locks import hold_campaigns
from app.services.common.persons import (
    customer_person,
    email_person,
    note_person,
    order_person,
    persons_of,
)
from app.services.coupons.customers import ERASED, erased_email
from app.services.events.erasure import blank, erase_events

_UPLOADS = select(UPLOADS.c.id, UPLOADS.c.content, UPLOADS.c.failures).where(
    UPLOADS.c.kind == "customers"
)

_ADDRESS = re.compile(rb"(?<![^\s,;:|\"'<>@])[^\s,;:|\"'<>@]++@[^\s,;:|\"'<>@]++")
"""What can be an e-mail address in a file. Begins only after a separator, so it is linear."""

BATCH = frozenset({"create", "update", "delete"})
"""Names of the parts of a batch with lists of created, updated and deleted records."""

_RECORDS = (
    select(IDEMPOTENCY_RECORDS.c.id, IDEMPOTENCY_RECORDS.c.response_body)
    .where(
        IDEMPOTENCY_RECORDS.c.id.in_(
            select(IDEMPOTENCY_PERSONS.c.record_id).where(
                is_one_of(IDEMPOTENCY_PERSONS.c.person, bindparam("persons", type_=TextList))
            )
        )
    )
    .order_by(IDEMPOTENCY_RECORDS.c.id)
    .with_for_update()
)


def erase_customer(session: Session, account: UserRow) -> None:
    """Remove the personal data of an account that is being deleted, except from orders.

    Call this while the account is locked and still exists: its redemptions and orders refer to it.
    """
    emails = _emails(session, account)
    orders = _orders(session, account["id"], emails)
    notes = _of_orders(session, account["id"], ORDER_NOTES, "order_note", orders)
    _erase_redemptions(session, account, emails)
    _erase_signatures(session, account)
    refunds = _of_orders(session, account["id"], ORDER_REFUNDS, "order_refund", orders)
    records = {
        "order": orders,
        "order_note": notes,
        "order_refund": refunds,
        "invitation": _reported(session, account["id"], "invitation"),
    }
    erase_events(session, account["id"], records)
    persons = {
        customer_person(account["id"]),
        *map(email_person, emails),
        *map(order_person, orders),
        *map(note_person, notes),
    }
    _erase_responses(session, persons)
    _delete_uploads(session, emails)


def _emails(session: Session, account: UserRow) -> set[str]:
    """Return the normalized e-mail addresses of an account that no other account has."""
    billing = comparable_email(account["billing_email"])
    is_of_another = and_(USERS.c.email_normalized == billing, USERS.c.id != account["id"])
    taken = {billing} if session.execute(select(USERS.c.id).where(is_of_another)).first() else set()
    return {account["email_normalized"], billing} - taken - {""}


def _orders(session: Session, customer_id: int, emails: Collection[str]) -> list[int]:
    """Return the orders that belong to a customer, belonged to it, or are those of such a guest."""
    conditions = [
        and_(
            contains(ORDERS.c.search_text, email, ORDERS.c.id).by_index,
            ORDERS.c.customer_id.is_(None),
        )
        for email in emails
    ]
    # Waits for concurrent updates of the orders, whose events and uses are then erased, too.
    of_customer = select(ORDERS.c.id).where(ORDERS.c.customer_id == customer_id)
    found = set(session.scalars(of_customer.order_by(ORDERS.c.id).with_for_update()))
    for condition in conditions:
        guests = select(ORDERS.c.id, ORDERS.c.billing_email).where(condition)
        rows = session.execute(guests.order_by(ORDERS.c.id).with_for_update())
        found |= {row.id for row in rows if comparable_email(row.billing_email) in emails}
    return sorted(found | _reported(session, customer_id, "order"))


def _of_orders(
    session: Session, customer_id: int, table: Table, resource: str, orders: Collection[int]
) -> list[int]:
    """Return the notes or refunds of orders, and deleted ones of earlier orders of a customer."""
    of_orders = is_one_of(table.c.order_id, bindparam("orders", type_=IdList))
    stored = session.scalars(select(table.c.id).where(of_orders), {"orders": list(orders)})
    return sorted(set(stored) | _reported(session, customer_id, resource))


def _reported(session: Session, customer_id: int, resource: str) -> set[int]:
    """Return the records of a resource that events report as those of a customer."""
    return set(
        session.scalars(
            select(EVENTS.c.resource_id).where(
                EVENTS.c.customer_id == customer_id, EVENTS.c.resource == resource
            )
        )
    )


def _erase_redemptions(session: Session, account: UserRow, emails: Collection[str]) -> None:
    """Replace e-mail addresses of redemptions with hashes that the limit per customer compares."""
    of_account = REDEMPTIONS.c.customer_id == account["id"]
    keys = set(map(email_key, emails))
    of_guest = REDEMPTIONS.c.customer_id.is_(None) & REDEMPTIONS.c.email_normalized.in_(keys)
    campaigns = (select(REDEMPTIONS.c.campaign_id).where(each) for each in (of_account, of_guest))
    hold_campaigns(session, union(*campaigns))  # their limits per customer compare the addresses
    stored = session.scalars(select(REDEMPTIONS.c.email_normalized).where(of_account).distinct())
    for email in sorted({*stored, *keys}):
        if email.startswith(ERASED):
            continue  # it still counts for an earlier customer, who was deleted, too
        is_meant = of_account
        if email in keys:
            is_meant = or_(of_account, REDEMPTIONS.c.customer_id.is_(None))
        # A use without an address was counted by the ID of the account.
        counted = email or account["email_normalized"]
        session.execute(
            update(REDEMPTIONS)
            .where(is_meant, REDEMPTIONS.c.email_normalized == email)
            .values(email="", email_normalized=erased_email(counted) if counted else "")
        )


def _erase_signatures(session: Session, account: UserRow) -> None:
    """Remove the name of a member of staff from notes of orders and from the keys of invitations.

    Customers write neither. A name that another account has stays.
    """
    of_account = USER_ROLES.c.user_id == account["id"]
    if not capabilities_of(list(session.scalars(select(USER_ROLES.c.role).where(of_account)))):
        return
    names = {account["username"], f"{account['first_name']} {account['last_name']}".strip()}
    others = select(USERS.c.id).where(
        USERS.c.name_normalized == account["name_normalized"], USERS.c.id != account["id"]
    )
    if session.execute(others.limit(1)).first():
        names = {account["username"]}
    session.execute(
        update(ORDER_NOTES).where(ORDER_NOTES.c.author.in_(names - {""})).values(author="")
    )
    session.execute(
        update(API_KEYS)
        .where(API_KEYS.c.description == f"{INVITATION_OF}{account['username']}")
        .values(description="invitation")
    )


def _erase_responses(session: Session, persons: Collection[str]) -> None:
    """Remove the person from stored responses. A retry still returns them and changes nothing."""
    for record_id, stored in session.execute(_RECORDS, {"persons": list(persons)}).all():
        body, is_encrypted = bytes(stored), not stored.startswith((b"{", b"["))
        if is_encrypted:
            body = (decrypt(body.decode()) or "{}").encode()
        blanked = orjson.dumps(_without(orjson.loads(body), persons))
        session.execute(
            update(IDEMPOTENCY_RECORDS)
            .where(IDEMPOTENCY_RECORDS.c.id == record_id)
            .values(response_body=encrypt(blanked.decode()).encode() if is_encrypted else blanked)
        )


def _delete_uploads(session: Session, emails: Collection[str]) -> None:
    """Delete the uploaded files that contain an e-mail address in any form of its domain."""
    words = [email.encode() for email in emails]
    local_parts = {email.rpartition("@")[0] for email in emails}
    for row in session.execute(_UPLOADS).all():
        text = bytes(row.content) + row.failures.encode()
        found = {each.decode(errors="replace") for each in _ADDRESS.findall(text)}
        if any(word in text.lower() for word in words) or any(
            comparable(each.partition("@")[0]) in local_parts and comparable_email(each) in emails
            for each in found
        ):
            session.execute(delete(UPLOADS).where(UPLOADS.c.id == row.id))


def _without(response: Any, persons: Collection[str]) -> Any:
    """Return a response without the personal data in the records of some persons."""
    if not isinstance(response, Mapping):
        return blank(response)  # of a plugin
    return {
        name: [_without({name: item}, persons)[name] for item in value]
        if isinstance(value, list)
        else _without(value, persons)
        if name in BATCH and isinstance(value, Mapping)
        else blank(value)
        if not persons_of({name: value}).isdisjoint(persons)
        else value
        for name, value in response.items()
    }
