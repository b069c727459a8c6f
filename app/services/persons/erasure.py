"""Erasure of a person: its preview and the erasure itself (people 5)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from flask import current_app
from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    cast,
    delete,
    func,
    or_,
    select,
    union,
    update,
)
from sqlalchemy.orm import Session

from app.auth.principals import Principal
from app.catalog import TRASH, Change, ErasedPerson, current_catalog
from app.conversions.emails import comparable_email
from app.db.errors import TryAgain
from app.db.read_pool import Fetch, fetch
from app.db.records import Record, row_dicts
from app.db.session import (
    now,
    reading_own_writes,
    reading_session,
    run_in_transaction,
)
from app.errors import Sentence, ShopError
from app.models import (
    ADMIN_SESSIONS,
    API_KEYS,
    COUPON_REFUSALS,
    COUPONS,
    DOWNLOADS,
    MERGED_ACCOUNTS,
    ORDER_NOTES,
    ORDER_REFUNDS,
    ORDERS,
    REDEMPTIONS,
    USERS,
)
from app.models.order import OrderRow
from app.models.refused_cart import REFUSED_CARTS
from app.models.user import UserRow
from app.services.campaigns.locks import hold_campaigns
from app.services.common.erased import USE_COLUMNS
from app.services.common.persons import email_person, with_erased_emails, without_emails
from app.services.common.roles import capabilities_by_user
from app.services.customers import columns
from app.services.customers.erasure import (
    erase_redemptions,
    erase_reports,
    erase_signatures,
    uses_of,
)
from app.services.customers.removal import MERGED, hold_addresses, remove_account
from app.services.customers.traces import Traces, begin_erasure
from app.services.events.erasure import rewrite_events
from app.services.events.hooks import notify, publish_events
from app.services.events.outbox import NewEvent
from app.services.imports.erasure import imports_with
from app.services.orders.locks import lock_orders
from app.services.persons.lookup import Person, find_person
from app.services.persons.orders import erase_orders, mark_erased

BATCH = 200
"""Maximum number of orders that a request erases."""

NAMED = 20
"""Maximum number of open orders that a reason names."""

CANNOT = "shop_api_user_cannot_erase_person"

REASONS = {
    "open_orders": "Open orders: {orders}.",
    "is_caller": "You cannot erase your own account.",
}
"""Why a person cannot be erased: the message by its code."""

Check = Callable[[Mapping[str, Any]], None]
"""Function that takes the preview and raises ShopError if it has changed."""


@dataclass(frozen=True, slots=True)
class FoundCoupons:
    """Coupons whose conditions name an address, read outside of locks.

    Attributes:
        emails: the addresses that were searched for.
    """

    emails: frozenset[str]
    coupons: Sequence[int]


def preview(actor: Principal, names: Mapping[str, object]) -> Record:
    """Return what an erasure of a person would erase.

    Raises:
        ShopError: the person is unknown, or a right is missing.
    """
    person = find_person(fetch, names)
    with reading_session() as session:
        _require(session, actor, person)
    return _preview(fetch, actor, person, coupons_with(fetch, _replaced(fetch, person)))


def erase(actor: Principal, names: Mapping[str, object], check: Check | None = None) -> Record:
    """Erase up to BATCH orders of a person, and the person with the last ones.

    Returns:
        What was erased, without addresses.

    Raises:
        ShopError: the person is unknown, a right is missing, the person cannot be erased, or
            ``check`` fails.
    """
    coupons = FoundCoupons(frozenset(), ())

    def search(person: Person) -> None:
        nonlocal coupons
        coupons = coupons_with(fetch, _replaced(fetch, person))

    def work(session: Session) -> Record:
        with reading_own_writes():
            person = find_person(fetch, names, "person.")
            _require(session, actor, person)
            orders, is_complete = _lock_orders(session, person)
            locked = [order["id"] for order in orders]
            account = _lock_account(session, person, locked) if is_complete else None
            emails = _replaced(fetch, person) if is_complete else frozenset()
            if not emails <= coupons.emails:
                raise TryAgain(before=partial(search, person))
            if check:
                check(_preview(fetch, actor, person, coupons))
            if reasons := _reasons(fetch, actor, person):
                raise ShopError("shop_api_cannot_erase_person", reasons=reasons)
            return _Erasure(session, actor, person, orders, is_complete, coupons).run(account)

    search(find_person(fetch, names, "person."))
    return run_in_transaction(work)


def _require(session: Session, actor: Principal, person: Person) -> None:
    held: Collection[Any] = ()
    if person.customer_id:
        held = capabilities_by_user(session, [person.customer_id]).get(person.customer_id, ())
    actor.require(CANNOT, *held)


def _left(person: Person) -> ColumnElement[bool]:
    """Return the condition of the orders of a person that are not erased."""
    return person.has_order & ORDERS.c.erased_at.is_(None)


def _lock_orders(session: Session, person: Person) -> tuple[list[OrderRow], bool]:
    """Lock the oldest orders that are not erased; return them, and whether these are all."""
    oldest = select(ORDERS.c.id).where(_left(person)).order_by(ORDERS.c.created_at, ORDERS.c.id)
    ids = list(session.scalars(oldest.limit(BATCH + 1)))
    orders = lock_orders(session, ids[:BATCH])
    these = select(ORDERS.c.id).where(_left(person), ORDERS.c.id.in_(orders))
    if len(list(session.scalars(these))) < len(ids[:BATCH]):
        raise TryAgain  # an order has another customer since it was found
    return list(orders.values()), len(ids) <= BATCH


def _lock_account(session: Session, person: Person, locked: Collection[int]) -> UserRow | None:
    """Lock the account, so that no order is added to those that are locked.

    Raises:
        TryAgain: an order was added meanwhile, or the account has changed.
    """
    if person.customer_id is None:
        return None
    this = select(USERS).where(USERS.c.id == person.customer_id)
    found: list[UserRow] = row_dicts(session.execute(this.with_for_update()))
    if not found or find_person(fetch, {"customer_id": person.customer_id}) != person:
        raise TryAgain
    further = select(ORDERS.c.id).where(_left(person), ORDERS.c.id.not_in(locked)).limit(1)
    if fetch(further):
        raise TryAgain
    merged = session.execute(MERGED, {"kept": person.customer_id})
    others = {each.email_normalized for each in merged} - {found[0]["email_normalized"], None}
    if hold_addresses(session, person.customer_id, others) != others & {*person.emails}:
        raise TryAgain
    return found[0]


def _reasons(fetch: Fetch, actor: Principal, person: Person) -> list[dict[str, object]]:
    """Return why a person cannot be erased."""
    reasons = dict[str, str]()
    erasable = [*current_app.config["SHOP_ERASABLE_STATUSES"], TRASH]
    is_open = ORDERS.c.status.not_in(erasable)
    found = select(ORDERS.c.order_number, ORDERS.c.status).where(_left(person), is_open)
    if rows := fetch(found.order_by(ORDERS.c.id).limit(NAMED + 1)):
        shown = ", ".join(f"{row.order_number} ({row.status})" for row in rows[:NAMED])
        reasons["open_orders"] = shown + (", …" if len(rows) > NAMED else "")
    if person.customer_id == actor.user_id:
        reasons["is_caller"] = ""
    return [
        {
            "code": code,
            "message": Sentence(REASONS[code], orders=orders),
        }
        for code, orders in reasons.items()
    ]


def _preview(fetch: Fetch, actor: Principal, person: Person, coupons: FoundCoupons) -> Record:
    emails = sorted(person.emails)
    left = select(ORDERS.c.id).where(_left(person))
    numbers = _numbers(fetch, person, left) | {"coupons": len(coupons.coupons)}
    return {
        "customer_id": person.customer_id,
        "emails": emails,
        "other_emails": other_emails(fetch, person),
        "complete": not any(numbers.values()),
        "erased": numbers,
        "reasons": _reasons(fetch, actor, person),
    }


def other_emails(fetch: Fetch, person: Person) -> list[str]:
    """Return the billing e-mails of the account and of its orders that are not its addresses."""
    of_orders = select(ORDERS.c.billing_email).where(person.has_order)
    of_account = select(USERS.c.billing_email).where(USERS.c.id.in_(person.customer_ids))
    found = {comparable_email(row[0]) for row in fetch(union(of_orders, of_account))}
    return sorted(found - {"", *person.emails})


def _numbers(
    fetch: Fetch, person: Person, orders: Select[int], *, is_complete: bool = True
) -> dict[str, int]:
    """Return how many records of each kind an erasure of some orders erases.

    Args:
        orders: a select of their IDs.
        is_complete: whether the rest of the person is erased, too.
    """
    erased = person if is_complete else Person()
    uses = REDEMPTIONS.c.order_id.in_(orders), *uses_of(erased.customer_ids, erased.email_keys)
    # Uses by the account are erased with the account.
    kept = () if is_complete else person.customer_ids
    of_account, email = USE_COLUMNS["customer_id"], USE_COLUMNS["email"]
    has_person = or_(
        of_account.is_(None) & (email != ""), of_account.is_not(None) & of_account.not_in(kept)
    )
    keys = API_KEYS.c.user_id.in_(erased.customer_ids)
    found = {
        "customers": select(USERS.c.id).where(USERS.c.id.in_(erased.customer_ids)),
        "orders": orders,
        "order_notes": select(ORDER_NOTES.c.id).where(ORDER_NOTES.c.order_id.in_(orders)),
        "order_refunds": select(ORDER_REFUNDS.c.id).where(ORDER_REFUNDS.c.order_id.in_(orders)),
        "downloads": select(DOWNLOADS.c.id).where(DOWNLOADS.c.order_id.in_(orders)),
        "redemptions": select(REDEMPTIONS.c.id).where(or_(*uses), has_person),
        "keys": select(API_KEYS.c.id).where(keys),
        "sessions": select(ADMIN_SESSIONS.c.id).where(
            ADMIN_SESSIONS.c.key_id.in_(select(API_KEYS.c.id).where(keys))
        ),
    }
    counted = [
        select(func.count()).select_from(each.subquery()).scalar_subquery()
        for each in found.values()
    ]
    numbers = dict(zip(found, fetch(select(*counted))[0], strict=True))
    return numbers | {"imports": len(imports_with(fetch, erased.emails))}


# --- coupons ---


def _replaced(fetch: Fetch, person: Person) -> frozenset[str]:
    """Return the addresses of a person that coupons no longer name: not those of other accounts."""
    others = select(USERS.c.email_normalized).where(
        USERS.c.email_normalized.in_(person.email_keys), USERS.c.id.not_in(person.customer_ids)
    )
    merged = select(MERGED_ACCOUNTS.c.email_normalized).where(
        MERGED_ACCOUNTS.c.email_normalized.in_(person.email_keys),
        MERGED_ACCOUNTS.c.customer_id.not_in(person.customer_ids),
    )
    return frozenset(person.emails) - {row[0] for row in fetch(union(others, merged))}


def _with_addresses() -> Select[object]:
    has_any = cast(COUPONS.c.customer_emails, Text) != "[]"
    return select(COUPONS.c.id, COUPONS.c.customer_emails).where(has_any)


def coupons_with(fetch: Fetch, emails: frozenset[str]) -> FoundCoupons:
    """Return the coupons whose conditions name one of the addresses, also in the trash."""
    persons = {*map(email_person, emails)}
    rows = fetch(_with_addresses().order_by(COUPONS.c.id)) if emails else ()
    found = [
        row.id
        for row in rows
        if without_emails(row.customer_emails, persons) != row.customer_emails
    ]
    return FoundCoupons(emails, found)


def _erase_in_coupons(session: Session, coupons: FoundCoupons) -> list[Change]:
    """Replace the addresses in the conditions of coupons, and in their events."""
    persons = {*map(email_person, coupons.emails)}
    these = select(COUPONS).where(COUPONS.c.id.in_(coupons.coupons)).order_by(COUPONS.c.id)
    rows = row_dicts(session.execute(these.with_for_update())) if coupons.coupons else []
    changes, timestamp = [], now()
    for coupon in rows:
        written = {
            "customer_emails": without_emails(coupon["customer_emails"], persons),
            "updated_at": timestamp,
            "edited_at": None,
        }
        session.execute(update(COUPONS).where(COUPONS.c.id == coupon["id"]).values(written))
        after = {**coupon, **written}
        changes.append(Change("coupon.updated", after, after))
    convert = partial(with_erased_emails, persons=persons)
    rewrite_events(session, "coupon", coupons.coupons, convert)
    return changes


# --- the erasure ---


@dataclass(frozen=True, slots=True)
class _Erasure:
    """Erasure of orders that are locked, and of the rest of the person with the last ones."""

    session: Session
    actor: Principal
    person: Person
    orders: Sequence[OrderRow]
    is_complete: bool
    coupons: FoundCoupons

    def run(self, account: UserRow | None) -> Record:
        """Write the erasure, and return what was erased."""
        session, person = self.session, self.person
        orders = select(ORDERS.c.id).where(ORDERS.c.id.in_([each["id"] for each in self.orders]))
        erased = _numbers(fetch, person, orders, is_complete=self.is_complete)
        # Refused codes alone are not counted, and are worth an event.
        refused = select(REFUSED_CARTS.c.id).where(person.has_refusal).limit(1)
        is_reported = any(erased.values()) or bool(fetch(refused))
        replaced = self._erase_traces(account["email_normalized"] if account else "")
        changes = erase_orders(session, self.orders) + replaced
        if account:
            erase_signatures(session, account)
            remove_account(session, self.actor, account["id"])
            changes.append(Change("customer.deleted", columns.public_account(account), None))
        given = ErasedPerson(
            account["id"] if account else None, self._emails, [each["id"] for each in self.orders]
        )
        hooks = current_catalog().person_hooks.values()
        erased |= {"coupons": len(replaced), **{each.name: each.erase(given) for each in hooks}}
        notify(session, self.actor, changes)
        shown = {
            "customer_id": person.customer_id,
            "complete": self.is_complete,
            "erased": erased,
        }
        if is_reported or any(erased.values()):
            self._publish(shown)
        return shown

    @property
    def _emails(self) -> Sequence[str]:
        """The addresses that are erased: those of the person with the last orders."""
        return self.person.emails if self.is_complete else ()

    def _erase_traces(self, counted: str) -> list[Change]:
        """Erase what is outside of orders and of the account; return the changes of coupons.

        Args:
            counted: the normalized address of the account.
        """
        session, person = self.session, self.person
        ids = [order["id"] for order in self.orders]
        uses: list[ColumnElement[bool]] = [REDEMPTIONS.c.order_id.in_(ids)]
        every = uses
        if self.is_complete:
            every = [*uses, *uses_of(person.customer_ids, person.email_keys)]
        campaigns = union(*(select(REDEMPTIONS.c.campaign_id).where(each) for each in every))
        hold_campaigns(session, campaigns)
        changes = _erase_in_coupons(session, self.coupons) if self.is_complete else []
        mark_erased(session, person.customer_ids if self.is_complete else (), ids, uses)
        counted = counted or next(iter(person.email_keys), "")
        erase_redemptions(session, uses, counted)
        erase_reports(session, ids)
        if self.is_complete:
            traces = Traces(
                customer_ids=person.customer_ids,
                emails=person.emails,
                counted=counted,
                coupon_emails=[*self.coupons.emails],
            )
            begin_erasure(session, traces)
        for email in self._emails:  # a customer can enter an address as a code
            is_typed = COUPON_REFUSALS.c.code.contains(email[:100], autoescape=True)
            session.execute(delete(COUPON_REFUSALS).where(is_typed))
            is_typed = REFUSED_CARTS.c.code.contains(email[:100], autoescape=True)
            session.execute(delete(REFUSED_CARTS).where(is_typed))
        return changes

    def _publish(self, shown: Record) -> None:
        """Write the event of the erasure, with IDs and numbers only."""
        ids = [order["id"] for order in self.orders]
        record_id = self.person.customer_id or min(ids, default=0)
        data = {"person": {"id": record_id, **shown, "order_ids": ids}}
        event = NewEvent("person.erased", record_id, data)
        publish_events(self.session, self.actor, [event])
