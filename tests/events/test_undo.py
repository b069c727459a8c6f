"""Undo of one write: preview, reasons and the new write (people 2)."""

import json

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st


@pytest.fixture
def last_event(admin):
    """Return a function: the newest event of a record."""

    def read(resource, resource_id):
        query = {
            "fields": "id,type,changes",
            "filter[resource]": resource,
            "filter[resource_id]": resource_id,
            "filter[order]": "desc",
            "filter[limit]": 1,
        }
        (event,) = admin.get("/events", query).get_json()["events"]
        return event

    return read


@pytest.fixture
def coupon(admin):
    data = {"code": "spring", "amount": "5.00", "metadata": {"erp": {"a": 1}}}
    return admin.post("/coupons", {"coupon": data}).get_json()["coupon"]


def put(client, path, key, data):
    response = client.put(path, {key: data})
    assert response.status_code == 200, response.get_json()
    return response.get_json()[key]


def preview(client, event):
    response = client.get(f"/events/{event['id']}/undo")
    assert response.status_code == 200, response.get_json()
    return response.get_json()["undo"]


def undo(client, event, status=200, **headers):
    response = client.post(f"/events/{event['id']}/undo", headers=headers)
    assert response.status_code == status, response.get_json()
    return response.get_json()


def reason_of(client, event):
    """The reason why an event cannot be undone, which the preview and the undo agree on."""
    shown = preview(client, event)
    (error,) = undo(client, event, 409)["errors"]
    assert error["code"] == "shop_api_cannot_undo_event"
    assert (shown["possible"], shown["reasons"]) == (False, error["reasons"])
    (reason,) = error["reasons"]
    return reason["code"], reason["message"]


def body_of(client, path, names=""):
    query = {"filter[meta]": "true"} | ({"fields": names} if names else {})
    (body,) = client.get(path, query).get_json().values()
    return {name: value for name, value in body.items() if name not in {"updated_at", "customer"}}


def test_an_update_of_a_coupon(admin, coupon, last_event):
    path = f"/coupons/{coupon['id']}"
    given = {
        "amount": "7",
        "expiry_date": "2031-01-31",
        "usage_limit": 3,
        "starts_at": "2030-01-01T00:00:00Z",
        "active": False,
        "maximum_discount": "9",
        "metadata": {"erp": None, "new": [1]},
    }
    before = body_of(admin, path)
    put(admin, path, "coupon", given)
    event = last_event("coupon", coupon["id"])
    put(admin, path, "coupon", {"description": "later"})  # stays
    shown = preview(admin, event)
    assert shown == {
        "event_id": event["id"],
        "resource": "coupon",
        "resource_id": coupon["id"],
        "possible": True,
        "reasons": [],
        "changes": {"before": event["changes"]["after"], "after": event["changes"]["before"]},
    }
    undone = undo(admin, event)["coupon"]
    assert undone["amount"] == "5.00"
    assert body_of(admin, path) == before | {"description": "later"}
    own = last_event("coupon", coupon["id"])
    assert own["changes"] == {
        "before": event["changes"]["after"],
        "after": event["changes"]["before"],
        "undo_of": event["id"],
    }
    assert reason_of(admin, event)[0] == "changed_since"  # a second undo
    undo(admin, own)
    assert body_of(admin, path, "amount,usage_limit,active,metadata") == {
        "amount": "7.00",
        "usage_limit": 3,
        "active": False,
        "metadata": {"new": [1]},
    }


def test_it_is_idempotent(admin, coupon, last_event):
    put(admin, f"/coupons/{coupon['id']}", "coupon", {"amount": "7"})
    event = last_event("coupon", coupon["id"])
    first, second = (undo(admin, event, **{"Idempotency-Key": "undo-1"}) for _ in range(2))
    assert first == second
    assert last_event("coupon", coupon["id"])["changes"]["undo_of"] == event["id"]


def test_changed_since_names_fields_and_no_values(admin, coupon, last_event):
    path = f"/coupons/{coupon['id']}"
    put(admin, path, "coupon", {"amount": "7", "metadata": {"erp": 2}})
    event = last_event("coupon", coupon["id"])
    put(admin, path, "coupon", {"amount": "8", "metadata": {"erp": 3}})
    code, message = reason_of(admin, event)
    assert code == "changed_since"
    assert message == "These fields have changed since: amount, metadata.erp."
    put(admin, path, "coupon", {"amount": "7", "metadata": {"erp": 2}})  # changed back
    undo(admin, event)


