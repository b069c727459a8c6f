"""Merging two accounts: what moves, what is counted, and which events it writes (people 6)."""

from decimal import Decimal

import pytest
from sqlalchemy import select

from app.db.read_pool import fetch
from app.models import MERGED_ACCOUNTS, REDEMPTIONS
from tests.api_client import codes
from tests.factories import insert_order
from tests.redemptions.calls import post, rejected, reserve

ADDRESS = {"city": "Köln", "email": "billing@example.com"}


@pytest.fixture
def pair(make_customer):
    """An account to keep, and one to remove."""
    kept = make_customer(email="kept@example.com", username="kept")
    removed = make_customer(
        email="Old@Example.com", first_name="Ada", billing_address=ADDRESS, tags=["vip"]
    )
    return kept["id"], removed["id"]


def merge(client, kept, removed, **kwargs):
    return client.post(f"/customers/{kept}/merge", {"merge": {"customer_id": removed}}, **kwargs)


def preview(client, kept, removed, **kwargs):
    return client.get(f"/customers/{kept}/merge", {"customer_id": removed}, **kwargs)


def events(admin, **query):
    fields = {"fields": "id,type,resource_id,data,changes", "filter[order]": "desc"}
    return admin.get("/events", {**fields, **query}).get_json()["events"]


@pytest.mark.both_databases
def test_orders_uses_and_metadata_move(app, admin, pair, make_coupon):
    kept, removed = pair
    make_coupon(code="summer")
    order = insert_order(app, customer_id=removed, status="completed", total=Decimal(10))
    trashed = insert_order(app, customer_id=removed, status="trash", status_before_trash="pending")
    guest = insert_order(app, billing_email="OLD@example.com")
    use = reserve(admin, code="summer", reference="cart-1", customer_id=removed)
    for customer, given in ((kept, {"a": 1, "note": "Calls often."}),
                            (removed, {"a": 2, "b": [3], "note": "Prefers mail."})):  # fmt: skip
        admin.put(f"/customers/{customer}", {"customer": {"metadata": given}})
    shown = admin.get(f"/customers/{kept}").get_json()["customer"]
    response = preview(admin, kept, removed)
    assert response.get_json() == {
        "merge": {
            "customer": shown, "customer_id": removed, "orders": 2, "redemptions": 1,
            "metadata": 1, "guest_orders": 1, "reasons": [],
        }
    }  # fmt: skip
    merged = merge(admin, kept, removed)
    assert merged.status_code == 200
    found = admin.get(f"/customers/{kept}").get_json()["customer"]
    assert merged.get_json() == {"customer": found}
    assert found == shown | {
        "first_name": "Ada", "billing_address": shown["billing_address"] | ADDRESS,
        "orders_count": 1, "total_spent": "10.00", "last_order_id": order,
        "last_order_date": found["last_order_date"],
    }  # fmt: skip
    full = admin.get(f"/customers/{kept}", {"fields": "metadata,tags"}).get_json()["customer"]
    assert full == {
        "tags": ["vip"],
        "metadata": {"a": 1, "b": [3], "note": "Calls often.\n\nPrefers mail."},
    }
    assert [each["id"] for each in admin.get("/customers?tag=vip").get_json()["customers"]] == [
        kept
    ]
    assert admin.get(f"/orders/{order}").get_json()["order"]["customer_id"] == kept
    in_trash = admin.get("/orders/trash").get_json()["orders"]
    assert [(each["id"], each["customer_id"]) for each in in_trash] == [(trashed, kept)]
    assert admin.get(f"/orders/{guest}").get_json()["order"]["customer_id"] == 0
    use = admin.get(f"/redemptions/{use['id']}").get_json()["redemption"]
    assert (use["customer_id"], use["email"]) == (kept, "")


def test_the_removed_account_is_gone(admin, pair):
    kept, removed = pair
    merge(admin, kept, removed)
    assert codes(admin.get(f"/customers/{removed}")) == (404, "shop_api_invalid_customer")
    old = admin.get("/customers/email/old@example.com")
    assert codes(old) == (404, "shop_api_invalid_customer_email")
    order = admin.post("/orders", {"order": {"customer_id": removed}})
    assert codes(order) == (400, "shop_api_invalid_customer_id")
    again = merge(admin, kept, removed)
    assert codes(again) == (400, "shop_api_invalid_customer_id")
    assert admin.post("/customers", {"customer": {"email": "old@example.com"}}).status_code == 201


