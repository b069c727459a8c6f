"""What remains of a customer after the deletion: orders and their notes (events 1)."""

import io
import subprocess
import threading
import time

import pytest
from sqlalchemy import select, text

from app.db.read_pool import fetch
from app.db.session import db
from app.models import IMPORT_PARTS, ORDER_NOTES, ORDER_REFUNDS, ORDERS, Redemption
from app.services.customers import erasure
from tests.api_client import Client, codes, reply
from tests.plugins.admin.browser_client import Browser
from tests.plugins.admin.test_data import work
from tests.redemptions.calls import move, post, rejected, reserve
from tests.selection import POOLED
from tests.webhooks.deliveries import in_state, make_webhook, receivers, shop
from tests.webhooks.receivers import PATIENCE, running_worker

__all__ = ["receivers", "shop"]  # fixtures

EMAIL = "Gwendolyn@Example.com"
ADDRESS = {"first_name": "Gwendolyn", "city": "Llandudno", "email": EMAIL}
WORDS = ("gwendolyn", "llandudno")


@pytest.fixture
def stored_words(app):
    """Return a function: the tables that contain a word of the customer."""

    def find():
        with app.app_context():
            return {
                table.name
                for table in db.metadata.sorted_tables
                for row in fetch(select(table))
                for value in row
                if any(
                    word
                    in (value.decode("latin-1") if isinstance(value, bytes) else str(value)).lower()
                    for word in WORDS
                )
            }

    return find


@pytest.fixture
def ann(make_customer):
    return make_customer(
        email=EMAIL, username="gwendolyn", first_name="Gwendolyn", billing_address=ADDRESS
    )


def forget(admin, customer):
    assert admin.delete(f"/customers/{customer['id']}").status_code == 200


def once(key):
    return {"Idempotency-Key": key}


@pytest.mark.both_databases
def test_only_orders_and_notes_remain(admin, ann, make_coupon, make_order, stored_words):
    make_coupon(code="summer")
    order = make_order(
        customer_id=ann["id"], billing_address=ADDRESS, coupon_lines=[{"code": "summer"}]
    )
    admin.post(f"/orders/{order['id']}/notes", {"order_note": {"note": "Gwendolyn called."}})
    # It becomes a guest order, and changes again.
    for change in ({"customer_id": 0}, {"status": "completed"}, {"note": "For Gwendolyn"}):
        assert admin.put(f"/orders/{order['id']}", {"order": change}).status_code == 200
    admin.post(f"/orders/{order['id']}/notes", {"order_note": {"note": "Gwendolyn again."}})
    guest = make_order(billing_address=ADDRESS | {"email": EMAIL.upper()})
    admin.put(f"/orders/{guest['id']}", {"order": {"status": "completed"}})
    reserve(admin, reference="a", customer_id=ann["id"], email=EMAIL)
    reserve(admin, reference="b", email=EMAIL.lower())
    assert {"events", "redemptions", "users", "orders"} <= stored_words()
    forget(admin, ann)
    assert stored_words() == {ORDERS.name, ORDER_NOTES.name}
    assert admin.get("/redemptions", {"filter[email]": EMAIL}).get_json() == {"redemptions": []}
    shown = admin.get("/redemptions").get_json()["redemptions"]
    assert [(each["email"], each["customer_id"]) for each in shown] == [("", 0)] * 3


@pytest.mark.both_databases
def test_idempotency_records_are_blanked(admin, make_coupon, make_customer, stored_words):
    make_coupon(code="summer")
    customer = {"email": EMAIL, "username": "gwendolyn", "billing_address": ADDRESS}
    other = {"email": "bob@example.com", "first_name": "Bob"}
    bulk = {"customers": [customer, other]}
    created = admin.post("/customers/bulk", bulk, headers=once("1"))
    ann, bob = created.get_json()["customers"]
    requests = [
        ("/orders", {"order": {"customer_id": ann["id"], "billing_address": ADDRESS}}),
        ("/orders", {"order": {"billing_address": ADDRESS}}),
        ("/redemptions", {"redemption": {"code": "summer", "reference": "a", "email": EMAIL}}),
        ("/keys", {"key": {"username": "gwendolyn"}}),
    ]
    for key, (path, body) in enumerate(requests, start=2):
        assert admin.post(path, body, headers=once(str(key))).status_code == 201
    forget(admin, ann)
    assert "idempotency_records" not in stored_words()
    # Retries still change nothing.
    replayed = admin.post("/customers/bulk", bulk, headers=once("1"))
    assert replayed.headers["Idempotent-Replayed"] == "true"
    assert replayed.get_json()["customers"][1] == bob
    assert replayed.get_json()["customers"][0]["id"] == ann["id"]
    for key, (path, body) in enumerate(requests, start=2):
        response = admin.post(path, body, headers=once(str(key)))
        assert (response.status_code, response.headers["Idempotent-Replayed"]) == (201, "true")
        for word in WORDS:
            assert word not in response.get_data(as_text=True).lower()
    assert codes(admin.get(f"/customers/{ann['id']}")) == (404, "shop_api_invalid_customer")


