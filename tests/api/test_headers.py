"""Response headers for browsers and caches, and CORS."""

import re
from base64 import b64encode
from hashlib import sha256

import pytest

from app.api.openapi import document as openapi
from tests.api_client import Client, codes

pytestmark = pytest.mark.one_database

ORIGIN = "https://admin.example"
TOTALS = [
    f"X-{dialect}-{name}"
    for dialect in ("WC", "WP")
    for name in ("Total", "TotalPages", "Total-Complete")
]
EXPOSED = ", ".join(sorted([*openapi.HEADERS, *TOTALS, "Preference-Applied"]))


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/coupons", 200),
        ("HEAD", "/coupons", 200),
        ("POST", "/coupons", 400),
        ("GET", "/customers?filter[limit]=-1", 200),
        ("GET", "/coupons/1", 404),
        ("GET", "/nowhere", 404),
        ("DELETE", "/coupons", 405),
        ("OPTIONS", "/coupons", 200),
        ("GET", "/", 200),
        ("GET", "/healthz", 200),
        ("GET", "/docs/", 200),
    ],
)
def test_answer_is_not_guessed_and_not_kept(admin, method, path, status):
    response = admin.request(method, path)
    assert response.status_code == status
    assert response.headers.getlist("X-Content-Type-Options") == ["nosniff"]
    assert response.headers.getlist("Cache-Control") == ["no-store"]


def test_answer_without_credentials_is_not_kept(anonymous):
    response = anonymous.get("/coupons")
    assert (response.status_code, response.headers["Cache-Control"]) == (401, "no-store")


@pytest.mark.parametrize("path", ["/docs/swagger-ui.css", "/openapi.json"])
def test_file_of_the_documentation_may_be_kept_while_it_is_the_same(anonymous, path):
    with anonymous.get(path) as response:
        assert response.headers["Cache-Control"] == "no-cache"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
    unchanged = {"If-None-Match": response.headers["ETag"]}
    with anonymous.get(path, headers=unchanged) as response:
        assert response.status_code == 304


# --- the documentation's page ---


def test_page_of_the_documentation_runs_its_own_scripts_only(anonymous):
    response = anonymous.get("/docs/")
    policy = dict(
        part.split(" ", 1) for part in response.headers["Content-Security-Policy"].split("; ")
    )
    (script,) = re.findall(r"<script>(.*?)</script>", response.get_data(as_text=True), re.DOTALL)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == f"'self' 'sha256-{digest}'"
    assert policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"


def test_page_of_the_documentation_repeats_nothing_of_the_request(anonymous):
    # Its policy allows the script that is on it: nobody else may have written that.
    plain = anonymous.get("/docs/").get_data()
    sent = anonymous.get(
        "/docs/index.html?a=</script><script>alert(1)</script>", headers={"Host": "evil.example"}
    )
    assert sent.get_data() == plain


@pytest.mark.parametrize("path", ["/", "/admin", "/docs/guides"])
def test_redirects_do_not_name_the_host_of_the_request(anonymous, path):
    headers = {"Host": "evil.example", "Accept": "text/html"}
    with anonymous.get(path, headers=headers) as response:
        assert "evil.example" not in str(response.headers)
        assert "evil.example" not in response.get_data(as_text=True)


def test_links_to_another_host_are_not_cached(admin):
    response = admin.get("/", headers={"Host": "evil.example"})
    assert response.get_json()["links"]["coupons"] == "http://evil.example/coupons"
    assert response.headers["Cache-Control"] == "no-store"


def test_only_the_documentation_has_a_policy(admin):
    for path in ("/coupons", "/", "/docs/swagger-ui.css"):
        with admin.get(path) as response:
            assert "Content-Security-Policy" not in response.headers


# --- other origins ---


def allowed(response):
    """The CORS headers of a response."""
    return {
        name.removeprefix("Access-Control-"): value
        for name, value in response.headers
        if name.startswith("Access-Control-")
    }


