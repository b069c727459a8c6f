"""Removal of personal data outside of orders and accounts (events 1, people 5)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Table, and_, bindparam, or_, select, union, update
from sqlalchemy.orm import Session

from app.auth.encryption import decrypt, encrypt
from app.auth.principals import capabilities_of
from app.conversions.numbers import INT64_MAX
from app.db.sql.functions import is_one_of
from app.db.sql.types import Id, IdList, TextList
from app.models import (
    API_KEYS,
    EVENTS,
    IDEMPOTENCY_PERSONS,
    IDEMPOTENCY_RECORDS,
    ORDER_NOTES,
    ORDER_REFUNDS,
    REDEMPTIONS,
    USER_ROLES,
    USERS,
)
from app.models.api_key import INVITATION_OF
from app.models.event import IS_DELETED_NOTE
from app.models.user import UserRow
from app.services.campaigns.locks import hold_campaigns
from app.services.common.erased import ERASED, erased_email
from app.services.common.persons import (
    email_person,
    note_person,
    order_person,
    persons_of,
    with_erased_emails,
)
from app.services.events.erasure import blank, erase_events

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
        ),
        IDEMPOTENCY_RECORDS.c.id > bindparam("after", type_=Id),
    )
    .order_by(IDEMPOTENCY_RECORDS.c.id)
    .limit(bindparam("size", type_=Id))
    .with_for_update()
)


def erase_reports(
    session: Session,
    orders: Collection[int],
    more: Mapping[str, Collection[int]] = MappingProxyType({}),
) -> None:
    """Remove personal data from the events of orders, and from what repeats them.

    These are responses of the receivers of the events, and stored responses.

    Args:
        orders: their notes and refunds are included.
        more: the IDs of further records, by resource.
    """
    records = {resource: {*ids} for resource, ids in more.items()}
    records["order"] = {*orders, *records.get("order", ())}
    records["order_note"] = (
        records.get("order_note", set())
        | _of_orders(session, ORDER_NOTES, records["order"])
        | _deleted_notes(session, records["order"])
    )
    refunds = _of_orders(session, ORDER_REFUNDS, records["order"])
    records["order_refund"] = records.get("order_refund", set()) | refunds
    erase_events(session, records)
    persons = {*map(order_person, records["order"]), *map(note_person, records["order_note"])}
    erase_responses(session, persons)


def _of_orders(session: Session, table: Table, orders: Collection[int]) -> set[int]:
    """Return the notes or refunds of orders."""
    of_orders = is_one_of(table.c.order_id, bindparam("orders", type_=IdList))
    return set(session.scalars(select(table.c.id).where(of_orders), {"orders": list(orders)}))


def _deleted_notes(session: Session, orders: Collection[int]) -> set[int]:
    """Return the notes of orders whose deletion an event reports."""
    deleted = select(EVENTS.c.resource_id, EVENTS.c.data).where(IS_DELETED_NOTE)
    return {
        row.resource_id
        for row in session.execute(deleted)
        if orjson.loads(row.data).get("order_id") in orders
    }


def uses_of(customer_ids: Collection[int], keys: Iterable[str]) -> list[ColumnElement[bool]]:
    """Return the conditions that a use is one of some accounts, or of a guest with an address."""
    is_guest = REDEMPTIONS.c.customer_id.is_(None)
    of_guest = and_(is_guest, REDEMPTIONS.c.email_normalized.in_(set(keys)))
    return [REDEMPTIONS.c.customer_id.in_(customer_ids), of_guest]


def erase_redemptions(
    session: Session, found: Sequence[ColumnElement[bool]], counted: str, *, unlinked: bool = False
) -> None:
    """Replace e-mail addresses of redemptions with hashes that the limit per customer compares.

    Args:
        found: conditions of the redemptions, each of which has an index.
        counted: the normalized address of the account; its uses without an address were counted by
            its ID.
        unlinked: whether they no longer belong to an account.
    """
    unlink: dict[str, None] = {"customer_id": None} if unlinked else {}
    campaigns = (select(REDEMPTIONS.c.campaign_id).where(each) for each in found)
    hold_campaigns(session, union(*campaigns))  # their limits per customer compare the addresses
    stored = union(*(select(REDEMPTIONS.c.email_normalized).where(each) for each in found))
    # A union of one select repeats an address for each use, which is one update.
    for email in sorted({*session.scalars(stored)}):
        # A hash still counts for an earlier customer, who was deleted, too.
        is_kept = email.startswith(ERASED)
        if is_kept and not unlink:
            continue
        hashed = erased_email(email or counted)
        erased = {} if is_kept else {"email": "", "email_normalized": hashed}
        session.execute(
            update(REDEMPTIONS)
            .where(or_(*found), REDEMPTIONS.c.email_normalized == email)
            .values({**erased, **unlink})
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


def erase_responses(
    session: Session,
    persons: Collection[str],
    coupon_emails: Collection[str] = (),
    *,
    after: int = 0,
    size: int = INT64_MAX,
) -> list[int]:
    """Remove persons from stored responses. A retry still returns them and changes nothing.

    Args:
        persons: references to the persons.
        coupon_emails: the addresses that coupons no longer name.
        after: the last response that is already blanked.
        size: the most responses.

    Returns:
        The IDs of the responses.
    """
    given = {"persons": list(persons), "after": after, "size": size}
    coupon_persons = {*map(email_person, coupon_emails)}
    rows = session.execute(_RECORDS, given).all()
    for record_id, stored in rows:
        session.execute(
            update(IDEMPOTENCY_RECORDS)
            .where(IDEMPOTENCY_RECORDS.c.id == record_id)
            .values(response_body=blanked(stored, persons, coupon_persons))
        )
    return [record_id for record_id, _ in rows]


def blanked(
    stored: bytes, persons: Collection[str], coupon_persons: Collection[str] = frozenset()
) -> bytes:
    """Return a stored response, which can be encrypted, without the data of some persons."""
    body, is_encrypted = bytes(stored), not stored.startswith((b"{", b"["))
    if is_encrypted:
        body = (decrypt(body.decode()) or "{}").encode()
    response = with_erased_emails(_without(orjson.loads(body), persons), coupon_persons)
    text = orjson.dumps(response)
    return encrypt(text.decode()).encode() if is_encrypted else text


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
