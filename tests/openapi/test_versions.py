"""The OpenAPI document is valid and complete in both versions (decisions 10)."""

import json

import pytest
from openapi_spec_validator import validate

from tests.commands import succeed

pytestmark = pytest.mark.one_database

VERSIONS = ["3.1.0", "3.0.3"]
OTHER_VERSION = pytest.param("3.0.3", marks=pytest.mark.slow)


@pytest.fixture(params=VERSIONS)
def document(request, app_with):
    return document_of(app_with(SHOP_OPENAPI_VERSION=request.param))


def document_of(app):
    return app.test_client().get("/openapi.json").get_json()


def operations(document):
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                yield f"{method.upper()} {path}", operation, item.get("parameters", [])


def parts(part):
    """Every object in the document, but not in its examples."""
    if isinstance(part, dict):
        yield part
        part = [inner for key, inner in part.items() if key not in {"example", "examples"}]
    for inner in part if isinstance(part, list) else ():
        yield from parts(inner)


@pytest.mark.slow
@pytest.mark.parametrize("document", ["3.1.0", OTHER_VERSION], indirect=True)
def test_document_is_valid(document):
    validate(document)


@pytest.mark.sample(1)
@pytest.mark.parametrize("version", VERSIONS)
def test_command_writes_the_document(app_with, version, tmp_path):
    app = app_with(SHOP_OPENAPI_VERSION=version)
    written = tmp_path / "openapi.json"
    succeed(app, "openapi", "write", written)
    assert json.loads(written.read_text()) == document_of(app)
    assert document_of(app)["openapi"] == version


def test_everything_is_described(document):
    tags = {tag["name"] for tag in document["tags"] if tag["description"]}
    for label, operation, shared in operations(document):
        assert operation["summary"], label
        assert operation.get("description"), f"{label}: the docstring of the view has one sentence"
        assert set(operation["tags"]) <= tags, label
        for parameter in [*shared, *operation.get("parameters", [])]:
            assert parameter["description"], (label, parameter["name"])
    for name, schema in document["components"]["schemas"].items():
        for key, field in schema.get("properties", {}).items():
            # An object is described by its own fields.
            inner = {"$ref", "allOf", "anyOf", "additionalProperties"} & set(field)
            assert field.get("description") or inner, (name, key)
            assert inner or "type" in field, (name, key)


def test_every_response_has_its_headers(document):
    for label, operation, _ in operations(document):
        for status, response in operation["responses"].items():
            # Described once, with the success: every response has it.
            expected = {"X-Request-Id", "X-Shop-Version"} if int(status) < 400 else set()
            expected |= {"WWW-Authenticate"} if status == "401" else set()
            expected |= {"Retry-After"} if status in {"429", "503", "504"} else set()
            accepted = {each.get("name") for each in operation.get("parameters", ())}
            if "page" in accepted and status == "200":
                expected |= {"X-Total", "X-TotalPages", "X-Total-Complete", "Link"}
            if label in {"GET /events", "GET /imports/{import_id}/errors"} and status == "200":
                expected |= {"Link"}
            if (
                label.startswith("GET ")
                and "If-None-Match" in accepted
                and status in {"200", "304"}
            ):
                expected |= {"ETag"}
            returns_position = "X-Shop-Position" in accepted or not label.startswith("GET ")
            if returns_position and status in {"200", "201"}:
                expected |= {"X-Shop-Position"}
            if "Idempotency-Key" in accepted and status in {"200", "201"}:
                expected |= {"Idempotent-Replayed"}
            assert set(response.get("headers", ())) == expected, (label, status)
            # RFC 9110: 304 is an answer without content.
            assert ("application/json" in response.get("content", {})) == (status != "304")


def test_version_30_has_one_type_and_nullable(app_with):
    document = document_of(app_with(SHOP_OPENAPI_VERSION="3.0.3"))
    for part in parts(document["components"]):
        assert isinstance(part.get("type", ""), str | dict), part
        assert part.get("type") != "null", part
        assert not isinstance(part.get("examples"), list), part
        if part.get("nullable") is True:
            assert "type" in part, part
        for bound in ("exclusiveMinimum", "exclusiveMaximum"):
            assert part.get(bound, True) is True, part
    coupon = document["components"]["schemas"]["CouponCreate"]["properties"]
    assert coupon["individual_use"] == {
        "type": "boolean",
        "description": "Whether the coupon cannot be combined with other coupons. "
        "Default: `false`.",
    }
    shown = document["components"]["schemas"]["Coupon"]["properties"]["usage_limit"]
    assert (shown["type"], shown["nullable"]) == ("integer", True)
    guest = document["components"]["schemas"]["GuestCustomer"]["properties"]["id"]
    assert (guest["type"], guest["enum"]) == ("integer", [0])


def test_wrong_version_is_rejected(make_app):
    with pytest.raises(Exception, match="SHOP_OPENAPI_VERSION"):
        make_app(SHOP_OPENAPI_VERSION="2.0")