def test_the_events_contain_no_field_of_the_removed_account(app, admin, pair):
    kept, removed = pair
    insert_order(app, customer_id=removed)
    merge(admin, kept, removed)
    deleted, merged, updated = events(admin, limit=3)
    assert (deleted["type"], deleted["data"]) == (
        "customer.deleted",
        {"customer": {"id": removed}, "permanent": True},
    )
    assert merged["type"] == "customer.merged"
    assert merged["resource_id"] == updated["resource_id"] == kept
    assert merged["data"]["merged"] == {"id": removed, "orders": 1, "redemptions": 0}
    assert merged["data"]["customer"]["id"] == kept
    assert merged["changes"] is deleted["changes"] is None
    assert updated["type"] == "customer.updated"
    assert updated["changes"]["before"] == {
        "first_name": "", "billing_address": {"city": "", "email": ""}, "tags": [],
    }  # fmt: skip
    for event in (deleted, merged, updated):
        assert "old@example.com" not in str(event).lower()


@pytest.mark.both_databases
def test_limits_count_the_uses_of_both_accounts_and_their_addresses(admin, pair, make_coupon):
    kept, removed = pair
    persons = ({"customer_id": kept}, {"email": "kept@example.com"}, {"email": "OLD@example.com"})
    for number, used in enumerate((
        {"customer_id": removed}, {"email": "old@example.com"},
        {"customer_id": kept}, {"email": "kept@example.com"},
    )):  # fmt: skip
        make_coupon(code=f"c{number}", usage_limit_per_user=1)
        assert reserve(admin, code=f"c{number}", reference="before", **used)["id"]
    merge(admin, kept, removed)
    for number in range(4):
        for person in persons:
            body = {"code": f"c{number}", "reference": "after", **person}
            response = admin.post("/redemptions", {"redemption": body})
            assert codes(response) == (400, "shop_api_coupon_not_applicable"), (number, person)
    # until another account has the address
    other = admin.post("/customers", {"customer": {"email": "old@example.com"}}).get_json()
    assert reserve(admin, code="c2", reference="x", customer_id=other["customer"]["id"])["id"]


@pytest.mark.both_databases
def test_uses_above_a_limit_stay_when_their_order_changes(admin, pair, make_coupon):
    """Orders without an address, whose uses get that of the removed account for comparison."""
    kept, removed = pair
    make_coupon(code="once", usage_limit_per_user=1)
    orders = [
        admin.post("/orders", {"order": {
            "customer_id": customer, "status": "processing", "coupon_lines": [{"code": "once"}],
            "line_items": [{"product_id": 1, "name": "Mug", "quantity": 1, "price": "9.00"}],
        }}).get_json()["order"]["id"]
        for customer in pair
    ]  # fmt: skip
    assert merge(admin, kept, removed).status_code == 200
    for order in orders:
        done = admin.put(f"/orders/{order}", {"order": {"status": "completed"}})
        assert done.status_code == 200, done.get_json()
    other = {"customer_id": 0, "billing_address": {"email": "other@example.com"}}
    assert admin.put(f"/orders/{orders[1]}", {"order": other}).status_code == 200
    assert rejected(post(admin, "once", email="old@example.com")) == ["usage_limit_per_user"]
    assert admin.put(f"/orders/{orders[0]}", {"order": {"status": "cancelled"}}).status_code == 200
    reserve(admin, "once", email="old@example.com")


def test_only_the_first_order_counts_orders_with_an_old_address(app, admin, pair, make_coupon):
    kept, removed = pair
    make_coupon(code="first", first_order_only=True)
    make_coupon(code="mail", customer_emails=["old@example.com"])
    insert_order(app, billing_email="old@example.com", status="completed")
    merge(admin, kept, removed)
    cart = {
        "customer_id": kept,
        "coupons": ["first", "mail"],
        "items": [{"product_id": 1, "price": "5", "quantity": 1}],
    }
    found = admin.post("/coupons/evaluate", {"cart": cart}).get_json()["evaluation"]["coupons"]
    reasons = [[reason["code"] for reason in each["reasons"]] for each in found]
    assert reasons == [["not_first_order"], ["email_not_allowed"]]


def test_a_chain_of_merges_leads_to_the_last_account(admin, pair, make_customer, make_coupon):
    kept, removed = pair
    last = make_customer(email="last@example.com")["id"]
    make_coupon(code="once", usage_limit_per_user=1)
    merge(admin, kept, removed)
    merge(admin, last, kept)
    assert reserve(admin, code="once", reference="a", email="old@example.com")["id"]
    body = {"code": "once", "reference": "b", "customer_id": last}
    assert codes(admin.post("/redemptions", {"redemption": body})) == (
        400,
        "shop_api_coupon_not_applicable",
    )


