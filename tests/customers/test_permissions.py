"""Who can read, create, update and delete customers, and the order of checks (spec 7.2; decisions 2, 13)."""

import pytest

from tests.customers.calls import edit, expected, give_role, read, rejection

pytestmark = pytest.mark.one_database

NOBODY = 2**62  # an id that no test reaches
BEYOND = 10**20  # an id outside 64 bits


def count_all(client):
    return client.get("/customers/count", {"filter[role]": "all"}).get_json()["count"]


# --- order of checks (spec 7.2): id, existence, capability ---

ORDER_OF_CHECKS = [
    (0, "shop_api_invalid_customer_id"),
    ("000", "shop_api_invalid_customer_id"),
    (NOBODY, "shop_api_invalid_customer"),
    (2**63, "shop_api_invalid_customer"),
    (BEYOND, "shop_api_invalid_customer"),
    ("9" * 5000, "shop_api_invalid_customer"),
]


@pytest.mark.parametrize("role", ["administrator", "shop_manager", "customer", "subscriber"])
@pytest.mark.parametrize(("customer_id", "code"), ORDER_OF_CHECKS)
def test_invalid_id_precedes_the_capability(client_for, role, customer_id, code):
    client = client_for(role)
    path = f"/customers/{customer_id}"
    assert rejection(client.get(path)) == (404, code)
    assert rejection(client.delete(path)) == (404, code)
    assert rejection(client.put(path, {"customer": {"first_name": "x"}})) == (400, code)


@pytest.mark.parametrize("customer_id", [0, NOBODY, BEYOND])
def test_update_keeps_the_original_code_and_message_of_the_id_checks(admin, customer_id):
    """spec 4.2, edit rule 2: original code and message, but status 400."""
    path = f"/customers/{customer_id}"
    original, edited = admin.get(path), admin.put(path, {"customer": {}})
    assert original.get_json() == edited.get_json()
    assert (original.status_code, edited.status_code) == (404, 400)


@pytest.mark.parametrize(
    ("role", "answer"),
    [
        ("administrator", None),
        ("shop_manager", None),
        ("customer", (401, "shop_api_user_cannot_read_customer")),
        ("subscriber", (401, "shop_api_user_cannot_read_customer")),
    ],
)
def test_read_needs_list_users(client_for, make_customer, role, answer):
    customer = make_customer()
    response = client_for(role).get(f"/customers/{customer['id']}")
    if answer is None:
        assert (response.status_code, response.get_json()) == (200, {"customer": customer})
    else:
        assert rejection(response) == answer


@pytest.mark.parametrize("role", ["customer", "subscriber"])
def test_update_without_edit_users_is_400_and_changes_nothing(
    admin, client_for, make_customer, role
):
    customer = make_customer()
    answer = edit(client_for(role), customer["id"], first_name="x")
    assert rejection(answer) == (400, "shop_api_user_cannot_edit_customer")
    assert read(admin, customer["id"]) == customer


@pytest.mark.parametrize("role", ["shop_manager", "customer", "subscriber"])
def test_delete_without_delete_users_is_401_and_removes_nothing(
    admin, client_for, make_customer, role
):
    customer = make_customer()
    answer = client_for(role).delete(f"/customers/{customer['id']}")
    assert rejection(answer) == (401, "shop_api_user_cannot_delete_customer")
    assert read(admin, customer["id"]) == customer


@pytest.mark.parametrize("role", ["customer", "subscriber"])
def test_create_without_create_users_is_401_and_creates_nothing(admin, client_for, role):
    client = client_for(role)
    before = count_all(admin)
    answer = client.post("/customers", {"customer": {"email": "new@example.com"}})
    assert rejection(answer) == (401, "shop_api_user_cannot_create_customer")
    assert count_all(admin) == before


@pytest.mark.parametrize("role", ["administrator", "shop_manager"])
def test_create_and_update_with_the_capability_alone(client_for, make_customer, role):
    client = client_for(role, login="caller")
    customer = make_customer(client, email="new@example.com")
    assert customer == expected(customer, email="new@example.com")
    answer = edit(client, customer["id"], first_name="New")
    assert answer.status_code == 200
    assert answer.get_json() == {"customer": customer | {"first_name": "New"}}


