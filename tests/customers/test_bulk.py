"""Bulk requests of customers (spec 4.3): results in the order of the items."""

import pytest

from tests.api_client import without_key
from tests.customers.calls import NOBODY, avatar, bulk, emails, outcome, read, refusal

TOO_LARGE = (413, "shop_api_customers_request_entity_too_large", None)


# --- results ---


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
    assert outcome(results[2]) == (0, "registration-error-invalid-email")
    assert outcome(results[3]) == (NOBODY, "shop_api_invalid_customer")
    assert results[4] == ann | edited == read(admin, ann["id"])
    assert outcome(results[5]) == (0, "shop_api_missing_customer_email")
    assert results[6:] == [last]


@pytest.mark.parametrize("path", ["/customers/bulk", "/customers/bulk/"])
def test_bulk_without_items_returns_no_results(admin, path):
    response = admin.post(path, {"customers": []})
    assert (response.status_code, response.get_json()) == (200, {"customers": []})


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


# --- which items are edits ---


def test_bulk_item_without_an_id_is_a_create(admin):
    for number, chosen in enumerate([{}, {"id": None}, {"id": 0}, {"id": "0"}, {"id": ""}]):
        (result,) = bulk(admin, chosen | {"email": f"c{number}@example.com"})
        assert result == read(admin, result["id"])
        assert len(emails(admin)) == number + 1
    for spelling, name in ((int, "Ann"), (str, "Bea")):
        (edited,) = bulk(admin, {"id": spelling(result["id"]), "first_name": name})
        assert edited == result | {"first_name": name} == read(admin, result["id"])


def test_bulk_item_with_an_id_that_selects_nothing_fails(admin):
    negative, unknown = "shop_api_invalid_customer_id", "shop_api_invalid_customer"
    wanted = {number: (number, negative) for number in (-1, -(2**70))}
    wanted |= {number: (number, unknown) for number in (NOBODY, 2**63, 10**30)}
    wanted |= {str(NOBODY): (NOBODY, unknown)}
    wrong = ["abc", "5x", "-5", "1.0", "٣", " ", 1.5, True, False, [], {}, [1]]
    ids = [*wanted, *wrong]
    items = [{"id": each, "email": f"c{place}@example.com"} for place, each in enumerate(ids)]
    *failed, created = bulk(admin, *items, {"email": "ok@example.com"})
    wanted = [*wanted.values(), *[(0, "shop_api_invalid_param")] * len(wrong)]
    assert [outcome(result) for result in failed] == wanted
    assert created == read(admin, created["id"])
    assert emails(admin) == ["ok@example.com"]


# --- items that fail ---


def test_bulk_item_that_is_not_an_object_fails_alone(admin):
    items = [None, 5, 0, "x", "", [], [{"email": "a@example.com"}], True, 1.5]
    *failed, created = bulk(admin, *items, {"email": "ok@example.com"})
    assert {outcome(result) for result in failed} == {(0, "shop_api_invalid_param")}
    assert created == read(admin, created["id"])
    assert emails(admin) == ["ok@example.com"]


@pytest.mark.parametrize(
    ("item", "code"),
    [
        ({"first_name": "x"}, "shop_api_missing_customer_email"),
        ({"email": None}, "shop_api_missing_customer_email"),
        ({"email": ""}, "registration-error-invalid-email"),
        ({"email": "nonsense"}, "registration-error-invalid-email"),
        ({"email": "TAKEN@example.com"}, "registration-error-email-exists"),
        ({"email": "a@example.com", "username": "?"}, "registration-error-invalid-username"),
        ({"email": "a@example.com", "username": "Taken"}, "registration-error-username-exists"),
        ({"email": []}, "shop_api_invalid_param"),
        ({"email": "a@example.com", "first_name": {}}, "shop_api_invalid_param"),
        ({"email": "a@example.com", "last_name": "\0"}, "shop_api_invalid_param"),
        ({"email": "a@example.com", "billing_address": []}, "shop_api_invalid_param"),
        ({"email": "a@example.com", "password": True}, "shop_api_invalid_param"),
        ({"customer": {"email": "a@example.com"}}, "shop_api_missing_customer_email"),
    ],
)
def test_bulk_create_that_fails_stores_nothing_of_its_own(admin, make_customer, item, code):
    make_customer(email="taken@example.com", username="taken")
    before, failed, after = bulk(
        admin, {"email": "before@example.com"}, item, {"email": "after@example.com"}
    )
    assert outcome(failed) == (0, code)
    assert (before, after) == (read(admin, before["id"]), read(admin, after["id"]))
    assert emails(admin) == ["taken@example.com", "before@example.com", "after@example.com"]


