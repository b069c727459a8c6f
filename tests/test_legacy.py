"""The WooCommerce legacy REST API: the same service in another dialect (decisions 12)."""

import pytest
from conftest import Client, codes, reply
from factories import insert_download, insert_order
from openapi_spec_validator import validate

from app.api.request_parser import ArgumentParser
from app.errors import ERRORS

V2, V3 = "/wc-api/v2", "/wc-api/v3"
BOTH = pytest.mark.parametrize("mount", [V2, V3])


def ours(code):
    """A code of the table as the dialect has it."""
    return code.replace("shop_api_", "woocommerce_api_")


def legacy_refusal(code, **details):
    status, message = ERRORS[code]
    return status, {"errors": [{"code": ours(code), "message": message.format(**details)}]}


# --- the table of decisions 12, row by row ---


@BOTH
def test_error_prefix(admin, mount):
    assert reply(admin.get(f"{mount}/coupons/7")) == legacy_refusal("shop_api_invalid_coupon_id")
    assert codes(admin.post(f"{mount}/coupons", {})) == (
        400,
        "woocommerce_api_missing_coupon_data",
    )


@BOTH
def test_codes_without_a_prefix_stay(admin, mount):
    response = admin.post(f"{mount}/customers", {"customer": {"email": "no address"}})
    assert codes(response) == (400, "registration-error-invalid-email")


@BOTH
def test_totals_and_links(admin, make_coupon, mount):
    for _ in range(3):
        make_coupon()
    response = admin.get(f"{mount}/coupons", {"filter[limit]": 1, "page": 2, "fields": "id"})
    assert response.headers["X-WC-Total"] == response.headers["X-WC-TotalPages"] == "3"
    assert "X-Total" not in response.headers
    links = response.headers["Link"].split(", ")
    assert [link.rpartition("; ")[2] for link in links] == [
        'rel="first"',
        'rel="prev"',
        'rel="next"',
        'rel="last"',
    ]
    assert links[2].startswith(f"<http://localhost{mount}/coupons?filter%5Blimit%5D=1&fields=id")


def test_links_repeat_no_credentials(make_app, admin, make_coupon):
    for _ in range(2):
        make_coupon()
    client = Client(make_app(SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH=True))
    pair = {"consumer_key": admin.key.consumer_key, "consumer_secret": admin.key.consumer_secret}
    response = client.get(f"{V3}/coupons", {"filter[limit]": 1, **pair})
    assert response.status_code == 200
    assert "consumer" not in response.headers["Link"]


@BOTH
def test_trash_is_202(admin, make_coupon, mount):
    path = f"{mount}/coupons/{make_coupon()['id']}"
    assert reply(admin.delete(path)) == (202, {"message": "Deleted coupon"})
    path = f"{mount}/coupons/{make_coupon()['id']}"
    answer = 200, {"message": "Permanently deleted coupon"}
    assert reply(admin.delete(path, {"force": "true"})) == answer


def test_force_of_the_python_client_is_the_trash(admin, make_coupon):
    # requests writes True as "True"; only "true" was ever obeyed.
    path = f"{V3}/coupons/{make_coupon()['id']}"
    assert reply(admin.delete(path, {"force": "True"})) == (202, {"message": "Deleted coupon"})


@BOTH
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
@pytest.mark.parametrize(
    ("noun", "new", "wrong"),
    [
        ("coupons", {"code": "new"}, {"code": ""}),
        ("customers", {"email": "new@example.com"}, {"email": ""}),
    ],
)
def test_bulk_status(admin, mount, method, noun, new, wrong):
    def send(*items):
        return admin.request(method, f"{mount}/{noun}/bulk", json={noun: list(items)})

    created = send(new, wrong)
    assert created.status_code == 201
    first, second = created.get_json()[noun]
    assert second["id"] == 0
    assert not second["error"]["code"].startswith("shop_api_")
    assert send({"id": first["id"]}).status_code == 200
    assert send(wrong).status_code == 200
    assert reply(send()) == (200, {noun: []})


