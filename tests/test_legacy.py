"""The WooCommerce legacy REST API (decisions 12)."""

import pytest
from conftest import Client, codes, reply
from factories import insert_download, insert_order
from openapi_spec_validator import validate

from app.api.request_parser import ArgumentParser
from app.error_codes import ERRORS

V2, V3 = "/wc-api/v2", "/wc-api/v3"
BOTH = pytest.mark.parametrize("mount", [V2, V3])


def ours(code):
    """A code of the table with the prefix of the legacy API."""
    return code.replace("shop_api_", "woocommerce_api_")


def legacy_refusal(code, **details):
    status, message = ERRORS[code]
    return status, {"errors": [{"code": ours(code), "message": message.format(**details)}]}


# --- the table of decisions 12, row by row ---


@pytest.mark.one_database
@BOTH
def test_error_prefix(admin, mount):
    assert reply(admin.get(f"{mount}/coupons/7")) == legacy_refusal("shop_api_invalid_coupon_id")
    assert codes(admin.post(f"{mount}/coupons", {})) == (
        400,
        "woocommerce_api_missing_coupon_data",
    )


@pytest.mark.one_database
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


@pytest.mark.one_database
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


@pytest.mark.one_database
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


@pytest.mark.one_database
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


# --- what clients of the tolerant old server send (decisions 14), row by row ---


def order_ids(response):
    assert response.status_code == 200, response.get_data(as_text=True)
    return [order["id"] for order in response.get_json()["orders"]]


@BOTH
def test_top_level_status_of_orders(app, admin, mount):
    made = {
        status: insert_order(app, status=status) for status in ("pending", "completed", "failed")
    }
    for query, statuses in [
        ("status=completed", ["completed"]),
        ("filter[status]=completed", ["completed"]),
        ("status=failed,%20pending,", ["failed", "pending"]),
        ("status=completed&filter[status]=failed", ["completed"]),
        ("status=&filter[status]=failed", ["failed"]),
        ("filter[status]=any", made),
        ("status=any", made),
        ("status=any&filter[status]=failed", made),
        ("filter[status]=failed,any", made),
        ("status=", made),
        ("filter[status]=,", made),
        ("", made),
    ]:
        ids = {made[status] for status in statuses}
        response = admin.get(f"{mount}/orders?{query}")
        assert set(order_ids(response)) == ids, query
        assert response.headers["X-WC-Total"] == str(len(ids))
        assert admin.get(f"{mount}/orders/count?{query}").get_json() == {"count": len(ids)}, query


def test_native_orders_know_no_top_level_status_and_no_any(app, admin):
    insert_order(app, status="pending")
    assert len(order_ids(admin.get("/orders?status=completed"))) == 1
    assert codes(admin.get("/orders?filter[status]=any")) == (400, "shop_api_invalid_param")


@pytest.fixture
def orders_of_two(app, make_customer):
    """The ids of the pending and completed orders of a customer, oldest first, beside another's."""
    customer, other = make_customer()["id"], make_customer()["id"]
    insert_order(app, customer_id=other, status="completed")
    statuses = ["pending", "completed"] * 6
    return customer, [insert_order(app, customer_id=customer, status=each) for each in statuses]


def test_orders_of_a_customer_in_version_3_are_filtered_and_paged(admin, orders_of_two):
    customer, ids = orders_of_two
    newest = ids[::-1]
    for query, page, total, pages in [
        ("page=1", newest[:10], 12, 2),
        ("page=2", newest[10:], 12, 2),
        ("page=", newest[:10], 12, 2),
        ("filter[limit]=5", newest[:5], 12, 3),
        ("filter[limit]=-1", newest, 12, 1),
        ("filter[status]=completed", newest[::2], 6, 1),
        ("status=completed", newest[::2], 6, 1),
        ("filter[status]=completed&filter[limit]=2&page=3", newest[8::2], 6, 3),
        ("filter[order]=asc&filter[offset]=3&filter[limit]=2", ids[3:5], 12, 6),
        ("filter[customer_id]=0&page=1", newest[:10], 12, 2),
    ]:
        response = admin.get(f"{V3}/customers/{customer}/orders?{query}")
        assert order_ids(response) == page, query
        assert response.headers["X-WC-Total"] == str(total), query
        assert response.headers["X-WC-TotalPages"] == str(pages), query
    response = admin.get(f"{V3}/customers/{customer}/orders?filter[limit]=5&page=2&fields=id")
    address = f"http://localhost{V3}/customers/{customer}/orders?filter%5Blimit%5D=5&fields=id"
    assert f'<{address}&page=3>; rel="next"' in response.headers["Link"]
    assert response.get_json() == {"orders": [{"id": order_id} for order_id in newest[5:10]]}


