"""Who can update and delete which customers, and the order of checks (spec 7.2; decisions 2, 13).

Which roles and keys can call which operation is the table in ``tests/auth/test_permissions.py``.
"""

import pytest

from app.db.session import db
from tests.customers.calls import NOBODY, edit, expected, give_role, read, rejection

pytestmark = pytest.mark.one_database

BEYOND = 10**20  # an id outside 64 bits


# --- order of checks (spec 7.2): id, existence, capability ---


@pytest.mark.parametrize("role", ["administrator", "shop_manager", "customer", "subscriber"])
def test_invalid_id_precedes_the_capability(client_for, role):
    """spec 4.2, edit rule 2: the same code and message, but status 400."""
    client = client_for(role)
    zero, unknown = "shop_api_invalid_customer_id", "shop_api_invalid_customer"
    numbers = {0: zero, "000": zero} | dict.fromkeys((NOBODY, 2**63, BEYOND, "9" * 5000), unknown)
    for customer_id, code in numbers.items():
        path = f"/customers/{customer_id}"
        original, edited = client.get(path), client.put(path, {"customer": {"first_name": "x"}})
        assert rejection(original) == rejection(client.delete(path)) == (404, code)
        assert rejection(edited) == (400, code)
        assert original.get_json() == edited.get_json()


@pytest.mark.parametrize("role", ["administrator", "shop_manager"])
def test_create_and_update_with_the_capability_alone(client_for, make_customer, role):
    client = client_for(role, login="caller")
    customer = make_customer(client, email="new@example.com")
    assert customer == expected(customer, email="new@example.com")
    answer = edit(client, customer["id"], first_name="New")
    assert answer.status_code == 200
    assert answer.get_json() == {"customer": customer | {"first_name": "New"}}


@pytest.mark.parametrize(
    ("role", "body", "status", "code"),
    [
        ("customer", {}, 400, "shop_api_missing_customer_data"),
        ("customer", {"customer": []}, 400, "shop_api_invalid_param"),
        ("customer", {"customer": {"email": []}}, 400, "shop_api_invalid_param"),
        ("customer", {"customer": {}}, 401, "shop_api_user_cannot_create_customer"),
        ("customer", {"customer": {"email": "x"}}, 401, "shop_api_user_cannot_create_customer"),
        ("administrator", {}, 400, "shop_api_missing_customer_data"),
        ("administrator", {"customer": {}}, 400, "shop_api_missing_customer_email"),
        ("administrator", {"customer": {"username": "?"}}, 400, "shop_api_missing_customer_email"),
        (
            "administrator",
            {"customer": {"email": None, "username": "?"}},
            400,
            "shop_api_missing_customer_email",
        ),
        ("administrator", {"customer": {"email": ""}}, 400, "registration-error-invalid-email"),
    ],
)
def test_create_checks_in_the_specified_order(client_for, role, body, status, code):
    """spec 4.2, create rules; decisions 13: wrapper key, types, capability, e-mail, account."""
    assert rejection(client_for(role).post("/customers", body)) == (status, code)


def test_update_checks_the_body_before_the_id(client_for):
    """decisions 13: wrapper key, types, id, capability."""
    client, missing, wrong = client_for("customer"), "missing_customer_data", "invalid_param"
    for body, code in (
        ({}, missing),
        ({"customer": None}, missing),
        ({"customer": []}, wrong),
        ({"customer": {"email": []}}, wrong),
        ({"customer": {"billing_address": {"city": {}}}}, wrong),
    ):
        for customer_id in (0, NOBODY):
            response = client.put(f"/customers/{customer_id}", body)
            assert rejection(response) == (400, f"shop_api_{code}"), body


# --- credentials (decisions 2, 13) ---


# --- who may change whom (decisions 2: no escalation) ---


