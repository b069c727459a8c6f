"""Concurrent writes of orders: sums stay exact and no write is lost (orders 3 and 4)."""

import time
from contextlib import suppress
from decimal import Decimal
from random import Random
from threading import Barrier, BrokenBarrierError, Event

import pytest
from sqlalchemy import event

from app.catalog import current_catalog
from app.db.session import db
from app.plugin_api import ChangeHook, registry
from tests.api_client import Client, at_the_same_time
from tests.orders.calls import LINE, create, read

pytestmark = pytest.mark.both_databases

THREADS = 16
STEPS = 10
PAID = {"processing", "completed"}
STATUSES = ("pending", "processing", "completed", "cancelled", "refunded")


@pytest.mark.slow
def test_statistics_equal_the_sum_of_all_orders_after_concurrent_writes(admin, make_customer):
    """Creates, status changes, moves, item changes, trash, restores and deletes by 16 clients."""
    customers = [make_customer()["id"] for _ in range(3)]
    shared = [create(admin, customer_id=customers[0], line_items=[LINE])["id"] for _ in range(4)]

    def run(number):
        chance, client = Random(number), Client(admin.app, admin.key)
        mine = list(shared)
        seen = []
        for _ in range(STEPS):
            order_id = chance.choice(mine)
            path = f"/orders/{order_id}"
            match chance.randrange(8):
                case 0 | 1:
                    body = {
                        "customer_id": chance.choice(customers),
                        "status": chance.choice(STATUSES),
                        "line_items": [LINE | {"quantity": chance.randrange(1, 5)}],
                    }
                    response = client.post("/orders", {"order": body})
                    mine.append(response.get_json()["order"]["id"])
                case 2:
                    response = client.put(path, {"order": {"status": chance.choice(STATUSES)}})
                case 3:
                    moved = {"customer_id": chance.choice([0, *customers])}
                    response = client.put(path, {"order": moved})
                case 4:
                    response = client.put(path, {"order": {"line_items": [LINE]}})
                case 5:
                    response = client.delete(path)
                case 6:
                    response = client.post(f"{path}/restore")
                case _:
                    bulk = [{"customer_id": chance.choice(customers), "status": "completed"},
                            {"id": order_id, "line_items": [LINE]}]  # fmt: skip
                    response = client.post("/orders/bulk", {"orders": bulk})
            seen.append(response.status_code)
        return seen

    statuses = {status for seen in at_the_same_time(run, range(THREADS)) for status in seen}
    assert statuses <= {200, 201, 404}
    every = {"filter[limit]": "-1"}
    orders = admin.get("/orders", every).get_json()["orders"]
    in_trash = admin.get("/orders/trash", every).get_json()["orders"]
    assert {order["id"] for order in orders}.isdisjoint(order["id"] for order in in_trash)
    assert admin.get("/orders/count").get_json() == {"count": len(orders)}
    for status in STATUSES:
        counted = admin.get(f"/orders/count?filter[status]={status}").get_json()["count"]
        assert counted == sum(order["status"] == status for order in orders)
    for customer_id in customers:
        theirs = [order for order in orders if order["customer_id"] == customer_id]
        spent = sum(Decimal(order["total"]) for order in theirs if order["status"] in PAID)
        customer = admin.get(f"/customers/{customer_id}").get_json()["customer"]
        assert (customer["orders_count"], Decimal(customer["total_spent"])) == (len(theirs), spent)
        last = max((order["id"] for order in theirs), default=None)
        assert customer["last_order_id"] == last
    for order in orders:
        lines = [Decimal(line["total"]) for line in order["line_items"]]
        assert Decimal(order["total"]) == Decimal(order["subtotal"]) == sum(lines)


