"""Several changes of the counts of a coupon in one transaction (redemptions 6, spec 4.3)."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select, update

from app.db.session import db, run_in_transaction
from app.models import COUPONS
from app.services.orders import coupons
from app.services.redemptions.counts import change_counts
from tests.redemptions.calls import move, post, reserve

LARGEST = 10**15 - 1
"""The largest count or limit that a request can set (decisions 3)."""

counts = st.integers(0, 8)
changes = st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), max_size=12)


@pytest.mark.both_databases
def test_one_statement_has_the_result_of_successive_changes(app, make_coupon):
    coupon_id = make_coupon()["id"]
    this = COUPONS.c.id == coupon_id

    @given(counts, counts, changes)
    def check(used, reserved, changes):
        expected = [used, reserved]
        for usage, slots in changes:
            expected = [max(expected[0] + usage, 0), expected[1] + slots]
        with app.app_context(), db.session() as session:
            before = {"usage_count": used, "reserved_count": reserved}
            session.execute(update(COUPONS).where(this).values(before))
            change_counts(session, coupon_id, changes)
            columns = select(COUPONS.c.usage_count, COUPONS.c.reserved_count)
            assert list(session.execute(columns.where(this)).one()) == expected

    check()


@pytest.mark.both_databases
def test_wrong_number_of_reservations_is_corrected(app, admin, make_coupon):
    """SQL by hand can leave it. The request that needs a slot must end."""
    coupon = make_coupon(code="summer", usage_limit=2)

    def spoil(session):
        session.execute(update(COUPONS).where(this).values(reserved_count=7))

    this = COUPONS.c.id == coupon["id"]
    with app.app_context():
        run_in_transaction(spoil)
    assert [post(admin, reference=each).status_code for each in "abc"] == [201, 201, 400]
    with app.app_context(), db.session() as session:
        assert session.scalar(select(COUPONS.c.reserved_count).where(this)) == 2


STEPS = {
    "release": {"status": "cancelled"},
    "reserve": {"status": "pending"},
    "confirm": {"status": "processing"},
}
"""Changes of orders with one use each: ``confirm`` is of a pending order."""


def step_of(step, order):
    """The item of a bulk request that does a step to an order."""
    if step == "delete the line":
        line = order["coupon_lines"][0]["id"]
        return {"id": order["id"], "coupon_lines": [{"id": line, "remove": True}]}
    return {"id": order["id"], **STEPS[step]}


@pytest.fixture
def run(admin, make_coupon):
    """Return a function: apply steps to orders with an unlimited coupon whose count was reset."""

    def count_after(steps, used, send):
        coupon = make_coupon(type="fixed_cart", amount=1)
        new = {
            "status": "completed",
            "line_items": [{"name": "Mug", "price": "4"}],
            "coupon_lines": [{"code": coupon["code"]}],
        }
        items = []
        for step in steps:
            if step == "create":
                items.append(new)
                continue
            status = "pending" if step == "confirm" else "processing"
            order = admin.post("/orders", {"order": new | {"status": status}}).get_json()["order"]
            items.append(step_of(step, order))
        path = f"/coupons/{coupon['id']}"
        assert admin.put(path, {"coupon": {"usage_count": used}}).status_code == 200
        send(items)
        return admin.get(path).get_json()["coupon"]["usage_count"]

    return count_after


@pytest.fixture
def alone(admin):
    """Return a function: send each item in its own request."""

    def send(items):
        for item in items:
            response = admin.post("/orders/bulk", {"orders": [item]})
            assert "error" not in response.get_json()["orders"][0]

    return send


@pytest.fixture
def together(admin):
    """Return a function: send all items in one request."""

    def send(items):
        response = admin.post("/orders/bulk", {"orders": items})
        assert not [item for item in response.get_json()["orders"] if "error" in item]

    return send


@pytest.mark.sample(4)
@pytest.mark.parametrize("used", [0, 1])
@pytest.mark.parametrize(
    "steps",
    [
        *permutations(["release", "confirm", "create"]),
        *permutations(["reserve", "create"]),
        *permutations(["delete the line", "reserve", "create"]),
        ("release", "create"),
        ("create", "release"),
    ],
    ids=", ".join,
)
def test_bulk_requests_count_as_separate_requests_do(run, alone, together, steps, used):
    assert run(steps, used, together) == run(steps, used, alone)


@pytest.mark.both_databases
def test_order_that_releases_and_confirms_the_same_coupon(admin, make_coupon):
    """The coupon gets another code, so that an order can remove and add it in one request."""
    coupon = make_coupon(code="old")
    order = {"status": "completed", "coupon_lines": [{"code": "old", "amount": "1"}]}
    created = admin.post("/orders", {"order": order}).get_json()["order"]
    path = f"/coupons/{coupon['id']}"
    assert admin.put(path, {"coupon": {"code": "new", "usage_count": 0}}).status_code == 200
    lines = [{"id": created["coupon_lines"][0]["id"], "remove": True},
             {"code": "new", "amount": "1"}]  # fmt: skip
    response = admin.put(f"/orders/{created['id']}", {"order": {"coupon_lines": lines}})
    assert response.status_code == 200
    assert admin.get(path).get_json()["coupon"]["usage_count"] == 1


@pytest.mark.both_databases
@pytest.mark.parametrize("limits", [{}, {"usage_limit_per_user": 2}], ids=["unlimited", "per user"])
def test_uses_of_a_coupon_with_the_largest_count(admin, make_coupon, limits):
    """No use is rejected for it, and each one is counted."""
    coupon = make_coupon(code="max", usage_count=LARGEST, **limits)
    path = f"/coupons/{coupon['id']}"

    use = {"code": "max", "reference": "cart-1", "email": "a@example.com"}
    reserved = admin.post("/redemptions", {"redemption": use})
    assert reserved.status_code == 201
    redemption = f"/redemptions/{reserved.get_json()['redemption']['id']}"
    assert admin.post(f"{redemption}/confirm").status_code == 200
    assert admin.get(path).get_json()["coupon"]["usage_count"] == LARGEST + 1

    lines = [{"code": "max", "amount": "1"}]
    order = {"status": "completed", "billing_address": {"email": "a@example.com"}}
    assert admin.post("/orders", {"order": order | {"coupon_lines": lines}}).status_code == 201
    count = admin.get(path).get_json()["coupon"]["usage_count"]
    assert count == LARGEST + 2
    assert type(count) is int

    assert admin.post(f"{redemption}/release").status_code == 200
    assert admin.get(path).get_json()["coupon"]["usage_count"] == LARGEST + 1


@pytest.mark.both_databases
def test_reservation_of_a_coupon_whose_count_was_set_to_the_largest_limit(admin, make_coupon):
    coupon = make_coupon(code="max", usage_limit=LARGEST)
    use = {"code": "max", "reference": "cart-1"}
    assert admin.post("/redemptions", {"redemption": use}).status_code == 201
    path = f"/coupons/{coupon['id']}"
    assert admin.put(path, {"coupon": {"usage_count": LARGEST}}).status_code == 200
    found = admin.get("/coupons?filter[state]=used_up").get_json()["coupons"]
    assert [each["id"] for each in found] == [coupon["id"]]

    cart = {"coupons": ["max"], "items": [{"product_id": 1, "quantity": 1, "price": "5"}]}
    evaluated = admin.post("/coupons/evaluate", {"cart": cart}).get_json()["evaluation"]
    reasons = evaluated["coupons"][0]["reasons"]
    assert [reason["code"] for reason in reasons] == ["usage_limit"]
    response = admin.post("/redemptions", {"redemption": use | {"reference": "cart-2"}})
    assert response.status_code == 400
    assert response.get_json()["errors"][0]["reasons"] == reasons


@pytest.mark.parametrize("path", ["/coupons", "/wc-api/v3/coupons"])
@pytest.mark.parametrize("name", ["usage_limit", "usage_limit_per_user", "limit_usage_to_x_items"])
def test_limits_of_more_than_15_digits_are_rejected(admin, path, name):
    def sent(value):
        return admin.post(path, {"coupon": {"code": "max", "type": "percent", name: value}})

    response = sent(LARGEST + 1)
    assert response.status_code == 400, response.get_json()
    assert "15 digits" in response.text
    assert sent(LARGEST).status_code == 201


def used_up(client):
    found = client.get("/coupons?filter[state]=used_up").get_json()["coupons"]
    return [coupon["code"] for coupon in found]


def pending_order(client, code):
    item = {"name": "Mug", "quantity": 1, "total": "10.00", "subtotal": "10.00"}
    order = {"status": "pending", "coupon_lines": [{"code": code}], "line_items": [item]}
    response = client.post("/orders", {"order": order})
    assert response.status_code == 201, response.get_json()
    return response.get_json()["order"]


@pytest.mark.both_databases
def test_limit_counts_the_reservations_from_before(app, admin, make_coupon):
    coupon = make_coupon(code="summer")
    reserved = [reserve(admin, reference=each) for each in "ab"]
    order = pending_order(admin, "summer")
    for usage_limit, expected in ((4, []), (3, ["summer"]), (0, []), (3, ["summer"])):
        body = {"coupon": {"usage_limit": usage_limit}}
        assert admin.put(f"/coupons/{coupon['id']}", body).status_code == 200
        assert used_up(admin) == expected

    # Each way to end a reservation takes it out of the count, and each slot can be taken once.
    move(admin, reserved[0], "confirm")
    assert used_up(admin) == ["summer"]
    move(admin, reserved[1], "release")
    assert used_up(admin) == []
    assert (
        admin.put(f"/orders/{order['id']}", {"order": {"status": "cancelled"}}).status_code == 200
    )
    assert [post(admin, reference=each).status_code for each in "cde"] == [201, 201, 400]
    assert used_up(admin) == ["summer"]
    this = COUPONS.c.id == coupon["id"]
    with app.app_context(), db.session() as session:
        columns = select(COUPONS.c.usage_count, COUPONS.c.reserved_count).where(this)
        assert tuple(session.execute(columns).one()) == (1, 2)


@pytest.mark.both_databases
@pytest.mark.parametrize("status", ["processing", "cancelled"])
def test_limit_that_is_set_while_an_order_changes(app, admin, make_coupon, monkeypatch, status):
    """The order has read its reservation before the limit counted it."""
    coupon = make_coupon(code="summer")
    order = pending_order(admin, "summer")
    body = {"coupon": {"usage_limit": 5}}
    assert admin.put(f"/coupons/{coupon['id']}", body).status_code == 200
    read, calls = coupons.redemptions_of, []

    def read_earlier(session, order_id):
        calls.append(order_id)
        found = read(session, order_id)
        return [{**each, "holds_slot": False} for each in found] if len(calls) == 1 else found

    monkeypatch.setattr(coupons, "redemptions_of", read_earlier)
    assert admin.put(f"/orders/{order['id']}", {"order": {"status": status}}).status_code == 200
    with app.app_context(), db.session() as session:
        columns = select(COUPONS.c.usage_count, COUPONS.c.reserved_count)
        counts = tuple(session.execute(columns.where(COUPONS.c.id == coupon["id"])).one())
    assert counts == (int(status == "processing"), 0)
