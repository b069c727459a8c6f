"""Published client libraries of the WooCommerce legacy API."""

from itertools import product
from pathlib import Path
from urllib.parse import urlencode

import pytest
from woocommerce import API

from tests.npm import install, needs_node
from tests.openapi.test_clients import run

FOLDER = Path(__file__).parents[3] / "clients" / "legacy"
LIBRARIES = "woocommerce-api", "@woocommerce/woocommerce-rest-api"
WAYS = "signature", "basic", "query"
"""How a client says who it is: by OAuth over HTTP, else over TLS."""

each_way = pytest.mark.parametrize(
    ("version", "way"),
    [
        pytest.param(version, way, marks=() if version == "v3" else pytest.mark.slow)
        for version, way in product(("v2", "v3"), WAYS)
    ],
)


PARAMETERS = [
    {},
    {"filter[q]": "a b", "filter[limit]": -1, "page": 1},
    {"filter[q]": ""},
    {"filter[q]": "50%", "fields": ""},
    {"filter[q]": "50%25 +%2B"},
    {"filter[q]": "a&b=c/d?e#f"},
    {"filter[q]": "what?"},
    {"filter[q]": "Été 日本 😀"},
    {"filter[q]": "~!*'()\"<>^`{|}\\"},
    {"filter[in]": "1, 2", "filter[in][]": 3, "a[b][c]": 4, "a[b]": 5, "a": 6, "b": 7},
    {"filter[a-b]": 1, "filter[a]": 2, "filter": 3, "filter2": 4, "Z": 5},
    {"yes": True, "no": False, "nothing": None, "number": 1.5},
]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["v2", "v3"])
def test_python_signs(shops, version):
    shop = shops["signature"]
    api = API(*shop[:3], wp_api=False, version=version)
    for parameters in PARAMETERS:
        answer(api.get("coupons", params=dict(parameters)))
        answer(api.get(f"coupons?{urlencode(parameters)}"))


@pytest.mark.slow
def test_question_mark_of_the_python_client(shops):
    api = API(*shops["signature"][:3], wp_api=False, version="v3")
    for description in ("who?", "who"):
        coupon = {"code": description, "description": description}
        answer(api.post("coupons", {"coupon": coupon}), 201)
    for name, total in (("who?", "1"), ("who", "2")):
        in_address = api.get(f"coupons?page=1&filter[q]={name}")
        in_params = api.get("coupons", params={"page": 1, "filter[q]": name})
        for response in (in_address, in_params):
            answer(response)
            assert response.headers["X-WC-Total"] == total, response.url


@pytest.mark.slow
@each_way
def test_python(shops, certificate, version, way):
    shop = shops[way]

    def connect(secret):
        return API(
            url=shop.url,
            consumer_key=shop.consumer_key,
            consumer_secret=secret,
            wp_api=False,
            version=version,
            verify_ssl=str(certificate),
            query_string_auth=way == "query",
        )

    api = connect(shop.consumer_secret)
    exchange(api, f"python-{version}-{way}")
    order_workflow(api, f"python-{version}-{way}")
    refused = connect("cs_wrong").get("coupons")
    assert error(refused, 401) == "woocommerce_api_authentication_error"


@pytest.mark.slow
@needs_node
@each_way
@pytest.mark.parametrize("library", LIBRARIES)
def test_node(shops, certificate, library, version, way):
    install(FOLDER)
    shop = shops[way]
    environment = {
        "SHOP_URL": shop.url,
        "SHOP_CONSUMER_KEY": shop.consumer_key,
        "SHOP_CONSUMER_SECRET": shop.consumer_secret,
        "NODE_EXTRA_CA_CERTS": str(certificate),
    }
    run("node", "exchange.mjs", library, version, way, cwd=FOLDER, env=environment)


