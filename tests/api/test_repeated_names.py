"""A repeated name in a query is a list where lists are allowed, and otherwise an error."""

import pytest

from tests.api_client import refusal, refused_params, reply
from tests.plugins.woocommerce.oauth_requests import AN_ERROR, PAIR, key, sign

pytestmark = pytest.mark.one_database

__all__ = ["key"]  # a fixture

LEGACY, V3 = "/wc-api/v3", "/wp-json/wc/v3"


@pytest.fixture
def orders(admin):
    """The IDs of a pending, a completed and a cancelled order."""
    return {
        status: admin.post("/orders", {"order": {"status": status}}).get_json()["order"]["id"]
        for status in ("pending", "completed", "cancelled")
    }


def sent(app, key, path):
    pair = (key.consumer_key, key.consumer_secret)
    return app.test_client().get(path, auth=pair, base_url="https://localhost")


@pytest.mark.parametrize("strict", [{}, {"Prefer": "handling=strict"}])
@pytest.mark.parametrize(
    "query",
    [
        "status=pending&status=completed",
        "status[]=pending&status[]=completed",
        "status[0]=pending&status[1]=completed",
        "status=pending&status[]=completed",
        "filter[status]=pending&filter[status]=completed",
        "filter[status][]=pending&filter[status][]=completed",
        "filter%5Bstatus%5D%5B%5D=pending,completed",
    ],
)
def test_list(admin, orders, query, strict):
    found = admin.get(f"/orders?{query}", headers=strict).get_json()["orders"]
    assert {each["id"] for each in found} == {orders["pending"], orders["completed"]}
    assert admin.get(f"/orders/count?{query}", headers=strict).get_json() == {"count": 2}


def test_lists_of_ids_fields_and_figures(admin, orders):
    ids = "&".join(f"in={each}" for each in orders.values())
    body = admin.get(f"/orders?{ids}&fields=id&fields[]=status").get_json()
    assert {each["status"]: each["id"] for each in body["orders"]} == orders
    assert all(list(each) == ["id", "status"] for each in body["orders"])
    assert admin.get("/reports/sales?fields=orders&fields=items").status_code == 200
    order = admin.get(f"/orders/{orders['pending']}?fields=id&fields=customer").get_json()["order"]
    assert list(order) == ["id", "customer"]


@pytest.mark.parametrize("strict", [{}, {"Prefer": "handling=strict"}])
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("page=1&page=2", "page"),
        ("page=2&page=2", "page"),
        ("limit=1&limit=1", "limit"),
        ("filter[limit]=1&filter[limit]=2", "filter[limit]"),
        ("q=a&q=b", "q"),
        ("metadata_key=a&metadata_key=b", "metadata_key"),
        ("created_at_min=2020-01-01&created_at_min=2021-01-01", "created_at_min"),
    ],
)
def test_name_that_is_no_list(admin, query, name, strict):
    expected = refusal("shop_api_invalid_param", name, reason="must be sent only once.")
    for path in ("/orders", "/orders/count") if name != "page" else ("/orders",):
        assert reply(admin.get(f"{path}?{query}", headers=strict)) == expected


def test_repeated_name_without_a_meaning_is_ignored_unless_the_request_is_strict(admin):
    assert admin.get("/orders?utm=a&utm=b").status_code == 200
    strict = admin.get("/orders?utm=a&utm=b", headers={"Prefer": "handling=strict"})
    assert refused_params(strict) == ["utm"]


def test_legacy_api(app, admin, orders):
    for query in (
        "filter[status]=pending&filter[status]=completed",
        "filter[status][]=pending&filter[status][]=completed",
    ):
        found = sent(app, admin.key, f"{LEGACY}/orders?{query}").get_json()["orders"]
        assert {each["id"] for each in found} <= {*orders.values()}
    response = sent(app, admin.key, f"{LEGACY}/orders?page=1&page=2")
    assert response.status_code == 400
    (error,) = response.get_json()["errors"]
    assert error["code"] == "woocommerce_api_invalid_param"
    assert error["message"] == "page: must be sent only once."


def test_signed_parameter_may_be_sent_twice(anonymous, key):
    """Once as given and once as signed, as some clients do."""
    path, headers = sign(PAIR, f"{LEGACY}/coupons?page=1")
    assert anonymous.get(f"{path}&page=1", headers=headers).status_code == 200
    path, headers = sign(PAIR, f"{LEGACY}/coupons?page=1&page=2")
    response = anonymous.get(path, headers=headers)
    assert response.status_code == 400
    assert reply(anonymous.get(f"{path}&page=3", headers=headers))[0] == AN_ERROR[0]


@pytest.mark.parametrize(
    "query",
    [
        "status=pending&status=completed",
        "status[]=pending&status[]=completed",
        "status=pending&status[]=completed",
        "status[]=pending&status=completed",
        "status=pending,completed",
    ],
)
def test_list_of_wc_v3(app, admin, orders, query):
    found = sent(app, admin.key, f"{V3}/orders?{query}").get_json()
    assert {each["id"] for each in found} == {orders["pending"], orders["completed"]}


def test_names_that_are_no_lists_in_wc_v3(app, admin):
    for query, name in (("page=1&page=2", "page"), ("search=a&search=a", "search")):
        response = sent(app, admin.key, f"{V3}/orders?{query}")
        body = response.get_json()
        assert (response.status_code, body["code"]) == (400, "rest_invalid_param")
        assert list(body["data"]["params"]) == [name]