@BOTH
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_edit_by_three_methods(admin, make_coupon, make_customer, mount, method):
    coupon, customer = make_coupon()["id"], make_customer()["id"]
    body = {"coupon": {"amount": "4"}}
    edited = admin.request(method, f"{mount}/coupons/{coupon}", json=body)
    assert (edited.status_code, edited.get_json()["coupon"]["amount"]) == (200, "4.00")
    body = {"customer": {"first_name": "Ada"}}
    edited = admin.request(method, f"{mount}/customers/{customer}", json=body)
    assert (edited.status_code, edited.get_json()["customer"]["first_name"]) == (200, "Ada")


@BOTH
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/coupons"),
        ("PUT", "/coupons"),
        ("PATCH", "/customers"),
        ("POST", "/coupons/count"),
        ("GET", "/coupons/bulk"),
        ("PROPFIND", "/coupons"),
        ("GET", "/products"),
        ("GET", "/coupons/abc"),
        ("GET", "/coupons/-1"),
        ("GET", "/coupons/1.5"),
        ("GET", "/coupons.json"),
        ("GET", "//coupons"),
    ],
)
def test_no_route(admin, anonymous, mount, method, path):
    for client in (admin, anonymous):
        response = client.request(method, f"{mount}{path}")
        assert reply(response) == legacy_refusal("shop_api_no_route")
        assert "Allow" not in response.headers


@BOTH
def test_wrong_credentials_are_refused_where_no_route_is(app, mount):
    answer = 401, "woocommerce_api_authentication_error"
    client = Client(app)
    wrong = {"Authorization": "Basic Y2tfd3Jvbmc6Y3Nfd3Jvbmc="}
    assert codes(client.get(f"{mount}/products", headers=wrong)) == answer
    assert codes(client.delete(f"{mount}/coupons", headers=wrong)) == answer


@BOTH
def test_limit_of_coupons(admin, make_coupon, mount):
    for _ in range(12):
        make_coupon()
    for limit, rows in [("-1", 12), ("3", 3), ("0", 10), ("", 10)]:
        response = admin.get(f"{mount}/coupons", {"filter[limit]": limit})
        assert len(response.get_json()["coupons"]) == rows
    assert len(admin.get("/coupons", {"filter[limit]": 3}).get_json()["coupons"]) == 10


def test_last_update_is_in_version_3_only(app, admin, make_customer):
    customer = make_customer()
    path = f"/customers/{customer['id']}"
    shown = admin.get(f"{V3}{path}").get_json()["customer"]
    assert list(shown)[:4] == ["id", "created_at", "last_update", "email"]
    assert shown.pop("last_update") == customer["created_at"]
    assert shown == customer
    for mount in ("", V2):
        assert admin.get(f"{mount}{path}").get_json()["customer"] == customer
    selected = admin.get(f"{V3}/customers", {"fields": "last_update"}).get_json()["customers"]
    assert selected == [{"last_update": customer["created_at"]}]
    body = {"customer": {"email": "another@example.com"}}
    assert "last_update" in admin.post(f"{V3}/customers", body).get_json()["customer"]
    results = admin.post(f"{V3}/customers/bulk", {"customers": [{"id": customer["id"]}]})
    assert "last_update" in results.get_json()["customers"][0]
    insert_order(app, customer_id=customer["id"])
    for mount, knows in (("", False), (V2, False), (V3, True)):
        (order,) = admin.get(f"{mount}/orders").get_json()["orders"]
        assert ("last_update" in order["customer"]) is knows


@BOTH
def test_downloads_are_a_list(app, admin, make_customer, mount):
    customer = make_customer()["id"]
    path = f"/customers/{customer}/downloads"
    assert admin.get(f"{mount}{path}").get_json() == {"downloads": []}
    insert_download(app, insert_order(app, customer_id=customer, status="completed"))
    native = admin.get(path).get_json()["downloads"]
    assert len(native) == 1
    assert admin.get(f"{mount}{path}").get_json() == {"downloads": list(native.values())}


