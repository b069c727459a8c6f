"""Customers as conditions and limits of coupons see them: accounts and e-mails (redemptions 6)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sqlalchemy import or_, select

from app.db.read_pool import Fetch
from app.db.search import comparable
from app.errors import ShopError
from app.models.tables import USERS
from app.numbers import INT64_MAX

ACCOUNTS = select(USERS.c.id, USERS.c.email, USERS.c.email_normalized, USERS.c.billing_email)
"""Selects what ``find_customer`` reads of accounts."""


@dataclass(frozen=True, slots=True)
class Customer:
    """Customer of a cart, an order or a redemption.

    Args:
        customer_id: the account, None for a guest.
        email: the given e-mail; may be empty.
        ids: accounts whose uses count: the account, and the one that has the given e-mail.
        emails_normalized: e-mails whose uses count: the given one and those of the accounts.
        emails: e-mails that ``customer_emails`` of a coupon may match: the given one, and the
            account's and its billing e-mail.
    """

    customer_id: int | None = None
    email: str = ""
    ids: Collection[int] = ()
    emails_normalized: Collection[str] = ()
    emails: Collection[str] = ()

    @property
    def is_known(self) -> bool:
        """Return whether uses by the customer can be counted at all."""
        return bool(self.ids or self.emails_normalized)

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the parameters of USES_BY_CUSTOMER."""
        return {"customer_ids": list(self.ids), "emails_normalized": list(self.emails_normalized)}


GUEST = Customer()


def find_customer(
    fetch: Fetch,
    customer_id: int,
    email: str,
    *,
    param: str,
    accounts: Mapping[int, Any] = MappingProxyType({}),
) -> Customer:
    """Return the customer that an ID and an e-mail identify (redemptions 2 and 6).

    Args:
        fetch: runs the statement.
        customer_id: 0 for a guest.
        email: may be empty.
        param: name of the ID in an error.
        accounts: rows of ACCOUNTS that have been read, by ID.

    Raises:
        ShopError: no account has this ID; status 400.
    """
    key = comparable(email)
    if not customer_id and not key:
        return GUEST
    rows = _accounts(fetch, customer_id, key, accounts.get(customer_id))
    found = {row.id: row for row in rows}
    if customer_id and customer_id not in found:
        raise ShopError("shop_api_invalid_customer_id", param=param).with_status(400)
    emails = [email] if email else []
    if customer_id:
        emails += [found[customer_id].email, found[customer_id].billing_email]
    keys = {key, *(row.email_normalized for row in rows)} - {""}
    return Customer(
        customer_id or None, email, tuple(found), tuple(keys), [each for each in emails if each]
    )


def _accounts(fetch: Fetch, customer_id: int, key: str, known: Any) -> Sequence[Any]:
    """Return the accounts with an ID or an e-mail.

    Args:
        known: the row of the account with the ID, or None if it has not been read.
    """
    if known is not None and key in {"", known.email_normalized}:
        return [known]  # no other account has the e-mail
    conditions = [USERS.c.email_normalized == key] if key else []
    if 0 < customer_id <= INT64_MAX:
        conditions.append(USERS.c.id == customer_id)
    rows: Sequence[Any] = fetch(ACCOUNTS.where(or_(*conditions))) if conditions else ()
    return rows
