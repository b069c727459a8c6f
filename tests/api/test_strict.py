"""Strict requests: no input is ignored or changed (decisions 15)."""

import pytest

from app.api.request_parser import _HANDLING
from app.schemas.strict import MAX_UNKNOWN
from tests.api_client import Client, refused_params, reply

pytestmark = pytest.mark.one_database

STRICT = {"Prefer": "handling=strict"}
APPLIED = "handling=strict"


@pytest.fixture
def strict(app, admin):
    """A client whose requests are strict."""

    class Strict(Client):
        def request(self, method, path, **kwargs):
            kwargs["headers"] = STRICT | dict(kwargs.get("headers", {}))
            return super().request(method, path, **kwargs)

    return Strict(app, admin.key)


def messages(response):
    """What a response says about each rejected input."""
    assert response.status_code == 400, response.get_json()
    assert response.headers["Preference-Applied"] == APPLIED
    found = {}
    for entry in response.get_json()["errors"]:
        assert entry["code"] == "shop_api_invalid_param"
        found[entry["param"]] = entry["message"].removeprefix(f"{entry['param']}: ")
    return found


# --- requests that are strict in every mode ---


@pytest.mark.parametrize("headers", [{}, {"Prefer": "handling=lenient"}], ids=str)
@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        (
            "/keys",
            {"key": {"login": "bob", "role": "customer"}},
            {"key.login": "unknown field 'login'."},
        ),
        (
            "/keys",
            {"key": {"usrname": "bob"}, "kye": {}},
            {
                "kye": "unknown field 'kye'; did you mean 'key'?",
                "key.usrname": "unknown field 'usrname'; did you mean 'username'?",
            },
        ),
        ("/keys?fields=id", {"key": {}}, {"fields": "unknown parameter 'fields'."}),
        (
            "/coupons/generate",
            {"generate": {"count": 2, "patern": "####", "coupon": {"ammount": "5"}}},
            {
                "generate.patern": "unknown field 'patern'; did you mean 'pattern'?",
                "generate.coupon.ammount": "unknown field 'ammount'; did you mean 'amount'?",
            },
        ),
        (
            "/coupons/generate",
            {"generate": {"count": 2, "coupon": {"amount": "5%"}}},
            {"generate.coupon.amount": "must be a decimal number."},
        ),
        (
            "/coupons/generate?count=2",
            {"generate": {"count": 2}},
            {"count": "unknown parameter 'count'."},
        ),
    ],
    ids=str,
)
def test_requests_that_give_rights_or_money_are_always_strict(admin, headers, path, body, expected):
    before = admin.get("/keys").get_json(), admin.get("/coupons").get_json()
    assert messages(admin.post(path, body, headers=headers)) == expected
    assert (admin.get("/keys").get_json(), admin.get("/coupons").get_json()) == before


def test_update_of_a_key_and_queries_are_always_strict(admin):
    path = f"/keys/{admin.key.key_id}"
    for field, known in {"expires": "expires_at", "ressources": "resources"}.items():
        message = f"unknown field '{field}'; did you mean '{known}'?"
        response = admin.put(path, {"key": {field: ""}})
        assert messages(response) == {f"key.{field}": message}
    assert messages(admin.put(path, {"key": {"username": "ann", "user_id": 7}})) == {
        "key.username": "unknown field 'username'.",
        "key.user_id": "unknown field 'user_id'.",
    }
    assert messages(admin.delete(f"{path}?x=1")) == {"x": "unknown parameter 'x'."}
    assert messages(admin.post(f"{path}/rotate?x=1")) == {"x": "unknown parameter 'x'."}
    for path in ("/keys", "/coupons/batches"):
        assert messages(admin.get(f"{path}?filter[limt]=1")) == {
            "filter[limt]": "unknown parameter 'filter[limt]'; did you mean 'filter[limit]'?"
        }
    # The received times and ID can be sent back.
    sent = {"id": 1, "created_at": "2020-01-01", "description": "x"}
    assert admin.put(f"/keys/{admin.key.key_id}", {"key": sent}).status_code == 200


# --- unknown names ---


