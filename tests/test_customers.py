"""Single customers: read, create, update, delete and permissions (spec 4.2, 7.2)."""

import hashlib
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from conftest import without_key
from sqlalchemy import update

from app.db.session import run_in_transaction
from app.models import User, UserRole
from app.models.user import role_of

NOBODY = 2**62  # an id that no test reaches
BEYOND = 10**20  # an id outside 64 bits

SHIPPING = {
    "first_name": "Ship",
    "last_name": "Ping",
    "company": "Sea Ltd",
    "address_1": "1 Quay",
    "address_2": "Dock 2",
    "city": "Bergen",
    "state": "Vestland",
    "postcode": "5003",
    "country": "NO",
}
BILLING = {
    "first_name": "Bill",
    "last_name": "Ing",
    "company": "Land Ltd",
    "address_1": "3 Road",
    "address_2": "Floor 4",
    "city": "Oslo",
    "state": "Viken",
    "postcode": "0150",
    "country": "NO",
    "email": "bill@example.org",
    "phone": "+47 555 01 234",
}
FULL = {
    "email": "Ann.Lee@example.com",
    "username": "ann",
    "first_name": "Ann",
    "last_name": "Lee",
    "billing_address": BILLING,
    "shipping_address": SHIPPING,
}


def avatar(email):
    digest = hashlib.md5(email.lower().encode()).hexdigest()
    return f"https://secure.gravatar.com/avatar/{digest}?s=96&d=mm&r=g"


def expected(got, **over):
    """The object of a new customer, with its two generated values."""
    email = over["email"]
    return {
        "id": got["id"],
        "created_at": got["created_at"],
        "email": email,
        "first_name": "",
        "last_name": "",
        "username": email.partition("@")[0],
        "role": "customer",
        "last_order_id": None,
        "last_order_date": None,
        "orders_count": 0,
        "total_spent": "0.00",
        "avatar_url": avatar(email),
        "billing_address": dict.fromkeys(BILLING, ""),
        "shipping_address": dict.fromkeys(SHIPPING, ""),
    } | over


def rejection(response):
    """Return the status of an error response and the code of its only entry."""
    (entry,) = response.get_json()["errors"]
    return response.status_code, entry["code"]


def read(client, customer_id):
    response = client.get(f"/customers/{customer_id}")
    assert response.status_code == 200, response.get_json()
    return response.get_json()["customer"]


def edit(client, customer_id, **changes):
    return client.put(f"/customers/{customer_id}", {"customer": changes})


def count_all(client):
    return client.get("/customers/count", {"filter[role]": "all"}).get_json()["count"]


def give_role(app, user_id, role, position):
    with app.app_context():

        def give(session):
            registered_at = session.get_one(User, user_id).created_at
            row = role_of(user_id, role, registered_at)
            session.add(UserRole(**row | {"position": position}))

        run_in_transaction(give)


# --- create and read ---


def test_create_with_every_field_returns_the_customer(admin):
    response = admin.post("/customers", {"customer": FULL})
    assert response.status_code == 201
    body = response.get_json()
    assert body == {"customer": expected(body["customer"], **FULL)}


def test_create_with_only_an_email_fills_in_the_defaults(admin):
    response = admin.post("/customers", {"customer": {"email": "solo@example.com"}})
    assert response.status_code == 201
    body = response.get_json()
    assert body == {"customer": expected(body["customer"], email="solo@example.com")}


def test_create_returns_the_same_as_a_read(admin, make_customer):
    customer = make_customer(**FULL)
    by_id = admin.get(f"/customers/{customer['id']}")
    by_email = admin.get("/customers/email/Ann.Lee@example.com")
    assert by_id.get_json() == by_email.get_json() == {"customer": customer}
    assert by_id.status_code == by_email.status_code == 200


