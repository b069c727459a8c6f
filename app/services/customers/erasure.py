"""Removal of personal data outside of orders and accounts (events 1, people 5)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import (
    ColumnElement,
    Table,
    and_,
    bindparam,
    case,
    or_,
    select,
    union,
    update,
)
from sqlalchemy.orm import Session

from app.auth.encryption import decrypt, encrypt
from app.auth.principals import capabilities_of
from app.conversions.emails import comparable_email
from app.db.search import contains, email_key
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList, TextList
from app.models import (
    API_KEYS,
    EVENTS,
    IDEMPOTENCY_PERSONS,
    IDEMPOTENCY_RECORDS,
    MERGED_ACCOUNTS,
    ORDER_NOTES,
    ORDER_REFUNDS,
    ORDERS,
    REDEMPTIONS,
    USER_ROLES,
    USERS,
)
from app.models.api_key import INVITATION_OF
from app.models.user import UserRow
from app.services.campaigns.locks import hold_campaigns
from app.services.common.locks import IS_TAKEN
from app.services.common.persons import (
    customer_person,
    email_person,
    note_person,
    order_person,
    persons_of,
    with_erased_emails,
)
from app.services.coupons.customers import ERASED, erased_email
from app.services.events.erasure import blank, erase_events
from app.services.imports.erasure import erase_imports

_COUPONS = frozenset({"coupon", "coupons"})

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


# Without the address of an account that another account has now.
_MERGED = select(
    MERGED_ACCOUNTS.c.id,
    case((IS_TAKEN, None), else_=MERGED_ACCOUNTS.c.email_normalized).label("email_normalized"),
).where(MERGED_ACCOUNTS.c.customer_id == bindparam("kept"))


def erase_customer(session: Session, account: UserRow) -> None:
    """Remove the personal data of an account that is being deleted, except from orders.

    Call this while the account is locked and still exists: its redemptions and orders refer to it.
    """
    customer_id, emails = account["id"], _emails(session, account)
    merged = session.execute(_MERGED, {"kept": customer_id}).all()
    customer_ids = [customer_id, *(each.id for each in merged)]
    emails |= {each.email_normalized for each in merged if each.email_normalized}
    orders = _orders(session, customer_id, emails)
    erase_redemptions(
        session, uses_of([customer_id], map(email_key, emails)), account["email_normalized"]
    )
    erase_signatures(session, account)
    erase_reports(session, customer_ids, emails, orders)
    erase_imports(session, emails)


def erase_reports(
    session: Session,
    customer_ids: Collection[int],
    emails: Collection[str],
    orders: Collection[int],
    *,
    coupon_emails: Collection[str] = (),
) -> None:
    """Remove personal data from events, responses of their receivers and stored responses.

    Args:
        customer_ids: the account, and those that were merged into it; empty for a guest.
        emails: normalized addresses of the person.
        orders: the orders of the person, to which those are added that events report.
        coupon_emails: the addresses that coupons no longer name.
    """
    records = {
        resource: _reported(session, customer_ids, resource)
        for resource in ("order", "order_note", "order_refund", "invitation")
    }
    records["order"] |= set(orders)
    records["order_note"] |= _of_orders(session, ORDER_NOTES, records["order"])
    records["order_note"] |= _deleted_notes(session, records["order"])
    records["order_refund"] |= _of_orders(session, ORDER_REFUNDS, records["order"])
    erase_events(session, customer_ids, records)
    persons = {
        *map(customer_person, customer_ids),
        *map(email_person, emails),
        *map(order_person, records["order"]),
        *map(note_person, records["order_note"]),
    }
    _erase_responses(session, persons, {*map(email_person, coupon_emails)})


def _emails(session: Session, account: UserRow) -> set[str]:
    """Return the normalized e-mail addresses of an account that no other account has."""
    billing = comparable_email(account["billing_email"])
    is_of_another = and_(USERS.c.email_normalized == billing, USERS.c.id != account["id"])
    taken = {billing} if session.execute(select(USERS.c.id).where(is_of_another)).first() else set()
    return {account["email_normalized"], billing} - taken - {""}


def _orders(session: Session, customer_id: int, emails: Collection[str]) -> list[int]:
    """Return the orders that belong to a customer, or are those of such a guest."""
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
    return sorted(found)


def _of_orders(session: Session, table: Table, orders: Collection[int]) -> set[int]:
    """Return the notes or refunds of orders."""
    of_orders = is_one_of(table.c.order_id, bindparam("orders", type_=IdList))
    return set(session.scalars(select(table.c.id).where(of_orders), {"orders": list(orders)}))


def _deleted_notes(session: Session, orders: Collection[int]) -> set[int]:
    """Return the notes of orders whose deletion an event reports."""
    deleted = select(EVENTS.c.resource_id, EVENTS.c.data).where(
        EVENTS.c.resource == "order_note", EVENTS.c.type == "order_note.deleted"
    )
    return {
        row.resource_id
        for row in session.execute(deleted)
        if orjson.loads(row.data).get("order_id") in orders
    }


def _reported(session: Session, customer_ids: Collection[int], resource: str) -> set[int]:
    """Return the records of a resource that events report as those of customers."""
    is_theirs = EVENTS.c.customer_id.in_(customer_ids)
    found = select(EVENTS.c.resource_id).where(is_theirs, EVENTS.c.resource == resource)
    return set(session.scalars(found)) if customer_ids else set()


def uses_of(customer_ids: Collection[int], keys: Iterable[str]) -> list[ColumnElement[bool]]:
    """Return the conditions that a use is one of some accounts, or of a guest with an address."""
    is_guest = REDEMPTIONS.c.customer_id.is_(None)
    of_guest = and_(is_guest, REDEMPTIONS.c.email_normalized.in_(set(keys)))
    return [REDEMPTIONS.c.customer_id.in_(customer_ids), of_guest]


def erase_redemptions(session: Session, found: Sequence[ColumnElement[bool]], counted: str) -> None:
    """Replace e-mail addresses of redemptions with hashes that the limit per customer compares.

    Args:
        found: conditions of the redemptions, each of which has an index.
        counted: the normalized address of the account; its uses without an address were counted by
            its ID.
    """
    campaigns = (select(REDEMPTIONS.c.campaign_id).where(each) for each in found)
    hold_campaigns(session, union(*campaigns))  # their limits per customer compare the addresses
    stored = union(*(select(REDEMPTIONS.c.email_normalized).where(each) for each in found))
    for email in sorted(session.scalars(stored)):
        if email.startswith(ERASED):
            continue  # it still counts for an earlier customer, who was deleted, too
        key = email or counted
        session.execute(
            update(REDEMPTIONS)
            .where(or_(*found), REDEMPTIONS.c.email_normalized == email)
            .values(email="", email_normalized=erased_email(key) if key else "")
        )


def erase_signatures(session: Session, account: UserRow) -> None:
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


def _erase_responses(
    session: Session, persons: Collection[str], coupon_emails: Collection[str]
) -> None:
    """Remove the person from stored responses. A retry still returns them and changes nothing."""
    for record_id, stored in session.execute(_RECORDS, {"persons": list(persons)}).all():
        body, is_encrypted = bytes(stored), not stored.startswith((b"{", b"["))
        if is_encrypted:
            body = (decrypt(body.decode()) or "{}").encode()
        response = with_erased_emails(_without(orjson.loads(body), persons), coupon_emails)
        blanked = orjson.dumps(response)
        session.execute(
            update(IDEMPOTENCY_RECORDS)
            .where(IDEMPOTENCY_RECORDS.c.id == record_id)
            .values(response_body=encrypt(blanked.decode()).encode() if is_encrypted else blanked)
        )


def _without(response: object, persons: Collection[str]) -> Any:
    """Return a response without the personal data in the records of some persons.

    Coupons name addresses only in their conditions.
    """
    if not isinstance(response, Mapping):
        return blank(response)  # of a plugin
    return {
        name: [_without({name: item}, persons)[name] for item in value]
        if isinstance(value, list)
        else _without(value, persons)
        if name in BATCH and isinstance(value, Mapping)
        else blank(value)
        if name not in _COUPONS and not persons_of({name: value}).isdisjoint(persons)
        else value
        for name, value in response.items()
    }
