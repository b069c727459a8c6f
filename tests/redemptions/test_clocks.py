"""Limits hold with any difference between the clocks of the machines (redemptions, last paragraph)."""

from collections import Counter
from contextvars import ContextVar
from datetime import datetime, timedelta

import pytest

import app.db.session
from app.services.redemptions.expiry import expire_reservations
from tests.api_client import Client, at_the_same_time
from tests.events.feed import types
from tests.redemptions.calls import USED_UP, move, post, rejected, reserve, usage_count

pytestmark = pytest.mark.both_databases

_AHEAD = ContextVar("ahead", default=timedelta(0))
ADA = {"email": "ada@example.com"}


class Clock(datetime):
    """The clock of the machine that handles the request."""

    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) + _AHEAD.get()


@pytest.fixture
def machine(admin, make_app, monkeypatch):
    """Return a function: the client of an app on another machine, whose clock is ahead."""
    monkeypatch.setattr(app.db.session, "datetime", Clock)

    def start(seconds):
        other = make_app()
        handle = other.wsgi_app

        def at_its_time(environ, start_response):
            token = _AHEAD.set(timedelta(seconds=seconds))
            try:
                return handle(environ, start_response)
            finally:
                _AHEAD.reset(token)

        other.wsgi_app = at_its_time
        return Client(other, admin.key)

    return start


def test_reservation_expires_while_it_is_confirmed(admin, make_coupon, monkeypatch):
    """Whenever the clock reaches its end, the confirmation sees either state, and not both."""
    code = make_coupon()["code"]
    for reads in range(8):
        redemption = reserve(admin, code=code, reference=f"cart-{reads}")
        before = iter([timedelta(0)] * reads)

        class Passing(datetime):
            @classmethod
            def now(cls, tz=None, before=before):
                return datetime.now(tz) + next(before, timedelta(hours=1))

        with monkeypatch.context() as patch:
            patch.setattr(app.db.session, "datetime", Passing)
            response = confirm(admin, redemption)
        assert (response.status_code, reads) == (200, reads)
        assert response.get_json()["redemption"]["status"] == "confirmed"


def read(client, redemption):
    return client.get(f"/redemptions/{redemption['id']}").get_json()["redemption"]


def confirm(client, redemption):
    return client.post(f"/redemptions/{redemption['id']}/confirm")


def use_of(redemption, status):
    names = ("id", "status", "reference", "order_id")
    return {name: redemption[name] for name in names} | {"status": status}


TAKES = {"usage_limit": {"usage_limit": 1}, "usage_limit_per_user": {"usage_limit_per_user": 1}}


@pytest.mark.sample(1)
@pytest.mark.parametrize("limit", TAKES)
def test_reservation_whose_slot_was_given_away_is_released(
    admin, machine, make_coupon, feed, limit
):
    coupon = make_coupon(code="summer", **TAKES[limit])
    ahead = machine(70)
    first = reserve(admin, reference="first", expires_in=60, **ADA)
    feed()
    second = reserve(ahead, reference="second", expires_in=600, **ADA)
    shown = first | {"status": "released", "updated_at": first["expires_at"]}
    assert read(admin, first) == read(ahead, first) == shown
    assert rejected(confirm(admin, first)) == [limit]
    assert rejected(post(admin, reference="first", **ADA)) == [limit]
    assert confirm(ahead, second).status_code == 200
    assert usage_count(admin, coupon) == 1
    events = feed()
    assert types(events) == [
        ("coupon.released", coupon["id"]),
        ("coupon.redeemed", coupon["id"]),
        ("coupon.redeemed", coupon["id"]),
    ]
    assert [event["data"]["redemption"] for event in events] == [
        use_of(first, "released"),
        use_of(second, "reserved"),
        use_of(second, "confirmed"),
    ]
    # The release is stored, so that the worker does not report it again.
    with ahead.app.app_context():
        assert expire_reservations() == 0


def test_reservation_from_a_time_without_a_limit(admin, machine, make_coupon):
    coupon = make_coupon(code="summer")
    ahead = machine(70)
    first = reserve(admin, reference="first", expires_in=60)
    admin.put(f"/coupons/{coupon['id']}", {"coupon": {"usage_limit": 1}})
    second = reserve(ahead, reference="second")
    assert rejected(confirm(admin, first)) == USED_UP
    assert confirm(ahead, second).status_code == 200
    assert usage_count(admin, coupon) == 1