def test_create_dates_the_account_now_in_utc(make_customer):
    before = datetime.now(UTC).replace(microsecond=0)
    created_at = make_customer()["created_at"]
    after = datetime.now(UTC)
    moment = datetime.strptime(created_at, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert before <= moment <= after


def test_create_ignores_what_it_does_not_know(admin):
    sent = {
        "email": "known@example.com",
        "id": 7,
        "role": "administrator",
        "roles": ["administrator"],
        "created_at": "2001-01-01T00:00:00Z",
        "orders_count": 9,
        "total_spent": "9.00",
        "avatar_url": "https://example.com/x.png",
        "nonsense": [{}],
    }
    customer = admin.post("/customers", {"customer": sent, "other": 1}).get_json()["customer"]
    assert customer == expected(customer, email="known@example.com")
    assert customer["id"] != 7
    assert not customer["created_at"].startswith("2001")


def test_create_ignores_the_fields_parameter(admin):
    """decisions 6: `fields` applies to the objects of a GET."""
    response = admin.post("/customers?fields=id", {"customer": {"email": "all@example.com"}})
    body = response.get_json()
    assert body == {"customer": expected(body["customer"], email="all@example.com")}


@pytest.mark.parametrize("path", ["/customers/{id}", "/customers/{id}/", "/customers/00{id}"])
def test_read_finds_the_id_in_every_spelling(admin, make_customer, path):
    customer = make_customer()
    response = admin.get(path.format(**customer))
    assert (response.status_code, response.get_json()) == (200, {"customer": customer})


def test_head_responds_like_get_without_a_body(admin, make_customer):
    path = f"/customers/{make_customer()['id']}"
    head, get = admin.request("HEAD", path), admin.get(path)
    assert (head.status_code, head.data) == (200, b"")
    assert head.headers["Content-Length"] == get.headers["Content-Length"]


@pytest.mark.parametrize(
    "path", ["/customers/-1", "/customers/abc", "/customers/1.5", "/customers/٣"]
)
def test_id_without_digits_has_no_route(admin, path):
    assert rejection(admin.get(path)) == (404, "shop_api_no_route")


@pytest.mark.parametrize("role", ["administrator", "shop_manager", "customer", "subscriber"])
def test_accounts_with_any_role_are_found(admin, client_for, role):
    user_id = client_for(role, login="someone").key.user_id
    edit(admin, user_id, email="someone@example.com")
    customer = read(admin, user_id)
    assert customer == expected(customer, email="someone@example.com", role=role)
    by_email = admin.get("/customers/email/someone@example.com")
    assert by_email.get_json() == {"customer": customer}


def test_read_shows_the_first_of_several_roles(app, admin, make_customer):
    customer = make_customer()
    give_role(app, customer["id"], "shop_manager", 1)
    give_role(app, customer["id"], "administrator", -1)
    assert read(admin, customer["id"]) == customer | {"role": "administrator"}


def test_avatar_is_of_the_lower_cased_email(make_customer):
    assert make_customer(email="MiXed@example.com")["avatar_url"] == avatar("mixed@example.com")


def test_avatar_is_null_when_the_setting_is_off(admin, client_with, make_customer):
    customer = make_customer()
    without = client_with(SHOP_GRAVATAR=False)
    assert read(without, customer["id"]) == customer | {"avatar_url": None}
    assert edit(without, customer["id"]).get_json()["customer"] == customer | {"avatar_url": None}
    assert read(admin, customer["id"]) == customer


# --- by e-mail ---


@pytest.mark.parametrize(
    "email",
    [
        "ann@example.com",
        "ann+tag@example.com",
        "Ann.LEE@example.com",
        "o'hara@example.com",
        "a/b@example.com",
        "/slash@example.com",
        "a//b@example.com",
        "100%@example.com",
        "what?@example.com",
        "c#@example.com",
        "x&y=z@example.com",
        "{braces}@example.com",
        "ann@shop.test",
        "ann@shop.local",
        "ünal@example.com",
        "用户@例子.公司",
        "हिन्दी@example.com",
    ],
)
def test_by_email_finds_the_account(admin, make_customer, email):
    customer = make_customer(email=email)
    make_customer()
    encoded = admin.get(f"/customers/email/{quote(email, safe='')}")
    assert (encoded.status_code, encoded.get_json()) == (200, {"customer": customer})
    slashed = admin.get(f"/customers/email/{quote(email, safe='')}/")
    assert (slashed.status_code, slashed.get_json()) == (200, {"customer": customer})
    plain = admin.get(f"/customers/email/{quote(email, safe='/+@')}")
    assert (plain.status_code, plain.get_json()) == (200, {"customer": customer})


@pytest.mark.parametrize(
    "path",
    [
        "ann+tag@example.com",
        "ann%2Btag@example.com",
        "ann%2btag%40example%2ecom",
        "ANN+TAG@EXAMPLE.COM",
        "aNN%2BTag@Example.Com/",
    ],
)
def test_by_email_reads_every_spelling_of_an_address(admin, make_customer, path):
    customer = make_customer(email="Ann+tag@example.com")
    response = admin.get(f"/customers/email/{path}")
    assert (response.status_code, response.get_json()) == (200, {"customer": customer})


@pytest.mark.parametrize(
    "path",
    [
        "nobody@example.com",
        "ann",
        "ann@",
        "@example.com",
        "ann@example",
        "ann%20tag@example.com",
        "ann@example.com%20",
        "%20ann@example.com",
        "ann@example.com,other@example.com",
        "ann@example.com%00",
        "%00",
        "%FF%FE@example.com",
        "%C3%28@example.com",
        "%25",
        "*@example.com",
        "%25@example.com",
        "_nn@example.com",
        "%3Cann@example.com%3E",
        "'%20OR%20''='",
        "ann@example.com/orders",
        "count",
        "1",
        "x" * 300 + "@example.com",
    ],
)
def test_by_email_of_no_account_is_404(admin, make_customer, path):
    make_customer(email="ann@example.com")
    assert rejection(admin.get(f"/customers/email/{path}")) == (
        404,
        "shop_api_invalid_customer_email",
    )


@pytest.mark.parametrize("path", ["/customers/email", "/customers/email/"])
def test_by_email_without_an_email_has_no_route(admin, path):
    """spec 4.2: `{email}` is any non-empty string."""
    assert rejection(admin.get(path)) == (404, "shop_api_no_route")


def test_by_email_never_finds_an_account_without_an_email(admin, client_for):
    client_for("customer", login="mute")
    assert rejection(admin.get("/customers/email/%20")) == (404, "shop_api_invalid_customer_email")


@pytest.mark.parametrize("role", ["customer", "subscriber"])
@pytest.mark.parametrize(
    ("email", "answer"),
    [
        ("nonsense", (404, "shop_api_invalid_customer_email")),
        ("nobody@example.com", (404, "shop_api_invalid_customer_email")),
        ("ann@example.com", (401, "shop_api_user_cannot_read_customer")),
    ],
)
def test_by_email_checks_existence_before_the_capability(
    client_for, make_customer, role, email, answer
):
    make_customer(email="ann@example.com")
    assert rejection(client_for(role).get(f"/customers/email/{email}")) == answer


# --- order of checks (spec 7.2): id, existence, capability ---

ORDER_OF_CHECKS = [
    (0, "shop_api_invalid_customer_id"),
    ("000", "shop_api_invalid_customer_id"),
    (NOBODY, "shop_api_invalid_customer"),
    (2**63, "shop_api_invalid_customer"),
    (BEYOND, "shop_api_invalid_customer"),
    ("9" * 5000, "shop_api_invalid_customer"),
]


@pytest.mark.one_database
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


@pytest.mark.one_database
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


@pytest.mark.one_database
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


@pytest.mark.one_database
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


@pytest.mark.one_database
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


# --- edit ---


@pytest.mark.parametrize(
    "changes",
    [
        {"first_name": "Bea"},
        {"last_name": "Moe"},
        {"first_name": "", "last_name": ""},
        {"email": "bea@example.com", "avatar_url": avatar("bea@example.com")},
        {"billing_address": BILLING | {"city": "Moss"}},
        {"shipping_address": SHIPPING | {"city": "Moss"}},
    ],
)
def test_update_changes_only_what_is_supplied(admin, make_customer, changes):
    customer, other = make_customer(**FULL), make_customer()
    response = edit(admin, customer["id"], **changes)
    assert (response.status_code, response.get_json()) == (200, {"customer": customer | changes})
    assert read(admin, customer["id"]) == customer | changes
    assert read(admin, other["id"]) == other


@pytest.mark.parametrize("part", BILLING)
def test_update_of_one_billing_part_leaves_the_others(admin, make_customer, part):
    customer = make_customer(**FULL)
    edit(admin, customer["id"], billing_address={part: "new"})
    assert read(admin, customer["id"]) == customer | {"billing_address": BILLING | {part: "new"}}


@pytest.mark.parametrize("part", SHIPPING)
def test_update_of_one_shipping_part_leaves_the_others(admin, make_customer, part):
    customer = make_customer(**FULL)
    edit(admin, customer["id"], shipping_address={part: "new"})
    assert read(admin, customer["id"]) == customer | {"shipping_address": SHIPPING | {part: "new"}}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        dict.fromkeys(FULL),
        {"password": None},
        {"billing_address": {}},
        {"shipping_address": {}},
        {"billing_address": dict.fromkeys(BILLING), "shipping_address": dict.fromkeys(SHIPPING)},
        {"shipping_address": {"email": "ship@example.com", "phone": "1"}},
        {"billing_address": {"vat": "1", "City": "x"}},
        {"username": "other"},
        {"id": 1, "created_at": "2001-01-01T00:00:00Z", "role": "administrator", "x": 1},
        {"orders_count": 5, "total_spent": "5.00", "last_order_id": 1, "avatar_url": "x"},
    ],
)
def test_update_without_an_updatable_field_changes_nothing(admin, make_customer, changes):
    customer = make_customer(**FULL)
    response = edit(admin, customer["id"], **changes)
    assert (response.status_code, response.get_json()) == (200, {"customer": customer})
    assert read(admin, customer["id"]) == customer


