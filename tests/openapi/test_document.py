"""The OpenAPI document is valid and complete, and Swagger UI loads no files from other hosts.

Source: decisions 2 and 10.
"""

import gzip
import json
import re
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import orjson
import pytest

from app.api import order_extensions
from app.config import VERSION
from app.errors.codes import ERRORS

pytestmark = pytest.mark.one_database

OPEN = {("get", "/"), ("get", "/healthz"), ("get", "/readyz")}
# What describes the API is no part of it. The pages call it, and wc/v3 has a document of its own.
AROUND = {
    "/openapi.json",
    "/docs/",
    "/llms.txt",
    "/static/",
    "/wc-auth",
    "/favicon.ico",
    "/admin",
    "/wp-json",
}
ADMIN_CODES = {
    "shop_api_invalid_session_id",
    "shop_api_key_cannot_sign_in",
    "shop_api_sign_in_link_used",
}
"""Errors that only the admin pages show."""


@pytest.fixture(scope="module")
def document(session_app):
    response = session_app.test_client().get("/openapi.json")
    assert (response.status_code, response.mimetype) == (200, "application/json")
    return response.get_json()


@pytest.fixture(scope="module")
def operations(document):
    return {
        (method, path): operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in {"get", "put", "post", "delete", "options", "head", "patch", "trace"}
    }


def walk(node):
    yield node
    for inner in (
        node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    ):
        yield from walk(inner)


def test_document_is_compact_compressed_and_not_sent_again(session_app, document):
    client = session_app.test_client()
    plain, compressed = (
        client.get("/openapi.json", headers={"Accept-Encoding": encoding})
        for encoding in ("identity", "br, gzip")
    )
    assert plain.data == orjson.dumps(document)
    assert (plain.content_encoding, compressed.content_encoding) == (None, "gzip")
    assert gzip.decompress(compressed.data) == plain.data
    assert len(compressed.data) < len(plain.data) / 10
    assert plain.headers["ETag"] != compressed.headers["ETag"]
    for first, encoding in ((plain, "identity"), (compressed, "gzip")):
        headers = {"Accept-Encoding": encoding, "If-None-Match": first.headers["ETag"]}
        again = client.get("/openapi.json", headers=headers)
        assert (again.status_code, again.data) == (304, b"")
        for response in (first, again):
            caching = [response.headers[name] for name in ("ETag", "Vary", "Cache-Control")]
            assert caching == [first.headers["ETag"], "Accept-Encoding", "no-cache"]


@pytest.mark.parametrize("refused", ["gzip;q=0", "*;q=0, identity", "br"])
def test_document_is_not_compressed_for_a_client_that_does_not_accept_it(session_app, refused):
    response = session_app.test_client().get("/openapi.json", headers={"Accept-Encoding": refused})
    assert response.content_encoding is None
    assert response.get_json()["openapi"] == "3.1.0"


def test_document_is_not_searched_for_orders(session_app, monkeypatch):
    """Its examples look like orders, and it is ten times as long as what other views return."""
    monkeypatch.setattr(order_extensions, "parse_integer", pytest.fail)
    headers = {"Accept-Encoding": "identity"}
    assert session_app.test_client().get("/openapi.json", headers=headers).status_code == 200


def test_document_has_the_versions_of_the_format_and_of_the_service(document):
    assert (document["openapi"], document["info"]["version"]) == ("3.1.0", VERSION)


@pytest.mark.parametrize("mount", ["", "/wc-api/v2", "/wc-api/v3"])
def test_every_route_is_in_its_document_and_every_operation_is_a_route(session_app, mount):
    document = session_app.test_client().get(f"{mount}/openapi.json").get_json()
    operations = {
        (method, path)
        for path, item in document["paths"].items()
        for method in item.keys() - {"parameters"}
    }
    routes = {
        (method.lower(), re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule))
        for rule in session_app.url_map.iter_rules()
        if re.match("(/wc-api/v[0-9])?", rule.rule)[0] == mount
        and not rule.rule.removeprefix(mount).startswith(tuple(AROUND))
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }
    # Further methods of a view are not documented.
    assert operations <= routes
    paths = {path for _, path in operations}
    for method, path in routes - operations:
        assert path in paths, path
        assert method in ({"put", "patch"} if path.endswith("/bulk") else {"post", "patch"}), path
    if not mount:
        bulk = {f"/{records}/bulk" for records in ("coupons", "customers", "orders")}
        assert routes - operations == {("put", path) for path in bulk}


def test_operation_ids_are_unique_and_in_camel_case(operations):
    ids = [operation["operationId"] for operation in operations.values()]
    assert sorted(set(ids)) == sorted(ids)
    assert [name for name in ids if not re.fullmatch(r"[a-z]+(?:[A-Z][a-z]+)*", name)] == []


def test_every_operation_has_a_summary_and_known_tags(document, operations):
    tags = {tag["name"] for tag in document["tags"]}
    wanting = {
        key: operation
        for key, operation in operations.items()
        if not operation.get("summary") or not set(operation.get("tags") or [""]) <= tags
    }
    assert wanting == {}


def test_every_operation_needs_credentials_but_the_open_ones(document, operations):
    default = document.get("security", [])
    needs = {key: operation.get("security", default) for key, operation in operations.items()}
    assert needs == {key: [] if key in OPEN else [{"basicAuth": []}] for key in operations}
    assert document["components"]["securitySchemes"]["basicAuth"]["scheme"] == "basic"


