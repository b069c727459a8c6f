"""``PUT /orders/{id}`` (orders 3, 5 and 9)."""

import time

import pytest
from sqlalchemy import select

from app.db.read_pool import fetch
from app.models import OrderNote
from tests.api_client import codes, refusal, refused_params, reply, without_key
from tests.factories import insert_order
from tests.orders.calls import KNOWN, LINE, change, create, read


@pytest.fixture
def notes(app):
    """Return a function: the notes of an order."""

    def of(order_id):
        with app.app_context():
            texts = select(OrderNote.note).where(OrderNote.order_id == order_id)
            return [row[0] for row in fetch(texts.order_by(OrderNote.id))]

    return of


def test_only_supplied_fields_change(admin):
    before = create(admin, note="n", line_items=[LINE], billing_address={"city": "Köln"})
    after = change(admin, before["id"], billing_address={"first_name": "Ada"}, customer_ip="::1")
    assert after == before | {
        "updated_at": after["updated_at"],
        "customer_ip": "::1",
        "billing_address": before["billing_address"] | {"first_name": "Ada"},
        "customer": before["customer"]
        | {
            "first_name": "Ada",
            "billing_address": before["billing_address"] | {"first_name": "Ada"},
        },
    }
    assert read(admin, before["id"]) == after


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, {}),
        ({"status": None, "note": None, "line_items": None, "customer_id": None}, {}),
        ({"line_items": []}, {}),
        ({"note": ""}, {"note": ""}),
        ({"created_at": "2020-01-01", "order_number": "9", "order_key": "x"}, {}),
        ({"total": "99.00", "completed_at": "2020-01-01"}, {}),
        ({"currency": "eur"}, {"currency": "EUR"}),
        ({"shipping_tax": "1"}, {"shipping_tax": "1.00", "total_tax": "1.00", "total": "5.00"}),
        ({"line_items": [{"id": 1, "name": None, "quantity": None, "price": None}]}, {}),
        ({"payment_details": {"method_id": "bacs"}},
         {"payment_details": {"method_id": "bacs", "method_title": "", "paid": False}}),
    ],
)  # fmt: skip
def test_fields(admin, given, shown):
    before = create(admin, note="n", line_items=[LINE])
    after = change(admin, before["id"], **given)
    assert after == before | shown | {"updated_at": after["updated_at"]}
    assert read(admin, before["id"]) == after


@pytest.mark.both_databases
def test_items_change_one_by_one(admin):
    before = create(
        admin, line_items=[LINE, LINE | {"name": "Pot"}], fee_lines=[{"title": "Gift", "total": 1}]
    )
    after = change(
        admin,
        before["id"],
        line_items=[
            {"name": "Tray", "total": 2},
            {"id": 1, "quantity": 3},
            {"id": 2, "quantity": 0},
        ],
        fee_lines=[{"id": 3, "remove": True}],
    )
    mug, pot = before["line_items"]
    assert after["line_items"] == [
        mug | {"quantity": 3, "subtotal": "12.00", "total": "12.00"},
        pot | {"id": 4, "name": "Tray", "subtotal": "2.00", "total": "2.00", "price": "2.00"},
    ]
    assert (after["fee_lines"], after["total"], after["total_line_items_quantity"]) == (
        [], "14.00", 4,
    )  # fmt: skip
    assert read(admin, before["id"]) == after


@pytest.mark.parametrize(
    ("quantity", "code"),
    [
        ("0", "shop_api_invalid_order_item"),
        (-1, "shop_api_invalid_order_item"),
        ("x", "shop_api_invalid_param"),
        (False, "shop_api_invalid_param"),
        (0.5, "shop_api_invalid_param"),
    ],
)
def test_only_the_number_0_removes_an_item(admin, quantity, code):
    before = create(admin, line_items=[LINE])
    body = {"order": {"line_items": [{"id": 1, "quantity": quantity}]}}
    assert codes(admin.put(f"/orders/{before['id']}", body)) == (400, code)
    assert read(admin, before["id"]) == before


