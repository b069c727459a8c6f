"""Limits and budgets of campaigns in changed orders, bulk requests and after expiry (campaigns 7)."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from sqlalchemy import insert

from app.api.error_handlers import as_shop_error
from app.db import session as database
from app.db.errors import TryAgain
from app.db.session import run_in_transaction
from app.models import Redemption
from tests.api_client import codes, reply
from tests.campaigns.test_campaigns import exact, figures, make, order_reasons, put
from tests.orders.calls import LINE, change, create
from tests.redemptions.calls import post, rejected, reserve

__all__ = ["exact"]  # a fixture

WELCOME = {"line_items": [LINE], "coupon_lines": [{"code": "welcome"}]}
ANN = {"email": "ann@example.com"}


def lines(order):
    return [line["id"] for line in order["line_items"]]


def test_what_one_code_of_an_order_gives_back_another_can_take(admin, make_coupon, exact):
    campaign = make(admin, budget="4")
    for code, product in (("a", 1), ("b", 2)):
        ids = {"campaign_id": campaign["id"], "product_ids": [product]}
        make_coupon(code=code, type="percent", amount="50", **ids)
    items = [{"product_id": product, "price": "4.00"} for product in (1, 2)]
    order = create(admin, line_items=items, coupon_lines=[{"code": "a"}, {"code": "b"}])
    assert figures(admin, campaign) == (2, "4.00")
    first, second = lines(order)
    grown = [{"id": first, "subtotal": "6.00"}, {"id": second, "subtotal": "2.00"}]
    change(admin, order["id"], line_items=grown)
    assert figures(admin, campaign) == (2, "4.00")
    more = {"line_items": [{"id": first, "subtotal": "6.02"}]}
    assert order_reasons(admin.put(f"/orders/{order['id']}", {"order": more})) == [
        "campaign_budget"
    ]
    exact()


def test_a_new_code_can_take_what_another_code_of_the_order_gives_back(admin, make_coupon, exact):
    campaign = make(admin, budget="2")
    for code, product in (("a", 1), ("b", 2)):
        ids = {"campaign_id": campaign["id"], "product_ids": [product]}
        make_coupon(code=code, type="percent", amount="50", **ids)
    items = [{"product_id": product, "price": "4.00"} for product in (1, 2)]
    order = create(admin, line_items=items, coupon_lines=[{"code": "a"}])
    new = {"coupon_lines": [{"code": "b"}]}
    path = f"/orders/{order['id']}"
    assert order_reasons(admin.put(path, {"order": new})) == ["campaign_budget"]
    first, second = lines(order)
    halved = [{"id": first, "subtotal": "2.00"}, {"id": second, "subtotal": "2.00"}]
    change(admin, order["id"], line_items=halved, **new)
    assert figures(admin, campaign) == (2, "2.00")
    exact()


def test_each_code_of_a_recomputed_order_keeps_its_campaign(admin, make_coupon):
    """The first code's campaign accepts the tag of the second code's campaign."""
    for code, fields in (("a", {"combines_with": ["mailing"]}), ("b", {"tags": ["mailing"]})):
        ids = {"campaign_id": make(admin, **fields)["id"]}
        make_coupon(code=code, type="fixed_cart", amount="1", **ids)
    order = create(admin, line_items=[LINE], coupon_lines=[{"code": "a"}, {"code": "b"}])
    grown = change(admin, order["id"], line_items=[{"id": lines(order)[0], "subtotal": "6.00"}])
    assert (grown["total"], len(grown["coupon_lines"])) == ("4.00", 2)


def test_an_order_with_a_use_of_a_budget_keeps_its_currency(admin, make_coupon, exact):
    campaign = make(admin)
    make_coupon(code="a", campaign_id=campaign["id"], type="percent", amount="50")
    order = create(admin, line_items=[LINE], currency="EUR", coupon_lines=[{"code": "a"}])
    put(admin, campaign, budget="100")
    grown = [{"id": lines(order)[0], "subtotal": "6.00"}]
    for given in ({}, {"line_items": grown}):
        response = admin.put(f"/orders/{order['id']}", {"order": {"currency": "USD", **given}})
        assert order_reasons(response) == ["campaign_budget"]
    exact()


def test_a_redemption_gets_all_reasons_with_the_budget_in_its_place(admin, make_coupon):
    campaign = make(admin, budget="1", active=False, ends_at="2020-01-01")
    make_coupon(code="a", campaign_id=campaign["id"])
    assert rejected(post(admin, "a", amount="1.01")) == ["campaign_budget", "paused", "expired"]
    assert rejected(post(admin, "a", amount="1.00")) == ["paused", "expired"]


def test_a_reservation_returns_again_whatever_is_left(admin, make_coupon):
    campaign = make(admin, budget="1")
    make_coupon(code="a", campaign_id=campaign["id"])
    held = reserve(admin, "a", amount="1.00")
    assert reserve(admin, "a", amount="9.00") == held


@pytest.fixture
def two_attempts(monkeypatch):
    monkeypatch.setattr(database, "MAX_ATTEMPTS", 2)


@pytest.mark.usefixtures("two_attempts")
def test_all_expired_reservations_are_released_before_a_request_is_tried_again(
    app, admin, make_coupon, exact
):
    campaign = make(admin)
    coupon = make_coupon(code="a", campaign_id=campaign["id"])
    before = datetime.now(UTC) - timedelta(days=1)
    row = {
        "coupon_id": coupon["id"], "code": "a", "email": "", "email_normalized": "",
        "amount": Decimal(1), "status": "reserved", "holds_slot": False, "created_at": before,
        "updated_at": before, "expires_at": before, "campaign_id": campaign["id"],
    }  # fmt: skip
    rows = [row | {"reference": f"cart-{number}"} for number in range(150)]
    with app.app_context():
        run_in_transaction(lambda session: session.execute(insert(Redemption), rows))
    put(admin, campaign, budget="150")
    reserve(admin, "a", amount="150")
    exact()


def test_a_request_that_conflicts_too_often_can_be_sent_again(app):
    with app.test_request_context():
        error = as_shop_error(TryAgain())
    assert (error.code, error.status) == ("shop_api_unavailable", 503)
    assert "Retry-After" in error.headers


def bulk(admin, *orders):
    response = admin.post("/orders/bulk", {"orders": list(orders)})
    assert response.status_code == 200, response.get_json()
    return response.get_json()["orders"]


def reasons(result):
    return [each["code"] for each in result.get("error", {}).get("reasons", ())]


def test_an_earlier_item_of_a_bulk_request_is_the_first_order(admin, make_coupon):
    make_coupon(code="welcome", first_order_only=True)
    welcome = {**WELCOME, "billing_address": ANN}
    paid = welcome | {"status": "processing"}
    assert [reasons(each) for each in bulk(admin, welcome, paid, paid)] == [
        [], [], ["not_first_order"],
    ]  # fmt: skip
    other = {**paid, "billing_address": {"email": "bob@example.com"}}
    assert [reasons(each) for each in bulk(admin, other, paid)] == [[], ["not_first_order"]]


def test_an_earlier_item_of_a_bulk_request_changes_what_counts(admin, make_coupon, make_customer):
    make_coupon(code="welcome", first_order_only=True)
    customer = make_customer(email="ann@example.com")
    earlier = create(admin, line_items=[LINE], customer_id=customer["id"], status="processing")
    new = {**WELCOME, "customer_id": customer["id"]}
    cancel = {"id": earlier["id"], "status": "cancelled"}
    assert [reasons(each) for each in bulk(admin, new)] == [["not_first_order"]]
    assert [reasons(each) for each in bulk(admin, cancel, new)] == [[], []]
    guest = {**WELCOME, "billing_address": ANN}
    again = {"id": earlier["id"], "status": "completed"}
    assert [reasons(each) for each in bulk(admin, again, guest)] == [[], ["not_first_order"]]


def test_the_legacy_api_ignores_the_new_filters(admin, make_coupon, make_customer):
    make_coupon(code="a")
    make_customer(email="ann@example.com")
    for path, given in (
        ("/coupons/count", {"filter[campaign]": "1"}),
        ("/customers/count", {"filter[tag]": "vip"}),
    ):
        assert reply(admin.get(f"/wc-api/v3{path}", given)) == (200, {"count": 1})
    paused = admin.get("/wc-api/v3/coupons/count", {"filter[state]": "paused"})
    assert codes(paused) == (400, "woocommerce_api_invalid_param")


def test_a_deletion_of_a_customer_locks_the_campaigns_of_its_uses_first(
    admin, make_coupon, make_customer, statements
):
    campaign = make(admin, usage_limit_per_user=1)
    make_coupon(code="a", campaign_id=campaign["id"])
    customer = make_customer(email="ann@example.com")
    reserve(admin, "a", "1", customer_id=customer["id"])
    statements.clear()
    assert admin.delete(f"/customers/{customer['id']}").status_code == 200
    tables = [
        table
        for statement in statements
        for table, begin in (("campaigns", "SELECT campaigns"), ("redemptions", "UPDATE redempt"))
        if statement.startswith(begin)
    ]
    assert tables.index("campaigns") < tables.index("redemptions")
    assert rejected(post(admin, "a", "2", **ANN)) == ["usage_limit_per_user"]


def test_a_use_that_is_taken_again_gets_the_reasons_of_coupon_and_campaign(
    admin, make_coupon, expire, exact
):
    campaign = make(admin, budget="1")
    ids = {"campaign_id": campaign["id"], "type": "fixed_cart", "amount": "1"}
    make_coupon(code="a", usage_limit=1, **ids)
    order = create(admin, line_items=[LINE], coupon_lines=[{"code": "a"}])
    change(admin, order["id"], status="cancelled")
    first = reserve(admin, "a", "1", amount="1.00")
    expire(first)
    reserve(admin, "a", "2", amount="1.00")
    both = ["usage_limit", "campaign_budget"]
    assert rejected(admin.post(f"/redemptions/{first['id']}/confirm")) == both
    again = admin.put(f"/orders/{order['id']}", {"order": {"status": "completed"}})
    assert order_reasons(again) == both
    exact()
