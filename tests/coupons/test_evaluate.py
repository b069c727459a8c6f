"""POST /coupons/evaluate: discounts and reasons (redemptions 1, 2 and 6)."""

from decimal import Decimal

import pytest

from app.schemas.coupons.cart import CartItems
from app.schemas.fields.input import Quantity
from tests.api_client import refusal, refused_params, reply, without_key

ITEM = {
    "product_id": 7,
    "product_category_ids": [3],
    "quantity": 2,
    "price": "13.95",
    "on_sale": False,
}


NOTHING = {"subtotal": "0.00", "discount": "0.00", "total": "0.00", "free_shipping": False}


def shown(code, coupon_id, discount, *reasons):
    """One coupon of an evaluation."""
    found = [{"code": reason, "message": message} for reason, message in reasons]
    result = {"applicable": not reasons, "discount": discount, "reasons": found}
    return {"code": code, "id": coupon_id} | result


def evaluate(client, *listed, items=(ITEM,), **cart):
    body = {"cart": {"coupons": list(listed), "items": list(items)} | cart}
    return client.post("/coupons/evaluate", body)


def evaluation(client, *listed, **cart):
    response = evaluate(client, *listed, **cart)
    assert response.status_code == 200, response.get_json()
    return response.get_json()["evaluation"]


def reasons(client, *listed, **cart):
    """The codes of the reasons of the last listed coupon."""
    result = evaluation(client, *listed, **cart)["coupons"][-1]
    assert result["applicable"] == (not result["reasons"])
    return [reason["code"] for reason in result["reasons"]]


@pytest.mark.both_databases
def test_evaluation(admin, make_coupon):
    summer = make_coupon(code="Summer", type="percent", amount=20)
    vip = make_coupon(code="vip", minimum_amount=100)
    too_small = "The subtotal of 27.90 is below the minimum amount of 100.00."
    sums = {"subtotal": "27.90", "discount": "5.58", "total": "22.32"}
    assert evaluation(admin, "SUMMER", "vip", "summer", "none", items=[ITEM]) == sums | {
        "free_shipping": False,
        "coupons": [
            shown("summer", summer["id"], "5.58"),
            shown("vip", vip["id"], "0.00", ("minimum_amount", too_small)),
            shown("none", None, "0.00", ("not_found", "No published coupon has this code.")),
        ],
        "items": [{"index": 0} | sums],
    }


@pytest.mark.parametrize("cart", [{}, {"coupons": None, "items": None}])
def test_empty_cart(admin, cart):
    expected = {"evaluation": NOTHING | {"coupons": [], "items": []}}
    assert reply(admin.post("/coupons/evaluate", {"cart": cart})) == (200, expected)


def test_sequential_discounts_are_a_setting(admin, client_with, make_coupon):
    make_coupon(code="ten", type="percent", amount=10)
    make_coupon(code="twenty", type="percent", amount=20)
    items = [{"price": "13.95", "quantity": 3}, {"price": "1.80", "quantity": 10}]
    assert evaluation(admin, "ten", "twenty", items=items)["discount"] == "17.95"
    sequential = evaluation(
        client_with(SHOP_SEQUENTIAL_DISCOUNTS=True), "ten", "twenty", items=items
    )
    assert [coupon["discount"] for coupon in sequential["coupons"]] == ["5.98", "10.77"]
    assert sequential["discount"] == "16.75"


def test_price_has_more_than_two_decimals(admin):
    assert evaluation(admin, items=[{"price": "0.125", "quantity": 4}])["total"] == "0.50"


@pytest.mark.parametrize(
    ("terms", "cart", "expected"),
    [
        ({"usage_limit": 3, "usage_count": 3}, {}, ["usage_limit"]),
        ({"usage_limit": 3, "usage_count": 2}, {}, []),
        ({"expiry_date": "2020-01-01"}, {}, ["expired"]),
        ({"maximum_amount": "27.89"}, {}, ["maximum_amount"]),
        ({"product_ids": [8]}, {}, ["product_not_included"]),
        ({"exclude_product_category_ids": [3]}, {}, ["product_excluded"]),
        (
            {"exclude_sale_items": True},
            {"items": [ITEM | {"on_sale": True}]},
            ["sale_items_excluded"],
        ),
        ({"customer_emails": ["*@example.com"]}, {}, ["email_not_allowed"]),
        ({"customer_emails": ["*@example.com"]}, {"email": "Ada@Example.com"}, []),
        ({"type": "percent", "product_ids": [8]}, {}, ["product_not_included", "product_excluded"]),
    ],
)
def test_reasons(admin, make_coupon, terms, cart, expected):
    make_coupon(code="summer", **terms)
    assert reasons(admin, "summer", **cart) == expected


def test_individual_use(admin, make_coupon):
    make_coupon(code="alone", individual_use=True)
    make_coupon(code="other")
    assert reasons(admin, "alone", "other") == ["individual_use"]


def test_coupon_in_the_trash_is_not_found(admin, make_coupon):
    coupon = make_coupon(code="summer")
    admin.delete(f"/coupons/{coupon['id']}")
    assert reasons(admin, "summer") == ["not_found"]