@pytest.mark.parametrize("remove", ["true", 1, "1", False])
def test_remove_takes_effect_only_when_it_is_true(admin, remove):
    before = create(admin, line_items=[LINE])
    after = change(admin, before["id"], line_items=[{"id": 1, "remove": remove}])
    assert after["line_items"] == before["line_items"]


def test_a_recorded_coupon_is_changed_by_its_id(admin):
    order = create(admin, coupon_lines=[{"code": "tea", "amount": "2"}])
    after = change(admin, order["id"], coupon_lines=[{"id": 1, "amount": "3"}])
    assert (after["coupon_lines"], after["total_discount"]) == (
        [{"id": 1, "code": "tea", "amount": "3.00"}],
        "3.00",
    )


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ({"customer_id": 999_999, "status": "x"},
         ("shop_api_invalid_customer_id", "order.customer_id")),
        ({"status": "x", "currency": "x"}, ("shop_api_invalid_order_status", None)),
        ({"currency": "", "line_items": [{}]}, ("shop_api_invalid_order_currency", None)),
        ({"line_items": [{"id": 9}], "coupon_lines": [{"code": "a"}]},
         ("shop_api_invalid_order_item", "order.line_items[0].id")),
        ({"line_items": [{"id": 1, "total": -5}]}, ("shop_api_invalid_order_item", "order")),
        ({"coupon_lines": [{"code": "a"}]},
         ("shop_api_coupon_not_applicable", "order.coupon_lines[0].code")),
    ],
)  # fmt: skip
def test_rules_in_their_order(admin, order, expected):
    before = create(admin, line_items=[LINE])
    response = admin.put(f"/orders/{before['id']}", {"order": order | {"note": "changed"}})
    (entry,) = response.get_json()["errors"]
    assert (response.status_code, entry["code"], entry.get("param")) == (400, *expected)
    assert read(admin, before["id"]) == before


@pytest.mark.parametrize("item_id", ["x", [], -1.5, True])
def test_invalid_item_id(admin, item_id):
    body = {"order": {"line_items": [{"id": item_id}]}}
    assert refused_params(admin.put("/orders/1", body)) == ["order.line_items[0].id"]


@pytest.mark.both_databases
@pytest.mark.parametrize("mount", ["", "/wc-api/v2", "/wc-api/v3"])
def test_no_order_has_the_id_0(admin, mount):
    response = admin.put(f"{mount}/orders/0", {"order": {"note": "x"}})
    prefix = "woocommerce_api" if mount else "shop_api"
    assert codes(response) == (404, f"{prefix}_invalid_order_id")
    assert admin.get("/orders/count").get_json() == {"count": 0}


def test_unknown_order_comes_before_the_capability(admin, client_for):
    order = create(admin)
    reader = client_for("customer")
    assert reply(reader.put("/orders/999999", {"order": {}})) == refusal(
        "shop_api_invalid_order_id"
    )
    assert reply(reader.put(f"/orders/{order['id']}", {"order": {"status": "x"}})) == refusal(
        "shop_api_user_cannot_edit_order"
    )
    assert reply(reader.put("/orders/999999", {})) == refusal("shop_api_missing_order_data")


# --- status ---


def test_every_status_may_follow_any_other(admin, notes):
    order = create(admin)
    for status in ("completed", "pending", "refunded", "on-hold", "on-hold", "failed"):
        assert change(admin, order["id"], status=status)["status"] == status
    assert notes(order["id"]) == [
        "Order status changed from Pending payment to Completed.",
        "Order status changed from Completed to Pending payment.",
        "Order status changed from Pending payment to Refunded.",
        "Order status changed from Refunded to On hold.",
        "Order status changed from On hold to Failed.",
    ]


