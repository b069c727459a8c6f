"""Maximum sizes of fields, and limits of the work for rejected requests (decisions 17)."""

import json
import re
import time

import pytest

from app.schemas import strict
from app.schemas.fields.list_input import MAX_INVALID_ITEMS
from app.schemas.strict import MAX_UNKNOWN
from tests.api_client import codes, refused_params, reply
from tests.conversions.inputs import steps

pytestmark = pytest.mark.one_database

NAMES = ["first_name", "last_name"]
SHIPPING = [*NAMES, "company", "address_1", "address_2", "city", "state", "postcode", "country"]
TEXTS = [
    ("coupon", "code", 500),
    ("coupon", "description", 65_536),
    ("customer", "email", 254),
    ("customer", "username", 60),
    ("customer", "password", 65_536),
    *(("customer", name, 1000) for name in NAMES),
    *(("customer", f"billing_address.{name}", 1000) for name in [*SHIPPING, "email", "phone"]),
    *(("customer", f"shipping_address.{name}", 1000) for name in SHIPPING),
]
IDS = [
    f"{kind}_ids"
    for kind in ("product", "exclude_product", "product_category", "exclude_product_category")
]
ARRAYS = [
    *(("coupon", name, 10_000, 7) for name in IDS),
    ("coupon", "customer_emails", 1000, "a@example.com"),
]
REQUIRED = {"coupon": {"code": "summer"}, "customer": {"email": "ann@example.com"}}


def of_length(field, length):
    """A text for a field; its markup counts, because nothing is cleaned before."""
    if field == "email":
        return "a@" + "b" * (length - 6) + ".com"
    return "x" * length if field == "username" else "<b>" + "x" * (length - 3)


def record(kind, field, value):
    parent, _, part = field.rpartition(".")
    return REQUIRED[kind] | ({parent: {part: value}} if parent else {field: value})


def send_all(admin, kind, field, value, existing):
    """The entries of the errors of a create, an edit, and a bulk of both; None without an error."""
    body = record(kind, field, value)
    create = admin.post(f"/{kind}s", {kind: body})
    edit = admin.put(f"/{kind}s/{existing}", {kind: body})
    bulk = admin.post(f"/{kind}s/bulk", {f"{kind}s": [body, {"id": existing} | body]})
    for response in (create, edit):
        yield response.get_json().get("errors", [None])[0]
    for result in bulk.get_json()[f"{kind}s"]:
        yield result.get("error")


@pytest.fixture
def existing(make_coupon, make_customer):
    return {"coupon": make_coupon()["id"], "customer": make_customer()["id"]}


@pytest.mark.sample(9)
@pytest.mark.parametrize(("kind", "field", "limit"), TEXTS)
def test_text_beyond_its_limit(admin, existing, kind, field, limit):
    value = of_length(field, limit + 1)
    for error in send_all(admin, kind, field, value, existing[kind]):
        assert error["code"] == "shop_api_invalid_param"
        assert f"is longer than {limit:,} characters." in error["message"]


@pytest.mark.sample(9)
@pytest.mark.parametrize(("kind", "field", "limit"), TEXTS)
def test_text_at_its_limit(admin, existing, kind, field, limit):
    for error in send_all(admin, kind, field, of_length(field, limit), existing[kind]):
        assert error is None or error["code"] != "shop_api_invalid_param"


@pytest.mark.parametrize(("kind", "field", "limit", "entry"), ARRAYS)
def test_array_beyond_its_limit(admin, existing, kind, field, limit, entry):
    for error in send_all(admin, kind, field, [entry] * (limit + 1), existing[kind]):
        assert error["code"] == "shop_api_invalid_param"
        assert f"has more than {limit:,} entries." in error["message"]


@pytest.mark.parametrize(("kind", "field", "limit", "entry"), ARRAYS)
def test_array_at_its_limit(admin, kind, field, limit, entry):
    response = admin.post("/coupons", {"coupon": {"code": "a", field: [entry] * limit}})
    assert response.get_json()["coupon"][field] == [entry] * limit


def test_entry_of_an_array_beyond_its_limit(admin):
    for field, entry in (("customer_emails", "a" * 255), ("product_ids", "1" * 1001)):
        response = admin.post("/coupons", {"coupon": {"code": "a", field: ["1", entry]}})
        assert refused_params(response) == [f"coupon.{field}"]
        message = response.get_json()["errors"][0]["message"]
        assert f"the entry at index 1 is longer than {len(entry) - 1:,} characters." in message