@BOTH
def test_not_in_and_every_role(admin, make_coupon, make_customer, mount):
    first, second = make_coupon()["id"], make_coupon()["id"]
    listed = admin.get(f"{mount}/coupons", {"filter[not_in]": first}).get_json()["coupons"]
    assert [coupon["id"] for coupon in listed] == [second]
    make_customer()
    count = admin.get(f"{mount}/customers/count", {"filter[role]": "all"}).get_json()["count"]
    assert count == 2


@BOTH
@pytest.mark.parametrize(
    "words", [("ID", "id"), ("title", "code"), ("name", "code"), ("date",) * 2]
)
def test_old_words_that_coupons_are_sorted_by(admin, make_coupon, mount, words):
    for code in ("b", "c", "a"):
        make_coupon(code=code)
    old, new = (f"/coupons?fields=code&filter[order]=asc&filter[orderby]={word}" for word in words)
    assert admin.get(f"{mount}{old}").get_json() == admin.get(new).get_json()
    assert admin.get(f"{mount}{old.replace('?', '/count?')}").get_json() == {"count": 3}
    if words[0] != words[1]:
        assert admin.get(old).status_code == 400


@BOTH
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ID", "id"),
        ("user_registered", "registered"),
        ("user_email", "email"),
        ("user_login", "login"),
        ("nicename", "login"),
        ("display_name", "name"),
    ],
)
def test_old_words_that_customers_are_sorted_by(admin, make_customer, mount, old, new):
    for name in ("B", "C", "A"):
        make_customer(email=f"{name}@example.com", first_name=name)
    path = "/customers?fields=id&filter[orderby]="
    assert admin.get(f"{mount}{path}{old}").get_json() == admin.get(f"{path}{new}").get_json()
    assert admin.get(f"{mount}/customers/count?filter[orderby]={old}").get_json() == {"count": 3}
    assert admin.get(f"{mount}/orders?filter[orderby]=ID").get_json() == {"orders": []}
    assert admin.get(f"{mount}/orders/count?filter[orderby]=ID").get_json() == {"count": 0}


# --- what docs/legacy.md promises beside, request by request: the status, and a part of the body ---

INVALID, NO_ROUTE = "woocommerce_api_invalid_param", "woocommerce_api_no_route"