@pytest.mark.both_databases
def test_a_customer(admin, make_customer, last_event):
    customer = make_customer(first_name="Ada", billing_address={"city": "Rome"})
    path = f"/customers/{customer['id']}"
    before = body_of(admin, path, "first_name,email,billing_address,tags,metadata")
    given = {"first_name": "", "email": "b@example.com", "tags": ["vip"]}
    put(admin, path, "customer", given | {"billing_address": {"city": ""}, "metadata": {"n": 1}})
    undo(admin, last_event("customer", customer["id"]))
    assert body_of(admin, path, "first_name,email,billing_address,tags,metadata") == before
    put(admin, path, "customer", {"email": "c@example.com"})
    event = last_event("customer", customer["id"])
    make_customer(email=customer["email"])  # another account takes the address
    assert reason_of(admin, event) == ("changed_since", "These fields have changed since: email.")
    put(admin, path, "customer", {"password": "a new password", "first_name": "Eva"})
    assert reason_of(admin, last_event("customer", customer["id"]))[0] == "secret"
    assert admin.delete(path).status_code == 200
    assert reason_of(admin, event)[0] == "not_found"


def test_an_order(admin, make_order, last_event):
    order = make_order(status="processing", billing_address={"city": "Rome"}, note="Ring")
    path = f"/orders/{order['id']}"
    before = body_of(admin, path)
    put(
        admin, path, "order", {"status": "on-hold", "note": "", "billing_address": {"city": "Oslo"}}
    )
    undo(admin, last_event("order", order["id"]))
    assert body_of(admin, path) == before
    put(admin, path, "order", {"status": "completed"})
    undo(admin, last_event("order", order["id"]))
    after = body_of(admin, path)
    assert (after["status"], bool(after["completed_at"])) == ("processing", True)
    notes = admin.get(f"{path}/notes").get_json()["order_notes"]
    assert "from Completed to Processing" in notes[-1]["note"]
    item = {"id": order["line_items"][0]["id"], "quantity": 2}
    for data in ({"line_items": [item]}, {"shipping_tax": "1"}, {"status": "refunded"}):
        put(admin, path, "order", data)
        assert reason_of(admin, last_event("order", order["id"]))[0] == "items"


def test_refunds_notes_and_campaigns(admin, make_order, last_event):
    path = f"/orders/{make_order()['id']}"
    for key, name, data, change in (
        ("order_refund", "refunds", {"amount": "3", "reason": "Late"}, {"reason": ""}),
        ("order_note", "notes", {"note": "Call"}, {"note": "Called"}),
        ("campaign", "", {"name": "Spring", "budget": "5"}, {"name": "Fall", "budget": ""}),
    ):
        collection = f"{path}/{name}" if name else "/campaigns"
        record = admin.post(collection, {key: data}).get_json()[key]
        put(admin, f"{collection}/{record['id']}", key, change)
        event = last_event(key, record["id"])
        assert undo(admin, event)[key] | {"updated_at": 0} == record | {"updated_at": 0}
        assert last_event(key, record["id"])["changes"]["undo_of"] == event["id"]


@pytest.mark.parametrize("resource", ["coupon", "order"])
def test_the_trash(admin, coupon, make_order, last_event, resource):
    record = coupon if resource == "coupon" else make_order(status="processing")
    path = f"/{resource}s/{record['id']}"
    put(admin, path, resource, {"metadata": {"a": 1}})
    updated = last_event(resource, record["id"])
    assert admin.delete(path).status_code == 200
    moved = last_event(resource, record["id"])
    assert reason_of(admin, updated)[0] == "not_found"
    assert undo(admin, moved)[resource]["id"] == record["id"]
    restored = last_event(resource, record["id"])
    assert restored["type"] == f"{resource}.restored"
    assert restored["changes"] == {"before": {}, "after": {}, "undo_of": moved["id"]}
    assert reason_of(admin, moved)[0] == "changed_since"
    assert undo(admin, restored) == {"message": f"Deleted {resource}"}
    assert reason_of(admin, restored)[0] == "changed_since"
    assert admin.delete(path, {"force": "true"}).status_code in {200, 404}
    admin.post(f"{path}/restore")
    admin.delete(path, {"force": "true"})
    assert reason_of(admin, last_event(resource, record["id"]))[0] == "not_undoable"
    assert reason_of(admin, moved)[0] == "not_found"


