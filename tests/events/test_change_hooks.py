"""Plugins are notified of changes of orders, before and after the commit (docs/plugins.md)."""

import logging
from pathlib import Path

import pytest
from sqlalchemy import insert, text
from sqlalchemy.exc import DBAPIError

from app.catalog import EXTENSION, ChangeHook, DuplicateNameError
from app.db import session as sessions
from app.db.session import call_after_commit, run_in_transaction
from app.errors import ShopError
from app.models import OrderNote
from app.services.api_keys.writes import OPERATOR
from app.services.customers.writes import delete_customer
from app.services.orders.writes import create_order
from tests.api_client import Client, at_the_same_time, failure, refusal, reply

pytestmark = pytest.mark.one_database

LINE = {"name": "Teapot", "price": "8.00"}


@pytest.fixture
def client(make_app, admin):
    """A client of an app whose hooks can be added to."""
    return Client(make_app(), admin.key)


@pytest.fixture
def hook(client):
    """Return a function: add a hook for orders to the app of the client."""

    def add(**functions):
        client.app.extensions[EXTENSION].add_change_hook(ChangeHook("order", **functions))

    return add


@pytest.fixture
def notified(hook):
    """The changes of each call after a commit, by event and ID."""
    calls = []
    hook(after_commit=lambda changes: calls.append([summary(change) for change in changes]))
    return calls


def summary(change):
    """What happened to which record, and from which status to which."""
    record = change.after or change.before
    before, after = (
        side and side["status"] for side in (change.before, change.after)
    )  # None where there is no record
    return change.event, record["id"], before, after


def created(client, **order):
    response = client.post("/orders", {"order": {"line_items": [LINE]} | order})
    assert response.status_code == 201, response.get_json()
    return response.get_json()["order"]


def test_each_write_notifies_once(client, notified):
    order_id = created(client)["id"]
    path = f"/orders/{order_id}"
    assert client.put(path, {"order": {"status": "processing"}}).status_code == 200
    assert client.put(path, {"order": {}}).status_code == 200
    assert client.delete(path).status_code == 200
    assert client.post(f"{path}/restore").status_code == 200
    assert client.delete(path, {"force": "true"}).status_code == 200
    assert notified == [
        [("order.created", order_id, None, "pending")],
        [("order.updated", order_id, "pending", "processing")],
        [("order.updated", order_id, "processing", "processing")],
        [("order.deleted", order_id, "processing", "trash")],
        [("order.restored", order_id, "trash", "processing")],
        [("order.deleted", order_id, "processing", None)],
    ]


def test_changes_name_the_user(client, hook):
    users = []
    hook(before_commit=lambda changes: users.extend(change.user_id for change in changes))
    created(client)
    assert users == [client.key.user_id]


def test_a_bulk_request_notifies_once_and_not_of_what_failed(client, notified):
    first = created(client)["id"]
    notified.clear()
    items = [
        {"id": first, "status": "on-hold"},
        {"id": 10**9, "status": "on-hold"},
        {"line_items": [LINE]},
        {"line_items": [{"name": "without an amount"}]},
        {"id": first, "status": "completed"},
    ]
    results = client.post("/orders/bulk", {"orders": items}).get_json()["orders"]
    assert ["error" in result for result in results] == [False, True, False, True, False]
    assert notified == [
        [
            ("order.updated", first, "pending", "on-hold"),
            ("order.created", results[2]["id"], None, "pending"),
            ("order.updated", first, "on-hold", "completed"),
        ]
    ]


def test_a_rejected_request_notifies_no_hook(client, notified):
    order_id = created(client)["id"]
    notified.clear()
    assert client.put(f"/orders/{order_id}", {"order": {"status": "none"}}).status_code == 400
    assert client.delete("/orders/1000000000").status_code == 404
    assert client.post("/coupons", {"coupon": {"code": "c"}}).status_code == 201
    assert notified == []


def test_a_replayed_request_notifies_once(client, notified):
    body, key = {"order": {"line_items": [LINE]}}, {"Idempotency-Key": "order-1"}
    first, second = (client.post("/orders", body, headers=key) for _ in range(2))
    assert reply(first) == reply(second)
    assert len(notified) == 1


def test_a_hook_writes_in_the_same_transaction(client, hook):
    def write(changes):
        notes = [
            {
                "order_id": change.after["id"],
                "created_at": change.after["updated_at"],
                "note": f"Seen: {change.event}",
                "customer_note": False,
            }
            for change in changes
        ]
        run_in_transaction(lambda session: session.execute(insert(OrderNote), notes))

    hook(before_commit=write)
    order_id = created(client)["id"]
    (note,) = client.get(f"/orders/{order_id}/notes").get_json()["order_notes"]
    assert note["note"] == "Seen: order.created"