@BOTH
@pytest.mark.parametrize(
    ("request_line", "body", "status", "shown"),
    [
        ("GET /coupons/ONE?id=TWO&code=b", None, 200, '"code":"a"'),
        ("GET /coupons/code/a?code=b", None, 200, '"code":"a"'),
        ("GET /coupons/000ONE/", None, 200, '"code":"a"'),
        ("GET /coupons%2FONE", None, 200, '"code":"a"'),
        ("GET /coupons/ONE%0A", None, 404, NO_ROUTE),
        ("GET /coupons/code/a+b", None, 404, NO_ROUTE),
        ("GET /coupons/ONE?_method=", None, 200, '"code":"a"'),
        ("GET /coupons/ONE?_method=FETCH", None, 404, NO_ROUTE),
        ("OPTIONS /coupons", None, 200, ""),
        ("GET /coupons/ONE?_jsonp=callback", None, 200, '{"coupon":{"id":'),
        ("GET /coupons/ONE?filter[meta]=true", None, 200, '"code":"a"'),
        ("GET /coupons?filter=abc&fields=code", None, 200, '{"coupons":[{"code":"b"},{"code":"a"}]}'),
        ("GET /coupons?fields=nothing", None, 200, '{"coupons":[{},{}]}'),
        ("GET /coupons?filter[post_status]=trash&fields=code", None, 200, '[{"code":"b"},{"code":"a"}]'),
        ("GET /coupons?filter[q]=0", None, 200, '{"coupons":[]}'),
        ("GET /coupons?filter[offset]=1&filter[limit]=-1&fields=code", None, 200, '[{"code":"a"}]'),
        ("GET /coupons/count?filter[offset]=9", None, 200, '{"count":2}'),
        ("GET /coupons?page=abc", None, 400, INVALID),
        ("GET /coupons?filter[limit]=-5", None, 400, INVALID),
        ("GET /coupons?filter[order]=up", None, 400, INVALID),
        ("GET /coupons?filter[orderby]=rand", None, 400, INVALID),
        ("GET /coupons?filter[created_at_min]=yesterday", None, 400, INVALID),
        ("GET /coupons?filter[in]=abc", None, 400, INVALID),
        ("GET /customers?filter[role]=Customer", None, 200, '{"customers":[]}'),
        ("GET /customers?page=0", None, 400, INVALID),
        ("GET /orders?filter[status]=any", None, 400, INVALID),
        ("POST /orders", "{}", 400, "woocommerce_api_missing_order_data"),
        ("GET /orders/trash", None, 404, NO_ROUTE),
        ("POST /coupons", "", 400, "woocommerce_api_missing_coupon_data"),
        ("POST /coupons", "{", 400, "woocommerce_api_invalid_json"),
        ("POST /coupons", '{"coupon":"a"}', 400, INVALID),
        ("POST /coupons", '{"coupon":{"code":""}}', 400, "woocommerce_api_cannot_create_coupon"),
        ("POST /coupons", '{"coupon":{"code":"Á","type":null}}', 201, '"type":"fixed_cart"'),
        ("POST /coupons", '{"coupon":{"code":"x","amount":"$5"}}', 400, INVALID),
        ("POST /coupons", '{"coupon":{"code":"x","amount":-5}}', 201, '"amount":"-5.00"'),
        ("POST /coupons", '{"coupon":{"code":"x","amount":101,"type":"percent"}}', 201, '"amount":"101.00"'),
        ("POST /coupons", '{"coupon":{"code":"x","amount":"1e3"}}', 201, '"amount":"1000.00"'),
        ("POST /coupons", '{"coupon":{"code":"x","usage_limit":"1e3"}}', 201, '"usage_limit":1,'),
        ("POST /coupons", '{"coupon":{"code":"x","product_ids":[-4,4,4]}}', 201, "[-4,4,4]"),
        ("POST /coupons", '{"coupon":{"code":"x","product_category_ids":["y",4]}}', 201, "[4]"),
        ("POST /coupons", '{"coupon":{"code":"x","expiry_date":"soon"}}', 400, INVALID),
        ("POST /coupons", '{"coupon":{"code":"x","expiry_date":"2030-12-31 10:00"}}', 201, '"2030-12-31T00:00:00Z"'),
        ("POST /coupons", '{"coupon":{"code":"x","expiry_date":false}}', 400, INVALID),
        ("POST /coupons", '{"coupon":{"code":"x","expiry_date":0}}', 201, '"1970-01-01T00:00:00Z"'),
        ("POST /coupons", '{"coupon":{"code":"x","description":true}}', 400, INVALID),
        ("POST /coupons", '{"coupon":{"code":"x%41 a<b c/\u00e9"}}', 201, '"code":"x%41 a<b c/é"'),
        ("POST /coupons", '{"coupon":{"code":"x","customer_emails":["A@B.co"]}}', 201, '["A@b.co"]'),
        ("PUT /coupons/ONE", '{"coupon":{"code":"c","type":"odd"}}', 400, "woocommerce_api_invalid_coupon_type"),
        ("GET /coupons/TWO0", None, 404, "woocommerce_api_invalid_coupon_id"),
        ("POST /coupons/bulk", '{"coupons":{"a":{"code":"x"}}}', 400, INVALID),
        ("POST /coupons/bulk", '{"coupons":[{"id":-1},{"id":"1x"},"a"]}', 200, '{"id":-1,"error":'),
        ("POST /customers", '{"customer":{"email":"a@b"}}', 400, "registration-error-invalid-email"),
        ("POST /customers", '{"customer":{"email":"J@Example.COM"}}', 201, '"email":"J@example.com"'),
        ("POST /customers", '{"customer":{"email":"j@b.co","username":"Ünï"}}', 201, '"username":"Ünï"'),
        ("POST /customers", '{"customer":{"email":"j@b.co","billing_address":[]}}', 400, INVALID),
        ("POST /customers", '{"customer":{"email":"j@b.co","billing_address":{"email":"no"}}}', 201, '"email":"no"'),
        ("PUT /customers/ANN", '{"customer":{"email":"no"}}', 200, '"email":"customer-1@example.com"'),
    ],
)  # fmt: skip
def test_promise(admin, make_coupon, make_customer, mount, request_line, body, status, shown):
    ids = {"ONE": make_coupon(code="a"), "TWO": make_coupon(code="b"), "ANN": make_customer()}
    for name, record in ids.items():
        request_line = request_line.replace(name, str(record["id"]))
    method, path = request_line.split(" ")
    response = admin.request(method, f"{mount}{path}", data=body)
    assert response.status_code == status, response.get_data(as_text=True)
    assert shown in response.get_data(as_text=True)


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
def test_paths_have_no_case(admin, make_coupon, mount, path):
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


