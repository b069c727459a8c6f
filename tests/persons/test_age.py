"""Orders of guests that the worker erases because of their age (people 5)."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from app.db.session import run_statement
from app.models import ORDERS
from app.services.maintenance.cleanup import SWEEPS
from tests.api_client import Client
from tests.factories import insert_order
from tests.redemptions.calls import post, rejected, reserve


@pytest.mark.both_databases
def test_old_orders_of_guests_are_erased(app_with, admin, make_coupon, make_customer):
    app = app_with(SHOP_GUEST_ORDERS_DAYS=30)
    client = Client(app, admin.key)
    old = datetime.now(UTC).replace(microsecond=0) - timedelta(days=31)
    ann = make_customer(email="ann@example.com")["id"]
    orders = {
        "old": insert_order(app, updated_at=old),
        "open": insert_order(app, updated_at=old, status="processing"),
        "new": insert_order(app, updated_at=old + timedelta(days=2)),
        "of account": insert_order(app, updated_at=old, customer_id=ann),
    }
    with app.app_context():
        for step in SWEEPS:
            step()
    shown = {
        name: client.get(f"/orders/{order}", {"fields": "erased_at,billing_address"}).get_json()[
            "order"
        ]
        for name, order in orders.items()
    }
    assert [name for name, order in shown.items() if order["erased_at"]] == ["old"]
    assert shown["old"]["billing_address"]["email"] == ""
    assert shown["new"]["billing_address"]["email"] == "guest@example.com"
    (event,) = client.get("/events", {"filter[type]": "order.updated"}).get_json()["events"]
    assert (event["resource_id"], event["user_id"]) == (orders["old"], None)


def test_limits_count_after_the_erasure(app_with, admin, make_coupon):
    app = app_with(SHOP_GUEST_ORDERS_DAYS=1)
    make_coupon(code="summer", usage_limit_per_user=1)
    body = {
        "status": "completed",
        "billing_address": {"email": "guest@example.com"},
        "line_items": [{"name": "Cup", "price": "1.00"}],
        "coupon_lines": [{"code": "summer", "amount": "0.10"}],
    }
    assert admin.post("/orders", {"order": body}).status_code == 201
    with app.app_context():
        run_statement(update(ORDERS).values(updated_at=datetime(2026, 1, 1, tzinfo=UTC)))
        for step in SWEEPS:
            step()
    assert admin.get("/redemptions", {"filter[email]": "guest@example.com"}).get_json() == {
        "redemptions": []
    }
    assert rejected(post(admin, email="Guest@example.com")) == ["usage_limit_per_user"]
    assert reserve(admin, email="other@example.com")
