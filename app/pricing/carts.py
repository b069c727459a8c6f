"""Carts and coupon terms: the input of ``app.pricing.evaluation`` and of discount rules.

Pure: plain values that the caller converts from a request, an order or database rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import NamedTuple

NONE: frozenset[int] = frozenset()


class CartItem(NamedTuple):
    """A line of a cart or an order.

    Args:
        value: cents before discounts: ``line_value(price, quantity)`` or a given subtotal.
        quantity: units, at least 1.
    """

    value: int
    quantity: int = 1
    product_id: int = 0
    product_category_ids: Collection[int] = ()
    on_sale: bool = False


@dataclass(frozen=True, slots=True)
class Cart:
    """Items and their customer.

    Args:
        emails: the given e-mail, the account's and its billing e-mail, if they exist, which
            ``customer_emails`` of a coupon may match.
        labels: tags of the account, and its roles as ``role:wholesale``. A guest has none.
        has_ordered: whether the customer has an earlier order (campaigns 5); False if the customer
            is not known.
    """

    items: Sequence[CartItem] = ()
    emails: Collection[str] = ()
    labels: Collection[str] = ()
    has_ordered: bool = False


@dataclass(frozen=True, slots=True)
class CampaignTerms:
    """Conditions and limits of a campaign, and what its uses have taken (campaigns 2).

    Args:
        uses, uses_by_customer, discount: of confirmed and reserved uses, only if it has a limit or
            a budget. ``discount`` is in cents, ``uses_by_customer`` None if unknown.
    """

    id: int
    active: bool = True
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    usage_limit: int = 0
    usage_limit_per_user: int = 0
    budget: Decimal | None = None
    tags: Collection[str] = ()
    combines_with: Collection[str] = ()
    uses: int = 0
    uses_by_customer: int | None = None
    discount: int = 0

    @property
    def is_limited(self) -> bool:
        """Return whether it has a limit or a budget."""
        return bool(self.usage_limit or self.usage_limit_per_user or self.budget)

    def with_use(self, cents: int) -> CampaignTerms:
        """Return the terms after another use by the same customer."""
        by_customer = self.uses_by_customer
        return replace(
            self,
            uses=self.uses + 1,
            uses_by_customer=None if by_customer is None else by_customer + 1,
            discount=self.discount + max(cents, 0),
        )


@dataclass(frozen=True, slots=True)
class CouponTerms:
    """Discount, conditions and limits of a coupon (spec 2.1), and the number of its uses.

    Args:
        amount: currency units for fixed types, percent for percentages; None counts as 0.
        uses: confirmed and live reserved uses, without a use that the caller itself holds. Below
            the limit, this is the number of counted uses, which can include expired reservations.
        uses_by_customer: the same for this customer; None when the customer is unknown.
        combines_with, customer_tags: ``-`` before an entry excludes it (campaigns 4 and 5).
        buy_quantity, get_quantity: 0 counts as 1.
    """

    type: str
    amount: Decimal | None = None
    individual_use: bool = False
    product_ids: frozenset[int] = NONE
    exclude_product_ids: frozenset[int] = NONE
    product_category_ids: frozenset[int] = NONE
    exclude_product_category_ids: frozenset[int] = NONE
    exclude_sale_items: bool = False
    limit_usage_to_x_items: int = 0
    usage_limit: int | None = None
    usage_limit_per_user: int | None = None
    expiry_date: date | None = None
    enable_free_shipping: bool = False
    minimum_amount: Decimal | None = None
    maximum_amount: Decimal | None = None
    customer_emails: Collection[str] = ()
    uses: int = 0
    uses_by_customer: int | None = None
    active: bool = True
    starts_at: datetime | None = None
    tags: Collection[str] = ()
    combines_with: Collection[str] = ()
    customer_tags: Collection[str] = ()
    first_order_only: bool = False
    maximum_discount: Decimal | None = None
    buy_quantity: int = 0
    get_quantity: int = 0
    get_product_ids: frozenset[int] = NONE
    campaign: CampaignTerms | None = None

    @property
    def counts_customers(self) -> bool:
        """Return whether a term depends on the uses or the orders of a customer."""
        of_campaign = self.campaign and self.campaign.usage_limit_per_user
        return bool(self.usage_limit_per_user or of_campaign or self.first_order_only)

    def includes(self, item: CartItem) -> bool:
        """Return whether the item is among the products or categories, if there are any."""
        return (
            not (self.product_ids or self.product_category_ids)
            or item.product_id in self.product_ids
            or not self.product_category_ids.isdisjoint(item.product_category_ids)
        )

    def excludes(self, item: CartItem) -> bool:
        """Return whether the item is among the excluded products or categories."""
        return (
            item.product_id in self.exclude_product_ids
            or not self.exclude_product_category_ids.isdisjoint(item.product_category_ids)
        )

    def accepts(self, item: CartItem) -> bool:
        """Return whether the item meets every condition on items."""
        return self.includes(item) and self.allows(item)

    def allows(self, item: CartItem) -> bool:
        """Return whether no condition on items excludes the item."""
        ruled_out_by_sale = self.exclude_sale_items and item.on_sale
        return not self.excludes(item) and not ruled_out_by_sale


def line_value(price: Decimal, quantity: int = 1) -> int:
    """Return price times quantity in cents, rounded half up (redemptions 3, rule 1)."""
    numerator, denominator = price.as_integer_ratio()
    return (200 * numerator * quantity + denominator) // (2 * denominator)
