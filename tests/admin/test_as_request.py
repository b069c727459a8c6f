"""*As a request*: the copied commands run as they are, whatever a record contains."""

import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import orjson
import pytest

from app.admin.calls import ApiRequest, curl, python

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


@pytest.mark.parametrize("text", HOSTILE)
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
                command, cwd=tmp_path, env=env, check=True, capture_output=True, timeout=60
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
