"""Order extensions in all responses with orders, also of plugins and plain views (spec 2.3, 2.4)."""

import gzip
import json
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from flask import Response, request
from sqlalchemy import event

from app.api.blueprint import Blueprint
from app.db.session import db
from tests.conftest import Client, reply
from tests.factories import insert_order
from tests.test_orders import GUEST, order_body

pytestmark = pytest.mark.one_database  # responses are extended after they are read


@pytest.fixture(scope="session")
def installed_plugin(tmp_path_factory):
    """Install the plugin's distribution into a separate folder, as pip does."""
    target = tmp_path_factory.mktemp("plugins")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
    subprocess.run([*command, str(Path(__file__).parent / "plugins" / "loyalty")], check=True)
    return str(target)


@pytest.fixture
def plugged(make_app, installed_plugin, monkeypatch, admin):
    """A client of an app in which the plugin is installed, beside the others."""
    monkeypatch.syspath_prepend(installed_plugin)
    return Client(make_app(), admin.key)


@pytest.fixture
def by_hand(make_app, admin):
    """Return a function: a client of an app with a plain view that returns ``make()``."""

    def build(make):
        own = make_app()
        own.add_url_rule("/by-hand", view_func=make, methods=["GET", "POST"])
        return Client(own, admin.key)

    return build


def test_plugin_coupon_type_works_over_http(plugged):
    body = {"coupon": {"code": "credit", "type": "store_credit"}}
    created = plugged.post("/coupons", body)
    assert (created.status_code, created.get_json()["coupon"]["type"]) == (201, "store_credit")
    refused = plugged.post("/coupons", {"coupon": {"code": "other", "type": "none"}})
    assert refused.get_json()["errors"][0]["message"] == (
        "Invalid coupon type - the coupon type must be any of these: "
        "fixed_cart, percent, fixed_product, percent_product, store_credit"
    )


def test_plugin_order_status_is_known(plugged, app, make_customer):
    customer = make_customer()["id"]
    insert_order(app, customer_id=customer, status="awaiting-pickup")
    assert plugged.get("/orders/count", {"filter[status]": "awaiting-pickup"}).get_json() == {
        "count": 1
    }
    statuses = plugged.get("/orders/statuses").get_json()["order_statuses"]
    assert statuses["awaiting-pickup"] == "Awaiting pickup"
    counted = {"fields": "orders_count"}
    known = plugged.get(f"/customers/{customer}", counted).get_json()
    unknown = Client(app, plugged.key).get(f"/customers/{customer}", counted).get_json()
    assert known == {"customer": {"orders_count": 1}}
    assert unknown == {"customer": {"orders_count": 0}}


def test_plugin_extension_is_in_every_order_before_the_customer(plugged, app):
    order_id = insert_order(app)
    order = plugged.get(f"/orders/{order_id}").get_json()["order"]
    assert list(order)[-2:] == ["loyalty", "customer"]
    assert order == order_body(order_id, loyalty={"points": 11})
    only = plugged.get("/orders", {"fields": "loyalty"}).get_json()
    assert only == {"orders": [{"loyalty": {"points": 11}}]}


def test_plugin_blueprint_with_order_schema_returns_the_same_orders(plugged, app, make_customer):
    customer = make_customer()["id"]
    ids = [
        insert_order(app, status="awaiting-pickup", customer_id=customer_id)
        for customer_id in (customer, None)
    ]
    expected = [plugged.get(f"/orders/{order_id}").get_json()["order"] for order_id in ids]
    response = plugged.get("/loyalty/pickup")
    assert response.get_json() == {"orders": expected}
    assert [list(order) for order in response.get_json()["orders"]] == [
        list(order) for order in expected
    ]


def test_plugin_schema_with_orders_under_names_of_its_own(plugged, app):
    small = insert_order(app, total=Decimal("1.00"))
    large = insert_order(app, total=Decimal("99.00"))
    body = plugged.get("/loyalty/highlights").get_json()
    assert (body["best"]["id"], body["best"]["customer"]) == (large, GUEST)
    assert [(order["id"], order["customer"]) for order in body["others"]] == [(small, GUEST)]
    assert body["by_number"]["1001"]["customer"] == GUEST


