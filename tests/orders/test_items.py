"""The rules of order items and their sums, without a database (orders 2, 3 and 9)."""

from decimal import Decimal
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import InvalidOrderItems, ShopError
from app.services.orders.item_changes import MAX_ITEMS, changed_items
from app.services.orders.items import (
    OrderItems,
    amount_text,
    divided,
    items_of,
    price_times_quantity,
)
from tests.factories import NO_SHIPPING_TAX

LISTS = ("line_items", "shipping_lines", "fee_lines", "tax_lines", "coupon_lines")
LINE = {
    "id": 1, "subtotal": "8.00", "subtotal_tax": "0.00", "total": "8.00", "total_tax": "0.00",
    "price": "4.00", "quantity": 2, "tax_class": None, "name": "Mug", "product_id": None,
    "sku": None, "meta": [], "variation_id": 0, "taxes": [],
}  # fmt: skip


def money(text):
    return Decimal(text)


def stored(items, shipping_tax=0):
    """Return the stored form of items."""
    items.own_shipping_tax = bool(shipping_tax)
    return items.columns_with_sums(shipping_tax)


def created(**lists):
    return stored(changed_items(OrderItems(), lists, count(1)))


def changed(before, **lists):
    """Return the stored form of items after an update."""
    items = items_of(before)
    return stored(changed_items(items, lists, count(items.next_id)))


def lines(columns):
    """The amounts of each line: subtotal, total, price, quantity."""
    keys = ("subtotal", "total", "price", "quantity")
    return [tuple(line[key] for key in keys) for line in columns["line_items"]]


def errors(work, *args, **kwargs):
    with pytest.raises(InvalidOrderItems) as caught:
        work(*args, **kwargs)
    assert {entry["code"] for entry in caught.value.entries()} == {"shop_api_invalid_order_item"}
    return [entry["param"] for entry in caught.value.entries()]


# --- cents ---


@pytest.mark.parametrize(
    ("value", "by", "quotient"),
    [(5, 2, 3), (-5, 2, -3), (4, 2, 2), (1, 3, 0), (2, 3, 1), (0, 7, 0), (10**27 + 1, 2, 5 * 10**26 + 1)],
)  # fmt: skip
def test_divided_rounds_half_away_from_zero(value, by, quotient):
    assert divided(value, by) == quotient


@pytest.mark.parametrize(
    ("price", "quantity", "cents"),
    [
        ("13.95", 3, 4185),
        ("0.333333", 3, 100),
        ("0.005", 1, 1),
        ("0.004999", 1, 0),
        ("-0.005", 1, -1),
        ("0.000001", 10**9, 100_000),
        ("0", 5, 0),
    ],
)
def test_price_times_quantity(price, quantity, cents):
    assert price_times_quantity(money(price), quantity) == cents


@pytest.mark.parametrize(
    ("cents", "text"), [(0, "0.00"), (5, "0.05"), (-5, "-0.05"), (1050, "10.50"), (-1050, "-10.50")]
)
def test_amount_text(cents, text):
    assert amount_text(cents) == text


# --- create ---