def test_concurrent_updates_of_one_order_lose_nothing(admin, make_customer):
    customer_id = make_customer()["id"]
    order = create(admin, line_items=[LINE])
    changes = [
        {"note": "n"},
        {"customer_ip": "192.0.2.7"},
        {"customer_user_agent": "agent"},
        {"currency": "eur"},
        {"customer_id": customer_id},
        {"status": "completed"},
        {"shipping_tax": "1.00"},
        {"billing_address": {"city": "Köln"}},
        {"billing_address": {"first_name": "Ada"}},
        {"payment_details": {"method_id": "bacs"}},
        {"line_items": [{"id": 1, "quantity": 2}]},
        *({"line_items": [LINE | {"name": f"Mug {number}"}]} for number in range(3)),
        {"fee_lines": [{"title": "Gift", "total": "1.00"}]},
        {"coupon_lines": [{"code": "tea", "amount": "1.00"}]},
    ]
    assert len(changes) == THREADS

    def send(change):
        client = Client(admin.app, admin.key)
        return client.put(f"/orders/{order['id']}", {"order": change}).status_code

    assert at_the_same_time(send, changes) == [200] * THREADS
    after = read(admin, order["id"])
    lists = ("line_items", "fee_lines", "coupon_lines")
    assert sorted(item["id"] for name in lists for item in after[name]) == [1, 2, 3, 4, 5, 6]
    assert sorted(line["name"] for line in after["line_items"]) == [
        "Mug",
        "Mug 0",
        "Mug 1",
        "Mug 2",
    ]
    assert {
        "note": after["note"],
        "customer_ip": after["customer_ip"],
        "customer_user_agent": after["customer_user_agent"],
        "currency": after["currency"],
        "customer_id": after["customer_id"],
        "status": after["status"],
        "city": after["billing_address"]["city"],
        "first_name": after["billing_address"]["first_name"],
        "method_id": after["payment_details"]["method_id"],
        "total": after["total"],
        "total_discount": after["total_discount"],
    } == {
        "note": "n",
        "customer_ip": "192.0.2.7",
        "customer_user_agent": "agent",
        "currency": "EUR",
        "customer_id": customer_id,
        "status": "completed",
        "city": "Köln",
        "first_name": "Ada",
        "method_id": "bacs",
        "total": "22.00",  # two and three mugs, a fee of 1.00, and shipping tax of 1.00
        "total_discount": "1.00",
    }
    assert after["customer"]["total_spent"] == "22.00"


# SQLite has one writer at a time.
@pytest.mark.sample(1)
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("kind", ["a customer", "guests", "an unlimited coupon"])
def test_creates_on_postgresql_do_not_wait_for_each_other(
    make_app, admin, make_customer, make_coupon, kind
):
    """Each transaction has written its order before any of them commits (orders 8)."""
    app = make_app(WEB_THREADS=THREADS)
    order = {"line_items": [LINE]}
    if kind == "a customer":
        order["customer_id"] = make_customer()["id"]
    if kind == "an unlimited coupon":
        order["coupon_lines"] = [{"code": make_coupon()["code"], "amount": "1"}]
    written = Barrier(THREADS, timeout=120)
    with app.app_context():
        registry().add_change_hook(ChangeHook("order", lambda _: written.wait()))
    responses = at_the_same_time(
        lambda _: Client(app, admin.key).post("/orders", {"order": order}), range(THREADS)
    )
    assert [response.status_code for response in responses] == [201] * THREADS


# SQLite has one writer at a time.
@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("written", ["INSERT INTO orders", "UPDATE orders"])
def test_orders_count_an_unlimited_coupon_after_their_own_writes(
    make_app, admin, make_coupon, written
):
    """Each transaction writes its order while the others use the same coupon (orders 8)."""
    coupon = make_coupon()
    line = {"code": coupon["code"], "amount": "1"}
    orders = [create(admin, line_items=[LINE], coupon_lines=[line]) for _ in range(THREADS)]
    app = make_app(WEB_THREADS=THREADS)
    all_wrote = Barrier(THREADS, timeout=120)

    def wait(connection, cursor, statement, *_):
        if statement.startswith(written):
            all_wrote.wait()

    with app.app_context():
        event.listen(db.engine, "after_cursor_execute", wait)

    def complete(order):
        client = Client(app, admin.key)
        if written == "UPDATE orders":
            return client.put(f"/orders/{order['id']}", {"order": {"status": "completed"}})
        new = {"status": "completed", "line_items": [LINE], "coupon_lines": [line]}
        return client.post("/orders", {"order": new})

    statuses = {response.status_code for response in at_the_same_time(complete, orders)}
    assert statuses <= {200, 201}
    used = admin.get(f"/coupons/{coupon['id']}").get_json()["coupon"]["usage_count"]
    assert used == THREADS


