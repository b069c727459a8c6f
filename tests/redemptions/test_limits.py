"""Limits of coupon uses (redemptions 4 and 6)."""

import pytest

from tests.redemptions.calls import USED_UP, move, post, rejected, reserve, usage_count

pytestmark = pytest.mark.both_databases

USED_UP_BY_CUSTOMER = ["usage_limit_per_user"]


def test_usage_limit(admin, make_coupon, expire):
    coupon = make_coupon(code="summer", usage_limit=2)
    first, second = (reserve(admin, reference=f"cart-{n}") for n in range(2))
    assert rejected(post(admin, reference="cart-3")) == USED_UP
    move(admin, first, "confirm")
    assert rejected(post(admin, reference="cart-3")) == USED_UP
    move(admin, second, "release")
    third = reserve(admin, reference="cart-3")
    assert rejected(post(admin, reference="cart-4")) == USED_UP
    expire(third)
    reserve(admin, reference="cart-4")
    assert usage_count(admin, coupon) == 1
    move(admin, first, "release")
    assert usage_count(admin, coupon) == 0
    reserve(admin, reference="cart-5")
    assert rejected(post(admin, reference="cart-6")) == USED_UP


def test_usage_count_continues_from_an_update(admin, make_coupon):
    coupon = make_coupon(code="summer", usage_limit=12)
    first, second = (move(admin, reserve(admin, reference=f"{n}"), "confirm") for n in range(2))
    admin.put(f"/coupons/{coupon['id']}", {"coupon": {"usage_count": 10}})
    move(admin, reserve(admin, reference="a"), "confirm")
    assert usage_count(admin, coupon) == 11
    reserve(admin, reference="b")
    assert rejected(post(admin, reference="c")) == USED_UP
    admin.put(f"/coupons/{coupon['id']}", {"coupon": {"usage_count": 1}})
    for redemption in (first, second):
        move(admin, redemption, "release")
    assert usage_count(admin, coupon) == 0


def test_limit_that_is_set_later_counts_earlier_reservations(admin, make_coupon, expire):
    coupon = make_coupon(code="summer")
    first, second, third = (reserve(admin, reference=f"{n}") for n in range(3))
    move(admin, third, "confirm")
    admin.put(f"/coupons/{coupon['id']}", {"coupon": {"usage_limit": 3}})
    assert rejected(post(admin, reference="a")) == USED_UP
    expire(first)
    reserve(admin, reference="a")
    assert rejected(post(admin, reference="b")) == USED_UP
    move(admin, second, "release")
    reserve(admin, reference="b")
    assert rejected(post(admin, reference="c")) == USED_UP


def test_confirm_after_the_limit_was_lowered(admin, make_coupon):
    coupon = make_coupon(code="summer", usage_limit=2)
    both = [reserve(admin, reference=f"{n}") for n in range(2)]
    admin.put(f"/coupons/{coupon['id']}", {"coupon": {"usage_limit": 1}})
    for redemption in both:
        assert move(admin, redemption, "confirm")["status"] == "confirmed"
    assert usage_count(admin, coupon) == 2


def customers(make_customer):
    ada = make_customer(email="ada@example.com", billing_address={"email": "billing@example.com"})
    bob = make_customer(email="bob@example.com")
    return {"ada": {"customer_id": ada["id"]}, "bob": {"customer_id": bob["id"]}}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("ada", "ada", True),
        ("ada", "bob", False),
        ("ada", {"email": "ADA@example.com"}, True),
        ({"email": "ADA@example.com"}, "ada", True),
        ({"email": "x@example.com"}, {"email": "X@Example.com"}, True),
        ({"email": "x@example.com"}, {"email": "y@example.com"}, False),
        ("ada", {"email": "billing@example.com"}, False),
        ({"email": "billing@example.com"}, "ada", False),
        ("ada", {}, False),
        ({}, "ada", False),
        ({}, {}, False),
    ],
)
@pytest.mark.parametrize("usage_limit", [0, 5])
def test_limit_per_user(admin, make_coupon, make_customer, first, second, same, usage_limit):
    known = customers(make_customer)
    make_coupon(code="summer", usage_limit_per_user=1, usage_limit=usage_limit)
    redemption = reserve(admin, **(known[first] if isinstance(first, str) else first))
    other = known[second] if isinstance(second, str) else second
    response = post(admin, reference="cart-2", **other)
    if not same:
        assert response.status_code == 201
        return
    assert rejected(response) == USED_UP_BY_CUSTOMER
    move(admin, redemption, "confirm")
    assert rejected(post(admin, reference="cart-2", **other)) == USED_UP_BY_CUSTOMER
    move(admin, redemption, "release")
    reserve(admin, reference="cart-2", **other)


def test_limit_per_user_knows_the_email_stored_with_a_redemption(admin, make_coupon, make_customer):
    make_coupon(code="summer", usage_limit_per_user=1)
    ada = make_customer(email="ada@example.com")
    reserve(admin, customer_id=ada["id"], email="old@example.com")
    assert rejected(post(admin, reference="2", email="Old@example.com")) == USED_UP_BY_CUSTOMER
    assert rejected(post(admin, reference="2", email="ada@example.com")) == USED_UP_BY_CUSTOMER
