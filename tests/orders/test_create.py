"""``POST /orders`` (orders 1, 2, 5 and 9)."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from app.schemas.examples import customers
from app.schemas.examples import orders as examples
from tests.api_client import codes, refusal, refused_params, reply, without_key
from tests.factories import NO_SHIPPING_TAX, ORIGIN, insert_order

KNOWN = "pending, processing, on-hold, completed, cancelled, refunded, failed"
LINE = {"name": "Mug", "price": "4.00"}


@pytest.fixture
def make_order(admin):
    """Return a function: create an order and return it as the API does."""

    def make(client=None, **order):
        response = (client or admin).post("/orders", {"order": order})
        assert response.status_code == 201, response.get_json()
        return response.get_json()["order"]

    return make


def read(client, order_id):
    return client.get(f"/orders/{order_id}").get_json()["order"]


@pytest.mark.both_databases
def test_created_order_is_returned_like_a_read(admin):
    response = admin.post("/orders", {"order": examples.NEW_ORDER})
    order = response.get_json()["order"]
    known = ("id", "order_number", "order_key", "created_at", "updated_at", "paid_at")
    assert (response.status_code, order) == (
        201, examples.ORDER | {name: order[name] for name in known}
    )  # fmt: skip
    assert order["order_number"] == str(order["id"])
    assert re.fullmatch("order_[a-z2-7]{13}", order["order_key"])
    age = datetime.now(UTC) - datetime.fromisoformat(order["created_at"])
    assert timedelta(0) <= age < timedelta(minutes=1)
    assert order["created_at"] == order["updated_at"]
    assert read(admin, order["id"]) == order
    assert admin.get("/orders").get_json() == {"orders": [order]}


def test_examples_of_the_document(admin):
    """The update and the bulk that the OpenAPI document shows have the results that it shows."""
    order = admin.post("/orders", {"order": examples.NEW_ORDER}).get_json()["order"]
    moments = ("created_at", "updated_at", "completed_at", "paid_at")
    known = {name: order[name] for name in ("id", "order_number", "order_key")}

    def timeless(result):
        return {name: value for name, value in result.items() if name not in moments}

    update = {"order": examples.ORDER_UPDATE}
    updated = admin.put(f"/orders/{order['id']}", update).get_json()["order"]
    assert timeless(updated) == timeless(examples.UPDATED_ORDER | known)
    first, second, third = examples.ORDER_ITEMS
    assert first == examples.NEW_ORDER
    results = admin.post("/orders/bulk", {"orders": [second | {"id": order["id"]}, third]})
    (changed, failed) = results.get_json()["orders"]
    assert timeless(changed) == timeless(examples.UPDATED_ORDER | known)
    assert failed == examples.ORDER_RESULTS[2]


def test_empty_order(make_order, admin):
    order = make_order()
    known = ("id", "order_number", "order_key", "created_at", "updated_at")
    nothing = dict.fromkeys(customers.BILLING_ADDRESS, "")
    shipping = dict.fromkeys(customers.SHIPPING_ADDRESS, "")
    assert order == {
        **{name: order[name] for name in known},
        "completed_at": None,
        "status": "pending",
        "currency": "USD",
        **dict.fromkeys(
            ("total", "subtotal", "total_tax", "total_shipping", "cart_tax", "shipping_tax"), "0.00"
        ),
        "total_line_items_quantity": 0,
        "total_discount": "0.00",
        "shipping_methods": "",
        "payment_details": {"method_id": "", "method_title": "", "paid": False},
        "billing_address": nothing,
        "shipping_address": shipping,
        "note": "",
        "customer_ip": "",
        "customer_user_agent": "",
        "customer_id": 0,
        **{
            name: []
            for name in ("line_items", "shipping_lines", "tax_lines", "fee_lines", "coupon_lines")
        },
        **ORIGIN,
        "customer": {
            "id": 0,
            "email": "",
            "first_name": "",
            "last_name": "",
            "billing_address": nothing,
            "shipping_address": shipping,
        },
    }
    assert read(admin, order["id"]) == order


@pytest.mark.both_databases
def test_order_of_a_customer_changes_the_sums_of_the_customer(admin, make_order, make_customer):
    customer = make_customer()
    order = make_order(
        customer_id=customer["id"], status="processing", line_items=[LINE | {"quantity": 3}]
    )
    changed = customer | {
        "orders_count": 1,
        "total_spent": "12.00",
        "last_order_id": order["id"],
        "last_order_date": order["created_at"],
    }
    assert order["customer"] == changed
    assert admin.get(f"/customers/{customer['id']}").get_json() == {"customer": changed}


@pytest.mark.both_databases
def test_every_list_is_stored_with_its_ids(make_order, admin):
    order = make_order(
        line_items=[
            LINE | {"quantity": "2", "sku": "M1", "tax_class": "reduced", "on_sale": True,
                    "product_category_ids": [3], "meta": [{"key": "c", "label": "C", "value": 5}]},
        ],
        shipping_lines=[{"method_id": "ups", "method_title": "UPS", "total": 5}],
        fee_lines=[{"title": "Gift", "total": "-1", "total_tax": "-0.20"}],
        tax_lines=[{"rate_id": 1, "code": "VAT", "title": "VAT", "total": "1.60"}],
        coupon_lines=[{"code": " TEA ", "amount": "0.50"}],
    )  # fmt: skip
    assert order["line_items"] == [
        {
            "id": 1, "subtotal": "8.00", "subtotal_tax": "0.00", "total": "8.00",
            "total_tax": "0.00", "price": "4.00", "quantity": 2, "tax_class": "reduced",
            "name": "Mug", "product_id": None, "sku": "M1",
            "meta": [{"key": "c", "label": "C", "value": "5"}], "variation_id": 0, "taxes": [],
        }
    ]  # fmt: skip
    assert order["shipping_lines"] == [
        {"id": 2, "method_id": "ups", "method_title": "UPS", "total": "5.00"} | NO_SHIPPING_TAX
    ]
    assert order["fee_lines"] == [
        {
            "id": 3, "title": "Gift", "tax_class": None, "total": "-1.00", "total_tax": "-0.20",
            "taxes": [],
        }
    ]  # fmt: skip
    assert order["tax_lines"] == [
        {"id": 4, "rate_id": 1, "code": "VAT", "title": "VAT", "total": "1.60", "compound": False}
    ]
    assert order["coupon_lines"] == [{"id": 5, "code": "tea", "amount": "0.50"}]
    assert order["shipping_methods"] == "UPS"
    assert order["total_line_items_quantity"] == 2
    assert order["total"] == "11.80"
    assert order["total_discount"] == "0.50"
    assert read(admin, order["id"]) == order


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"status": "on-hold"}, {"status": "on-hold"}),
        ({"status": None, "currency": None}, {"status": "pending", "currency": "USD"}),
        ({"payment_details": {"paid": True}}, {"status": "processing"}),
        ({"payment_details": {"paid": "true"}}, {"status": "pending"}),
        ({"payment_details": {"paid": True}, "status": "failed"}, {"status": "failed"}),
        ({"currency": "eur"}, {"currency": "EUR"}),
        ({"customer_id": "0"}, {"customer_id": 0}),
        ({"created_at": "2031-02-03T04:05:06.7+01:00"}, {"created_at": "2031-02-03T03:05:06Z"}),
        ({"created_at": 86_400}, {"created_at": "1970-01-02T00:00:00Z"}),
        ({"created_at": 2026}, {"created_at": "1970-01-01T00:33:46Z"}),
        ({"completed_at": "2020-01-01"}, {"completed_at": "2020-01-01T00:00:00Z"}),
        ({"order_number": "A-1", "order_key": "k"}, {"order_number": "A-1", "order_key": "k"}),
        ({"order_number": "n" * 191}, {"order_number": "n" * 191}),
        ({"total": "99", "id": 99, "customer": {"id": 5}}, {"total": "0.00", "customer_id": 0}),
        ({"shipping_tax": "0.005"}, {"shipping_tax": "0.01", "total": "0.01", "total_tax": "0.01"}),
        ({"line_items": [LINE | {"id": 77, "remove": True}]}, {"total": "4.00"}),
        ({"note": " <b> as sent "}, {"note": " <b> as sent "}),
        ({"billing_address": {"city": " <b>Köln</b> "}}, {}),
        ({"unknown": {}}, {}),
    ],
)
def test_fields(make_order, given, shown):
    order = make_order(**given)
    assert {name: order[name] for name in shown} == shown


def test_completed_order_is_completed_when_it_is_created(make_order):
    order = make_order(status="completed")
    assert order["completed_at"] == order["created_at"]
    assert make_order(status="completed", completed_at="2020-01-01")["completed_at"] == (
        "2020-01-01T00:00:00Z"
    )


def test_currency_is_the_setting(client_with, make_order):
    assert make_order(client_with(SHOP_CURRENCY="CHF"))["currency"] == "CHF"


# --- errors ---


@pytest.mark.parametrize(
    ("order", "params"),
    [
        ({"line_items": {}}, ["order.line_items"]),
        ({"line_items": "x"}, ["order.line_items"]),
        ({"line_items": [LINE, "x", None]}, ["order.line_items[1]", "order.line_items[2]"]),
        ({"line_items": [{}, LINE, LINE | {"quantity": []}]}, ["order.line_items[2].quantity"]),
        ({"line_items": [LINE | {"price": "x", "name": []}]},
         ["order.line_items[0].name", "order.line_items[0].price"]),
        ({"line_items": [LINE | {"meta": [{}, {"key": []}]}]}, ["order.line_items[0].meta[1].key"]),
        ({"fee_lines": [{"title": True}], "note": []},
         ["order.note", "order.fee_lines[0].title"]),
        ({"coupon_lines": [{"code": "a", "amount": "x"}]}, ["order.coupon_lines[0].amount"]),
        ({"customer_id": "ada"}, ["order.customer_id"]),
        ({"customer_id": ""}, ["order.customer_id"]),
        ({"customer_id": True}, ["order.customer_id"]),
        ({"customer_id": 1.5, "parent_id": "1.5"}, ["order.customer_id", "order.parent_id"]),
        ({"customer_id": 2**63}, ["order.customer_id"]),
        ({"billing_address": []}, ["order.billing_address"]),
        ({"payment_details": "x"}, ["order.payment_details"]),
        ({"created_at": "x"}, ["order.created_at"]),
        ({"created_at": []}, ["order.created_at"]),
        ({"order_number": ""}, ["order.order_number"]),
        ({"order_key": "k" * 192}, ["order.order_key"]),
        ({"status": {}}, ["order.status"]),
        ({"shipping_tax": "x"}, ["order.shipping_tax"]),
    ],
)  # fmt: skip
def test_wrong_types_are_reported_with_their_path(admin, order, params):
    assert sorted(refused_params(admin.post("/orders", {"order": order}))) == sorted(params)
    assert admin.get("/orders/count").get_json() == {"count": 0}


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ({"customer_id": 999_999}, ("shop_api_invalid_customer_id", "order.customer_id")),
        ({"customer_id": -1}, ("shop_api_invalid_customer_id", "order.customer_id")),
        ({"customer_id": 999_999, "status": "x"},
         ("shop_api_invalid_customer_id", "order.customer_id")),
        ({"status": "trash"}, ("shop_api_invalid_order_status", None)),
        ({"status": "wc-completed"}, ("shop_api_invalid_order_status", None)),
        ({"status": "", "currency": "x"}, ("shop_api_invalid_order_status", None)),
        ({"currency": "EURO", "line_items": [{}]}, ("shop_api_invalid_order_currency", None)),
        ({"currency": "éuR"}, ("shop_api_invalid_order_currency", None)),
        ({"line_items": [{}], "coupon_lines": [{"code": "a"}]},
         ("shop_api_invalid_order_item", "order.line_items[0]")),
        ({"line_items": [{"product_id": 3, "quantity": 2}]},
         ("shop_api_invalid_order_item", "order.line_items[0]")),
        ({"line_items": [LINE | {"quantity": "0"}]},
         ("shop_api_invalid_order_item", "order.line_items[0].quantity")),
        ({"fee_lines": [{"title": "x", "total": -1}]}, ("shop_api_invalid_order_item", "order")),
        ({"coupon_lines": [{"code": "b", "amount": 1}, {"code": "a"}]},
         ("shop_api_coupon_not_applicable", "order.coupon_lines[1].code")),
    ],
)  # fmt: skip
def test_rules_in_their_order(admin, order, expected):
    response = admin.post("/orders", {"order": order})
    (entry,) = response.get_json()["errors"]
    assert (response.status_code, entry["code"], entry.get("param")) == (400, *expected)
    assert admin.get("/orders/count").get_json() == {"count": 0}


def test_error_for_an_unknown_status_lists_the_known_statuses(admin):
    response = admin.post("/orders", {"order": {"status": "shipped"}})
    assert reply(response) == refusal("shop_api_invalid_order_status", statuses=KNOWN)


def test_all_invalid_items_are_reported_together(admin):
    body = {"line_items": [{}, LINE], "shipping_lines": [{}]}
    response = admin.post("/orders", {"order": body})
    assert response.status_code == 400
    assert [entry["param"] for entry in response.get_json()["errors"]] == [
        "order.line_items[0]",
        "order.shipping_lines[0].method_id",
    ]


@pytest.mark.parametrize("body", [None, {}, {"order": None}, {"orders": []}])
def test_missing_wrapper(admin, body):
    assert reply(admin.post("/orders", body)) == refusal("shop_api_missing_order_data")


def test_too_many_items(admin):
    response = admin.post("/orders", {"order": {"line_items": [LINE] * 1001}})
    assert reply(response) == refusal("shop_api_order_too_large", limit=1000)


def test_types_come_before_the_capability_and_that_before_the_rules(client_for):
    reader = client_for("customer")
    assert codes(reader.post("/orders", {"order": {"note": []}})) == (
        400, "shop_api_invalid_param",
    )  # fmt: skip
    response = reader.post("/orders", {"order": {"customer_id": 999}})
    assert reply(response) == refusal("shop_api_user_cannot_create_order")


@pytest.mark.both_databases
def test_an_order_key_is_taken(admin, make_order):
    make_order(order_key="k")
    response = admin.post("/orders", {"order": {"order_key": "k"}})
    assert reply(response) == refusal(
        "shop_api_cannot_create_order", reason="another order has this order key."
    )
    assert make_order(order_number="1")["order_number"] == "1"
    assert make_order(order_number="1")["order_number"] == "1"


# --- repeated requests, cost ---


def test_repeated_request_creates_one_order(admin, make_customer):
    body = {"order": {"customer_id": make_customer()["id"], "status": "completed",
                      "line_items": [LINE]}}  # fmt: skip
    first = admin.post("/orders", body, headers={"Idempotency-Key": "once"})
    again = admin.post("/orders", body, headers={"Idempotency-Key": "once"})
    assert reply(first) == reply(again)
    assert again.headers["Idempotent-Replayed"] == "true"
    # The stored response contains the statistics of the customer after the order.
    assert first.get_json()["order"]["customer"]["total_spent"] == "4.00"
    assert admin.get("/orders/count").get_json() == {"count": 1}
    other = admin.post("/orders", {"order": {}}, headers={"Idempotency-Key": "once"})
    assert reply(other) == refusal("shop_api_idempotency_key_reused")


@pytest.mark.both_databases
def test_one_line_and_thirty_execute_the_same_statements(admin, make_customer, statements):
    customer_id = make_customer()["id"]
    seen = []
    for number in (1, 30):
        order = {"customer_id": customer_id, "line_items": [LINE] * number}
        admin.get("/orders/statuses")  # the key is remembered
        statements.clear()
        assert admin.post("/orders", {"order": order}).status_code == 201
        seen.append(without_key(statements))
    assert seen[0] == seen[1]
    # The customer, an ID, the order; the customer of the event, the event; that of the response.
    assert len(seen[0]) == 6


@pytest.mark.both_databases
def test_ids_follow_orders_that_others_inserted(app, make_order):
    inserted = insert_order(app)
    first, second = make_order(), make_order()
    assert inserted < first["id"] < second["id"]
