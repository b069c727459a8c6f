"""Limits of coupons are exact with concurrent redemptions (redemptions 4 and 5)."""

import time
from collections import Counter
from threading import Thread

import pytest
from sqlalchemy import func, select, text

from app.db.read_pool import fetch
from app.db.session import db
from app.models import Coupon, Redemption
from tests.api_client import Client, at_the_same_time
from tests.redemptions.calls import move, post, rejected, reserve, usage_count
from tests.selection import POOLED

pytestmark = pytest.mark.pooler

THREADS = 8


@pytest.fixture
def at_once(admin):
    """Return a function: call each function at the same time, with a client of its own."""

    def run(*calls):
        return at_the_same_time(lambda call: call(Client(admin.app, admin.key)), calls)

    return run


def counts(app):
    """What the coupon says of its uses, and what the ledger holds."""
    with app.app_context():
        ((used, held),) = fetch(select(Coupon.usage_count, Coupon.reserved_count))
        rows = fetch(
            select(Redemption.status, Redemption.holds_slot, func.count()).group_by(
                Redemption.status, Redemption.holds_slot
            )
        )
    ledger = Counter()
    for status, holds_slot, number in rows:
        ledger[status] += number
        ledger["held"] += number * holds_slot
    assert (used, held) == (ledger["confirmed"], ledger["held"])
    return ledger


@pytest.mark.sample(1)
@pytest.mark.parametrize("confirm", [False, True])
@pytest.mark.parametrize("uses", [10, pytest.param(50, marks=pytest.mark.slow)])
def test_four_times_as_many_requests_as_uses(app, admin, at_once, make_coupon, confirm, uses):
    make_coupon(code="summer", usage_limit=uses)

    def many(number):
        def call(client):
            answers = []
            for each in range(4 * uses // THREADS):
                response = post(client, reference=f"{number}-{each}")
                if confirm and response.status_code == 201:
                    move(client, response.get_json()["redemption"], "confirm")
                answers.append(response)
            return answers

        return call

    answers = [answer for each in at_once(*map(many, range(THREADS))) for answer in each]
    assert Counter(answer.status_code for answer in answers) == {201: uses, 400: 3 * uses}
    assert all(
        rejected(answer) == ["usage_limit"] for answer in answers if answer.status_code == 400
    )
    assert counts(app)["confirmed" if confirm else "reserved"] == uses


def test_last_use_is_reserved_once(app, admin, at_once, make_coupon):
    make_coupon(code="summer", usage_limit=1)
    answers = at_once(*[lambda c, n=n: post(c, reference=str(n)) for n in range(THREADS)])
    assert sorted(answer.status_code for answer in answers) == [201, *[400] * (THREADS - 1)]
    assert counts(app)["reserved"] == 1


def test_same_reference_concurrently_is_one_redemption(app, admin, at_once, make_coupon):
    make_coupon(code="summer", usage_limit=1)
    answers = at_once(*[post] * THREADS)
    assert sorted(answer.status_code for answer in answers) == [*[200] * (THREADS - 1), 201]
    assert len({answer.get_json()["redemption"]["id"] for answer in answers}) == 1
    assert counts(app)["reserved"] == 1


@pytest.mark.parametrize("usage_limit", [0, 100])
def test_limit_per_user_concurrently(app, admin, at_once, make_coupon, make_customer, usage_limit):
    make_coupon(code="summer", usage_limit_per_user=2, usage_limit=usage_limit)
    ada = make_customer(email="ada@example.com")
    who = [{"customer_id": ada["id"]}, {"email": "ADA@example.com"}]
    answers = at_once(
        *[lambda c, n=n: post(c, reference=str(n), **who[n % 2]) for n in range(THREADS)]
    )
    assert Counter(answer.status_code for answer in answers) == {201: 2, 400: THREADS - 2}
    assert counts(app)["reserved"] == 2


def test_slots_of_expired_reservations_are_reused_once(app, admin, at_once, make_coupon, expire):
    make_coupon(code="summer", usage_limit=3)
    for number in range(3):
        expire(reserve(admin, reference=f"old-{number}"))
    answers = at_once(*[lambda c, n=n: post(c, reference=str(n)) for n in range(THREADS)])
    assert Counter(answer.status_code for answer in answers) == {201: 3, 400: THREADS - 3}
    assert counts(app)["held"] == 3


def test_confirm_release_and_reserve_concurrently(app, admin, at_once, make_coupon):
    make_coupon(code="summer", usage_limit=5)
    redemption = reserve(admin, reference="x")
    path = f"/redemptions/{redemption['id']}"

    def act(action):
        return lambda client: client.post(f"{path}/{action}")

    answers = at_once(*[act("confirm"), act("release")] * 3, *[post] * 2)
    assert {answer.status_code for answer in answers} <= {200, 201, 409}
    counts(app)


def test_limit_that_is_set_meanwhile(app, admin, at_once, make_coupon):
    coupon = make_coupon(code="summer")
    put = {"coupon": {"usage_limit": 3}}
    calls = [lambda c, n=n: post(c, reference=str(n)) for n in range(THREADS)]
    at_once(*calls, lambda c: c.put(f"/coupons/{coupon['id']}", put))
    reserved = counts(app)["reserved"]
    late = [post(admin, reference=f"late-{number}").status_code for number in range(3)]
    assert late.count(201) == max(0, 3 - reserved)


# SQLite has one writer at a time.
@pytest.mark.parametrize("database_url", ["postgresql", POOLED], indirect=True)
def test_reservations_of_an_unlimited_coupon_do_not_wait_for_each_other(app, admin, make_coupon):
    make_coupon(code="summer")
    with app.app_context(), db.engine.connect() as other:
        other.execute(text("SELECT id FROM coupons FOR NO KEY UPDATE"))
        assert post(admin).status_code == 201


@pytest.mark.parametrize("database_url", ["postgresql", POOLED], indirect=True)
def test_event_of_a_release_shows_the_counts_of_earlier_transactions(app, admin, make_coupon, feed):
    """The reservation is from a time without limits, so its release changes no count."""
    coupon = make_coupon(code="summer")
    body = {"order": {"status": "pending", "coupon_lines": [{"code": "summer"}]}}
    path = f"/orders/{admin.post('/orders', body).get_json()['order']['id']}?force=true"
    admin.put(f"/coupons/{coupon['id']}", {"coupon": {"usage_limit": 4}})
    deletion = Thread(target=lambda: Client(app, admin.key).delete(path))
    with app.app_context(), db.engine.connect() as other:
        other.execute(text("UPDATE coupons SET usage_count = 1"))
        deletion.start()
        waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        while deletion.is_alive() and not other.scalar(waiting):
            time.sleep(0.01)
        other.commit()
    deletion.join()
    event = feed()[-1]
    assert event["type"] == "coupon.released"
    assert event["data"]["coupon"]["usage_count"] == usage_count(admin, coupon) == 1