def test_unknown_fields_with_the_nearest_name_together_with_other_errors(strict, admin):
    coupon = {"code": "a", "ammount": "1", "colour": "red", "usage_limit": [], "amount": "x"}
    body = {"coupon": coupon, "extra": 1}
    assert messages(strict.post("/coupons", body)) == {
        "extra": "unknown field 'extra'.",
        "coupon.ammount": "unknown field 'ammount'; did you mean 'amount'?",
        "coupon.colour": "unknown field 'colour'.",
        "coupon.usage_limit": "must be an integer.",
        "coupon.amount": "must be a decimal number.",
    }
    assert admin.get("/coupons").get_json() == {"coupons": []}
    lenient = {name: coupon[name] for name in ("code", "ammount", "colour")}
    response = admin.post("/coupons", {"coupon": lenient, "extra": 1})
    assert response.status_code == 201
    assert "Preference-Applied" not in response.headers


def test_unknown_fields_of_nested_objects_and_lists(strict):
    customer = {"email": "a@example.com", "billing_address": {"citty": "x", "city": "y"}}
    assert messages(strict.post("/customers", {"customer": customer})) == {
        "customer.billing_address.citty": "unknown field 'citty'; did you mean 'city'?"
    }
    order = {
        "line_items": [
            {"name": "Mug", "price": "1"},
            {"name": "Mug", "prise": "1", "meta": [{"kei": "a"}]},
        ],
        "payment_details": {"payed": True},
    }
    assert messages(strict.post("/orders", {"order": order})) == {
        "order.line_items[1].prise": "unknown field 'prise'; did you mean 'price'?",
        "order.line_items[1].meta[0].kei": "unknown field 'kei'; did you mean 'key'?",
        "order.payment_details.payed": "unknown field 'payed'; did you mean 'paid'?",
    }
    cart = {"coupons": [], "items": [{"price": "1", "on_sail": True}]}
    assert messages(strict.post("/coupons/evaluate", {"cart": cart})) == {
        "cart.items[0].on_sail": "unknown field 'on_sail'; did you mean 'on_sale'?"
    }


def test_bulk_item_fails_alone(strict):
    items = [{"code": "a"}, {"code": "b", "ammount": 1}, {"code": "c", "usage_limit": "12abc"}]
    response = strict.post("/coupons/bulk", {"coupons": items})
    assert response.status_code == 200
    assert response.headers["Preference-Applied"] == APPLIED
    results = response.get_json()["coupons"]
    assert results[0]["code"] == "a"
    errors = [result["error"]["message"] for result in results[1:]]
    assert errors == [
        "ammount: unknown field 'ammount'; did you mean 'amount'?",
        "usage_limit: would be converted to 12.",
    ]
    changes = [{"id": results[0]["id"], "amount": "5", "created_at": "x"}]
    (changed,) = strict.post("/coupons/bulk", {"coupons": changes}).get_json()["coupons"]
    assert changed["amount"] == "5.00"


def test_record_can_be_sent_as_it_was_received(strict, make_coupon):
    coupon = make_coupon(amount="12.50", product_ids=[1], minimum_amount="1", description="x")
    path = f"/coupons/{coupon['id']}"
    response = strict.put(path, {"coupon": strict.get(path).get_json()["coupon"]})
    assert response.status_code == 200, response.get_json()


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        ("/coupons", {"filter[lmit]": 1}, "unknown parameter 'filter[lmit]'; did you mean 'filter["),
        ("/coupons", {"filter[typ]": 1}, "unknown parameter 'filter[typ]'; did you mean 'filter[type]'?"),
        ("/coupons", {"limit": 1}, "unknown parameter 'limit'."),
        ("/orders", {"filter[lmit]": 1}, "unknown parameter 'filter[lmit]'; did you mean 'filter[limit]'?"),
        ("/orders", {"filter[]": 1}, "unknown parameter 'filter[]'"),
        ("/orders/statuses", {"field": 1}, "unknown parameter 'field'"),
        ("/customers/count", {"fields": "id"}, "unknown parameter 'fields'"),
        ("/events", {"filter[user]": 1}, "unknown parameter 'filter[user]'"),
    ],
)  # fmt: skip
def test_unknown_parameters(strict, admin, path, query, expected):
    ((param, message),) = messages(strict.get(path, query)).items()
    assert [param] == list(query)
    assert message.startswith(expected)
    assert admin.get(path, query).status_code == 200