@pytest.mark.parametrize("field", ["amount", "usage_limit", "expiry_date"])
def test_text_of_a_number_or_a_date_beyond_its_limit(admin, field):
    response = admin.post("/coupons", {"coupon": {"code": "a", field: " " * 1001}})
    assert refused_params(response) == [f"coupon.{field}"]


@pytest.mark.both_databases
def test_limit_of_a_number_in_a_text_is_its_number_of_digits(admin):
    response = admin.post("/customers", {"customer": {"email": "a@b.de", "username": 10**60}})
    assert refused_params(response) == ["customer.username"]


@pytest.mark.parametrize("path", ["/coupons", "/customers", "/orders"])
def test_search_beyond_its_limit(admin, path):
    assert admin.get(path, {"filter[q]": "a" * 1000}).status_code == 200
    response = admin.get(path, {"filter[q]": "a" * 1001})
    assert refused_params(response) == ["filter[q]"]
    assert "1,000" in response.get_json()["errors"][0]["message"]


@pytest.mark.parametrize("name", ["filter[in]", "filter[not_in]"])
def test_ids_of_a_filter_beyond_their_limit(admin, name):
    assert admin.get("/coupons", {name: ",".join("1" * 1000)}).status_code == 200
    response = admin.get("/coupons", {name: ",".join("1" * 1001)})
    assert refused_params(response) == [name]
    assert "1,000" in response.get_json()["errors"][0]["message"]


@pytest.mark.parametrize("name", ["filter[in]", "filter[not_in]"])
def test_empty_entries_of_a_filter_do_not_count(admin, make_coupon, name):
    ids = f"{',' * 1500}{make_coupon()['id']}, ,"
    response = admin.get("/coupons", {name: ids})
    assert len(response.get_json()["coupons"]) == (name == "filter[in]")


@pytest.mark.parametrize("digits", ["0" * 5000 + "{id}", "{id},9223372036854775808," + "9" * 5000])
def test_ids_of_a_filter_have_any_number_of_digits(admin, make_coupon, digits):
    coupon = make_coupon()
    response = admin.get("/coupons", {"filter[in]": digits.format(id=coupon["id"])})
    assert response.get_json() == {"coupons": [coupon]}


def test_note_of_an_order_beyond_its_limit(admin):
    response = admin.post("/orders", {"order": {"note": "x" * 65_536}})
    order = response.get_json()["order"]
    assert order["note"] == "x" * 65_536
    body = {"order": {"note": "x" * 65_537}}
    for response in (admin.post("/orders", body), admin.put(f"/orders/{order['id']}", body)):
        assert refused_params(response) == ["order.note"]
        assert "is longer than 65,536 characters." in response.get_json()["errors"][0]["message"]


def schema_of(document, kind, field):
    schemas = document["components"]["schemas"]
    schema = schemas[f"{kind.title()}Create"]
    for name in field.split("."):
        if "properties" not in schema:
            (reference,) = [
                each["$ref"] for each in [schema, *schema.get("anyOf", [])] if "$ref" in each
            ]
            schema = schemas[reference.rpartition("/")[2]]
        schema = schema["properties"][name]
    return schema