def test_items_of_every_list():
    columns = created(
        line_items=[{"name": "Mug", "quantity": 2, "price": money("4")}],
        shipping_lines=[{"method_id": "flat_rate", "total": money("4.90")}],
        fee_lines=[{"title": "Wrapping", "total": money("-1.00"), "total_tax": money("0.10")}],
        tax_lines=[{"rate_id": 7, "total": money("99.00"), "compound": True}],
        coupon_lines=[{"code": "tea", "amount": money("2.00")}],
    )
    assert columns == {
        "line_items": [LINE],
        "shipping_lines": [
            {"id": 2, "method_id": "flat_rate", "method_title": "", "total": "4.90"}
            | NO_SHIPPING_TAX
        ],
        "fee_lines": [
            {
                "id": 3, "title": "Wrapping", "tax_class": None, "total": "-1.00",
                "total_tax": "0.10", "taxes": [],
            }
        ],
        "tax_lines": [
            {"id": 4, "rate_id": 7, "code": "", "title": "", "total": "99.00", "compound": True}
        ],
        "coupon_lines": [{"id": 5, "code": "tea", "amount": "2.00"}],
        "item_details": {
            "1": {"product_category_ids": [], "on_sale": False, "own_total": False},
            "5": {"applied": False, "earlier_redemptions": 0, "coupon_id": None},
        },
        "next_item_id": 6,
        "subtotal": money("8.00"),
        "total_discount": money("2.00"),
        "cart_tax": money("0.10"),
        "total_shipping": money("4.90"),
        "shipping_tax": money("0.00"),
        "total": money("12.00"),
        "discount_tax": money("0.00"),
        "fees": money("-1.00"),
        "items": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "amounts"),
    [
        ({"price": money("4")}, ("4.00", "4.00", "4.00", 1)),
        ({"price": money("0.333333"), "quantity": 3}, ("1.00", "1.00", "0.33", 3)),
        ({"subtotal": money("9.00"), "quantity": 2}, ("9.00", "9.00", "4.50", 2)),
        ({"total": money("9.00"), "quantity": 2}, ("9.00", "9.00", "4.50", 2)),
        ({"price": money("5"), "total": money("4.00")}, ("5.00", "4.00", "4.00", 1)),
        ({"price": money("5"), "subtotal": money("6.00")}, ("6.00", "6.00", "6.00", 1)),
        ({"subtotal": money("5.00"), "total": money("7.00")}, ("5.00", "7.00", "7.00", 1)),
        ({"total": money("1.00"), "quantity": 3}, ("1.00", "1.00", "0.33", 3)),
        ({"price": None, "total": money("1.00")}, ("1.00", "1.00", "1.00", 1)),
    ],
)
def test_amounts_of_a_new_line(line, amounts):
    assert lines(created(line_items=[{"name": "Mug", **line}])) == [amounts]


def test_a_negative_line_is_allowed_while_the_total_is_not_below_zero():
    line = {"name": "Mug", "total": money("-3.00")}
    fee = {"title": "Fee", "total": money("3.00")}
    columns = created(line_items=[line], fee_lines=[fee])
    assert (columns["total"], columns["subtotal"]) == (money("0.00"), money("-3.00"))
    assert errors(created, line_items=[line]) == ["order"]


@pytest.mark.parametrize(
    ("lists", "params"),
    [
        ({"line_items": [{"name": "Mug"}]}, ["order.line_items[0]"]),
        ({"line_items": [{"name": "Mug", "price": None}]}, ["order.line_items[0]"]),
        ({"line_items": [{"price": money("1")}]}, ["order.line_items[0]"]),
        ({"line_items": [{"name": "Mug", "price": money("1"), "quantity": 0}]},
         ["order.line_items[0].quantity"]),
        ({"line_items": [{"name": "Mug", "price": money("1"), "quantity": -1}]},
         ["order.line_items[0].quantity"]),
        ({"line_items": [{"name": "Mug", "price": money("1"), "quantity": 10**9 + 1}]},
         ["order.line_items[0].quantity"]),
        ({"line_items": [{"price": money("1"), "product_id": -1}]},
         ["order.line_items[0].product_id"]),
        ({"line_items": [{"name": "Mug", "price": money("9" * 16), "quantity": 10**9}]},
         ["order.line_items[0].subtotal"]),
        ({"shipping_lines": [{}]}, ["order.shipping_lines[0].method_id"]),
        ({"shipping_lines": [{"method_id": "x", "total": money("-0.01")}]},
         ["order.shipping_lines[0].total"]),
        ({"fee_lines": [{"title": ""}]}, ["order.fee_lines[0].title"]),
        ({"tax_lines": [{"rate_id": -1}]}, ["order.tax_lines[0].rate_id"]),
        ({"coupon_lines": [{"amount": money("1")}]}, ["order.coupon_lines[0].code"]),
        ({"coupon_lines": [{"code": "a"}, {"code": "b"}, {"code": "a"}]},
         ["order.coupon_lines[2].code"]),
        ({"line_items": [{"name": "a", "price": money("1")}, {"name": "b"}],
          "shipping_lines": [{"method_id": "x"}, {}], "fee_lines": [{}]},
         ["order.line_items[1]", "order.shipping_lines[1].method_id", "order.fee_lines[0].title"]),
        ({"line_items": [{"name": "a", "total": money("9" * 14)}]}, ["order"]),
    ],
)  # fmt: skip
def test_items_that_violate_a_rule_are_reported_together(lists, params):
    assert errors(created, **lists) == params


