"""The events that changes write, and their data (events 1)."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from app.catalog import EXTENSION, ChangeHook
from app.db import session as sessions
from app.db.read_pool import fetch
from app.db.session import run_in_transaction
from app.services.events.bulk import summarized
from app.services.events.hooks import publish_events
from app.services.events.outbox import NewEvent, record
from tests.api_client import Client, reply
from tests.commands import succeed
from tests.events.feed import LINE, types
from tests.webhooks.receivers import PATIENCE


def test_a_coupon_from_creation_to_deletion(admin, feed):
    headers = {"X-Request-Id": "create-1"}
    coupon = admin.post("/coupons", {"coupon": {"code": "c"}}, headers=headers).get_json()["coupon"]
    path = f"/coupons/{coupon['id']}"
    changed = admin.put(path, {"coupon": {"amount": "5"}}).get_json()["coupon"]
    assert admin.put(path, {"coupon": {}}).status_code == 200
    assert admin.delete(path).status_code == 200
    restored = admin.post(f"{path}/restore").get_json()["coupon"]
    assert admin.delete(path, {"force": "true"}).status_code == 200
    events = feed()
    assert types(events) == [
        (f"coupon.{what}", coupon["id"])
        for what in ("created", "updated", "updated", "deleted", "restored", "deleted")
    ]
    assert [event["data"] for event in events] == [
        {"coupon": coupon},
        {"coupon": changed},
        {"coupon": changed},
        {"coupon": {"id": coupon["id"]}, "permanent": False},
        {"coupon": restored},
        {"coupon": {"id": coupon["id"]}, "permanent": True},
    ]
    assert {event["resource"] for event in events} == {"coupon"}
    assert events[0]["request_id"] == "create-1"
    assert {event["user_id"] for event in events} == {admin.key.user_id}


def test_a_customer_from_creation_to_update(admin, feed, make_order):
    given = {"email": "ada@example.com", "first_name": "Ada", "password": "a secret password"}
    customer = admin.post("/customers", {"customer": given}).get_json()["customer"]
    order = make_order(customer_id=customer["id"], status="completed")
    path = f"/customers/{customer['id']}"
    changed = admin.put(path, {"customer": {"last_name": "L", "password": "other"}}).get_json()
    events = feed()
    # The statistics that the order changed are no event of the customer.
    assert types(events) == [
        ("customer.created", customer["id"]),
        ("order.created", order["id"]),
        ("customer.updated", customer["id"]),
    ]
    assert events[0]["data"] == {"customer": customer}
    assert events[1]["data"] == {"order": order}
    assert events[1]["data"]["order"]["customer"]["total_spent"] == "8.00"
    assert events[2]["data"] == changed
    assert events[2]["data"]["customer"]["orders_count"] == 1
    assert "secret" not in str(events)
    assert "argon2" not in str(events)


@pytest.mark.both_databases
def test_an_order_from_creation_to_deletion(admin, feed, make_order):
    order = make_order()
    path = f"/orders/{order['id']}"
    changed = admin.put(path, {"order": {"status": "processing"}}).get_json()
    (automatic,) = admin.get(f"{path}/notes").get_json()["order_notes"]
    note = admin.post(f"{path}/notes", {"order_note": {"note": "Packed."}}).get_json()["order_note"]
    assert admin.delete(path).status_code == 200
    restored = admin.post(f"{path}/restore").get_json()
    assert admin.delete(path, {"force": "true"}).status_code == 200
    events = feed()
    assert types(events) == [
        ("order.created", order["id"]),
        ("order.updated", order["id"]),
        ("order_note.created", automatic["id"]),
        ("order_note.created", note["id"]),
        ("order.deleted", order["id"]),
        ("order.restored", order["id"]),
        ("order.deleted", order["id"]),
    ]
    assert [event["data"] for event in events] == [
        {"order": order},
        changed,
        {"order_note": automatic, "order_id": order["id"]},
        {"order_note": note, "order_id": order["id"]},
        {"order": {"id": order["id"]}, "permanent": False},
        restored,
        {"order": {"id": order["id"]}, "permanent": True},
    ]


def test_a_bulk_request(admin, feed, make_coupon):
    coupon_id = make_coupon()["id"]
    feed()
    items = [
        {"id": coupon_id, "amount": "1"},
        {"id": 10**9, "amount": "1"},
        {"code": "new"},
        {"code": ""},
        {"id": coupon_id, "amount": "2"},
    ]
    results = admin.post("/coupons/bulk", {"coupons": items}).get_json()["coupons"]
    assert ["error" in result for result in results] == [False, True, False, True, False]
    events = feed()
    assert types(events) == [
        ("coupon.updated", coupon_id),
        ("coupon.created", results[2]["id"]),
        ("coupon.updated", coupon_id),
    ]
    assert [event["data"]["coupon"] for event in events] == [results[n] for n in (0, 2, 4)]


BULKS = {
    "coupons": lambda number: {"code": f"bulk-{number}"},
    "customers": lambda number: {"email": f"bulk-{number}@example.com"},
    "orders": lambda number: {"line_items": [LINE]},
}


@pytest.mark.parametrize("plural", BULKS)
def test_the_events_of_a_bulk_request_are_one_statement(admin, feed, statements, plural):
    items = [BULKS[plural](number) for number in range(100)]
    statements.clear()
    results = admin.post(f"/{plural}/bulk", {plural: items}).get_json()[plural]
    of_events = "INSERT INTO events", "COPY events"
    assert len([each for each in statements if each.startswith(of_events)]) == 1
    singular = plural.removesuffix("s")
    assert types(feed()) == [(f"{singular}.created", result["id"]) for result in results]


def test_the_legacy_api_writes_native_events(admin, feed, make_order, make_customer):
    customer = make_customer(billing_address={"first_name": "Ada", "city": "London"})
    feed()
    coupon = admin.post("/wc-api/v3/coupons", {"coupon": {"code": "old"}}).get_json()["coupon"]
    order = admin.post(
        "/wc-api/v3/orders",
        {"order": {"customer_id": customer["id"], "line_items": [{"name": "T", "total": "8"}]}},
    ).get_json()["order"]
    changed = admin.put(
        f"/wc-api/v2/customers/{customer['id']}", {"customer": {"first_name": "Ada"}}
    ).get_json()["customer"]
    native = [
        admin.get(f"/{plural}/{record['id']}").get_json()
        for plural, record in (("coupons", coupon), ("orders", order), ("customers", changed))
    ]
    events = feed()
    assert [event["type"] for event in events] == [
        "coupon.created", "order.created", "customer.updated"
    ]  # fmt: skip
    # The time of the order's customer is that of the order, when it had another name.
    for event in [*events, {"data": native[1]}]:
        event["data"].get("order", {}).get("customer", {}).pop("first_name", None)
        event["data"].get("order", {}).get("customer", {}).pop("updated_at", None)
    assert [event["data"] for event in events] == native


def test_a_rejected_request_writes_nothing(admin, feed, make_coupon):
    make_coupon(code="taken")
    feed()
    assert admin.post("/coupons", {"coupon": {"code": "taken"}}).status_code == 400
    assert admin.put("/coupons/1000000000", {"coupon": {}}).status_code == 404
    assert admin.delete("/orders/1000000000").status_code == 404
    assert feed() == []


def test_a_replayed_request_writes_one_event(admin, feed):
    key = {"Idempotency-Key": "coupon-1"}
    first, second = (admin.post("/coupons", {"coupon": {"code": "c"}}, headers=key) for _ in "12")
    assert reply(first) == reply(second)
    assert [event["type"] for event in feed()] == ["coupon.created"]


@pytest.mark.both_databases
def test_a_retried_transaction_writes_the_events_of_its_last_attempt(app, feed, monkeypatch):
    monkeypatch.setattr(sessions, "is_retryable", lambda error: True)
    attempts = []

    def work(session):
        attempts.append(1)
        record(session, None, [NewEvent("coupon.updated", len(attempts), {})])
        if len(attempts) < 3:
            session.execute(text("SELECT * FROM no_such_table"))

    with app.app_context():
        run_in_transaction(work)
    assert types(feed()) == [("coupon.updated", 3)]


@pytest.mark.both_databases
def test_emptying_the_trash(admin, feed, make_coupon, make_order):
    coupon_ids = [make_coupon()["id"] for _ in range(3)]
    order_id = make_order()["id"]
    for path in (*(f"/coupons/{id_}" for id_ in coupon_ids), f"/orders/{order_id}"):
        assert admin.delete(path).status_code == 200
    feed()
    assert admin.delete("/coupons/trash", {"older_than_days": 0}).get_json() == {"deleted": 3}
    assert admin.delete("/orders/trash", {"older_than_days": 0}).get_json() == {"deleted": 1}
    events = feed()
    assert types(events) == [
        *(("coupon.deleted", coupon_id) for coupon_id in coupon_ids),
        ("order.deleted", order_id),
    ]
    assert all(event["data"]["permanent"] for event in events)


def test_a_batch_of_coupons(admin, feed):
    body = {"generate": {"count": 3, "prefix": "batch-", "coupon": {"amount": "5"}}}
    batch = admin.post("/coupons/generate", body).get_json()["batch"]
    (event,) = feed()
    assert types([event]) == [("coupon_batch.created", batch["id"])]
    assert event["data"]["coupon_batch"]["count"] == 3
    coupons = admin.get("/coupons", {"filter[batch]": batch["id"]}).get_json()["coupons"]
    assert admin.delete(f"/coupons/batches/{batch['id']}").get_json() == {"trashed": 3}
    events = feed()
    assert types(events) == [
        ("coupon.deleted", coupon_id) for coupon_id in sorted(each["id"] for each in coupons)
    ]
    assert {event["data"]["permanent"] for event in events} == {False}


def test_changes_that_a_summary_reports(app, admin, feed):
    """Commands that import records write one event, and notify hooks as usual."""
    hooked = []
    hook = ChangeHook("coupon", before_commit=hooked.extend)
    app.extensions[EXTENSION].add_change_hook(hook)
    try:
        with summarized():
            data = admin.post("/coupons", {"coupon": {"code": "c"}}).get_json()
    finally:
        app.extensions[EXTENSION].change_hooks.remove(hook)
    assert [change.data for change in hooked] == [data]
    assert feed() == []
    assert admin.post("/coupons", {"coupon": {"code": "d"}}).status_code == 201
    assert [event["type"] for event in feed()] == ["coupon.created"]


def test_changes_that_nothing_reports_are_not_read_again(app, admin, feed, monkeypatch):
    monkeypatch.delitem(app.extensions[EXTENSION].event_data, "order")
    with summarized():
        created = admin.post("/orders", {"order": {"line_items": [LINE], "status": "completed"}})
    assert (created.status_code, feed()) == (201, [])


# --- erasure ---


@pytest.mark.both_databases
def test_deleting_a_customer_blanks_the_events(app, admin, feed, make_order, make_customer):
    address = {"first_name": "Gwendolyn", "city": "Llandudno", "email": "gwendolyn@example.com"}
    ada = make_customer(
        email="gwendolyn@example.com", first_name="Gwendolyn", billing_address=address
    )
    bob = make_customer(email="bob@example.com", first_name="Bob")
    admin.put(f"/customers/{ada['id']}", {"customer": {"last_name": "Lovelace"}})
    order = make_order(
        customer_id=ada["id"], billing_address=address, note="Ring at Gwendolyn's door."
    )
    admin.post(f"/orders/{order['id']}/notes", {"order_note": {"note": "Gwendolyn called."}})
    other = make_order(customer_id=bob["id"])
    admin.put(f"/orders/{order['id']}", {"order": {"note": "Gwendolyn again"}})
    before = feed()
    assert admin.delete(f"/customers/{ada['id']}").status_code == 200
    after = admin.get("/events", {"filter[after]": before[0]["id"] - 1, "filter[limit]": 100})
    events = after.get_json()["events"]
    assert types(events) == [*types(before), ("customer.deleted", ada["id"])]
    assert events[-1]["data"] == {"customer": {"id": ada["id"]}, "permanent": True}
    for word in ("gwendolyn", "Gwendolyn", "Llandudno", "Lovelace"):
        assert word not in str(events)
    blanked = events[0]["data"]["customer"]
    assert blanked.keys() == ada.keys()
    assert {key: blanked[key] for key in ("id", "created_at", "role", "total_spent")} == {
        key: ada[key] for key in ("id", "created_at", "role", "total_spent")
    }
    of_order = next(event for event in events if event["type"] == "order.created")["data"]["order"]
    assert of_order["total"] == order["total"]
    assert of_order["customer"]["id"] == ada["id"]
    # The events of others stay as they were.
    bobs = [event for event in before if "bob@example.com" in str(event)]
    assert [event["resource_id"] for event in bobs] == [bob["id"], other["id"]]
    assert [event for event in events if event in bobs] == bobs


@pytest.mark.both_databases
def test_deleting_a_customer_with_many_events(app, admin, make_customer):
    customer_id = make_customer()["id"]
    data = {"customer": {"id": customer_id, "email": "x@example.com"}}
    new = [NewEvent("customer.updated", customer_id, data, customer_id) for _ in range(1200)]
    with app.app_context():
        run_in_transaction(lambda session: record(session, None, new))
        assert admin.delete(f"/customers/{customer_id}").status_code == 200
        assert not fetch(text("SELECT 1 FROM events WHERE data LIKE '%@example.com%'"))


@pytest.mark.sample(1)
@pytest.mark.both_databases
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("path", ["/orders/{}/notes", "/orders/{}"])
def test_deleting_a_customer_while_a_note_is_written(
    admin, make_app, make_customer, make_order, path
):
    """The deletion waits for the event, which is not committed, and then blanks it."""
    is_written, may_commit = threading.Event(), threading.Event()

    def wait(_):
        is_written.set()
        assert may_commit.wait(PATIENCE)

    slow_app = make_app()
    slow_app.extensions[EXTENSION].add_change_hook(ChangeHook("order_note", before_commit=wait))
    customer_id = make_customer()["id"]
    path = path.format(make_order(customer_id=customer_id)["id"])
    with ThreadPoolExecutor() as pool:
        slow = Client(slow_app, admin.key)
        if path.endswith("notes"):
            note = pool.submit(slow.post, path, {"order_note": {"note": "Gwendolyn called."}})
        else:
            note = pool.submit(slow.put, path, {"order": {"status": "completed"}})
        assert is_written.wait(PATIENCE)
        deletion = pool.submit(Client(admin.app, admin.key).delete, f"/customers/{customer_id}")
        time.sleep(0.5)
        was_waiting = not deletion.done()
        may_commit.set()
        assert note.result().status_code in {200, 201}
        assert deletion.result().status_code == 200
    assert was_waiting
    (event,) = admin.get("/events", {"filter[resource]": "order_note"}).get_json()["events"]
    assert event["data"]["order_note"]["note"] == ""


def test_a_plugin_publishes_an_event_of_a_deleted_customer(app, admin, feed, make_customer):
    ids = [make_customer()["id"], make_customer()["id"]]
    admin.delete(f"/customers/{ids[0]}")
    feed()
    new = [
        NewEvent("customer.updated", id_, {"customer": {"id": id_, "email": "a@example.com"}}, id_)
        for id_ in ids
    ]
    with app.app_context():
        run_in_transaction(lambda session: publish_events(session, None, new))
    assert [event["data"]["customer"]["email"] for event in feed()] == ["", "a@example.com"]


# --- commands ---


def test_keys_create_reports_a_new_user(app, feed):
    runner = app.test_cli_runner()
    command = ["keys", "create", "--login", "erp", "--role", "shop_manager"]
    for _ in range(2):
        assert runner.invoke(args=command).exit_code == 0
    events = feed()
    assert [(event["type"], event["user_id"], event["request_id"]) for event in events] == [
        ("customer.created", None, None),
        *[("key.created", None, None)] * 2,
    ]
    customer = events[0]["data"]["customer"]
    assert (customer["username"], customer["role"]) == ("erp", "shop_manager")


def test_demo_writes_one_summary(app, feed):
    args = ["demo", "--customers", "3", "--coupons", "2", "--orders", "4", "--add"]
    succeed(app, *args)
    (event,) = feed()
    assert event["type"] == "import.completed"
    assert event["data"] == {
        "import": {
            "id": event["resource_id"], "source": "demo", "customers": 3, "coupons": 2, "orders": 4
        }
    }  # fmt: skip