def test_limits_are_in_the_document(anonymous):
    document = anonymous.get("/openapi.json").get_json()
    for kind, field, limit in TEXTS:
        assert schema_of(document, kind, field)["maxLength"] == limit
    for kind, field, limit, _ in ARRAYS:
        assert schema_of(document, kind, field)["maxItems"] == limit
    emails = schema_of(document, "coupon", "customer_emails")
    assert emails["items"] == {"$ref": "#/components/schemas/CouponEmail"}
    assert document["components"]["schemas"]["CouponEmail"]["maxLength"] == 254
    assert schema_of(document, "order", "note")["maxLength"] == 65_536
    parameters = document["paths"]["/coupons"]["get"]["parameters"]
    patterns = {each["name"]: each["schema"].get("pattern") for each in parameters}
    for name in ("in", "not_in"):
        assert re.fullmatch(patterns[name], ",".join("1" * 1000))
        assert not re.fullmatch(patterns[name], ",".join("1" * 1001))


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("limits", [{}, {"BULK": 7, "CART_ITEM": 8, "CART_CODE": 9}])
@pytest.mark.parametrize("mount", ["", "/wc-api/v3"])
@pytest.mark.parametrize("version", ["3.1.0", "3.0.3"])
def test_limits_of_settings_are_in_the_document(client_with, limits, mount, version):
    changed = {f"SHOP_{name}_LIMIT": limit for name, limit in limits.items()}
    client = client_with(SHOP_OPENAPI_VERSION=version, **changed)
    text = client.get(f"{mount}/openapi.json").get_data(as_text=True)
    schemas = json.loads(text)["components"]["schemas"]
    assert "x-limit" not in text
    for kind in ("Coupon", "Customer", "Order"):
        (items,) = schemas[f"{kind}BulkRequest"]["properties"].values()
        assert items["maxItems"] == limits.get("BULK", 100)
    if not mount:
        cart = schemas["Cart"]["properties"]
        assert cart["items"]["maxItems"] == limits.get("CART_ITEM", 100)
        assert cart["coupons"]["maxItems"] == limits.get("CART_CODE", 20)


# --- what Python calls errors are ours (decisions 1) ---

ODD = ["0e99999999999999999999", "-0.0E+99999999999999999999", "1e-99999999999999999999"]
FIELDS = [
    "amount", "minimum_amount", "usage_limit", "product_ids", "code", "description", "expiry_date",
    "individual_use", "customer_emails", "unknown", "type",
]  # fmt: skip


@pytest.mark.sample(11)
@pytest.mark.parametrize("number", ODD)
@pytest.mark.parametrize("field", FIELDS)
def test_number_with_an_exponent_beyond_any(admin, field, number):
    code = "" if field == "code" else '"code": "x", '
    text = f'{{{code}"{field}": {number}}}'
    response = admin.request("POST", "/coupons", data=f'{{"coupon": {text}}}')
    assert response.status_code in {201, 400}
    if field in {"amount", "minimum_amount"}:
        assert response.get_json()["coupon"][field] == "0.00"
    body = f'{{"coupons": [{text}, {{"code": "fine", "amount": 1.005}}]}}'
    first, second = admin.request("POST", "/coupons/bulk", data=body).get_json()["coupons"]
    assert ("error" in first) or first["id"]
    assert second["amount"] == "1.01"


@pytest.mark.parametrize("zeros", [1, 20, 400, 5000])
def test_zeros_of_a_character_reference(admin, zeros):
    for reference in (f"&#{'0' * zeros}65;", f"&#x{'0' * zeros}41;"):
        response = admin.post("/customers", {"customer": {"email": "", "first_name": reference}})
        assert "digits" not in response.get_data(as_text=True)
        bulk = {"coupons": [{"code": f"{reference}{len(reference)}"}]}
        (result,) = admin.post("/coupons/bulk", bulk).get_json()["coupons"]
        assert "int_max_str" not in str(result)
        if zeros == 20:
            assert result["code"] == f"a{len(reference)}"
        if zeros == 400:  # longer than any reference that a program writes
            assert result["code"] == f"{reference}{len(reference)}".lower()


@pytest.mark.parametrize("depth", range(850, 1050, 10))
def test_body_nested_deeply(admin, depth):
    body = f'{{"coupon": {"[" * depth}{"]" * depth}}}'
    response = admin.request("POST", "/coupons", data=body)
    assert response.status_code == 400
    assert "maximum recursion" not in response.get_data(as_text=True)


# --- a key without capabilities costs little ---

MOST = 64 * 1024
SECONDS = 0.5  # ten times what the dearest takes on an idle machine; a square takes minutes
FULL = 5 * 1024 * 1024