def exchange(api, name):
    """What a program does with coupons and customers, told apart from those of others by a name."""
    sale = "50% off & more/less: a+b=c, Été ~*'()!"
    first = answer(api.post("coupons", {"coupon": {"code": name, "description": sale}}), 201)
    first = first["coupon"]
    assert (first["code"], first["description"], first["amount"]) == (name, sale, "0.00")
    assert answer(api.get(f"coupons/{first['id']}"))["coupon"] == first
    assert answer(api.get(f"coupons/code/{name.upper()}"))["coupon"] == first

    items = [{"code": f"{name} {number}", "amount": number} for number in range(1, 5)]
    results = answer(api.post("coupons/bulk", {"coupons": [*items, {"code": name}]}), 201)
    *created, failed = results["coupons"]
    assert [item["code"] for item in created] == [item["code"] for item in items]
    assert failed["error"]["code"] == "woocommerce_api_coupon_code_already_exists"

    for text, codes in ((sale, [name]), (f"{name} 3", [f"{name} 3"]), ("100%25", [])):
        query = {"filter[q]": text, "filter[in]": f"{first['id']},{created[2]['id']}"}
        listed = answer(api.get("coupons", params=query | {"fields": "code", "page": 1}))
        assert listed == {"coupons": [{"code": code} for code in codes]}, text
        # ... and as a part of the address, as all of these libraries can.
        address = f"coupons?{urlencode(query | {'fields': 'code'})}"
        assert answer(api.get(address)) == listed, text
    count = answer(api.get("coupons/count", params={"filter[q]": name, "filter[type]": "percent"}))
    assert count == {"count": 0}
    assert pages(api, f"coupons?filter[q]={name}&filter[limit]=2&filter[orderby]=id") == [
        [created[3]["id"], created[2]["id"]],
        [created[1]["id"], created[0]["id"]],
        [first["id"]],
    ]

    path = f"coupons/{first['id']}"
    edited = answer(api.put(path, {"coupon": {"amount": 7.5, "product_ids": [4]}}))["coupon"]
    assert (edited["amount"], edited["product_ids"], edited["code"]) == ("7.50", [4], name)
    changes = [{"id": first["id"], "amount": "8"}, {"id": 0}]
    results = answer(api.put("coupons/bulk", {"coupons": changes}))["coupons"]
    assert results[0]["amount"] == "8.00"
    assert results[1]["error"]["code"] == "woocommerce_api_missing_coupon_code"

    assert answer(api.delete(path), 202) == {"message": "Deleted coupon"}
    gone = "woocommerce_api_invalid_coupon_id"
    assert error(api.get(path), 404) == gone
    forced = api.delete(f"coupons/{created[0]['id']}", params={"force": "true"})
    assert answer(forced) == {"message": "Permanently deleted coupon"}
    forced = api.delete(f"coupons/{created[1]['id']}?force=true")
    assert answer(forced) == {"message": "Permanently deleted coupon"}
    assert error(api.put(path, {"coupon": {"amount": 1}}), 404) == gone
    assert error(api.post("coupons", {"coupon": {}}), 400) == "woocommerce_api_missing_coupon_code"
    assert error(api.get("products"), 404) == "woocommerce_api_no_route"

    email = f"ada+{name}@example.com"
    body = {"customer": {"email": email, "billing_address": {"city": "Zürich"}}}
    ada = answer(api.post("customers", body), 201)["customer"]
    assert (ada["email"], ada["billing_address"]["city"]) == (email, "Zürich")
    assert ("last_update" in ada) is ("v3" in name)
    assert answer(api.get(f"customers/email/{email}"))["customer"] == ada
    found = answer(api.get("customers", params={"filter[q]": email, "filter[limit]": -1}))
    assert found == {"customers": [ada]}
    path = f"customers/{ada['id']}"
    assert answer(api.get(f"{path}/orders")) == {"orders": []}
    assert answer(api.get(f"{path}/downloads")) == {"downloads": []}
    edited = answer(api.put(path, {"customer": {"first_name": "Ada"}}))["customer"]
    assert (edited["first_name"], edited["email"]) == ("Ada", email)
    repeated = api.post("customers", body)
    assert error(repeated, 400) == "registration-error-email-exists"
    assert answer(api.delete(path)) == {"message": "Permanently deleted customer"}
    assert error(api.get(path), 404) == "woocommerce_api_invalid_customer"


