"""The document describes canonical requests and complete responses (decisions 16)."""

import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from app.blueprints import guides
from tests.coupons.calls import BLANK as OF_COUPONS
from tests.customers.calls import BLANK as OF_CUSTOMERS

pytestmark = pytest.mark.one_database

# Properties of responses that are not always there: the rest of an error, the version of v3, and the
# replicas with a setting.
ON_REQUEST = {
    *OF_COUPONS, *OF_CUSTOMERS,
    "metadata", "coupon_meta", "customer_meta", "order_meta", "total_refunded", "refunds",
    "changes", "actor", "erased_at",
}  # fmt: skip
OPTIONAL = {
    ("CountResponse", "complete"), ("ApiError", "param"), ("ApiError", "reasons"), ("BulkError", "reasons"), ("Store", "version"),
    ("Readiness", "replicas"), ("EventRedemption", "campaign_id"), ("EventRedemption", "amount"), ("WebhookWithSecret", "secret"),
    ("EventChanges", "undo_of"),
    *(("UndoneRecord", name) for name in (
        "campaign", "coupon", "customer", "order", "order_note", "order_refund", "message")),
    *(("ImportSummary", name) for name in (
        "kind", "created", "updated", "interrupted", "status", "skipped", "failed")),
    *(("InvitationSummary", name) for name in ("permission", "resources", "expires_at", "key_id")),
}  # fmt: skip
COUNTS_NOTHING = re.compile(r"(filter\[)?(limit|offset|order|orderby|orderby_meta_key)\]?|page")


@pytest.fixture(params=["", "/wc-api/v2", "/wc-api/v3"])
def document(request, session_app):
    return session_app.test_client().get(f"{request.param}/openapi.json").get_json()


def operations(document):
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield f"{method.upper()} {path}", operation


def reachable(document, part, seen):
    """The names of all schemas that a part of the document refers to, at any depth."""
    if isinstance(part, list):
        for inner in part:
            reachable(document, inner, seen)
    if isinstance(part, dict):
        name = part.get("$ref", "").removeprefix("#/components/schemas/")
        if name and "/" not in name and name not in seen:
            seen.add(name)
            reachable(document, document["components"]["schemas"][name], seen)
        reachable(document, list(part.values()), seen)
    return seen


def schemas_of(document, *keys):
    """The schemas of all request bodies or of all responses, by name."""
    parts = [operation.get(key, {}) for _, operation in operations(document) for key in keys]
    return {
        name: document["components"]["schemas"][name]
        for name in sorted(reachable(document, parts, set()))
    }


def test_every_input_has_one_type(document):
    inputs = schemas_of(document, "requestBody")
    assert {"CouponCreate", "OrderUpdate", "LineItemCreate"} <= inputs.keys()
    for name, schema in inputs.items():
        assert schema["type"] in {"object", "string"}, name
        for key, field in schema.get("properties", {}).items():
            where = f"{name}.{key}"
            assert field.keys() <= {
                "type", "format", "description", "examples", "minimum", "maximum", "minLength",
                "maxLength", "minItems", "maxItems", "pattern", "items", "$ref", "writeOnly",
            }, where  # fmt: skip
            for each in (field, field.get("items", field)):
                assert isinstance(each.get("type", ""), str), where
                assert ("type" in each) != ("$ref" in each), where


def test_every_property_of_a_response_is_required(document):
    schemas = schemas_of(document, "responses")
    assert {"Coupon", "Order", "GuestCustomer"} <= schemas.keys()
    missing = {
        (name, key)
        for name, schema in schemas.items()
        for key in schema.get("properties", {}).keys() - set(schema.get("required", ()))
    }
    # Metadata is in a response only if the request asks for it or writes it.
    metadata = {pair for pair in missing if pair[1] in ON_REQUEST}
    assert {name for name, _ in metadata} >= {"Coupon", "Customer", "Order"}
    assert missing - metadata <= OPTIONAL


def test_customer_of_an_order_is_distinguished_from_a_guest(document):
    schemas = document["components"]["schemas"]
    account, guest = (schemas[name]["properties"]["id"] for name in ("Customer", "GuestCustomer"))
    assert (account["minimum"], guest["const"]) == (1, 0)