def filled(start, unit, end, size):
    """JSON of about a size in bytes: a start, a unit again and again, an end."""
    room = size - len(start.encode()) - len(end) - 8
    return start + ",".join([unit] * (room // (len(unit.encode()) + 1))) + end


def hostile(size):
    yield (
        "idn",
        "/coupons",
        filled('{"coupon":{"code":"a","customer_emails":[', '"ä@ö.example"', "]}}", size),
    )
    yield (
        "plain",
        "/coupons",
        filled('{"coupon":{"code":"a","customer_emails":[', '"abcdefg@example.com"', "]}}", size),
    )
    yield (
        "brackets",
        "/customers",
        ('{"customer":{"email":"a@b.de","first_name":"' + "<" * (size - 60) + '"}}'),
    )
    yield "code", "/coupons", '{"coupon":{"code":"' + "<a" * (size // 2 - 20) + '"}}'
    yield "ids", "/coupons", filled('{"coupon":{"code":"a","product_ids":[', "1", "]}}", size)
    yield "keys", "/coupons", filled('{"coupon":{"code":"a","x":[', '{"a":1.5}', "]}}", size)
    emails = json.dumps({"code": "a", "customer_emails": ["ä@ö.example"] * 50}, ensure_ascii=False)
    yield "bulk of emails", "/coupons/bulk", filled('{"coupons":[', emails, "]}", size)
    names = json.dumps({"email": "ä@ö.de", "first_name": "<" * 900})
    yield "bulk of names", "/customers/bulk", filled('{"customers":[', names, "]}", size)
    edits = json.dumps({"id": 1, "email": "ä@ö.de", "last_name": "<a" * 400})
    yield "bulk of edits", "/customers/bulk", filled('{"customers":[', edits, "]}", size)
    item = filled('{"cart":{"items":[', '{"price":1}', "]}}", size)
    yield "items of a cart", "/coupons/evaluate", item
    yield "codes of a cart", "/coupons/evaluate", filled('{"cart":{"coupons":[', '"a"', "]}}", size)


@pytest.mark.sample(5)
@pytest.mark.parametrize("size", [MOST, FULL])
@pytest.mark.parametrize("name", [name for name, _, _ in hostile(1000)])
def test_request_without_capabilities_takes_little_time(client_for, name, size):
    client = client_for("customer")
    ((path, body),) = [(path, body) for key, path, body in hostile(size) if key == name]
    cheapest = SECONDS * 2
    for _ in range(3):  # the machine has others to serve
        begun = time.process_time()
        response = client.http.open(path, method="POST", data=body, headers=headers_of(client))
        cheapest = min(cheapest, time.process_time() - begun)
        assert response.status_code in {200, 400, 401, 413}
    assert cheapest < SECONDS


@pytest.mark.parametrize("item", ["[]", "{}", '""'])
@pytest.mark.parametrize("kind", ["coupon", "order", "customer"])
def test_items_of_a_legacy_request_beyond_the_limit_are_not_converted(client_for, kind, item):
    client = client_for("customer")

    def send(number):
        body = f'{{"{kind}s": [{",".join([item] * number)}]}}'
        response = client.request("POST", f"/wc-api/v3/{kind}s/bulk", data=body)
        code = f"woocommerce_api_{kind}s_request_entity_too_large"
        assert codes(response) == (413, code)

    send(101)  # the first request is the slowest
    # Less than a line of Python for each item. Other work of a request differs by some thousands.
    assert steps(send, 20_000) - steps(send, 200) < 10_000


STRICT = {"Prefer": "handling=strict"}


@pytest.mark.parametrize(
    ("path", "key", "name"),
    [
        ("/coupons/bulk", "coupons", "exclude_produc"),
        ("/orders/bulk", "orders", "billing_addr"),
        ("/customers/bulk", "customers", "emai"),
    ],
)
def test_unknown_names_of_a_bulk_request_are_compared_within_a_limit(
    client_for, monkeypatch, path, key, name
):
    compared = []
    nearest = strict.nearest_name
    monkeypatch.setattr(
        strict, "nearest_name", lambda *args: compared.append(args) or nearest(*args)
    )
    items = [{f"{name}{number}": 1 for number in range(28)}] * 100
    response = client_for("customer").post(path, {key: items}, headers=STRICT)
    messages = [item["error"]["message"] for item in response.get_json()[key]]
    assert len(compared) == MAX_UNKNOWN
    assert messages[0].count("did you mean") == MAX_UNKNOWN
    assert messages[1:] == [f"{name}0: unknown field '{name}0'."] * 99


def test_unknown_names_of_many_items_are_compared_within_a_limit(client_for, monkeypatch):
    compared = []
    monkeypatch.setattr(strict, "nearest_name", lambda *args: compared.append(args) or "")
    items = [{f"produc_i{number}": 1 for number in range(4)}] * 900
    body = {"order": {"line_items": items}}
    assert refused_params(client_for("customer").post("/orders", body, headers=STRICT))
    assert len(compared) == MAX_UNKNOWN


@pytest.mark.parametrize("item", [{}, [], 1, {"price": "x"}])
def test_error_reports_the_first_invalid_items_of_a_list(admin, item):
    cart = {"cart": {"items": [item] * 100}}
    names = refused_params(admin.post("/coupons/evaluate", cart))
    assert [name.partition("]")[0] for name in names] == [
        f"cart.items[{index}" for index in range(MAX_INVALID_ITEMS)
    ]
    item = item or 1  # no field of a line item is required
    lines = [{"name": "Mug", "price": "1"}] + [item] * 900
    names = refused_params(admin.post("/orders", {"order": {"line_items": lines}}))
    assert [name.partition("]")[0] for name in names] == [
        f"order.line_items[{index}" for index in range(1, MAX_INVALID_ITEMS + 1)
    ]


@pytest.mark.parametrize("strict", [False, True])
def test_items_of_a_cart_beyond_the_limit_are_not_converted(client_for, strict):
    def reason(cart):
        headers = {"Prefer": "handling=strict"} if strict else {}
        response = client_for("customer").post("/coupons/evaluate", {"cart": cart}, headers=headers)
        error = response.get_json()["errors"][0]
        return response.status_code, error["code"], error["message"]

    def too_large(what):
        message = f"A cart can contain at most {what}."
        return 413, "shop_api_cart_request_entity_too_large", message

    assert reason({"items": [{"price": []}] * 100})[1] == "shop_api_invalid_param"
    assert reason({"items": [{"price": []}] * 101}) == too_large("100 items")
    assert reason({"items": [{"price": 1}] * 100})[1] == "shop_api_user_cannot_read_coupons"
    assert reason({"coupons": ["a", "A "] * 500})[1] == "shop_api_user_cannot_read_coupons"
    assert reason({"coupons": [[]] * 1001}) == too_large("1000 entries in coupons")
    assert reason({"coupons": [f"c{number}" for number in range(21)]}) == too_large(
        "20 coupon codes"
    )


def headers_of(client):
    return {"Authorization": client.get("/coupons").request.headers["Authorization"]}


def test_order_of_checks_is_the_same_without_capabilities(client_for, make_coupon, make_customer):
    client = client_for("customer")
    coupon, customer = make_coupon()["id"], make_customer()["id"]
    long = "x" * 1001
    for path, kind, unknown in (
        (f"/coupons/{coupon}", "coupon", "/coupons/999"),
        (f"/customers/{customer}", "customer", "/customers/999"),
    ):
        field = "code" if kind == "coupon" else "first_name"
        assert codes(client.put(path, {}))[1] == f"shop_api_missing_{kind}_data"
        assert refused_params(client.put(path, {kind: {field: long}})) == [f"{kind}.{field}"]
        assert refused_params(client.put(unknown, {kind: {field: []}})) == [f"{kind}.{field}"]
        assert "invalid" in codes(client.put(unknown, {kind: {field: "<b>"}}))[1]
        edited = client.put(path, {kind: {field: "<b>"}})
        assert codes(edited)[1] == f"shop_api_user_cannot_edit_{kind}"
        created = client.post(f"/{kind}s", {kind: {"email": "x", "code": "<"}})
        assert codes(created) == (401, f"shop_api_user_cannot_create_{kind}")
        assert refused_params(client.post(f"/{kind}s", {kind: {field: []}}))
        items = [{field: "a"}, {field: []}, {"id": 999}, {"id": -1}]
        results = client.post(f"/{kind}s/bulk", {f"{kind}s": items}).get_json()[f"{kind}s"]
        missing = "shop_api_invalid_coupon_id" if kind == "coupon" else "shop_api_invalid_customer"
        assert [result["error"]["code"] for result in results] == [
            f"shop_api_user_cannot_create_{kind}",
            "shop_api_invalid_param",
            missing,
            f"shop_api_invalid_{kind}_id",
        ]


def test_body_of_a_key_without_capabilities(client_for, admin):
    body = {"coupon": {"description": "x" * 65_536}}
    response = client_for("customer", login="ann").post("/coupons", body)
    assert reply(response)[0] == 413
    assert "65536" in response.get_json()["errors"][0]["message"]
    assert codes(admin.post("/coupons", body)) == (400, "shop_api_missing_coupon_code")