@pytest.mark.parametrize("query", ["", "fields=id", "filter[unknown]=1", "per_page=1"])
def test_all_orders_of_a_customer_in_version_3_without_a_filter(admin, orders_of_two, query):
    customer, ids = orders_of_two
    response = admin.get(f"{V3}/customers/{customer}/orders?{query}")
    assert order_ids(response) == ids
    assert not {"X-WC-Total", "X-WC-TotalPages", "Link"} & set(response.headers)


@pytest.mark.parametrize("mount", ["", V2])
def test_all_orders_of_a_customer_in_the_other_versions(admin, orders_of_two, mount):
    customer, ids = orders_of_two
    query = "filter[status]=completed&page=2&filter[limit]=1&status=failed"
    response = admin.get(f"{mount}/customers/{customer}/orders?{query}")
    assert order_ids(response) == ids
    assert not [name for name in response.headers if "Total" in name or name == "Link"]


@pytest.mark.parametrize("query", ["", "page=1"])
def test_orders_of_a_customer_ask_for_the_same_capability(app, client_for, query):
    nobody = client_for("customer", login="nobody")
    for customer, code in [
        (0, "woocommerce_api_invalid_customer_id"),
        (999, "woocommerce_api_invalid_customer"),
        (nobody.key.user_id, "woocommerce_api_user_cannot_read_customer"),
    ]:
        assert codes(nobody.get(f"{V3}/customers/{customer}/orders?{query}"))[1] == code


@BOTH
def test_plus_in_the_path_of_a_code_is_a_space(admin, make_coupon, mount):
    coupon = make_coupon(code="summer sale 2021")
    for written in (
        "summer+sale+2021",
        "summer%20sale%202021",
        "Summer%2Bsale 2021",
        "summer+sale+2021/",
    ):
        found = admin.get(f"{mount}/coupons/code/{written}")
        assert found.get_json()["coupon"]["id"] == coupon["id"], written
    assert codes(admin.get("/coupons/code/summer+sale+2021")) == (404, "shop_api_no_route")


@BOTH
def test_plus_in_the_path_of_an_email_stays(admin, make_customer, mount):
    customer = make_customer(email="ann+sale@example.com")
    found = admin.get(f"{mount}/customers/email/ann+sale@example.com").get_json()["customer"]
    assert found["id"] == customer["id"]


EMPTY = pytest.mark.parametrize("empty", [[], "", {}])


@BOTH
@EMPTY
def test_empty_php_array_is_an_empty_object(admin, make_coupon, make_customer, mount, empty):
    coupon, customer = make_coupon(), make_customer(billing_address={"city": "Paris"})
    for path, wrapper, record in [
        (f"/coupons/{coupon['id']}", "coupon", coupon),
        (f"/customers/{customer['id']}", "customer", customer),
    ]:
        assert reply(admin.put(f"{mount}{path}", {wrapper: empty}))[0] == 200
        assert admin.get(path).get_json() == {wrapper: record}
    assert codes(admin.post(f"{mount}/coupons", {"coupon": empty})) == (
        400,
        "woocommerce_api_missing_coupon_code",
    )
    addresses = {"billing_address": empty, "shipping_address": empty}
    edited = admin.put(f"{mount}/customers/{customer['id']}", {"customer": addresses}).get_json()
    assert edited["customer"]["billing_address"] == customer["billing_address"]
    created = admin.post(f"{mount}/customers", {"customer": {"email": "n@b.co", **addresses}})
    assert created.status_code == 201
    results = admin.post(f"{mount}/coupons/bulk", {"coupons": [empty]}).get_json()["coupons"]
    assert results[0]["error"]["code"] == "woocommerce_api_missing_coupon_code"
    items = [{"id": customer["id"], "first_name": "Ann", **addresses}]
    results = admin.post(f"{mount}/customers/bulk", {"customers": items}).get_json()["customers"]
    assert results[0]["first_name"] == "Ann"


@pytest.mark.one_database
@pytest.mark.parametrize("empty", [[], ""])
def test_empty_array_is_not_an_object_in_the_native_api(admin, make_coupon, make_customer, empty):
    refused = 400, "shop_api_invalid_param"
    assert codes(admin.put(f"/coupons/{make_coupon()['id']}", {"coupon": empty})) == refused
    body = {"customer": {"billing_address": empty}}
    assert codes(admin.put(f"/customers/{make_customer()['id']}", body)) == refused


