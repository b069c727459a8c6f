"""Currencies whose decimal places are not two (spec 2.1)."""

import pytest
from babel.numbers import get_currency_precision

from app.conversions.currencies import decimal_places
from app.pricing.carts import CartItem, CouponTerms
from app.pricing.discounts import CouponType, apply_coupon
from tests.api_client import codes
from tests.orders.calls import change, create

LINE = {"name": "Mug", "quantity": 3, "price": "115"}
THREE = ["KWD", "bhd", "IQD", "JOD", "LYD", "OMR", "TND"]
NONE = ["JPY", "krw", "VND", "CLP", "ISK", "XOF", "RWF"]
INVALID = (400, "shop_api_invalid_currency")


@pytest.fixture
def yen(client_with):
    return client_with(SHOP_CURRENCY="JPY")


@pytest.fixture
def coupon(make_coupon):
    def make(client, code="ten", **fields):
        return make_coupon(client, code=code, **fields)

    return make


@pytest.mark.parametrize("currency", NONE)
def test_currencies_without_decimals(currency):
    assert decimal_places(currency) == get_currency_precision(currency.upper()) == 0


@pytest.mark.parametrize("currency", THREE)
def test_order_has_no_currency_with_three_decimals(admin, currency):
    line = {"name": "Mug", "subtotal": "35.205", "total": "35.205"}
    fields = {"currency": currency, "line_items": [line]}
    for prefix in ("", "/wc-api/v2", "/wc-api/v3"):
        response = admin.post(f"{prefix}/orders", {"order": fields})
        code = INVALID[1] if not prefix else INVALID[1].replace("shop_api", "woocommerce_api")
        assert codes(response) == (400, code)
    assert admin.get("/orders/count").get_json() == {"count": 0}
    order = create(admin, line_items=[LINE])
    body = {"orders": [{"id": order["id"], "currency": currency}, fields]}
    for item in admin.post("/orders/bulk", body).get_json()["orders"]:
        assert item["error"]["code"] == INVALID[1]
    response = admin.put(f"/orders/{order['id']}", {"order": {"currency": currency}})
    assert codes(response) == INVALID
    assert response.get_json()["errors"][0]["param"] == "order.currency"
    assert currency.upper() in response.get_json()["errors"][0]["message"]


@pytest.mark.parametrize(
    ("coupon_fields", "discount", "totals"),
    [
        ({"type": "percent", "amount": "10"}, "34.00", ["104.00", "207.00"]),
        ({"type": "fixed_cart", "amount": "100"}, "100.00", ["82.00", "163.00"]),
        ({"type": "fixed_cart", "amount": "0.40"}, "0.00", ["115.00", "230.00"]),
        ({"type": "fixed_product", "amount": "1.50"}, "6.00", ["113.00", "226.00"]),
    ],
)
@pytest.mark.parametrize("currency", ["JPY", "KRW"])
def test_discounts_are_whole(admin, yen, coupon, currency, coupon_fields, discount, totals):
    coupon(admin, **coupon_fields)
    lines = [{"name": "Mug", "quantity": 1, "price": "115"}, LINE | {"quantity": 2}]
    order = create(admin, currency=currency, line_items=lines, coupon_lines=[{"code": "ten"}])
    assert [line["total"] for line in order["line_items"]] == totals
    assert order["coupon_lines"][0]["amount"] == order["total_discount"] == discount
    items = [{"price": line["price"], "quantity": line["quantity"]} for line in lines]
    cart = {"coupons": ["ten"], "items": items}
    evaluation = yen.post("/coupons/evaluate", {"cart": cart}).get_json()["evaluation"]
    assert evaluation["discount"] == discount
    assert [item["total"] for item in evaluation["items"]] == totals


def test_several_discounts_and_a_whole_discount(admin, coupon):
    coupon(admin, type="percent", amount="33")
    coupon(admin, "all", type="percent", amount="100")
    lines = [LINE, {"name": "Cup", "quantity": 7, "price": "33"}]
    order = create(admin, currency="JPY", line_items=lines, coupon_lines=[{"code": "ten"}])
    assert order["total"].endswith(".00")
    order = change(admin, order["id"], coupon_lines=[{"code": "all"}])
    assert (order["total"], order["total_discount"]) == ("0.00", "576.00")


def test_recorded_discounts_are_rounded(admin, yen):
    lines = [{"code": "old", "amount": "10.50"}]
    order = create(admin, currency="JPY", line_items=[LINE], coupon_lines=lines)
    assert order["coupon_lines"][0]["amount"] == "11.00"
    order = create(admin, currency="EUR", line_items=[LINE], coupon_lines=lines)
    assert order["coupon_lines"][0]["amount"] == "10.50"


def test_amounts_of_redemptions_are_rounded(admin, yen, coupon):
    coupon(admin)
    for client, reference, amount in ((yen, "a", "11.00"), (admin, "b", "10.50")):
        use = {"code": "ten", "reference": reference, "amount": "10.50"}
        response = client.post("/redemptions", {"redemption": use})
        assert response.get_json()["redemption"]["amount"] == amount


@pytest.mark.parametrize(("currency", "amount"), [("JPY", "11.00"), ("EUR", "10.50")])
def test_refunds_are_whole(admin, currency, amount):
    order = create(admin, currency=currency, line_items=[LINE], status="completed")

    def refund(**fields):
        path = f"/orders/{order['id']}/refunds"
        return admin.post(path, {"order_refund": fields}).get_json()["order_refund"]

    assert refund(amount="10.50")["amount"] == amount
    line = {"id": order["line_items"][0]["id"], "total": "10.50"}
    made = refund(line_items=[line])
    assert (made["amount"], made["line_items"][0]["total"]) == (amount, amount)


def test_fractions_that_are_left_can_be_refunded(admin):
    line = {"name": "Mug", "subtotal": "10.50", "total": "10.50"}
    order = create(admin, currency="JPY", line_items=[line], status="completed")
    item = {"id": order["line_items"][0]["id"], "quantity": 1, "total": "10.50"}
    path = f"/orders/{order['id']}/refunds"
    response = admin.post(path, {"order_refund": {"line_items": [item]}})
    assert response.get_json()["order_refund"]["amount"] == "10.50"
    assert admin.get(f"/orders/{order['id']}").get_json()["order"]["status"] == "refunded"


def test_plugin_types_are_rounded_down():
    half = CouponType(lambda _, lines: [line.left // 2 for line in lines])
    items = [CartItem(11500), CartItem(100)]
    found = apply_coupon(
        CouponTerms("half"), half, items, [11500, 100], sequential=False, smallest=100
    )
    assert found == [5700, 0]


def test_amounts_are_stored_as_sent_and_refunded(admin):
    """A net price in yen has decimals; the sum with its tax has none."""
    line = LINE | {"subtotal": "909.09", "total": "909.09", "total_tax": "90.91"}
    order = create(admin, currency="JPY", line_items=[line], status="completed")
    assert (order["total"], order["line_items"][0]["total"]) == ("1000.00", "909.09")
    net = create(admin, currency="JPY", line_items=[line | {"total_tax": "0"}], status="completed")
    for each in (order, net):
        path = f"/orders/{each['id']}/refunds"
        refund = admin.post(path, {"order_refund": {"amount": each["total"]}})
        assert refund.get_json()["order_refund"]["amount"] == each["total"]
