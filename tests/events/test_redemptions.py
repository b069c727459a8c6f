"""The events of redemptions and of orders with coupons (events 1)."""

from datetime import timedelta

import pytest
from sqlalchemy import update

from app.db.session import now, run_in_transaction
from app.models import Redemption
from app.services.redemptions.expiry import expire_reservations
from app.worker import loop
from tests.api_client import refusal, reply
from tests.events.feed import types
from tests.webhooks.receivers import running_worker, until


@pytest.mark.both_databases
def test_an_order_with_a_coupon(admin, feed, make_coupon, make_order):
    coupon_id = make_coupon(code="summer", amount="1")["id"]
    feed()
    order_id = make_order(coupon_lines=[{"code": "summer"}])["id"]
    path = f"/orders/{order_id}"
    use = [("order.created", order_id), ("coupon.redeemed", coupon_id)]
    events = feed()
    assert types(events) == use
    assert events[1]["data"]["coupon"]["usage_count"] == 0  # reserved
    assert admin.put(path, {"order": {"status": "processing"}}).status_code == 200
    events = feed()
    assert [event["type"] for event in events] == [
        "order.updated", "coupon.redeemed", "order_note.created"
    ]  # fmt: skip
    (redemption,) = admin.get("/redemptions").get_json()["redemptions"]
    use = {"status": "confirmed", "reference": f"order-{order_id}", "order_id": order_id}
    assert events[1]["data"] == {
        **admin.get(f"/coupons/{coupon_id}").get_json(),
        "redemption": {"id": redemption["id"], **use},
    }
    assert events[1]["data"]["coupon"]["usage_count"] == 1
    assert admin.put(path, {"order": {"note": "n"}}).status_code == 200
    assert types(feed()) == [("order.updated", order_id)]
    assert admin.delete(path).status_code == 200
    assert types(feed()) == [("order.deleted", order_id), ("coupon.released", coupon_id)]
    assert admin.post(f"{path}/restore").status_code == 200
    assert types(feed()) == [("order.restored", order_id), ("coupon.redeemed", coupon_id)]
    assert admin.delete(path, {"force": "true"}).status_code == 200
    assert types(feed()) == [("order.deleted", order_id), ("coupon.released", coupon_id)]


def test_a_use_of_a_coupon_in_the_trash(admin, feed, make_coupon, make_order):
    """A program that keeps a copy of the coupons must not take it for a published coupon."""
    coupon_id = make_coupon(code="summer", amount="1")["id"]
    order_id = make_order(coupon_lines=[{"code": "summer"}])["id"]
    assert admin.delete(f"/coupons/{coupon_id}").status_code == 200
    feed()
    assert admin.put(f"/orders/{order_id}", {"order": {"status": "cancelled"}}).status_code == 200
    (event,) = (event for event in feed() if event["type"] == "coupon.released")
    (trashed,) = admin.get("/coupons/trash").get_json()["coupons"]
    use = event["data"].pop("redemption")
    assert (use["status"], use["order_id"]) == ("released", order_id)
    assert event["data"] == {"coupon": trashed}
    assert trashed["trashed_at"]
    assert admin.post(f"/coupons/{coupon_id}/restore").status_code == 200
    (event,) = feed()
    assert event["data"] == admin.get(f"/coupons/{coupon_id}").get_json()


def test_a_coupon_that_an_order_replaces(admin, feed, make_coupon, make_order):
    old, new = (make_coupon(code=code, amount="1")["id"] for code in ("old", "new"))
    order = make_order(coupon_lines=[{"code": "old"}])
    feed()
    lines = [{"id": order["coupon_lines"][0]["id"], "remove": True}, {"code": "new"}]
    path = f"/orders/{order['id']}"
    assert admin.put(path, {"order": {"coupon_lines": lines}}).status_code == 200
    assert types(feed()) == [
        ("order.updated", order["id"]),
        ("coupon.released", old),
        ("coupon.redeemed", new),
    ]


@pytest.fixture
def reserve(admin):
    def send(reference, **over):
        body = {"redemption": {"code": "summer", "reference": reference} | over}
        response = admin.post("/redemptions", body)
        assert response.status_code in {200, 201}, response.get_json()
        return response.get_json()["redemption"]["id"]

    return send


@pytest.fixture
def expire(app):
    """Return a function: let the reservations of the shop expire."""

    def write():
        past = now() - timedelta(seconds=5)
        statement = update(Redemption).where(Redemption.status == "reserved")
        with app.app_context():
            run_in_transaction(lambda session: session.execute(statement.values(expires_at=past)))

    return write