def test_events_without_changes(admin, coupon, last_event):
    assert reason_of(admin, last_event("coupon", coupon["id"]))[0] == "not_undoable"  # created
    put(admin, f"/coupons/{coupon['id']}", "coupon", {"amount": "5.00"})
    assert reason_of(admin, last_event("coupon", coupon["id"]))[0] == "no_changes"
    assert admin.get("/events/1000000000/undo").status_code == 404


def test_changes_that_an_erasure_has_emptied(admin, last_event):
    customer = admin.post("/customers", {"customer": {"email": "ada@example.com"}}).get_json()
    order = {"customer_id": customer["customer"]["id"], "metadata": {"k": 1}}
    order = admin.post("/orders", {"order": order}).get_json()["order"]
    put(admin, f"/orders/{order['id']}", "order", {"metadata": {"k": 2}})
    assert admin.delete(f"/customers/{customer['customer']['id']}").status_code == 200
    emptied = last_event("order", order["id"])
    assert emptied["changes"] == {"before": {"metadata": {}}, "after": {"metadata": {}}}
    assert reason_of(admin, emptied)[0] == "no_changes"


def test_a_taken_code_is_the_error_of_the_update(admin, coupon, last_event):
    put(admin, f"/coupons/{coupon['id']}", "coupon", {"code": "summer"})
    admin.post("/coupons", {"coupon": {"code": "spring"}})
    response = undo(admin, last_event("coupon", coupon["id"]), 400)
    assert response["errors"][0]["code"] == "shop_api_coupon_code_already_exists"


def test_rights(admin, coupon, last_event, client_for, limited):
    put(admin, f"/coupons/{coupon['id']}", "coupon", {"amount": "7"})
    event = last_event("coupon", coupon["id"])
    url = f"/events/{event['id']}/undo"
    reader = client_for("shop_manager", permission="read")
    assert reader.get(url).status_code == 200
    assert reader.post(url).status_code == 401
    narrow = limited("narrow", resources=frozenset({"events"}))
    assert (narrow.get(url).status_code, narrow.post(url).status_code) == (401, 401)
    assert client_for("customer").get(url).status_code == 401
    wide = limited("wide", resources=frozenset({"events", "coupons"}))
    assert wide.post(url).status_code == 200


def test_wc_writes_are_undone_with_the_phone_of_the_shipping_address(
    admin, make_customer, last_event
):
    customer = make_customer()
    url = f"/wp-json/wc/v3/customers/{customer['id']}"
    for phone in ("1", "2"):
        response = admin.request(
            "PUT", url, json={"shipping": {"phone": phone, "city": f"City {phone}"}}
        )
        assert response.status_code == 200, response.get_json()
    event = last_event("customer", customer["id"])
    assert event["changes"]["before"] == {
        "shipping_address": {"city": "City 1"},
        "shipping_phone": "1",
    }
    undo(admin, event)
    shipping = admin.request("GET", url).get_json()["shipping"]
    assert (shipping["phone"], shipping["city"]) == ("1", "City 1")