def test_no_schema_has_the_name_of_its_property(document):
    for name, schema in document["components"]["schemas"].items():
        names = {key.replace("_", "").lower() for key in schema.get("properties", {})}
        assert name.lower() not in names, name


def test_path_parameters_come_first_with_an_example(document):
    for label, operation in operations(document):
        places = [parameter["in"] for parameter in operation.get("parameters", [])]
        assert places == sorted(places, key=["path", "query", "header"].index), label
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "path":
                Draft202012Validator(parameter["schema"]).validate(parameter["example"])


def test_parameters_have_an_effect(document):
    for label, operation in operations(document):
        names = {parameter["name"] for parameter in operation.get("parameters", [])}
        if label.endswith("/count"):
            assert not any(map(COUNTS_NOTHING.fullmatch, names)), label
        if "force" in names:
            (force,) = [each for each in operation["parameters"] if each["name"] == "force"]
            assert force["schema"] == {"type": "boolean"}


def test_aliases_are_hidden(document):
    """A second method of a view is no operation, because it would be a second function of a client."""
    ids = [operation["operationId"] for _, operation in operations(document)]
    assert sorted(ids) == sorted(set(ids))
    for path, item in document["paths"].items():
        if path.endswith("/bulk"):
            assert item.keys() == {"post"}, path


WRITTEN = re.compile("(list|get|count|create|update|delete|restore|bulk)([A-Z][a-z]+)+")
ACTIONS = {
    "evaluateCoupons", "confirmRedemption", "releaseRedemption", "rotateApiKey",
    "emptyCouponTrash", "emptyOrderTrash", "rotateWebhookSecret", "pingWebhook", "replayWebhook",
    "redeliverWebhookDelivery", "undoEvent", "mergeCustomer", "claimCustomerOrders",
    "erasePerson", "startImport", "cancelImport",
}  # fmt: skip


def test_operations_are_a_verb_and_a_noun(document):
    ids = {operation["operationId"] for _, operation in operations(document)}
    assert {name for name in ids if not WRITTEN.fullmatch(name)} <= ACTIONS


def test_schemas_have_regular_names(document):
    schemas = document["components"]["schemas"]
    assert [name for name in schemas if re.search("Input|Legacy|Request.|Response.", name)] == []
    named = [
        (name, key)
        for name, schema in schemas.items()
        for key in schema.get("properties", {})
        if key.replace("_", "").lower() == name.lower()
    ]
    assert named == []
    for name, schema in schemas.items():
        if noun := re.fullmatch(r"(\w+?)(Create|Update|Bulk)Request", name):
            (body,) = schema["properties"].values()
            item = body.get("items", body)["$ref"].rpartition("/")[2]
            assert item == noun[1] + (noun[2] if noun[2] != "Bulk" else "BulkItem")
        elif noun := re.fullmatch(r"(\w+?)(Response|List)", name):
            (body, *_) = schema["properties"].values()
            items = body.get("items") or body
            if "$ref" in items and noun[1] != "Error" and "Bulk" not in name:
                assert items["$ref"].rpartition("/")[2] == noun[1]
    assert {"ApiError", "LineItemCreate", "CouponList"} <= schemas.keys()


def test_tags_are_words(document):
    for tag in document["tags"]:
        assert re.fullmatch(r"(API|[A-Z])[a-z]*( [a-z]+)*", tag["name"]), tag


@pytest.fixture
def without_site(monkeypatch, tmp_path):
    """The plain guides, also in a checkout whose site is built."""
    monkeypatch.setattr(guides, "SITE", tmp_path)