def test_every_operation_documents_a_success_and_its_errors(operations):
    for key, operation in operations.items():
        statuses = sorted(operation["responses"])
        assert statuses[0] in {"200", "201"}, key
        assert {"500", "503"} <= set(statuses), key
        assert ("504" in statuses) == (key[0] != "get"), key
        assert ("401" in statuses) == (key not in OPEN), key
        assert all(response["description"] for response in operation["responses"].values()), key


def test_every_example_of_an_error_is_in_the_envelope(operations):
    seen = set()
    for key, operation in operations.items():
        for status, response in operation["responses"].items():
            if int(status) < 400:
                continue
            content = response["content"]["application/json"]
            assert content["schema"] == {"$ref": "#/components/schemas/ErrorResponse"}, (
                key,
                status,
            )
            assert content["examples"], (key, status)
            for code, example in content["examples"].items():
                (entry,) = example["value"]["errors"]
                assert example == {"value": {"errors": [entry]}}
                assert entry.keys() - {"param", "reasons"} == {"code", "message"}
                assert not re.search(r"…|\{\w+\}", entry["message"]), entry
                # An update of a customer returns every code with 400 (spec 4.2).
                is_400 = status == "400" and (
                    operation["operationId"] == "updateCustomer"
                    # So does an unknown customer_id in a body (orders 5, redemptions 6), or an
                    # unknown parent_id (records 3).
                    or code == "shop_api_invalid_customer_id"
                    # An unknown campaign_id in a body (campaigns 1).
                    or (
                        code == "shop_api_invalid_campaign_id"
                        and "Campaign" not in operation["operationId"]
                    )
                    or (
                        code == "shop_api_invalid_order_id"
                        and "OrderNote" not in operation["operationId"]
                    )
                )
                assert (entry["code"], int(status)) == (code, 400 if is_400 else ERRORS[code][0])
                assert entry["message"]
                seen.add(code)
    # It responds to requests for unknown operations.
    assert ERRORS.keys() - seen == {"shop_api_method_not_allowed", *ADMIN_CODES}


def test_every_path_parameter_is_declared(document):
    for path, item in document["paths"].items():
        named = re.findall(r"\{(\w+)\}", path)
        for method, operation in item.items():
            if method == "parameters":
                continue
            declared = [
                parameter["name"]
                for parameter in [*item.get("parameters", []), *operation.get("parameters", [])]
                if parameter["in"] == "path"
            ]
            assert declared == named, (method, path)


def test_no_reference_is_dangling(document):
    references = {
        node["$ref"] for node in walk(document) if isinstance(node, dict) and "$ref" in node
    }
    assert references
    for reference in references:
        node = document
        assert reference.startswith("#/")
        for part in reference[2:].split("/"):
            assert part in node, reference
            node = node[part]


def test_no_schema_has_a_number_instead_of_a_name(document):
    assert [name for name in document["components"]["schemas"] if name[-1].isdigit()] == []


def test_openapi_write_writes_the_document(session_app, document, tmp_path):
    target = tmp_path / "openapi.json"
    result = session_app.test_cli_runner().invoke(args=["openapi", "write", str(target)])
    assert (result.exit_code, result.stdout) == (0, "")
    assert json.loads(target.read_text()) == document


# --- Swagger UI ---


class Links(HTMLParser):
    """The addresses that a page loads."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name in {"src", "href"} and value]


def page_at(client, path, **kwargs):
    response = client.get(path, **kwargs)
    assert (response.status_code, response.mimetype) == (200, "text/html")
    return response.get_data(as_text=True)


def size_of(client, path):
    """How long a file is that must be there."""
    with client.get(path) as response:  # it holds the file open
        assert (response.status_code, path) == (200, path)
        return len(response.get_data())


@pytest.mark.parametrize("path", ["/docs", "/docs/", "/docs/index.html"])
def test_docs_and_their_files_are_served_by_the_service(session_app, path):
    client = session_app.test_client()
    page = page_at(client, path)
    links = Links(page).found
    assert len(links) == 3
    for link in links:
        address = urljoin(f"http://localhost{path}", link)
        assert urlsplit(address).netloc == "localhost"
        assert size_of(client, urlsplit(address).path) > 0
    assert '"url": "/openapi.json"' in page


@pytest.mark.parametrize("path", ["/docs", "/docs/"])
def test_docs_name_no_other_host(session_app, path):
    addresses = re.findall(r"(?:https?:)?//[\w.-]+\.[a-z]+|https?://[^\"' ]+", page_at(
        session_app.test_client(), path
    ))  # fmt: skip
    assert {urlsplit(address).netloc for address in addresses} <= {"localhost"}


@pytest.mark.slow
def test_docs_under_a_prefix_find_their_files_and_the_document(make_app):
    client = make_app(SHOP_URL_PREFIX="/shop").test_client()
    page = page_at(client, "/shop/docs")
    assert all(size_of(client, link) for link in Links(page).found)
    assert '"url": "/shop/openapi.json"' in page
    assert client.get("/shop/openapi.json").status_code == 200
    assert client.get("/docs").status_code == 404


def test_docs_file_that_does_not_exist_is_a_404_in_the_envelope(session_app):
    response = session_app.test_client().get("/docs/nothing.js")
    assert (response.status_code, response.get_json()) == (
        404,
        {"errors": [{"code": "shop_api_no_route", "message": "No route matches this path."}]},
    )