def test_a_rejected_change_leaves_no_note(admin, notes):
    order = create(admin)
    body = {"order": {"status": "completed", "line_items": [{}]}}
    assert admin.put(f"/orders/{order['id']}", body).status_code == 400
    assert notes(order["id"]) == []


def test_completed_at_keeps_the_first_completion(admin):
    order = create(admin)
    first = change(admin, order["id"], status="completed")
    assert first["completed_at"] == first["updated_at"]
    time.sleep(1.1)
    change(admin, order["id"], status="processing")
    assert change(admin, order["id"], status="completed")["completed_at"] == first["completed_at"]


@pytest.mark.parametrize("status", KNOWN.split(", "))
def test_payment_moves_unpaid_orders_to_processing(admin, status):
    order = create(admin, status=status)
    after = change(admin, order["id"], payment_details={"paid": True})
    unpaid = {"pending", "on-hold", "failed", "cancelled"}
    assert after["status"] == ("processing" if status in unpaid else status)
    given = change(admin, order["id"], payment_details={"paid": True}, status="failed")
    assert given["status"] == "failed"


# --- customers ---


@pytest.mark.both_databases
def test_an_order_moves_between_customers(admin, make_customer):
    ada, grace = make_customer(), make_customer()
    order = create(admin, customer_id=ada["id"], status="completed", line_items=[LINE])
    after = change(admin, order["id"], customer_id=grace["id"])
    spent = {
        "orders_count": 1,
        "total_spent": "4.00",
        "last_order_id": order["id"],
        "last_order_date": order["created_at"],
    }
    assert after["customer"] == grace | spent
    assert admin.get(f"/customers/{ada['id']}").get_json() == {"customer": ada}
    guest = change(admin, order["id"], customer_id=0)
    assert (guest["customer_id"], guest["customer"]["id"]) == (0, 0)
    assert admin.get(f"/customers/{grace['id']}").get_json() == {"customer": grace}


@pytest.mark.both_databases
def test_changed_texts_are_searched(admin):
    order = create(admin, billing_address={"city": "Lisbon"})
    change(admin, order["id"], billing_address={"city": "Porto Alegre"})
    assert admin.get("/orders/count?filter[q]=lisbon").get_json() == {"count": 0}
    assert admin.get("/orders/count?filter[q]=porto").get_json() == {"count": 1}


@pytest.mark.both_databases
def test_orders_from_before_can_be_changed(app, admin):
    order_id = insert_order(app)
    after = change(admin, order_id, line_items=[{"name": "Cup", "total": "2.00", "total_tax": 1}])
    assert [line["id"] for line in after["line_items"]] == [11, 13]
    assert (after["subtotal"], after["cart_tax"], after["total"]) == ("10.00", "2.50", "14.00")


# --- conditions, cost ---


def test_if_match(admin):
    order = create(admin)
    path = f"/orders/{order['id']}"
    tag = admin.get(path).headers["ETag"]
    stale = {"headers": {"If-Match": tag}}
    assert admin.put(path, {"order": {"note": "1"}}, **stale).status_code == 200
    response = admin.put(path, {"order": {"note": "2"}}, **stale)
    assert reply(response) == refusal("shop_api_precondition_failed")
    assert reply(admin.delete(path, **stale)) == refusal("shop_api_precondition_failed")
    assert read(admin, order["id"])["note"] == "1"
    current = {"headers": {"If-Match": admin.get(path).headers["ETag"]}}
    assert admin.delete(path, **current).status_code == 200


@pytest.mark.both_databases
def test_a_status_change_takes_four_statements(admin, statements):
    order = create(admin, line_items=[LINE] * 30)
    admin.get("/orders/statuses")  # the key is remembered
    statements.clear()
    change(admin, order["id"], status="completed")
    *of_order, events = (statement.split()[0] for statement in without_key(statements))
    assert of_order == ["SELECT", "UPDATE", "INSERT"]  # the order, the note
    assert events in {"INSERT", "COPY"}  # on PostgreSQL