@pytest.mark.usefixtures("without_site")
def test_info_says_licence_contact_and_guides(make_app):
    app = make_app(SHOP_CONTACT="ops@shop.example", SHOP_URL_PREFIX="/shop")
    info = app.test_client().get("/shop/openapi.json").get_json()["info"]
    assert info["license"] == {"name": "MIT", "identifier": "MIT"}
    assert info["contact"] == {"name": "Shop Administration API", "email": "ops@shop.example"}
    for topic in ("Authentication", "Errors", "Pages", "Fields", "Retries", "Strictness"):
        assert f"**{topic}.**" in info["description"]
    links = re.findall(r"\[([^]]+)\]\(([^)]+)\)", info["description"])
    assert ("Orders", "/shop/docs/guides/orders.md") in links
    assert links.pop() == ("all guides", "/shop/docs/guides/")
    for title, guide in links:
        response = app.test_client().get(guide)
        assert (response.status_code, response.mimetype) == (200, "text/html"), guide
        assert f"<h1>{title}</h1>" in response.get_data(as_text=True)


@pytest.mark.usefixtures("without_site")
def test_start_page_of_plain_guides_links_every_guide_and_says_how_to_build_the_site(make_app):
    client = make_app(SHOP_URL_PREFIX="/shop").test_client()
    assert client.get("/shop/docs/guides").headers["Location"] == "guides/"
    page = client.get("/shop/docs/guides/")
    text = page.get_data(as_text=True)
    names = {file.name for file in (Path(__file__).parents[2] / "docs").glob("*.md")}
    assert set(re.findall(r'<a href="([^":]+)">', text)) == names - {"index.md"}
    assert "<code>make docs</code>" in text
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_guides_are_markdown_for_language_models(make_app):
    client = make_app(SHOP_URL_PREFIX="/shop").test_client()
    index = client.get("/shop/llms.txt")
    assert index.mimetype == "text/markdown"
    assert index.text.startswith("# Shop Administration API\n\n> The service administers the ")
    links = re.findall(r"^- \[.+]\((.+)\): \w", index.text, re.MULTILINE)
    assert links.pop(0) == "/shop/openapi.json"
    names = {file.stem for file in (Path(__file__).parents[2] / "docs").glob("*.md")}
    assert {Path(link).name for link in links} == {
        f"{name}.html.md" for name in names - {"index", "glossary"}
    }
    for link in links:
        guide = client.get(link)
        assert (guide.status_code, guide.mimetype) == (200, "text/markdown"), link
        assert guide.text.startswith("# ")
    coupons = client.get("/shop/docs/guides/coupons.html.md").text
    assert "](recipes.html.md#" in coupons
    for name in ("missing.html.md", "..%2fREADME.html.md"):
        assert client.get(f"/shop/docs/guides/{name}").status_code == 404


@pytest.mark.slow
@pytest.mark.usefixtures("without_site")
def test_links_of_plain_guides_lead_to_guides(make_app):
    """The site has pages of files outside of the folder, and a page of all fields."""
    client = make_app(SHOP_URL_PREFIX="/shop").test_client()
    names = {file.name for file in (Path(__file__).parents[2] / "docs").glob("*.md")}
    for name in names - {"index.md"}:
        guide = client.get(f"/shop/docs/guides/{name}").get_data(as_text=True)
        links = set(re.findall(r'<a href="([^":#]+)(?:#[^"]*)?">', guide))
        assert links - names == {"./"}, name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("contact", "shown"),
    [
        ("", {"name": "The Shop Administration API authors"}),
        ("https://shop.example/api", {"url": "https://shop.example/api"}),
    ],
)
def test_contact(make_app, contact, shown):
    app = make_app(SHOP_CONTACT=contact)
    info = app.test_client().get("/openapi.json").get_json()["info"]
    assert info["contact"] == {"name": "Shop Administration API"} | shown


def test_every_tag_is_described_in_one_sentence(document):
    for tag in document["tags"]:
        assert re.fullmatch(r"[A-Z][^.]{10,}\.", tag["description"]), tag


def enums(part):
    """All lists of allowed values in a part of a document."""
    if isinstance(part, dict):
        if isinstance(part.get("enum"), list):
            yield part["enum"]
        part = list(part.values())
    for inner in part if isinstance(part, list) else ():
        yield from enums(inner)


def test_allowed_values_differ_in_more_than_letter_case(document):
    """Generators name a constant after each value, and openapi-python-client stops at a second ID."""
    found = list(enums(document))
    assert found
    for values in found:
        assert len({str(value).lower() for value in values}) == len(values), values