@pytest.mark.parametrize(
    ("caller", "roles", "may"),
    [
        ("administrator", ["administrator"], True),
        ("administrator", ["shop_manager"], True),
        ("administrator", ["customer"], True),
        ("shop_manager", ["administrator"], False),
        ("shop_manager", ["customer", "administrator"], False),
        ("shop_manager", ["shop_manager", "administrator"], False),
        ("shop_manager", ["shop_manager"], True),
        ("shop_manager", ["customer", "shop_manager"], True),
        ("shop_manager", ["subscriber"], True),
        ("shop_manager", ["customer", "gardener"], True),
        ("customer", ["customer"], False),
        ("customer", ["subscriber"], False),
    ],
)
def test_update_of_an_account_with_roles(app, admin, client_for, caller, roles, may):
    target = client_for(roles[0], login="target").key.user_id
    for position, role in enumerate(roles[1:], 1):
        give_role(app, target, role, position)
    before = read(admin, target)
    changes = {"first_name": "New", "password": "a new one"}
    response = edit(client_for(caller, login="caller"), target, **changes)
    if may:
        wanted = before | {"first_name": "New"}
        assert (response.status_code, response.get_json()) == (200, {"customer": wanted})
    else:
        wanted = before
        assert rejection(response) == (400, "shop_api_user_cannot_edit_customer")
    assert read(admin, target) == wanted


@pytest.mark.parametrize(
    "roles", [["administrator"], ["shop_manager"], ["customer", "administrator"]]
)
def test_delete_of_an_account_with_roles_by_an_administrator(app, admin, client_for, roles):
    target = client_for(roles[0], login="target").key.user_id
    for position, role in enumerate(roles[1:], 1):
        give_role(app, target, role, position)
    response = admin.delete(f"/customers/{target}")
    assert (response.status_code, response.get_json()) == (
        200,
        {"message": "Permanently deleted customer"},
    )
    assert rejection(admin.get(f"/customers/{target}")) == (404, "shop_api_invalid_customer")


def test_update_of_the_first_account_by_a_shop_manager(app, client_for):
    with app.app_context(), db.engine.begin() as connection:  # other tests have used its ID
        connection.exec_driver_sql("DELETE FROM sqlite_sequence WHERE name = 'users'")
    assert client_for().key.user_id == 1
    response = edit(client_for("shop_manager"), 1, first_name="New")
    assert rejection(response) == (400, "shop_api_user_cannot_edit_customer")


@pytest.mark.parametrize("target", ["administrator", "shop_manager", "customer"])
def test_delete_by_a_shop_manager_is_rejected_for_every_account(admin, client_for, target):
    target_id = client_for(target, login="target").key.user_id
    response = client_for("shop_manager", login="caller").delete(f"/customers/{target_id}")
    assert rejection(response) == (401, "shop_api_user_cannot_delete_customer")
    assert read(admin, target_id)["username"] == "target"


@pytest.mark.parametrize("role", ["administrator", "shop_manager"])
def test_update_of_the_own_account_is_allowed(client_for, role):
    client = client_for(role, login="caller")
    response = edit(client, client.key.user_id, first_name="Me", email="me@example.com")
    assert response.status_code == 200
    body = response.get_json()
    wanted = {"email": "me@example.com", "first_name": "Me", "username": "caller", "role": role}
    assert body == {"customer": expected(body["customer"], **wanted)}


@pytest.mark.parametrize(
    ("role", "answer"),
    [
        ("administrator", (400, "shop_api_cannot_delete_customer")),
        ("shop_manager", (401, "shop_api_user_cannot_delete_customer")),
        ("customer", (401, "shop_api_user_cannot_delete_customer")),
    ],
)
def test_delete_of_the_own_account_is_rejected_after_the_capability(
    admin, client_for, role, answer
):
    """decisions 13: deleting one's own account, capability first."""
    client = client_for(role, login="caller")
    assert rejection(client.delete(f"/customers/{client.key.user_id}")) == answer
    assert read(admin, client.key.user_id)["username"] == "caller"