@pytest.mark.parametrize(
    ("role", "body", "answer"),
    [
        ("customer", {}, (400, "shop_api_missing_customer_data")),
        ("customer", {"customer": []}, (400, "shop_api_invalid_param")),
        ("customer", {"customer": {"email": []}}, (400, "shop_api_invalid_param")),
        ("customer", {"customer": {}}, (401, "shop_api_user_cannot_create_customer")),
        ("customer", {"customer": {"email": "x"}}, (401, "shop_api_user_cannot_create_customer")),
        ("administrator", {}, (400, "shop_api_missing_customer_data")),
        ("administrator", {"customer": {}}, (400, "shop_api_missing_customer_email")),
        (
            "administrator",
            {"customer": {"username": "?", "first_name": "x"}},
            (400, "shop_api_missing_customer_email"),
        ),
        (
            "administrator",
            {"customer": {"email": None, "username": "?"}},
            (400, "shop_api_missing_customer_email"),
        ),
        (
            "administrator",
            {"customer": {"email": ""}},
            (400, "registration-error-invalid-email"),
        ),
    ],
)
def test_create_checks_in_the_specified_order(client_for, role, body, answer):
    """spec 4.2, create rules; decisions 13: wrapper key, types, capability, e-mail, account."""
    assert rejection(client_for(role).post("/customers", body)) == answer


@pytest.mark.parametrize("customer_id", [0, NOBODY])
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "shop_api_missing_customer_data"),
        ({"customer": None}, "shop_api_missing_customer_data"),
        ({"customer": []}, "shop_api_invalid_param"),
        ({"customer": {"email": []}}, "shop_api_invalid_param"),
        ({"customer": {"billing_address": {"city": {}}}}, "shop_api_invalid_param"),
    ],
)
def test_update_checks_the_body_before_the_id(client_for, customer_id, body, code):
    """decisions 13: wrapper key, types, id, capability."""
    assert rejection(client_for("customer").put(f"/customers/{customer_id}", body)) == (400, code)


# --- credentials (decisions 2, 13) ---


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/customers"),
        ("POST", "/customers"),
        ("GET", "/customers/count"),
        ("GET", "/customers/1"),
        ("PUT", "/customers/1"),
        ("DELETE", "/customers/1"),
        ("GET", "/customers/email/ann@example.com"),
        ("POST", "/customers/bulk"),
        ("PUT", "/customers/bulk"),
    ],
)
def test_operation_without_credentials_is_401(anonymous, method, path):
    response = anonymous.request(method, path, data="{")
    assert rejection(response) == (401, "shop_api_authentication_error")
    assert response.headers["WWW-Authenticate"].startswith('Basic realm="')


@pytest.mark.parametrize(
    ("permission", "method", "path"),
    [
        ("read", "POST", "/customers"),
        ("read", "PUT", "/customers/1"),
        ("read", "DELETE", "/customers/1"),
        ("read", "POST", "/customers/bulk"),
        ("read", "PUT", "/customers/bulk"),
        ("write", "GET", "/customers"),
        ("write", "GET", "/customers/count"),
        ("write", "GET", "/customers/1"),
        ("write", "GET", "/customers/email/ann@example.com"),
    ],
)
def test_key_without_the_permission_is_401(client_for, permission, method, path):
    client = client_for(permission=permission)
    assert rejection(client.request(method, path)) == (401, "shop_api_authentication_error")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", "/customers", {"GET", "HEAD", "POST"}),
        ("DELETE", "/customers", {"GET", "HEAD", "POST"}),
        ("POST", "/customers/count", {"GET", "HEAD"}),
        ("POST", "/customers/1", {"DELETE", "GET", "HEAD", "PUT"}),
        ("PATCH", "/customers/1/", {"DELETE", "GET", "HEAD", "PUT"}),
        ("PUT", "/customers/email/ann@example.com", {"GET", "HEAD"}),
        ("GET", "/customers/bulk", {"POST", "PUT"}),
        ("DELETE", "/customers/bulk", {"POST", "PUT"}),
    ],
)
def test_other_method_is_405_before_credentials(anonymous, method, path, allow):
    response = anonymous.request(method, path)
    assert rejection(response) == (405, "shop_api_method_not_allowed")
    assert set(response.headers["Allow"].split(", ")) - {"OPTIONS"} == allow


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