def test_plugin_class_of_methods_with_a_bare_order(plugged, app):
    order_id = insert_order(app)
    expected = plugged.get(f"/orders/{order_id}").get_json()["order"]
    assert plugged.get("/loyalty/newest").get_json() == expected


def test_plugin_view_by_hand_is_extended(plugged, app, make_customer):
    customer = make_customer()["id"]
    insert_order(app, customer_id=customer)
    insert_order(app)
    expected = plugged.get(f"/customers/{customer}").get_json()["customer"]
    first, second = plugged.get("/loyalty-by-hand").get_json()["orders"]
    assert first["customer"] == expected
    assert first["loyalty"] == {"points": 11}
    # The view showed no addresses, so the guest's form is filled from none.
    assert list(second["customer"]) == list(GUEST)


def test_plugin_routes_and_extensions_are_documented(plugged):
    document = plugged.get("/openapi.json").get_json()
    assert "/loyalty/pickup" in document["paths"]
    schemas = document["components"]["schemas"]
    for part in (list(schemas["Order"]["properties"]), schemas["Order"]["required"]):
        assert part[-2:] == ["loyalty", "customer"]
    assert schemas["Order"]["properties"]["customer"] == {
        "$ref": "#/components/schemas/OrderCustomer"
    }
    assert schemas["OrderCustomer"]["anyOf"] == [
        {"$ref": "#/components/schemas/Customer"},
        {"$ref": "#/components/schemas/GuestCustomer"},
    ]


def test_plugin_is_absent_from_an_app_made_without_it(admin):
    assert admin.get("/loyalty/pickup").status_code == 404


def test_orders_of_a_plain_view_need_one_more_statement(by_hand, make_customer):
    orders = [{"id": n, "customer_id": make_customer()["id"]} for n in range(1, 4)]
    client = by_hand(lambda: {"orders": orders})
    with client.app.app_context():
        engine = db.engines["read"]
    seen = []
    event.listen(engine, "before_cursor_execute", lambda *args: seen.append(args[2]))
    body = client.get("/by-hand").get_json()
    assert [order["customer"]["id"] for order in body["orders"]] == [
        order["customer_id"] for order in orders
    ]
    assert len(seen) == 1


def test_order_by_hand_keeps_its_numbers_beside_an_account(by_hand, admin, make_customer):
    customer = make_customer(billing_address={"city": "Zürich"})
    order = {"id": 10**30, "customer_id": customer["id"]}
    response = by_hand(lambda: {"order": order}).get("/by-hand")
    body = json.loads(response.get_data())  # orjson reads such a number as a float
    assert body["order"]["id"] == 10**30
    expected = admin.get(f"/customers/{customer['id']}").get_json()["customer"]
    assert body["order"]["customer"] == expected
    assert expected["billing_address"]["city"] == "Zürich"


def test_customer_of_an_order_of_a_plain_view_is_replaced(by_hand):
    order = {"customer": "made up", "id": 5, "customer_id": 0}
    body = by_hand(lambda: {"order": order}).get("/by-hand").get_json()
    assert list(body["order"]) == ["id", "customer_id", "customer"]
    assert body["order"]["customer"]["id"] == 0


def test_order_of_a_plain_view_and_a_deleted_account_is_a_guest_order(by_hand):
    body = by_hand(lambda: {"order": {"id": 5, "customer_id": 999_999}}).get("/by-hand").get_json()
    assert body["order"]["customer"]["id"] == 0


def test_order_by_hand_with_fields(by_hand):
    client = by_hand(lambda: {"order": {"id": 5, "customer_id": 0}})
    without = client.get("/by-hand", {"fields": "id,customer_id"}).get_json()
    assert without == {"order": {"id": 5, "customer_id": 0}}
    part = client.get("/by-hand", {"fields": "id,customer.id"}).get_json()
    assert part == {"order": {"id": 5, "customer_id": 0, "customer": {"id": 0}}}