def test_stored_responses_with_notes_are_blanked(admin, ann, make_order, stored_words):
    orders = [make_order(customer_id=ann["id"]), make_order(billing_address=ADDRESS)]
    body = {"order_note": {"note": "Call Gwendolyn"}}
    paths = [f"/orders/{order['id']}/notes" for order in orders] * 2
    notes = [
        admin.post(path, body, headers=once(str(key))).get_json()["order_note"]
        for key, path in enumerate(paths)
    ]
    # Also the note of the customer that was deleted before.
    assert admin.delete(f"{paths[2]}/{notes[2]['id']}?force=true").status_code == 200
    forget(admin, ann)
    assert stored_words() == {ORDERS.name, ORDER_NOTES.name}
    for key, (path, note) in enumerate(zip(paths, notes, strict=True)):
        response = admin.post(path, body, headers=once(str(key)))
        assert reply(response) == (201, {"order_note": note | {"note": ""}})


def test_refunds_are_blanked_in_events_and_stored_responses(admin, ann, make_order, stored_words):
    order = make_order(customer_id=ann["id"], transaction_id="gwendolyn-1")
    guest = make_order(billing_address=ADDRESS)
    path, paths = f"/orders/{order['id']}/refunds", []
    body = {"order_refund": {"amount": "1.00", "reason": "Gwendolyn moved to Llandudno."}}
    for each in (order, guest):
        paths.append(f"/orders/{each['id']}/refunds")
        assert admin.post(paths[-1], body, headers=once(paths[-1])).status_code == 201
    first = admin.get(path).get_json()["order_refunds"][0]["id"]
    admin.delete(f"{path}/{first}")
    assert {"events", "idempotency_records", "order_refunds"} <= stored_words()
    forget(admin, ann)
    assert stored_words() == {ORDERS.name, ORDER_REFUNDS.name}  # as the notes of orders
    query = {"filter[type]": "order_refund.created"}
    events = admin.get("/events", query).get_json()["events"]
    shown = [event["data"]["order_refund"] for event in events]
    assert [(each["reason"], each["refunded_by"]) for each in shown] == [("", None)] * 2
    for path in paths:
        again = admin.post(path, body, headers=once(path)).get_json()["order_refund"]
        assert (again["reason"], again["refunded_by"]) == ("", None)


def test_an_invited_user_is_forgotten(app, admin, stored_words):
    browser = Browser(app, admin.key)
    page = browser.submit("/invitations/new", "login", login="gwendolyn", role="shop_manager")
    guest = Browser(app)
    assert (
        guest.post("/sign-in", {"token": page.html.split("?token=")[1].split("<")[0]}).status == 200
    )
    assert {"events", "users"} <= stored_words()
    (user,) = admin.get("/customers", {"filter[role]": "shop_manager"}).get_json()["customers"]
    forget(admin, user)
    assert stored_words() == set()


def test_an_uploaded_file_is_deleted_with_the_customer(app, admin, ann, stored_words):
    browser = Browser(app, admin.key)
    for line in (f"{EMAIL},Gwendolyn", "bob@example.com,Bob"):
        form = {"kind": "customers", "on_conflict": "update"}
        form["file"] = (io.BytesIO(f"email,first_name\n{line}\n".encode()), "a.csv")
        uploaded = browser.post("/data/upload", form, content_type="multipart/form-data")
        assert uploaded.status == 303
    assert _held(app) == 2
    forget(admin, ann)
    assert stored_words() == set()
    assert _held(app) == 1
    work(app)
    path = uploaded.location.partition("/admin")[2]
    assert browser.post(f"{path}/start").status == 303
    work(app)
    assert admin.get("/customers/email/bob@example.com").status_code == 200


def _held(app):
    """Return the number of files that are stored."""
    with app.app_context():
        return len(fetch(select(IMPORT_PARTS)))


