"""``changes`` and ``actor`` of events: what a write changed, and who made it (people 1)."""

import pytest

from app.services.events.changes import MAX_SIZE, difference
from tests.api_client import without_key


@pytest.fixture
def history(admin):
    """Return a function: the events of a record with ``changes``, newest first."""

    def read(resource, resource_id, names="type,changes"):
        query = {
            "fields": names,
            "filter[resource]": resource,
            "filter[resource_id]": resource_id,
            "filter[order]": "desc",
        }
        return admin.get("/events", query).get_json()["events"]

    return read


@pytest.fixture
def latest(history):
    """Return a function: ``changes`` of the newest event of a record."""
    return lambda resource, resource_id: history(resource, resource_id)[0]["changes"]


@pytest.fixture
def coupon(admin):
    data = {"code": "spring", "amount": "5.00", "metadata": {"erp": {"a": 1}, "flag": 1}}
    return admin.post("/coupons", {"coupon": data}).get_json()["coupon"]


def put(client, path, key, data):
    response = client.put(path, {key: data})
    assert response.status_code == 200, response.get_json()
    return response.get_json()[key]


def test_fields_of_a_coupon(admin, coupon, history):
    given = {
        "amount": "7.5",
        "usage_limit": 3,
        "product_ids": [1, 2],
        "expiry_date": "2031-01-31",
        "active": False,
        "metadata": {"erp": None, "flag": True, "new": [1]},
    }
    put(admin, f"/coupons/{coupon['id']}", "coupon", given)
    put(admin, f"/coupons/{coupon['id']}", "coupon", {"amount": "7.50", "metadata": {"new": [1]}})
    same, changed, created = history("coupon", coupon["id"])
    assert (same["changes"], created["changes"]) == (None, None)
    assert changed["changes"] == {
        "before": {
            "amount": "5.00",
            "usage_limit": None,
            "product_ids": [],
            "expiry_date": None,
            "active": True,
            "metadata": {"erp": {"a": 1}, "flag": 1, "new": None},
        },
        "after": {
            "amount": "7.50",
            "usage_limit": 3,
            "product_ids": [1, 2],
            "expiry_date": "2031-01-31T00:00:00Z",
            "active": False,
            "metadata": {"erp": None, "flag": True, "new": [1]},
        },
    }


@pytest.mark.parametrize("name", ["tags", "combines_with", "customer_tags", "get_product_ids"])
def test_an_empty_list_over_no_list_is_no_change(admin, coupon, latest, name):
    path = f"/coupons/{coupon['id']}"
    put(admin, path, "coupon", {name: []})
    assert latest("coupon", coupon["id"]) is None
    put(admin, path, "coupon", {name: ["7"]})
    given = latest("coupon", coupon["id"])["after"]
    put(admin, path, "coupon", {name: []})
    assert latest("coupon", coupon["id"]) == {"before": given, "after": {name: []}}
    put(admin, path, "coupon", {name: []})
    assert latest("coupon", coupon["id"]) is None


def test_events_and_deliveries_without_fields_stay_as_they_are(admin, coupon, feed):
    put(admin, f"/coupons/{coupon['id']}", "coupon", {"amount": "6"})
    event = feed()[-1]
    assert not {"changes", "actor"} & event.keys()
    alone = admin.get(f"/events/{event['id']}", {"fields": "id,changes,actor.origin"}).get_json()
    assert alone["event"] == {
        "id": event["id"],
        "changes": {"before": {"amount": "5.00"}, "after": {"amount": "6.00"}},
        "actor": {"origin": "api"},
    }


def test_two_items_of_a_bulk_request_on_one_record(admin, coupon, history):
    path, coupon_id = "/coupons/bulk", coupon["id"]
    items = [
        {"id": coupon_id, "amount": "6", "metadata": {"flag": 2}},
        {"id": coupon_id, "amount": "7"},
        {"id": coupon_id, "metadata": {"flag": 3}},
    ]
    assert admin.post(path, {"coupons": items}).status_code == 200
    found = [event["changes"] for event in history("coupon", coupon_id)[:3]]
    assert found == [
        {"before": {"metadata": {"flag": 2}}, "after": {"metadata": {"flag": 3}}},
        {"before": {"amount": "6.00"}, "after": {"amount": "7.00"}},
        {
            "before": {"amount": "5.00", "metadata": {"flag": 1}},
            "after": {"amount": "6.00", "metadata": {"flag": 2}},
        },
    ]


