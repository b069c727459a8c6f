"""What an erasure clears after the account: uses, orders, events, responses and imports (people 5).

The transaction that deletes an account clears a first batch, which is all of almost every account.
If more is left, the transaction stores an ``Erasure``. The worker then clears further batches, each
in a transaction of its own. Readers hide the rest (``common.erased``).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from time import monotonic
from typing import NamedTuple

import orjson
from sqlalchemy import (
    ColumnElement,
    Row,
    and_,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    union_all,
    update,
)
from sqlalchemy.orm import Session

from app.auth.encryption import decrypt, encrypt
from app.conversions.emails import comparable_email
from app.conversions.numbers import INT64_MAX
from app.db.erased_rows import note_erasure
from app.db.read_pool import fetch
from app.db.search import email_key
from app.db.session import now, run_in_transaction
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.models import (
    ERASED_ACCOUNTS,
    ERASURES,
    EVENTS,
    IDEMPOTENCY_PERSONS,
    IMPORTED_RECORDS,
    ORDER_NOTES,
    ORDERS,
    REDEMPTIONS,
)
from app.models.imported_record import ERASED as ERASED_RECORD
from app.models.imported_record import USES
from app.models.user import UserRow
from app.services.common.erased import ERASED_IDS, erased_email, is_erased
from app.services.common.persons import (
    customer_person,
    email_person,
    note_person,
    order_person,
    stored_guest_conditions,
)
from app.services.coupons.refusals import erase_refused_carts
from app.services.customers.erasure import (
    blanked,
    erase_redemptions,
    erase_reports,
    erase_responses,
    erase_signatures,
)
from app.services.customers.removal import MERGED, hold_addresses
from app.services.events.erasure import erase_events_of
from app.services.imports.erasure import erase_file, erase_imports_with_text

BATCH = 200
"""Number of records that a transaction clears, so that other writers do not wait long."""

PART = 20
"""Number of records that the worker clears at a time, until the transaction takes MOST_SECONDS."""

MOST_SECONDS = 0.1
"""How long a transaction of the worker begins further parts. All writers of SQLite wait for it."""

EVENTS_PER_RECORD = 10
"""Number of events that take as long as another record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """What names a person whose account is deleted.

    Attributes:
        customer_ids: the account, and those that were merged into it. Empty for a guest.
        emails: normalized addresses, which no other account has.
        counted: the normalized address for which uses without an address count from now on.
        with_orders: whether the person has orders, which become those of a guest. An erasure that
            keeps the sale has erased them before.
        coupon_emails: the addresses that coupons no longer name.
    """

    customer_ids: Sequence[int]
    emails: Sequence[str]
    counted: str = ""
    with_orders: bool = False
    coupon_emails: Sequence[str] = ()

    @property
    def of_account(self) -> ColumnElement[bool]:
        """The condition of the uses by the account."""
        return REDEMPTIONS.c.customer_id.in_(self.customer_ids)

    @property
    def persons(self) -> set[str]:
        """References to the person in stored responses."""
        customers = map(customer_person, self.customer_ids)
        return {*customers, *map(email_person, self.emails)}


class Place(NamedTuple):
    """Where the next batch begins: the step, and the last record of the step."""

    step: int = 0
    after: int = 0


class Done(NamedTuple):
    """What a step has done.

    Attributes:
        number: number of records.
        after: the last record. 0 if cleared records are not found again; None if none is left.
    """

    number: int
    after: int | None


Step = Callable[[Session, Traces, int, int], Done]
"""Function that clears up to a number of records, which is the last argument."""


def erase_customer(session: Session, account: UserRow) -> None:
    """Remove the personal data of an account that is being deleted, except from orders.

    Call this while the account is locked and still exists.
    """
    merged = session.execute(MERGED, {"kept": account["id"]}).all()
    own, billing = account["email_normalized"], comparable_email(account["billing_email"])
    others = {billing, *(each.email_normalized for each in merged)} - {own, "", None}
    emails = {own, *hold_addresses(session, account["id"], others)} - {""}
    erase_signatures(session, account)
    traces = Traces(
        customer_ids=[account["id"], *(each.id for each in merged)],
        emails=sorted(emails),
        counted=own,
        with_orders=True,
    )
    begin_erasure(session, traces)


def begin_erasure(session: Session, traces: Traces) -> None:
    """Clear the first batch of what names a person, and let the worker clear the rest.

    Call this while the account is locked and still exists.
    """
    note_erasure(session)
    if traces.with_orders:
        # Waits for concurrent updates of the orders, whose events and uses are then cleared, too.
        _lock_oldest(session, traces, BATCH)
        for condition in stored_guest_conditions(traces.emails):
            _lock_orders(session, condition)
    # What is left of a guest would not be hidden.
    size = BATCH if traces.customer_ids else INT64_MAX
    place, number = _clear(session, traces, Place(), size)
    if place:
        _leave_to_worker(session, traces, place, number)
    # Those of the account leave with it. Last, because this takes a lock after those of campaigns.
    erase_refused_carts(session, map(email_key, traces.emails))


