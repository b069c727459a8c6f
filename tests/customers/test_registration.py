"""E-mail address and username of a new customer (spec 2.2; decisions 5)."""

import pytest

from app.conversions.text import is_username
from tests.customers.calls import create, customers_of, read, rejection

# --- e-mail on create ---


@pytest.mark.parametrize(
    "given",
    [
        ["Ann.LEE+tag@Example.COM", "1@example.com", "a@b.co", "ann@sub.sub.example.com"],
        ["o'hara@example.ie", "a/b@example.com", "!#$%&'*+-/=?^_`{|}~@example.com"],
        ["ann@shop.test", "ann@shop.local", "ann@example.invalid", "x" * 64 + "@example.com"],
        ["ünal@bücher.example", "用户@例子.公司", "हिन्दी@example.com"],
    ],
    ids=["plain", "signs", "domains", "scripts"],
)
def test_create_with_a_valid_email_stores_it(admin, given):
    for email in given:
        response = create(admin, email=email)
        customer = response.get_json()["customer"]
        local, _, domain = email.partition("@")
        assert (response.status_code, customer["email"]) == (201, f"{local}@{domain.lower()}")
        assert read(admin, customer["id"]) == customer


@pytest.mark.parametrize(
    "given",
    [
        ["", " ", "ann", "ann@", "@example.com", "@", "ann@localhost", "ann@example", 5, 0, 1.5],
        ["ann@@example.com", "ann@bob@example.com", "ann@example.com, bob@example.com"],
        ["ann@example..com", "ann@.example.com", "ann@-example.com", "ann@exa_mple!.com"],
        ["ann..lee@example.com", ".ann@example.com", "ann.@example.com", "ann(x)@example.com"],
        ["a nn@example.com", "ann@exa mple.com", "ann\n@example.com", "a\x07nn@example.com"],
        ["ann@example.com\nBcc: bob@example.com", "mailto:ann@example.com"],
        ["Ann <ann@example.com>", "<ann@example.com>"],
        ["x" * 242 + "@example.com", "ann@" + "x" * 64 + ".com"],
    ],
    ids=["parts", "several", "domain", "local", "blanks", "headers", "names", "length"],
)
def test_create_with_an_invalid_email_fails_with_the_registration_code(admin, given):
    for email in given:
        response = create(admin, email=email)
        assert rejection(response) == (400, "registration-error-invalid-email"), email
    assert len(customers_of(admin)) == 1


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ann@example.com", "ann@example.com"),
        ("ann@example.com", "ANN@EXAMPLE.COM"),
        ("Ann@Example.com", "ann@example.com"),
        ("ünal@example.com", "ÜNAL@example.com"),
        ("用户@例子.公司", "用户@例子.公司"),
        ("हिन्दी@example.com", "हिन्दी@example.com"),
        ("e\u0301milie@example.com", "e\u0301milie@example.com"),
    ],
)
def test_create_with_the_email_of_an_account_fails(admin, first, second):
    create(admin, email=first, username="one")
    response = create(admin, email=second, username="two")
    assert rejection(response) == (400, "registration-error-email-exists")
    assert [customer["username"] for customer in customers_of(admin)] == ["administrator", "one"]


# --- username on create ---


def test_create_with_a_valid_username_stores_it(admin):
    names = ["a", "0", "_", "Ann", "ann.lee-moe_x@example.com", "ann lee moe", "x" * 60]
    for number, username in enumerate([*names, "Ünal", "東京", "Ελλάδα", 42]):
        response = create(admin, email=f"c{number}@example.com", username=username)
        customer = response.get_json()["customer"]
        assert (response.status_code, customer["username"]) == (201, str(username))
        assert read(admin, customer["id"]) == customer


def test_create_with_an_invalid_username_fails_with_the_registration_code(admin):
    blanks = (" ", " ann", "ann ", "ann  lee", "ann\tlee", "ann\nlee", "ann\n", "ann\u00a0lee")
    signs = ("ann+lee", "ann/lee", "ann'lee", "ann,lee", "<b>ann</b>", "ann&amp;lee", "😀")
    for username in (*blanks, *signs, "ann\x07", "ann\u200b"):
        response = create(admin, username=username)
        assert rejection(response) == (400, "registration-error-invalid-username"), username
    assert len(customers_of(admin)) == 1


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("first", "second"),
    [("ann", "ann"), ("ann", "ANN"), ("Ünal", "ünal"), ("ann lee", "Ann Lee"), ("東京", "東京")],
)
def test_create_with_the_username_of_an_account_fails(admin, first, second):
    create(admin, email="one@example.com", username=first)
    response = create(admin, email="two@example.com", username=second)
    assert rejection(response) == (400, "registration-error-username-exists")
    usernames = [customer["username"] for customer in customers_of(admin)]
    assert usernames == ["administrator", first]


# --- generated usernames (decisions 5) ---


@pytest.mark.parametrize("supplied", [{}, {"username": ""}, {"username": None}])
def test_create_without_a_username_takes_the_local_part(admin, supplied):
    customer = create(admin, email="Ann.Lee@example.com", **supplied).get_json()["customer"]
    assert customer["username"] == "Ann.Lee"


@pytest.mark.both_databases
def test_generated_username_is_numbered_until_it_is_free(admin):
    names = [
        create(admin, email=f"ann@{host}.example").get_json()["customer"]["username"]
        for host in range(13)
    ]
    assert names == ["ann", *(f"ann{number}" for number in range(2, 14))]


@pytest.mark.both_databases
def test_generated_username_skips_the_ones_that_are_taken_without_case(admin, make_customer):
    for number, username in enumerate(["ANN", "Ann2", "ann4"]):
        make_customer(email=f"taken-{number}@example.com", username=username)
    names = [
        create(admin, email=f"ann@{host}.example").get_json()["customer"]["username"]
        for host in range(3)
    ]
    assert names == ["ann3", "ann5", "ann6"]


@pytest.mark.both_databases
def test_generated_username_fills_the_first_gap(admin):
    ids = [
        create(admin, email=f"ann@{host}.example").get_json()["customer"]["id"] for host in range(3)
    ]
    admin.delete(f"/customers/{ids[1]}")
    again = create(admin, email="ann@again.example").get_json()["customer"]
    assert again["username"] == "ann2"


@pytest.mark.both_databases
def test_generated_username_is_valid_and_free_whatever_the_local_part(admin):
    signs = ("ann+tag", "o'hara", "a/b", "!#$%", "++", "{}", "1")
    for local in (*signs, "x" * 64, "ünal", "用户", "हिन्दी", "e\u0301"):
        responses = [create(admin, email=f"{local}@{host}.example") for host in "ab"]
        assert [response.status_code for response in responses] == [201, 201], local
        names = [response.get_json()["customer"]["username"] for response in responses]
        assert len({name.lower() for name in names}) == 2
        assert all(len(name) <= 60 and is_username(name) for name in names)


@pytest.mark.both_databases
def test_generated_username_never_takes_the_one_of_an_administrator(admin):
    customer = create(admin, email="Administrator@example.com").get_json()["customer"]
    assert customer["username"] == "Administrator2"
