"""The input rules of a customer: names, addresses and bodies (spec 2.2)."""

import pytest

from tests.customers.input import create, customers_of, edit, read, refusal, refused_params

SHIPPING_PARTS = (
    "first_name",
    "last_name",
    "company",
    "address_1",
    "address_2",
    "city",
    "state",
    "postcode",
    "country",
)
BILLING_PARTS = (*SHIPPING_PARTS, "email", "phone")


def every_text(value):
    """A body in which every cleaned text has the same value."""
    return {
        "first_name": value,
        "last_name": value,
        "billing_address": dict.fromkeys(BILLING_PARTS, value),
        "shipping_address": dict.fromkeys(SHIPPING_PARTS, value),
    }


# --- names and addresses ---

TEXTS = [
    ("Ann", "Ann"),
    ("0", "0"),
    ("", ""),
    ("   ", ""),
    ("  Ann   Lee ", "Ann Lee"),
    ("Ann\tLee\r\nMoe", "Ann Lee Moe"),
    ("Ann\u00a0\u3000Lee", "Ann Lee"),
    ("A\x07n\x1bn\x7f", "Ann"),
    ("A\x80n\x9fn", "Ann"),
    ("<b>Ann</b>", "Ann"),
    ("<br/>", ""),
    ("Ann<!-- Lee --> Moe", "Ann Moe"),
    ("<script>alert(1)</script>", "alert(1)"),
    ('<a href="https://example.com/?a=1&b=2">Ann</a>', "Ann"),
    ("<scr<b>ipt>Ann</scr</b>ipt>", "Ann"),
    ("&lt;b&gt;Ann&lt;/b&gt;", "Ann"),
    ("&amp;lt;b&amp;gt;Ann", "Ann"),
    ("&eacute;&#233;&#xe9;", "ééé"),
    ("R&D", "R&D"),
    ("a < b > c", "a < b > c"),
    ("1 <2 3>", "1 <2 3>"),
    ('O\'Hara "Jr." \\ %_ --', 'O\'Hara "Jr." \\ %_ --'),
    ("Zoë Ünal 東京 Ελλάδα हिन्दी", "Zoë Ünal 東京 Ελλάδα हिन्दी"),
    ("שלם \u200fשב", "שלם \u200fשב"),
    ("👩\u200d👧 𠀀", "👩\u200d👧 𠀀"),
    ("e\u0301", "e\u0301"),
    ("\ufffe\U0010ffff", "\ufffe\U0010ffff"),
    ("null", "null"),
    (5, "5"),
    (-7, "-7"),
    (0, "0"),
    (1.5, "1.5"),
    (2**53, "9007199254740992"),
    ("x" * 1000, "x" * 1000),
]


@pytest.mark.parametrize(("given", "stored"), TEXTS, ids=range(len(TEXTS)))
def test_text_is_cleaned_in_every_field_on_create_and_update(admin, make_customer, given, stored):
    created = create(admin, **every_text(given))
    assert created.status_code == 201
    customer = created.get_json()["customer"]
    assert customer == customer | every_text(stored)
    assert read(admin, customer["id"]) == customer
    other = make_customer(**every_text("before"))
    edited = edit(admin, other["id"], **every_text(given))
    assert (edited.status_code, edited.get_json()) == (
        200,
        {"customer": other | every_text(stored)},
    )
    assert read(admin, other["id"]) == other | every_text(stored)


@pytest.mark.parametrize("value", [[], ["Ann"], {}, {"a": 1}, True, False])
def test_wrong_type_is_named_for_each_field_and_nothing_is_stored(admin, make_customer, value):
    """decisions 1: several wrong fields in one body are reported together."""
    customer = make_customer()
    before = customers_of(admin)
    body = every_text(value) | {"email": value, "password": value}
    wrong = sorted(
        [
            *(f"customer.{name}" for name in ("email", "password", "first_name", "last_name")),
            *(f"customer.billing_address.{part}" for part in BILLING_PARTS),
            *(f"customer.shipping_address.{part}" for part in SHIPPING_PARTS),
        ]
    )
    assert refused_params(edit(admin, customer["id"], **body)) == wrong
    with_username = create(admin, **body | {"username": value})
    assert refused_params(with_username) == sorted([*wrong, "customer.username"])
    assert customers_of(admin) == before