def test_update_accepts_a_trailing_slash(admin, make_customer):
    customer = make_customer()
    response = admin.put(f"/customers/{customer['id']}/", {"customer": {"first_name": "Ann"}})
    assert response.get_json() == {"customer": customer | {"first_name": "Ann"}}


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("new@example.com", "new@example.com"),
        (" new@example.com\n", "new@example.com"),
        ("New.Name@EXAMPLE.Com", "New.Name@example.com"),
        ("n(e)w@example.com", "new@example.com"),
        ("new @exa mple.com", "new@example.com"),
        ("<new>@example.com", "new@example.com"),
        ("new+tag@example.com", "new+tag@example.com"),
        ("new@shop.local", "new@shop.local"),
        ("ünal@bücher.example", "ünal@bücher.example"),
        ("用户@例子.公司", "用户@例子.公司"),
        ("नमस्ते@example.com", "नमस्ते@example.com"),
        ("ann@example.com", "ann@example.com"),
        ("ANN@EXAMPLE.COM", "ANN@example.com"),
        ("", ""),
    ],
)
def test_update_of_the_email_stores_what_sanitizing_leaves(admin, make_customer, given, stored):
    customer = make_customer(email="ann@example.com")
    wanted = customer | {"email": stored, "avatar_url": avatar(stored) if stored else None}
    response = edit(admin, customer["id"], email=given)
    assert (response.status_code, response.get_json()) == (200, {"customer": wanted})
    assert read(admin, customer["id"]) == wanted


