"""Discounts of coupons, in cents, by the rules of redemptions 3 in their order.

Pure: no database, no request. Amounts are integers of cents, and fractions of a cent are exact
until they are rounded. The settled cases of redemptions 6 are named where they apply.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import wraps
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

from app.pricing.carts import NONE, CartItem, CouponTerms, line_value

# Limits the work for extreme carts: a billion units, a coupon limited to one unit, and an
# amount of millions. Every fixed_cart amount up to a million needs fewer passes.
_MAX_PASSES = 20_000
_NO_ITEM = CartItem(0)


class CartLine(NamedTuple):
    """Line of a cart for a discount rule. All amounts are cents.

    Args:
        value: what the coupon applies to: the original value or, with sequential discounts, what
            earlier coupons left of it.
        original_value: value of the item, whatever earlier coupons took.
        left: what no coupon has taken yet, above 0. A line never gets a higher discount.
        quantity: units.
        smallest: smallest amount of the currency in cents: 100 for yen, otherwise 1.
        item: the item of the cart.
        place: its place in the cart, from 0.
    """

    value: int
    original_value: int
    left: int
    quantity: int
    smallest: int = 1
    item: CartItem = _NO_ITEM
    place: int = 0


Rule = Callable[[CouponTerms, Sequence[CartLine]], Sequence[int]]
"""Returns the discount of each line in cents, in the order of the lines.

The lines are those that the coupon type discounts and that are not used up, from the highest
original value to the lowest. Amounts below 0 and above ``CartLine.left`` are limited to these
bounds, and in currencies without decimals rounded down to a whole amount.
"""


@dataclass(frozen=True, slots=True)
class CouponType:
    """Type of coupon: discounts the items that meet the conditions, or the whole cart.

    Args:
        units: the discounted units of each line, if the type discounts units. A coupon without one
            is not applicable.
    """

    rule: Rule
    discounts_cart: bool = False
    units: Rule | None = None

    def lines(
        self,
        coupon: CouponTerms,
        items: Sequence[CartItem],
        left: Sequence[int],
        *,
        sequential: bool,
        smallest: int = 1,
    ) -> list[CartLine]:
        """Return the lines that a coupon discounts, from the highest value to the lowest.

        Args:
            left: cents of each item that earlier coupons have not taken.
        """
        given = coupon.get_product_ids if self.units else NONE
        # A line without value, or that an earlier coupon used up, has no units (redemptions 6).
        # Sorting is stable, which keeps lines of equal value in cart order.
        lines = [
            CartLine(
                value=left[index] if sequential else item.value,
                original_value=item.value,
                left=left[index],
                quantity=item.quantity,
                smallest=smallest,
                item=item,
                place=index,
            )
            for index, item in enumerate(items)
            if left[index] > 0
            and (self.discounts_cart or item.product_id in given or coupon.includes(item))
            and (self.discounts_cart or coupon.allows(item))
        ]
        return sorted(lines, key=attrgetter("original_value"), reverse=True)


def apply_coupon(
    coupon: CouponTerms,
    coupon_type: CouponType,
    items: Sequence[CartItem],
    left: Sequence[int],
    *,
    sequential: bool,
    smallest: int = 1,
) -> list[int]:
    """Return the discount of each item in cents (rules 1 and 2).

    Args:
        left: cents of each item that earlier coupons have not taken.
        sequential: apply the coupon to what earlier coupons left, not to the original values.
        smallest: smallest amount of the currency in cents. Discounts are multiples of it.
    """
    lines = coupon_type.lines(coupon, items, left, sequential=sequential, smallest=smallest)
    limited = [
        min(max(discount, 0), line.left) // smallest * smallest
        for line, discount in zip(lines, coupon_type.rule(coupon, lines), strict=True)
    ]
    if coupon.maximum_discount:
        limited = _at_most(line_value(coupon.maximum_discount), lines, limited, smallest)
    discounts = [0] * len(items)
    for line, discount in zip(lines, limited, strict=True):
        discounts[line.place] = discount
    return discounts


def _at_most(
    maximum: int, lines: Sequence[CartLine], discounts: list[int], smallest: int
) -> list[int]:
    """Return the share of the maximum of each line, if the discounts exceed it (campaigns 6)."""
    if (total := sum(discounts)) <= maximum:
        return discounts
    most = maximum // smallest
    shares = [most * discount // total for discount in discounts]
    limits = [
        line._replace(left=discount // smallest)
        for line, discount in zip(lines, discounts, strict=True)
    ]
    distribute_cents(most - sum(shares), limits, shares)
    return [share * smallest for share in shares]


def participating_units(coupon: CouponTerms, lines: Iterable[CartLine]) -> list[int]:
    """Return the number of participating units of each line: the first n, or all (rule 3)."""
    if not coupon.limit_usage_to_x_items:
        return [line.quantity for line in lines]
    remaining = coupon.limit_usage_to_x_items
    units = []
    for line in lines:
        units.append(min(remaining, line.quantity))
        remaining -= units[-1]
    return units


def distribute_cents(cents: int, lines: Sequence[CartLine], discounts: list[int]) -> None:
    """Add cents to the discounts line by line, at most one for each unit (rules 4 and 6)."""
    for index, line in enumerate(lines):
        added = min(cents, line.quantity, line.left - discounts[index])
        discounts[index] += added
        cents -= added


def _in_smallest_amounts(rule: Rule) -> Rule:
    """Return a rule that computes in the smallest amounts of the currency instead of cents."""

    @wraps(rule)
    def discounts(coupon: CouponTerms, lines: Sequence[CartLine]) -> Sequence[int]:
        smallest = lines[0].smallest if lines else 1
        if smallest == 1:
            return rule(coupon, lines)
        whole = [
            line._replace(
                value=line.value // smallest,
                original_value=line.original_value // smallest,
                left=line.left // smallest,
            )
            for line in lines
        ]
        return [discount * smallest for discount in rule(coupon, whole)]

    return discounts


@_in_smallest_amounts
def percent(coupon: CouponTerms, lines: Sequence[CartLine]) -> list[int]:
    """Discount a percentage of the participating units' value (rule 4)."""
    return _percentage(coupon, lines, participating_units(coupon, lines))


