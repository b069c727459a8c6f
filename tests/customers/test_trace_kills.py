"""Workers that are killed while they clear what is left of a customer (people 5)."""

import pytest
from sqlalchemy import select

from app.db.read_pool import fetch
from app.models import EVENTS, ORDERS, REDEMPTIONS
from app.services.customers.traces import number_left
from tests.customers.test_erasure import ADDRESS, EMAIL
from tests.redemptions.calls import post, rejected
from tests.serving import killed_worker
from tests.webhooks.receivers import until

ORDERS_OF_CUSTOMER = 700
KILLS = 2


@pytest.mark.slow
@pytest.mark.both_databases
def test_everything_is_cleared_after_kills(app, settings, admin, make_customer, make_coupon):
    gwen = make_customer(email=EMAIL, billing_address=ADDRESS)
    make_coupon(code="summer", usage_limit_per_user=ORDERS_OF_CUSTOMER)
    order = {
        "customer_id": gwen["id"],
        "billing_address": ADDRESS,
        "line_items": [{"product_id": 1, "name": "Cup", "quantity": 1, "price": "5.00"}],
        "coupon_lines": [{"code": "summer"}],
    }
    for _ in range(ORDERS_OF_CUSTOMER // 100):
        made = admin.post("/orders/bulk", {"orders": [order] * 100})
        assert {each["id"] > 0 for each in made.get_json()["orders"]} == {True}
    assert admin.delete(f"/customers/{gwen['id']}").status_code == 200

    def left():
        with app.app_context():
            return sum(number_left().values())

    for _ in range(KILLS):
        before = left()
        assert before
        with killed_worker(settings):
            until(lambda before=before: left() < before, "a batch")
    with killed_worker(settings), killed_worker(settings):
        until(lambda: not left(), "the end", 600)
    with app.app_context():
        assert {row[0] for row in fetch(select(ORDERS.c.customer_id))} == {None}
        uses = fetch(select(REDEMPTIONS.c.customer_id, REDEMPTIONS.c.email_normalized))
        assert {(customer_id, email[:7]) for customer_id, email in uses} == {(None, "erased:")}
        assert len(uses) == ORDERS_OF_CUSTOMER
        assert "llandudno" not in "".join(row[0] for row in fetch(select(EVENTS.c.data))).lower()
    assert rejected(post(admin, reference="a", email=EMAIL)) == ["usage_limit_per_user"]