@pytest.mark.both_databases
def test_email_of_the_account_and_its_billing_email_are_allowed(admin, make_coupon, make_customer):
    make_coupon(code="one", customer_emails=["ada@example.com"])
    make_coupon(code="two", customer_emails=["billing@example.com"])
    ada = make_customer(email="ada@example.com", billing_address={"email": "billing@example.com"})
    assert reasons(admin, "one", customer_id=ada["id"]) == []
    assert reasons(admin, "two", customer_id=ada["id"], email="x@example.org") == []
    assert reasons(admin, "two", email="ada@example.com") == ["email_not_allowed"]


# --- rejected requests ---


@pytest.mark.parametrize("body", [None, {}, [], {"cart": None}, {"coupon": {}}])
def test_missing_cart(admin, body):
    assert reply(admin.post("/coupons/evaluate", body)) == refusal("shop_api_missing_cart_data")


def test_input_that_cannot_be_understood(admin):
    for cart, params in (
        ({"items": [ITEM, ITEM | {"price": "-0.01"}]}, ["items[1].price"]),
        ({"items": [{"quantity": 1}]}, ["items[0].price"]),
        ({"items": [ITEM | {"quantity": 0}]}, ["items[0].quantity"]),
        ({"items": [ITEM | {"quantity": -1}]}, ["items[0].quantity"]),
        (
            {"items": [ITEM | {"price": "a", "quantity": "b"}]},
            ["items[0].price", "items[0].quantity"],
        ),
        ({"items": {}}, ["items"]),
        ({"items": [1]}, ["items[0]"]),
        ({"coupons": "summer"}, ["coupons"]),
        ({"customer_id": "ada"}, ["customer_id"]),
        ({"email": ["ada"]}, ["email"]),
        ({"email": "no address"}, ["email"]),
    ):
        response = admin.post("/coupons/evaluate", {"cart": cart})
        assert sorted(refused_params(response)) == [f"cart.{param}" for param in params], cart
    for item in (None, 1, "mug", [ITEM]):
        response = admin.post("/coupons/evaluate", {"cart": {"items": [ITEM, item, ITEM]}})
        assert reply(response) == refusal(
            "shop_api_invalid_param", param="cart.items[1]", reason="must be an object."
        )


@pytest.mark.parametrize("customer_id", [-1, 999_999, 2**63 - 1])
def test_unknown_customer(admin, customer_id):
    _, body = refusal("shop_api_invalid_customer_id", param="cart.customer_id")
    assert reply(evaluate(admin, customer_id=customer_id)) == (400, body)


@pytest.mark.both_databases
def test_limits_of_a_cart(admin, client_with):
    code = "shop_api_cart_request_entity_too_large"
    assert evaluate(admin, items=[ITEM] * 100).status_code == 200
    assert reply(evaluate(admin, items=[ITEM] * 101)) == refusal(code, limit=100, what="items")
    listed = [f"c{number}" for number in range(21)]
    assert evaluate(admin, *listed[:20], *listed[:20]).status_code == 200
    assert reply(evaluate(admin, *listed)) == refusal(code, limit=20, what="coupon codes")
    small = client_with(SHOP_CART_ITEM_LIMIT=1, SHOP_CART_CODE_LIMIT=1)
    assert reply(evaluate(small, items=[ITEM] * 2)) == refusal(code, limit=1, what="items")
    assert reply(evaluate(small, "a", "b")) == refusal(code, limit=1, what="coupon codes")


# --- cost ---


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("limits", "of_owner"),
    # Without a limit per customer, the uses of the account that has the address do not count.
    [
        ({"usage_limit": 5}, 1),
        ({"usage_limit": 5, "usage_limit_per_user": 5}, 2),
        ({"first_order_only": True}, 3),  # and whether the customer has ordered
    ],
)
def test_statements_of_an_evaluation(
    admin, make_coupon, make_customer, statements, limits, of_owner
):
    for code in "abc":
        make_coupon(code=code, **limits)
    ada, bob = (make_customer(email=f"{name}@shop.example") for name in ("ada", "bob"))
    merged = admin.post(f"/customers/{ada['id']}/merge", {"merge": {"customer_id": bob["id"]}})
    assert merged.status_code == 200
    has_orders = int("first_order_only" in limits)
    carts = (
        ({}, 1),
        ({"email": "guest@shop.example"}, 1 + has_orders),
        ({"email": "ADA@shop.example"}, of_owner),
        ({"email": "bob@shop.example"}, of_owner),
        ({"customer_id": ada["id"]}, 2 + has_orders),
        ({"customer_id": ada["id"], "email": "bob@shop.example"}, 2 + has_orders),
    )
    evaluate(admin)
    for cart, number in carts:
        statements.clear()
        assert evaluate(admin, "a", "b", "c", items=[ITEM] * 10, **cart).status_code == 200
        assert len(without_key(statements)) == number


def test_missing_keys_of_items_are_not_converted(monkeypatch):
    """Their conversion took a tenth of the time of an evaluation."""
    monkeypatch.setattr(Quantity, "deserialize", None)
    defaults = {"product_id": 0, "product_category_ids": [], "quantity": 1, "on_sale": False}
    assert CartItems().load_item({"product_id": 7, "price": "2.00"}) == defaults | {
        "product_id": 7,
        "price": Decimal(2),
    }