@pytest.mark.parametrize("value", ["\0", "Ann\0Lee", "\0Ann", "<b\0>Ann"])
def test_nul_is_rejected_in_every_field_before_any_cleaning(admin, make_customer, value):
    customer = make_customer()
    before = customers_of(admin)
    body = every_text(value) | {"email": value, "password": value}
    assert len(refused_params(edit(admin, customer["id"], **body))) == 24
    assert len(refused_params(create(admin, **body | {"username": value}))) == 25
    assert customers_of(admin) == before


def test_a_rejected_field_keeps_the_good_ones_from_being_stored(admin, make_customer):
    customer = make_customer()
    response = edit(admin, customer["id"], first_name="Ann", last_name=[])
    assert refused_params(response) == ["customer.last_name"]
    assert read(admin, customer["id"]) == customer


@pytest.mark.parametrize("name", ["billing_address", "shipping_address"])
@pytest.mark.parametrize("value", [[], ["x"], "", "x", 0, 5, 1.5, True, False])
def test_address_that_is_not_an_object_is_rejected(admin, make_customer, name, value):
    customer = make_customer()
    before = customers_of(admin)
    assert refused_params(edit(admin, customer["id"], **{name: value})) == [f"customer.{name}"]
    assert refused_params(create(admin, **{name: value})) == [f"customer.{name}"]
    assert customers_of(admin) == before


@pytest.mark.parametrize(
    "address", [None, {}, {"vat": "1", "City": "x", "": "y"}, {"city": None, "state": None}]
)
def test_address_without_a_known_part_is_empty_on_create(admin, address):
    customer = create(admin, billing_address=address, shipping_address=address).get_json()[
        "customer"
    ]
    assert customer["billing_address"] == dict.fromkeys(BILLING_PARTS, "")
    assert customer["shipping_address"] == dict.fromkeys(SHIPPING_PARTS, "")


def test_shipping_address_has_no_email_and_no_phone(admin):
    address = {"city": "Oslo", "email": "ship@example.com", "phone": "1"}
    customer = create(admin, shipping_address=address).get_json()["customer"]
    assert customer["shipping_address"] == dict.fromkeys(SHIPPING_PARTS, "") | {"city": "Oslo"}


@pytest.mark.parametrize("value", ["x", "ann@example", "not an address"])
def test_billing_email_is_text_like_the_other_parts(admin, value):
    """spec 2.2: each billing subfield is cleaned; it is not validated."""
    customer = create(admin, billing_address={"email": value}).get_json()["customer"]
    assert customer["billing_address"] == dict.fromkeys(BILLING_PARTS, "") | {"email": value}


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


@pytest.mark.parametrize(
    "body",
    [
        "",
        " ",
        "{}",
        "[]",
        '"customer"',
        "5",
        "null",
        "true",
        '{"customer": null}',
        '{"customers": {}}',
    ],
)
@pytest.mark.parametrize(("method", "path"), [("POST", "/customers"), ("PUT", "/customers/1")])
def test_body_without_the_wrapper_key_lacks_data(admin, method, path, body):
    response = admin.request(method, path, data=body)
    assert refusal(response) == (400, "shop_api_missing_customer_data")


@pytest.mark.parametrize(
    "body", ["[]", '[{"email": "a@example.com"}]', '"x"', '""', "0", "5", "false"]
)
@pytest.mark.parametrize(("method", "path"), [("POST", "/customers"), ("PUT", "/customers/1")])
def test_wrapper_that_is_not_an_object_is_rejected(admin, method, path, body):
    response = admin.request(method, path, data=f'{{"customer": {body}}}')
    assert refused_params(response) == ["customer"]


@pytest.mark.parametrize(
    "body",
    [
        "{",
        '{"customer": {"email": "a@example.com"}',
        '{"customer": {"first_name": NaN}}',
        '{"customer": {"first_name": Infinity}}',
        '{"customer": {"first_name": 1e999}}',
        '{"customer": {"first_name": "\\ud800"}}',
        b'{"customer": {"first_name": "\xff"}}',
        b'\xef\xbb\xbf{"customer": {"email": "a@example.com"}}',
        "[" * 100_000,
    ],
    ids=range(9),
)
@pytest.mark.parametrize(("method", "path"), [("POST", "/customers"), ("PUT", "/customers/1")])
def test_body_that_is_not_json_is_rejected(admin, method, path, body):
    assert refusal(admin.request(method, path, data=body)) == (400, "shop_api_invalid_json")
    assert len(customers_of(admin)) == 1
