"""A customer with more orders than a transaction clears: the worker clears the rest (people 5)."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import create_engine, func, select, update

from app.db.read_pool import fetch
from app.db.session import db, run_statement
from app.models import ERASED_ACCOUNTS, ERASURES, ORDERS, REDEMPTIONS, USERS
from app.services.customers import traces
from app.services.customers.traces import clear_next_batch, number_left
from app.services.maintenance.figures import measure
from app.worker.loop import DeliveryWorker
from tests.customers.test_erasure import ADDRESS, EMAIL, stored_words
from tests.redemptions.calls import move, post, rejected, reserve

__all__ = ["stored_words"]  # a fixture

pytestmark = pytest.mark.both_databases


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(traces, "BATCH", 2)


@pytest.fixture
def gwen(admin, make_customer, make_coupon, make_order):
    """A customer with five orders with a use each, whose account is deleted."""
    gwen = make_customer(
        email=EMAIL, username="gwendolyn", first_name="Gwendolyn", billing_address=ADDRESS
    )
    make_coupon(code="summer", usage_limit_per_user=6)
    orders = [
        make_order(
            customer_id=gwen["id"],
            billing_address=ADDRESS,
            note=f"For Gwendolyn {number}",
            coupon_lines=[{"code": "summer"}],
        )
        for number in range(5)
    ]
    key = {"Idempotency-Key": "again"}
    path, body = f"/orders/{orders[4]['id']}/notes", {"order_note": {"note": "Gwendolyn"}}
    assert admin.post(path, body, headers=key).status_code == 201
    assert admin.delete(f"/customers/{gwen['id']}").status_code == 200
    return gwen | {"orders": orders, "retry": (path, body, key)}


def shown(response):
    assert response.status_code == 200, response.text
    return response.get_json()


def clear_all(app):
    with app.app_context():
        batches = 0
        while clear_next_batch():
            batches += 1
            assert batches < 100
        return batches


def left(app):
    with app.app_context():
        return number_left()


def test_the_worker_clears_the_rest_in_batches(app, admin, gwen, stored_words):
    assert left(app)["erasures"] == 1
    assert left(app)["orders"] == 5
    assert clear_all(app) >= 5
    assert set(left(app).values()) == {0}
    assert stored_words() <= {"orders", "order_notes"}
    for order in gwen["orders"]:
        assert admin.get(f"/orders/{order['id']}").get_json()["order"]["customer_id"] == 0
    with app.app_context():
        assert fetch(select(func.count()).select_from(ERASED_ACCOUNTS))[0][0] == 0
        emails = {row[0][:7] for row in fetch(select(REDEMPTIONS.c.email_normalized))}
        assert emails == {"erased:"}


def test_nothing_shows_the_account_meanwhile(app, admin, gwen):
    customer_id = gwen["id"]
    assert admin.get(f"/customers/{customer_id}").status_code == 404
    assert shown(admin.get(f"/orders?filter[customer_id]={customer_id}"))["orders"] == []
    orders = shown(admin.get("/orders"))["orders"]
    assert {order["customer_id"] for order in orders} == {0}
    uses = shown(admin.get("/redemptions"))["redemptions"]
    assert {(use["customer_id"], use["email"]) for use in uses} == {(0, "")}
    assert shown(admin.get(f"/redemptions?filter[email]={EMAIL}"))["redemptions"] == []
    feed = admin.get("/events?fields=id,type,data,changes&filter[limit]=100").text.lower()
    assert "order.created" in feed
    assert "gwendolyn" not in feed
    assert "llandudno" not in feed
    paid = {"order": {"status": "completed"}}
    assert admin.put(f"/orders/{gwen['orders'][4]['id']}", paid).status_code == 200
    rows = shown(admin.get("/reports/customers"))["customer_reports"]
    assert [row["customer"]["id"] for row in rows] == [0]
    first = shown(admin.get("/events?filter[type]=order.created"))["events"][0]["id"]
    assert "gwendolyn" not in admin.get(f"/events/{first}").text.lower()
    path, body, key = gwen["retry"]
    again = admin.post(path, body, headers=key)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert "gwendolyn" not in again.text.lower()
    person = admin.get(f"/persons/erasure?order_id={gwen['orders'][4]['id']}")
    assert shown(person)["erasure"]["customer_id"] is None
    assert shown(person)["erasure"]["erased"]["orders"] == 5


def test_campaigns_are_locked_before_the_refused_carts(
    app, admin, make_customer, make_coupon, statements
):
    """Every transaction locks them in this order, so that none waits for another that waits for it."""
    campaign = admin.post("/campaigns", {"campaign": {"name": "Spring", "usage_limit": 5}})
    make_coupon(code="spring", campaign_id=campaign.get_json()["campaign"]["id"])
    gwen = make_customer(email=EMAIL)["id"]
    reserve(admin, "spring", "cart", customer_id=gwen)
    statements.clear()
    assert admin.delete(f"/customers/{gwen}").status_code == 200
    read = [number for number, each in enumerate(statements) if "FROM campaigns" in each]
    (written,) = (number for number, each in enumerate(statements) if "INTO refused_carts" in each)
    assert max(read) < written


def test_limits_count_meanwhile(app, admin, gwen):
    assert reserve(admin, reference="a", email=EMAIL)["id"]
    assert rejected(post(admin, reference="b", email=EMAIL)) == ["usage_limit_per_user"]
    clear_all(app)
    assert rejected(post(admin, reference="c", email=EMAIL)) == ["usage_limit_per_user"]


@pytest.fixture
def uses_without_address(app, admin, make_customer, make_coupon, expire):
    """Uses of two coupons by a deleted account that only its ID counts. The first has expired."""
    gwen = make_customer(email=EMAIL, username="gwendolyn")
    limits = {"usage_limit_per_user": 5}
    campaign = admin.post("/campaigns", {"campaign": {"name": "Spring", **limits}}).get_json()
    make_coupon(code="summer", **limits)
    make_coupon(code="spring", campaign_id=campaign["campaign"]["id"])
    uses = {"summer": [], "spring": []}
    for code, of_code in uses.items():
        for number in range(6):
            use = reserve(admin, code, f"{code}-{number}", customer_id=gwen["id"])
            of_code.append(use)
            if not number:
                expire(use)
    assert admin.delete(f"/customers/{gwen['id']}").status_code == 200
    assert left(app)["redemptions"] == 10
    return uses


@pytest.mark.parametrize("code", ["summer", "spring"])
def test_limits_count_uses_without_address_meanwhile(app, admin, uses_without_address, code):
    """At any time while the worker clears two of them after the other."""
    limit = "usage_limit_per_user"
    cart = {"coupons": [code], "items": [{"product_id": 1, "price": "5"}], "email": EMAIL}
    expired, live, *_ = uses_without_address[code]

    def reasons(**given):
        found = shown(admin.post("/coupons/evaluate", {"cart": cart | given}))
        return [each["code"] for each in found["evaluation"]["coupons"][0]["reasons"]]

    is_pending = True
    while is_pending:
        assert reasons() == [limit]
        assert reasons(email="ann@example.com") == []
        assert rejected(post(admin, code, "a", email=EMAIL)) == [limit]
        again = admin.post(f"/redemptions/{expired['id']}/confirm")
        assert rejected(again) == [limit]
        with app.app_context():
            is_pending = clear_next_batch()
    assert left(app)["redemptions"] == 0
    move(admin, live, "release")
    assert reasons() == []
    assert move(admin, expired, "confirm")["customer_id"] == 0
    assert reasons() == [limit]


def test_an_order_takes_its_use_again_meanwhile(app, admin, make_customer, make_coupon, make_order):
    """Its use counts for the address of the account, and keeps only its hash."""
    gwen = make_customer(email=EMAIL)
    make_coupon(code="summer", usage_limit_per_user=3)
    order = {"customer_id": gwen["id"], "coupon_lines": [{"code": "summer"}]}
    address = {"billing_address": {"email": "gwendolyn@other.example"}}
    orders = [make_order(**order, **more) for more in ({}, {}, address)]
    path = f"/orders/{orders[2]['id']}"
    assert admin.put(path, {"order": {"status": "cancelled"}}).status_code == 200
    late = make_order(**order)
    assert admin.delete(f"/customers/{gwen['id']}").status_code == 200
    assert left(app)["redemptions"] == 2
    for status in ("processing", "cancelled", "completed"):
        assert admin.put(path, {"order": {"status": status}}).status_code == 200
    path = f"/orders/{late['id']}"
    assert admin.put(path, {"order": {"status": "cancelled"}}).status_code == 200
    assert reserve(admin, reference="a", email=EMAIL)["id"]
    assert admin.put(path, {"order": {"status": "processing"}}).status_code == 200
    clear_all(app)
    with app.app_context():
        rows = fetch(select(REDEMPTIONS.c.email, REDEMPTIONS.c.email_normalized))
    assert [(email, key[:7]) for email, key in rows] == [("", "erased:")] * 5
    assert len({key for _, key in rows}) == 2


def test_orders_change_meanwhile(app, admin, gwen):
    """An order of the account is one of a guest at once."""
    path = f"/orders/{gwen['orders'][4]['id']}"
    changed = admin.put(path, {"order": {"status": "completed", "note": "For Gwendolyn"}})
    assert shown(changed)["order"]["customer_id"] == 0
    clear_all(app)
    assert set(left(app).values()) == {0}
    assert shown(admin.get(path))["order"]["status"] == "completed"


def test_a_new_account_with_the_address_is_another_one(app, admin, gwen, make_customer):
    again = make_customer(email=EMAIL, username="gwendolyn")
    assert again["id"] > gwen["id"]
    clear_all(app)
    assert shown(admin.get(f"/customers/{again['id']}"))["customer"]["orders_count"] == 0


def test_the_place_is_stored_without_the_address(app, gwen):
    with app.app_context():
        (row,) = fetch(select(ERASURES))
    assert row.erased == 2
    assert "gwendolyn" not in row.traces_encrypted.lower()


def test_doctor_and_metrics_say_what_is_left(app, gwen):
    printed = app.test_cli_runner().invoke(args=["doctor"]).output
    assert "warn   erasures: 1 not complete, with 5 orders, 3 redemptions, " in printed
    with app.app_context():
        figures = {each.name: each.values for each in measure()}
    assert figures["shop_erased_left"]["orders"] == 5
    clear_all(app)
    assert "erasures" not in app.test_cli_runner().invoke(args=["doctor"]).output


def test_a_slow_batch_ends_after_a_part(app, gwen, monkeypatch):
    """All writers of SQLite wait for its transaction."""
    monkeypatch.setattr(traces, "PART", 1)
    monkeypatch.setattr(traces, "BATCH", 200)
    monkeypatch.setattr(traces, "MOST_SECONDS", 0)
    numbers = [left(app)["redemptions"]]
    with app.app_context():
        while numbers[-1]:
            assert clear_next_batch()
            numbers.append(number_left()["redemptions"])
    assert numbers == [3, 2, 1, 0]
    clear_all(app)
    assert set(left(app).values()) == {0}


@pytest.mark.parametrize("others_write", [False, True])
def test_writes_of_others_delay_the_next_batch(app, gwen, database_url, others_write):
    """Of their transactions in SQLite, most waited for one of the worker before."""
    worker = DeliveryWorker(app)
    with app.app_context():
        other = create_engine(db.engine.url)

    async def sweep():
        with ThreadPoolExecutor(1) as worker._database:
            worker._loop, worker._wake = asyncio.get_running_loop(), asyncio.Event()
            worker._erased_at = 0
            await worker._sweep()
            worker._wake.clear()
            if others_write:
                with other.begin() as connection:
                    connection.execute(update(USERS).values(first_name="Ada"))
            await worker._sweep()
            return worker._wake.is_set()

    try:
        is_next = asyncio.run(sweep())
    finally:
        other.dispose()
    # On PostgreSQL, writes do not wait for each other.
    assert is_next == (not others_write or "sqlite" not in database_url)


def test_a_small_account_leaves_nothing_to_the_worker(app, admin, make_customer):
    ann = make_customer(email="ann@example.com")
    assert admin.delete(f"/customers/{ann['id']}").status_code == 200
    assert left(app)["erasures"] == 0


def test_statements_by_hand_unlink_orders_as_before(app, admin, make_customer, make_order):
    """As the previous version deletes an account, which knows no erasures."""
    ann = make_customer(email="ann@example.com")
    order = make_order(customer_id=ann["id"])
    with app.app_context():
        run_statement(USERS.delete().where(USERS.c.id == ann["id"]))
        assert fetch(select(ORDERS.c.customer_id).where(ORDERS.c.id == order["id"])) == [(None,)]


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_orders_are_locked_in_the_order_of_their_index(
    admin, make_customer, make_order, statements
):
    """By ID, PostgreSQL reads the orders of others before: 1.5 s for 300,000 of them."""
    ann = make_customer(email="ann@example.com")
    make_order(customer_id=ann["id"])
    statements.clear()
    assert admin.delete(f"/customers/{ann['id']}").status_code == 200
    locked = [each for each in statements if "FROM orders" in each and "FOR UPDATE" in each]
    assert locked
    by_id = re.compile(r"orders\.customer_id (=|IN) \S+ +ORDER BY orders\.id\b")
    assert [each for each in locked if by_id.search(" ".join(each.split()))] == []
