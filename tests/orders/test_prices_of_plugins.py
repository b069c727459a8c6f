"""Prices of lines that a request does not name, from plugins (``add_price_hook``)."""

from decimal import Decimal

import pytest

from app.catalog import EXTENSION
from app.errors import ShopError
from tests.api_client import Client, reply

PRICES = {1: Decimal("10.005"), 2: "4.50", 3: 7, 9: None}


def price_of(product_id, quantity, currency):
    if product_id == 66:
        raise ShopError("shop_api_cannot_create_order", reason="the catalogue is closed.")
    if product_id == 67:
        raise RuntimeError("a bug of the plugin")
    if product_id == 68:
        return "cheap"
    if product_id == 69:
        return -1
    if product_id == 70:
        return 0.1
    price = PRICES.get(product_id)
    return price * 2 if currency == "EUR" and price is not None else price


@pytest.fixture
def shop(make_app, admin):
    """A client of an app with two plugins that know prices."""
    app = make_app()
    app.extensions[EXTENSION].add_price_hook(lambda product, quantity, currency: None)
    app.extensions[EXTENSION].add_price_hook(price_of)
    return Client(app, admin.key)


def lines_of(response):
    assert response.status_code == 201, response.get_json()
    order = response.get_json()
    found = order.get("order", order)["line_items"]
    return [(line["product_id"], line["subtotal"], line["total"]) for line in found]


@pytest.mark.both_databases
def test_line_without_a_price_gets_that_of_a_plugin(shop, make_coupon):
    make_coupon(code="half", type="percent", amount="50.00")
    lines = [
        {"product_id": 1, "quantity": 3},
        {"product_id": 2, "price": "1.00"},
        {"product_id": 2, "total": "0.00"},
        {"product_id": 5, "variation_id": 3},
    ]
    body = {"order": {"line_items": lines, "coupon_lines": [{"code": "half"}]}}
    response = shop.post("/orders", body)
    assert lines_of(response) == [
        (1, "30.02", "15.01"), (2, "1.00", "0.50"), (2, "0.00", "0.00"), (5, "7.00", "3.50"),
    ]  # fmt: skip
    order = response.get_json()["order"]
    # A change asks for new lines only, and in the currency of the order.
    path = f"/orders/{order['id']}"
    kept = {"id": order["line_items"][0]["id"], "quantity": 6}
    change = {"currency": "EUR", "line_items": [kept, {"product_id": 3}]}
    changed = shop.put(path, {"order": change}).get_json()["order"]["line_items"]
    assert [line["subtotal"] for line in changed] == ["60.04", "1.00", "0.00", "7.00", "14.00"]


def test_every_dialect_and_bulk_request_asks(shop):
    line = {"product_id": 2, "quantity": 2}
    for path in ("/orders", "/wc-api/v2/orders", "/wc-api/v3/orders"):
        assert lines_of(shop.post(path, {"order": {"line_items": [line]}}))[0][1:] == (
            "9.00",
            "9.00",
        )
    rest = "/wp-json/wc/v3/orders"
    assert lines_of(shop.post(rest, {"line_items": [line]})) == [(2, "9.00", "9.00")]
    batch = shop.post(f"{rest}/batch", {"create": [{"line_items": [line]}]})
    assert batch.get_json()["create"][0]["total"] == "9.00"
    bulk = shop.post("/orders/bulk", {"orders": [{"line_items": [line]}]})
    assert bulk.get_json()["orders"][0]["total"] == "9.00"


def test_product_without_a_known_price_needs_one(shop):
    reason = "order.line_items[0]: needs a price, a subtotal or a total."
    for line in ({"product_id": 9}, {"product_id": 8}, {"name": "Mug"}, {"sku": "M"}):
        response = shop.post("/orders", {"order": {"line_items": [line]}})
        (error,) = response.get_json()["errors"]
        assert (error["code"], error["message"]) == ("shop_api_invalid_order_item", reason)
    pair = (shop.key.consumer_key, shop.key.consumer_secret)
    body = {"line_items": [{"product_id": 9}]}
    response = shop.http.post("/wp-json/wc/v3/orders", json=body, auth=pair)
    assert response.status_code == 400
    assert response.get_json()["code"] == "woocommerce_rest_invalid_order_item"
    assert "needs a price" in response.get_json()["message"]


def test_error_of_a_plugin_rejects_the_order(shop):
    items = [{"line_items": [{"product_id": 66}]}, {"line_items": [{"product_id": 2}]}]
    failed, done = shop.post("/orders/bulk", {"orders": items}).get_json()["orders"]
    assert "the catalogue is closed." in failed["error"]["message"]
    assert done["total"] == "4.50"
    response = shop.post("/orders", {"order": items[0]})
    assert reply(response)[0] == 400


@pytest.mark.parametrize("product_id", [67, 68, 69, 70])
def test_bug_of_a_plugin_is_an_internal_error_and_stores_nothing(shop, product_id):
    response = shop.post("/orders", {"order": {"line_items": [{"product_id": product_id}]}})
    (error,) = response.get_json()["errors"]
    assert (response.status_code, error["code"]) == (500, "shop_api_internal_error")
    assert shop.get("/orders/count").get_json() == {"count": 0}
