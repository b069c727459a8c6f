"""Single customers: create, retrieve, and find by e-mail address (spec 4.2)."""

from datetime import UTC, datetime
from urllib.parse import quote

import pytest

from tests.api_client import without_key
from tests.customers.calls import FULL, avatar, edit, expected, give_role, read, rejection

# --- create and read ---


@pytest.mark.both_databases
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
    timestamp = datetime.strptime(created_at, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert before <= timestamp <= after


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


def test_read_finds_the_id_in_every_spelling(admin, make_customer):
    customer = make_customer()
    for path in ("/customers/{id}", "/customers/{id}/", "/customers/00{id}"):
        response = admin.get(path.format(**customer))
        assert (response.status_code, response.get_json()) == (200, {"customer": customer})


def test_id_without_digits_has_no_route(admin):
    for path in ("-1", "abc", "1.5", "٣", "email", "email/"):
        assert rejection(admin.get(f"/customers/{path}")) == (404, "shop_api_no_route"), path


@pytest.mark.both_databases
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


@pytest.mark.both_databases
def test_by_email_finds_the_account(admin, make_customer):
    make_customer()
    signs = (
        "ann+tag",
        "Ann.LEE",
        "o'hara",
        "a/b",
        "/slash",
        "a//b",
        "100%",
        "what?",
        "c#",
        "x&y=z",
    )
    emails = [f"{local}@example.com" for local in (*signs, "{braces}", "ünal", "हिन्दी")]
    for email in (*emails, "ann@shop.test", "ann@shop.local", "用户@例子.公司"):
        customer = make_customer(email=email)
        whole = quote(email, safe="")
        for spelling in (whole, f"{whole}/", quote(email, safe="/+@")):
            response = admin.get(f"/customers/email/{spelling}")
            assert (response.status_code, response.get_json()) == (200, {"customer": customer})


def test_by_email_reads_every_spelling_of_an_address(admin, make_customer):
    customer = make_customer(email="Ann+tag@example.com")
    encoded = ("ann%2Btag@example.com", "ann%2btag%40example%2ecom", "aNN%2BTag@Example.Com/")
    for path in ("ann+tag@example.com", "ANN+TAG@EXAMPLE.COM", *encoded):
        response = admin.get(f"/customers/email/{path}")
        assert (response.status_code, response.get_json()) == (200, {"customer": customer}), path


def test_by_email_of_no_account_is_404(admin, make_customer):
    make_customer(email="ann@example.com")
    parts = (
        "ann",
        "ann@",
        "@example.com",
        "ann@example",
        "count",
        "1",
        "%25",
        "%00",
        "'%20OR%20''='",
    )
    around = (
        "ann@example.com%20",
        "%20ann@example.com",
        "ann@example.com%00",
        "%3Cann@example.com%3E",
    )
    others = ("nobody@example.com", "_nn@example.com", "*@example.com", "%25@example.com")
    encodings = ("%FF%FE@example.com", "%C3%28@example.com", "ann%20tag@example.com")
    longer = (
        "ann@example.com,other@example.com",
        "ann@example.com/orders",
        "x" * 300 + "@example.com",
    )
    for path in (*parts, *around, *others, *encodings, *longer):
        refused = rejection(admin.get(f"/customers/email/{path}"))
        assert refused == (404, "shop_api_invalid_customer_email"), path


@pytest.mark.both_databases
def test_by_email_never_finds_an_account_without_an_email(admin, client_for):
    client_for("customer", login="mute")
    assert rejection(admin.get("/customers/email/%20")) == (404, "shop_api_invalid_customer_email")


@pytest.mark.parametrize("role", ["customer", "subscriber"])
def test_by_email_checks_existence_before_the_capability(client_for, make_customer, role):
    make_customer(email="ann@example.com")
    client = client_for(role)
    for email, answer in (
        ("nonsense", (404, "shop_api_invalid_customer_email")),
        ("nobody@example.com", (404, "shop_api_invalid_customer_email")),
        ("ann@example.com", (401, "shop_api_user_cannot_read_customer")),
    ):
        assert rejection(client.get(f"/customers/email/{email}")) == answer


# --- statements ---


@pytest.mark.both_databases
@pytest.mark.parametrize("path", ["/customers/{id}", "/customers/email/{email}"])
def test_read_sends_one_statement(admin, make_customer, statements, path):
    customer = make_customer()
    statements.clear()
    assert admin.get(path.format(**customer)).status_code == 200
    assert len(without_key(statements)) == 1
