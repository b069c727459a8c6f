"""The WooCommerce legacy REST API: the differences in the specification and in the guide (decisions 12)."""

import pytest

from tests.api_client import Client, codes, reply, without_suggestion
from tests.factories import insert_download, insert_order
from tests.plugins.woocommerce.legacy.calls import BOTH, INVALID, NO_ROUTE, V2, V3, legacy_refusal

pytestmark = pytest.mark.one_database

# --- the table of decisions 12, row by row ---


@BOTH
def test_error_prefix(admin, mount):
    assert reply(admin.get(f"{mount}/coupons/7")) == legacy_refusal("shop_api_invalid_coupon_id")
    assert codes(admin.post(f"{mount}/coupons", {})) == (400, "woocommerce_api_missing_coupon_data")


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


def test_links_repeat_no_credentials(app_with, admin, make_coupon):
    for _ in range(2):
        make_coupon()
    client = Client(app_with(SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH=True))
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


@pytest.mark.sample(3)
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
def test_update_by_three_methods(admin, make_coupon, make_customer, mount, method):
    coupon, customer = make_coupon()["id"], make_customer()["id"]
    body = {"coupon": {"amount": "4"}}
    edited = admin.request(method, f"{mount}/coupons/{coupon}", json=body)
    assert (edited.status_code, edited.get_json()["coupon"]["amount"]) == (200, "4.00")
    body = {"customer": {"first_name": "Ada"}}
    edited = admin.request(method, f"{mount}/customers/{customer}", json=body)
    assert (edited.status_code, edited.get_json()["customer"]["first_name"]) == (200, "Ada")


@BOTH
def test_no_route(admin, anonymous, mount):
    coupons = ("/abc", "/-1", "/1.5", ".json", "/bulk")
    for method, path in (
        *(("GET", path) for path in ("/products", *(f"/coupons{each}" for each in coupons))),
        *((method, "/coupons") for method in ("DELETE", "PUT", "PROPFIND")),
        ("PATCH", "/customers"),
        ("POST", "/coupons/count"),
    ):
        for client in (admin, anonymous):
            response = client.request(method, f"{mount}{path}")
            assert without_suggestion(response) == legacy_refusal("shop_api_no_route"), path
            assert "Allow" not in response.headers


@BOTH
def test_wrong_credentials_are_rejected_where_no_route_is(app, mount):
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


@pytest.mark.sample(2)
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


@pytest.mark.sample(3)
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


@pytest.mark.sample(66)
@BOTH
@pytest.mark.parametrize(
    ("request_line", "body", "status", "shown"),
    [
        ("GET /coupons/ONE?id=TWO&code=b", None, 200, '"code":"a"'),
        ("GET /coupons/code/a?code=b", None, 200, '"code":"a"'),
        ("GET /coupons/000ONE/", None, 200, '"code":"a"'),
        ("GET /coupons%2FONE", None, 200, '"code":"a"'),
        ("GET /coupons/ONE%0A", None, 404, NO_ROUTE),
        ("GET /coupons/code/+a", None, 404, NO_ROUTE),
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
        ("GET /orders?filter[status]=nothing", None, 400, INVALID),
        ("GET /orders?status=nothing", None, 400, INVALID),
        ("GET /orders?filter[status]=trash", None, 400, INVALID),
        ("GET /coupons?page=&fields=code", None, 200, '[{"code":"b"},{"code":"a"}]'),
        ("GET /coupons?filter[in]=ONE,&fields=code", None, 200, '[{"code":"a"}]'),
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
        ("POST /coupons", '{"coupon":{"code":"x","expiry_date":true}}', 400, INVALID),
        ("POST /coupons", '{"coupon":{"code":"x","expiry_date":86400}}', 201, '"1970-01-02T00:00:00Z"'),
        ("POST /coupons", '{"coupon":{"code":"x","product_ids":"4,5"}}', 400, INVALID),
        ("POST /coupons", '{"coupon":{"code":"x","product_ids":{"a":4}}}', 400, INVALID),
        ("POST /coupons", '{"coupon":["a"]}', 400, INVALID),
        ("POST /coupons", '{"coupon":0}', 400, INVALID),
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
        ("POST /customers", '{"customer":{"email":"j@b.co","billing_address":[1]}}', 400, INVALID),
        ("POST /customers", '{"customer":{"email":"j@b.co","billing_address":false}}', 400, INVALID),
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