@pytest.mark.parametrize(
    "given",
    [
        "new",
        "new@",
        "@example.com",
        "new@localhost",
        "(@)",
        "new@example..com",
        5,
        "x" * 242 + "@example.com",
    ],
)
def test_update_with_an_invalid_email_keeps_the_stored_email(admin, make_customer, given):
    """spec 2.2: no validation error is raised on edit; the other fields are changed."""
    customer = make_customer(email="ann@example.com")
    wanted = customer | {"first_name": "Ann"}
    response = edit(admin, customer["id"], email=given, first_name="Ann")
    assert (response.status_code, response.get_json()) == (200, {"customer": wanted})
    assert read(admin, customer["id"]) == wanted


@pytest.mark.parametrize("given", ["bob@example.com", "BOB@Example.com", " bob@exam ple.com"])
def test_update_with_the_email_of_another_account_keeps_the_stored_email(
    admin, make_customer, given
):
    ann, bob = make_customer(email="ann@example.com"), make_customer(email="bob@example.com")
    response = edit(admin, ann["id"], email=given)
    assert (response.status_code, response.get_json()) == (200, {"customer": ann})
    assert read(admin, ann["id"]) == ann
    assert read(admin, bob["id"]) == bob


def test_update_to_no_email_is_possible_for_several_accounts(admin, make_customer):
    for customer in (make_customer(), make_customer()):
        wanted = customer | {"email": "", "avatar_url": None}
        assert edit(admin, customer["id"], email="").get_json() == {"customer": wanted}
        assert read(admin, customer["id"]) == wanted