@pytest.mark.one_database
@pytest.mark.parametrize(
    "body",
    [
        {"order": "asc"},
        {"order": {"direction": "asc"}},
        {"order": {"id": 5}},
        {"order": {"id": "5", "customer_id": 1}},
        {"order": {"id": True, "customer_id": 0}},
        {"order": {"id": 5, "customer_id": None}},
        {"order": {"id": 5, "customer_id": -1}},
        {"orders": []},
        {"orders": 3},
        {"orders": [{"id": 5, "customer_id": 0}, "no order"]},
        {"orders": {"5": {"id": 5, "customer_id": 0}}},
        {"other": {"id": 5, "customer_id": 0}},
        [{"order": {"id": 5, "customer_id": 0}}],
        {"nested": {"order": {"id": 5, "customer_id": 0}}},
    ],
    ids=json.dumps,
)
def test_response_that_is_not_an_order_passes_untouched(by_hand, body):
    def view():
        return body

    assert by_hand(view).get("/by-hand").get_json() == body


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("status", "mimetype"),
    [(200, "text/plain"), (404, "application/json"), (500, "application/json")],
)
def test_response_that_is_not_json_or_an_error_passes_untouched(by_hand, status, mimetype):
    text = '{"order": {"id": 5, "customer_id": 0}}'

    def view():
        return text, status, {"Content-Type": mimetype}

    response = by_hand(view).http.get("/by-hand")
    assert (response.status_code, response.get_data(as_text=True)) == (status, text)


@pytest.mark.one_database
def test_response_that_is_streamed_passes_untouched(by_hand):
    text = '{"order": {"id": 5, "customer_id": 0}}'

    def view():
        return iter([text]), 200, {"Content-Type": "application/json"}

    assert by_hand(view).http.get("/by-hand").get_data(as_text=True) == text


@pytest.mark.one_database
def test_response_that_is_broken_json_passes_untouched(by_hand):
    text = '{"order": {"id": 5, "customer_id": 0}'

    def view():
        return text, 200, {"Content-Type": "application/json"}

    assert by_hand(view).http.get("/by-hand").get_data(as_text=True) == text


# --- the text of other views (only the new keys are new) ---

INSERTED = ',"customer":' + json.dumps(GUEST | {
    "billing_address": dict.fromkeys(GUEST["billing_address"], ""),
    "shipping_address": dict.fromkeys(GUEST["shipping_address"], ""),
    "email": "", "first_name": "", "last_name": "",
}, separators=(",", ":"))  # fmt: skip


def as_json(text, **headers):
    """Return a view that returns a text as JSON."""
    return lambda: Response(text, headers={"Content-Type": "application/json"} | headers)


# ^ marks where the customer of a guest is inserted, and <…> the removed text.
TEXTS = [
    '{"order":{"id":1,"customer_id":0^}}',
    ' {\n\t"order" : { "id" : 1 , "customer_id" : 0^ \r\n} , "more": [ ] }\n\n',
    '{"order":{"total":12345678901234567.123,"customer_id":0,"id":1^},"rate":1.10,"e":1E+05,"z":-0.0}',
    '{"order":{"id":1000000000000000000000000000000,"customer_id":0,"n":1e999^}}',
    f'{{"order":{{"id":1,"customer_id":0,"n":{"7" * 5000}^}}}}',
    '{"order":{"id":2,"a":1,"a":2,"id":1,"customer_id":0,"a":3^},"a":1,"a":{"order":0}}',
    '{"order":{"id":1,"customer_id":0,"note":"caf\\u00e9 \\/ \\ud83d\\ude00 é😀 }{\\" \\u0000"^}}',
    '{"order":{"id":1,"customer_id":0,"half":"\\ud800"^}}',
    '{"order":{"i\\u0064":1,"customer_id":0^}}',
    '{"order":{"id":1,"customer_id":0,"deep":{"id":1,"customer_id":0}^}}',
    '{"order":{"id":9,"customer_id":9},"order":{"id":1,"customer_id":0^}}',
    '{"orders":[ {"id":1,"customer_id":0^} ,\n {"customer_id":0,"id":2,"x":NaN^}\t]}',
    '{"orders":[{"id":1,"customer_id":0^}],"order":{"id":1,"customer_id":0^}}',
    '{"order":{<"customer": {"id":[1]} , >"id":1, "customer_id":0^}}',
    '{"order":{"id":1< , "customer" : "a,}">, "customer_id":0^ }}',
    '{"order":{"id":1,"customer_id":0<,"custom\\u0065r":1>^  }}',
    '{"order":{<"customer":1,><"customer":2,>"id":1<,"customer":3><,"customer":4>,"customer_id":0^}}',
]