def order_workflow(api, name):
    """What a program does with an order, from its creation to its deletion."""
    address = {"first_name": "Ada", "email": "ada@example.com", "city": "Zürich"}
    body = {
        "order_number": name,
        "payment_details": {"method_id": "bacs", "method_title": "Bank transfer"},
        "billing_address": address,
        "line_items": [{"product_id": 4, "quantity": 2, "total": "16.00"}],
        "shipping_lines": [{"method_id": "flat_rate", "method_title": "Flat", "total": 4}],
    }
    order = answer(api.post("orders", {"order": body}), 201)["order"]
    assert (order["status"], order["total"], order["order_number"]) == ("pending", "20.00", name)
    assert order["customer"]["billing_address"]["city"] == "Zürich"
    path = f"orders/{order['id']}"
    assert answer(api.get(path))["order"] == order

    changes = {
        "status": "completed",
        "line_items": [{"id": order["line_items"][0]["id"], "quantity": 3}],
    }
    updated = answer(api.put(path, {"order": changes}))["order"]
    assert (updated["status"], updated["total"]) == ("completed", "28.00")
    assert updated["completed_at"]

    note = {"note": f"Sent by {name}: 50% & more", "customer_note": True}
    written = answer(api.post(f"{path}/notes", {"order_note": note}), 201)["order_note"]
    assert (written["note"], written["customer_note"]) == (note["note"], True)
    automatic, last = answer(api.get(f"{path}/notes"))["order_notes"]
    assert automatic["note"] == "Order status changed from Pending payment to Completed."
    assert last == written
    one = f"{path}/notes/{written['id']}"
    changed = answer(api.put(one, {"order_note": {"note": "Sent."}}))["order_note"]
    assert answer(api.get(one))["order_note"] == changed == written | {"note": "Sent."}
    assert answer(api.delete(one)) == {"message": "Permanently deleted order note"}
    assert error(api.get(one), 404) == "woocommerce_api_invalid_order_note_id"

    for status, found in (("completed", [{"id": order["id"]}]), ("pending,on-hold", [])):
        query = {"filter[status]": status, "filter[q]": name, "fields": "id"}
        assert answer(api.get("orders", params=query)) == {"orders": found}
        del query["fields"]
        assert answer(api.get("orders/count", params=query)) == {"count": len(found)}

    items = [{"id": order["id"], "note": "Ring twice."}, {"status": "unknown"}]
    first, second = answer(api.post("orders/bulk", {"orders": items}))["orders"]
    assert first["note"] == "Ring twice."
    assert second["error"]["code"] == "woocommerce_api_invalid_order_status"

    assert answer(api.delete(path), 202) == {"message": "Deleted order"}
    assert error(api.get(path), 404) == "woocommerce_api_invalid_order_id"
    assert error(api.get(f"{path}/notes"), 404) == "woocommerce_api_invalid_order_id"
    forced = answer(api.delete(path, params={"force": "true"}))
    assert forced == {"message": "Permanently deleted order"}


def pages(api, endpoint):
    """The ids on each page of a list, as the headers lead from page to page."""
    ids, page = [], 1
    while True:
        response = api.get(f"{endpoint}&page={page}")
        ids.append([coupon["id"] for coupon in answer(response)["coupons"]])
        page += 1
        if "next" not in response.links:
            assert response.headers["X-WC-TotalPages"] == str(len(ids))
            assert response.headers["X-WC-Total"] == str(sum(map(len, ids)))
            return ids
        assert response.links["next"]["url"].startswith(f"{api.url}/wc-api/{api.version}/coupons?")
        assert "consumer" not in response.links["next"]["url"]


def answer(response, status=200):
    """What a response says, which must have a status."""
    assert response.status_code == status, response.text
    return response.json()


def error(response, status):
    """The code of the one error of a response, which must have a status."""
    (entry,) = answer(response, status)["errors"]
    assert entry["message"]
    return entry["code"]
