"""Discounts to the cent (redemptions 3 and 6): examples computed by hand, and properties."""

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.pricing.carts import Cart, CartItem, CouponTerms, line_value
from app.pricing.discounts import COUPON_TYPES, CartLine, CouponType, fixed_cart
from app.pricing.evaluation import evaluate

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def item(quantity, price, product_id=0, **over):
    return CartItem(line_value(Decimal(price), quantity), quantity, product_id, **over)


def worth(cents, quantity):
    """A line whose value was given, as an order's subtotal is: it need not divide evenly."""
    return CartItem(cents, quantity)


def coupon(kind, amount, n=0, only=(), **over):
    return CouponTerms(
        kind, Decimal(amount), limit_usage_to_x_items=n, product_ids=frozenset(only), **over
    )


def discounts(items, coupons, *, sequential=False, coupon_types=COUPON_TYPES):
    """The cents of each coupon and of each item."""
    result = evaluate(
        Cart(items),
        {str(number): terms for number, terms in enumerate(coupons)},
        sequential=sequential,
        now=NOW,
        coupon_types=coupon_types,
    )
    assert [one.reasons for one in result.coupons] == [()] * len(coupons)
    return [one.discount for one in result.coupons], [one.discount for one in result.items]


def percent(amount, n=0, only=()):
    return coupon("percent", amount, n, only)


def product(amount, n=0, only=()):
    return coupon("fixed_product", amount, n, only)


def gift(amount, n=0, only=(), **over):
    return coupon("buy_x_get_y", amount, n, only, **over)


def cart(amount, n=0):
    return coupon("fixed_cart", amount, n)


@pytest.mark.parametrize(
    ("price", "quantity", "cents"),
    [
        ("13.95", 3, 4185),
        ("0.005", 1, 1),
        ("0.0049", 1, 0),
        ("0.0049", 2, 1),
        ("1.333333", 3, 400),
        ("0.000001", 5_000, 1),
        ("0.000001", 4_999, 0),
        # Exact where a context of 28 digits is not.
        ("9999999999999999.999999", 10**9, 999999999999999999999900000),
        ("9999999999999999.999999", 10**9 + 1, 1000000000999999999999900000),
    ],
)
def test_line_value_is_rounded_half_up(price, quantity, cents):
    assert line_value(Decimal(price), quantity) == cents


