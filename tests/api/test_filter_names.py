"""Filters by their short names: ``limit`` means ``filter[limit]`` (decisions 16)."""

import re

import pytest

from tests.api_client import refused_params
from tests.metadata.calls import created

pytestmark = pytest.mark.one_database

KEPT = {"fields", "page", "force", "older_than_days", "format"}
"""Parameters that have no brackets in the specification either."""

NUL = "\0"
"""Rejected by every parameter that is read, and ignored by the others."""


def operations(document):
    """Yield the method and path of each operation with the names of its filters."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            names = [
                each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"
            ]
            # people 3 and 6: requests about persons are strict, which know one name.
            is_strict = path.startswith("/persons/") or path.endswith("/merge")
            is_strict |= (method, path) == ("post", "/imports")
            if not is_strict and (filters := [name for name in names if name not in KEPT]):
                yield method, re.sub(r"{\w+}", "1", path), filters


@pytest.mark.slow
def test_every_filter_of_every_operation_has_two_names(admin):
    found = list(operations(admin.get("/openapi.json").get_json()))
    assert len(found) > 20
    for method, path, names in found:
        for name in names:
            assert "[" not in name
            for sent in (name, f"filter[{name}]"):
                response = admin.request(method, path, query_string={sent: NUL})
                assert (response.status_code, *refused_params(response)) == (400, sent), path
                (error,) = response.get_json()["errors"]
                assert error["message"] == f"{sent}: must not contain a NUL character."
            # An empty parameter is not supplied, and takes precedence all the same.
            both = {name: NUL, f"filter[{name}]": ""}
            assert "NUL character" not in admin.request(method, path, query_string=both).text


def test_the_specified_form_wins_whatever_the_order(app, admin):
    for number in range(3):
        created(admin, "coupon", code=f"summer-{number}")
    created(admin, "coupon", code="winter")
    for query in (
        "q=summer",
        "filter[q]=summer",
        "q=winter&filter[q]=summer",
        "filter[q]=summer&q=winter",
    ):
        response = admin.get(f"/coupons?{query}")
        assert response.headers["X-Total"] == "3"
        assert admin.get(f"/coupons/count?{query}").get_json() == {"count": 3}


def test_links_of_pages_keep_the_names(admin):
    for number in range(3):
        created(admin, "customer", email=f"ada{number}@example.com")
    response = admin.get("/customers?limit=1&orderby=id&order=desc&q=ada&page=2")
    assert [each["email"] for each in response.get_json()["customers"]] == ["ada1@example.com"]
    assert response.headers["X-TotalPages"] == "3"
    for page in (1, 3):
        address = f"<http://localhost/customers?limit=1&orderby=id&order=desc&q=ada&page={page}>"
        assert address in response.headers["Link"]


@pytest.mark.parametrize(
    ("query", "following"),
    [
        ("limit=1", "limit=1&after="),
        ("after=0&limit=1", "limit=1&after="),
        ("filter[limit]=1", "filter%5Blimit%5D=1&filter%5Bafter%5D="),
        ("filter[after]=0&limit=1", "limit=1&filter%5Bafter%5D="),
    ],
)
def test_the_next_link_of_the_feed_has_the_form_of_the_request(admin, query, following):
    for code in ("a", "b"):
        created(admin, "coupon", code=code)
    response = admin.get(f"/events?{query}")
    (event,) = response.get_json()["events"]
    address = f"http://localhost/events?{following}{event['id']}"
    assert response.headers["Link"] == f'<{address}>; rel="next"'


def test_metadata_by_a_key_in_brackets(admin):
    for code, erp_id in (("a", "1"), ("b", "2")):
        created(admin, "coupon", code=code, metadata={"erp_id": erp_id, "color": "red"})

    def codes(query):
        return [each["code"] for each in admin.get(f"/coupons?{query}").get_json()["coupons"]]

    assert codes("metadata[erp_id]=1") == codes("filter[metadata][erp_id]=1") == ["a"]
    assert codes("metadata[color]=red&metadata[erp_id]=2") == ["b"]
    assert codes("metadata[erp_id]=2&filter[metadata][erp_id]=1") == ["a"]
    assert codes("metadata_key=erp_id&filter[metadata_value]=2") == ["b"]
    response = admin.get("/coupons?metadata_value=2")
    assert refused_params(response) == ["metadata_value"]


@pytest.mark.parametrize(
    ("path", "param"),
    [
        ("/customers?orderby=meta_value", "orderby_meta_key"),
        ("/customers?filter[orderby]=meta_value", "filter[orderby_meta_key]"),
        ("/coupons?type=none", "type"),
        ("/orders?status=none", "status"),
        ("/orders?q=ada&filter[status]=none", "filter[status]"),
        ("/events?resource=none", "resource"),
        ("/events?filter[type]=none", "filter[type]"),
    ],
)
def test_errors_of_rules_name_the_parameter_as_sent(admin, path, param):
    response = admin.get(path)
    assert (response.status_code, refused_params(response)) == (400, [param])
    (error,) = response.get_json()["errors"]
    assert error["message"].startswith(f"{param}: ")


def test_other_names_are_ignored_except_in_strict_requests(admin):
    strict = {"Prefer": "handling=strict"}
    created(admin, "coupon", code="a")
    for query in (
        "limit=1",
        "filter[limit]=1",
        "filter[page]=7",
        "filter[fields]=id",
        "filter[filter[q]]=x",
    ):
        name = query.partition("=")[0]
        response = admin.get(f"/coupons?{query}")
        assert len(response.get_json()["coupons"]) == 1
        assert set(response.get_json()["coupons"][0]) > {"id", "code"}
        response = admin.get(f"/coupons?{query}", headers=strict)
        assert (response.status_code, refused_params(response)) == (400, [name])
    assert admin.get("/coupons?q=a&order=asc", headers=strict).status_code == 200
    response = admin.get("/customers?limt=1", headers=strict)
    assert response.get_json()["errors"][0]["message"] == (
        "limt: unknown parameter 'limt'; did you mean 'limit'?"
    )


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_the_legacy_api_has_the_specified_names_only(admin, version):
    for number in range(2):
        created(admin, "customer", email=f"ada{number}@example.com")
    for query, count in (("limit=1", 2), ("q=ada1", 2), ("filter[q]=ada1", 1), ("order=none", 2)):
        response = admin.get(f"/wc-api/{version}/customers?{query}")
        assert len(response.get_json()["customers"]) == count
    document = admin.get(f"/wc-api/{version}/openapi.json").get_json()
    parameters = document["paths"][f"/wc-api/{version}/customers"]["get"]["parameters"]
    assert {"filter[limit]", "filter[q]", "page"} <= {each["name"] for each in parameters}
