"""The persons in stored responses, so that their data can be erased (docs/privacy.md)."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import ColumnElement, and_, literal

from app.auth.hashes import keyed_hash
from app.conversions.emails import ERASED_EMAIL, comparable_email
from app.db.search import email_key
from app.db.sql.functions import email_is
from app.models import ORDERS
from app.services.common.erased import of_erased_with

_CUSTOMERS = frozenset({"customer", "customers"})
_ORDERS = frozenset({"order", "orders"})
_NOTES = frozenset({"order_note", "order_notes"})
_REFUNDS = frozenset({"order_refund", "order_refunds"})
EMAIL_LISTS = frozenset({"customer_emails", "email_restrictions"})
"""Names of the addresses in the conditions of a coupon."""


def customer_person(customer_id: int) -> str:
    """Return the reference to a customer."""
    return f"customer:{customer_id}"


def order_person(order_id: int) -> str:
    """Return the reference to the guest of an order."""
    return f"order:{order_id}"


def note_person(note_id: int) -> str:
    """Return the reference to the persons that an order note can name."""
    return f"order_note:{note_id}"


def email_person(email: str) -> str:
    """Return the reference to the owner of an e-mail address, as a keyed hash."""
    return f"email:{keyed_hash(comparable_email(email))}"


def persons_of(value: object, name: str = "") -> set[str]:
    """Return the references to persons in a JSON value that has a name in its object."""
    if isinstance(value, list):
        if name in EMAIL_LISTS:
            return {email_person(email) for email in value if isinstance(email, str)}
        return set().union(*(persons_of(item, name) for item in value))
    if isinstance(value, Mapping):
        found = set().union(*(persons_of(inner, key) for key, inner in value.items()))
        if isinstance(id_ := value.get("id"), int) and id_ > 0:
            found |= {customer_person(id_)} if name in _CUSTOMERS else set()
            found |= {order_person(id_)} if name in _ORDERS else set()
            found |= {note_person(id_)} if name in _NOTES else set()
            found |= {order_person(value.get("order_id", 0))} if name in _REFUNDS else set()
        return found
    if name in {"customer_id", "user_id"} and isinstance(value, int) and value > 0:
        return {customer_person(value)}
    if name == "email" and isinstance(value, str) and value:
        return {email_person(value)}
    return set()


def with_erased_emails(value: object, persons: Collection[str], name: str = "") -> object:
    """Return a JSON value in which coupons no longer name the e-mail addresses of some persons."""
    if isinstance(value, Mapping):
        return {key: with_erased_emails(inner, persons, key) for key, inner in value.items()}
    if not isinstance(value, list):
        return value
    if name in EMAIL_LISTS:
        return without_emails(value, persons)
    return [with_erased_emails(inner, persons) for inner in value]


def without_emails(emails: Sequence[object], persons: Collection[str]) -> list[object]:
    """Return the addresses in the conditions of a coupon, without those of some persons.

    ERASED_EMAIL replaces them, so that the coupon does not become open to everyone.
    """
    return [
        ERASED_EMAIL if isinstance(email, str) and email_person(email) in persons else email
        for email in emails
    ]


def guest_conditions(emails: Collection[str]) -> list[ColumnElement[bool]]:
    """Return conditions that an order is one of a guest with one of the addresses.

    Each of them has an index. Orders of an account that was deleted are such orders, too.
    """
    return [
        *stored_guest_conditions(emails),
        *(of_erased_with(ORDERS.c, email) for email in emails),
    ]


def stored_guest_conditions(emails: Collection[str]) -> list[ColumnElement[bool]]:
    """Return the same without orders that still name an account that was deleted."""
    found: list[ColumnElement[bool]] = []
    for email in emails:
        is_guest = ORDERS.c.customer_id.is_(None)
        found += [
            and_(is_guest, email_is(ORDERS.c.billing_email, literal(email))),
            and_(is_guest, ORDERS.c.billing_email_normalized == email_key(email)),
        ]
    return found