TEXT = st.text("abcÄß <&>\u2028'\"", max_size=8)
UPDATES = {
    "coupon": st.fixed_dictionaries(
        {},
        optional={
            "code": st.sampled_from(["a", "b", "A&B", "ü-1"]),
            "type": st.sampled_from(["percent", "fixed_cart", "buy_x_get_y"]),
            "amount": st.sampled_from(["0", "5.5", 99, "1e1"]),
            "usage_limit": st.integers(0, 3),
            "product_ids": st.lists(st.integers(1, 9), max_size=3),
            "expiry_date": st.sampled_from(["", "2031-01-31", "2030-12-01T10:00:00Z"]),
            "minimum_amount": st.sampled_from(["", "0", "12.345"]),
            "customer_emails": st.lists(
                st.sampled_from(["a@b.example", "*@c.example"]), max_size=2
            ),
            "description": TEXT,
            "active": st.booleans(),
            "starts_at": st.sampled_from(["", "2030-01-01T10:00:00Z"]),
            "tags": st.lists(st.sampled_from(["vip", "new"]), max_size=2),
            "maximum_discount": st.sampled_from(["", "3", "4.50"]),
            "buy_quantity": st.integers(0, 3),
            "metadata": st.dictionaries(
                st.sampled_from("xyz"),
                st.none() | st.booleans() | st.integers(0, 1) | TEXT | st.just({"k": [1, None]}),
            ),
        },
    ),
    "customer": st.fixed_dictionaries(
        {},
        optional={
            "email": st.sampled_from(["", "a@b.example", "Ü@b.example", "wrong"]),
            "first_name": TEXT,
            "last_name": TEXT,
            "billing_address": st.dictionaries(st.sampled_from(["city", "email", "phone"]), TEXT),
            "shipping_address": st.dictionaries(st.sampled_from(["city", "state"]), TEXT),
            "tags": st.lists(st.sampled_from(["vip", "new"]), max_size=2),
            "metadata": st.dictionaries(st.sampled_from("xyz"), st.none() | TEXT),
        },
    ),
    "order": st.fixed_dictionaries(
        {},
        optional={
            "status": st.sampled_from(["pending", "on-hold", "cancelled", "failed"]),
            "note": TEXT,
            "customer_ip": st.sampled_from(["", "10.0.0.1"]),
            "transaction_id": TEXT,
            "billing_address": st.dictionaries(st.sampled_from(["city", "email", "phone"]), TEXT),
            "payment_details": st.dictionaries(
                st.sampled_from(["method_id", "method_title"]), TEXT
            ),
            "prices_include_tax": st.booleans(),
            "metadata": st.dictionaries(st.sampled_from("xyz"), st.none() | TEXT),
        },
    ),
}
NAMES = {
    "coupon": "code,type,amount,usage_limit,product_ids,expiry_date,minimum_amount,customer_emails,"
    "description,active,starts_at,tags,maximum_discount,buy_quantity,metadata,status",
    "customer": "email,first_name,last_name,billing_address,shipping_address,tags,metadata",
    "order": "",
}


def undo_all(admin, make_customer, last_event, resource, updates):
    """Apply updates to a record and undo them, newest first: each body returns exactly."""
    if resource == "customer":
        record = make_customer()
    else:
        data = {"code": "first"} if resource == "coupon" else {}
        record = admin.post(f"/{resource}s", {resource: data}).get_json()[resource]
    path = f"/{resource}s/{record['id']}"
    bodies, events = [], []
    for data in updates:
        body = body_of(admin, path, NAMES[resource])
        put(admin, path, resource, data)
        event = last_event(resource, record["id"])
        if event["changes"]:
            bodies.append(json.dumps(body, sort_keys=True))
            events.append(event)
        after = body_of(admin, path, NAMES[resource])
        laid_over = laid(after, (event["changes"] or {"before": {}})["before"])
        assert json.dumps(laid_over, sort_keys=True) == json.dumps(body, sort_keys=True)
    for event, body in zip(reversed(events), reversed(bodies), strict=True):
        undo(admin, event)
        assert json.dumps(body_of(admin, path, NAMES[resource]), sort_keys=True) == body
    if resource == "coupon":
        admin.delete(path, {"force": "true"})
    elif resource == "customer":
        admin.delete(path)
    return len(events)


def laid(body, before):
    """The body with the values before a write: an absent key of metadata is null."""
    result = dict(body)
    for name, value in before.items():
        if name == "metadata":
            merged = body[name] | value
            result[name] = {key: each for key, each in merged.items() if each is not None}
        else:
            result[name] = body[name] | value if isinstance(value, dict) else value
    return result


@pytest.mark.parametrize("resource", ["coupon", "customer", "order"])
@pytest.mark.parametrize(
    ("database_url", "examples"),
    [
        ("sqlite", 3),
        pytest.param("sqlite", 20, marks=pytest.mark.slow),
        pytest.param("postgresql", 3, marks=pytest.mark.slow),
    ],
    indirect=["database_url"],
)
def test_undos_restore_exact_bodies(admin, make_customer, last_event, resource, examples):
    numbers = []

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(UPDATES[resource], min_size=3, max_size=9))
    def restored(updates):
        numbers.append(undo_all(admin, make_customer, last_event, resource, updates))

    restored()
    assert sum(numbers) >= 2 * examples
