"""Paths, methods and credentials of legacy requests, the index and the document (decisions 12, 14)."""

import pytest
from openapi_spec_validator import validate

from app.api.request_parser import ArgumentParser
from tests.api_client import Client, codes, reply
from tests.plugins.woocommerce.legacy.calls import BOTH, V2, V3, legacy_refusal

pytestmark = pytest.mark.one_database

# --- how a request may be written ---


@BOTH
@pytest.mark.parametrize(
    "path",
    [
        "/coupons/code/SUMMER",
        "/Coupons/Code/Summer",
        "/COUPONS/CODE/summer",
        "/coupons/code/summer/",
    ],
)
def test_paths_are_case_insensitive(admin, make_coupon, mount, path):
    make_coupon(code="Summer")
    assert admin.get(f"{mount.upper()}{path}").get_json()["coupon"]["code"] == "summer"


@pytest.mark.parametrize("path", ["//wc-api/v3/coupons/7", "///WC-API/v3/coupons/7"])
def test_slashes_before_a_path_change_nothing(admin, path):
    # The client of the tests, too, takes two slashes for a host.
    response = admin.request("GET", "/", environ_overrides={"PATH_INFO": path})
    assert reply(response) == legacy_refusal("shop_api_invalid_coupon_id")


@BOTH
@pytest.mark.parametrize("email", ["Jürgen@Example.com", "jürgen@example.com"])
def test_letters_beyond_ascii_stay_in_paths(admin, make_customer, mount, email):
    customer = make_customer(email="jürgen@example.com")
    found = admin.get(f"{mount}/customers/email/{email}").get_json()["customer"]
    assert found["id"] == customer["id"]


@BOTH
@pytest.mark.parametrize("word", ["PUT", "put", "Put"])
@pytest.mark.parametrize("where", ["query", "header"])
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_overridden_method(admin, make_coupon, mount, method, where, word):
    path = f"{mount}/coupons/{make_coupon()['id']}"
    options = (
        {"query_string": {"_method": word}}
        if where == "query"
        else {"headers": {"X-HTTP-Method-Override": word}}
    )
    response = admin.http.open(
        path,
        method=method,
        json={"coupon": {"amount": "5"}},
        auth=(admin.key.consumer_key, admin.key.consumer_secret),
        **options,
    )
    assert response.get_json()["coupon"]["amount"] == "5.00"


def test_override_asks_for_the_permission_of_what_is_done(app, client_for, make_coupon):
    reader = client_for("administrator", permission="read", login="reader")
    response = reader.get(f"{V3}/coupons/{make_coupon()['id']}", {"_method": "DELETE"})
    assert codes(response) == (401, "woocommerce_api_authentication_error")


def test_override_and_case_are_of_the_mounts_only(admin, make_coupon):
    path = f"/coupons/{make_coupon()['id']}"
    assert admin.http.get(path, query_string={"_method": "DELETE"}).status_code == 401
    override = {"X-HTTP-Method-Override": "DELETE"}
    assert admin.get(path, headers=override).status_code == 200
    assert codes(admin.get("/Coupons")) == (404, "shop_api_no_route")


# --- credentials ---


@pytest.mark.sample(4)
@BOTH
@pytest.mark.parametrize("scheme", ["https", "http"])
@pytest.mark.parametrize("in_clear", [True, False])
def test_key_pair_in_the_query(app_with, admin, mount, scheme, in_clear):
    client = Client(
        app_with(SHOP_TRUSTED_PROXIES=1, SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH=in_clear)
    )
    pair = {"consumer_key": admin.key.consumer_key, "consumer_secret": admin.key.consumer_secret}
    response = client.get(f"{mount}/coupons", pair, headers={"X-Forwarded-Proto": scheme})
    if in_clear or scheme == "https":
        assert reply(response) == (200, {"coupons": []})
    else:
        assert codes(response) == (401, "woocommerce_api_authentication_error")
        assert "HTTPS" in response.get_json()["errors"][0]["message"]


def test_request_is_not_treated_as_tls_without_a_trusted_proxy(app_with, admin):
    client = Client(app_with(SHOP_TRUSTED_PROXIES=0))
    pair = {"consumer_key": admin.key.consumer_key, "consumer_secret": admin.key.consumer_secret}
    response = client.get(f"{V3}/coupons", pair, headers={"X-Forwarded-Proto": "https"})
    assert response.status_code == 401


def test_query_with_a_secret_is_not_remembered(app_with, admin):
    pair = {"consumer_key": admin.key.consumer_key, "consumer_secret": admin.key.consumer_secret}
    client = Client(app_with(SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH=True))
    before = ArgumentParser._load_query.cache_info()
    for path in ("/wc-api/v2/coupons", "/wc-api/v3/customers", "/wc-api/v3/orders/count"):
        assert client.get(path, pair).status_code == 200
    assert ArgumentParser._load_query.cache_info() == before


@pytest.mark.parametrize("change", [{"consumer_secret": "cs_x"}, {"consumer_key": "ck_x"}])
def test_wrong_key_in_the_query(app_with, admin, change):
    client = Client(app_with(SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH=True))
    pair = {"consumer_key": admin.key.consumer_key, "consumer_secret": admin.key.consumer_secret}
    response = client.get(f"{V3}/coupons", pair | change)
    assert codes(response) == (401, "woocommerce_api_authentication_error")


@pytest.mark.parametrize("name", ["consumer_key", "consumer_secret"])
def test_incomplete_key_in_the_query(app_with, admin, name):
    client = Client(app_with(SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH=True))
    pair = {"consumer_key": admin.key.consumer_key, "consumer_secret": admin.key.consumer_secret}
    assert client.get(f"{V3}/coupons", {name: pair[name]}).status_code == 401