def test_order_by_hand_keeps_every_byte_of_its_text(by_hand):
    texts = [re.sub("[<>^]", "", marked) for marked in TEXTS]
    client = by_hand(lambda: as_json(texts[request.args.get("n", type=int)])())  # noqa: PLW0108  # the text is the request's
    for number, marked in enumerate(TEXTS):
        expected = re.sub("<[^>]*>", "", marked).replace("^", INSERTED)
        response = client.http.get("/by-hand", query_string={"n": number})
        assert response.get_data(as_text=True) == expected
        assert response.content_length == len(expected.encode())


def test_order_of_a_plain_view_with_a_lone_surrogate(by_hand):
    text = '{"order":{"id":1,"customer_id":0,"billing_address":{"first_name":"\\ud800"}}}'
    response = by_hand(as_json(text)).http.get("/by-hand")
    assert response.status_code == 200
    assert json.loads(response.get_data())["order"]["customer"]["first_name"] == "\ud800"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("fields", ["\0", "id,\0"])
def test_order_by_hand_with_fields_that_cannot_be_read(by_hand, method, fields):
    client = by_hand(lambda: {"order": {"id": 1, "customer_id": 0}})
    query = {"fields": fields}
    given, expected = (
        client.request(method, "/by-hand", query_string=query),
        client.get("/orders", query),
    )
    assert (given.status_code, expected.status_code) == (400, 400)
    if method == "GET":
        assert given.get_json() == expected.get_json()


def test_plugin_view_with_fields_that_cannot_be_read(plugged, app):
    insert_order(app)
    query = {"fields": "\0"}
    expected = reply(plugged.get("/orders", query))
    auth = (plugged.key.consumer_key, plugged.key.consumer_secret)
    for path in ("/loyalty/highlights", "/loyalty/newest", "/loyalty-by-hand"):
        assert reply(plugged.http.get(path, query_string=query, auth=auth)) == expected


def test_post_by_hand_does_not_read_fields(by_hand):
    client = by_hand(lambda: {"order": {"id": 1, "customer_id": 0}})
    assert "customer" in client.post("/by-hand", query_string={"fields": "\0"}).get_json()["order"]


def test_headers_about_the_body_of_an_order_by_hand_are_removed(by_hand):
    of_the_body = {
        "Accept-Ranges": "bytes",
        "Content-Digest": "sha-256=:AAAA:",
        "Content-MD5": "AAAA",
        "Digest": "sha-256=AAAA",
        "ETag": '"a"',
        "Last-Modified": "Fri, 20 Nov 2026 09:38:00 GMT",
        "Repr-Digest": "sha-256=:AAAA:",
    }
    other = {"X-Other": "kept", "Cache-Control": "private", "Content-Encoding": "identity"}
    text = '{"order":{"id":1,"customer_id":0}}'
    headers = by_hand(as_json(text, **of_the_body, **other)).http.get("/by-hand").headers
    assert [name for name in of_the_body if name in headers] == []
    assert {name: headers[name] for name in other} == other
    # a body that is not changed keeps them
    headers = by_hand(as_json('{"order":"asc"}', **of_the_body)).http.get("/by-hand").headers
    assert {name: headers[name] for name in of_the_body} == of_the_body


