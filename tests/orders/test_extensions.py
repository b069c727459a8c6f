"""Order extensions in all responses with orders, also of plugins and plain views (spec 2.3, 2.4)."""

import json
from decimal import Decimal

import pytest
from flask import request
from sqlalchemy import event

from app.db.session import db
from tests.api_client import Client
from tests.factories import insert_order
from tests.orders.test_orders import GUEST, order_body

pytestmark = pytest.mark.one_database


@pytest.mark.slow
def test_plugin_coupon_type_works_over_http(plugged):
    body = {"coupon": {"code": "credit", "type": "store_credit"}}
    created = plugged.post("/coupons", body)
    assert (created.status_code, created.get_json()["coupon"]["type"]) == (201, "store_credit")
    refused = plugged.post("/coupons", {"coupon": {"code": "other", "type": "none"}})
    assert refused.get_json()["errors"][0]["message"] == (
        "Invalid coupon type - the coupon type must be any of these: "
        "fixed_cart, percent, fixed_product, percent_product, buy_x_get_y, store_credit"
    )


@pytest.mark.slow
def test_plugin_order_status_is_known(plugged, app, make_customer):
    customer = make_customer()["id"]
    insert_order(app, customer_id=customer, status="awaiting-pickup")
    assert plugged.get("/orders/count", {"filter[status]": "awaiting-pickup"}).get_json() == {
        "count": 1
    }
    statuses = plugged.get("/orders/statuses").get_json()["order_statuses"]
    assert statuses["awaiting-pickup"] == "Awaiting pickup"
    counted = {"fields": "orders_count"}
    known = plugged.get(f"/customers/{customer}", counted).get_json()
    unknown = Client(app, plugged.key).get(f"/customers/{customer}", counted).get_json()
    assert known == {"customer": {"orders_count": 1}}
    assert unknown == {"customer": {"orders_count": 0}}


def test_plugin_announces_the_end_of_its_key(plugged, app):
    order_id = insert_order(app)
    for path in (f"/orders/{order_id}", "/orders", "/orders/99"):
        headers = plugged.get(path).headers
        assert headers["Deprecation"] == "@1798761600"
        assert headers["Sunset"] == "Fri, 31 Dec 2027 00:00:00 GMT"
    assert "Deprecation" not in plugged.get("/coupons").headers
    document = plugged.get("/openapi.json").get_json()
    properties = document["components"]["schemas"]["Order"]["properties"]
    assert [name for name, each in properties.items() if each.get("deprecated")] == ["loyalty"]


def test_plugin_extension_is_in_every_order_before_the_customer(plugged, app):
    order_id = insert_order(app)
    order = plugged.get(f"/orders/{order_id}").get_json()["order"]
    assert list(order)[-2:] == ["loyalty", "customer"]
    assert order == order_body(order_id, loyalty={"points": 11})
    only = plugged.get("/orders", {"fields": "loyalty"}).get_json()
    assert only == {"orders": [{"loyalty": {"points": 11}}]}


def test_plugin_blueprint_with_order_schema_returns_the_same_orders(plugged, app, make_customer):
    customer = make_customer()["id"]
    ids = [
        insert_order(app, status="awaiting-pickup", customer_id=customer_id)
        for customer_id in (customer, None)
    ]
    expected = [plugged.get(f"/orders/{order_id}").get_json()["order"] for order_id in ids]
    response = plugged.get("/loyalty/pickup")
    assert response.get_json() == {"orders": expected}
    assert [list(order) for order in response.get_json()["orders"]] == [
        list(order) for order in expected
    ]


@pytest.mark.slow
def test_plugin_schema_with_orders_under_names_of_its_own(plugged, app):
    small = insert_order(app, total=Decimal("1.00"))
    large = insert_order(app, total=Decimal("99.00"))
    body = plugged.get("/loyalty/highlights").get_json()
    assert (body["best"]["id"], body["best"]["customer"]) == (large, GUEST)
    assert [(order["id"], order["customer"]) for order in body["others"]] == [(small, GUEST)]
    assert body["by_number"]["1001"]["customer"] == GUEST


@pytest.mark.slow
def test_plugin_class_of_methods_with_a_bare_order(plugged, app):
    order_id = insert_order(app)
    expected = plugged.get(f"/orders/{order_id}").get_json()["order"]
    assert plugged.get("/loyalty/newest").get_json() == expected


def test_plugin_view_by_hand_is_extended(plugged, app, make_customer):
    customer = make_customer()["id"]
    insert_order(app, customer_id=customer)
    insert_order(app)
    expected = plugged.get(f"/customers/{customer}").get_json()["customer"]
    first, second = plugged.get("/loyalty-by-hand").get_json()["orders"]
    assert first["customer"] == expected
    assert first["loyalty"] == {"points": 11}
    # The view showed no addresses, so the guest's form is filled from none.
    assert list(second["customer"]) == list(GUEST)