def test_unknown_parameters_of_writes(strict, admin, make_coupon):
    path = f"/coupons/{make_coupon()['id']}"
    for method, query in [("PUT", "force=true"), ("DELETE", "froce=true"), ("DELETE", "force=yes")]:
        response = strict.request(method, f"{path}?{query}", json={"coupon": {}})
        assert list(messages(response)) == [query.partition("=")[0]]
    assert strict.get(path).status_code == 200
    assert strict.delete(f"{path}?force=false").get_json() == {"message": "Deleted coupon"}


def test_parameters_are_reported_together(strict):
    query = {"pag": 1, "page": 0, "filter[order]": "up"}
    assert set(messages(strict.get("/coupons", query))) == set(query)


def test_operations_without_a_key_ignore_unknown_parameters(strict):
    response = strict.get("/", {"page": 1})
    assert response.status_code == 200
    assert "Preference-Applied" not in response.headers


def test_known_parameters_are_accepted(strict):
    query = {"page": "", "filter[limit]": " 5", "filter[role]": "all", "fields": "id, email"}
    assert strict.get("/customers", query).status_code == 200


FIELDS = [
    ("/coupons", "id,cod", "fields: unknown field 'cod'; did you mean 'code'?"),
    ("/coupons/code/a", "code.x", "fields: unknown field 'code.x'; did you mean 'code'?"),
    ("/customers", "billing_address.citty", "fields: unknown field 'billing_address.citty'; did you mean 'billing_address.city'?"),
    ("/orders", "totl", "fields: unknown field 'totl'; did you mean 'total'?"),
    ("/orders", "customer.emial", "fields: unknown field 'customer.emial'; did you mean 'customer.email'?"),
    ("/orders", "line_items.nam,a,b", "fields: unknown field 'line_items.nam'; did you mean 'line_items.name'? unknown field 'a'. unknown field 'b'."),
    ("/orders/trash", "trashd_at", "fields: unknown field 'trashd_at'; did you mean 'trashed_at'?"),
    ("/events", "typ", "fields: unknown field 'typ'; did you mean 'type'?"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "fields", "message"), FIELDS)
def test_unknown_names_in_fields(strict, admin, make_coupon, path, fields, message):
    make_coupon(code="a")
    response = strict.get(path, {"fields": fields})
    assert response.status_code == 400
    assert response.get_json() == {
        "errors": [{"code": "shop_api_invalid_param", "message": message, "param": "fields"}]
    }
    assert admin.get(path, {"fields": fields}).status_code == 200


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/customers", " id, billing_address , shipping_address.city,,email"),
        ("/orders", "id,customer.email,customer.orders_count,shipping_lines.total,customer"),
        ("/coupons", ","),
        ("/orders", ""),
    ],
)
def test_known_names_in_fields(strict, path, fields):
    assert strict.get(path, {"fields": fields}).status_code == 200


# --- values ---

