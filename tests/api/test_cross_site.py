"""Pages of other sites cannot use a key that the browser has stored (decisions 17)."""

import json
import os
import subprocess
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.api_client import Client, codes
from tests.npm import install, needs_node
from tests.openapi.test_swagger_ui import BROWSER_TEST, browser
from tests.serving import running_service

pytestmark = pytest.mark.one_database

HERE = "http://localhost"
EVIL = "https://evil.example"
FRIEND = "https://admin.example"
REFUSED = (403, "shop_api_cross_site_request")
CHANGES = [
    ("POST", "/coupons", {"coupon": {"code": "summer"}}),
    ("POST", "/customers", {"customer": {"email": "ann@example.com"}}),
    ("PUT", "/coupons/{id}", {"coupon": {"amount": 5}}),
    ("DELETE", "/coupons/{id}", None),
    ("POST", "/coupons/bulk", {"coupons": [{"code": "summer"}]}),
]
FROM_ELSEWHERE = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": EVIL},
    {"Origin": "null"},
    {"Origin": "http://localhost:81"},
    {"Origin": "http://localhost.evil.example"},
    {"Origin": ""},
    {"Origin": EVIL, "Sec-Fetch-Site": "cross-site"},
    {"Origin": EVIL, "Sec-Fetch-Site": "same-origin"},
    {"Origin": HERE, "Sec-Fetch-Site": "same-site"},
]
FROM_HERE = [
    {},
    {"Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "none"},
    {"Origin": HERE},
    {"Origin": "https://localhost"},  # TLS that ends at a proxy
    {"Origin": HERE, "Sec-Fetch-Site": "same-origin"},
    {"Origin": "http://shop.example:8000", "Host": "Shop.example:8000"},
    {"Origin": "https://shop.example", "Host": "shop.example:443"},
    {"Origin": "http://shop.example", "Host": "shop.example:80"},
]


@pytest.fixture
def state(admin):
    """Return a function: everything that a change would change."""
    paths = "/coupons", "/customers?filter[role]=all"
    return lambda: [admin.get(path).get_json() for path in paths]


@pytest.mark.sample(15)
@pytest.mark.parametrize("headers", FROM_ELSEWHERE, ids=str)
@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_change_from_another_site(admin, make_coupon, state, method, path, body, headers):
    path = path.format(id=make_coupon()["id"])
    before = state()
    assert codes(admin.request(method, path, json=body, headers=headers)) == REFUSED
    assert state() == before


@pytest.mark.sample(15)
@pytest.mark.parametrize("headers", FROM_HERE, ids=str)
@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_change_from_the_same_site(admin, make_coupon, method, path, body, headers):
    path = path.format(id=make_coupon()["id"])
    assert admin.request(method, path, json=body, headers=headers).status_code in {200, 201}


@pytest.mark.sample(3)
@pytest.mark.parametrize("version", ["v2", "v3"])
@pytest.mark.parametrize("headers", FROM_ELSEWHERE, ids=str)
def test_overridden_method_from_another_site(admin, make_coupon, state, headers, version):
    path = f"/wc-api/{version}/coupons/{make_coupon()['id']}"
    before = state()
    refused = (403, "woocommerce_api_cross_site_request")
    assert codes(admin.get(path, {"_method": "DELETE"}, headers=headers)) == refused
    override = headers | {"X-HTTP-Method-Override": "DELETE"}
    assert codes(admin.get(path, headers=override)) == refused
    assert codes(admin.post(path, {"coupon": {"amount": 5}}, headers=headers)) == refused
    assert state() == before


@pytest.mark.sample(10)
@pytest.mark.parametrize("path", ["/coupons", "/wc-api/v2/coupons", "/wc-api/v3/coupons"])
@pytest.mark.parametrize("headers", FROM_ELSEWHERE, ids=str)
def test_reads_are_not_affected(admin, headers, path):
    assert admin.get(path, headers=headers).status_code == 200
    assert admin.request("HEAD", path, headers=headers).status_code == 200


def test_check_precedes_credentials_and_follows_routing(anonymous):
    headers = {"Sec-Fetch-Site": "cross-site"}
    assert codes(anonymous.post("/coupons", headers=headers)) == REFUSED
    assert codes(anonymous.post("/nowhere", headers=headers)) == (404, "shop_api_no_route")
    assert codes(anonymous.delete("/coupons", headers=headers))[0] == 405


def test_origins_of_the_setting_may_change(app_with, admin):
    client = Client(app_with(SHOP_CORS_ORIGINS=FRIEND), admin.key)
    friend = {"Origin": FRIEND, "Sec-Fetch-Site": "cross-site"}
    assert client.post("/coupons", {"coupon": {"code": "a"}}, headers=friend).status_code == 201
    for origin in (EVIL, f"{FRIEND}.evil.example", f"{FRIEND}:444", "http://admin.example"):
        headers = friend | {"Origin": origin}
        assert codes(client.post("/coupons", {"coupon": {"code": "b"}}, headers=headers)) == REFUSED
    headers = {"Sec-Fetch-Site": "cross-site"}
    assert codes(client.post("/coupons", {"coupon": {"code": "b"}}, headers=headers)) == REFUSED


def test_star_allows_what_a_form_cannot_send(app_with, admin):
    client = Client(app_with(SHOP_CORS_ORIGINS="*"), admin.key)
    headers = {"Origin": EVIL, "Sec-Fetch-Site": "cross-site"}
    body = json.dumps({"coupon": {"code": "a"}})
    for kind in ("text/plain", "TEXT/PLAIN; charset=utf-8", "multipart/form-data; boundary=a", ""):
        given = headers | ({"Content-Type": kind} if kind else {})
        assert codes(client.request("POST", "/coupons", data=body, headers=given)) == REFUSED
    created = client.post("/coupons", json.loads(body), headers=headers)
    assert created.status_code == 201
    path = f"/wc-api/v3/coupons/{created.get_json()['coupon']['id']}"
    refused = (403, "woocommerce_api_cross_site_request")
    assert codes(client.get(path, {"_method": "DELETE"}, headers=headers)) == refused
    assert client.delete(path, headers=headers).status_code == 202


# --- in a browser ---

PAGE = """<!doctype html><title>elsewhere</title>
<form id="create" method="post" enctype="text/plain" action="{url}/customers">
<input name='{{"customer": {{"email": "evil@example.com"}}, "a": "' value='"}}'></form>
<a id="remove" href="{url}/wc-api/v3/coupons/1?_method=DELETE">remove</a>"""


@contextmanager
def another_site(folder):
    """Serve a folder from another site: a name of its own, which the browser resolves."""
    handler = partial(SimpleHTTPRequestHandler, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://evil.localhost:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow
@needs_node
@pytest.mark.skipif(
    not browser,
    reason="no Chromium installed (or named by BROWSER_PATH): other sites are not tested in one",
)
def test_page_of_another_site_in_a_browser(tmp_path):
    install(BROWSER_TEST)
    pages = tmp_path / "pages"
    pages.mkdir()
    with running_service(tmp_path) as service, another_site(pages) as elsewhere:
        (pages / "index.html").write_text(PAGE.format(url=service.url))
        done = subprocess.run(
            ["node", "cross_site.js"],
            cwd=BROWSER_TEST,
            env=os.environ
            | {
                "SHOP_URL": service.url,
                "SHOP_CONSUMER_KEY": service.consumer_key,
                "SHOP_CONSUMER_SECRET": service.consumer_secret,
                "ELSEWHERE": elsewhere,
                "BROWSER": browser,
                "PROFILE": str(tmp_path / "profile"),
            },
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    # The browser remembers the key: its own page of the service creates a coupon by it.
    assert seen["here"] == [201, 200]
    assert seen["create"] == REFUSED[0]
    assert seen["remove"] == REFUSED[0]
    assert seen["fetch"] == "TypeError"
    assert seen["after"] == {"coupons": 1, "customers": 0}
    assert seen["script"] == [401, None]
