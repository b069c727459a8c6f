"""Evaluation of coupons against a cart or an order (redemptions 1, 2 and 6).

Pure: the caller looks up the coupons, their uses and the customer's e-mail addresses. All amounts
in results are integers of cents.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple
from zoneinfo import ZoneInfo

from app.conversions.emails import ERASED_DOMAIN, comparable_email
from app.conversions.expiry import latest_expired
from app.errors import Sentence
from app.pricing.carts import CampaignTerms, Cart, CartItem, CouponTerms, line_value
from app.pricing.discounts import COUPON_TYPES, CouponType, apply_coupon, no_discount

# redemptions 2, campaigns 3: code and message. Braces are filled by the check.
REASONS = {
    "not_found": "No published coupon has this code.",
    "usage_limit": "The coupon has reached its usage limit of {limit}.",
    "usage_limit_per_user": "The customer has reached the usage limit per user of {limit}.",
    "campaign_budget": "The budget of the coupon does not cover the discount.",
    "paused": "The coupon is paused.",
    "not_started": "The coupon cannot be used before {time}.",
    "expired": "The coupon expired on {date}.",
    "minimum_amount": "The subtotal of {subtotal} is below the minimum amount of {limit}.",
    "maximum_amount": "The subtotal of {subtotal} is above the maximum amount of {limit}.",
    "product_not_included": "No item is among the products or categories of the coupon.",
    "product_excluded": "An item is among the excluded products or categories of the coupon.",
    "sale_items_excluded": "The coupon excludes sale items, and every item is on sale.",
    "email_not_allowed": "The coupon is not valid for the customer's e-mail address.",
    "customer_not_allowed": "The coupon is not valid for this customer.",
    "not_first_order": "The coupon is valid only for the first order of a customer.",
    "individual_use": "The coupon cannot be combined with the coupon {code}.",
    "not_combinable": "The coupon cannot be combined with the coupon {code}.",
}
# Of a campaign, without its numbers, and of types that discount single items.
OTHER_REASONS = {
    "usage_limit": "The coupon has reached its usage limit.",
    "usage_limit_per_user": "The customer has reached the usage limit per user.",
    "expired": "The coupon has expired.",
    "product_excluded": "No item meets the product conditions of the coupon.",
    "product_not_included": "The cart has too few units of the products of the coupon.",
}
_UNKNOWN_TYPE = CouponType(no_discount)


@dataclass(frozen=True, slots=True)
class Reason:
    """Reason why a coupon is not applicable: a code of REASONS and its text.

    Attributes:
        amount: the minimum or maximum amount that the cart does not meet; otherwise None.
    """

    code: str
    text: Sentence
    amount: Decimal | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CouponResult:
    """Result for one coupon: the discount in cents, or why it is not applicable."""

    code: str
    discount: int = 0
    reasons: tuple[Reason, ...] = ()

    @property
    def applicable(self) -> bool:
        """Return whether the coupon is applicable."""
        return not self.reasons


class ItemResult(NamedTuple):
    """Subtotal, discount and total of an item in cents."""

    subtotal: int
    discount: int
    total: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Sums of a cart in cents, and the results for coupons and items in their given order."""

    subtotal: int
    discount: int
    total: int
    free_shipping: bool
    coupons: tuple[CouponResult, ...]
    items: tuple[ItemResult, ...]


def evaluate(
    cart: Cart,
    coupons: Mapping[str, CouponTerms | None],
    *,
    sequential: bool,
    now: datetime,
    coupon_types: Mapping[str, CouponType] = COUPON_TYPES,
    smallest: int = 1,
    in_budget: bool = True,
    expiry_zone: ZoneInfo | None = None,
) -> Evaluation:
    """Return the discounts of a cart, and the reasons why coupons are not applicable.

    Args:
        coupons: terms by code, in the listed order; None when no published coupon has the code.
        sequential: SHOP_SEQUENTIAL_DISCOUNTS.
        now: time of the evaluation, with a time zone.
        coupon_types: every type that the app knows. Any other gives no discount.
        smallest: smallest amount of the currency in cents.
        in_budget: whether the currency is that of the budgets of campaigns.
        expiry_zone: the zone in which expiry dates are last days; None for midnight UTC.
    """
    left, results = [item.value for item in cart.items], list[CouponResult]()
    applied, campaigns = dict[str, CouponTerms](), dict[int, CampaignTerms]()
    for code, listed in coupons.items():
        if listed is None:
            results.append(CouponResult(code, reasons=(_reason("not_found"),)))
            continue
        coupon, campaign = listed, listed.campaign
        if campaign and campaign.id in campaigns:  # earlier coupons of the cart have used it
            coupon = replace(listed, campaign=campaigns[campaign.id])
        kind = coupon_types.get(coupon.type, _UNKNOWN_TYPE)
        reasons = (
            *_own_reasons(coupon, kind, cart, left=left, now=now, expiry_zone=expiry_zone),
            *_combination_reasons(code, coupon, applied),
        )
        if not reasons:
            discounts = apply_coupon(
                coupon, kind, cart.items, left, sequential=sequential, smallest=smallest
            )
            reasons = tuple(budget_reasons(coupon.campaign, sum(discounts), in_budget=in_budget))
        if reasons:
            results.append(CouponResult(code, reasons=reasons))
            continue
        if coupon.campaign:
            campaigns[coupon.campaign.id] = coupon.campaign.with_use(sum(discounts))
        applied[code] = coupon
        left = [cents - discount for cents, discount in zip(left, discounts, strict=True)]
        results.append(CouponResult(code, discount=sum(discounts)))
    return _sums(cart.items, results, left, applied.values())


