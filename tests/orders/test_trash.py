"""The trash of orders, beside what is the same for coupons (tests/api/test_trash.py)."""

import pytest

from tests.api_client import codes, refusal, reply
from tests.factories import insert_download
from tests.orders.calls import LINE, change, create, read

DELETED = (200, {"message": "Deleted order"})
REYKJAVIK = {"city": "Reykjavik"}
REMOVED = (200, {"message": "Permanently deleted order"})


def trashed(client, query=None):
    return [order["id"] for order in client.get("/orders/trash", query).get_json()["orders"]]


@pytest.mark.both_databases
@pytest.mark.parametrize("most", [1, 50_000])
def test_a_frequent_text_is_compared_with_the_filtered_orders(admin, monkeypatch, most):
    """All orders with it would be found to learn that none of them is in the trash: 0.7 s."""
    monkeypatch.setattr("app.db.search.MOST_COUNTED", most)
    kept = [
        create(admin, billing_address=REYKJAVIK, status=name)["id"]
        for name in ("failed", "pending")
    ]
    assert trashed(admin, {"filter[q]": "reykjavik"}) == []
    moved = [create(admin, billing_address=address)["id"] for address in (REYKJAVIK, {})]
    for order_id in moved:
        admin.delete(f"/orders/{order_id}")
    assert trashed(admin, {"filter[q]": "reykjavik"}) == moved[:1]
    query = {"filter[q]": "reykjavik", "filter[status]": "failed"}
    assert [each["id"] for each in admin.get("/orders", query).get_json()["orders"]] == kept[:1]
    assert admin.get("/orders/count", query).get_json() == {"count": 1}


@pytest.mark.both_databases
def test_a_trashed_order_is_not_found(app, admin, make_customer):
    customer = make_customer()
    kept = create(admin, note="kept")
    order = create(
        admin, customer_id=customer["id"], status="completed", line_items=[LINE],
        billing_address={"city": "Reykjavik"},
    )  # fmt: skip
    insert_download(app, order["id"])
    path = f"/customers/{customer['id']}"
    assert len(admin.get(f"{path}/downloads").get_json()["downloads"]) == 1
    assert reply(admin.delete(f"/orders/{order['id']}")) == DELETED
    missing = refusal("shop_api_invalid_order_id")
    assert reply(admin.get(f"/orders/{order['id']}")) == missing
    assert reply(admin.put(f"/orders/{order['id']}", {"order": {"note": "x"}})) == missing
    assert reply(admin.delete(f"/orders/{order['id']}")) == missing
    assert reply(admin.delete(f"/orders/{order['id']}", {"force": "true"})) == missing
    assert admin.get("/orders").get_json() == {"orders": [kept]}
    assert admin.get("/orders").headers["X-Total"] == "1"
    for order_by in ("date", "modified", "id", "total"):
        query = {"filter[orderby]": order_by, "filter[limit]": "-1"}
        assert admin.get("/orders", query).get_json() == {"orders": [kept]}
    assert admin.get("/orders/count").get_json() == {"count": 1}
    theirs = f"filter[customer_id]={customer['id']}"
    for query in ("filter[q]=reykjavik", "filter[status]=completed", theirs):
        assert admin.get(f"/orders/count?{query}").get_json() == {"count": 0}
        assert admin.get(f"/orders?{query}").get_json() == {"orders": []}
    assert codes(admin.get("/orders?filter[status]=trash")) == (400, "shop_api_invalid_param")
    assert admin.get(path).get_json() == {"customer": customer}
    assert admin.get(f"{path}/orders").get_json() == {"orders": []}
    assert admin.get(f"{path}/downloads").get_json() == {"downloads": {}}
    assert admin.get("/orders/statuses").get_json()["order_statuses"].keys().isdisjoint({"trash"})


@pytest.mark.slow
@pytest.mark.both_databases
def test_search_of_many_orders_leaves_out_the_trash(admin):
    city = {"billing_address": {"city": "Samarkand"}}
    for _ in range(11):
        assert admin.post("/orders/bulk", {"orders": [city] * 100}).status_code == 200
    (first, *_) = admin.get("/orders?filter[q]=samarkand").get_json()["orders"]
    assert reply(admin.delete(f"/orders/{first['id']}")) == DELETED
    assert admin.get("/orders/count?filter[q]=samarkand").get_json() == {"count": 1099}
    page = admin.get("/orders?filter[q]=samarkand&page=110")
    assert (len(page.get_json()["orders"]), page.headers["X-Total"]) == (9, "1099")


