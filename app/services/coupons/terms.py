"""Lookup of coupons for evaluation: their terms and live uses (redemptions 6).

One statement reads all coupons with their uses.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    bindparam,
    case,
    func,
    null,
    or_,
    select,
    type_coerce,
    union,
    update,
)
from sqlalchemy.orm import Session

from app.db.read_pool import Fetch
from app.db.records import Record
from app.db.search import email_key
from app.db.sql.functions import is_one_of
from app.db.sql.index_hints import frequent
from app.db.sql.types import Id, IdList, Json, TextList
from app.models import CAMPAIGNS, COUPONS, MERGED_ACCOUNTS, REDEMPTIONS, USERS
from app.models.coupon import CouponOptions, CouponStatus
from app.models.redemption import IS_LIVE, IS_LIVE_RESERVATION, IS_RESERVED, IS_STORED_LIVE
from app.pricing.carts import CampaignTerms, CouponTerms
from app.services.campaigns.queries import COLUMNS
from app.services.common.erased import is_counted_for
from app.services.common.locks import IS_TAKEN, MERGED_EMAILS, AccountRow
from app.services.coupons.customers import (
    ACCOUNT_WITH_EMAIL,
    Customer,
    customer_of,
    find_customer,
    guest_of,
)
from app.services.coupons.queries import PUBLISHED

_IS_OF_COUPON = REDEMPTIONS.c.coupon_id == COUPONS.c.id
_CUSTOMERS = bindparam("customer_ids", type_=IdList)
_EMAILS = bindparam("emails_normalized", type_=TextList)
_WAYS_TO_BE_OF_CUSTOMER = (
    is_one_of(REDEMPTIONS.c.customer_id, _CUSTOMERS),
    is_one_of(REDEMPTIONS.c.email_normalized, _EMAILS),
    is_counted_for(_EMAILS),
)
_OWNERS = select(func.count()).where(is_one_of(USERS.c.email_normalized, _EMAILS))
_IS_LEFT = and_(MERGED_ACCOUNTS.c.email_normalized.is_not(None), ~IS_TAKEN)
_MERGES = select(func.count() + func.count(case((_IS_LEFT, 1)))).where(
    or_(
        is_one_of(MERGED_ACCOUNTS.c.customer_id, _CUSTOMERS),
        is_one_of(MERGED_ACCOUNTS.c.id, _CUSTOMERS),
    )
)
IS_CURRENT = and_(
    _OWNERS.scalar_subquery() == bindparam("owners", type_=Id),
    _MERGES.scalar_subquery() == bindparam("merges", type_=Id),
)
"""Whether no account of the customer was merged, and none has taken or left an address of the
customer, since ``find_customer`` read them (people 6).

Its uses would be counted incompletely. Compare it while the coupon or its campaign is locked."""
# No order has the ID 0, so no use is excluded.
_IS_OF_ANOTHER_ORDER = REDEMPTIONS.c.order_id.is_distinct_from(bindparam("own_order_id", type_=Id))


def number_of_redemptions(*conditions: ColumnElement[bool]) -> ColumnElement[int]:
    """Return the number of redemptions of the coupon that a statement is about."""
    return (
        select(func.count()).where(_IS_OF_COUPON, *conditions).correlate(COUPONS).scalar_subquery()
    )


def number_by_customer(*conditions: ColumnElement[bool]) -> ColumnElement[int]:
    """Return the number of uses by the customer of ``Customer.parameters``.

    Each way to be one of them is a select of its own. For alternatives, SQLite reads all uses of
    the coupon, and so does PostgreSQL without statistics.

    Args:
        conditions: one of them is the coupon or the campaign that a statement is about.
    """
    ids = (select(REDEMPTIONS.c.id).where(way, *conditions) for way in _WAYS_TO_BE_OF_CUSTOMER)
    found = union(*(each.correlate(COUPONS, CAMPAIGNS) for each in ids)).subquery()
    return select(func.count()).select_from(found).scalar_subquery()


_USES_BY_CUSTOMER = number_by_customer(_IS_OF_COUPON, _IS_OF_ANOTHER_ORDER, IS_LIVE)
STORED_USES_BY_CUSTOMER = number_by_customer(_IS_OF_COUPON, _IS_OF_ANOTHER_ORDER, IS_STORED_LIVE)
"""With reservations whose expiry is not stored. It does not depend on the clock."""

_RESERVED = number_of_redemptions(IS_LIVE_RESERVATION)
# Reservations from a time when the coupon had no limit, which an earlier version or SQL has set.
_UNCOUNTED = number_of_redemptions(IS_RESERVED, ~REDEMPTIONS.c.holds_slot)
IS_BELOW_LIMIT = (
    COUPONS.c.usage_count < COUPONS.c.usage_limit - COUPONS.c.reserved_count - _UNCOUNTED
)
"""Whether a coupon has a free slot, even if no reservation has expired. It does not depend on the
clock.

