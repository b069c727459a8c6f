"""Two hundred erased persons, and merges and erasures whose workers are killed (people 8)."""

import http.client
import random
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psutil
import pytest
from sqlalchemy import make_url

from app.db.erased_rows import remove_copies
from app.db.session import db
from app.services.customers.traces import clear_next_batch
from app.services.maintenance import cleanup
from qa.cluster.writers import Caller
from tests.commands import succeed
from tests.persons.test_erasure import Person, stored, sums
from tests.persons.test_merge import merge
from tests.server.service import Service

PERSONS = {"sqlite": 200, "postgresql": 40}
MARK = "zqmark"
KINDS = ("account", "guest", "merged", "claimed")

PAIRS = 24
CLIENTS = 4
KILLS = 8
GONE = {
    (400, "shop_api_invalid_customer_id"), (404, "shop_api_invalid_customer"),
    (404, "shop_api_invalid_person"),
}  # fmt: skip
"""What a repetition answers if the request before it was committed."""


def person_of(admin, number):
    """Store a person of a kind, and return what names it to the erasure."""
    mark, kind = f"{MARK}{number}x", KINDS[number % len(KINDS)]
    person = Person(admin, mark, has_account=kind in {"account", "merged"})
    if kind == "merged":
        older = Person(admin, f"{mark}old", has_account=True)
        assert merge(admin, person.customer_id, older.customer_id).status_code == 200
        return {"email": older.email}
    if kind == "claimed":
        body = {"customer": {"email": person.email, "first_name": mark}}
        customer_id = admin.post("/customers", body).get_json()["customer"]["id"]
        claimed = admin.post(f"/customers/{customer_id}/claim", {"claim": {}})
        assert claimed.get_json() == {"claim": {"orders": 1, "complete": True}}
        return {"order_id": person.order_id}
    return person.names


@pytest.mark.slow
@pytest.mark.both_databases
def test_erased_persons_are_nowhere(app, admin, make_coupon, database_url, tmp_path):
    number_of_persons = PERSONS[make_url(database_url).get_backend_name()]
    make_coupon(code="summer", amount="1.00", type="fixed_cart")
    remaining = Person(admin, "remains", has_account=True)
    persons = [person_of(admin, number) for number in range(number_of_persons)]
    emails = [f"{MARK}{number}x@example.com" for number in range(0, number_of_persons, 5)]
    coupon = {"code": "private", "customer_emails": [*emails, remaining.email]}
    admin.post("/coupons", {"coupon": coupon}, headers={"Idempotency-Key": "private"})
    file = f"email\n{MARK}0x@example.com\n"
    sent = admin.request(
        "POST", "/imports?kind=customers&on_conflict=skip", data=file, content_type="text/csv"
    )
    assert sent.status_code == 201
    reports = sums(admin)
    for names in persons:
        shown = admin.post("/persons/erase", {"person": names}).get_json()["erasure"]
        assert shown["complete"], names
    for path in ("/orders", "/customers", "/events", "/redemptions", "/coupons", "/refunds"):
        answer = admin.get(path, {"filter[limit]": -1 if path != "/events" else 1000})
        assert answer.status_code == 200
        assert MARK not in answer.text.lower(), path
    after, pages = 0, 0
    while after is not None:
        query = {"filter[after]": after, "filter[limit]": 5 * number_of_persons}
        page = admin.get("/events", query | {"fields": "id,data,changes,actor"})
        assert MARK not in page.text.lower()
        found, pages = page.get_json()["events"], pages + 1
        after = found[-1]["id"] if found else None
    assert pages > 2
    assert sums(admin) == reports
    export = tmp_path / "shop.ndjson"
    done = succeed(app, "export", "all", export)
    text = export.read_text().lower()
    assert MARK not in text
    assert remaining.mark in text
    with app.app_context():
        while clear_next_batch():  # what the worker does
            pass
        cleanup.sweep()
    assert stored(app, [MARK]) == set()
    assert stored(app, [remaining.mark])
    if "sqlite" in database_url:
        with app.app_context():
            remove_copies()  # what the worker does, too
            done = subprocess.run(["cat", db.engine.url.database], capture_output=True, check=True)
        assert MARK.encode() not in done.stdout.lower()
        assert remaining.mark.encode() in done.stdout.lower()


@pytest.fixture
def service(fresh_database_url, tmp_path):
    service = Service(fresh_database_url, tmp_path)
    try:
        service.start()
        with closing(Caller(service.port, service.key)) as caller:
            service.wait_until_ready(caller)
        yield service
    finally:
        service.close()


def send_until_answered(service, requests):
    """Send requests, each until it is answered. A killed worker does not respond."""
    answers = []
    with closing(Caller(service.port, service.key)) as caller:
        for path, body in requests:
            lost = 0
            while True:
                try:
                    status, response = caller.send("POST", path, body)
                except (OSError, http.client.HTTPException, ValueError):
                    status = 0
                if status not in {0, 503, 504}:
                    break
                lost += 1
                time.sleep(0.02)
            answers.append((lost, status, response))
    return answers