def test_order_by_hand_is_never_not_modified_by_the_tag_of_another_body(by_hand):
    def view():
        response = Response('{"order":{"id":1,"customer_id":0}}', mimetype="application/json")
        response.add_etag()
        return response.make_conditional(request)

    client = by_hand(view)
    first = client.http.get("/by-hand")
    assert ("ETag" in first.headers, first.status_code) == (False, 200)
    partial = client.http.get("/by-hand", headers={"Range": "bytes=0-5"})
    assert partial.status_code in {200, 206}


WHOLE = b'{"order":{"id":1,"customer_id":0}}'


@pytest.mark.parametrize(
    ("data", "status", "headers"),
    [
        (gzip.compress(WHOLE, mtime=0), 200, {"Content-Encoding": "gzip"}),
        (WHOLE, 200, {"Content-Encoding": "x-private"}),
        (WHOLE, 206, {"Content-Range": "bytes 0-33/34"}),
        (WHOLE.decode().encode("utf-16"), 200, {}),
        (b"\xef\xbb\xbf" + WHOLE, 200, {}),
        (b'{"order":{"id":1,"customer_id":0,"name":"\xe9"}}', 200, {}),
        (b'{"order":{"id":1,"customer_id":0},"deep":' + b"[" * 99_999 + b"]" * 99_999 + b"}", 200, {}),
        (WHOLE + b"\n" + WHOLE, 200, {}),
    ],
    ids=["gzip", "private", "range", "utf-16", "mark", "latin-1", "deep", "two"],
)  # fmt: skip
def test_response_that_cannot_be_extended_passes_untouched(by_hand, data, status, headers):
    view = as_json(data, ETag='"a"', **headers)
    client = by_hand(lambda: (view(), status))
    response = client.http.get("/by-hand")
    assert (response.status_code, response.get_data()) == (status, data)
    kept = {"ETag": '"a"', **headers}
    assert {name: response.headers[name] for name in kept} == kept


def test_response_that_is_passed_through_passes_untouched(by_hand):
    def view():
        return Response([WHOLE], mimetype="application/json", direct_passthrough=True)

    assert by_hand(view).http.get("/by-hand").status_code == 200


def test_blueprint_that_extends_its_orders_itself_is_left_alone(make_app, admin):
    text = '{"order":{"id":1,"customer_id":0}}'
    own = make_app()
    for name, extends in (("mine", True), ("theirs", False)):
        blp = Blueprint(name, __name__, url_prefix=f"/{name}", extends_orders=extends)
        blp.add_url_rule("", "show", _named(as_json(text)))
        own.register_blueprint(blp)
    client = Client(own, admin.key)
    assert client.get("/mine").get_data(as_text=True) == text
    assert client.get("/theirs").get_data(as_text=True) != text


def _named(view):
    view.__name__ = "show"
    return view


def test_view_in_a_package_whose_name_begins_like_ours_is_extended(by_hand):
    view = as_json('{"order":{"id":1,"customer_id":0}}')
    view.__module__ = "app.blueprints.coupons"
    assert "customer" in by_hand(view).get("/by-hand").get_json()["order"]


def test_plugin_names_are_in_the_document(plugged):
    document = plugged.get("/openapi.json").get_json()
    types = ["fixed_cart", "percent", "fixed_product", "percent_product", "store_credit"]
    schemas = document["components"]["schemas"]
    assert schemas["CouponType"]["enum"] == types
    reference = "#/components/schemas/CouponType"
    assert schemas["CouponUpdate"]["properties"]["type"]["$ref"] == reference
    coupons, orders = (document["paths"][path]["get"] for path in ("/coupons", "/orders"))
    schemas = {each["name"]: each["schema"] for each in coupons["parameters"]}
    assert schemas["filter[type]"] == {"$ref": reference}
    schemas = {each["name"]: each["schema"] for each in orders["parameters"]}
    assert "awaiting-pickup" in schemas["filter[status]"]["pattern"]