EXAMPLES = {
    # items, coupons, cents of each coupon, cents of each item
    "10 % of 59.85 is 598.5 cents, half down": (
        [item(3, "13.95"), item(10, "1.80")], [percent(10)], [598], [418, 180],
    ),
    "each to the original value": (
        [item(3, "13.95"), item(10, "1.80")], [percent(10), percent(20)],
        [598, 1197], [1255, 540],
    ),
    "missing cents go to the highest value first": (
        [item(1, "0.14"), item(1, "0.15"), item(1, "0.16")], [percent(10)], [4], [1, 1, 2],
    ),
    "missing cents go to equal values in cart order": (
        [item(1, "0.05")] * 5, [percent(10)], [2], [1, 1, 0, 0, 0],
    ),
    "half a cent of the whole is no cent": ([item(1, "0.05")], [percent(10)], [0], [0]),
    "more than half a cent of the whole is a cent": ([item(1, "0.06")], [percent(10)], [1], [1]),
    "a percentage with decimals": (
        [item(1, "1.00")] * 3, [percent("33.33")], [100], [34, 33, 33],
    ),
    "a percentage above 100 is capped by the line": (
        [item(2, "5.00"), item(1, "3.00")], [percent(150)], [1300], [1000, 300],
    ),
    "percent_product is percent": (
        [item(1, "1.00")] * 3, [coupon("percent_product", "33.33")], [100], [34, 33, 33],
    ),
    "n units along the lines": (
        [item(10, "1.80"), item(3, "13.95")], [percent(10, n=5)], [454], [36, 418],
    ),
    "n units, two coupons": (
        [item(3, "10"), item(3, "5")], [percent(30, n=5), percent(20)],
        [1200, 900], [1500, 600],
    ),
    "n above all units": ([item(2, "5")], [percent(10, n=9)], [100], [100]),
    "one of three units worth 100 cents": ([worth(100, 3)], [percent(100, n=1)], [33], [33]),
    # 66 2/3 cents: 66 for the line, 67 of the whole.
    "two of three units worth 100 cents": ([worth(100, 3)], [percent(100, n=2)], [67], [67]),
    "a percentage above 100 of one unit": ([item(3, "10")], [percent(150, n=1)], [1500], [1500]),
    # 50 % of A would be 500; 100 are left. B takes one of the missing 400 cents for each unit.
    "missing cents after a cap, at most one for each unit": (
        [item(1, "10", 1), item(3, "5", 2)], [product(9, only=[1]), percent(50)],
        [900, 100 + 750 + 3], [1000, 753],
    ),
    "missing cents after a cap, beyond n": (
        [item(1, "10", 1), item(2, "4", 2)], [product(9, only=[1]), percent(50, n=1)],
        [900, 102], [1000, 2],
    ),
    "a used-up line has no units for n": (
        [item(1, "10"), item(1, "8")], [product(10, n=1), percent(100, n=1)],
        [1000, 800], [1000, 800],
    ),
    "amount for each unit": (
        [item(3, "13.95"), item(10, "1.80")], [product(10)], [4800], [3000, 1800],
    ),
    "amount for each of n units": (
        [item(3, "13.95"), item(5, "1.80")], [product(10, n=5)], [3360], [3000, 360],
    ),
    "amount above the price of n units": ([item(3, "13.95")], [product(15, n=1)], [1395], [1395]),
    "the value of n units, rounded down": ([worth(100, 3)], [product(1, n=2)], [66], [66]),
    "coupons of one unit each": (
        [item(4, "10")], [product(10, n=1), product(10, n=1), percent(100, n=1)],
        [1000, 1000, 1000], [3000],
    ),
    "items that do not meet the conditions get nothing": (
        [item(1, "10", 1), item(1, "20", 2)], [product(3, only=[1])], [300], [300, 0],
    ),
    "a cart amount with a last cent": ([item(1, "1")] * 3, [cart(1)], [100], [34, 33, 33]),
    # 250 each, of which the first line takes 50; 200 more for the second.
    "a cart amount is repeated with the remainder": (
        [item(1, "0.50"), item(1, "10")], [cart(5)], [500], [50, 450],
    ),
    "a cart amount by units": ([item(3, "4"), item(1, "11")], [cart(4)], [400], [300, 100]),
    "a cart amount above the subtotal": ([item(2, "4"), item(1, "5")], [cart(20)], [1300], [800, 500]),
    "less than a cent for each unit": ([item(1, "1")] * 3, [cart("0.02")], [2], [1, 1, 0]),
    "several cents for a line of several units": (
        [item(1, "9"), item(5, "1")], [cart("0.03")], [3], [1, 2],
    ),
    "a cart amount ignores product conditions": (
        [item(1, "10", 1), item(1, "20", 2)], [coupon("fixed_cart", 3, only=[1])],
        [300], [150, 150],
    ),
    # 333, 222, 148, 99, 66, 44, 29, 19, 13, 9, 6, 4, 2, 2, 1, 1 and then two cents.
    "n limits each pass of a cart amount": ([item(3, "5")], [cart(10, n=1)], [1000], [1000]),
    # 100, 66, 44, 30, 20, 13, 9, 6, 4, 2, 2, 1, 1: 298, and two cents over two lines.
    "the last cents of a cart amount exceed n": (
        [item(1, "5"), item(1, "4"), item(1, "3")], [cart(3, n=1)], [300], [299, 1, 0],
    ),
    # A third of a cent is the value of one unit: the pass gives nothing, and none follows.
    "a pass without a discount is the last": ([worth(1, 3)], [cart(1, n=1)], [0], [0]),
    "lines without value have no units": (
        [item(5, "0"), item(1, "1")], [cart("0.60")], [60], [0, 60],
    ),
    "a line below zero gets nothing": ([worth(-500, 1), item(1, "10")], [percent(10)], [100], [0, 100]),
    "negative amounts": (
        [item(2, "5")], [cart(-5), percent(-5), product(-5), percent(10)],
        [0, 0, 0, 100], [100],
    ),
    # Rounding each line down and the whole half down must not leave cents to distribute.
    "a negative percentage": ([item(10, "0.01")] * 5, [percent(-1)], [0], [0] * 5),
    "no amount": ([item(2, "5")], [CouponTerms("percent"), CouponTerms("fixed_cart")], [0, 0], [0]),
    "nothing left": ([item(1, "5")], [percent(100), cart(5), product(5), percent(5)], [500, 0, 0, 0], [500]),
    # 902.25, 1503.75 and 593.98 cents, and then two missing cents.
    "shares of a maximum": (
        [item(1, "12"), item(1, "20"), item(1, "7.90")], [coupon("percent", 100, maximum_discount=Decimal(30))],
        [3000], [903, 1504, 593],
    ),
    "a discount below the maximum": (
        [item(1, "12")], [coupon("percent", 50, maximum_discount=Decimal(6))], [600], [600],
    ),
    "a maximum of an amount, after n": (
        [item(2, "10"), item(2, "5")], [coupon("fixed_product", 4, n=3, maximum_discount=Decimal("5.00"))],
        [500], [334, 166],
    ),
    "a maximum of 0 is none": (
        [item(1, "10")], [coupon("fixed_cart", 4, maximum_discount=Decimal(0))], [400], [400],
    ),
    "3 for 2 of five units": (
        [item(1, "10"), item(1, "9"), item(1, "8"), item(1, "3"), item(1, "2")],
        [gift(100, buy_quantity=2)], [200], [0, 0, 0, 0, 200],
    ),
    "half of one of each two units": ([item(3, "8")], [gift(50)], [400], [400]),
    "a remainder above the units to buy": ([item(2, "5")], [gift(100, get_quantity=2)], [500], [500]),
    "at most n discounted units": ([item(9, "5")], [gift(100, n=2, buy_quantity=2)], [1000], [1000]),
    "of equal units, those of the later line": (
        [item(1, "8"), item(3, "8")], [gift(100, buy_quantity=3)], [800], [0, 800],
    ),
    "the cheapest units across lines": (
        [item(2, "9"), item(2, "3")], [gift(100, get_quantity=3)], [1500], [900, 600],
    ),
    "given products": (
        [item(5, "9", 1), item(3, "4", 2)],
        [gift(100, buy_quantity=2, only=[1], get_product_ids=frozenset([2]))], [800], [0, 800],
    ),
    "all products but the given ones are bought": (
        [item(2, "9", 1), item(1, "4", 2)],
        [gift(50, get_product_ids=frozenset([2]))], [200], [0, 200],
    ),
    "missing cents go to lines with discounted units": (
        [item(1, "9"), item(1, "0.01"), item(1, "0.01"), item(1, "0.01")],
        [gift(40, get_quantity=3)], [1], [0, 1, 0, 0],
    ),
    "a gift above its value": ([item(2, "5")], [gift(300)], [1000], [1000]),
    "used up units are neither bought nor given": (
        [item(1, "5", 1), item(2, "4", 2)], [percent(100, only=[1]), gift(100)],
        [500, 400], [500, 400],
    ),
    "an empty cart": ([], [cart(5), percent(5)], [0, 0], []),
}  # fmt: skip