def _percentage(
    coupon: CouponTerms, lines: Sequence[CartLine], of_lines: Sequence[int]
) -> list[int]:
    """Return the discounts of a percentage of the value of some units of each line."""
    numerator, denominator = _amount(coupon).as_integer_ratio()
    denominator *= 100
    values = [
        line.value if units == line.quantity else Fraction(line.value * units, line.quantity)
        for line, units in zip(lines, of_lines, strict=True)
    ]
    discounts = [
        min(value * numerator // denominator, line.left)
        for line, value in zip(lines, values, strict=True)
    ]
    # Half down: the smallest integer that is not below the exact amount less one half.
    total = -((denominator - 2 * sum(values) * numerator) // (2 * denominator))
    # Lines that an earlier coupon capped leave cents to other lines, beyond n too (redemptions 6).
    distribute_cents(total - sum(discounts), lines, discounts)
    return discounts


@_in_smallest_amounts
def buy_x_get_y(coupon: CouponTerms, lines: Sequence[CartLine]) -> list[int]:
    """Discount a percentage of the cheapest units for each number of bought ones (campaigns 6)."""
    counts = given_units(coupon, lines)
    given = [place for place, units in enumerate(counts) if units]
    discounts = [0] * len(lines)
    found = _percentage(coupon, [lines[i] for i in given], [counts[i] for i in given])
    for place, discount in zip(given, found, strict=True):
        discounts[place] = discount
    return discounts


def given_units(coupon: CouponTerms, lines: Sequence[CartLine]) -> list[int]:
    """Return the number of discounted units of each line: the cheapest, at most n."""
    buy, get = coupon.buy_quantity or 1, coupon.get_quantity or 1
    products = coupon.get_product_ids
    places = [i for i, line in enumerate(lines) if not products or line.item.product_id in products]
    if products:
        others = {*range(len(lines))} - {*places}
        remaining = get * (sum(lines[place].quantity for place in others) // buy)
    else:
        groups, rest = divmod(sum(line.quantity for line in lines), buy + get)
        remaining = get * groups + max(0, rest - buy)
    if coupon.limit_usage_to_x_items:
        remaining = min(remaining, coupon.limit_usage_to_x_items)

    def price(place: int) -> tuple[Fraction, int]:
        line = lines[place]
        return Fraction(line.original_value, line.quantity), -line.place

    counts = [0] * len(lines)
    for place in sorted(places, key=price):
        counts[place] = min(remaining, lines[place].quantity)
        remaining -= counts[place]
    return counts


@_in_smallest_amounts
def fixed_product(coupon: CouponTerms, lines: Sequence[CartLine]) -> list[int]:
    """Discount the amount for each participating unit (rule 5)."""
    amount = _fixed_amount(coupon, lines)
    return [min(amount * units, most) for units, most in _unit_discounts(coupon, lines)]


@_in_smallest_amounts
def fixed_cart(coupon: CouponTerms, lines: Sequence[CartLine]) -> list[int]:
    """Discount the amount, divided among all units that are not used up (rule 6)."""
    missing = _fixed_amount(coupon, lines)
    discounts = [0] * len(lines)
    # n limits each pass anew, while the division is by all units (redemptions 6).
    all_units, parts = _open_units(coupon, lines, discounts)
    for _ in range(_MAX_PASSES):
        if missing < all_units or not parts:
            break
        amount = missing // all_units
        room = [lines[index].left - discounts[index] for index, _, _ in parts]
        given = [
            min(amount * units, most, left)
            for (_, units, most), left in zip(parts, room, strict=True)
        ]
        if not (total := sum(given)):
            return discounts
        # Passes with the same amount are equal until a line is used up. One unit in a thousand
        # would need thousands of them: take them together.
        times = min(
            (missing - amount * all_units) // total + 1,
            *(left // cents for left, cents in zip(room, given, strict=True) if cents),
        )
        for (index, _, _), cents in zip(parts, given, strict=True):
            discounts[index] += cents * times
        missing -= total * times
        if any(lines[index].left == discounts[index] for index, _, _ in parts):
            all_units, parts = _open_units(coupon, lines, discounts)
    distribute_cents(missing, lines, discounts)
    return discounts


def _open_units(
    coupon: CouponTerms, lines: Sequence[CartLine], discounts: Sequence[int]
) -> tuple[int, list[tuple[int, int, int]]]:
    """Return the open units, and for each participating line its index, its units and its limit."""
    indexes = [index for index, line in enumerate(lines) if discounts[index] < line.left]
    open_lines = [lines[index] for index in indexes]
    parts = zip(indexes, _unit_discounts(coupon, open_lines), strict=True)
    return (
        sum(line.quantity for line in open_lines),
        [(index, units, most) for index, (units, most) in parts if units],
    )


def _unit_discounts(coupon: CouponTerms, lines: Sequence[CartLine]) -> list[tuple[int, int]]:
    """Return the participating units of each line, and their maximum discount."""
    counts = zip(lines, participating_units(coupon, lines), strict=True)
    if not coupon.limit_usage_to_x_items:
        return [(units, line.left) for line, units in counts]
    # The units' original value, rounded down to the cent (redemptions 6).
    return [
        (units, min(line.original_value * units // line.quantity, line.left))
        for line, units in counts
    ]


def _fixed_amount(coupon: CouponTerms, lines: Sequence[CartLine]) -> int:
    """Return the amount in the smallest amounts of the currency, rounded half up."""
    return line_value(_amount(coupon) / (lines[0].smallest if lines else 1))


def _amount(coupon: CouponTerms) -> Decimal:
    """Return the amount; a negative one gives no discount (redemptions 6)."""
    return max(coupon.amount or Decimal(0), Decimal(0))


def no_discount(_: CouponTerms, lines: Sequence[CartLine]) -> list[int]:
    """Return no discount: the rule of a type whose plugin is no longer installed."""
    return [0] * len(lines)


COUPON_TYPES: Mapping[str, CouponType] = MappingProxyType(
    {
        "fixed_cart": CouponType(fixed_cart, discounts_cart=True),
        "percent": CouponType(percent),
        "fixed_product": CouponType(fixed_product),
        "percent_product": CouponType(percent),
        "buy_x_get_y": CouponType(buy_x_get_y, units=given_units),
    }
)
"""The built-in types. An app adds to a copy: ``{**COUPON_TYPES, "name": CouponType(rule)}``."""