def test_an_exception_after_the_commit_is_logged_and_changes_nothing(
    client, hook, notified, caplog
):
    def fail(changes):
        raise KeyError("colour")

    hook(after_commit=fail)
    with caplog.at_level(logging.ERROR, logger="app.services.events.hooks"):
        order_id = created(client)["id"]
    assert client.get(f"/orders/{order_id}").status_code == 200
    assert [record.message for record in caplog.records] == [
        "A plugin failed after the commit of 1 changes"
    ]
    assert notified == [[("order.created", order_id, None, "pending")]]


def test_an_exception_before_the_commit_changes_nothing(client, hook, notified):
    def fail(changes):
        raise KeyError("colour")

    hook(before_commit=fail)
    response = client.post("/orders", {"order": {}})
    assert reply(response) == refusal("shop_api_internal_error")
    assert client.get("/orders/count").get_json() == {"count": 0}
    assert notified == []


def test_a_retried_transaction_calls_back_once(app, monkeypatch):
    """The functions of an attempt that was rolled back are not called."""
    monkeypatch.setattr(sessions, "is_retryable", lambda error: True)
    attempts, called = [], []

    def work(session):
        attempts.append(len(attempts))
        number = attempts[-1]
        call_after_commit(session, lambda: called.append(number))
        if number < 2:
            session.execute(text("SELECT * FROM no_such_table"))

    with app.app_context():
        run_in_transaction(work)
        assert attempts == [0, 1, 2]
        assert called == [2]
        monkeypatch.setattr(sessions, "is_retryable", lambda error: False)
        attempts.clear()
        with pytest.raises(DBAPIError, match="no_such_table"):
            run_in_transaction(work)
        assert called == [2]


def test_hooks_are_not_notified_of_changes_that_another_hook_undid(client, hook, notified):
    """A hook writes an order for each coupon, and the next hook rejects one of the coupons."""
    catalog = client.app.extensions[EXTENSION]

    def write_orders(changes):
        for change in changes:
            create_order(OPERATOR, {"note": change.after["code"]})

    def reject(changes):
        if "bad" in [change.after["code"] for change in changes]:
            raise ShopError("shop_api_cannot_create_coupon", reason="rejected.")

    catalog.add_change_hook(ChangeHook("coupon", before_commit=write_orders))
    catalog.add_change_hook(ChangeHook("coupon", before_commit=reject))
    response = client.post("/coupons/bulk", {"coupons": [{"code": "good"}, {"code": "bad"}]})
    assert ["error" in result for result in response.get_json()["coupons"]] == [False, True]
    (order,) = client.get("/orders").get_json()["orders"]
    assert order["note"] == "good"
    assert notified == [[("order.created", order["id"], None, "pending")]]


def test_deleted_account_is_revoked_after_the_commit(client, make_customer):
    """A process that looks up the key before the commit would cache it again."""
    customer_id = make_customer()["id"]
    file = Path(client.app.instance_path) / "revocations"
    sizes = []

    def size():
        sizes.append(file.stat().st_size if file.exists() else 0)

    def work(session):
        delete_customer(OPERATOR, customer_id)
        size()

    with client.app.app_context():
        size()
        run_in_transaction(work)
        size()
    assert sizes[0] == sizes[1] < sizes[2]


def test_functions_after_the_commit_can_write(app):
    """They run outside of the transaction, in one of their own if they ask for one."""
    states = []

    def after():
        run_in_transaction(lambda session: states.append(session.in_transaction()))

    def work(session):
        inner = run_in_transaction(lambda same: call_after_commit(same, after) or same is session)
        states.append(inner)

    with app.app_context():
        run_in_transaction(work)
    assert states == [True, True]


@pytest.mark.slow
def test_concurrent_requests_are_notified_once_each(client, notified):
    order_id = created(client)["id"]
    notified.clear()
    bodies = [{"order": {"note": str(number)}} for number in range(8)]
    responses = at_the_same_time(lambda body: client.put(f"/orders/{order_id}", body), bodies)
    assert [response.status_code for response in responses] == [200] * 8
    assert notified == [[("order.updated", order_id, "pending", "pending")]] * 8


def test_the_plugin_rejects_and_is_notified(plugged):
    outbox = plugged.app.extensions["shop_loyalty"]
    order_id = created(plugged)["id"]
    path = f"/orders/{order_id}"
    pickup = {"order": {"status": "awaiting-pickup"}}
    assert reply(plugged.put(path, pickup)) == refusal(
        "shop_api_cannot_update_order", reason="its phone is missing."
    )
    assert plugged.get(path).get_json()["order"]["status"] == "pending"
    assert plugged.get(f"{path}/notes").get_json() == {"order_notes": []}
    pickup["order"]["billing_address"] = {"phone": "+44 20 7946 0000"}
    response = plugged.put(path, pickup)
    assert response.status_code == 200
    assert response.get_json()["order"]["loyalty"] == {"points": 8}
    assert [[summary(change) for change in changes] for changes in outbox] == [
        [("order.created", order_id, None, "pending")],
        [("order.updated", order_id, "pending", "awaiting-pickup")],
    ]
    (note,) = plugged.get(f"{path}/notes").get_json()["order_notes"]
    assert note["note"] == "Order status changed from Pending payment to Awaiting pickup."