@BOTH
@pytest.mark.parametrize("scheme", ["https", "http"])
@pytest.mark.parametrize("in_clear", [True, False])
def test_key_pair_in_the_query(make_app, admin, mount, scheme, in_clear):
    client = Client(
        make_app(SHOP_TRUSTED_PROXIES=1, SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH=in_clear)
    )
    pair = {"consumer_key": admin.key.consumer_key, "consumer_secret": admin.key.consumer_secret}
    response = client.get(f"{mount}/coupons", pair, headers={"X-Forwarded-Proto": scheme})
    if in_clear or scheme == "https":
        assert reply(response) == (200, {"coupons": []})
    else:
        assert codes(response) == (401, "woocommerce_api_authentication_error")
        assert "HTTPS" in response.get_json()["errors"][0]["message"]


def test_nobody_says_that_it_came_over_tls(make_app, admin):
    client = Client(make_app(SHOP_TRUSTED_PROXIES=0))
    pair = {"consumer_key": admin.key.consumer_key, "consumer_secret": admin.key.consumer_secret}
    response = client.get(f"{V3}/coupons", pair, headers={"X-Forwarded-Proto": "https"})
    assert response.status_code == 401


def test_query_with_a_secret_is_not_remembered(make_app, admin):
    pair = {"consumer_key": admin.key.consumer_key, "consumer_secret": admin.key.consumer_secret}
    client = Client(make_app(SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH=True))
    before = ArgumentParser._load_query.cache_info()
    for path in ("/wc-api/v2/coupons", "/wc-api/v3/customers", "/wc-api/v3/orders/count"):
        assert client.get(path, pair).status_code == 200
    assert ArgumentParser._load_query.cache_info() == before


@pytest.mark.parametrize("change", [{"consumer_secret": "cs_x"}, {"consumer_key": "ck_x"}])
def test_wrong_pair_in_the_query(make_app, admin, change):
    client = Client(make_app(SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH=True))
    pair = {"consumer_key": admin.key.consumer_key, "consumer_secret": admin.key.consumer_secret}
    response = client.get(f"{V3}/coupons", pair | change)
    assert codes(response) == (401, "woocommerce_api_authentication_error")


@pytest.mark.parametrize("name", ["consumer_key", "consumer_secret"])
def test_half_a_pair_in_the_query(make_app, admin, name):
    client = Client(make_app(SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH=True))
    pair = {"consumer_key": admin.key.consumer_key, "consumer_secret": admin.key.consumer_secret}
    assert client.get(f"{V3}/coupons", {name: pair[name]}).status_code == 401


@pytest.mark.parametrize(
    "header", ["Bearer abc", "Basic ä", "Basic", "Basic //46AA==", "OAuth", "OAuth =", "nonsense"]
)
def test_header_that_says_nothing(app, header):
    response = Client(app).get(f"{V3}/coupons", headers={"Authorization": header})
    assert codes(response) == (401, "woocommerce_api_authentication_error")


def test_pair_in_the_query_is_nothing_to_the_native_api(make_app, admin):
    client = Client(make_app(SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH=True))
    pair = {"consumer_key": admin.key.consumer_key, "consumer_secret": admin.key.consumer_secret}
    assert client.get("/coupons", pair).status_code == 401