def _own_reasons(
    coupon: CouponTerms,
    coupon_type: CouponType,
    cart: Cart,
    *,
    left: Sequence[int],
    now: datetime,
    expiry_zone: ZoneInfo | None,
) -> tuple[Reason, ...]:
    """Return all reasons that depend neither on the discount nor on other coupons."""
    return (
        *limit_reasons(coupon),
        *_time_reasons(coupon, now, expiry_zone),
        *_cart_reasons(coupon, coupon_type, cart.items, left),
        *_customer_reasons(coupon, cart),
    )


def _sums(
    items: Sequence[CartItem],
    results: Sequence[CouponResult],
    totals: Sequence[int],
    applied: Iterable[CouponTerms],
) -> Evaluation:
    """Return an evaluation from its results and the cents that the coupons leave of items."""
    found = zip(items, totals, strict=True)
    return Evaluation(
        subtotal=sum(item.value for item in items),
        discount=sum(result.discount for result in results),
        total=sum(totals),
        free_shipping=any(coupon.enable_free_shipping for coupon in applied),
        coupons=tuple(results),
        items=tuple(ItemResult(item.value, item.value - total, total) for item, total in found),
    )


def redemption_reasons(
    coupon: CouponTerms,
    cart: Cart,
    now: datetime,
    cents: int = 0,
    expiry_zone: ZoneInfo | None = None,
) -> tuple[Reason, ...]:
    """Return the reasons that a redemption checks, in a cart without items (redemptions 6).

    Args:
        cents: the discount that the caller gives.
        expiry_zone: as in ``evaluate``.
    """
    return (
        *limit_reasons(coupon),
        *budget_reasons(coupon.campaign, cents),
        *_time_reasons(coupon, now, expiry_zone),
        *_customer_reasons(coupon, cart),
    )


def limit_reasons(coupon: CouponTerms) -> Iterator[Reason]:
    """Yield the reasons that an order checks for a recorded coupon (redemptions 6)."""
    reasons = campaign_limit_reasons(coupon.campaign) if coupon.campaign else ()
    campaign = {reason.code: reason for reason in reasons}
    if coupon.usage_limit and coupon.uses >= coupon.usage_limit:
        yield _reason("usage_limit", limit=coupon.usage_limit)
    elif reached := campaign.get("usage_limit"):
        yield reached
    if (
        coupon.usage_limit_per_user
        and coupon.uses_by_customer is not None
        and coupon.uses_by_customer >= coupon.usage_limit_per_user
    ):
        yield _reason("usage_limit_per_user", limit=coupon.usage_limit_per_user)
    elif reached := campaign.get("usage_limit_per_user"):
        yield reached


def campaign_limit_reasons(campaign: CampaignTerms) -> Iterator[Reason]:
    """Yield the limits of a campaign that are reached. Customers see neither name nor number."""
    if campaign.usage_limit and campaign.uses >= campaign.usage_limit:
        yield Reason("usage_limit", Sentence(OTHER_REASONS["usage_limit"]))
    of_customer = campaign.uses_by_customer
    if campaign.usage_limit_per_user and (of_customer or 0) >= campaign.usage_limit_per_user:
        yield Reason("usage_limit_per_user", Sentence(OTHER_REASONS["usage_limit_per_user"]))


def budget_reasons(
    campaign: CampaignTerms | None, cents: int, *, in_budget: bool = True
) -> Iterator[Reason]:
    """Yield the reason that another discount exceeds what is left of a budget (campaigns 3).

    0.00 fits even if nothing is left.

    Args:
        in_budget: whether the currency is that of the budget.
    """
    if campaign is None or not campaign.budget:
        return
    exceeds = cents > 0 and campaign.discount + cents > line_value(campaign.budget)
    if exceeds or not in_budget:
        yield _reason("campaign_budget")


def pause_reasons(coupon: CouponTerms) -> Iterator[Reason]:
    """Yield the reason that a new use checks when it is taken (campaigns 7)."""
    if not coupon.active or (coupon.campaign and not coupon.campaign.active):
        yield _reason("paused")


