"""The persons in stored responses, so that their data can be erased (docs/customers.md)."""

from collections.abc import Mapping
from typing import Any

from app.auth.hashes import keyed_hash
from app.conversions.emails import comparable_email

_CUSTOMERS = frozenset({"customer", "customers"})
_ORDERS = frozenset({"order", "orders"})
_NOTES = frozenset({"order_note", "order_notes"})
_REFUNDS = frozenset({"order_refund", "order_refunds"})


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


def persons_of(value: Any, name: str = "") -> set[str]:
    """Return the references to persons in a JSON value that has a name in its object."""
    if isinstance(value, list):
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