@pytest.mark.parametrize(
    "changes",
    [{"email": []}, {"last_name": "\0"}, {"first_name": "x", "shipping_address": "x"}],
)
def test_bulk_update_that_fails_changes_nothing_of_its_own(admin, make_customer, changes):
    ann, bob = make_customer(), make_customer()
    failed, edited = bulk(admin, changes | {"id": ann["id"]}, {"id": bob["id"], "last_name": "Moe"})
    assert outcome(failed) == (ann["id"], "shop_api_invalid_param")
    assert edited == bob | {"last_name": "Moe"}
    assert read(admin, ann["id"]) == ann


def test_bulk_failure_names_every_wrong_field(admin):
    (failed,) = bulk(admin, {"email": [], "billing_address": {"city": {}}})
    assert outcome(failed) == (0, "shop_api_invalid_param")
    assert "email" in failed["error"]["message"]
    assert "billing_address.city" in failed["error"]["message"]


# --- capabilities, item by item ---


def test_bulk_checks_the_capability_of_each_item(admin, client_for, make_customer):
    customer = make_customer()
    create, wrong, edit, unknown, negative = bulk(
        client_for("customer"),
        {"email": "new@example.com"},
        {"email": []},
        {"id": customer["id"], "first_name": "x"},
        {"id": NOBODY, "first_name": "x"},
        {"id": -5},
    )
    assert outcome(create) == (0, "shop_api_user_cannot_create_customer")
    assert outcome(wrong) == (0, "shop_api_invalid_param")
    assert outcome(edit) == (customer["id"], "shop_api_user_cannot_edit_customer")
    assert outcome(unknown) == (NOBODY, "shop_api_invalid_customer")
    assert outcome(negative) == (-5, "shop_api_invalid_customer_id")
    assert read(admin, customer["id"]) == customer
    assert "new@example.com" not in emails(admin)


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
    assert outcome(failed) == (boss["id"], "shop_api_user_cannot_edit_customer")
    assert edited == customer | {"first_name": "Ann"}
    assert (own["first_name"], created["email"]) == ("Me", "me@example.com")
    assert read(admin, boss["id"]) == boss


# --- the body ---


@pytest.mark.parametrize("role", ["administrator", "customer"])
def test_bulk_without_the_wrapper_key_lacks_data(client_for, role):
    client, null = client_for(role), '{"customers": null}'
    for body in (
        "",
        "{}",
        "[]",
        '[{"email": "a@b.co"}]',
        '"x"',
        "5",
        "null",
        null,
        '{"customer": {}}',
    ):
        response = client.request("POST", "/customers/bulk", data=body)
        assert refusal(response) == (400, "shop_api_missing_customers_data", None), body


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_bulk_wrapper_that_is_not_an_array_is_rejected(admin, method):
    for items in ({}, {"email": "a@example.com"}, "x", "", 0, 5, True, False):
        response = admin.request(method, "/customers/bulk", json={"customers": items})
        assert refusal(response) == (400, "shop_api_invalid_param", "customers"), items


# --- limits ---


@pytest.mark.both_databases
def test_bulk_takes_a_hundred_items(admin):
    items = [{"email": f"c{number}@example.com"} for number in range(100)]
    results = bulk(admin, *items)
    assert [result["email"] for result in results] == [item["email"] for item in items]
    assert emails(admin) == [item["email"] for item in items]


@pytest.mark.parametrize("role", ["administrator", "customer"])
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_bulk_of_more_than_a_hundred_items_stores_nothing(admin, client_for, role, method):
    client = client_for(role, login="caller")
    for items in ([{"email": f"c{number}@example.com"} for number in range(101)], [None] * 101):
        response = client.request(method, "/customers/bulk", json={"customers": items})
        assert refusal(response) == TOO_LARGE
        assert "100" in response.get_json()["errors"][0]["message"]
    assert "c0@example.com" not in emails(admin)


# --- statements ---


@pytest.mark.both_databases
@pytest.mark.parametrize("count", [1, 3])
def test_bulk_create_sends_six_statements(admin, statements, count):
    """The accounts, their roles, the users, the new roles, the results and the events."""
    statements.clear()
    bulk(admin, *({"email": f"c{number}@example.com"} for number in range(count)))
    assert len(without_key(statements)) == 6


@pytest.mark.both_databases
@pytest.mark.parametrize("count", [1, 3])
def test_bulk_update_sends_five_statements(admin, make_customer, statements, count):
    """The accounts, their roles, the changes, the results and the events."""
    customers = [make_customer() for _ in range(count)]
    statements.clear()
    bulk(admin, *({"id": customer["id"], "first_name": "x"} for customer in customers))
    assert len(without_key(statements)) == 5


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
    # The account, its roles, its webhooks, the erasure of its data (26, and on PostgreSQL the lock of
    # refused carts), the deletion, the event.
    assert len(without_key(statements)) == (31 if "sqlite" in database_url else 32)