@pytest.mark.parametrize("freed_by", ["", "other@example.com"])
def test_update_of_the_email_frees_the_old_one(admin, make_customer, freed_by):
    edit(admin, make_customer(email="ann@example.com")["id"], email=freed_by)
    unknown = admin.get("/customers/email/ann@example.com")
    assert rejection(unknown) == (404, "shop_api_invalid_customer_email")
    assert make_customer(email="ann@example.com")["email"] == "ann@example.com"


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


# --- delete ---


@pytest.mark.parametrize(
    "path", ["/customers/{id}", "/customers/{id}/", "/customers/{id}?force=false"]
)
def test_delete_removes_the_account_permanently(admin, make_customer, path):
    customer, other = make_customer(email="ann@example.com"), make_customer()
    response = admin.delete(path.format(**customer))
    assert response.status_code == 200
    assert response.get_json() == {"message": "Permanently deleted customer"}
    gone = f"/customers/{customer['id']}"
    assert rejection(admin.get(gone)) == (404, "shop_api_invalid_customer")
    assert rejection(admin.delete(gone)) == (404, "shop_api_invalid_customer")
    assert rejection(admin.put(gone, {"customer": {}})) == (400, "shop_api_invalid_customer")
    by_email = admin.get("/customers/email/ann@example.com")
    assert rejection(by_email) == (404, "shop_api_invalid_customer_email")
    assert admin.get("/customers").get_json() == {"customers": [other]}


def test_delete_frees_email_and_username(admin, make_customer):
    old = make_customer(email="ann@example.com", username="ann")
    admin.delete(f"/customers/{old['id']}")
    new = make_customer(email="ANN@example.com", username="Ann")
    assert new == expected(new, email="ANN@example.com", username="Ann")


def test_delete_never_gives_an_id_to_another_account(admin, make_customer):
    seen = []
    for _ in range(3):
        seen.append(make_customer()["id"])
        admin.delete(f"/customers/{seen[-1]}")
    assert make_customer()["id"] > seen[2] > seen[1] > seen[0]


def test_delete_ends_the_keys_of_the_account(admin, client_for):
    client = client_for("shop_manager", login="caller")
    assert client.get("/customers/count").status_code == 200
    admin.delete(f"/customers/{client.key.user_id}")
    assert rejection(client.get("/customers/count")) == (401, "shop_api_authentication_error")


def test_delete_leaves_the_coupons_of_the_account(admin, client_for, make_coupon):
    client = client_for("shop_manager", login="caller")
    coupon = make_coupon(client)
    admin.delete(f"/customers/{client.key.user_id}")
    assert admin.get(f"/coupons/{coupon['id']}").get_json() == {"coupon": coupon}


def test_update_moves_the_modification_time_and_not_the_registration(app, admin, make_customer):
    customer, other = make_customer(), make_customer()
    past = datetime(2001, 1, 1, tzinfo=UTC)
    with app.app_context():
        run_in_transaction(
            lambda s: s.execute(update(User).values(created_at=past, updated_at=past))
        )
    edited = edit(admin, customer["id"], first_name="Ann").get_json()["customer"]
    unchanged = other | {"created_at": "2001-01-01T00:00:00Z"}
    assert edited == customer | {"created_at": "2001-01-01T00:00:00Z", "first_name": "Ann"}
    recent = admin.get("/customers", {"filter[updated_at_min]": "2001-01-02"})
    assert recent.get_json() == {"customers": [edited]}
    old = admin.get("/customers", {"filter[updated_at_max]": "2001-01-02"})
    assert old.get_json() == {"customers": [unchanged]}


# --- statements ---


@pytest.mark.parametrize("path", ["/customers/{id}", "/customers/email/{email}"])
def test_read_sends_one_statement(admin, make_customer, statements, path):
    customer = make_customer()
    statements.clear()
    assert admin.get(path.format(**customer)).status_code == 200
    assert len(without_key(statements)) == 1