def test_the_plugin_publishes_events(plugged):
    log = plugged.app.extensions["shop_loyalty_log"]
    customer = plugged.post("/customers", {"customer": {"email": "a@example.com"}}).get_json()
    customer_id = customer["customer"]["id"]
    headers = {"X-Request-Id": "order-1"}
    order = {"line_items": [LINE], "customer_id": customer_id, "status": "completed"}
    order = plugged.post("/orders", {"order": order}, headers=headers).get_json()["order"]
    assert plugged.post(f"/loyalty/grant/{customer_id}").get_json() == {"granted": 100}
    events = plugged.get("/events", {"filter[resource]": "loyalty_points"}).get_json()["events"]
    assert [
        (event["type"], event["resource_id"], event["data"], event["user_id"]) for event in events
    ] == [
        (
            "loyalty_points.earned", customer_id,
            {"loyalty_points": {"order_id": order["id"], "points": 8}}, plugged.key.user_id,
        ),
        (
            "loyalty_points.granted", customer_id,
            {"loyalty_points": {"points": 100}}, plugged.key.user_id,
        ),
    ]  # fmt: skip
    assert events[0]["request_id"] == "order-1"
    # One hook receives every event, except those that a hook publishes.
    assert [change.event for change in log] == [
        "customer.created", "order.created", "loyalty_points.granted"
    ]  # fmt: skip
    assert log[0].data == customer
    assert "password_hash" not in log[0].after
    assert log[1].data == {"order": order}
    assert log[2].data == {"loyalty_points": {"points": 100}}


def test_a_rejected_bulk_item_writes_no_event(plugged):
    items = [{"note": "first"}, {"status": "awaiting-pickup"}, {"note": "last"}]
    results = plugged.post("/orders/bulk", {"orders": items}).get_json()["orders"]
    events = plugged.get("/events", {"filter[resource]": "order"}).get_json()["events"]
    assert [event["resource_id"] for event in events] == [results[0]["id"], results[2]["id"]]


def test_a_hook_rejects_single_items_of_coupons_and_customers(client):
    def reject(changes):
        if any("bad" in str(change.data) for change in changes):
            raise ShopError("shop_api_cannot_create_coupon", reason="it is bad.")

    client.app.extensions[EXTENSION].add_change_hook(ChangeHook("*", before_commit=reject))
    for plural, key in (("coupons", "code"), ("customers", "username")):
        items = [
            {key: f"{word}-{plural}", "email": f"{word}@example.com"} for word in ("a", "bad", "c")
        ]
        results = client.post(f"/{plural}/bulk", {plural: items}).get_json()[plural]
        assert ["error" in result for result in results] == [False, True, False]
        (first, _, last) = results
        events = client.get("/events", {"filter[resource]": plural.removesuffix("s")}).get_json()
        assert [event["resource_id"] for event in events["events"]] == [first["id"], last["id"]]


def test_event_types(app):
    catalog = app.extensions[EXTENSION].__class__()
    with pytest.raises(DuplicateNameError, match=r"coupon\.created"):
        catalog.add_event_type("coupon.created", "Again.")
    for name in ("coupon", "Coupon.created", "coupon.", "a.b.c", "coupon.created "):
        with pytest.raises(ValueError, match="is not an event type"):
            catalog.add_event_type(name, "Wrong.")


def test_a_rejected_bulk_item_does_not_affect_the_others(plugged):
    outbox = plugged.app.extensions["shop_loyalty"]
    first, second = created(plugged)["id"], created(plugged)["id"]
    outbox.clear()
    items = [
        {"id": first, "note": "changed"},
        {"id": second, "status": "awaiting-pickup", "note": "changed"},
        {"note": "new", "download_permissions": [{"download_id": "file-1"}]},
    ]
    results = plugged.post("/orders/bulk", {"orders": items}).get_json()["orders"]
    code = "shop_api_cannot_update_order"
    assert results[1] == failure(code, second, reason="its phone is missing.")
    assert [results[position]["note"] for position in (0, 2)] == ["changed", "new"]
    assert plugged.get(f"/orders/{first}").get_json()["order"]["note"] == "changed"
    assert plugged.get(f"/orders/{second}").get_json()["order"]["note"] == ""
    assert plugged.get("/orders/count").get_json() == {"count": 3}
    assert [[summary(change) for change in changes] for changes in outbox] == [
        [("order.updated", first, "pending", "pending")],
        [("order.created", results[2]["id"], None, "pending")],
    ]
