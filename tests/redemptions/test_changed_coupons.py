"""Lists of coupons by change contain those that were used (decided: a use is a change of a coupon)."""

from datetime import UTC, datetime

import pytest

from app.services.redemptions.expiry import expire_reservations
from tests.redemptions.calls import move, reserve

BEFORE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def changed(app, admin, make_coupon, store):
    """Return a function: whether the lists contain a coupon that ``use`` uses, with its new time."""

    def run(use, prepare=lambda _coupon: None, **limits):
        coupon = make_coupon(type="fixed_cart", amount="1", **limits)
        prepared = prepare(coupon)
        store(coupon["id"], updated_at=BEFORE)
        use(prepared or coupon)
        (shown,) = admin.get("/coupons", {"filter[in]": coupon["id"]}).get_json()["coupons"]
        native = {"filter[updated_at_min]": "2026-01-02", "filter[in]": coupon["id"]}
        wc = {"modified_after": "2026-01-02T00:00:00", "include": coupon["id"]}
        lists = [
            admin.get("/coupons", native).get_json()["coupons"],
            admin.get("/wc-api/v3/coupons", native).get_json()["coupons"],
            admin.get("/wp-json/wc/v3/coupons", wc).get_json(),
        ]
        found = {bool(each) for each in lists}
        assert found == {shown["updated_at"] > "2026-01-01T00:00:00Z"}
        return found == {True}

    return run


LIMITS = [{}, {"usage_limit": 5}, {"usage_limit_per_user": 5}]


@pytest.mark.sample(2)
@pytest.mark.parametrize("limits", LIMITS)
def test_use_through_the_api_changes_its_coupon(app, admin, changed, expire, limits):
    def reserved(coupon):
        return reserve(admin, coupon["code"], email="a@shop.example")

    def confirmed(coupon):
        return move(admin, reserved(coupon), "confirm")

    def expired(coupon):
        redemption = reserved(coupon)
        expire(redemption)
        return redemption

    def store_expiry(_redemption):
        with app.app_context():
            assert expire_reservations() == 1

    assert changed(confirmed, **limits)
    assert changed(lambda use: move(admin, use, "confirm"), reserved, **limits)
    assert changed(lambda use: move(admin, use, "confirm"), expired, **limits)
    assert changed(lambda use: move(admin, use, "release"), confirmed, **limits)
    # A reservation changes nothing that a coupon shows.
    assert not changed(reserved, **limits)
    assert not changed(lambda use: move(admin, use, "release"), reserved, **limits)
    assert not changed(store_expiry, expired, **limits)


ORDERS = {
    "native": ("/orders", lambda order: {"order": order}, lambda body: body["order"]),
    "legacy": ("/wc-api/v3/orders", lambda order: {"order": order}, lambda body: body["order"]),
    "wc/v3": ("/wp-json/wc/v3/orders", lambda order: order, lambda body: body),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("dialect", ORDERS)
@pytest.mark.parametrize("limits", LIMITS)
def test_order_changes_the_coupons_that_it_uses(admin, changed, dialect, limits):
    path, wrapped, unwrapped = ORDERS[dialect]

    def order(coupon, status="processing"):
        item = {"name": "Mug", "quantity": 1, "total": "10.00", "subtotal": "10.00"}
        used = {"status": status, "coupon_lines": [{"code": coupon["code"]}], "line_items": [item]}
        response = admin.post(path, wrapped(used))
        assert response.status_code == 201, response.get_json()
        return unwrapped(response.get_json())

    def become(status):
        def change(order):
            response = admin.put(f"{path}/{order['id']}", wrapped({"status": status}))
            assert response.status_code == 200, response.get_json()

        return change

    assert changed(order, **limits)
    assert changed(become("cancelled"), order, **limits)
    assert changed(become("processing"), lambda coupon: order(coupon, "pending"), **limits)
    assert changed(lambda used: admin.delete(f"{path}/{used['id']}"), order, **limits)
    # The use of an order that keeps its status is not written again.
    assert not changed(become("completed"), order, **limits)


def test_use_is_not_an_event_of_an_update(admin, changed):
    assert changed(lambda coupon: move(admin, reserve(admin, coupon["code"]), "confirm"))
    found = admin.get("/events", {"limit": 100}).get_json()["events"]
    types = [event["type"] for event in found if event["resource"] == "coupon"]
    assert types == ["coupon.created", "coupon.redeemed", "coupon.redeemed"]
    (*_, last) = (event["data"]["coupon"] for event in found if event["type"] == "coupon.redeemed")
    assert last["updated_at"] > "2026-01-01T00:00:00Z"
