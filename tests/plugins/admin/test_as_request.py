"""*As a request*: the copied commands run as they are, whatever a record contains."""

import html
import io
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import orjson
import pytest

from app.plugins.admin import forms
from app.plugins.admin.calls import ApiRequest, curl, python

HOSTILE = [
    "'; touch hacked; '",
    '"$(touch hacked)`touch hacked`',
    "a\\'b\"c",
    "{{7*7}}\n%s",
    "né\U0001f375 & #?=+",
]


@pytest.fixture(scope="module")
def receiver():
    """A server that keeps each request: method, path, query and body."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            url = urlsplit(self.path)
            seen.append(
                (self.command, url.path, parse_qs(url.query), orjson.loads(body) if body else None)
            )
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        do_PUT = do_GET  # noqa: N815  # as http.server names it

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", seen
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "text", [" ".join(HOSTILE), *(pytest.param(text, marks=pytest.mark.slow) for text in HOSTILE)]
)
def test_the_copied_commands_send_the_same_request(receiver, tmp_path, text):
    url, seen = receiver
    for sent in (
        ApiRequest("GET", f"{url}/coupons?{urlencode({'q': text})}"),
        ApiRequest("GET", f"{url}/events?{urlencode([('type', text), ('type', 'b'), ('q', '')])}"),
        ApiRequest("PUT", f"{url}/coupons/7", {"coupon": {"description": text, "individual_use": True}}),
    ):  # fmt: skip
        env = os.environ | {"KEY": "ck_x", "SECRET": "cs_x"}
        commands = (["sh", "-c", f"{curl(sent)} -s -o out"], [sys.executable, "-c", python(sent)])
        for command in commands:
            subprocess.run(
                command, cwd=tmp_path, env=env, check=True, capture_output=True, timeout=600
            )
        expected = (
            sent.method, urlsplit(sent.url).path, parse_qs(urlsplit(sent.url).query), sent.body,
        )  # fmt: skip
        assert seen[-2:] == [expected, expected]
    assert not (tmp_path / "hacked").exists()


def test_pages_show_no_secret(admin, browser):
    page = browser.get("/coupons")
    assert "curl -u" in page.text
    assert "$KEY" in page.text
    assert admin.key.consumer_secret not in page.html
    assert admin.key.consumer_key not in page.html


def shown(page):
    """The requests that a page shows: method and path."""
    return [
        tuple(each.split(" ")) for each in re.findall("<code>([A-Z]+ /[^<]*)</code>", page.html)
    ]


def test_each_table_and_each_button_shows_its_request(admin, browser):
    order = {"line_items": [{"name": "Tea", "price": "5", "quantity": 1}]}
    order_id = admin.post("/orders", {"order": order}).json["order"]["id"]
    refund = admin.post(f"/orders/{order_id}/refunds", {"order_refund": {"amount": "1"}})
    refund_id = refund.json["order_refund"]["id"]
    coupon_id = admin.post("/coupons", {"coupon": {"code": "tea"}}).json["coupon"]["id"]
    use = admin.post("/redemptions", {"redemption": {"code": "tea", "reference": "a"}})
    use_id = use.json["redemption"]["id"]
    for name in ("ada", "zoe"):
        admin.post("/customers", {"customer": {"email": f"{name}@search.example"}})
    hook = {"name": "ERP", "topics": ["order.*"], "delivery_url": "https://erp.example/"}
    hook_id = admin.post("/webhooks", {"webhook": hook}).json["webhook"]["id"]
    key_id = admin.key.key_id
    pages = {
        "/": [("GET", "/reports/coupons"), ("GET", "/orders"), ("GET", "/reports/sales")],
        "/search?q=search": [("GET", "/customers")],
        "/coupons": [
            ("GET", "/coupons"), ("DELETE", f"/coupons/{coupon_id}"),
            ("PUT", f"/coupons/{coupon_id}"), ("PUT", f"/coupons/{coupon_id}"),
            ("PUT", f"/coupons/{coupon_id}"),
        ],
        f"/coupons/{coupon_id}": [
            ("GET", "/redemptions"), ("POST", f"/redemptions/{use_id}/confirm"),
            ("POST", f"/redemptions/{use_id}/release"), ("GET", f"/coupons/{coupon_id}"),
            ("PUT", f"/coupons/{coupon_id}"),
            ("DELETE", f"/coupons/{coupon_id}"), ("DELETE", f"/coupons/{coupon_id}"),
        ],
        "/orders": [
            ("GET", "/orders"), ("PUT", f"/orders/{order_id}"), ("DELETE", f"/orders/{order_id}"),
        ],
        f"/orders/{order_id}": [
            ("GET", f"/orders/{order_id}/refunds"),
            ("DELETE", f"/orders/{order_id}/refunds/{refund_id}"), ("GET", f"/orders/{order_id}"),
            ("PUT", f"/orders/{order_id}"), ("DELETE", f"/orders/{order_id}"),
            ("DELETE", f"/orders/{order_id}"),
        ],
        f"/webhooks/{hook_id}": [
            ("GET", f"/webhooks/{hook_id}/deliveries"), ("GET", f"/webhooks/{hook_id}"),
            ("PUT", f"/webhooks/{hook_id}"), ("POST", f"/webhooks/{hook_id}/ping"),
            ("POST", f"/webhooks/{hook_id}/rotate-secret"), ("DELETE", f"/webhooks/{hook_id}"),
        ],
        f"/keys/{key_id}": [
            ("GET", f"/keys/{key_id}"), ("POST", f"/keys/{key_id}/rotate"),
            ("DELETE", f"/keys/{key_id}"),
        ],
    }  # fmt: skip
    assert {path: shown(browser.get(path)) for path in pages} == pages
    page = browser.get(f"/coupons/{coupon_id}")
    assert f"http://localhost/coupons/{coupon_id}?force=true" in page.html
    assert '{"order": {"status": "pending"}}' in html.unescape(browser.get("/orders").html)
    assert '{"webhook": {"status": "paused"}}' in html.unescape(
        browser.get(f"/webhooks/{hook_id}").html
    )
    browser.post(f"/coupons/{coupon_id}/trash")
    trash = [("GET", "/coupons/trash"), ("POST", f"/coupons/{coupon_id}/restore")]
    assert shown(browser.get("/coupons?state=trash")) == trash


def test_an_action_on_several_records_shows_its_request(admin, browser):
    ids = [admin.post("/coupons", {"coupon": {"code": code}}).json["coupon"]["id"] for code in "ab"]
    chosen = {"action": "expiry", "expiry_date": "2030-01-31", "id": ids}
    page = browser.post("/coupons/selected", chosen)
    assert shown(page) == [("PUT", f"/coupons/{ids[0]}")]
    assert '{"coupon": {"expiry_date": "2030-01-31"}}' in html.unescape(page.html)
    assert browser.post("/coupons/selected", chosen | {"expiry_date": "soon"}).status == 400
    assert (
        browser.post("/orders/selected", {"action": "status", "status": "x", "id": 1}).status == 400
    )


def test_a_request_of_a_form_with_errors_is_tried_by_no_form(browser, monkeypatch):
    """As a request sends nothing, so it shows only the errors of the form itself."""
    tried = []
    monkeypatch.setattr(forms, "try_in_transaction", tried.append)
    for path, values in {
        "/invitations/new": {"login": "", "expires_at": "2020-01-01T00:00"},
        "/coupons/new": {"code": "", "amount": "x"},
    }.items():
        page = browser.submit(path, "_form", **values, _show="request")
        assert page.status == 400, path
        assert "Fill in this field." in page.text, path
        assert tried == [], path


def test_an_invitation_shows_the_key_that_the_api_would_create(admin, browser):
    values = {"login": "mia", "role": "shop_manager", "permission": "read", "_show": "request"}
    page = browser.submit("/invitations/new", "login", **values)
    assert shown(page) == [("POST", "/keys")]
    found = re.search(r"-d &#39;(.*?)&#39;<", page.html, re.DOTALL)
    key = orjson.loads(html.unescape(found[1]))["key"]
    assert (key["username"], key["role"], key["permission"]) == ("mia", "shop_manager", "read")
    assert admin.post("/keys", {"key": key}).status_code == 201


def test_an_upload_shows_the_request_that_does_the_same(app, admin, browser):
    form = {"kind": "coupons", "on_conflict": "update", "_show": "request",
            "file": (io.BytesIO(b"code\nnew\n"), "my coupons.csv")}  # fmt: skip
    sent = browser.post("/data/upload", form, content_type="multipart/form-data")
    page = browser.get(sent.location.removeprefix("/admin"))
    assert '<details class="request" open>' in page.html
    assert shown(page) == [("POST", "/imports")]
    command = html.unescape(page.html)
    assert "--data-binary '@my coupons.csv'" in command
    assert "Content-Type: text/csv" in command
    query = "kind=coupons&on_conflict=update&name=my+coupons.csv"
    assert query in command
    response = admin.request(
        "POST", f"/imports?{query}", data=b"code\nnew\n", content_type="text/csv"
    )
    assert response.status_code == 201
