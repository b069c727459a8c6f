"""Pages for people who open an address of the API in a browser. Programs get JSON."""

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from tests.api.error_requests import NO_ROUTE
from tests.api.test_index import BROWSER
from tests.api_client import refusal, reply, without_suggestion

pytestmark = pytest.mark.one_database

IN_BROWSER = {"Accept": BROWSER, "X-Request-Id": "the-request"}
NO_KEY = refusal(
    "shop_api_authentication_error", reason="Send an API key by HTTP Basic authentication."
)


class Page(HTMLParser):
    """The texts and links of a page, without its style."""

    def __init__(self, html):
        super().__init__()
        self.texts, self.links, self.tags = [], [], set()
        self.feed(re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL))

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "a":
            self.links.append(dict(attrs)["href"])

    def handle_data(self, data):
        if data.strip():
            self.texts.append(data.strip())


LINKS = [
    "Admin pages, to administer the shop",
    "Documentation, to read and try out",
    "OpenAPI document",
    "Guides",
]


def test_unknown_page_in_a_browser(anonymous):
    response = anonymous.get("/order", headers=IN_BROWSER)
    assert (response.status_code, response.content_type) == (404, "text/html; charset=utf-8")
    page = Page(response.text)
    assert page.texts == [
        "Page not found · Shop Administration API",
        "Shop Administration API",
        "Page not found",
        "No route matches this path. Did you mean /orders?",
        "This is the address of an API for programs. These pages describe it:",
        *LINKS,
        "Status 404, request the-request",
    ]
    assert page.links == ["/admin/", "/docs/", "/openapi.json", "/docs/guides/"]
    statuses = [anonymous.get(link, buffered=True).status_code for link in page.links]
    assert statuses == [303, 200, 200, 200]


@pytest.mark.parametrize("path", ["/orders", "/coupons/1", "/customers?filter[limit]=5"])
def test_page_that_needs_a_key_in_a_browser(anonymous, path):
    response = anonymous.get(path, headers=IN_BROWSER)
    assert (response.status_code, response.mimetype) == (401, "text/html")
    # decisions 17: only scripts get no login prompt. The page is shown when it is cancelled.
    assert response.headers["WWW-Authenticate"] == anonymous.get(path).headers["WWW-Authenticate"]
    page = Page(response.text)
    assert page.texts[2:-1] == [
        "An API key is required",
        NO_KEY[1]["errors"][0]["message"],
        (
            "Programs send the key with each request. To try out the API in the browser, open the "
            "documentation and click Authorize."
        ),
        *LINKS,
    ]


def test_page_is_complete_by_itself(anonymous):
    response = anonymous.get("/nothing", headers=IN_BROWSER)
    page = Page(response.text)
    assert page.tags & {"script", "link", "img", "iframe", "form"} == set()
    assert "url(" not in response.text
    (style,) = re.findall(r"<style>(.*?)</style>", response.text, re.DOTALL)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert response.headers["Content-Security-Policy"] == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Vary"] == "Accept"
    assert anonymous.request("HEAD", "/nothing", headers=IN_BROWSER).get_data() == b""


def test_page_contains_nothing_of_the_request(anonymous):
    path = "/%3Cscript%3Ealert(1)%3C/script%3E?%3Cscript%3E"
    text = anonymous.get(path, headers=IN_BROWSER).text
    assert "alert" not in text
    assert "script" not in text


def test_page_below_a_prefix(client_with):
    client = client_with(SHOP_URL_PREFIX="/shop", SHOP_NAME="Tea & <Coffee>")
    response = client.http.get("/shop/nothing", headers=IN_BROWSER)
    page = Page(response.text)
    paths = ["/shop/admin/", "/shop/docs/", "/shop/openapi.json", "/shop/docs/guides/"]
    assert page.links == paths
    without = client_with(SHOP_ADMIN=False).http.get("/nothing", headers=IN_BROWSER)
    assert Page(without.text).links[0] == "/docs/"
    assert page.texts[:2] == ["Page not found · Tea & <Coffee>", "Tea & <Coffee>"]


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "application/json, text/html"])
def test_programs_get_json(anonymous, accept):
    headers = {"Accept": accept} if accept else {}
    assert without_suggestion(anonymous.get("/nothing", headers=headers)) == NO_ROUTE
    assert reply(anonymous.get("/orders", headers=headers)) == NO_KEY


def test_errors_of_other_requests_are_json_in_a_browser(anonymous, admin):
    """Such as requests of a script, with a body or with credentials, and old programs."""
    assert reply(anonymous.post("/orders", {}, headers=IN_BROWSER)) == NO_KEY
    assert without_suggestion(admin.get("/nothing", headers=IN_BROWSER)) == NO_ROUTE
    legacy = anonymous.get("/wc-api/v3/orders", headers=IN_BROWSER)
    assert (legacy.status_code, legacy.mimetype) == (401, "application/json")


def test_favicon(anonymous):
    response = anonymous.get("/favicon.ico")
    assert (response.status_code, response.mimetype) == (200, "image/vnd.microsoft.icon")
    assert response.headers["Cache-Control"] == "public, max-age=86400"
    icon = response.get_data()
    assert icon[:6] == b"\0\0\1\0\1\0"  # an icon with one picture
    assert icon[22:30] == b"\x89PNG\r\n\x1a\n"