@pytest.mark.parametrize(
    ("items", "coupons", "by_coupon", "by_item"), EXAMPLES.values(), ids=EXAMPLES
)
def test_discount(items, coupons, by_coupon, by_item):
    assert discounts(items, coupons) == (by_coupon, by_item)


SEQUENTIAL = {
    "the example of the specification": (
        [item(3, "13.95"), item(10, "1.80")], [percent(10), percent(20)],
        [598, 1077], [1171, 504],
    ),
    "n units of what is left": (
        [item(3, "10"), item(3, "5")], [percent(20), percent(30, n=5)],
        [900, 960], [1320, 540],
    ),
    "with free items": (
        [item(3, "1.80"), item(3, "13.95"), *[item(1, "0")] * 5],
        [percent(30, n=5), percent(20)], [1363, 672], [194, 1841, 0, 0, 0, 0, 0],
    ),
    "lines stay in the order of their original values": (
        [item(1, "10"), item(1, "8")], [percent(50, n=1), product(1, n=1)],
        [500, 100], [600, 0],
    ),
    # A unit costs 10.00, regardless of earlier discounts. A percentage applies to the remaining value.
    "coupons of one unit each": (
        [item(4, "10")], [product(10, n=1), product(10, n=1), percent(100, n=1)],
        [1000, 1000, 500], [2500],
    ),
    "a used-up line has no units for a cart amount": (
        [item(3, "5"), item(1, "10")], [product(5, n=3), cart(6)], [1500, 600], [1500, 600],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("items", "coupons", "by_coupon", "by_item"), SEQUENTIAL.values(), ids=SEQUENTIAL
)
def test_sequential_discount(items, coupons, by_coupon, by_item):
    assert discounts(items, coupons, sequential=True) == (by_coupon, by_item)


# --- coupon types of plugins ---


def test_plugin_rule_sees_lines_and_is_limited_to_what_is_left():
    seen = []

    def too_much(terms, lines):
        seen.extend(lines)
        return [10_000, -5]

    types = {**COUPON_TYPES, "bargain": CouponType(too_much)}
    items = [item(1, "3", 1), item(1, "9", 2), item(2, "4", 3)]
    bargain = coupon("bargain", 1, only=[1, 3])
    assert discounts(items, [percent(10), bargain], coupon_types=types) == (
        [200, 720], [30, 90, 800],
    )  # fmt: skip
    assert seen == [
        CartLine(800, 800, 720, 2, item=items[2], place=2),
        CartLine(300, 300, 270, 1, item=items[0], place=0),
    ]
    assert "bargain" not in COUPON_TYPES


def test_plugin_rule_that_discounts_the_cart_sees_every_line():
    types = {"first": CouponType(lambda terms, lines: [1] * len(lines), discounts_cart=True)}
    items = [item(1, "3", 1), item(1, "9", 2)]
    assert discounts(items, [coupon("first", 0, only=[1])], coupon_types=types)[1] == [1, 1]


def test_plugin_rule_returning_too_few_discounts_is_an_error():
    types = {"broken": CouponType(lambda terms, lines: [1])}
    with pytest.raises(ValueError, match="shorter"):
        discounts([item(1, "3"), item(1, "9")], [coupon("broken", 0)], coupon_types=types)


def test_type_without_its_plugin_discounts_nothing():
    assert discounts([item(1, "3")], [coupon("uninstalled", 5)]) == ([0], [0])


# --- properties ---

quantities = st.integers(1, 30)
items_ = st.builds(
    CartItem,
    value=st.integers(0, 300) | st.integers(0, 20_000),
    quantity=quantities,
    product_id=st.integers(1, 4),
)
carts = st.lists(items_, min_size=1, max_size=7)
limits = st.just(0) | st.integers(1, 40)
coupons_ = st.builds(
    CouponTerms,
    type=st.sampled_from(list(COUPON_TYPES)),
    amount=st.decimals(-1, 150, places=2) | st.integers(1, 100).map(Decimal),
    limit_usage_to_x_items=limits,
    exclude_product_ids=st.frozensets(st.integers(1, 4), max_size=1),
)
lists = st.lists(coupons_, min_size=1, max_size=3)


def listed(coupons):
    return {str(number): terms for number, terms in enumerate(coupons)}


@given(carts, lists, st.booleans())
def test_sums_agree_and_no_line_goes_below_zero(items, coupons, sequential):
    result = evaluate(Cart(items), listed(coupons), sequential=sequential, now=NOW)
    assert all(0 <= one.discount <= one.subtotal for one in result.items)
    assert all(one.total == one.subtotal - one.discount for one in result.items)
    assert result.subtotal == sum(one.value for one in items)
    assert result.discount == sum(one.discount for one in result.items)
    assert result.discount == sum(one.discount for one in result.coupons)
    assert result.total == result.subtotal - result.discount


@given(carts, coupons_)
def test_one_coupon_gives_no_more_than_its_amount(items, terms):
    result = evaluate(Cart(items), listed([terms]), sequential=False, now=NOW)
    units = sum(one.quantity for one in items)
    units = min(units, terms.limit_usage_to_x_items or units)
    amount = max(terms.amount, Decimal(0))
    # A percentage is rounded half down: less than half a cent above the exact amount.
    percentage = result.subtotal * amount / 100 + Decimal("0.5")
    most = {
        "fixed_cart": amount * 100,
        "fixed_product": amount * 100 * units,
        "percent": percentage,
        "percent_product": percentage,
        "buy_x_get_y": percentage,
    }
    assert result.discount <= most[terms.type]


@given(st.data(), lists, st.booleans())
def test_order_of_lines_is_irrelevant_except_for_ties(data, coupons, sequential):
    items = data.draw(st.lists(items_, min_size=1, max_size=7, unique_by=lambda one: one.value))
    shuffled = data.draw(st.permutations(items))
    one, other = (
        evaluate(Cart(each), listed(coupons), sequential=sequential, now=NOW)
        for each in (items, shuffled)
    )
    assert one.coupons == other.coupons
    by_value = [{each.subtotal: each for each in result.items} for result in (one, other)]
    assert by_value[0] == by_value[1]


@given(carts, lists, st.booleans(), st.integers(0, 3))
def test_coupon_that_is_not_applicable_changes_no_other(items, coupons, sequential, place):
    expired = CouponTerms("percent", Decimal(50), expiry_date=date(2026, 11, 20))
    codes = list(listed(coupons).items())
    without = evaluate(Cart(items), dict(codes), sequential=sequential, now=NOW)
    codes.insert(place, ("expired", expired))
    result = evaluate(Cart(items), dict(codes), sequential=sequential, now=NOW)
    assert [one for one in result.coupons if one.code != "expired"] == list(without.coupons)
    assert replace(result, coupons=without.coupons) == without


def fixed_cart_cent_by_cent(cents, n, lines):
    """Rule 6 as it is written: one pass after the other, one unit after the other."""
    given_ = [0] * len(lines)
    while True:
        open_ = [i for i, line in enumerate(lines) if given_[i] < line.left]
        units = [i for i in open_ for _ in range(lines[i].quantity)]
        if not units:
            return given_
        if cents < len(units):
            for i in units:
                if cents and given_[i] < lines[i].left:
                    given_[i] += 1
                    cents -= 1
            return given_
        taking = units[: n or None]
        before = sum(given_)
        for i in open_:
            count = taking.count(i)
            discount = cents // len(units) * count
            if n:
                discount = min(discount, lines[i].original_value * count // lines[i].quantity)
            given_[i] += min(discount, lines[i].left - given_[i])
        if not (given_now := sum(given_) - before):
            return given_
        cents -= given_now


@given(
    st.lists(
        st.tuples(st.integers(1, 5_000), st.integers(0, 4_999), quantities).map(
            lambda drawn: CartLine(drawn[0], drawn[0], max(1, drawn[0] - drawn[1]), drawn[2])
        ),
        min_size=1,
        max_size=5,
    ).map(lambda lines: sorted(lines, key=lambda line: -line.value)),
    st.integers(0, 9_000),
    limits,
)
def test_fixed_cart_is_the_same_as_pass_by_pass(lines, cents, n):
    terms = coupon("fixed_cart", Decimal(cents) / 100, n)
    assert fixed_cart(terms, lines) == fixed_cart_cent_by_cent(cents, n, lines)


def test_fixed_cart_for_a_billion_units_is_quick():
    # One unit takes part: pass by pass, ten million passes would come first.
    line = CartLine(10**18, 10**18, 10**18, 10**9)
    assert fixed_cart(coupon("fixed_cart", 10**8, n=1), [line]) == [10**10]
    # Above that, the number of passes is bounded, and the discount stays within its limits.
    assert 0 < fixed_cart(coupon("fixed_cart", 10**14, n=1), [line])[0] <= 10**16