def test_too_many_items():
    fees = [{"title": "Fee"}] * MAX_ITEMS
    assert len(created(fee_lines=fees)["fee_lines"]) == MAX_ITEMS
    with pytest.raises(ShopError) as caught:
        changed(created(fee_lines=fees), fee_lines=[{"title": "Fee"}])
    assert (caught.value.code, caught.value.status) == ("shop_api_order_too_large", 413)


# --- recorded and applied coupons ---


@pytest.mark.parametrize(
    ("reduced", "recorded", "applied", "discount"),
    [
        ("0.00", ["5.00"], [], "5.00"),
        ("5.00", ["5.00"], [], "5.00"),
        ("5.00", ["3.00", "4.00"], [], "7.00"),
        ("5.00", [], ["5.00"], "5.00"),
        ("5.00", ["2.00"], ["5.00"], "7.00"),
        ("5.00", ["2.00"], ["3.00"], "5.00"),
        ("5.00", [], [], "5.00"),
        ("-5.00", [], [], "0.00"),
    ],
)
def test_total_discount(reduced, recorded, applied, discount):
    line = {"name": "Mug", "subtotal": money("20.00"), "total": money("20.00") - money(reduced)}
    coupons = [{"code": f"r{n}", "amount": money(amount)} for n, amount in enumerate(recorded)]
    coupons += [{"code": f"a{n}"} for n, _ in enumerate(applied)]
    items = changed_items(OrderItems(), {"line_items": [line], "coupon_lines": coupons}, count(1))
    for coupon, amount in zip(items.lists["coupon_lines"][len(recorded) :], applied, strict=True):
        assert coupon["applied"] is True
        coupon["amount"] = int(money(amount) * 100)
    assert stored(items)["total_discount"] == money(discount)


# --- update ---

MUG = {"name": "Mug", "quantity": 2, "price": Decimal("4")}
BEFORE = created(
    line_items=[MUG, {"name": "Pot", "price": Decimal("9"), "quantity": 3, "total": Decimal("20")}],
    shipping_lines=[{"method_id": "flat_rate", "total": Decimal("4.90")}],
    coupon_lines=[{"code": "tea", "amount": Decimal("2.00")}],
)


@pytest.mark.parametrize(
    ("change", "amounts"),
    [
        ({"quantity": 4}, ("16.00", "16.00", "4.00", 4)),
        ({"quantity": 1}, ("4.00", "4.00", "4.00", 1)),
        ({"subtotal": money("6.00")}, ("6.00", "6.00", "3.00", 2)),
        ({"total": money("6.00")}, ("8.00", "6.00", "3.00", 2)),
        ({"price": money("5")}, ("10.00", "10.00", "5.00", 2)),
        ({"price": money("5"), "quantity": 3}, ("15.00", "15.00", "5.00", 3)),
        ({"quantity": 4, "total": money("6.00")}, ("16.00", "6.00", "1.50", 4)),
        ({"quantity": 4, "subtotal": money("6.00")}, ("6.00", "6.00", "1.50", 4)),
        ({"price": money("5"), "total": money("6.00")}, ("10.00", "6.00", "3.00", 2)),
        ({"price": None, "quantity": None}, ("8.00", "8.00", "4.00", 2)),
        ({"name": "Cup"}, ("8.00", "8.00", "4.00", 2)),
    ],
)
def test_amounts_of_a_changed_line(change, amounts):
    assert lines(changed(BEFORE, line_items=[{"id": 1, **change}]))[0] == amounts


