"""Coupons and customers as evaluation sees them: terms, live uses, e-mails (redemptions 6).

One statement reads the customer and one reads all coupons with their uses.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import (
    ColumnElement,
    Select,
    Table,
    and_,
    bindparam,
    case,
    func,
    null,
    or_,
    select,
)

from app.carts import CouponTerms
from app.db.functions import is_one_of
from app.db.index_hints import frequent
from app.db.read_pool import Fetch
from app.db.search import comparable
from app.db.session import now
from app.db.types import Id, IdList, TextList, UtcDateTime
from app.errors import ShopError
from app.models import Coupon, Redemption, User
from app.models.coupon import CouponStatus
from app.models.redemption import RedemptionStatus
from app.numbers import INT64_MAX
from app.services.coupon_queries import PUBLISHED

COUPONS = cast("Table", Coupon.__table__)
REDEMPTIONS = cast("Table", Redemption.__table__)
USERS = cast("Table", User.__table__)

# The values are computed for each execution, so that a statement is built once.
NOW: Any = bindparam("now", callable_=now, type_=UtcDateTime)

IS_LIVE_RESERVATION = and_(
    REDEMPTIONS.c.status == RedemptionStatus.RESERVED,
    or_(REDEMPTIONS.c.expires_at.is_(None), REDEMPTIONS.c.expires_at > NOW),
)
_IS_OF_COUPON = REDEMPTIONS.c.coupon_id == COUPONS.c.id
_IS_OF_CUSTOMER = or_(
    is_one_of(REDEMPTIONS.c.customer_id, bindparam("customer_ids", type_=IdList)),
    is_one_of(REDEMPTIONS.c.email_normalized, bindparam("email_keys", type_=TextList)),
)
# 0 is no order: nothing is left out.
_IS_OF_ANOTHER_ORDER = REDEMPTIONS.c.order_id.is_distinct_from(bindparam("own_order_id", type_=Id))


def number_of_redemptions(*conditions: ColumnElement[bool]) -> ColumnElement[int]:
    """Return the number of redemptions of the coupon that a statement is about."""
    return (
        select(func.count()).where(_IS_OF_COUPON, *conditions).correlate(COUPONS).scalar_subquery()
    )


USES_BY_CUSTOMER = number_of_redemptions(
    _IS_OF_CUSTOMER,
    _IS_OF_ANOTHER_ORDER,
    or_(REDEMPTIONS.c.status == RedemptionStatus.CONFIRMED, IS_LIVE_RESERVATION),
)
"""Uses of a coupon by the customer of ``Customer.parameters``."""

_RESERVED = number_of_redemptions(IS_LIVE_RESERVATION)
# Reservations from a time when the coupon had no limit.
_UNCOUNTED = number_of_redemptions(IS_LIVE_RESERVATION, ~REDEMPTIONS.c.holds_slot)
IS_BELOW_LIMIT = (
    COUPONS.c.usage_count + COUPONS.c.reserved_count + _UNCOUNTED < COUPONS.c.usage_limit
)
"""Whether a coupon has a free slot, even if no reservation has expired."""

_TERMS = (
    "type", "amount", "individual_use", "product_ids", "exclude_product_ids",
    "product_category_ids", "exclude_product_category_ids", "exclude_sale_items",
    "limit_usage_to_x_items", "usage_limit", "usage_limit_per_user", "expiry_date",
    "enable_free_shipping", "minimum_amount", "maximum_amount", "customer_emails",
)  # fmt: skip


def _terms(uses_by_customer: ColumnElement[Any]) -> Select[Any]:
    return select(
        COUPONS.c.id,
        COUPONS.c.code,
        COUPONS.c.status,
        *(COUPONS.c[name] for name in _TERMS),
        # Nothing is counted for a limit that the coupon does not have or has not reached, because a
        # coupon can have any number of live reservations.
        case(
            (COUPONS.c.usage_limit == 0, COUPONS.c.usage_count),
            (IS_BELOW_LIMIT, COUPONS.c.usage_count + COUPONS.c.reserved_count),
            else_=COUPONS.c.usage_count + _RESERVED,
        ).label("uses"),
        uses_by_customer.label("uses_by_customer"),
    )


_OF_CUSTOMER = _terms(case((COUPONS.c.usage_limit_per_user > 0, USES_BY_CUSTOMER), else_=null()))
_OF_GUEST = _terms(null())
_HAS_CODE = and_(is_one_of(COUPONS.c.code, bindparam("codes", type_=TextList)), frequent(PUBLISHED))
_WITH_CODES = _OF_CUSTOMER.where(_HAS_CODE)
_WITH_CODES_OF_GUEST = _OF_GUEST.where(_HAS_CODE)
_WITH_ID = _OF_CUSTOMER.where(COUPONS.c.id == bindparam("coupon_id"))
_CUSTOMERS = select(USERS.c.id, USERS.c.email, USERS.c.email_normalized, USERS.c.billing_email)


@dataclass(frozen=True, slots=True)
class Customer:
    """Customer of a cart, an order or a redemption.

    Args:
        customer_id: the account, None for a guest.
        email: the given e-mail; may be empty.
        ids: accounts whose uses count: the account, and the one that has the given e-mail.
        email_keys: e-mails whose uses count: the given one and those of the accounts.
        emails: e-mails that ``customer_emails`` of a coupon may match: the given one, and the
            account's and its billing e-mail.
    """

    customer_id: int | None = None
    email: str = ""
    ids: Collection[int] = ()
    email_keys: Collection[str] = ()
    emails: Collection[str] = ()

    @property
    def is_known(self) -> bool:
        """Return whether uses by the customer can be counted at all."""
        return bool(self.ids or self.email_keys)

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the parameters of USES_BY_CUSTOMER."""
        return {"customer_ids": list(self.ids), "email_keys": list(self.email_keys)}