# --- the index, the document, the switch ---


def test_index(anonymous):
    for path in (V3, f"{V3}/"):
        status, body = reply(anonymous.get(path))
        store = body["store"]
        assert (status, list(body)) == (200, ["store"])
        assert store["URL"] == "http://localhost/"
        assert store["version"] == "3.1.0"
        assert store["meta"]["timezone"] == "UTC"
        assert store["routes"]["/coupons/<coupon_id>"] == {
            "supports": ["GET", "HEAD", "PATCH", "POST", "PUT", "DELETE"],
            "accepts_data": True,
            "meta": {},
        }
        assert store["routes"]["/customers/count"] == {
            "supports": ["GET", "HEAD"],
            "accepts_data": False,
            "meta": {"self": f"http://localhost{V3}/customers/count"},
        }
    assert "version" not in anonymous.get(V2).get_json()["store"]


def test_index_is_open_with_wrong_credentials_too(app):
    response = Client(app).get(V3, headers={"Authorization": "Basic Y2tfd3Jvbmc6Y3Nfd3Jvbmc="})
    assert response.status_code == 200


def test_mounts_are_under_the_prefix(make_app, admin, make_coupon):
    client = Client(make_app(SHOP_URL_PREFIX="/shop"), admin.key)
    coupon = make_coupon(code="a")
    assert client.get("/Shop/WC-API/v3/coupons/code/A").status_code == 404  # the prefix has a case
    found = client.get("/shop/WC-API/v3/coupons/code/A").get_json()["coupon"]
    assert found["id"] == coupon["id"]
    store = client.get("/shop/wc-api/v3").get_json()["store"]
    assert store["URL"] == "http://localhost/shop/"
    assert store["routes"]["/coupons"]["meta"] == {
        "self": "http://localhost/shop/wc-api/v3/coupons"
    }


def test_switched_off(make_app, admin):
    client = Client(make_app(SHOP_LEGACY_API=False), admin.key)
    for path in (V2, f"{V3}/coupons", f"{V3}/openapi.json"):
        assert codes(client.get(path)) == (404, "shop_api_no_route")


@BOTH
@pytest.mark.parametrize("version", ["3.1.0", "3.0.3"])
def test_document(make_app, mount, version):
    app = make_app(SHOP_OPENAPI_VERSION=version)
    document = app.test_client().get(f"{mount}/openapi.json").get_json()
    validate(document)
    text = app.json.dumps(document)
    assert "shop_api_" not in text
    assert "X-Total" not in text
    tags = [tag["name"] for tag in document["tags"]]
    assert tags == ["coupons", "customers", "orders", "order_notes", "index"]
    paths = document["paths"]
    assert all(path.startswith(mount) for path in paths)
    coupon = paths[f"{mount}/coupons/{{coupon_id}}"]
    assert coupon.keys() == {"get", "put", "post", "patch", "delete", "parameters"}
    assert {"200", "202"} <= coupon["delete"]["responses"].keys()
    assert {"200", "201"} <= paths[f"{mount}/coupons/bulk"]["patch"]["responses"].keys()
    listed = {each["name"] for each in paths[f"{mount}/coupons"]["get"]["parameters"]}
    assert "filter[limit]" in listed
    ids = [
        operation["operationId"]
        for operations in paths.values()
        for method, operation in operations.items()
        if method != "parameters"
    ]
    assert len(ids) == len(set(ids))
    customer = "CustomerV3" if mount == V3 else "Customer"
    shown = document["components"]["schemas"][customer]["properties"]
    assert ("last_update" in shown) is (mount == V3)
    ways = paths[f"{mount}/coupons"]["get"]["security"]
    assert ways == [{"basicAuth": []}, {"consumerKey": [], "consumerSecret": []}]


def test_native_document_is_the_same_without_the_mounts(app, make_app):
    documents = [
        each.test_client().get("/openapi.json").get_data()
        for each in (app, make_app(SHOP_LEGACY_API=False))
    ]
    assert documents[0] == documents[1]