def _leave_to_worker(session: Session, traces: Traces, place: Place, number: int) -> None:
    """Store an erasure that begins at a place, after a number of cleared records."""
    values = {
        "created_at": now(),
        "traces_encrypted": encrypt(orjson.dumps(asdict(traces)).decode()),
        "erased": number,
        **place._asdict(),
    }
    erasure_id = session.scalar(insert(ERASURES).values(values).returning(ERASURES.c.id))
    counted = erased_email(traces.counted)
    accounts = [
        {"customer_id": each, "erasure_id": erasure_id, "email_normalized": counted}
        for each in traces.customer_ids
    ]
    if accounts:
        session.execute(insert(ERASED_ACCOUNTS), accounts)


def clear_next_batch() -> bool:
    """Clear the next batch of the oldest erasure that no other worker clears.

    The records and the place of the next batch are one transaction, so nothing is lost or done
    twice if the worker is killed.

    Returns:
        Whether there was one.
    """
    if not fetch(select(ERASURES.c.id).limit(1)):
        return False
    return run_in_transaction(_clear_next)


def number_left() -> dict[str, int]:
    """Return the number of erasures that are not complete, and of the records that name them."""
    counted = {
        "erasures": select(ERASURES.c.id),
        "orders": select(ORDERS.c.id).where(ORDERS.c.customer_id.in_(ERASED_IDS)),
        "redemptions": select(REDEMPTIONS.c.id).where(REDEMPTIONS.c.customer_id.in_(ERASED_IDS)),
        "events": select(EVENTS.c.position).where(EVENTS.c.customer_id.in_(ERASED_IDS)),
    }
    numbers = (
        select(func.count()).select_from(each.subquery()).scalar_subquery()
        for each in counted.values()
    )
    return dict(zip(counted, fetch(select(*numbers))[0], strict=True))


def without_erased(record_id: int, stored: bytes) -> bytes:
    """Return a stored response without the persons whose erasure is not complete."""
    every = [_loaded(row.traces_encrypted) for row in fetch(select(ERASURES.c.traces_encrypted))]
    if not every:
        return stored
    of_record = IDEMPOTENCY_PERSONS.c.record_id == record_id
    persons = {row.person for row in fetch(select(IDEMPOTENCY_PERSONS.c.person).where(of_record))}
    of_erased = is_erased(ORDERS.c.customer_id)
    notes = select(ORDER_NOTES.c.id).join(ORDERS, ORDERS.c.id == ORDER_NOTES.c.order_id)
    erased = {order_person(row.id) for row in fetch(select(ORDERS.c.id).where(of_erased))}
    erased |= {note_person(row.id) for row in fetch(notes.where(of_erased))}
    erased = erased.union(*(each.persons for each in every))
    emails = {email_person(email) for each in every for email in each.coupon_emails}
    return blanked(stored, persons & erased, emails)


def _loaded(encrypted: str) -> Traces:
    return Traces(**orjson.loads(decrypt(encrypted) or "{}"))


def _clear_next(session: Session) -> bool:
    oldest = select(ERASURES).order_by(ERASURES.c.id).limit(1)
    rows = session.execute(oldest.with_for_update(skip_locked=True)).all()
    for row in rows:
        this = ERASURES.c.id == row.id
        traces = _loaded(row.traces_encrypted)
        note_erasure(session)
        place, number = _clear_for_a_time(session, traces, Place(row.step, row.after))
        if place is None and _has_more(session, traces):
            place = Place()  # of a transaction that was running when the account was deleted
        if place is None:
            session.execute(delete(ERASURES).where(this))
        else:
            values = {**place._asdict(), "erased": row.erased + number}
            session.execute(update(ERASURES).where(this).values(values))
    return bool(rows)


def _clear_for_a_time(session: Session, traces: Traces, place: Place) -> tuple[Place | None, int]:
    """Clear records for a short time, and return the same as ``_clear``."""
    end = monotonic() + MOST_SECONDS
    left: Place | None = place
    number = 0
    while left and number < BATCH:
        left, cleared = _clear(session, traces, left, min(PART, BATCH - number))
        number += cleared
        if monotonic() >= end:
            break
    return left, number


def _has_more(session: Session, traces: Traces) -> bool:
    tables = (ORDERS, REDEMPTIONS, EVENTS)
    found = (exists().where(each.c.customer_id.in_(traces.customer_ids)) for each in tables)
    return bool(session.scalar(select(or_(*found))))


def _clear(session: Session, traces: Traces, place: Place, size: int) -> tuple[Place | None, int]:
    """Clear up to a number of records.

    Returns:
        Where the next batch begins, None if all is cleared, and the number of records.
    """
    number = 0
    while place.step < len(_STEPS):
        if number >= size:
            return place, number
        done = _STEPS[place.step](session, traces, place.after, size - number)
        number += done.number
        place = Place(place.step + 1) if done.after is None else place._replace(after=done.after)
    return None, number


# --- the steps ---