HEADERS_OF_REQUESTS = [
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
    "If-Match",
    "If-None-Match",
    "X-Request-Id",
    "traceparent",
]


def preflight(client, path="/coupons", method="POST", origin=ORIGIN, **headers):
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    return client.request("OPTIONS", path, headers=asked | headers)


def test_other_origins_are_off_by_default(admin, anonymous):
    assert allowed(admin.get("/coupons", headers={"Origin": ORIGIN})) == {}
    response = preflight(anonymous)
    assert codes(response) == (401, "shop_api_authentication_error")
    assert allowed(response) == {}


@pytest.fixture
def open_app(app_with):
    return app_with(SHOP_CORS_ORIGINS=f"{ORIGIN},https://other.example")


def test_preflight_needs_no_credentials(open_app):
    response = preflight(Client(open_app))
    assert response.status_code == 200
    assert allowed(response) == {
        "Allow-Origin": ORIGIN,
        "Allow-Headers": "authorization, content-type",
        "Allow-Methods": "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT",
        "Expose-Headers": EXPOSED,
        "Max-Age": "600",
    }
    assert "Origin" in response.headers["Vary"]


@pytest.mark.parametrize("name", [name.lower() for name in HEADERS_OF_REQUESTS])
def test_preflight_allows_every_header_that_the_service_reads(open_app, name):
    asked = {"Access-Control-Request-Headers": name}
    assert allowed(preflight(Client(open_app), **asked))["Allow-Headers"] == name


def test_preflight_of_no_route_has_none(open_app):
    response = preflight(Client(open_app), "/nowhere")
    assert codes(response) == (404, "shop_api_no_route")


def test_options_that_is_no_preflight_still_needs_credentials(open_app):
    response = Client(open_app).request("OPTIONS", "/coupons", headers={"Origin": ORIGIN})
    assert codes(response) == (401, "shop_api_authentication_error")


def test_preflight_says_nothing_of_other_origins(open_app):
    assert allowed(preflight(Client(open_app), origin="https://evil.example")) == {}
    assert allowed(preflight(Client(open_app), origin="https://admin.example.evil.example")) == {}
    assert allowed(preflight(Client(open_app), origin="null")) == {}


@pytest.mark.parametrize("path", ["/orders", "/wc-api/v3/orders", "/wp-json/wc/v3/orders"])
def test_page_of_another_site_can_read_the_totals(open_app, admin, path):
    pair = (admin.key.consumer_key, admin.key.consumer_secret)
    response = open_app.test_client().get(path, auth=pair, headers={"Origin": ORIGIN})
    totals = {name for name in dict(response.headers) if "Total" in name}
    exposed = response.headers["Access-Control-Expose-Headers"].split(", ")
    assert len(totals) == 2
    assert totals <= {*exposed}


def test_answers_and_errors_are_open_to_an_origin_of_the_setting(open_app, admin):
    client = Client(open_app, admin.key)
    mine = {"Allow-Origin": ORIGIN, "Expose-Headers": EXPOSED}
    headers = {"Origin": ORIGIN}
    assert allowed(client.get("/coupons", headers=headers)) == mine
    assert allowed(client.get("/coupons/1", headers=headers)) == mine
    assert allowed(client.get("/nowhere", headers=headers)) == mine
    assert allowed(Client(open_app).get("/coupons", headers=headers)) == mine
    assert allowed(client.get("/coupons", headers={"Origin": "https://evil.example"})) == {}
    assert allowed(client.get("/coupons")) == {}


def test_star_is_every_origin_and_never_with_cookies(app_with, admin):
    client = Client(app_with(SHOP_CORS_ORIGINS="*"), admin.key)
    found = allowed(client.get("/coupons", headers={"Origin": "https://any.example"}))
    assert found["Allow-Origin"] in {"*", "https://any.example"}
    assert "Allow-Credentials" not in found
