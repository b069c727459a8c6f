"""Input of legacy clients that the old server tolerated (decisions 14)."""

from pathlib import Path

import pytest

from tests.api_client import Client, codes, reply
from tests.factories import insert_order
from tests.plugins.woocommerce.legacy.calls import BOTH, INVALID, V2, V3, legacy_refusal


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


def test_native_orders_know_no_status_any(app, admin):
    insert_order(app, status="pending")
    assert order_ids(admin.get("/orders?status=completed")) == []
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
        ("filter[in]=1", newest[:10], 12, 2),
        ("filter[unknown]=1", newest[:10], 12, 2),
        ("status=any", newest[:10], 12, 2),
    ]:
        response = admin.get(f"{V3}/customers/{customer}/orders?{query}")
        assert order_ids(response) == page, query
        assert response.headers["X-WC-Total"] == str(total), query
        assert response.headers["X-WC-TotalPages"] == str(pages), query
    response = admin.get(f"{V3}/customers/{customer}/orders?filter[limit]=5&page=2&fields=id")
    address = f"http://localhost{V3}/customers/{customer}/orders?filter%5Blimit%5D=5&fields=id"
    assert f'<{address}&page=3>; rel="next"' in response.headers["Link"]
    assert response.get_json() == {"orders": [{"id": order_id} for order_id in newest[5:10]]}


def test_orders_of_a_customer_in_version_3_are_listed_like_orders(admin, orders_of_two):
    customer, _ = orders_of_two
    statuses = ("filter[status]=bogus", "status=bogus", "filter[status]=completed,bogus")
    both = ("filter[status]=completed&status=bogus", "filter[limit]=3&page=2", "page=0", "page=99")
    filters = (
        "in]=344",
        "unknown]=1",
        "q]=9",
        "q]=none",
        "orderby]=bogus",
        "orderby]=ID&fields=id,total",
    )
    moments = (
        "created_at_min]=2099-01-01",
        "created_at_min]=bogus",
        "updated_at_max]=2099-01-01&filter[order]=asc",
    )
    for query in (*statuses, *both, *(f"filter[{each}" for each in filters + moments)):
        expected = listed(admin, f"orders?filter[customer_id]={customer}&{query}")
        assert listed(admin, f"customers/{customer}/orders?{query}") == expected, query


def listed(client, path):
    """Return the status, the body and the totals of a list."""
    response = client.get(f"{V3}/{path}")
    totals = [response.headers.get(f"X-WC-{name}") for name in ("Total", "TotalPages")]
    return response.status_code, response.get_json(), totals


@pytest.mark.parametrize("query", ["", "fields=id", "filter=1", "per_page=1"])
def test_all_orders_of_a_customer_in_version_3_without_a_filter(admin, orders_of_two, query):
    customer, ids = orders_of_two
    response = admin.get(f"{V3}/customers/{customer}/orders?{query}")
    assert order_ids(response) == ids
    totals = [response.headers.get(name) for name in ("X-WC-Total", "X-WC-TotalPages", "Link")]
    assert totals == [str(len(ids)), "1", None]


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
    "GET /products", "POST /products", "GET /products/1", "GET /products/count",
    "GET /products/sku/a", "POST /products/bulk", "GET /products/categories",
    "GET /products/tags", "GET /products/attributes", "GET /products/shipping_classes",
    "GET /products/1/reviews", "GET /products/1/orders", "GET /reports/coupons", "GET /reports/customers",
    "GET /taxes", "GET /taxes/classes", "POST /taxes/bulk",
]  # fmt: skip


@BOTH
@pytest.mark.parametrize("request_line", MISSING)
def test_missing_endpoint(admin, mount, request_line):
    method, path = request_line.split(" ")
    response = admin.request(method, f"{mount}{path}", json={})
    assert reply(response) == legacy_refusal("shop_api_no_route")


def create_order(client, mount, **order):
    line = {"name": "Mug", "price": "4.00", "tax_class": ""}
    response = client.post(f"{mount}/orders", {"order": {"line_items": [line]} | order})
    assert response.status_code == 201, response.get_json()
    return response.get_json()["order"]


def documented(difference):
    """Whether the page of the legacy API has a row with this difference from the old server."""
    page = Path(__file__).parents[4].joinpath("docs", "legacy-differences.md").read_text()
    return any(difference in line for line in page.splitlines() if line.startswith("|"))


@BOTH
def test_customer_ip_is_the_one_that_was_sent(admin, mount):
    assert create_order(admin, mount)["customer_ip"] == ""
    assert create_order(admin, mount, customer_ip="192.0.2.1")["customer_ip"] == "192.0.2.1"
    assert documented("stores the `customer_ip` that was sent")


@BOTH
def test_billing_email_is_not_that_of_the_account(admin, mount):
    body = {"customer": {"email": "ada@example.com"}}
    customer = admin.post(f"{mount}/customers", body).get_json()["customer"]
    order = create_order(admin, mount, customer_id=customer["id"])
    assert customer["billing_address"]["email"] == order["billing_address"]["email"] == ""
    assert documented("leaves the billing e-mail of the account, and of an order")


@BOTH
def test_recorded_coupons_are_in_the_total_discount(admin, mount):
    order = create_order(admin, mount, coupon_lines=[{"code": "summer", "amount": "1.00"}])
    assert (order["total"], order["total_discount"]) == ("4.00", "1.00")
    assert documented("includes recorded amounts that no line total contains")


@BOTH
def test_empty_page_of_customers_is_the_first(admin, make_customer, mount):
    customer = make_customer()["id"]
    response = admin.get(f"{mount}/customers?page=")
    assert [each["id"] for each in response.get_json()["customers"]] == [customer]
    assert response.headers["X-WC-Total"] == "1"
    assert documented("v2: returned nothing for an empty `page=` | returns the first page")


@BOTH
def test_tax_class_that_is_not_set_is_null(admin, mount):
    fees = [{"title": "Gift wrap", "total": "1.00"}]
    order = create_order(admin, mount, fee_lines=fees)
    assert [order[name][0]["tax_class"] for name in ("line_items", "fee_lines")] == [None, None]
    assert documented("as the `tax_class` of the standard rate | returns `null`")


@BOTH
def test_username_that_is_too_long(admin, mount):
    body = {"customer": {"email": "ada@example.com", "username": "a" * 61}}
    assert codes(admin.post(f"{mount}/customers", body)) == (400, INVALID)
    body["customer"]["username"] = "a" * 60
    assert admin.post(f"{mount}/customers", body).status_code == 201
    assert documented("a username of more than 60 characters | returns 400 `invalid_param`")