@BOTH
def test_object_with_integer_keys_is_a_list(admin, mount):
    gaps = {"product_ids": {"0": 4, "7": "5"}, "customer_emails": {"3": "a@b.co"}}
    coupon = admin.post(f"{mount}/coupons", {"coupon": {"code": "x", **gaps}}).get_json()["coupon"]
    assert (coupon["product_ids"], coupon["customer_emails"]) == ([4, 5], ["a@b.co"])
    body = {"coupon": {"product_ids": {}, "exclude_product_ids": {"2": 9, "1": 8}}}
    coupon = admin.put(f"{mount}/coupons/{coupon['id']}", body).get_json()["coupon"]
    assert (coupon["product_ids"], coupon["exclude_product_ids"]) == ([], [9, 8])
    items = {"5": {"code": "y", **gaps}, "2": {"id": coupon["id"], "product_ids": {"1": 6}}}
    results = admin.post(f"{mount}/coupons/bulk", {"coupons": items}).get_json()["coupons"]
    assert [each["code"] for each in results] == ["y", "x"]
    assert [each["product_ids"] for each in results] == [[4, 5], [6]]
    assert codes(admin.post(f"{mount}/coupons/bulk", {"coupons": {"a": {}}})) == (400, INVALID)


def test_object_with_integer_keys_is_not_a_list_in_the_native_api(admin):
    refused = 400, "shop_api_invalid_param"
    body = {"coupon": {"code": "x", "product_ids": {"0": 4}}}
    assert codes(admin.post("/coupons", body)) == refused
    assert codes(admin.post("/coupons/bulk", {"coupons": {"0": {"code": "x"}}})) == refused


@BOTH
@pytest.mark.parametrize("nothing", ["0", '"0"', "false", "0.0", '""'])
def test_empty_expiry_date_means_no_date(admin, make_coupon, mount, nothing):
    coupon = make_coupon(code="a", expiry_date="2030-12-31")
    path, body = f"{mount}/coupons/{coupon['id']}", f'{{"coupon":{{"expiry_date":{nothing}}}}}'
    assert admin.request("PUT", path, data=body).get_json()["coupon"]["expiry_date"] is None
    body = body.replace('{"expiry', '{"code":"b","expiry')
    created = admin.request("POST", f"{mount}/coupons", data=body)
    assert created.get_json()["coupon"]["expiry_date"] is None
    items = f'{{"coupons":[{{"id":{coupon["id"]},"expiry_date":{nothing}}}]}}'
    bulk = admin.request("POST", f"{mount}/coupons/bulk", data=items)
    assert bulk.get_json()["coupons"][0]["expiry_date"] is None


@BOTH
def test_force_removes_a_coupon_from_the_trash(admin, client_for, make_coupon, mount):
    path = f"{mount}/coupons/{make_coupon()['id']}"
    gone = legacy_refusal("shop_api_invalid_coupon_id")
    assert admin.delete(path).status_code == 202
    assert reply(admin.delete(path)) == gone
    nobody = client_for("customer", login="nobody")
    answer = 401, "woocommerce_api_user_cannot_delete_coupon"
    assert codes(nobody.delete(path, {"force": "true"})) == answer
    assert reply(admin.delete(path.replace(mount, ""), {"force": "true"}))[0] == 404
    assert reply(admin.delete(path, {"force": "true"})) == (
        200,
        {"message": "Permanently deleted coupon"},
    )
    assert reply(admin.delete(path, {"force": "true"})) == gone


@pytest.mark.parametrize(
    "path",
    ["", "/", "/v1", "/v1/", "/v1/coupons", "/v1/coupons/count", "/v4/orders", "/V1/orders", "/x"],
)
def test_other_versions_respond_in_the_dialect(app, admin, anonymous, path):
    for client in (admin, anonymous):
        for method in ("GET", "POST"):
            response = client.request(method, f"/wc-api{path}")
            assert reply(response) == legacy_refusal("shop_api_no_route")
    wrong = {"Authorization": "Basic Y2tfd3Jvbmc6Y3Nfd3Jvbmc="}
    answer = 401, "woocommerce_api_authentication_error"
    assert codes(Client(app).get(f"/wc-api{path}", headers=wrong)) == answer
    assert codes(anonymous.get("/wc-apiary")) == (404, "shop_api_no_route")