@pytest.mark.both_databases
@pytest.mark.parametrize("given", [EMAIL, ""], ids=["address", "account"])
def test_the_limit_per_customer_still_counts(admin, ann, make_coupon, make_customer, given):
    make_coupon(code="summer", usage_limit_per_user=1)
    redemption = reserve(admin, customer_id=ann["id"], email=given)
    move(admin, redemption, "confirm")
    forget(admin, ann)
    again = {"reference": "b", "email": EMAIL.lower()}
    assert rejected(post(admin, **again)) == ["usage_limit_per_user"]
    new = make_customer(email=EMAIL)["id"]
    assert rejected(post(admin, reference="c", customer_id=new)) == ["usage_limit_per_user"]
    cart = {"coupons": ["summer"], "email": EMAIL, "items": []}
    (shown,) = admin.post("/coupons/evaluate", {"cart": cart}).get_json()["evaluation"]["coupons"]
    assert [reason["code"] for reason in shown["reasons"]] == ["usage_limit_per_user"]
    assert post(admin, reference="d", email="bob@example.com").status_code == 201
    move(admin, redemption, "release")
    assert post(admin, **again).status_code == 201


def test_an_expired_reservation_of_a_deleted_customer_counts_when_it_is_confirmed(
    admin, ann, make_coupon, expire
):
    make_coupon(code="summer", usage_limit_per_user=1)
    redemption = reserve(admin, customer_id=ann["id"], email=EMAIL)
    expire(redemption)
    second = reserve(admin, reference="b", email=EMAIL)
    forget(admin, ann)
    response = admin.post(f"/redemptions/{redemption['id']}/confirm")
    assert rejected(response) == ["usage_limit_per_user"]
    move(admin, second, "release")
    assert move(admin, redemption, "confirm")["email"] == ""


def test_an_order_of_a_deleted_customer_keeps_the_hash(app, admin, ann, make_coupon, make_order):
    make_coupon(code="summer", usage_limit_per_user=1)
    lines = [{"code": "summer"}]
    order = make_order(customer_id=ann["id"], billing_address=ADDRESS, coupon_lines=lines)
    forget(admin, ann)
    for status in ("processing", "cancelled", "pending", "completed"):
        response = admin.put(f"/orders/{order['id']}", {"order": {"status": status}})
        assert response.status_code == 200
        with app.app_context():
            ((email, stored),) = fetch(select(Redemption.email, Redemption.email_normalized))
        assert (email, stored[:7]) == ("", "erased:")
    assert rejected(post(admin, email=EMAIL)) == ["usage_limit_per_user"]


@pytest.mark.both_databases
def test_an_order_of_a_deleted_customer_takes_its_use_again_within_the_limit(
    admin, ann, make_coupon, make_order
):
    make_coupon(code="summer", usage_limit_per_user=1)
    lines = [{"code": "summer"}]
    order = make_order(customer_id=ann["id"], status="pending", coupon_lines=lines)
    assert admin.delete(f"/orders/{order['id']}").status_code == 200
    other = reserve(admin, email=EMAIL)
    forget(admin, ann)
    restore = f"/orders/{order['id']}/restore"
    (error,) = admin.post(restore).get_json()["errors"]
    assert [reason["code"] for reason in error["reasons"]] == ["usage_limit_per_user"]
    move(admin, other, "release")
    assert admin.post(restore).status_code == 200


def test_a_use_keeps_the_hash_if_its_next_customer_is_deleted_too(
    admin, ann, make_coupon, make_customer, make_order
):
    """The order has no address, so its use counts for both customers."""
    make_coupon(code="summer", usage_limit_per_user=1)
    lines = [{"code": "summer"}]
    order = make_order(customer_id=ann["id"], status="pending", coupon_lines=lines)
    forget(admin, ann)
    bob = make_customer(email="bob@example.com")
    path = f"/orders/{order['id']}"
    assert admin.put(path, {"order": {"customer_id": bob["id"]}}).status_code == 200
    assert rejected(post(admin, reference="b", email=EMAIL)) == ["usage_limit_per_user"]
    forget(admin, bob)
    assert rejected(post(admin, reference="c", email=EMAIL)) == ["usage_limit_per_user"]