def test_order_takes_the_slot_of_an_expired_reservation(admin, machine, make_coupon, feed):
    coupon = make_coupon(code="summer", usage_limit=1)
    ahead = machine(70)
    first = reserve(admin, reference="first", expires_in=60)
    feed()
    order = {"status": "completed", "coupon_lines": [{"code": "summer", "amount": "1"}]}
    order_id = ahead.post("/orders", {"order": order}).get_json()["order"]["id"]
    assert rejected(confirm(admin, first)) == USED_UP
    assert usage_count(admin, coupon) == 1
    events = feed()
    assert types(events) == [
        ("order.created", order_id),
        ("coupon.released", coupon["id"]),
        ("coupon.redeemed", coupon["id"]),
    ]
    (used,) = admin.get("/redemptions", {"filter[order_id]": order_id}).get_json()["redemptions"]
    assert [event["data"] for event in events[1:]] == [
        admin.get(f"/coupons/{coupon['id']}").get_json() | {"redemption": use}
        for use in (use_of(first, "released"), use_of(used, "confirmed"))
    ]


def test_order_of_a_new_customer_whose_reservation_has_expired(admin, machine, make_coupon, feed):
    coupon = make_coupon(code="summer", usage_limit_per_user=1)
    ahead = machine(70)
    first = reserve(admin, reference="first", expires_in=60, **ADA)
    order = {"status": "completed", "coupon_lines": [{"code": "summer", "amount": "1"}]}
    order_id = admin.post("/orders", {"order": order}).get_json()["order"]["id"]
    feed()
    body = {"order": {"billing_address": ADA}}
    assert admin.put(f"/orders/{order_id}", body).status_code == 400
    assert ahead.put(f"/orders/{order_id}", body).status_code == 200
    assert types(feed()) == [("order.updated", order_id), ("coupon.released", coupon["id"])]
    assert rejected(confirm(admin, first)) == ["usage_limit_per_user"]
    assert usage_count(admin, coupon) == 1


def test_expired_reservation_is_confirmed_while_a_slot_is_free(admin, machine, make_coupon, feed):
    coupon = make_coupon(code="summer", usage_limit=1)
    ahead = machine(70)
    first = reserve(admin, reference="first", expires_in=60)
    second = reserve(ahead, reference="second")
    move(ahead, second, "release")
    feed()
    assert confirm(admin, first).status_code == 200
    (event,) = feed()
    assert event["data"]["redemption"] == use_of(first, "confirmed")
    assert usage_count(admin, coupon) == 1


def test_rejection_stores_no_expiry(admin, machine, make_coupon, feed):
    """A reservation is released when its slot is given away, and not by a failed attempt."""
    coupon = make_coupon(code="summer", usage_limit=2, usage_limit_per_user=1)
    ahead = machine(70)
    first = reserve(admin, reference="first", expires_in=60)
    move(admin, reserve(admin, reference="second", **ADA), "confirm")
    feed()
    order = {"coupon_lines": [{"code": "summer", "amount": "1"}], "billing_address": ADA}
    results = ahead.post("/orders/bulk", {"orders": [order, {}]}).get_json()["orders"]
    assert [reason["code"] for reason in results[0]["error"]["reasons"]] == ["usage_limit_per_user"]
    assert types(feed()) == [("order.created", results[1]["id"])]
    assert read(admin, first) == first
    assert confirm(admin, first).status_code == 200
    assert usage_count(admin, coupon) == 2


def largest_number_of_uses(events):
    """The highest number of uses at any time, from the feed alone."""
    live, largest = set(), 0
    for event in events:
        if "redemption" in event["data"]:
            use = event["data"]["redemption"]
            (live.discard if use["status"] == "released" else live.add)(use["id"])
            largest = max(largest, len(live))
    return largest


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("limit", TAKES)
def test_concurrent_requests_by_different_clocks(admin, machine, make_coupon, feed, limit):
    """Each thread reserves and confirms by its own clock; the reservations of some have expired."""
    number = 3
    coupon = make_coupon(code="summer", **{limit: number})
    clients = [machine(seconds) for seconds in (0, 0, 70, 140)]
    early = [
        reserve(clients[0], reference=f"early-{each}", expires_in=60, **ADA)
        for each in range(number)
    ]

    def run(place):
        client, answers = clients[place], []
        for each in range(number):
            response = post(client, reference=f"{place}-{each}", expires_in=60, **ADA)
            if response.status_code == 201:
                answers.append(confirm(client, response.get_json()["redemption"]))
            answers += [response, confirm(client, early[(place + each) % number])]
        return answers

    answers = [answer for each in at_the_same_time(run, range(len(clients))) for answer in each]
    assert {answer.status_code for answer in answers} <= {200, 201, 400}
    rows = admin.get("/redemptions", {"filter[limit]": -1}).get_json()["redemptions"]
    statuses = Counter(row["status"] for row in rows)
    assert usage_count(admin, coupon) == statuses["confirmed"] <= number
    assert largest_number_of_uses(feed()) <= number
