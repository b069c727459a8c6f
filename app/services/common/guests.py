"""Orders of guests by their e-mail address (people 3)."""

from collections.abc import Collection

from sqlalchemy import ColumnElement, and_, literal

from app.db.search import email_key
from app.db.sql.functions import email_is
from app.models import ORDERS
from app.services.common.erased import of_erased_with


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