GUEST = Customer()


@dataclass(frozen=True, slots=True)
class FoundCoupon:
    """A stored coupon and its current terms."""

    id: int
    code: str
    is_published: bool
    terms: CouponTerms

    @property
    def is_limited(self) -> bool:
        """Return whether uses take slots."""
        return bool(self.terms.usage_limit or self.terms.usage_limit_per_user)


def find_customer(fetch: Fetch, customer_id: int, email: str, *, param: str) -> Customer:
    """Return the customer that an ID and an e-mail identify (redemptions 2 and 6).

    Args:
        fetch: runs the statement.
        customer_id: 0 for a guest.
        email: may be empty.
        param: name of the ID in an error.

    Raises:
        ShopError: no account has this ID; status 400.
    """
    key = comparable(email)
    if not customer_id and not key:
        return GUEST
    conditions = [USERS.c.email_normalized == key] if key else []
    if 0 < customer_id <= INT64_MAX:
        conditions.append(USERS.c.id == customer_id)
    rows = fetch(_CUSTOMERS.where(or_(*conditions))) if conditions else ()
    accounts = {row.id: row for row in rows}
    if customer_id and customer_id not in accounts:
        raise ShopError("shop_api_invalid_customer_id", param=param).with_status(400)
    emails = [email] if email else []
    if customer_id:
        emails += [accounts[customer_id].email, accounts[customer_id].billing_email]
    keys = {key, *(row.email_normalized for row in rows)} - {""}
    return Customer(
        customer_id or None, email, tuple(accounts), tuple(keys), [each for each in emails if each]
    )


def coupons_by_code(
    fetch: Fetch, codes: Collection[str], customer: Customer, own_order_id: int = 0
) -> dict[str, FoundCoupon]:
    """Return the published coupons with some codes, with their uses, in one statement.

    Args:
        own_order_id: an order whose uses do not count against the customer.
    """
    if not codes:
        return {}
    if customer.is_known:
        parameters = {"codes": codes, "own_order_id": own_order_id, **customer.parameters}
        rows = fetch(_WITH_CODES, parameters)
    else:
        rows = fetch(_WITH_CODES_OF_GUEST, {"codes": codes})
    return {row.code: _found(row, customer) for row in rows}


def coupon_by_id(
    fetch: Fetch, coupon_id: int, customer: Customer, own_order_id: int = 0
) -> FoundCoupon | None:
    """Return a coupon, published or not, with its uses."""
    parameters = {
        "coupon_id": coupon_id, "own_order_id": own_order_id, **customer.parameters,
    }  # fmt: skip
    rows: Sequence[Any] = fetch(_WITH_ID, parameters)
    return _found(rows[0], customer) if rows else None


def _found(row: Any, customer: Customer) -> FoundCoupon:
    return FoundCoupon(
        row.id,
        row.code,
        row.status == CouponStatus.PUBLISHED,
        CouponTerms(
            type=row.type,
            amount=row.amount,
            individual_use=row.individual_use,
            product_ids=frozenset(row.product_ids),
            exclude_product_ids=frozenset(row.exclude_product_ids),
            product_category_ids=frozenset(row.product_category_ids),
            exclude_product_category_ids=frozenset(row.exclude_product_category_ids),
            exclude_sale_items=row.exclude_sale_items,
            limit_usage_to_x_items=row.limit_usage_to_x_items,
            usage_limit=row.usage_limit or None,
            usage_limit_per_user=row.usage_limit_per_user or None,
            expiry_date=row.expiry_date,
            enable_free_shipping=row.enable_free_shipping,
            minimum_amount=row.minimum_amount,
            maximum_amount=row.maximum_amount,
            customer_emails=row.customer_emails,
            uses=row.uses,
            uses_by_customer=row.uses_by_customer if customer.is_known else None,
        ),
    )