def killed_meanwhile(service, requests):
    """Send requests from several clients while workers are killed; return their answers."""
    done, kills = threading.Event(), []

    def kill():
        chance = random.Random(1)
        while len(kills) < KILLS and not done.wait(0.05 + chance.random() / 5):
            if workers := service.workers():
                try:
                    chance.choice(workers).kill()
                except psutil.NoSuchProcess:
                    continue
                kills.append(1)

    with ThreadPoolExecutor(CLIENTS + 1) as pool:
        killer = pool.submit(kill)
        shares = [requests[start::CLIENTS] for start in range(CLIENTS)]
        answers = [*pool.map(lambda share: send_until_answered(service, share), shares)]
        done.set()
        killer.result()
    assert kills
    return [answer for share in answers for answer in share]


def create_pair(caller, number):
    """Create two accounts of one person with an order each that uses the coupon."""
    ids = []
    for name in ("kept", "old"):
        mark = f"{MARK}{name}{number}"
        new = {"email": f"{mark}@example.com", "first_name": mark, "metadata": {name: mark}}
        status, body = caller.send("POST", "/customers", {"customer": new})
        assert status == 201, body
        ids.append(body["customer"]["id"])
        line = {"product_id": 1, "name": "Teapot", "quantity": 1, "price": "10.00"}
        order = {
            "customer_id": ids[-1], "status": "completed", "note": mark,
            "billing_address": {"first_name": mark, "phone": mark, "address_1": mark},
            "line_items": [line], "coupon_lines": [{"code": "once"}],
        }  # fmt: skip
        status, body = caller.send("POST", "/orders", {"order": order})
        assert status == 201, body
    return ids


def events_of(caller, kind):
    found = caller.send("GET", f"/events?filter[type]={kind}&filter[limit]=1000")[1]["events"]
    return sorted(event["resource_id"] for event in found)


def is_accepted(answer):
    """Return whether a request succeeded, or an attempt before it that was not answered."""
    lost, status, body = answer
    return status == 200 or (lost and (status, body["errors"][0]["code"]) in GONE)


@pytest.mark.slow
@pytest.mark.both_databases
def test_merges_and_erasures_take_effect_once_while_workers_are_killed(service):
    with closing(Caller(service.port, service.key)) as caller:
        coupon = {"code": "once", "type": "fixed_cart", "amount": "1.00", "usage_limit_per_user": 1}
        coupon_id = caller.send("POST", "/coupons", {"coupon": coupon})[1]["coupon"]["id"]
        pairs = [create_pair(caller, number) for number in range(PAIRS)]
        merges = [
            (f"/customers/{kept}/merge", {"merge": {"customer_id": old}}) for kept, old in pairs
        ]
        answers = killed_meanwhile(service, merges)
        assert [each for each in answers if not is_accepted(each)] == []
        service.wait_until_ready(caller)

        assert events_of(caller, "customer.merged") == sorted(kept for kept, _ in pairs)
        assert events_of(caller, "customer.deleted") == sorted(old for _, old in pairs)
        for number, (kept, old) in enumerate(pairs):
            assert caller.send("GET", f"/customers/{old}")[0] == 404
            path = f"/customers/{kept}?fields=orders_count,total_spent,metadata"
            shown = caller.send("GET", path)[1]["customer"]
            assert (shown["orders_count"], shown["total_spent"]) == (2, "18.00")
            names = {name: f"{MARK}{name}{number}" for name in ("kept", "old")}
            assert shown["metadata"] == names
            uses = caller.send("GET", f"/redemptions?filter[customer_id]={kept}")[1]["redemptions"]
            assert [use["status"] for use in uses] == ["confirmed", "confirmed"]
            use = {"code": "once", "reference": "again", "email": f"{names['old']}@example.com"}
            assert caller.send("POST", "/redemptions", {"redemption": use})[0] == 400

        erasures = [("/persons/erase", {"person": {"customer_id": kept}}) for kept, _ in pairs]
        answers = killed_meanwhile(service, erasures)
        assert [each for each in answers if not is_accepted(each)] == []
        service.wait_until_ready(caller)

        assert events_of(caller, "person.erased") == sorted(kept for kept, _ in pairs)
        orders = caller.send("GET", "/orders?fields=id,customer_id,total,note,erased_at")[1][
            "orders"
        ]
        assert len(orders) == 2 * PAIRS
        for order in orders:
            shown = order["customer_id"], order["total"], order["note"], bool(order["erased_at"])
            assert shown == (0, "9.00", "", True)
        for path in ("/orders", "/customers", "/redemptions", "/events?filter[limit]=1000"):
            assert MARK not in str(caller.send("GET", path)[1])
        shown = caller.send("GET", f"/coupons/{coupon_id}")[1]["coupon"]
        assert shown["usage_count"] == 2 * PAIRS
        for number in range(PAIRS):  # the uses still count for both addresses
            for name in ("kept", "old"):
                email = f"{MARK}{name}{number}@example.com"
                use = {"code": "once", "reference": f"late-{name}", "email": email}
                status, body = caller.send("POST", "/redemptions", {"redemption": use})
                reasons = [each["code"] for each in body["errors"][0]["reasons"]]
                assert (status, reasons) == (400, ["usage_limit_per_user"])