def test_a_customer(admin, make_customer, make_order, latest):
    customer = make_customer(first_name="Ada", billing_address={"city": "Rome", "phone": "1"})
    path, customer_id = f"/customers/{customer['id']}", customer["id"]
    make_order(customer_id=customer_id, status="completed")  # statistics are left out
    given = {"first_name": "Eva", "billing_address": {"city": "Oslo"}, "tags": ["vip"]}
    put(admin, path, "customer", given | {"metadata": {"note": "calls"}})
    assert latest("customer", customer_id) == {
        "before": {
            "first_name": "Ada",
            "billing_address": {"city": "Rome"},
            "tags": [],
            "metadata": {"note": None},
        },
        "after": {
            "first_name": "Eva",
            "billing_address": {"city": "Oslo"},
            "tags": ["vip"],
            "metadata": {"note": "calls"},
        },
    }
    put(admin, path, "customer", {"password": "a new password"})
    assert latest("customer", customer_id) == {"before": {}, "after": {"password": True}}


@pytest.mark.both_databases
def test_items_of_an_order(admin, make_order, latest):
    order = make_order(
        line_items=[
            {"name": "Teapot", "price": "8.00", "metadata": {"engraving": "A"}},
            {"name": "Cup", "price": "2.00", "metadata": {"glaze": "blue"}},
        ]
    )
    teapot, cup = order["line_items"]
    items = [
        {"id": teapot["id"], "quantity": 2, "metadata": {"engraving": "B"}},
        {"id": cup["id"], "quantity": 0},
        {"name": "Plate", "price": "1.00"},
    ]
    after = put(admin, f"/orders/{order['id']}", "order", {"line_items": items, "note": "Ring"})
    changes = latest("order", order["id"])
    plate = after["line_items"][-1]
    assert changes["before"]["note"] == ""
    assert changes["before"]["line_items"] == [
        {
            "id": teapot["id"],
            "subtotal": "8.00",
            "total": "8.00",
            "quantity": 1,
            "metadata": {"engraving": "A"},
        },
        cup | {"metadata": {"glaze": "blue"}},
    ]
    assert changes["after"]["line_items"] == [
        {
            "id": teapot["id"],
            "subtotal": "16.00",
            "total": "16.00",
            "quantity": 2,
            "metadata": {"engraving": "B"},
        },
        plate | {"metadata": {}},
    ]
    assert (changes["before"]["total"], changes["after"]["total"]) == ("10.00", "17.00")
    assert not {"updated_at", "customer", "line_items_quantity"} & changes["after"].keys()
    # Only the removed item had metadata, which the request does not name.
    removed = [{"id": plate["id"], "quantity": 0}]
    put(admin, f"/orders/{order['id']}", "order", {"line_items": removed})
    assert latest("order", order["id"])["after"].keys() == {
        "total", "subtotal", "total_line_items_quantity", "line_items",
    }  # fmt: skip


def test_status_and_refund_of_an_order(admin, make_order, latest, history):
    order = make_order(status="processing")
    path = f"/orders/{order['id']}"
    put(admin, path, "order", {"status": "completed"})
    changes = latest("order", order["id"])
    assert changes["before"] == {"status": "processing", "completed_at": None}
    refund = admin.post(f"{path}/refunds", {"order_refund": {"amount": "3"}}).get_json()
    assert latest("order", order["id"]) == {
        "before": {"total_refunded": "0.00"},
        "after": {"total_refunded": "3.00"},
    }
    refund_id = refund["order_refund"]["id"]
    given = {"reason": "Broken", "metadata": {"erp": 1}}
    put(admin, f"{path}/refunds/{refund_id}", "order_refund", given)
    assert latest("order_refund", refund_id) == {
        "before": {"reason": "", "metadata": {"erp": None}},
        "after": given,
    }
    admin.delete(f"{path}/refunds/{refund_id}")
    assert latest("order_refund", refund_id) is None