# SQLite has one writer at a time.
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_events_of_orders_are_ready_before_an_unlimited_coupon_is_counted(
    make_app, admin, make_coupon
):
    """What plugins add to an order does not extend the wait for its coupon (orders 8)."""
    coupon = make_coupon()
    app = make_app(WEB_THREADS=THREADS)
    all_describe = Barrier(THREADS, timeout=120)

    def describe(orders):
        all_describe.wait()
        return [{"order": {"id": order["id"]}} for order in orders]

    with app.app_context():
        current_catalog().event_data["order"] = describe
    line = {"code": coupon["code"], "amount": "1"}
    new = {"status": "completed", "line_items": [LINE], "coupon_lines": [line]}
    responses = at_the_same_time(
        lambda _: Client(app, admin.key).post("/orders", {"order": new}), range(THREADS)
    )
    assert [response.status_code for response in responses] == [201] * THREADS
    used = admin.get(f"/coupons/{coupon['id']}").get_json()["coupon"]["usage_count"]
    assert used == THREADS


# SQLite has one writer at a time.
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_order_with_several_coupons_does_not_deadlock_with_a_bulk_update(
    make_app, admin, make_coupon
):
    """The order names the coupons in descending order, and the update locks them in ascending order."""
    coupons = [make_coupon() for _ in range(2)]
    app = make_app(WEB_THREADS=2)
    holds_coupon = Event()
    rollbacks = []

    def let_the_update_wait(connection, cursor, statement, *_):
        if "FROM coupons" in statement and "KEY SHARE" in statement and not holds_coupon.is_set():
            holds_coupon.set()
            time.sleep(0.3)

    with app.app_context():
        event.listen(db.engine, "after_cursor_execute", let_the_update_wait)
        event.listen(db.engine, "rollback", rollbacks.append)

    def send(number):
        client = Client(app, admin.key)
        if number == 0:
            lines = [{"code": coupon["code"], "amount": "1"} for coupon in reversed(coupons)]
            return client.post("/orders", {"order": {"coupon_lines": lines}})
        holds_coupon.wait(60)
        items = [{"id": coupon["id"], "description": "new"} for coupon in coupons]
        return client.put("/coupons/bulk", {"coupons": items})

    assert [response.status_code for response in at_the_same_time(send, range(2))] == [201, 200]
    assert rollbacks == []


# SQLite has one writer at a time.
@pytest.mark.sample(1)
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize(
    "kind", ["new orders", "one order", "status changes", "one code", "deletes"]
)
def test_limited_coupons_in_different_orders_do_not_deadlock(make_app, admin, make_coupon, kind):
    """Each client has used its first coupon when it needs that of the other one."""
    coupons = [make_coupon(usage_limit=100) for _ in range(2)]
    lines = [{"code": coupon["code"], "amount": "1"} for coupon in coupons]
    orders = [
        create(admin, coupon_lines=given)["id"]
        for given in (lines, lines[::-1], lines[:1], lines[1:], lines[1:], lines[:1])
    ]
    if kind == "one code":  # of two coupons, since the first was renamed
        admin.put(f"/coupons/{coupons[0]['id']}", {"coupon": {"code": "renamed"}})
        make_coupon(code=coupons[0]["code"], usage_limit=100)
        orders[3:5] = [create(admin, coupon_lines=lines[:1])["id"] for _ in range(2)]
    app = make_app(WEB_THREADS=2)
    both_used_one = Barrier(2, timeout=1)
    updates = []

    def wait(connection, cursor, statement, *_):
        if statement.startswith("UPDATE coupons"):
            updates.append(statement)
            with suppress(BrokenBarrierError):  # one client waits for the coupons of the other
                both_used_one.wait()

    with app.app_context():
        event.listen(db.engine, "after_cursor_execute", wait)

    def send(number):
        client = Client(app, admin.key)
        mine = lines[::-1] if number else lines
        if kind == "one order":
            return client.post("/orders", {"order": {"coupon_lines": mine}})
        if kind == "deletes":
            return client.delete(f"/orders/{orders[number]}")
        if kind == "new orders":
            items = [{"coupon_lines": [line]} for line in mine]
        else:
            mine = orders[4:] if number else orders[2:4]
            items = [{"id": order_id, "status": "completed"} for order_id in mine]
        return client.post("/orders/bulk", {"orders": items})

    assert {response.status_code for response in at_the_same_time(send, range(2))} <= {200, 201}
    assert len(updates) == 4  # no transaction was repeated
