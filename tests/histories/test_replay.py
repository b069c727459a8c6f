"""The replay of events of the shop: histories in which no promise is broken."""

import time

import pytest

from tests.events.feed import feed, make_order
from tests.histories.checkers.coupons import CouponChecker
from tests.histories.history import Event, Operation, Segment

__all__ = ["feed", "make_order"]  # fixtures


def update(response, path, body):
    """The update of a coupon, as a client records it."""
    request_id, result = response.headers["X-Request-Id"], response.get_json()
    args = {"change": body["coupon"]}
    return Operation(
        0, "update_coupon", "PUT", path, body, args, request_id, returned=1.0,
        status=response.status_code, response=result,
    )  # fmt: skip


def violations_of(events, *operations):
    """The violations in a segment that begins with an empty shop."""
    state = {"coupons": {}, "customers": {}, "redemptions": {}, "taken": time.time()}
    segment = Segment(0, 0.0, time.time(), events=[Event(each, 0.0, 1.0) for each in events])
    segment.before = segment.after = state
    segment.operations = list(operations)
    checker = CouponChecker()
    checker.begin(state)
    return [violation.text for violation in checker.check(segment)]


@pytest.mark.one_database
def test_an_order_keeps_the_use_of_a_deleted_coupon_for_any_customer(
    admin, feed, make_coupon, make_order
):
    """A permanently deleted coupon has no limits any more (redemptions 6)."""
    coupon = make_coupon(code="summer")
    guests = [{"email": "ann@example.com"}, {"email": "bob@example.com"}]
    orders = [
        make_order(status="pending", billing_address=guest, coupon_lines=[{"code": "summer"}])
        for guest in guests
    ]
    change = {"coupon": {"usage_limit_per_user": 1}}
    path = f"/coupons/{coupon['id']}"
    limited = update(admin.put(path, change), path, change)
    assert admin.delete(f"{path}?force=true").status_code == 200
    body = {"order": {"billing_address": guests[1]}}
    assert admin.put(f"/orders/{orders[0]['id']}", body).status_code == 200
    assert violations_of(feed(), limited) == []
