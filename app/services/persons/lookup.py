"""Who is a person: an account, its addresses and its orders, or a guest (people 3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, case, or_, select, union

from app.conversions.emails import comparable_email
from app.conversions.numbers import INT64_MAX
from app.db.read_pool import Fetch
from app.db.search import email_key
from app.errors import InvalidParams, Sentence, ShopError
from app.models import MERGED_ACCOUNTS, ORDERS, REDEMPTIONS, USERS
from app.models.refused_cart import REFUSED_CARTS
from app.services.common.erased import owner
from app.services.common.locks import IS_TAKEN
from app.services.common.persons import guest_conditions

NAMES = ("customer_id", "email", "order_id")
"""What names a person: exactly one of them."""


@dataclass(frozen=True)
class Person:
    """A person. Two persons who share an address cannot be told apart.

    Attributes:
        customer_id: the account; None for a guest.
        customer_ids: the account, and the accounts that were merged into it.
        emails: the e-mail addresses, lower-cased. Not the billing e-mail of the account, which the
            customer can set to the address of anybody.
        order_id: the only order of a guest without an address; otherwise None.
    """

    customer_id: int | None = None
    customer_ids: tuple[int, ...] = ()
    emails: tuple[str, ...] = ()
    order_id: int | None = None

    @property
    def email_keys(self) -> list[str]:
        """The addresses in the form in which uses of coupons are compared."""
        return [email_key(email) for email in self.emails]

    @cached_property
    def has_order(self) -> ColumnElement[bool]:
        """The condition that an order belongs to the person, also in the trash."""
        found = [ORDERS.c.customer_id == self.customer_id] if self.customer_id else []
        found += guest_conditions(self.emails)
        if self.order_id is not None:
            found.append(ORDERS.c.id == self.order_id)
        if not found:  # an account without an order and without an address
            return ORDERS.c.id.is_(None)
        return ORDERS.c.id.in_(union(*(select(ORDERS.c.id).where(each) for each in found)))

    @property
    def has_refusal(self) -> ColumnElement[bool]:
        """The condition that a code was refused for the person."""
        of_guest = REFUSED_CARTS.c.email_normalized.in_(self.email_keys)
        return or_(REFUSED_CARTS.c.customer_id.in_(self.customer_ids), of_guest)

    @cached_property
    def has_redemption(self) -> ColumnElement[bool]:
        """The condition that a use of a coupon is one by the person or of one of the orders."""
        of_guest = REDEMPTIONS.c.email_normalized.in_(self.email_keys)
        return or_(
            REDEMPTIONS.c.customer_id.in_(self.customer_ids),
            and_(REDEMPTIONS.c.customer_id.is_(None), of_guest),
            REDEMPTIONS.c.order_id.in_(select(ORDERS.c.id).where(self.has_order)),
        )


# Without the address of a merged account that another account has now.
_OWN_EMAIL = case((IS_TAKEN, ""), else_=MERGED_ACCOUNTS.c.email)
_ACCOUNT = (
    select(USERS.c.email, MERGED_ACCOUNTS.c.id, _OWN_EMAIL.label("merged_email"))
    .outerjoin_from(USERS, MERGED_ACCOUNTS, MERGED_ACCOUNTS.c.customer_id == USERS.c.id)
    .where(USERS.c.id == bindparam("customer_id"))
    .order_by(MERGED_ACCOUNTS.c.id)
)


def find_person(fetch: Fetch, names: Mapping[str, Any], place: str = "") -> Person:
    """Return the person whom exactly one of NAMES names.

    Args:
        place: the beginning of a name in an error.

    Raises:
        InvalidParams: none or several of them are given.
        ShopError: no account or order has the ID, or nothing is stored of the e-mail address.
    """
    given = {name: names[name] for name in NAMES if names.get(name) is not None}
    if len(given) != 1:
        param = next(iter(given), NAMES[0])
        reason = Sentence("exactly one of {0} must be given.", ", ".join(NAMES))
        raise InvalidParams({place + param: reason})
    ((name, value),) = given.items()
    if name == "customer_id":
        return _account(fetch, value)
    if name == "order_id":
        return _of_order(fetch, value)
    return _with_email(fetch, value)


def addresses_of(*emails: str) -> tuple[str, ...]:
    """Return the e-mail addresses of an account: its present one, and those of merged accounts.

    Any of them may be empty.
    """
    return tuple(dict.fromkeys(filter(None, map(comparable_email, emails))))


def _account(fetch: Fetch, customer_id: int) -> Person:
    rows = fetch(_ACCOUNT, {"customer_id": customer_id}) if 0 < customer_id <= INT64_MAX else ()
    if not rows:
        raise ShopError("shop_api_invalid_customer")
    merged = [each for each in rows if each.id is not None]
    emails = addresses_of(rows[0].email, *(each.merged_email for each in merged))
    return Person(customer_id, (customer_id, *(each.id for each in merged)), emails)


def _of_order(fetch: Fetch, order_id: int) -> Person:
    """Return the account of an order, or the guest. The address of a guest names no account."""
    account = owner(ORDERS.c.customer_id).label("customer_id")
    found = select(account, ORDERS.c.billing_email).where(ORDERS.c.id == order_id)
    rows = fetch(found) if 0 < order_id <= INT64_MAX else ()
    if not rows:
        raise ShopError("shop_api_invalid_order_id")
    if rows[0].customer_id is not None:
        return _account(fetch, rows[0].customer_id)
    email = comparable_email(rows[0].billing_email)
    return Person(emails=(email,)) if email else Person(order_id=order_id)


def _with_email(fetch: Fetch, given: str) -> Person:
    email = comparable_email(given)
    of_account = select(USERS.c.id).where(USERS.c.email_normalized == email)
    merged = select(MERGED_ACCOUNTS.c.customer_id.label("id"))
    merged = merged.where(MERGED_ACCOUNTS.c.email_normalized == email, ~IS_TAKEN)
    accounts = fetch(of_account.limit(1)) or fetch(merged) if email else ()
    if accounts:
        return _account(fetch, accounts[0].id)
    person = Person(emails=(email,))
    known = (
        select(ORDERS.c.id).where(person.has_order),
        select(REDEMPTIONS.c.id).where(
            REDEMPTIONS.c.customer_id.is_(None),
            REDEMPTIONS.c.email_normalized.in_(person.email_keys),
        ),
        select(REFUSED_CARTS.c.id).where(person.has_refusal),
    )
    if not email or not any(fetch(each.limit(1)) for each in known):
        raise ShopError("shop_api_invalid_person")
    return person
