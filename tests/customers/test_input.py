"""The input rules of a customer: names, addresses and bodies (spec 2.2)."""

import pytest

from tests.api_client import refused_params
from tests.customers.calls import BILLING, SHIPPING, create, customers_of, edit, read, rejection

WRITES = [("POST", "/customers"), ("PUT", "/customers/1")]


def every_text(value):
    """A body in which every cleaned text has the same value."""
    return {
        "first_name": value,
        "last_name": value,
        "billing_address": dict.fromkeys(BILLING, value),
        "shipping_address": dict.fromkeys(SHIPPING, value),
    }


# --- names and addresses ---

# How each of them is cleaned: tests/conversions/test_text.py. A row has what is read alike.
TEXTS = [
    ("", ["", "   ", "<br/>"]),
    ("Ann", ["Ann", "A\x07n\x1bn\x7f", "A\x80n\x9fn", "<b>Ann</b>", "&lt;b&gt;Ann&lt;/b&gt;"]),
    ("Ann", ["<scr<b>ipt>Ann</scr</b>ipt>", "&amp;lt;b&amp;gt;Ann"]),
    ("Ann", ['<a href="https://example.com/?a=1&b=2">Ann</a>']),
    ("Ann Lee", ["  Ann   Lee ", "Ann\u00a0\u3000Lee"]),
    ("Ann Lee Moe", ["Ann\tLee\r\nMoe"]),
    ("Ann Moe", ["Ann<!-- Lee --> Moe"]),
    ("alert(1)", ["<script>alert(1)</script>"]),
    ("ééé", ["&eacute;&#233;&#xe9;"]),
    ("0", ["0", 0]),
    ("5", [5]),
    ("-7", [-7]),
    ("1.5", [1.5]),
    ("9007199254740992", [2**53]),
    # What is kept as it is.
    *[(text, [text]) for text in ("R&D a < b > c", "1 <2 3>", 'O\'Hara "Jr." \\ %_ --', "null")],
    *[
        (text, [text])
        for text in ("Zoë Ünal 東京 Ελλάδα हिन्दी", "שלם \u200fשב", "👩\u200d👧 𠀀", "e\u0301")
    ],
    *[(text, [text]) for text in ("\ufffe\U0010ffff", "x" * 1000)],
]


@pytest.mark.parametrize(("stored", "given"), TEXTS, ids=range(len(TEXTS)))
def test_text_is_cleaned_in_every_field_on_create_and_update(admin, make_customer, stored, given):
    for number, text in enumerate(given):
        created = create(admin, email=f"new-{number}@example.com", **every_text(text))
        customer = created.get_json()["customer"]
        assert (created.status_code, customer) == (201, customer | every_text(stored)), text
        assert read(admin, customer["id"]) == customer
        other = make_customer(**every_text("before"))
        edited = edit(admin, other["id"], **every_text(text))
        assert edited.get_json() == {"customer": other | every_text(stored)}, text
        assert read(admin, other["id"]) == other | every_text(stored)


def test_wrong_type_is_named_for_each_field_and_nothing_is_stored(admin, make_customer):
    """decisions 1: several wrong fields in one body are reported together. A NUL is never cleaned."""
    customer = make_customer()
    before = customers_of(admin)
    wrong = [
        *(f"customer.{name}" for name in ("email", "password", "first_name", "last_name")),
        *(f"customer.billing_address.{part}" for part in BILLING),
        *(f"customer.shipping_address.{part}" for part in SHIPPING),
    ]
    for value in ([], ["Ann"], {}, {"a": 1}, True, False, "\0", "Ann\0Lee", "\0Ann", "<b\0>Ann"):
        body = every_text(value) | {"email": value, "password": value}
        assert sorted(refused_params(edit(admin, customer["id"], **body))) == sorted(wrong), value
        named = create(admin, **body | {"username": value})
        assert sorted(refused_params(named)) == sorted([*wrong, "customer.username"]), value
    assert customers_of(admin) == before


def test_a_rejected_field_keeps_the_good_ones_from_being_stored(admin, make_customer):
    customer = make_customer()
    response = edit(admin, customer["id"], first_name="Ann", last_name=[])
    assert refused_params(response) == ["customer.last_name"]
    assert read(admin, customer["id"]) == customer


@pytest.mark.parametrize("name", ["billing_address", "shipping_address"])
def test_address_that_is_not_an_object_is_rejected(admin, make_customer, name):
    customer = make_customer()
    before = customers_of(admin)
    for value in ([], ["x"], "", "x", 0, 5, 1.5, True, False):
        for response in (
            edit(admin, customer["id"], **{name: value}),
            create(admin, **{name: value}),
        ):
            assert refused_params(response) == [f"customer.{name}"], value
    assert customers_of(admin) == before


@pytest.mark.parametrize(
    "address", [None, {}, {"vat": "1", "City": "x", "": "y"}, {"city": None, "state": None}]
)
def test_address_without_a_known_part_is_empty_on_create(admin, address):
    response = create(admin, billing_address=address, shipping_address=address)
    customer = response.get_json()["customer"]
    assert customer["billing_address"] == dict.fromkeys(BILLING, "")
    assert customer["shipping_address"] == dict.fromkeys(SHIPPING, "")


def test_shipping_address_has_no_email_and_no_phone(admin):
    address = {"city": "Oslo", "email": "ship@example.com", "phone": "1"}
    customer = create(admin, shipping_address=address).get_json()["customer"]
    assert customer["shipping_address"] == dict.fromkeys(SHIPPING, "") | {"city": "Oslo"}


@pytest.mark.parametrize("value", ["x", "ann@example", "not an address"])
def test_billing_email_is_text_like_the_other_parts(admin, value):
    """spec 2.2: each billing subfield is cleaned; it is not validated."""
    customer = create(admin, billing_address={"email": value}).get_json()["customer"]
    assert customer["billing_address"] == dict.fromkeys(BILLING, "") | {"email": value}


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_body_without_an_object_in_its_wrapper_key(admin, method, path):
    customers = '{"customers": {}}'
    for body in ("", " ", "{}", "[]", '"x"', "5", "null", "true", '{"customer": null}', customers):
        response = admin.request(method, path, data=body)
        assert rejection(response) == (400, "shop_api_missing_customer_data"), body
    for value in ("[]", '[{"email": "a@example.com"}]', '"x"', '""', "0", "5", "false"):
        response = admin.request(method, path, data=f'{{"customer": {value}}}')
        assert refused_params(response) == ["customer"], value
    # What is no JSON: tests/api/test_request_bodies.py.
    no_json = admin.request(method, path, data='{"customer": {"email": "a@example.com"}')
    assert rejection(no_json) == (400, "shop_api_invalid_json")
    assert len(customers_of(admin)) == 1


def test_create_treats_null_as_not_supplied(admin):
    nulls = dict.fromkeys(
        ("username", "password", "first_name", "last_name", "billing_address", "shipping_address")
    )
    without = create(admin, email="ann@a.example").get_json()["customer"]
    response = create(admin, email="ann@b.example", **nulls)
    assert response.status_code == 201
    customer = response.get_json()["customer"]
    same = ("first_name", "last_name", "role", "billing_address", "shipping_address")
    assert {name: customer[name] for name in same} == {name: without[name] for name in same}
    assert customer["username"] == "ann2"


# --- bodies ---
