"""Claiming orders of guests: which ones, their uses, events and undo (people 6)."""

import pytest

from tests.api_client import codes
from tests.factories import insert_order
from tests.persons.test_merge import events, merge


@pytest.fixture
def owner(make_customer):
    """An account with an address and another billing e-mail."""
    customer = make_customer(
        email="Anna@example.com", billing_address={"email": "office@example.com"}
    )
    return customer["id"]


def claim(client, customer_id, **body):
    return client.post(f"/customers/{customer_id}/claim", {"claim": body})


@pytest.mark.both_databases
def test_orders_with_an_address_of_the_account_are_claimed(app, admin, owner, make_coupon):
    make_coupon(code="once", usage_limit_per_user=1)
    made = admin.post(
        "/orders",
        {
            "order": {
                "billing_address": {"email": "anna@example.com"},
                "coupon_lines": [{"code": "once"}],
                "line_items": [{"product_id": 1, "quantity": 1, "price": "9"}],
            }
        },
    ).get_json()["order"]
    trashed = insert_order(
        app, billing_email="ANNA@example.com", status="trash", status_before_trash="pending"
    )
    for email in ("office@example.com", "", "other@example.com"):
        insert_order(app, billing_email=email)
    shown = admin.get(f"/customers/{owner}/claim").get_json()
    assert shown == {"claim": {"orders": 2, "order_ids": [made["id"], trashed]}}
    assert claim(admin, owner).get_json() == {"claim": {"orders": 2, "complete": True}}
    assert admin.get(f"/customers/{owner}/claim").get_json()["claim"]["orders"] == 0
    assert admin.get(f"/orders/{made['id']}").get_json()["order"]["customer_id"] == owner
    assert admin.get(f"/customers/{owner}").get_json()["customer"]["orders_count"] == 1
    (use,) = admin.get("/redemptions").get_json()["redemptions"]
    assert (use["customer_id"], use["email"]) == (owner, "anna@example.com")
    first, second = events(admin, limit=2)
    assert {first["resource_id"], second["resource_id"]} == {made["id"], trashed}
    assert first["type"] == second["type"] == "order.updated"
    assert second["changes"] == {"before": {"customer_id": 0}, "after": {"customer_id": owner}}


def test_a_claim_is_undone(app, admin, owner):
    order = insert_order(app, billing_email="anna@example.com")
    claim(admin, owner)
    (event,) = events(admin, limit=1)
    assert admin.post(f"/events/{event['id']}/undo").status_code == 200
    assert admin.get(f"/orders/{order}").get_json()["order"]["customer_id"] == 0
    assert admin.get(f"/customers/{owner}/claim").get_json()["claim"]["order_ids"] == [order]


def test_selected_orders_are_claimed(app, admin, owner, make_customer):
    first, second = (insert_order(app, billing_email="anna@example.com") for _ in range(2))
    other = insert_order(app, billing_email="other@example.com")
    of_account = insert_order(app, customer_id=make_customer(email="x@example.com")["id"])
    for wrong in (other, of_account, 2**62, -1):
        response = claim(admin, owner, order_ids=[first, wrong])
        assert response.status_code == 400
        (error,) = response.get_json()["errors"]
        assert error["code"] == "shop_api_invalid_order_id"
        assert error["param"] == "claim.order_ids[1]"
    assert claim(admin, owner, order_ids=[]).get_json()["claim"] == {"orders": 0, "complete": False}
    result = claim(admin, owner, order_ids=[second, second]).get_json()["claim"]
    assert result == {"orders": 1, "complete": False}
    assert claim(admin, owner).get_json()["claim"] == {"orders": 1, "complete": True}


def test_orders_with_the_address_of_a_merged_account_are_claimed(app, admin, owner, make_customer):
    old = make_customer(email="old@example.com")["id"]
    order = insert_order(app, billing_email="Old@example.com")
    merge(admin, owner, old)
    assert admin.get(f"/customers/{owner}/claim").get_json()["claim"]["order_ids"] == [order]
    admin.post("/customers", {"customer": {"email": "old@example.com"}})
    assert admin.get(f"/customers/{owner}/claim").get_json()["claim"]["order_ids"] == []


def test_wrong_requests_and_rights(admin, client_for, owner):
    for body, code in (
        ({}, "shop_api_missing_claim_data"),
        ({"claim": {"orders": [1]}}, "shop_api_invalid_param"),
        ({"claim": {"order_ids": ["x"]}}, "shop_api_invalid_param"),
        ({"claim": {"order_ids": [*range(1, 1002)]}}, "shop_api_invalid_param"),
    ):
        response = admin.post(f"/customers/{owner}/claim", body)
        assert codes(response) == (400, code), body
    assert codes(claim(admin, 2**62)) == (404, "shop_api_invalid_customer")
    nobody = client_for("customer", login="nobody")
    for response in (nobody.get(f"/customers/{owner}/claim"), claim(nobody, owner)):
        assert codes(response) == (401, "shop_api_user_cannot_edit_customer")
    manager = client_for("shop_manager")
    assert codes(claim(manager, admin.key.user_id)) == (401, "shop_api_user_cannot_edit_customer")
    assert claim(manager, owner).get_json()["claim"] == {"orders": 0, "complete": True}