def test_plugin_routes_and_extensions_are_documented(plugged):
    document = plugged.get("/openapi.json").get_json()
    assert "/loyalty/pickup" in document["paths"]
    schemas = document["components"]["schemas"]
    for part in (list(schemas["Order"]["properties"]), schemas["Order"]["required"]):
        assert part[-2:] == ["loyalty", "customer"]
    assert schemas["Order"]["properties"]["customer"] == {
        "$ref": "#/components/schemas/OrderCustomer"
    }
    assert schemas["OrderCustomer"]["anyOf"] == [
        {"$ref": "#/components/schemas/Customer"},
        {"$ref": "#/components/schemas/GuestCustomer"},
    ]


def test_plugin_is_absent_from_an_app_made_without_it(admin):
    assert admin.get("/loyalty/pickup").status_code == 404


@pytest.mark.slow
def test_orders_of_a_plain_view_need_one_more_statement(by_hand, make_customer):
    orders = [{"id": n, "customer_id": make_customer()["id"]} for n in range(1, 4)]
    client = by_hand(lambda: {"orders": orders})
    with client.app.app_context():
        engine = db.engines["read"]
    seen = []
    event.listen(engine, "before_cursor_execute", lambda *args: seen.append(args[2]))
    body = client.get("/by-hand").get_json()
    assert [order["customer"]["id"] for order in body["orders"]] == [
        order["customer_id"] for order in orders
    ]
    assert len(seen) == 1


@pytest.mark.slow
def test_order_by_hand_keeps_its_numbers_beside_an_account(by_hand, admin, make_customer):
    customer = make_customer(billing_address={"city": "Zürich"})
    order = {"id": 10**30, "customer_id": customer["id"]}
    response = by_hand(lambda: {"order": order}).get("/by-hand")
    body = json.loads(response.get_data())  # orjson reads such a number as a float
    assert body["order"]["id"] == 10**30
    expected = admin.get(f"/customers/{customer['id']}").get_json()["customer"]
    assert body["order"]["customer"] == expected
    assert expected["billing_address"]["city"] == "Zürich"


@pytest.mark.slow
def test_customer_of_an_order_of_a_plain_view_is_replaced(by_hand):
    order = {"customer": "made up", "id": 5, "customer_id": 0}
    body = by_hand(lambda: {"order": order}).get("/by-hand").get_json()
    assert list(body["order"]) == ["id", "customer_id", "customer"]
    assert body["order"]["customer"]["id"] == 0


def test_order_of_a_plain_view_and_a_deleted_account_is_a_guest_order(by_hand):
    body = by_hand(lambda: {"order": {"id": 5, "customer_id": 999_999}}).get("/by-hand").get_json()
    assert body["order"]["customer"]["id"] == 0


def test_order_by_hand_with_fields(by_hand):
    client = by_hand(lambda: {"order": {"id": 5, "customer_id": 0}})
    without = client.get("/by-hand", {"fields": "id,customer_id"}).get_json()
    assert without == {"order": {"id": 5, "customer_id": 0}}
    part = client.get("/by-hand", {"fields": "id,customer.id"}).get_json()
    assert part == {"order": {"id": 5, "customer_id": 0, "customer": {"id": 0}}}


NO_ORDERS = [
    {"order": "asc"},
    {"order": {"direction": "asc"}},
    {"order": {"id": 5}},
    {"order": {"id": "5", "customer_id": 1}},
    {"order": {"id": True, "customer_id": 0}},
    {"order": {"id": 5, "customer_id": None}},
    {"order": {"id": 5, "customer_id": -1}},
    {"orders": []},
    {"orders": 3},
    {"orders": [{"id": 5, "customer_id": 0}, "no order"]},
    {"orders": {"5": {"id": 5, "customer_id": 0}}},
    {"other": {"id": 5, "customer_id": 0}},
    [{"order": {"id": 5, "customer_id": 0}}],
    {"nested": {"order": {"id": 5, "customer_id": 0}}},
]


def test_response_that_is_not_an_order_passes_untouched(by_hand):
    client = by_hand(lambda: NO_ORDERS[request.args.get("n", type=int)])
    for number, body in enumerate(NO_ORDERS):
        assert client.get("/by-hand", {"n": number}).get_json() == body


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("status", "mimetype"),
    [(200, "text/plain"), (404, "application/json"), (500, "application/json")],
)
def test_response_that_is_not_json_or_an_error_passes_untouched(by_hand, status, mimetype):
    text = '{"order": {"id": 5, "customer_id": 0}}'

    def view():
        return text, status, {"Content-Type": mimetype}

    response = by_hand(view).http.get("/by-hand")
    assert (response.status_code, response.get_data(as_text=True)) == (status, text)


def test_response_that_is_streamed_passes_untouched(by_hand):
    text = '{"order": {"id": 5, "customer_id": 0}}'

    def view():
        return iter([text]), 200, {"Content-Type": "application/json"}

    assert by_hand(view).http.get("/by-hand").get_data(as_text=True) == text


def test_response_that_is_broken_json_passes_untouched(by_hand):
    text = '{"order": {"id": 5, "customer_id": 0}'

    def view():
        return text, 200, {"Content-Type": "application/json"}

    assert by_hand(view).http.get("/by-hand").get_data(as_text=True) == text
