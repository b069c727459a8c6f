"""Who is a person: an account with its addresses and orders, or a guest (people 3)."""

import pytest
from sqlalchemy import select

from app.db.read_pool import fetch
from app.errors import ShopError
from app.models import ORDERS, REDEMPTIONS
from app.services.persons.lookup import find_person
from tests.factories import insert_order
from tests.redemptions.calls import reserve

ANNA = "anna@example.com"


@pytest.fixture
def shop(app, admin):
    """An account with an order, orders of guests, and the account whose billing e-mail is Anna's."""
    made = {}
    for name, email, billing in (
        ("anna", "Anna@Example.com", "office@example.com"),
        ("ben", "ben@example.com", ANNA),
    ):
        body = {"customer": {"email": email, "billing_address": {"email": billing}}}
        made[name] = admin.post("/customers", body).get_json()["customer"]["id"]
    for name, over in {
        "of_anna": {"customer_id": made["anna"], "billing_email": "gift@example.com"},
        "guest": {"billing_email": "ANNA@example.com"},
        "trashed": {"billing_email": ANNA, "status": "trash", "status_before_trash": "pending"},
        "other": {"billing_email": "other@example.com"},
        "of_ben": {"customer_id": made["ben"], "billing_email": ANNA},
        "nameless": {"billing_email": ""},
        "unicode": {
            "billing_email": "ÄNNA@example.com",
            "billing_email_normalized": "änna@example.com",
        },
    }.items():
        made[name] = insert_order(app, **over)
    return made


def found(app, shop, **names):
    """Return the person that a name means and its orders by their names."""
    with app.app_context():
        person = find_person(fetch, names)
        ids = {row.id for row in fetch(select(ORDERS.c.id).where(person.has_order))}
    return person, {
        name for name, order_id in shop.items() if order_id in ids and name not in {"anna", "ben"}
    }


OF_ACCOUNT = {"of_anna", "guest", "trashed"}


@pytest.mark.both_databases
def test_an_account_has_its_orders_and_those_of_guests_with_its_address(app, shop):
    for names in (
        {"customer_id": shop["anna"]},
        {"email": "ANNA@example.com"},
        {"order_id": shop["of_anna"]},
    ):
        person, orders = found(app, shop, **names)
        assert (person.customer_id, person.emails, orders) == (shop["anna"], (ANNA,), OF_ACCOUNT), (
            names
        )


@pytest.mark.both_databases
def test_a_guest_is_never_an_account(app, shop):
    assert found(app, shop, order_id=shop["guest"])[0].customer_id is None
    assert found(app, shop, order_id=shop["guest"])[1] == {"guest", "trashed"}
    assert found(app, shop, order_id=shop["nameless"])[1] == {"nameless"}
    assert found(app, shop, email="änna@EXAMPLE.com")[1] == {"unicode"}


def test_a_use_of_a_coupon_is_a_record_of_an_address(app, admin, shop):
    admin.post("/coupons", {"coupon": {"code": "ten", "amount": "10", "type": "percent"}})
    reserve(admin, "ten", "cart-1", email="Cart@Example.com")
    person, orders = found(app, shop, email="cart@example.com")
    with app.app_context():
        uses = fetch(select(REDEMPTIONS.c.reference).where(person.has_redemption))
    assert (orders, [use.reference for use in uses]) == (set(), ["cart-1"])


@pytest.mark.parametrize(
    ("names", "code"),
    [
        ({}, "shop_api_invalid_param"),
        ({"customer_id": 1, "email": ANNA}, "shop_api_invalid_param"),
        ({"customer_id": 0}, "shop_api_invalid_customer"),
        ({"customer_id": 2**70}, "shop_api_invalid_customer"),
        ({"order_id": 2**70}, "shop_api_invalid_order_id"),
        ({"email": "office@example.com"}, "shop_api_invalid_person"),
        ({"email": ""}, "shop_api_invalid_person"),
    ],
)
def test_an_unknown_person_is_an_error(app, shop, names, code):
    with app.app_context(), pytest.raises(ShopError) as error:
        find_person(fetch, names)
    assert error.value.code == code
