"""Update and delete customers (spec 4.2)."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from app.db.session import run_in_transaction
from app.models import User
from tests.customers.calls import BILLING, FULL, SHIPPING, avatar, edit, expected, read, rejection

# --- edit ---


@pytest.mark.parametrize("name", ["billing_address", "shipping_address"])
def test_update_of_one_part_of_an_address_leaves_the_others(admin, make_customer, name):
    customer = make_customer(**FULL)
    for part in FULL[name]:
        edit(admin, customer["id"], **{name: {part: f"new {part}"}})
        customer |= {name: customer[name] | {part: f"new {part}"}}
        assert read(admin, customer["id"]) == customer, part


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


def test_update_without_an_updatable_field_changes_nothing(admin, make_customer):
    customer = make_customer(**FULL)
    for changes in (
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
    ):
        response = edit(admin, customer["id"], **changes)
        assert (response.status_code, response.get_json()) == (200, {"customer": customer}), changes
        assert read(admin, customer["id"]) == customer


@pytest.mark.parametrize(
    ("stored", "given"),
    [
        ("new@example.com", ["new@example.com", " new@example.com\n", "n(e)w@example.com"]),
        ("new@example.com", ["new @exa mple.com", "<new>@example.com"]),
        ("New.Name@example.com", ["New.Name@EXAMPLE.Com"]),
        ("ann@example.com", ["ann@example.com"]),
        ("ANN@example.com", ["ANN@EXAMPLE.COM"]),
        ("", [""]),
        *[(email, [email]) for email in ("new+tag@example.com", "new@shop.local")],
        *[
            (email, [email])
            for email in ("ünal@bücher.example", "用户@例子.公司", "नमस्ते@example.com")
        ],
    ],
)
def test_update_of_the_email_stores_what_sanitizing_leaves(admin, make_customer, stored, given):
    customer = make_customer(email="ann@example.com")
    wanted = customer | {"email": stored, "avatar_url": avatar(stored) if stored else None}
    for email in given:
        edit(admin, customer["id"], email="ann@example.com")
        response = edit(admin, customer["id"], email=email)
        assert (response.status_code, response.get_json()) == (200, {"customer": wanted}), email
        assert read(admin, customer["id"]) == wanted


def test_update_with_an_invalid_email_keeps_the_stored_email(admin, make_customer):
    """spec 2.2: no validation error is raised on edit; the other fields are changed."""
    customer = make_customer(email="ann@example.com")
    short = ("new", "new@", "@example.com", "new@localhost", "(@)", "new@example..com", 5)
    for number, given in enumerate((*short, "x" * 242 + "@example.com")):
        wanted = customer | {"first_name": f"Ann {number}"}
        response = edit(admin, customer["id"], email=given, first_name=f"Ann {number}")
        assert (response.status_code, response.get_json()) == (200, {"customer": wanted}), given
        assert read(admin, customer["id"]) == wanted


@pytest.mark.both_databases
@pytest.mark.parametrize("given", ["bob@example.com", "BOB@Example.com", " bob@exam ple.com"])
def test_update_with_the_email_of_another_account_keeps_the_stored_email(
    admin, make_customer, given
):
    ann, bob = make_customer(email="ann@example.com"), make_customer(email="bob@example.com")
    response = edit(admin, ann["id"], email=given)
    assert (response.status_code, response.get_json()) == (200, {"customer": ann})
    assert read(admin, ann["id"]) == ann
    assert read(admin, bob["id"]) == bob


@pytest.mark.both_databases
def test_update_to_no_email_is_possible_for_several_accounts(admin, make_customer):
    for customer in (make_customer(), make_customer()):
        wanted = customer | {"email": "", "avatar_url": None}
        assert edit(admin, customer["id"], email="").get_json() == {"customer": wanted}
        assert read(admin, customer["id"]) == wanted


@pytest.mark.both_databases
@pytest.mark.parametrize("freed_by", ["", "other@example.com"])
def test_update_of_the_email_frees_the_old_one(admin, make_customer, freed_by):
    edit(admin, make_customer(email="ann@example.com")["id"], email=freed_by)
    unknown = admin.get("/customers/email/ann@example.com")
    assert rejection(unknown) == (404, "shop_api_invalid_customer_email")
    assert make_customer(email="ann@example.com")["email"] == "ann@example.com"


# --- delete ---


@pytest.mark.both_databases
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


@pytest.mark.both_databases
def test_delete_frees_email_and_username(admin, make_customer):
    old = make_customer(email="ann@example.com", username="ann")
    admin.delete(f"/customers/{old['id']}")
    new = make_customer(email="ANN@example.com", username="Ann")
    assert new == expected(new, email="ANN@example.com", username="Ann")


@pytest.mark.both_databases
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