def test_notes(admin, make_order, history):
    order = make_order()
    path = f"/orders/{order['id']}/notes"
    note = admin.post(path, {"order_note": {"note": "Call"}}).get_json()["order_note"]
    put(admin, f"{path}/{note['id']}", "order_note", {"note": "Called"})
    put(admin, f"{path}/{note['id']}", "order_note", {})
    assert admin.delete(f"{path}/{note['id']}").status_code == 200
    deleted, updated, created = history("order_note", note["id"], "type,data,changes")
    ids = {"order_note": {"id": note["id"]}, "permanent": True, "order_id": order["id"]}
    assert deleted == {"type": "order_note.deleted", "data": ids, "changes": None}
    assert updated == {
        "type": "order_note.updated",
        "data": {"order_note": note | {"note": "Called"}, "order_id": order["id"]},
        "changes": {"before": {"note": "Call"}, "after": {"note": "Called"}},
    }
    assert created["changes"] is None


def test_deletions(admin, coupon, make_order, history):
    order = make_order(order_number="A-1")
    complete = {"filter[meta]": "true"}
    coupon = admin.get(f"/coupons/{coupon['id']}", complete).get_json()["coupon"]
    for path in (f"/coupons/{coupon['id']}", f"/orders/{order['id']}"):
        assert admin.delete(path).status_code == 200
        assert admin.post(f"{path}/restore").status_code == 200
        assert admin.delete(path, {"force": "true"}).status_code == 200
    deleted, restored, moved, _ = history("coupon", coupon["id"])
    assert (restored["changes"], moved["changes"]) == (None, None)
    before = deleted["changes"]["before"]
    assert {name: before[name] for name in coupon if name != "updated_at"} == {
        name: coupon[name] for name in coupon if name != "updated_at"
    }
    assert before["active"] is True
    assert history("order", order["id"])[0]["changes"] == {
        "before": {
            "order_number": "A-1",
            "status": "pending",
            "currency": order["currency"],
            "total": "8.00",
        },
        "after": {},
    }


def test_a_campaign(admin, latest):
    campaign = admin.post("/campaigns", {"campaign": {"name": "Spring"}}).get_json()["campaign"]
    path = f"/campaigns/{campaign['id']}"
    put(admin, path, "campaign", {"name": "Summer", "budget": "9"})
    changes = {
        "before": {"name": "Spring", "budget": "0.00"},
        "after": {"name": "Summer", "budget": "9.00"},
    }
    assert latest("campaign", campaign["id"]) == changes
    assert admin.delete(path).status_code == 200
    assert latest("campaign", campaign["id"]) is None