def test_an_empty_address_is_filled(admin, pair):
    kept, removed = pair
    admin.put(f"/customers/{kept}", {"customer": {"email": "", "last_name": "Own"}})
    found = merge(admin, kept, removed).get_json()["customer"]
    assert (found["email"], found["first_name"], found["last_name"], found["username"]) == (
        "Old@example.com", "Ada", "Own", "kept",
    )  # fmt: skip
    by_email = admin.get("/customers/email/old@example.com")
    assert by_email.get_json()["customer"]["id"] == kept


def test_wrong_requests(admin, client_for, pair, make_customer):
    kept, removed = pair
    for body, code in (
        ({}, "shop_api_missing_merge_data"),
        ({"merge": {"customer_id": kept}}, "shop_api_invalid_customer_id"),
        ({"merge": {"customer_id": 2**62}}, "shop_api_invalid_customer_id"),
        ({"merge": {}}, "shop_api_invalid_customer_id"),
        ({"merge": {"customer": removed}}, "shop_api_invalid_param"),
    ):
        response = admin.post(f"/customers/{kept}/merge", body)
        assert codes(response) == (400, code), body
    assert codes(merge(admin, 2**62, removed)) == (404, "shop_api_invalid_customer")
    staff = client_for("shop_manager", login="staff").key.user_id
    response = merge(admin, kept, staff)
    assert response.status_code == 409
    assert codes(response) == (409, "shop_api_cannot_merge_customers")
    reasons = [each["code"] for each in response.get_json()["errors"][0]["reasons"]]
    assert reasons == ["has_keys", "has_capabilities"]
    shown = preview(admin, kept, admin.key.user_id).get_json()["merge"]["reasons"]
    assert [each["code"] for each in shown] == ["is_caller", "has_keys", "has_capabilities"]


def test_rights(admin, client_for, pair):
    kept, removed = pair
    manager, nobody = client_for("shop_manager"), client_for("customer", login="nobody")
    for response in (preview(nobody, kept, removed), merge(nobody, kept, removed)):
        assert codes(response) == (401, "shop_api_user_cannot_edit_customer")
    # An account with more capabilities than those of the caller.
    assert codes(merge(manager, admin.key.user_id, removed)) == (
        401,
        "shop_api_user_cannot_edit_customer",
    )
    assert preview(manager, kept, removed).status_code == 200
    assert merge(manager, kept, removed).status_code == 200


def test_a_changed_preview_is_not_confirmed(app, admin, pair):
    kept, removed = pair
    tag = preview(admin, kept, removed).headers["ETag"]
    insert_order(app, customer_id=removed)
    stale = merge(admin, kept, removed, headers={"If-Match": tag})
    assert codes(stale) == (412, "shop_api_precondition_failed")
    tag = preview(admin, kept, removed).headers["ETag"]
    assert merge(admin, kept, removed, headers={"If-Match": tag}).status_code == 200


def test_deleting_the_kept_account_erases_what_is_remembered_of_the_removed_one(
    app, admin, pair, make_coupon
):
    kept, removed = pair
    make_coupon(code="once", usage_limit_per_user=1)
    reserve(admin, code="once", email="old@example.com")
    admin.put(f"/customers/{removed}", {"customer": {"last_name": "Lovelace"}})
    merge(admin, kept, removed)
    assert admin.delete(f"/customers/{kept}").status_code == 200
    feed = admin.get("/events", {"fields": "id,data,changes", "resource": "customer"}).get_data(
        as_text=True
    )
    for word in ("old@example.com", "Lovelace", "Köln", "billing@example.com"):
        assert word.lower() not in feed.lower(), word
    with app.app_context():
        assert not fetch(select(MERGED_ACCOUNTS))
        (stored,) = fetch(select(REDEMPTIONS.c.email, REDEMPTIONS.c.email_normalized))
    assert (stored.email, stored.email_normalized[:7]) == ("", "erased:")
    body = {"code": "once", "reference": "again", "email": "old@example.com"}
    assert codes(admin.post("/redemptions", {"redemption": body})) == (
        400,
        "shop_api_coupon_not_applicable",
    )


def test_an_account_with_too_many_orders_is_not_removed(app, admin, pair, monkeypatch):
    monkeypatch.setattr("app.services.persons.merging.MOST_ORDERS", 1)
    kept, removed = pair
    insert_order(app, customer_id=removed)
    assert preview(admin, kept, removed).get_json()["merge"]["reasons"] == []
    insert_order(app, customer_id=removed)
    (reason,) = preview(admin, kept, removed).get_json()["merge"]["reasons"]
    assert reason["code"] == "too_many_orders"