@pytest.mark.both_databases
@pytest.mark.parametrize("name", ["customer_id", "created_at_min", "updated_at_max"])
def test_filtered_lists_and_their_totals_leave_out_the_trash(admin, make_customer, name):
    customer_id = make_customer()["id"]
    orders = [create(admin, customer_id=customer_id)["id"] for _ in range(5)]
    guest = create(admin)["id"]
    for order_id in (orders[1], orders[3]):
        admin.delete(f"/orders/{order_id}")
    left = [orders[4], orders[2], orders[0]]
    value, found = {
        "customer_id": (customer_id, left),
        "created_at_min": ("2020-01-01", [guest, *left]),
        "updated_at_max": ("2120-01-01", [guest, *left]),
    }[name]
    query = {f"filter[{name}]": str(value), "filter[orderby]": "id"}
    response = admin.get("/orders", query)
    assert [order["id"] for order in response.get_json()["orders"]] == found
    assert response.headers["X-Total"] == str(len(found))
    assert admin.get("/orders/count", query).get_json() == {"count": len(found)}


@pytest.mark.both_databases
def test_the_trash_is_listed_as_the_orders_were(admin, make_customer):
    customer = make_customer()
    first = create(admin, customer_id=customer["id"], status="completed", line_items=[LINE])
    second = create(admin, note="guest", billing_address={"city": "Reykjavik"})
    create(admin)
    for order in (first, second):
        admin.delete(f"/orders/{order['id']}")
    page = admin.get("/orders/trash")
    rows = page.get_json()["orders"]
    moments = {row["id"]: row["trashed_at"] for row in rows}
    *keys, last = second
    assert list(rows[0]) == [*keys, "trashed_at", last]
    assert rows == [
        second | {"trashed_at": moments[second["id"]], "updated_at": moments[second["id"]]},
        first
        | {
            "trashed_at": moments[first["id"]],
            "updated_at": moments[first["id"]],
            "customer": customer,
        },
    ]
    assert page.headers["X-Total"] == "2"
    for query, found in (
        ({"filter[status]": "completed"}, [first]),
        ({"filter[status]": "pending,completed", "filter[order]": "asc"}, [first, second]),
        ({"filter[customer_id]": "0"}, [second]),
        ({"filter[q]": "reykjavik"}, [second]),
        ({"filter[limit]": "1", "page": "2"}, [first]),
        ({"filter[limit]": "-1"}, [second, first]),
        ({"filter[created_at_max]": "2001-01-01"}, []),
    ):
        assert trashed(admin, query) == [order["id"] for order in found], query
    narrow = admin.get("/orders/trash?fields=id,trashed_at,customer.id&filter[limit]=1")
    assert narrow.get_json() == {
        "orders": [{"id": second["id"], "trashed_at": moments[second["id"]], "customer": {"id": 0}}]
    }


def test_a_restored_order_is_as_it_was(admin, make_customer):
    customer = make_customer()
    order = create(admin, customer_id=customer["id"], status="processing", line_items=[LINE])
    admin.delete(f"/orders/{order['id']}")
    response = admin.post(f"/orders/{order['id']}/restore")
    restored = response.get_json()["order"]
    assert (response.status_code, restored) == (
        200, order | {"updated_at": restored["updated_at"]}
    )  # fmt: skip
    assert read(admin, order["id"]) == restored
    assert trashed(admin) == []


@pytest.mark.both_databases
def test_removed_permanently(admin):
    order = create(admin)
    change(admin, order["id"], status="completed")  # with a note
    assert reply(admin.delete(f"/orders/{order['id']}", {"force": "true"})) == REMOVED
    assert reply(admin.get(f"/orders/{order['id']}")) == refusal("shop_api_invalid_order_id")
    assert (trashed(admin), admin.get("/orders/count").get_json()) == ([], {"count": 0})


def test_capability_to_delete(admin, client_for):
    order = create(admin)
    reader = client_for("customer")
    refused = refusal("shop_api_user_cannot_delete_order")
    assert reply(reader.delete(f"/orders/{order['id']}")) == refused
    assert reply(reader.delete("/orders/999999")) == refusal("shop_api_invalid_order_id")


@pytest.mark.both_databases
def test_the_orders_of_a_deleted_customer_become_guest_orders_in_the_trash_too(
    admin, make_customer
):
    customer = make_customer()
    order = create(admin, customer_id=customer["id"])
    admin.delete(f"/orders/{order['id']}")
    assert admin.delete(f"/customers/{customer['id']}").status_code == 200
    restored = admin.post(f"/orders/{order['id']}/restore").get_json()["order"]
    assert (restored["customer_id"], restored["customer"]["id"]) == (0, 0)