def _time_reasons(
    coupon: CouponTerms, now: datetime, expiry_zone: ZoneInfo | None
) -> Iterator[Reason]:
    yield from pause_reasons(coupon)
    campaign = coupon.campaign
    starts = [coupon.starts_at, campaign.starts_at if campaign else None]
    start = max(filter(None, starts), default=None)
    if start and now < start:
        yield _reason("not_started", time=f"{start:%Y-%m-%dT%H:%M:%SZ}")
    if coupon.expiry_date and coupon.expiry_date <= latest_expired(now, expiry_zone):
        yield _reason("expired", date=coupon.expiry_date)
    elif campaign and campaign.ends_at and now >= campaign.ends_at:
        yield Reason("expired", Sentence(OTHER_REASONS["expired"]))


def _cart_reasons(
    coupon: CouponTerms,
    coupon_type: CouponType,
    items: Sequence[CartItem],
    left: Sequence[int],
) -> Iterator[Reason]:
    subtotal = sum(item.value for item in items)
    if coupon.minimum_amount and subtotal < line_value(coupon.minimum_amount):
        yield _amount_reason("minimum_amount", subtotal, coupon.minimum_amount)
    if coupon.maximum_amount and subtotal > line_value(coupon.maximum_amount):
        yield _amount_reason("maximum_amount", subtotal, coupon.maximum_amount)
    if not items:  # conditions on products do not apply to an empty cart (redemptions 6)
        return
    if not any(coupon.includes(item) for item in items):
        yield _reason("product_not_included")
    elif coupon_type.units:
        lines = coupon_type.lines(coupon, items, left, sequential=False)
        if not any(coupon_type.units(coupon, lines)):
            yield Reason("product_not_included", Sentence(OTHER_REASONS["product_not_included"]))
    if not coupon_type.discounts_cart:
        if not any(coupon.accepts(item) for item in items):
            yield Reason("product_excluded", Sentence(OTHER_REASONS["product_excluded"]))
        return
    if any(coupon.excludes(item) for item in items):
        yield _reason("product_excluded")
    if coupon.exclude_sale_items and all(item.on_sale for item in items):
        yield _reason("sale_items_excluded")


def _customer_reasons(coupon: CouponTerms, cart: Cart) -> Iterator[Reason]:
    if coupon.customer_emails:
        keys = [comparable_email(email) for email in cart.emails]
        keys = [key for key in keys if not key.endswith(f"@{ERASED_DOMAIN}")]
        entries = map(comparable_email, coupon.customer_emails)
        if not any(_matches(entry, key) for entry in entries for key in keys):
            yield _reason("email_not_allowed")
    tags = coupon.customer_tags
    if tags and not _are_accepted(cart.labels, tags, unless_named=True):
        yield _reason("customer_not_allowed")
    if coupon.first_order_only and cart.has_ordered:
        yield _reason("not_first_order")


def _combination_reasons(
    code: str, coupon: CouponTerms, applied: Mapping[str, CouponTerms]
) -> Iterator[Reason]:
    """Yield the reason for the first applied coupon that the coupon cannot be combined with."""
    for earlier_code, earlier in applied.items():
        if not (_accepts(coupon, earlier_code, earlier) and _accepts(earlier, code, coupon)):
            is_alone = coupon.individual_use or earlier.individual_use
            yield _reason("individual_use" if is_alone else "not_combinable", code=earlier_code)
            return


def _accepts(coupon: CouponTerms, code: str, other: CouponTerms) -> bool:
    """Return whether a coupon can be combined with another one, for its part (campaigns 4)."""
    labels = {*other.tags, *(other.campaign.tags if other.campaign else ()), f"code:{code}"}
    conditions = {
        *coupon.combines_with,
        *(coupon.campaign.combines_with if coupon.campaign else ()),
    }
    return _are_accepted(labels, conditions, unless_named=not coupon.individual_use)


def _are_accepted(
    labels: Collection[str], conditions: Collection[str], *, unless_named: bool
) -> bool:
    """Return whether labels fulfil conditions: none that is excluded, and one that is named.

    Args:
        conditions: labels, or ``-`` and a label that is excluded.
        unless_named: the result for labels that are not excluded, if the conditions name none.
    """
    if any(f"-{label}" in conditions for label in labels):
        return False
    named = [each for each in conditions if not each.startswith("-")]
    return any(each in labels for each in named) if named else unless_named


def _matches(entry: str, email: str) -> bool:
    """Return whether an e-mail matches an entry, with ``*`` in the local part of the entry only.

    Takes linear time for any number of asterisks, unlike a regular expression.
    """
    pattern, _, domain = entry.rpartition("@")
    text, _, email_domain = email.rpartition("@")
    if domain != email_domain or "*" not in pattern:
        return entry == email
    first, *middle, last = pattern.split("*")
    position, end = len(first), len(text) - len(last)
    if position > end or not (text.startswith(first) and text.endswith(last)):
        return False
    for part in middle:
        if (found := text.find(part, position, end)) < 0:
            return False
        position = found + len(part)
    return True


def _amount_reason(code: str, subtotal: int, limit: Decimal) -> Reason:
    shown = Decimal(subtotal).scaleb(-2)
    return replace(_reason(code, subtotal=shown, limit=limit), amount=limit)


def _reason(code: str, /, **details: object) -> Reason:
    return Reason(code, Sentence(REASONS[code], **details))