# The endpoints that docs/legacy.md calls missing, with the methods of the old server.
MISSING = [
    "GET /orders/1/refunds", "POST /orders/1/refunds",
    "GET /products", "POST /products", "GET /products/1", "GET /products/count",
    "GET /products/sku/a", "POST /products/bulk", "GET /products/categories",
    "GET /products/tags", "GET /products/attributes", "GET /products/shipping_classes",
    "GET /products/1/reviews", "GET /products/1/orders", "GET /reports", "GET /reports/sales",
    "GET /reports/sales/top_sellers", "GET /taxes", "GET /taxes/classes", "POST /taxes/bulk",
]  # fmt: skip


@pytest.mark.one_database
@BOTH
@pytest.mark.parametrize("request_line", MISSING)
def test_missing_endpoint(admin, mount, request_line):
    method, path = request_line.split(" ")
    response = admin.request(method, f"{mount}{path}", json={})
    assert reply(response) == legacy_refusal("shop_api_no_route")


# --- how a request may be written ---


@pytest.mark.one_database
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


@pytest.mark.one_database
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


@pytest.mark.one_database
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


@pytest.mark.one_database
@pytest.mark.parametrize("change", [{"consumer_secret": "cs_x"}, {"consumer_key": "ck_x"}])
def test_wrong_key_in_the_query(app_with, admin, change):
    client = Client(app_with(SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH=True))
    pair = {"consumer_key": admin.key.consumer_key, "consumer_secret": admin.key.consumer_secret}
    response = client.get(f"{V3}/coupons", pair | change)
    assert codes(response) == (401, "woocommerce_api_authentication_error")


@pytest.mark.one_database
@pytest.mark.parametrize("name", ["consumer_key", "consumer_secret"])
def test_incomplete_key_in_the_query(app_with, admin, name):
    client = Client(app_with(SHOP_LEGACY_ALLOW_INSECURE_QUERY_AUTH=True))
    pair = {"consumer_key": admin.key.consumer_key, "consumer_secret": admin.key.consumer_secret}
    assert client.get(f"{V3}/coupons", {name: pair[name]}).status_code == 401


@pytest.mark.one_database
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


def test_index(anonymous):
    for path in (V3, f"{V3}/"):
        status, body = reply(anonymous.get(path))
        store = body["store"]
        assert (status, list(body)) == (200, ["store"])
        assert store["URL"] == "http://localhost"
        assert store["version"] == "3.1.0"
        assert store["meta"]["timezone"] == "UTC"
        assert sorted(store["routes"]) == [
            "/",
            "/coupons",
            "/coupons/<id>",
            "/coupons/bulk",
            "/coupons/code/<code>",
            "/coupons/count",
            "/customers",
            "/customers/<id>",
            "/customers/<id>/downloads",
            "/customers/<id>/orders",
            "/customers/bulk",
            "/customers/count",
            "/customers/email/<email>",
            "/orders",
            "/orders/<id>",
            "/orders/<id>/notes",
            "/orders/<id>/notes/<id>",
            "/orders/bulk",
            "/orders/count",
            "/orders/statuses",
            "/webhooks",
            "/webhooks/<id>",
            "/webhooks/<id>/deliveries",
            "/webhooks/<id>/deliveries/<id>",
            "/webhooks/count",
        ]
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


@pytest.mark.one_database
@BOTH
@pytest.mark.parametrize("version", ["3.1.0", "3.0.3"])
def test_document(app_with, mount, version):
    app = app_with(SHOP_OPENAPI_VERSION=version)
    document = app.test_client().get(f"{mount}/openapi.json").get_json()
    validate(document)
    text = app.json.dumps(document)
    assert "shop_api_" not in text
    assert "X-Total" not in text
    tags = [tag["name"] for tag in document["tags"]]
    assert tags == ["coupons", "customers", "orders", "order_notes", "index", "webhooks"]
    paths = document["paths"]
    assert all(path.startswith(mount) for path in paths)
    coupon = paths[f"{mount}/coupons/{{coupon_id}}"]
    assert coupon.keys() == {"get", "put", "post", "patch", "delete"}
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
    shown = document["components"]["schemas"]["Customer"]["properties"]
    assert ("last_update" in shown) is (mount == V3)
    ways = paths[f"{mount}/coupons"]["get"]["security"]
    assert ways == [{"basicAuth": []}, {"consumerKey": [], "consumerSecret": []}]


@pytest.mark.one_database
def test_native_document_is_the_same_without_the_mounts(app, make_app):
    documents = [
        each.test_client().get("/openapi.json").get_data()
        for each in (app, make_app(SHOP_LEGACY_API=False))
    ]
    assert documents[0] == documents[1]