COUPON = [
    ("amount", "10.555", "would be converted to 10.56."),
    ("amount", "", "would be converted to 0.00."),
    ("minimum_amount", 1.999, "would be converted to 2.00."),
    ("usage_limit", "12abc", "would be converted to 12."),
    ("usage_limit", 5.9, "would be converted to 5."),
    ("usage_limit", "", "would be converted to 0."),
    ("usage_limit", True, "would be converted to 1."),
    ("usage_limit", -5, "would be converted to 5."),
    ("individual_use", "true", "must be true or false."),
    ("individual_use", 1, "must be true or false."),
    ("individual_use", "\0", "must be true or false."),
    ("code", "<b>a</b>", "contains markup, entities or control characters, which would be removed."),
    ("code", "a&amp;b", "contains markup, entities or control characters, which would be removed."),
    ("code", "a\x07", "contains markup, entities or control characters, which would be removed."),
    ("product_ids", [1, 0], "must contain only IDs. Other entries would be dropped or converted."),
    ("product_ids", [1, None], "must contain only IDs. Other entries would be dropped or converted."),
    ("product_ids", ["1x"], "must contain only IDs. Other entries would be dropped or converted."),
    ("product_ids", [1.5], "must contain only IDs. Other entries would be dropped or converted."),
    ("product_ids", [True], "must contain only IDs. Other entries would be dropped or converted."),
    ("customer_emails", ["a@example.com", "x"], "must contain only valid e-mail addresses. Other entries would be dropped or converted."),
    ("customer_emails", ["a b@example.com"], "must contain only valid e-mail addresses. Other entries would be dropped or converted."),
    ("customer_emails", [None], "must contain only valid e-mail addresses. Other entries would be dropped or converted."),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value", "message"), COUPON, ids=str)
def test_value_that_would_be_changed(strict, admin, field, value, message):
    body = {"coupon": {"code": "a", field: value}}
    assert messages(strict.post("/coupons", body)) == {f"coupon.{field}": message}
    path = f"/coupons/{admin.post('/coupons', body).get_json()['coupon']['id']}"
    assert messages(strict.put(path, {"coupon": {field: value}})) == {f"coupon.{field}": message}


@pytest.mark.parametrize(
    ("field", "value", "stored"),
    [
        ("amount", 10, "10.00"),
        ("amount", " 10.5 ", "10.50"),
        ("amount", "1e3", "1000.00"),
        ("amount", "-0.00", "0.00"),
        ("amount", None, "0.00"),
        ("minimum_amount", "", "0.00"),
        ("usage_limit", "5", 5),
        ("usage_limit", 5.0, 5),
        ("usage_limit", 0, None),
        ("individual_use", False, False),
        ("code", "  Summer  Sale ", "summer sale"),
        ("code", "a < b", "a < b"),
        ("product_ids", ["7", -3], [7, -3]),
        ("customer_emails", ["*@Example.COM", " A@b.de"], ["*@example.com", "A@b.de"]),
        ("expiry_date", "31 December 2030", "2030-12-31T00:00:00Z"),
        ("expiry_date", "", None),
        ("description", "<b>kept</b>", "<b>kept</b>"),
    ],
    ids=str,
)
def test_value_that_is_the_same(strict, field, value, stored):
    response = strict.post("/coupons", {"coupon": {"code": "a", field: value}})
    assert response.status_code == 201, response.get_json()
    assert response.headers["Preference-Applied"] == APPLIED
    assert response.get_json()["coupon"][field] == stored


def test_values_of_a_customer(strict, admin, make_customer):
    path = f"/customers/{make_customer(email='ada@example.com')['id']}"
    changes = {
        "email": "not an address",
        "username": "new",
        "first_name": "<i>Ada</i>",
        "billing_address": {"city": "a\x00b"},
    }
    assert messages(strict.put(path, {"customer": changes})) == {
        "customer.email": "is not a valid e-mail address.",
        "customer.username": "cannot be updated.",
        "customer.first_name": "contains markup, entities or control characters, which would be "
        "removed.",
        "customer.billing_address.city": "must not contain a NUL character.",
    }
    kept = {"email": "Ada@EXAMPLE.com", "first_name": "Ada  Maria", "last_name": ""}
    changed = strict.put(path, {"customer": kept}).get_json()["customer"]
    assert (changed["email"], changed["first_name"]) == ("Ada@example.com", "Ada Maria")
    assert strict.put(path, {"customer": {"email": ""}}).get_json()["customer"]["email"] == ""


def test_values_of_an_order(strict):
    order = {
        "line_items": [{"name": "Mug", "quantity": "2x", "price": "1.1234567", "product_id": "a"}],
        "payment_details": {"paid": "yes"},
        "coupon_lines": [{"code": "<b>x</b>"}],
    }
    assert set(messages(strict.post("/orders", {"order": order}))) == {
        "order.line_items[0].quantity",
        "order.line_items[0].price",
        "order.line_items[0].product_id",
        "order.payment_details.paid",
        "order.coupon_lines[0].code",
    }
    order = {"line_items": [{"name": "Mug", "quantity": 2, "price": "4.85"}], "customer_id": 0}
    assert strict.post("/orders", {"order": order}).status_code == 201


# --- which requests are strict ---


@pytest.mark.parametrize(
    ("prefer", "expected"),
    [
        ("handling=strict", "strict"),
        ("Handling=Strict", "strict"),
        ('handling="strict"', "strict"),
        ("respond-async, handling = strict; x=1", "strict"),
        ("return=minimal,handling=lenient", "lenient"),
        ("handling=lenient, handling=strict", "lenient"),
        ("handling=stricter", None),
        ("xhandling=strict", None),
        ("wait=10", None),
        ("", None),
    ],
)
def test_preferences(prefer, expected):
    found = _HANDLING.search(prefer)
    assert (found and found[1].lower()) == expected


def test_setting_makes_requests_strict_unless_they_are_lenient(client_with):
    client = client_with(SHOP_STRICT=True)
    body = {"coupon": {"code": "a", "ammount": 1}}
    assert refused_params(client.post("/coupons", body)) == ["coupon.ammount"]
    other = client.post("/coupons", body, headers={"Prefer": "return=minimal"})
    assert refused_params(other) == ["coupon.ammount"]
    lenient = client.post("/coupons", body, headers={"Prefer": "handling=lenient"})
    assert lenient.status_code == 201
    assert "Preference-Applied" not in lenient.headers


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_legacy_api_is_never_strict(client_with, version):
    client = client_with(SHOP_STRICT=True)
    body = {"coupon": {"code": version, "ammount": 1, "usage_limit": "12abc"}}
    path = f"/wc-api/{version}/coupons?foo=1"
    response = client.post(path, body, headers=STRICT)
    assert response.status_code == 201
    assert response.get_json()["coupon"]["usage_limit"] == 12
    assert "Preference-Applied" not in response.headers
    assert client.get(path, headers=STRICT).status_code == 200


def test_missing_object_and_credentials_take_precedence(strict, anonymous):
    assert reply(strict.post("/coupons", {"coupn": {}}))[1]["errors"][0]["code"] == (
        "shop_api_missing_coupon_data"
    )
    response = anonymous.get("/coupons", {"x": 1}, headers=STRICT)
    assert response.status_code == 401
    assert "Preference-Applied" not in response.headers


def test_strict_and_lenient_requests_do_not_affect_each_other(strict, admin):
    body = {"order": {"line_items": [{"name": "Mug", "price": "1", "x": 1}], "x": 1}}
    for _ in range(2):
        assert admin.post("/orders", body).status_code == 201
        assert len(messages(strict.post("/orders", body))) == 2
        assert admin.get("/coupons", {"x": 1}).status_code == 200
        assert messages(strict.get("/coupons", {"x": 1}))


def test_unknown_names_are_reported_without_capabilities_too(client_for):
    client = client_for("customer")
    body = {"coupon": {"code": "<b>a</b>", "ammount": 1}}
    assert messages(client.post("/coupons", body, headers=STRICT)).keys() == {"coupon.ammount"}
    response = client.post("/coupons", {"coupon": {"code": "<b>a</b>"}}, headers=STRICT)
    assert response.status_code == 401


def test_number_of_reported_names_is_limited(strict):
    names = [f"x{number}" for number in range(10_000)] + ["y" * 100_000]
    body = {"coupon": {"code": "a", **dict.fromkeys(reversed(names))}}
    response = strict.post("/coupons", body)
    assert len(messages(response)) == MAX_UNKNOWN
    assert len(response.get_json()["errors"][0]["message"]) < 100_200


def test_other_origins_can_read_the_preference(client_with):
    client = client_with(SHOP_CORS_ORIGINS="https://admin.example")
    response = client.get("/coupons", headers=STRICT | {"Origin": "https://admin.example"})
    assert "Preference-Applied" in response.headers["Access-Control-Expose-Headers"]


def test_document_has_the_preference_where_it_applies(session_app):
    client = session_app.test_client()
    for version, is_native in (("", True), ("/wc-api/v2", False), ("/wc-api/v3", False)):
        document = client.get(f"{version}/openapi.json").get_json()
        for path, item in document["paths"].items():
            for operation in item.values():
                preferences = [
                    each["description"]
                    for each in operation.get("parameters", [])
                    if each["name"] == "Prefer"
                ]
                assert len(preferences) <= 1
                expected = is_native and "security" in operation
                assert ("handling=strict" in "".join(preferences)) is expected, path