def test_large_changes_are_left_out(admin, coupon, latest):
    for size, is_kept in ((MAX_SIZE // 2, True), (MAX_SIZE, False)):
        put(admin, f"/coupons/{coupon['id']}", "coupon", {"description": "x" * size})
        assert bool(latest("coupon", coupon["id"])) is is_kept
        put(admin, f"/coupons/{coupon['id']}", "coupon", {"description": ""})


@pytest.mark.both_databases
@pytest.mark.both_databases
def test_an_update_with_changes_takes_no_statement_more(
    admin, coupon, make_customer, make_order, statements
):
    """The numbers are those of the last version whose events had no ``changes``."""
    customer_id = make_customer()["id"]
    customer = f"/customers/{customer_id}"
    order = make_order(customer_id=customer_id, metadata={"erp": 1}, status="completed")
    line = {"id": order["line_items"][0]["id"], "quantity": 3}
    path = f"/orders/{order['id']}"
    refund = admin.post(f"{path}/refunds", {"order_refund": {"amount": "1.00"}}).get_json()
    refund_path = f"{path}/refunds/{refund['order_refund']['id']}"
    for url, key, data, number in (
        (f"/coupons/{coupon['id']}", "coupon", {"description": "new"}, 3),
        (f"/coupons/{coupon['id']}", "coupon", {"amount": "1.00", "metadata": {"erp": "x"}}, 5),
        (customer, "customer", {"first_name": "Bo", "metadata": {"vip": True}}, 7),
        (path, "order", {"note": "new"}, 5),
        (path, "order", {"status": "processing"}, 6),
        (path, "order", {"line_items": [line, {"name": "Cup", "price": "1.00"}]}, 7),
        (path, "order", {"metadata": {"erp": 2}, "billing_address": {"phone": "1"}}, 7),
        (refund_path, "order_refund", {"reason": "late"}, 6),
    ):
        statements.clear()
        put(admin, url, key, data)
        assert len(without_key(statements)) == number, (url, data, statements)


def test_the_actor_without_its_key_and_its_user(app, admin, client_for, coupon, history):
    path = f"/coupons/{coupon['id']}"
    manager = client_for("shop_manager")
    put(manager, path, "coupon", {"description": "new"})
    key = {"user_id": manager.key.user_id, "key_id": manager.key.key_id, "origin": "api"}

    def actor():
        return history("coupon", coupon["id"], "actor")[0]["actor"]

    assert actor() == {**key, "username": "shop_manager", "key_description": ""}
    assert admin.delete(f"/keys/{manager.key.key_id}").status_code == 200
    assert actor() == {**key, "username": "shop_manager", "key_description": None}
    gone = admin.delete(f"/customers/{manager.key.user_id}", {"force": "true"})
    assert gone.status_code == 200, gone.text
    assert actor() == {**key, "username": None, "key_description": None}


def test_filters(admin, client_for, coupon, history):
    manager = client_for("shop_manager")
    path = f"/coupons/{coupon['id']}"
    for amount in (6, 7):
        body = {"coupon": {"amount": amount}}
        assert manager.put(path, body, headers={"X-Request-Id": f"r-{amount}"}).status_code == 200

    def found(**filters):
        query = {f"filter[{name}]": value for name, value in filters.items()}
        response = admin.get("/events", query | {"fields": "id,actor"})
        assert response.status_code == 200, response.get_json()
        return response.get_json()["events"]

    user_id = manager.key.user_id
    old, new = found(user_id=user_id)
    assert [each["id"] for each in found(user_id=user_id, order="desc")] == [new["id"], old["id"]]
    assert found(request_id="r-6") == [old]
    assert found(user_id=user_id, order="desc", before=new["id"]) == [old]
    page = admin.get(
        "/events", {"filter[order]": "desc", "filter[limit]": 1, "filter[user_id]": user_id}
    )
    assert f"filter%5Bbefore%5D={new['id']}" in page.headers["Link"]
    actor = old["actor"]
    assert actor["user_id"] == user_id
    assert actor["origin"] == "api"
    assert all(value is not None for value in actor.values())
    for query in ({"filter[before]": 5}, {"filter[order]": "desc", "filter[after]": 1}):
        response = admin.get("/events", query)
        (error,) = response.get_json()["errors"]
        assert (response.status_code, error["code"]) == (400, "shop_api_invalid_param")


def test_erasure_empties_values_and_keeps_names(admin, make_customer, make_order, latest):
    customer = make_customer(first_name="Ada", billing_address={"city": "Rome"})
    order = make_order(customer_id=customer["id"], customer_ip="10.0.0.1")
    given = {"first_name": "Eva", "billing_address": {"city": "Oslo"}, "metadata": {"note": "x"}}
    put(admin, f"/customers/{customer['id']}", "customer", given)
    given = {"note": "Ring twice", "status": "completed", "metadata": {"a": 1}}
    put(admin, f"/orders/{order['id']}", "order", given)
    assert admin.delete(f"/customers/{customer['id']}", {"force": "true"}).status_code == 200
    changes = latest("order", order["id"])
    assert changes["after"]["note"] == ""
    assert changes["after"]["metadata"] == {}
    assert changes["after"]["status"] == "completed"
    query = {"filter[type]": "customer.updated", "fields": "changes", "filter[order]": "desc"}
    assert admin.get("/events", query).get_json()["events"][0]["changes"] == {
        side: {"first_name": "", "billing_address": {"city": ""}, "metadata": {}}
        for side in ("before", "after")
    }


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 1}, ({}, {})),
        ({"a": 1}, {"b": 1}, ({"a": 1}, {"b": 1})),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": None}}, ({"a": {"c": 2}}, {"a": {"c": None}})),
        ({"ids": [1]}, {"ids": []}, ({"ids": [1]}, {"ids": []})),
        ({"line_items": []}, {"line_items": [{"id": 1, "n": 2}]}, ({"line_items": []},
         {"line_items": [{"id": 1, "n": 2}]})),
        ({"metadata": {"a": 1}}, {"metadata": {"a": 1.0}}, ({"metadata": {"a": 1}},
         {"metadata": {"a": 1.0}})),
    ],
)  # fmt: skip
def test_difference(before, after, expected):
    assert difference(before, after) == expected