def sweep(app):
    with app.app_context():
        return expire_reservations()


def test_a_redemption(admin, feed, make_coupon, reserve):
    coupon_id = make_coupon(code="summer", usage_limit=5)["id"]
    feed()
    redemption_id = reserve("cart-1")
    assert reserve("cart-1") == redemption_id
    assert types(feed()) == [("coupon.redeemed", coupon_id)]
    for _ in "12":
        assert admin.post(f"/redemptions/{redemption_id}/confirm").status_code == 200
    (event,) = feed()
    assert event["type"] == "coupon.redeemed"
    assert event["data"]["coupon"]["usage_count"] == 1
    for _ in "12":
        assert admin.post(f"/redemptions/{redemption_id}/release").status_code == 200
    (event,) = feed()
    assert event["type"] == "coupon.released"
    assert event["data"]["coupon"]["usage_count"] == 0


@pytest.mark.both_databases
def test_an_expired_reservation_is_released_once(app, admin, feed, make_coupon, reserve, expire):
    coupon_id = make_coupon(code="summer", usage_limit=5)["id"]
    ids = [reserve("cart-1"), reserve("cart-2")]
    assert sweep(app) == 0
    feed()
    expire()
    before = admin.get("/redemptions").get_json()
    assert sweep(app) == 2
    assert sweep(app) == 0
    events = feed()
    assert types(events) == [("coupon.released", coupon_id)] * 2
    assert {(event["user_id"], event["request_id"]) for event in events} == {(None, None)}
    # Readers see no difference.
    assert admin.get("/redemptions").get_json() == before
    assert admin.post(f"/redemptions/{ids[0]}/confirm").status_code == 200
    assert reserve("cart-2") == ids[1]
    assert types(feed()) == [("coupon.redeemed", coupon_id)] * 2


@pytest.mark.both_databases
def test_the_worker_releases_expired_reservations(
    app, admin, feed, make_coupon, reserve, expire, monkeypatch
):
    coupon_id = make_coupon(code="summer")["id"]
    reserve("cart-1")
    feed()
    expire()
    monkeypatch.setattr(loop, "EXPIRY_SECONDS", 0.1)
    with running_worker(app):
        events = until(feed, "the reservation is released")
    assert types([*events, *feed()]) == [("coupon.released", coupon_id)]


def test_an_expiry_that_a_request_finds_first(app, admin, feed, make_coupon, reserve, expire):
    coupon_id = make_coupon(code="summer", usage_limit=5)["id"]
    ids = [reserve("cart-1"), reserve("cart-2")]
    expire()
    feed()
    assert admin.post(f"/redemptions/{ids[0]}/confirm").status_code == 200
    assert reserve("cart-2") == ids[1]
    assert types(feed()) == [("coupon.released", coupon_id), ("coupon.redeemed", coupon_id)] * 2
    assert sweep(app) == 0


def test_a_released_redemption_stays_released(app, admin, make_coupon, reserve):
    make_coupon(code="summer")
    redemption_id = reserve("cart-1")
    assert admin.post(f"/redemptions/{redemption_id}/release").status_code == 200
    reason = "it has been released."
    assert reply(admin.post(f"/redemptions/{redemption_id}/confirm")) == refusal(
        "shop_api_invalid_redemption_status", reason=reason
    )


@pytest.mark.both_databases
def test_slots_of_expired_reservations_are_free(app, admin, make_coupon, reserve, expire):
    make_coupon(code="summer", usage_limit=2)
    reserve("cart-1"), reserve("cart-2")
    expire()
    assert sweep(app) == 2
    reserve("cart-3"), reserve("cart-4")
    body = {"redemption": {"code": "summer", "reference": "cart-5"}}
    assert admin.post("/redemptions", body).status_code == 400


def test_an_expired_reservation_of_a_deleted_coupon(app, admin, feed, make_coupon, reserve, expire):
    coupon_id = make_coupon(code="summer")["id"]
    redemption_id = reserve("cart-1")
    expire()
    assert admin.delete(f"/coupons/{coupon_id}", {"force": "true"}).status_code == 200
    feed()
    assert sweep(app) == 1
    assert feed() == []
    shown = admin.get(f"/redemptions/{redemption_id}").get_json()["redemption"]
    assert shown["status"] == "released"