@pytest.mark.parametrize(
    "header", ["Bearer abc", "Basic ä", "Basic", "Basic //46AA==", "OAuth", "OAuth =", "nonsense"]
)
def test_header_without_credentials(app, header):
    response = Client(app).get(f"{V3}/coupons", headers={"Authorization": header})
    assert codes(response) == (401, "woocommerce_api_authentication_error")


def test_native_api_ignores_a_key_in_the_query(app_with, admin):
    client = Client(app_with(SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH=True))
    pair = {"consumer_key": admin.key.consumer_key, "consumer_secret": admin.key.consumer_secret}
    assert client.get("/coupons", pair).status_code == 401


# --- the index, the document, the switch ---


ORDER_PARTS = ("notes", "notes/<id>", "refunds", "refunds/<id>")
ROUTES = {
    *(f"/coupons{path}" for path in ("", "/<id>", "/bulk", "/code/<code>", "/count")),
    *(f"/customers{path}" for path in ("", "/<id>", "/bulk", "/count", "/email/<email>")),
    *(f"/customers/<id>/{path}" for path in ("downloads", "orders")),
    *(f"/orders{path}" for path in ("", "/<id>", "/bulk", "/count", "/statuses")),
    *(f"/orders/<order_id>/{path}" for path in ORDER_PARTS),
    *(f"/reports{path}" for path in ("", "/sales", "/sales/top_sellers")),
    *(f"/webhooks{path}" for path in ("", "/<id>", "/count")),
    *(f"/webhooks/<webhook_id>/deliveries{path}" for path in ("", "/<id>")),
}


def test_index(anonymous):
    for path in (V3, f"{V3}/"):
        status, body = reply(anonymous.get(path))
        store = body["store"]
        assert (status, list(body)) == (200, ["store"])
        assert store["URL"] == "http://localhost"
        assert store["version"] == "3.1.0"
        assert store["meta"]["timezone"] == "UTC"
        assert store["routes"].keys() == {"/", *ROUTES}
        assert store["routes"]["/coupons/<id>"] == {
            "supports": ["HEAD", "GET", "POST", "PUT", "PATCH", "DELETE"],
            "accepts_data": True,
            "meta": {},
        }
        assert store["routes"]["/customers/count"] == {
            "supports": ["HEAD", "GET"],
            "accepts_data": False,
            "meta": {"self": f"http://localhost{V3}/customers/count"},
        }
    assert "version" not in anonymous.get(V2).get_json()["store"]


def test_index_is_open_with_wrong_credentials_too(app):
    response = Client(app).get(V3, headers={"Authorization": "Basic Y2tfd3Jvbmc6Y3Nfd3Jvbmc="})
    assert response.status_code == 200


def test_mounts_are_under_the_prefix(app_with, admin, make_coupon):
    client = Client(app_with(SHOP_URL_PREFIX="/shop"), admin.key)
    coupon = make_coupon(code="a")
    assert client.get("/Shop/WC-API/v3/coupons/code/A").status_code == 404  # the prefix has a case
    found = client.get("/shop/WC-API/v3/coupons/code/A").get_json()["coupon"]
    assert found["id"] == coupon["id"]
    store = client.get("/shop/wc-api/v3").get_json()["store"]
    assert store["URL"] == "http://localhost/shop"
    assert store["routes"]["/coupons"]["meta"] == {
        "self": "http://localhost/shop/wc-api/v3/coupons"
    }


def test_switched_off(make_app, admin):
    client = Client(make_app(SHOP_LEGACY_API=False), admin.key)
    for path in (V2, f"{V3}/coupons", f"{V3}/openapi.json"):
        assert codes(client.get(path)) == (404, "shop_api_no_route")


@pytest.mark.sample(1)
@BOTH
@pytest.mark.parametrize("version", ["3.1.0", pytest.param("3.0.3", marks=pytest.mark.slow)])
def test_document(app_with, mount, version):
    app = app_with(SHOP_OPENAPI_VERSION=version)
    document = app.test_client().get(f"{mount}/openapi.json").get_json()
    validate(document)
    text = app.json.dumps(document)
    assert "shop_api_" not in text
    assert "X-Total" not in text
    tags = [tag["name"] for tag in document["tags"]]
    assert tags == [
        "Coupons",
        "Customers",
        "Orders",
        "Order notes",
        "Order refunds",
        "Index",
        "Webhooks",
        "Reports",
    ]
    paths = document["paths"]
    assert all(path.startswith(mount) for path in paths)
    coupon = paths[f"{mount}/coupons/{{coupon_id}}"]
    assert coupon.keys() == {"get", "put", "delete"}
    assert {"200", "202"} <= coupon["delete"]["responses"].keys()
    assert {"200", "201"} <= paths[f"{mount}/coupons/bulk"]["post"]["responses"].keys()
    listed = {each["name"] for each in paths[f"{mount}/coupons"]["get"]["parameters"]}
    assert "filter[limit]" in listed
    ids = [
        operation["operationId"]
        for operations in paths.values()
        for method, operation in operations.items()
        if method != "parameters"
    ]
    assert len(ids) == len(set(ids))
    shown = document["components"]["schemas"]["Customer"]["properties"]
    assert ("last_update" in shown) is (mount == V3)
    ways = paths[f"{mount}/coupons"]["get"]["security"]
    assert ways == [{"basicAuth": []}, {"consumerKey": [], "consumerSecret": []}]


def test_native_document_is_the_same_without_the_mounts(app, make_app):
    documents = [
        each.test_client().get("/openapi.json").get_data()
        for each in (app, make_app(SHOP_LEGACY_API=False))
    ]
    assert documents[0] == documents[1]
