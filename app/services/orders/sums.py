"""Sums of an order in cents (orders 2 and 9). The functions are pure."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from app.conversions.numbers import INT64_MAX

MAX_TOTAL = 10**15
"""Largest total of an order in cents. The sum of thousands of totals fits into 64 bits."""

PRICE_UNITS = 10**6
"""Parts of a currency unit in which a price per unit is counted."""

Item = Mapping[str, Any]


def cents(amount: Decimal) -> int:
    """Return an amount with two decimals in cents."""
    return int(amount.scaleb(2))


def amount_text(value: int) -> str:
    """Return cents as a decimal string: 1050 is ``10.50``."""
    units, rest = divmod(abs(value), 100)
    return f"{'-' if value < 0 else ''}{units}.{rest:02}"


def divided(value: int, by: int) -> int:
    """Return an integer divided by a positive one, rounded half away from zero."""
    quotient = (2 * abs(value) + by) // (2 * by)
    return -quotient if value < 0 else quotient


def price_times_quantity(price: Decimal, quantity: int) -> int:
    """Return price * quantity in cents. Prices have up to six decimals (orders 9)."""
    return divided(int(price.scaleb(6)) * quantity, PRICE_UNITS // 100)


def sums_of(lists: Mapping[str, Iterable[Item]], shipping_tax: int) -> dict[str, int]:
    """Return the sums of an order in cents, by column name (orders 2 and 9, records 3).

    Args:
        lists: the items of each list, amounts in cents.
        shipping_tax: in cents.
    """
    lines, fees = list(lists["line_items"]), list(lists["fee_lines"])
    coupons = list(lists["coupon_lines"])
    subtotal = sum(line["subtotal"] for line in lines)
    line_totals = sum(line["total"] for line in lines)
    shipping = sum(line["total"] for line in lists["shipping_lines"])
    cart_tax = sum(item["total_tax"] for item in (*lines, *fees))
    reduced = subtotal - line_totals
    applied = sum(coupon["amount"] for coupon in coupons if coupon["applied"])
    recorded = sum(coupon["amount"] for coupon in coupons if not coupon["applied"])
    # Recorded amounts count only if no line total contains them (orders 9).
    discount = reduced + max(0, recorded - (reduced - applied))
    fee_totals = sum(fee["total"] for fee in fees)
    return {
        "subtotal": subtotal,
        "total_discount": discount,
        "cart_tax": cart_tax,
        "total_shipping": shipping,
        "shipping_tax": shipping_tax,
        "total": line_totals + fee_totals + shipping + cart_tax + shipping_tax,
        "discount_tax": max(0, sum(line["subtotal_tax"] - line["total_tax"] for line in lines)),
        "fees": fee_totals,
    }


def sum_error(sums: Mapping[str, int]) -> str | None:
    """Return the reason why sums are outside the allowed range, or None."""
    if sums["total"] < 0:
        return "the total must not be negative."
    if sums["total"] > MAX_TOTAL:
        return f"the total must not be above {amount_text(MAX_TOTAL)}."
    total_tax = sums["cart_tax"] + sums["shipping_tax"]
    if any(abs(value) > INT64_MAX for value in (*sums.values(), total_tax)):
        return "a sum in cents exceeds the range of 64-bit integers."
    return None