The numbers are subtracted, because the sum of uses can exceed 64 bits.
"""

_COUPONS = bindparam("coupon_ids", type_=IdList)
_COUNT = (
    update(REDEMPTIONS)
    .where(is_one_of(REDEMPTIONS.c.coupon_id, _COUPONS), IS_RESERVED, ~REDEMPTIONS.c.holds_slot)
    .values(holds_slot=True)
)
_RECOUNT = (
    update(COUPONS)
    .where(is_one_of(COUPONS.c.id, _COUPONS))
    .values(reserved_count=number_of_redemptions(IS_RESERVED, REDEMPTIONS.c.holds_slot))
)

_NO_OPTIONS = CouponOptions()
_TERMS = (  # columns that are terms of the same name
    "type",
    "amount",
    "individual_use",
    "exclude_sale_items",
    "limit_usage_to_x_items",
    "expiry_date",
    "enable_free_shipping",
    "minimum_amount",
    "maximum_amount",
    "customer_emails",
    "active",
    "starts_at",
)
_LIMITS = ("usage_limit", "usage_limit_per_user")  # 0 is none
_ID_LISTS = (
    "product_ids",
    "exclude_product_ids",
    "product_category_ids",
    "exclude_product_category_ids",
)


_OF_CAMPAIGN = (
    "active",
    "starts_at",
    "ends_at",
    "usage_limit",
    "usage_limit_per_user",
    "budget",
    "tags",
    "combines_with",
)
"""Columns of the campaign of a coupon that are terms of the same name."""


def _terms(
    uses_by_customer: ColumnElement[Any], uses_of_campaign: ColumnElement[Any]
) -> Select[object]:
    return select(
        COUPONS.c.id,
        COUPONS.c.code,
        COUPONS.c.status,
        *(COUPONS.c[name] for name in (*_TERMS, *_LIMITS, *_ID_LISTS, "options")),
        # Nothing is counted for a limit that the coupon does not have or has not reached, because a
        # coupon can have any number of live reservations.
        COUPONS.c.usage_count,
        case(
            (COUPONS.c.usage_limit == 0, 0),
            (IS_BELOW_LIMIT, COUPONS.c.reserved_count),
            else_=_RESERVED,
        ).label("reserved"),
        uses_by_customer.label("uses_by_customer"),
        CAMPAIGNS.c.id.label("campaign_id"),
        *(CAMPAIGNS.c[name].label(f"campaign_{name}") for name in _OF_CAMPAIGN),
        *(COLUMNS[name].label(f"campaign_{name}") for name in ("live_uses", "live_discount")),
        uses_of_campaign.label("campaign_uses_by_customer"),
    ).select_from(COUPONS.outerjoin(CAMPAIGNS, CAMPAIGNS.c.id == COUPONS.c.campaign_id))


def _with_account(coupons: Select[object]) -> Select[object]:
    """Return a select of coupons with the account that has the address of the parameter ``key``."""
    return coupons.add_columns(
        USERS.c.id.label("account_id"),
        USERS.c.email_normalized.label("account_email"),
        type_coerce(MERGED_EMAILS, Json).label("account_merged"),
    ).outerjoin(USERS, USERS.c.id == ACCOUNT_WITH_EMAIL)


_OF_CUSTOMER = _terms(
    case((COUPONS.c.usage_limit_per_user > 0, _USES_BY_CUSTOMER), else_=null()),
    case(
        (
            CAMPAIGNS.c.usage_limit_per_user > 0,
            number_by_customer(REDEMPTIONS.c.campaign_id == CAMPAIGNS.c.id, IS_LIVE),
        ),
        else_=null(),
    ),
)
_OF_GUEST = _terms(null(), null())
_HAS_ONE_OF_IDS = is_one_of(COUPONS.c.id, _COUPONS)
# For an array of any length, PostgreSQL would plan each request again, which takes 0.5 ms.
_HAS_ONE_OF_CODES = and_(
    COUPONS.c.code.in_(bindparam("codes", expanding=True)), frequent(PUBLISHED)
)
_WITH_CODES = _OF_CUSTOMER.where(_HAS_ONE_OF_CODES)
_WITH_CODES_AND_ACCOUNT = _with_account(_WITH_CODES)
_WITH_CODES_OF_GUEST = _OF_GUEST.where(_HAS_ONE_OF_CODES)
_WITH_IDS = _OF_CUSTOMER.where(_HAS_ONE_OF_IDS)


@dataclass(frozen=True, slots=True)
class FoundCoupon:
    """A stored coupon and its current terms."""

    id: int
    code: str
    is_published: bool
    terms: CouponTerms

    @property
    def campaign_id(self) -> int | None:
        """Return the ID of its campaign, or None."""
        return self.terms.campaign.id if self.terms.campaign else None

    @property
    def is_limited(self) -> bool:
        """Return whether uses take slots."""
        return bool(self.terms.usage_limit or self.terms.usage_limit_per_user)


def find_coupons(
    fetch: Fetch,
    codes: Collection[str],
    customer_id: int,
    email: str,
    *,
    param: str,
    accounts: Mapping[int, AccountRow] = MappingProxyType({}),
) -> tuple[Customer, dict[str, FoundCoupon]]:
    """Return a customer, and the published coupons with some codes, with their uses.

    The account that has the address of a guest is read with the coupons. If there is one, and one
    of the coupons asks for the customer, they are read once more, with its uses.

    Args:
        customer_id: 0 for a guest.
        email: may be empty.
        param: name of the ID in an error.
        accounts: accounts that have been read, by ID.

    Raises:
        ShopError: no account has this ID; status 400.
    """
    customer = guest_of(email)
    if customer_id or not customer.is_known:
        customer = find_customer(fetch, customer_id, email, param=param, accounts=accounts)
        return customer, coupons_by_code(fetch, codes, customer)
    parameters = {"codes": codes, "key": email_key(email), "own_order_id": 0, **customer.parameters}
    rows = fetch(_WITH_CODES_AND_ACCOUNT, parameters) if codes else ()
    coupons = {row.code: _found(row, customer) for row in rows}
    if any(each.terms.counts_customers for each in coupons.values()):
        found = [
            AccountRow(row.account_id, "", row.account_email, "", None, None, row.account_merged)
            for row in rows[:1]
            if row.account_id is not None
        ]
        customer = customer_of(0, email, found)
        if found:
            coupons = coupons_by_code(fetch, codes, customer)
    return customer, coupons


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
    return coupons_by_id(fetch, [coupon_id], customer, own_order_id).get(coupon_id)


def coupons_by_id(
    fetch: Fetch, ids: Collection[int], customer: Customer, own_order_id: int = 0
) -> dict[int, FoundCoupon]:
    """Return the coupons with some IDs, published or not, like ``coupons_by_code``."""
    if not ids:
        return {}
    parameters = {"coupon_ids": list(ids), "own_order_id": own_order_id, **customer.parameters}
    return {row.id: _found(row, customer) for row in fetch(_WITH_IDS, parameters)}


def count_reservations(session: Session, coupon_ids: Sequence[int]) -> None:
    """Count all reservations of locked coupons in ``reserved_count``.

    Those from a time without a limit are not counted until the coupon has one.
    """
    if coupon_ids:
        for statement in (_COUNT, _RECOUNT):
            session.execute(statement, {"coupon_ids": list(coupon_ids)})


def _campaign(row: Any) -> CampaignTerms:
    """Return the terms of the campaign of a coupon."""
    terms: Record = {name: getattr(row, f"campaign_{name}") for name in _OF_CAMPAIGN}
    return CampaignTerms(
        **terms,
        id=row.campaign_id,
        uses=row.campaign_live_uses,
        uses_by_customer=row.campaign_uses_by_customer,
        discount=int(row.campaign_live_discount.scaleb(2)),
    )


def _terms_of(options: CouponOptions) -> Record:
    """Return the terms of fields that few coupons use."""
    maximum = options.maximum_discount
    return options._asdict() | {
        "maximum_discount": Decimal(maximum) if maximum else None,
        "get_product_ids": frozenset(options.get_product_ids),
    }


def _found(row: Any, customer: Customer) -> FoundCoupon:
    terms: Record = {name: getattr(row, name) for name in _TERMS}
    terms |= {name: getattr(row, name) or None for name in _LIMITS}
    terms |= {name: frozenset(getattr(row, name)) for name in _ID_LISTS}
    if row.options != _NO_OPTIONS:
        terms |= _terms_of(row.options)
    return FoundCoupon(
        row.id,
        row.code,
        row.status == CouponStatus.PUBLISHED,
        CouponTerms(
            **terms,
            uses=row.usage_count + row.reserved,
            uses_by_customer=row.uses_by_customer if customer.is_known else None,
            campaign=None if row.campaign_id is None else _campaign(row),
        ),
    )