def test_a_quantity_alone_changes_both_amounts_in_proportion():
    assert lines(changed(BEFORE, line_items=[{"id": 2, "quantity": 1}]))[1] == (
        "9.00", "6.67", "6.67", 1,
    )  # fmt: skip


def test_only_supplied_keys_of_an_item_change():
    after = changed(BEFORE, line_items=[{"id": 1, "sku": "SKU-1", "on_sale": True}])
    assert after["line_items"] == [LINE | {"sku": "SKU-1"}, BEFORE["line_items"][1]]
    assert after["item_details"]["1"] == {
        "product_category_ids": [],
        "on_sale": True,
        "own_total": False,
    }
    cleared = changed(after, line_items=[{"id": 1, "sku": ""}])
    assert cleared["line_items"][0] == LINE


def test_ids_ascend_and_are_never_reused():
    after = changed(BEFORE, coupon_lines=[{"id": 4, "remove": True}])
    after = changed(after, fee_lines=[{"title": "Fee"}], line_items=[MUG])
    assert [line["id"] for line in after["line_items"]] == [1, 2, 5]
    assert [line["id"] for line in after["fee_lines"]] == [6]
    assert after["next_item_id"] == 7
    assert after["item_details"].keys() == {"1", "2", "5"}


def test_orders_from_before_keep_their_ids():
    old = BEFORE | {"line_items": [LINE | {"id": 71}], "item_details": None, "next_item_id": 1}
    assert [line["id"] for line in changed(old, line_items=[MUG])["line_items"]] == [71, 72]


def test_the_price_of_an_imported_line_without_units_is_its_total():
    old = BEFORE | {"line_items": [BEFORE["line_items"][0] | {"quantity": 0}]}
    ((_, total, price, quantity), _) = lines(changed(old, line_items=[MUG]))
    assert (price, quantity) == (total, 0)


@pytest.mark.parametrize("removal", [{"remove": True}, {"quantity": 0}])
def test_removed_lines_are_gone_and_new_ones_come_last(removal):
    after = changed(BEFORE, line_items=[MUG, {"id": 1, **removal}])
    assert [line["id"] for line in after["line_items"]] == [2, 5]
    assert after["subtotal"] == money("35.00")


def test_the_last_line_can_be_removed():
    after = changed(BEFORE, line_items=[{"id": 1, "remove": True}, {"id": 2, "remove": True}])
    assert (after["line_items"], after["total"]) == ([], money("4.90"))


@pytest.mark.parametrize(
    ("lists", "params"),
    [
        ({"line_items": [{"id": 9}]}, ["order.line_items[0].id"]),
        ({"line_items": [{"id": 3}]}, ["order.line_items[0].id"]),
        ({"line_items": [{"id": -1}]}, ["order.line_items[0].id"]),
        ({"line_items": [{"id": 1}, {"id": 1}]}, ["order.line_items[1].id"]),
        ({"line_items": [{"id": 1, "remove": True}, {"id": 1}]}, ["order.line_items[1].id"]),
        ({"line_items": [{"id": 1, "name": ""}]}, ["order.line_items[0]"]),
        ({"line_items": [{"id": 1, "quantity": -1}]}, ["order.line_items[0].quantity"]),
        ({"line_items": [{"quantity": 0, "name": "x", "price": money("1")}]},
         ["order.line_items[0].quantity"]),
        ({"shipping_lines": [{"id": 3, "method_id": ""}]}, ["order.shipping_lines[0].method_id"]),
        ({"coupon_lines": [{"id": 4, "code": "other"}]}, ["order.coupon_lines[0].code"]),
        ({"coupon_lines": [{"code": "tea", "amount": money("1")}]}, ["order.coupon_lines[0].code"]),
        ({"coupon_lines": [{"id": 4, "remove": False}, {"id": 9}]}, ["order.coupon_lines[1].id"]),
    ],
)  # fmt: skip
def test_changes_that_violate_a_rule(lists, params):
    assert errors(changed, BEFORE, **lists) == params


