"""The OpenAPI document of this dialect: valid, complete and true."""

import json
import re

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV30SpecValidator, OpenAPIV31SpecValidator

from tests.npm import install, needs_node
from tests.openapi.test_clients import run
from tests.plugins.woocommerce.rest.seed import reset
from tests.plugins.woocommerce.rest.test_dialect import LINE, V3, Shop
from tests.serving import ROOT

pytestmark = pytest.mark.one_database

LINT = ROOT / "tests" / "lint"


@pytest.fixture
def document(app):
    return app.test_client().get(f"{V3}/openapi.json").get_json()


@pytest.fixture
def folder(document, tmp_path):
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    return tmp_path


def test_operations_have_names_and_the_paths_of_the_index(document, app):
    operations = [
        each for item in document["paths"].values() for each in item.values() if "tags" in each
    ]
    names = [each["operationId"] for each in operations]
    assert len(names) == len(set(names))
    assert {"listCoupons", "createOrder", "batchCustomers", "listAllRefunds"} <= set(names)
    routes = app.test_client().get(V3).get_json()["routes"]
    known = {re.sub(r"\(\?P<(\w+)>\[\\d\]\+\)", r"{\1}", path[6:]) for path in routes}
    assert {*document["paths"], ""} == known


def test_responses_are_as_described(app, document):
    reset(app)
    shop = Shop(app)
    order = shop.ok(
        "POST",
        "/orders",
        {
            "customer_id": 5,
            "line_items": [LINE],
            "shipping_lines": [{"method_id": "flat_rate", "total": "4.50"}],
            "fee_lines": [{"name": "Wrap", "total": "1"}],
            "coupon_lines": [{"code": "welcome10"}],
        },
    )
    path = f"/orders/{order['id']}"
    shop.ok("POST", f"{path}/refunds", {"amount": "1", "line_items": []})
    shop.ok("POST", f"{path}/notes", {"note": "Packed."})
    for template, item in document["paths"].items():
        if "get" not in item:
            continue
        real = template.replace("{order_id}", str(order["id"]))
        if "{id}" in real:
            collection = real.partition("/{id}")[0]
            real = real.replace("{id}", str(shop.ok("GET", collection)[0]["id"]))
        schema = item["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        _require_valid(document, schema, shop.ok("GET", real), closed=True)
    error = {"$ref": "#/components/schemas/ApiError"}
    _require_valid(document, error, shop.send("GET", "/coupons?page=x").get_json())


def _require_valid(document, schema, value, *, closed=False):
    """Check a value; with ``closed``, it has no field that is not described either."""
    components = json.loads(json.dumps(document["components"]))
    for name, each in components["schemas"].items():
        if closed and "properties" in each and name != "ApiErrorData":
            each["additionalProperties"] = False
    problems = Draft202012Validator({**schema, "components": components}).iter_errors(value)
    assert [(each.json_path, each.message[:200]) for each in problems] == []


@pytest.mark.slow
def test_document_follows_the_version_of_the_others(app_with, document):
    http = app_with(SHOP_OPENAPI_VERSION="3.0.3").test_client()
    older = http.get(f"{V3}/openapi.json").get_json()
    OpenAPIV30SpecValidator(older).validate()
    OpenAPIV31SpecValidator(document).validate()
    assert (older["openapi"], document["openapi"]) == ("3.0.3", "3.1.0")
    assert "null" not in re.findall(r'"type": "(\w+)"', json.dumps(older))
    assert older["info"]["license"]["url"].startswith("https://")
    coupon = older["components"]["schemas"]["Coupon"]["properties"]
    assert coupon["usage_limit"] == {"type": "integer", "nullable": True}
    last = older["components"]["schemas"]["Customer"]["properties"]["last_order"]
    null = {"type": "object", "nullable": True, "enum": [None]}
    assert last == {"anyOf": [{"$ref": "#/components/schemas/LastOrder"}, null]}
    assert coupon.keys() == document["components"]["schemas"]["Coupon"]["properties"].keys()
    assert older["paths"].keys() == document["paths"].keys()


def test_options_have_the_schema(app):
    reset(app)
    described = Shop(app).ok("OPTIONS", "/coupons")
    assert list(described) == ["namespace", "methods", "endpoints", "schema", "_links"]
    assert described["schema"]["title"] == "Coupon"
    assert described["schema"]["properties"]["usage_limit"] == {"type": ["integer", "null"]}
    assert "$ref" not in json.dumps(described["schema"])
    last = Shop(app).ok("OPTIONS", "/customers")["schema"]["properties"]["last_order"]
    assert (last["type"], last["required"]) == (["object", "null"], ["date", "id"])


def test_document_names_the_address_of_each_request(app):
    """The rest of it is made once."""
    shown = [
        app.test_client().get(f"{V3}/openapi.json", base_url=f"https://{host}").get_json()
        for host in ("one.example", "two.example")
    ]
    hosts = [each.pop("servers") for each in shown]
    assert hosts == [[{"url": f"https://{name}.example{V3}"}] for name in ("one", "two")]
    assert shown[0] == shown[1]


@pytest.mark.slow
@needs_node
def test_linter_reports_nothing(folder):
    spectral = install(LINT) / ".bin" / "spectral"
    ruleset = f"--ruleset={LINT / '.spectral.yaml'}"
    run(spectral, "lint", "--fail-severity=hint", ruleset, "openapi.json", cwd=folder)