# SQLite has one writer at a time.
@pytest.mark.both_databases
@pytest.mark.parametrize("database_url", ["postgresql", POOLED], indirect=True)
def test_a_guest_order_takes_its_use_again_during_the_deletion(
    app, admin, ann, make_coupon, make_order, monkeypatch
):
    """It must not write the address back that it has read before the deletion."""
    make_coupon(code="summer")
    lines = [{"code": "summer"}]
    order = make_order(status="pending", billing_address=ADDRESS, coupon_lines=lines)
    path, body = f"/orders/{order['id']}", {"order": {"status": "processing"}}
    assert admin.put(path, {"order": {"status": "cancelled"}}).status_code == 200
    update = threading.Thread(target=lambda: Client(app, admin.key).put(path, body))
    finish = erasure.erase_responses

    def finish_late(session, *persons):
        if update.ident is None:
            update.start()
        waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        while update.is_alive() and not session.scalar(waiting):
            time.sleep(0.01)
        finish(session, *persons)

    monkeypatch.setattr(erasure, "erase_responses", finish_late)
    forget(admin, ann)
    update.join()
    with app.app_context():
        ((email, stored, status),) = fetch(
            select(Redemption.email, Redemption.email_normalized, Redemption.status)
        )
    assert (email, stored[:7], status) == ("", "erased:", "confirmed")


def test_others_keep_their_data(admin, ann, make_coupon, make_customer):
    """Another account has the billing address of the deleted customer as its own."""
    make_coupon(code="summer")
    billing = {"billing_address": {"email": "office@example.com"}}
    admin.put(f"/customers/{ann['id']}", {"customer": billing})
    make_customer(email="office@example.com")
    bob = make_customer(email="bob@example.com")["id"]
    reserve(admin, reference="a", email="office@example.com")
    reserve(admin, reference="b", customer_id=bob, email=EMAIL)
    before = admin.get("/redemptions").get_json()
    forget(admin, ann)
    assert admin.get("/redemptions").get_json() == before


def test_responses_of_receivers_are_blanked(shop, receivers):
    """A receiver repeats what it was sent, also during the deletion."""
    during = threading.Event(), threading.Event()

    def respond(request):
        if b"Llandudno" in request.body:
            during[0].set()
            assert during[1].wait(PATIENCE)
        return 200, {"X-Echo": "gwendolyn"}, request.body

    webhook = make_webhook(shop, receivers(respond))
    body = {"customer": {"email": EMAIL, "first_name": "Gwendolyn"}}
    with running_worker(shop.app):
        ann = shop.post("/customers", body).get_json()["customer"]
        (delivery,) = in_state(shop, webhook, "delivered")
        assert "Gwendolyn" in delivery["response_body"]
        shop.put(f"/customers/{ann['id']}", {"customer": {"billing_address": ADDRESS}})
        assert during[0].wait(PATIENCE)
        forget(shop, ann)
        during[1].set()
        found = in_state(shop, webhook, "delivered", 3)
    assert [each["response_body"] for each in found[:2]] == ["", ""]
    assert all(word not in str(found).lower() for word in WORDS[:1])
    with shop.app.app_context():
        rows = fetch(text("SELECT response_headers FROM webhook_deliveries ORDER BY id"))
    assert [str(row[0]) for row in rows[:2]] == ["{}", "{}"]


@pytest.mark.one_database
def test_sqlite_overwrites_deleted_data(app, admin, ann):
    def content():
        with app.app_context():
            assert fetch(text("PRAGMA wal_checkpoint(TRUNCATE)"))[0][0] == 0
            # In another process: to close the file in this one would release the locks of its
            # connections, so that the next process that ends removes the journal that they use.
            done = subprocess.run(["cat", db.engine.url.database], capture_output=True, check=True)
            return done.stdout.lower()

    assert b"llandudno" in content()
    forget(admin, ann)
    assert b"llandudno" not in content()
    assert b"gwendolyn@" not in content()


def _owner(customer_id):
    return {"customer_id": customer_id}


def _address(_):
    return {"billing_address": {"last_name": "Other"}}


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "writes",
    [[lambda other: _owner(other) | _address(other)], [_owner, _address]],
    ids=["one write", "two writes"],
)
def test_changes_of_an_order_that_was_given_to_another_customer(admin, writes):
    ids = []
    for name in ("alicia", "bob"):
        customer = {"email": f"{name}@example.org", "username": name, "password": "long enough 1"}
        ids.append(admin.post("/customers", {"customer": customer}).get_json()["customer"]["id"])
    lines = {"line_items": [{"name": "Teapot", "price": "8.00"}]}
    order = lines | {"customer_id": ids[0], "billing_address": {"last_name": "Zebedee"}}
    order_id = admin.post("/orders", {"order": order}).get_json()["order"]["id"]
    for given in writes:
        admin.put(f"/orders/{order_id}", {"order": given(ids[1])})
    assert "Zebedee" in admin.get("/events", {"fields": "changes"}).text
    assert admin.delete(f"/customers/{ids[0]}").status_code == 200
    assert "Zebedee" not in admin.get("/events", {"fields": "changes,data"}).text