def _use_step(condition: Callable[[Traces], ColumnElement[bool]]) -> Step:
    """Return the step that unlinks uses of coupons and keeps a hash of their addresses."""

    def step(session: Session, traces: Traces, after: int, size: int) -> Done:
        columns = REDEMPTIONS.c.id, REDEMPTIONS.c.order_id
        found = select(*columns).where(condition(traces), REDEMPTIONS.c.id > after)
        rows = session.execute(found.order_by(REDEMPTIONS.c.id).limit(size)).all()
        if rows:
            # An update of an order must not write an address back that it has read before.
            _lock_orders(session, ORDERS.c.id.in_({row.order_id for row in rows} - {None}))
            ids = [row.id for row in rows]
            these = is_one_of(REDEMPTIONS.c.id, literal(ids, IdList))
            # A released use that was read can have become another person's meanwhile.
            erase_redemptions(session, [these & condition(traces)], traces.counted, unlinked=True)
            if not traces.with_orders:
                record = IMPORTED_RECORDS.c
                marked = record.kind.in_(USES) & is_one_of(record.target_id, literal(ids, IdList))
                erased = update(IMPORTED_RECORDS).where(marked)
                session.execute(erased.values(fingerprint=ERASED_RECORD))
        return Done(len(rows), rows[-1].id if len(rows) == size else None)

    return step


def _lock_orders(session: Session, condition: ColumnElement[bool]) -> Sequence[Row[int, int]]:
    found = select(ORDERS.c.id, ORDERS.c.customer_id).where(condition)
    in_order = found.order_by(ORDERS.c.id).limit(BATCH)
    return session.execute(in_order.with_for_update()).all()


def _lock_oldest(session: Session, traces: Traces, size: int) -> list[Row[int, int]]:
    """Lock the oldest orders of the account, and return their IDs and customers."""
    held: list[Row[int, int]] = []
    # Sorted by ID, PostgreSQL would read the orders of all others before, and SQLite all that are
    # left for each part. Their dates are in an index.
    in_order = ORDERS.c.created_at, ORDERS.c.id
    for customer_id in traces.customer_ids:
        theirs = select(ORDERS.c.id).where(ORDERS.c.customer_id == customer_id).order_by(*in_order)
        held += _lock_orders(session, ORDERS.c.id.in_(theirs.limit(size - len(held))))
    return held


def _of_guests(traces: Traces) -> ColumnElement[bool]:
    keys = [*map(email_key, traces.emails)]
    return and_(REDEMPTIONS.c.customer_id.is_(None), REDEMPTIONS.c.email_normalized.in_(keys))


def _clear_orders(session: Session, traces: Traces, _: int, size: int) -> Done:
    """Make orders of the account those of a guest, whose events do not name it."""
    if not traces.with_orders:
        return Done(0, None)
    held = _lock_oldest(session, traces, size)
    if not held:
        return Done(0, None)
    # Some may have become those of another customer meanwhile.
    ids = [row.id for row in held if row.customer_id in traces.customer_ids]
    erase_reports(session, ids)
    these = is_one_of(ORDERS.c.id, literal(ids, IdList))
    session.execute(update(ORDERS).where(these).values(customer_id=None))
    return Done(len(held), None if len(held) < size else 0)


def _clear_guest_orders(session: Session, traces: Traces, after: int, size: int) -> Done:
    """Clear the events of orders of guests with an address of the account."""
    conditions = stored_guest_conditions(traces.emails) if traces.with_orders else []
    if not conditions:
        return Done(0, None)
    found = union_all(*(select(ORDERS.c.id).where(each) for each in conditions)).subquery()
    next_ids = select(found.c.id).where(found.c.id > after).distinct().order_by(found.c.id)
    ids = session.scalars(next_ids.limit(size)).all()
    if not ids:
        return Done(0, None)
    _lock_orders(session, ORDERS.c.id.in_(ids))
    erase_reports(session, ids)
    return Done(len(ids), ids[-1] if len(ids) == size else None)


def _clear_events(session: Session, traces: Traces, after: int, size: int) -> Done:
    """Clear the other events of the account, and those of what they report."""
    most = size * EVENTS_PER_RECORD
    positions, records = erase_events_of(session, traces.customer_ids, most, after)
    if any(records.values()):
        erase_reports(session, (), records)
    last = positions[-1] if len(positions) == most else None
    return Done(ceil(len(positions) / EVENTS_PER_RECORD), last)


def _clear_responses(session: Session, traces: Traces, after: int, size: int) -> Done:
    ids = erase_responses(session, traces.persons, traces.coupon_emails, after=after, size=size)
    return Done(len(ids), ids[-1] if len(ids) == size else None)


def _clear_imports(session: Session, traces: Traces, after: int, _: int) -> Done:
    """Clear the files of imports, one at a time. A part counts as a record."""
    if not traces.emails:
        return Done(0, None)
    if not after:
        erase_imports_with_text(session, traces.emails)
    import_id, parts = erase_file(session, traces.emails, after)
    return Done(parts, import_id or None)


def _steps() -> Iterator[Step]:
    yield _clear_imports
    yield _use_step(lambda traces: traces.of_account)
    yield _use_step(_of_guests)
    # Before orders of the account become such orders.
    yield _clear_guest_orders
    yield from (_clear_orders, _clear_events, _clear_responses)


_STEPS: Sequence[Step] = tuple(_steps())
