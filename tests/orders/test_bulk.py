"""``/orders/bulk`` (orders 1 and 9, spec 4.3)."""

import pytest

from tests.api_client import bulk_results, failure, reply, without_key
from tests.orders.calls import KNOWN, LINE, create, read


@pytest.fixture
def bulk(admin):
    """Return a function: send items, return their results."""

    def send(*items, method="POST"):
        return bulk_results(admin, "order", *items, method=method)

    return send


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_creates_and_updates_in_the_order_of_the_items(admin, bulk, make_customer, method):
    customer = make_customer()
    order = create(admin, line_items=[LINE])
    results = bulk(
        {"customer_id": customer["id"], "status": "completed", "line_items": [LINE]},
        {"id": order["id"], "status": "completed"},
        {"status": "shipped"},
        {"id": 999_999, "note": "x"},
        {"id": order["id"], "line_items": [{"id": 1, "quantity": 2}]},
        {"customer_id": 999_999},
        "x",
        {"id": -1},
        {"note": []},
        method=method,
    )
    first, second, third = results[0], results[1], results[4]
    assert read(admin, first["id"]) == first
    assert first["customer"]["total_spent"] == "4.00"
    assert second == order | {
        "status": "completed",
        "updated_at": second["updated_at"],
        "completed_at": second["updated_at"],
        "paid_at": second["updated_at"],
    }
    assert (third["status"], third["total"]) == ("completed", "8.00")
    assert read(admin, order["id"]) == third
    assert results[2:4] == [
        failure("shop_api_invalid_order_status", statuses=KNOWN),
        failure("shop_api_invalid_order_id", 999_999),
    ]
    assert results[5:] == [
        failure("shop_api_invalid_customer_id"),
        failure("shop_api_invalid_param", param="item", reason="must be an object."),
        failure("shop_api_invalid_order_id", -1),
        failure("shop_api_invalid_param", param="note", reason="must be a string."),
    ]
    assert admin.get("/orders/count").get_json() == {"count": 2}


@pytest.mark.both_databases
def test_an_order_key_is_taken_by_an_earlier_item(bulk):
    first, second = bulk({"order_key": "k"}, {"order_key": "k"})
    assert first["order_key"] == "k"
    assert second == failure(
        "shop_api_cannot_create_order", reason="another order has this order key."
    )


@pytest.mark.both_databases
def test_hundred_orders_have_ids_in_the_order_of_the_items(bulk):
    results = bulk(*({"note": str(number)} for number in range(100)))
    assert [result["note"] for result in results] == [str(number) for number in range(100)]
    ids = [result["id"] for result in results]
    assert ids == list(range(ids[0], ids[0] + 100))
    assert [result["order_number"] for result in results] == list(map(str, ids))


def test_repeated_bulk_creates_once(admin, make_customer):
    body = {"orders": [{"customer_id": make_customer()["id"], "note": "x"}]}
    first = admin.post("/orders/bulk", body, headers={"Idempotency-Key": "b"})
    assert reply(first) == reply(admin.post("/orders/bulk", body, headers={"Idempotency-Key": "b"}))
    assert first.get_json()["orders"][0]["customer"]["orders_count"] == 1
    assert admin.get("/orders/count").get_json() == {"count": 1}


@pytest.mark.both_databases
def test_a_bulk_of_creates_takes_the_statements_of_one_create(bulk, make_customer, statements):
    customer_id = make_customer()["id"]
    seen = []
    for number in (1, 20):
        statements.clear()
        bulk(*({"customer_id": customer_id, "line_items": [LINE]} for _ in range(number)))
        seen.append(len(without_key(statements)))
    assert seen == [6, 6]


@pytest.mark.both_databases
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_statements_do_not_grow_with_the_items(bulk, statements):
    """The driver reads the text of each statement: 5,000 placeholders are slow."""
    results = bulk(*[{"line_items": [LINE]}] * 100)
    assert not any("error" in result for result in results)
    assert max(map(len, statements)) < 10_000
