"""Order extensions in the text of plain views: only the new keys are new (spec 2.3)."""

import gzip
import json
import re

import pytest
from flask import Response, request

from app.api.blueprint import Blueprint
from tests.api_client import Client, reply
from tests.factories import insert_order
from tests.orders.test_orders import GUEST

pytestmark = pytest.mark.one_database

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


WRITTEN = [
    ("1.10", "1.10"),
    ("12345678901234567.123", "12345678901234567.123"),
    ("1E+05", "1E+05"),
    ("1e999", "1e999"),
    ("-7", "-7"),
    ("9" * 6000, "9" * 6000),
    ('"\\u00e9"', "é"),
    ("null", ""),
    ("true", ""),
    ("NaN", ""),
    ("[1]", ""),
    ('{"id":1}', ""),
]


def test_parts_of_the_address_of_a_guest_are_strings(by_hand):
    """Numbers keep the digits that the view wrote."""

    def order_with(written):
        address = f'{{"phone":{written},"email":{written}}}'
        return f'"id":1,"customer_id":0,"billing_address":{address},"shipping_address":[]'

    orders = [order_with(written) for written, _ in WRITTEN]
    texts = [f'{{"order":{{{order}}}}}' for order in orders]
    client = by_hand(lambda: as_json(texts[request.args.get("n", type=int)])())  # noqa: PLW0108  # the text is the request's
    for number, (_, expected) in enumerate(WRITTEN):
        response = client.http.get("/by-hand", query_string={"n": number})
        assert response.status_code == 200
        text = response.get_data(as_text=True)
        assert text.startswith('{"order":{' + orders[number] + ',"customer":')
        customer = json.loads(text[text.index('"customer":') + len('"customer":') : -2])
        assert customer == GUEST | {
            "billing_address": dict.fromkeys(GUEST["billing_address"], "")
            | {"phone": expected, "email": expected},
            "shipping_address": dict.fromkeys(GUEST["shipping_address"], ""),
            "email": expected,
            "first_name": "",
            "last_name": "",
        }


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.sample(2)
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_view_in_a_package_whose_name_begins_like_ours_is_extended(by_hand):
    view = as_json('{"order":{"id":1,"customer_id":0}}')
    view.__module__ = "app.blueprints.coupons"
    assert "customer" in by_hand(view).get("/by-hand").get_json()["order"]


@pytest.mark.slow
def test_plugin_names_are_in_the_document(plugged):
    document = plugged.get("/openapi.json").get_json()
    types = [
        "fixed_cart",
        "percent",
        "fixed_product",
        "percent_product",
        "buy_x_get_y",
        "store_credit",
    ]
    schemas = document["components"]["schemas"]
    assert schemas["CouponType"]["enum"] == types
    reference = "#/components/schemas/CouponType"
    assert schemas["CouponUpdate"]["properties"]["type"]["$ref"] == reference
    coupons, orders = (document["paths"][path]["get"] for path in ("/coupons", "/orders"))
    schemas = {each["name"]: each["schema"] for each in coupons["parameters"]}
    assert schemas["type"] == {"$ref": reference}
    schemas = {each["name"]: each["schema"] for each in orders["parameters"]}
    assert "awaiting-pickup" in schemas["status"]["pattern"]
