"""Customers as conditions and limits of coupons see them: accounts and e-mails (redemptions 6)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, exists, func, literal, or_, select, union_all

from app.auth.api_keys import authentication_error
from app.auth.principals import Principal
from app.catalog import RedemptionEffect, current_catalog
from app.conversions.numbers import INT64_MAX
from app.db.read_pool import Fetch
from app.db.search import email_key
from app.db.sql.functions import email_is
from app.db.sql.types import Id
from app.errors import ShopError
from app.models import MERGED_ACCOUNTS, ORDERS, USERS
from app.pricing.carts import Cart, CartItem, CouponTerms
from app.services.common.erased import ERASED, erased_email, of_erased_with
from app.services.common.locks import ACCOUNTS, IS_TAKEN, AccountRow


@dataclass(frozen=True, slots=True)
class Customer:
    """Customer of a cart, an order or a redemption.

    Args:
        customer_id: the account, None for a guest.
        email: the given e-mail; may be empty.
        ids: accounts whose uses count: the account, and the one that has the given e-mail.
        emails_normalized: e-mails whose uses count: the given one and those of the accounts and of
            the accounts that were merged into them.
        emails: e-mails that ``customer_emails`` of a coupon may match: the given one, and the
            account's and its billing e-mail.
        labels: tags of the account, and its roles as ``role:wholesale`` (campaigns 5).
        owners: number of the accounts that have one of these e-mails.
        merges: number of the accounts that were merged into the accounts (people 6), and of their
            e-mails that no account has.
    """

    customer_id: int | None = None
    email: str = ""
    ids: Collection[int] = ()
    emails_normalized: Collection[str] = ()
    emails: Collection[str] = ()
    labels: Collection[str] = ()
    owners: int = 0
    merges: int = 0

    @property
    def is_known(self) -> bool:
        """Return whether uses by the customer can be counted at all."""
        return bool(self.ids or self.emails_normalized)

    @property
    def parameters(self) -> dict[str, object]:
        """Return the parameters of the uses by the customer."""
        emails = list(self.emails_normalized)  # or the hash of an erased address
        erased = map(erased_email, emails)
        return {
            "customer_ids": list(self.ids),
            "emails_normalized": [*emails, *erased],
            "owners": self.owners,
            "merges": self.merges,
        }


def counted_customer(customer: Customer, stored: Mapping[str, object]) -> Customer:
    """Return the customer for whom a stored use counts when it is taken again.

    Args:
        customer: the current customer of the order or of the redemption.
        stored: the redemption. If its address was erased, it still counts for it.
    """
    kept = email_columns(customer.email, stored, customer.customer_id)["email_normalized"]
    if not kept.startswith(ERASED):
        return customer
    return replace(customer, emails_normalized={kept, *customer.emails_normalized})


def email_columns(
    email: str, stored: Mapping[str, Any] | None = None, customer_id: int | None = None
) -> dict[str, str]:
    """Return the columns of a redemption for an e-mail address.

    Args:
        email: the address of the order or the request; may be empty.
        stored: the redemption, if it exists. If its address was erased, only another address
            replaces the hash. If a merge gave it the address of a removed account, it keeps it
            while it belongs to the same account without an address (people 6).
        customer_id: the account of the redemption from now on.
    """
    key = email_key(email)
    kept: str = stored["email_normalized"] if stored and not stored["email"] else ""
    if kept.startswith(ERASED):
        stays = not key or kept == erased_email(key)
    else:
        stays = stored is not None and not key and stored["customer_id"] == customer_id
    if kept and stays:
        return {"email": "", "email_normalized": kept}
    return {"email": email, "email_normalized": key}


GUEST = Customer()


def guest_of(email: str) -> Customer:
    """Return the guest with an address whose accounts are not read, so that not all uses count.

    Its number of owners is never current, so that a limit per customer that a coupon gets in
    between lets the transaction start again.
    """
    key = email_key(email)
    return Customer(None, email, (), (key,), [email], owners=-1) if key else GUEST


# Their IDs first, so that each database uses an index for each way to have the address.
_own = USERS.alias()
_with_email = (
    select(_own.c.id).where(_own.c.email_normalized == bindparam("key")),
    select(MERGED_ACCOUNTS.c.customer_id).where(
        MERGED_ACCOUNTS.c.email_normalized == bindparam("key"), ~IS_TAKEN
    ),
)
# No two accounts have an address, and a merged one counts only while no account has it.
ACCOUNT_WITH_EMAIL = func.coalesce(*(each.scalar_subquery() for each in _with_email))
"""The ID of the account that has the address of the parameter ``key``, also by a merge, or NULL."""
_with_id = select(bindparam("customer_id", type_=Id))
_WITH = {
    frozenset({"key"}): ACCOUNTS.where(USERS.c.id.in_(union_all(*_with_email))),
    frozenset({"customer_id"}): ACCOUNTS.where(USERS.c.id == bindparam("customer_id")),
    frozenset({"key", "customer_id"}): ACCOUNTS.where(
        USERS.c.id.in_(union_all(*_with_email, _with_id))
    ),
}
"""Selects of accounts, by the names of their parameters."""


def require_customer_access(actor: Principal, customer_id: int) -> None:
    """Raise ShopError if a key may not name customers (decisions 2).

    The reasons of a coupon reveal the e-mail address and the uses of a customer. Call this before
    the lookup, so that the response does not depend on whether the customer exists.

    Args:
        customer_id: the ID in the request; 0 for a guest.
    """
    if not customer_id or actor.resources is None or actor.resources & {"customers", "orders"}:
        return
    reason = (
        "This API key is not valid for the resource customers or orders. A customer_id requires "
        "one of them."
    )
    raise authentication_error(reason)


def find_customer(
    fetch: Fetch,
    customer_id: int,
    email: str,
    *,
    param: str,
    accounts: Mapping[int, AccountRow] = MappingProxyType({}),
) -> Customer:
    """Return the customer that an ID and an e-mail identify (redemptions 2 and 6).

    Args:
        customer_id: 0 for a guest.
        email: may be empty.
        param: name of the ID in an error.
        accounts: accounts that have been read, by ID.

    Raises:
        ShopError: no account has this ID; status 400.
    """
    key = email_key(email)
    if not customer_id and not key:
        return GUEST
    rows = _accounts(fetch, customer_id, key, accounts.get(customer_id))
    if customer_id and all(row.id != customer_id for row in rows):
        raise ShopError("shop_api_invalid_customer_id", param=param).with_status(400)
    return customer_of(customer_id, email, rows)


def customer_of(customer_id: int, email: str, rows: Sequence[AccountRow]) -> Customer:
    """Return the customer with an ID and an e-mail, each of which may be missing.

    Args:
        rows: the accounts that the two identify.
    """
    found = {row.id: row for row in rows}
    emails, labels = [email], []
    if customer_id:  # the account of an address that somebody types gives nothing
        account = found[customer_id]
        emails += [account.email, account.billing_email]
        labels = [*(account.tags or ()), *(f"role:{role.lower()}" for role in account.roles or ())]
    merged = [address for row in rows for address in row.merged or ()]
    keys = {email_key(email), *(row.email_normalized for row in rows), *merged} - {""}
    return Customer(
        customer_id=customer_id or None,
        email=email,
        ids=tuple(found),
        emails_normalized=tuple(keys),
        emails=[*filter(None, emails)],
        labels=labels,
        owners=sum(bool(row.email_normalized) for row in rows),
        merges=len(merged) + sum(map(bool, merged)),
    )


def cart_of(
    fetch: Fetch,
    customer: Customer,
    coupons: Iterable[CouponTerms | None],
    items: Sequence[CartItem] = (),
    order: Mapping[str, object] | None = None,
    *,
    changed: Iterable[Mapping[str, object]] = (),
) -> Cart:
    """Return the cart of a customer, with what the terms of some coupons ask of the customer.

    Args:
        order: the stored order whose cart it is, if there is one.
        changed: orders that the transaction has not written yet.
    """
    asks = customer.is_known and any(each and each.first_order_only for each in coupons)
    has_ordered = asks and _has_ordered(fetch, customer, order, changed)
    return Cart(items, customer.emails, customer.labels, has_ordered)


def _has_ordered(
    fetch: Fetch,
    customer: Customer,
    order: Mapping[str, object] | None,
    changed: Iterable[Mapping[str, object]],
) -> bool:
    """Return whether a customer has an order that counts and was created before an order.

    Orders of the accounts count, and those of guests with one of the e-mails (campaigns 5).
    """
    effects = current_catalog().redemption_effects.items()
    confirming = [status for status, effect in effects if effect == RedemptionEffect.CONFIRM]
    each = ORDERS.c
    statuses, others = [*confirming, "refunded"], list(changed)
    if order and any(
        other["status"] in statuses
        and (other["created_at"], other["id"]) < (order["created_at"], order["id"])
        and _is_of(customer, other)
        for other in others
    ):
        return True
    counts: list[ColumnElement[bool]] = [each.status.in_(statuses)]
    if others:
        counts.append(each.id.not_in([other["id"] for other in others]))
    if order:
        is_earlier = or_(each.created_at < order["created_at"], each.id < order["id"])
        counts += [each.created_at <= order["created_at"], is_earlier]
    theirs: list[ColumnElement[bool]] = [each.customer_id == account for account in customer.ids]
    for email in customer.emails_normalized:
        theirs += [
            and_(each.customer_id.is_(None), email_is(each.billing_email, literal(email))),
            and_(each.customer_id.is_(None), each.billing_email_normalized == email),
            of_erased_with(each, email),
        ]
    found = or_(*(exists().where(is_theirs, *counts) for is_theirs in theirs))
    return bool(fetch(select(found))[0][0])


def _is_of(customer: Customer, order: Mapping[str, Any]) -> bool:
    """Return whether an order is one of a customer, or of a guest with one of the e-mails."""
    if order["customer_id"]:
        return order["customer_id"] in customer.ids
    return email_key(order["billing_email"]) in customer.emails_normalized


def _accounts(
    fetch: Fetch, customer_id: int, key: str, known: AccountRow | None
) -> Sequence[AccountRow]:
    """Return the accounts with an ID or an e-mail, which an account merged into it can have had."""
    if known is not None and key in {"", known.email_normalized, *(known.merged or ())}:
        return [known]  # no other account has the e-mail
    parameters: dict[str, str | int] = {"key": key} if key else {}
    if 0 < customer_id <= INT64_MAX:
        parameters["customer_id"] = customer_id
    if not parameters:
        return ()
    return [AccountRow(*row) for row in fetch(_WITH[frozenset(parameters)], parameters)]
