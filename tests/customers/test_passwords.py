"""Passwords of customers: hashes, and that no output contains them (spec 2.2)."""

import re

import pytest
from argon2 import PasswordHasher
from sqlalchemy import event, select
from structlog.testing import capture_logs

from app.db.read_pool import fetch
from app.db.session import db
from app.models import User
from app.services.common.bulk import BulkItem
from tests.api_client import Client, refused_params
from tests.customers.calls import PASSWORD, create, edit, shown


def stored_hash(app, customer_id):
    with app.app_context():
        return fetch(select(User.password_hash).where(User.id == customer_id))[0].password_hash


def opens(app, customer_id, password):
    """Return whether the account has this password. Raises an error without an argon2id hash."""
    hashed = stored_hash(app, customer_id)
    assert hashed.startswith("$argon2id$")
    return PasswordHasher().verify(hashed, password)


# --- password ---


@pytest.mark.parametrize(
    ("given", "password"),
    [
        ("secret", "secret"),
        (" inner and outer blanks ", " inner and outer blanks "),
        ("<b>x</b> &amp;", "<b>x</b> &amp;"),
        ("пароль 🔑", "пароль 🔑"),
        ("\t\n\x07", "\t\n\x07"),
        ("0", "0"),
        (12345, "12345"),
        ("x" * 65_536, "x" * 65_536),
    ],
    ids=range(8),
)
def test_password_is_hashed_with_argon2id_as_it_was_sent(
    app, admin, make_customer, given, password
):
    created = make_customer(password=given)
    assert opens(app, created["id"], password)
    edited = make_customer(password="another")
    assert edit(admin, edited["id"], password=given).get_json() == {"customer": edited}
    assert opens(app, edited["id"], password)


@pytest.mark.parametrize("supplied", [{}, {"password": ""}, {"password": None}])
def test_create_without_a_password_gives_one_that_nothing_opens(app, make_customer, supplied):
    assert stored_hash(app, make_customer(**supplied)["id"]) is None


@pytest.mark.parametrize(
    "changes", [{}, {"password": ""}, {"password": None}, {"first_name": "Ann", "password": ""}]
)
def test_update_without_a_password_keeps_the_stored_one(app, admin, make_customer, changes):
    customer = make_customer(password="secret")
    before = stored_hash(app, customer["id"])
    assert edit(admin, customer["id"], **changes).status_code == 200
    assert stored_hash(app, customer["id"]) == before


def test_update_gives_a_password_to_an_account_without_one(app, admin, make_customer):
    customer = make_customer()
    edit(admin, customer["id"], password="secret")
    assert opens(app, customer["id"], "secret")


def test_update_of_a_password_spares_the_other_accounts(app, admin, make_customer):
    customer, other = make_customer(password="one"), make_customer(password="two")
    edit(admin, customer["id"], password="three")
    assert opens(app, customer["id"], "three")
    assert opens(app, other["id"], "two")


def test_rejected_update_keeps_the_password(app, client_for, make_customer):
    customer = make_customer(password="secret")
    assert edit(client_for("customer"), customer["id"], password="stolen").status_code == 400
    assert opens(app, customer["id"], "secret")


def test_equal_passwords_have_different_hashes(app, make_customer):
    one, two = (stored_hash(app, make_customer(password="secret")["id"]) for _ in range(2))
    assert one != two


def test_bulk_hashes_the_password_of_each_item(app, admin, make_customer):
    customer = make_customer(password="before")
    items = [
        {"email": "one@example.com", "password": "first"},
        {"id": customer["id"], "password": "second"},
        {"email": "two@example.com", "password": ""},
        {"email": "nonsense", "password": "third"},
    ]
    one, two, three, _ = admin.post("/customers/bulk", {"customers": items}).get_json()["customers"]
    assert opens(app, one["id"], "first")
    assert opens(app, two["id"], "second")
    assert stored_hash(app, three["id"]) is None


# --- a password shows up nowhere ---


def test_password_is_in_no_log_line_of_a_failure(make_app, admin, make_customer, caplog):
    """A statement that the database refuses is logged with its traceback, without its values."""
    customer = make_customer()
    client = Client(make_app(), admin.key)

    def misdirect(connection, cursor, statement, parameters, context, executemany):
        return re.sub(r"^(INSERT INTO|UPDATE) users", r"\1 nowhere", statement), parameters

    with client.app.app_context():
        event.listen(db.engine, "before_cursor_execute", misdirect, retval=True)
    with capture_logs() as lines:
        answers = [
            create(client, password=PASSWORD, first_name=PASSWORD),
            edit(client, customer["id"], password=PASSWORD, first_name=PASSWORD),
        ]
    assert all(answer.status_code >= 500 for answer in answers)
    assert caplog.text.count("nowhere") >= 2
    for text_of in [*map(shown, answers), repr(lines), caplog.text]:
        assert PASSWORD not in text_of
        assert "argon2" not in text_of


def test_password_is_in_no_repr():
    draft = BulkItem(0, {"email": "ann@example.com", "password": PASSWORD})
    account = User(username="ann", password_hash=f"$argon2id${PASSWORD}")
    assert PASSWORD not in f"{draft!r} {draft} {account!r} {account}"


@pytest.mark.parametrize("name", ["password", "password_hash"])
def test_password_can_neither_be_selected_nor_sorted_nor_searched(admin, make_customer, name):
    customer = make_customer(password="sesame")
    path = f"/customers/{customer['id']}"
    assert admin.get(path, {"fields": name}).get_json() == {"customer": {}}
    assert admin.get("/customers", {"filter[q]": "sesame"}).get_json() == {"customers": []}
    assert admin.get("/customers", {"filter[q]": "argon2"}).get_json() == {"customers": []}
    by_field = admin.get("/customers", {"filter[orderby]": name})
    assert refused_params(by_field) == ["filter[orderby]"]
    by_meta = {"filter[orderby]": "meta_value", "filter[orderby_meta_key]": name}
    assert refused_params(admin.get("/customers", by_meta)) == ["filter[orderby_meta_key]"]