def test_a_code_is_free_again_once_its_line_is_removed():
    change = [{"id": 4, "remove": True}, {"code": "tea", "amount": money("1.00")}]
    assert changed(BEFORE, coupon_lines=change)["coupon_lines"] == [
        {"id": 5, "code": "tea", "amount": "1.00"}
    ]


def test_an_amount_makes_an_applied_coupon_recorded():
    items = changed_items(OrderItems(), {"coupon_lines": [{"code": "tea"}]}, count(1))
    assert items.lists["coupon_lines"][0]["applied"] is True
    after = changed(stored(items), coupon_lines=[{"id": 1, "amount": money("3.00")}])
    assert after["coupon_lines"] == [{"id": 1, "code": "tea", "amount": "3.00"}]
    assert after["item_details"] == {
        "1": {"applied": False, "earlier_redemptions": 0, "coupon_id": None}
    }


# --- properties ---

AMOUNTS = st.integers(0, 10**8).map(lambda cents: Decimal(cents).scaleb(-2))
LINES = st.fixed_dictionaries(
    {"name": st.just("x"), "quantity": st.integers(1, 1000), "total": AMOUNTS},
    optional={"subtotal": AMOUNTS, "total_tax": AMOUNTS},
)
FEES = st.fixed_dictionaries({"title": st.just("x"), "total": AMOUNTS, "total_tax": AMOUNTS})
SHIPPING = st.fixed_dictionaries({"method_id": st.just("x"), "total": AMOUNTS})
ORDERS = st.fixed_dictionaries(
    {
        "line_items": st.lists(LINES, max_size=8),
        "fee_lines": st.lists(FEES, max_size=3),
        "shipping_lines": st.lists(SHIPPING, max_size=3),
    }
)
SUMS = ("subtotal", "total_discount", "cart_tax", "total_shipping", "shipping_tax", "total")


@settings(max_examples=60, deadline=None)
@given(ORDERS, AMOUNTS)
def test_sums_add_up(order, shipping_tax):
    columns = stored(changed_items(OrderItems(), order, count(1)), int(shipping_tax * 100))
    total = {name: sum(Decimal(item["total"]) for item in columns[name]) for name in LISTS[:3]}
    taxes = [item["total_tax"] for name in ("line_items", "fee_lines") for item in columns[name]]
    assert columns["cart_tax"] == sum(map(Decimal, taxes))
    assert columns["total_shipping"] == total["shipping_lines"]
    assert columns["total"] == sum(total.values()) + columns["cart_tax"] + shipping_tax
    assert columns["total_discount"] == max(0, columns["subtotal"] - total["line_items"])


@settings(max_examples=60, deadline=None)
@given(ORDERS, st.randoms())
def test_the_order_of_the_items_does_not_change_the_sums(order, chance):
    shuffled = {name: chance.sample(items, len(items)) for name, items in order.items()}
    one, other = (stored(changed_items(OrderItems(), each, count(1))) for each in (order, shuffled))
    assert {name: one[name] for name in SUMS} == {name: other[name] for name in SUMS}


@settings(max_examples=60, deadline=None)
@given(ORDERS, ORDERS)
def test_removing_what_was_added_restores_the_order(order, more):
    before = stored(changed_items(OrderItems(), order, count(1)))
    added = changed(before, **more)
    ids = {name: {item["id"] for item in before[name]} for name in LISTS}
    removals = {
        name: [
            {"id": item["id"], "remove": True}
            for item in added[name]
            if item["id"] not in ids[name]
        ]
        for name in LISTS
    }
    after = changed(added, **removals)
    assert after | {"next_item_id": 0} == before | {"next_item_id": 0}
    assert after["next_item_id"] == before["next_item_id"] + sum(map(len, more.values()))
