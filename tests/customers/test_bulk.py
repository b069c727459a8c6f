"""Bulk requests of customers, beside what is the same for all records (tests/api/test_bulk.py)."""

import pytest

from tests.api_client import failed_item, without_key
from tests.customers.calls import NOBODY, avatar, bulk, read


@pytest.mark.both_databases
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_bulk_results_are_in_the_order_of_the_items(admin, make_customer, method):
    ann, bob = make_customer(email="ann@example.com"), make_customer(email="bob@example.com")
    results = bulk(
        admin,
        {"email": "new@example.com", "first_name": "New", "billing_address": {"city": "Oslo"}},
        {"id": bob["id"], "last_name": "Moe"},
        {"email": "nonsense"},
        {"id": NOBODY, "last_name": "Moe"},
        {"id": ann["id"], "email": "lee@example.com"},
        {},
        {"email": "last@example.com"},
        method=method,
    )
    new, last = read(admin, results[0]["id"]), read(admin, results[6]["id"])
    assert (new["email"], new["first_name"]) == ("new@example.com", "New")
    assert (new["billing_address"]["city"], last["email"]) == ("Oslo", "last@example.com")
    edited = {"email": "lee@example.com", "avatar_url": avatar("lee@example.com")}
    assert results[:2] == [new, bob | {"last_name": "Moe"}]
    assert failed_item(results[2]) == (0, "registration-error-invalid-email")
    assert failed_item(results[3]) == (NOBODY, "shop_api_invalid_customer")
    assert results[4] == ann | edited == read(admin, ann["id"])
    assert failed_item(results[5]) == (0, "shop_api_missing_customer_email")
    assert results[6:] == [last]


def test_bulk_results_have_the_message_of_the_single_operation(admin, make_customer):
    make_customer(email="ann@example.com", username="ann")
    for item in (
        {},
        {"email": "x"},
        {"email": "ann@example.com"},
        {"email": "a@b.co", "username": "ann"},
    ):
        (single,) = admin.post("/customers", {"customer": item}).get_json()["errors"]
        assert bulk(admin, item) == [{"id": 0, "error": single}]
    (single,) = admin.get(f"/customers/{NOBODY}").get_json()["errors"]
    assert bulk(admin, {"id": NOBODY}) == [{"id": NOBODY, "error": single}]


def test_bulk_rejects_updates_of_accounts_with_more_capabilities(admin, client_for, make_customer):
    manager, customer = client_for("shop_manager"), make_customer()
    boss = read(admin, admin.key.user_id)
    failed, edited, own, created = bulk(
        manager,
        {"id": boss["id"], "first_name": "x", "password": "stolen", "email": "me@example.com"},
        {"id": customer["id"], "first_name": "Ann"},
        {"id": manager.key.user_id, "first_name": "Me"},
        {"email": "me@example.com"},
    )
    assert failed_item(failed) == (boss["id"], "shop_api_user_cannot_edit_customer")
    assert edited == customer | {"first_name": "Ann"}
    assert (own["first_name"], created["email"]) == ("Me", "me@example.com")
    assert read(admin, boss["id"]) == boss


@pytest.mark.both_databases
def test_single_writes_send_as_many_statements_as_a_bulk_of_one(
    admin, make_customer, statements, database_url
):
    statements.clear()
    customer = make_customer()
    assert len(without_key(statements)) == 6
    statements.clear()
    admin.put(f"/customers/{customer['id']}", {"customer": {"first_name": "x"}})
    assert len(without_key(statements)) == 5
    statements.clear()
    admin.delete(f"/customers/{customer['id']}")
    # The account, its roles, its webhooks, the erasure of its data (19, and on PostgreSQL the lock of
    # refused carts), the deletion, the event.
    assert len(without_key(statements)) == (24 if "sqlite" in database_url else 25)
