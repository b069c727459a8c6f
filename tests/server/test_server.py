"""The deployed service: gunicorn, sockets and signals (operations.md, Environment)."""

import http.client
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier

import pytest

from qa.cluster.writers import SECONDS, Caller
from tests.server.service import Service
from tests.serving import wait_for

BODY_LIMIT = 100_000


class Server(Service):
    """A service to which a test sends requests on connections of their own."""

    @property
    def headers(self):
        return Caller(self.port, self.key)._headers

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)

    def request(self, method, path, body=None, headers=None, **options):
        """Send all of a request, then read the response: status, headers, JSON."""
        with closing(self.connection()) as connection:
            data = json.dumps(body) if isinstance(body, dict) else body
            connection.request(method, path, data, self.headers | (headers or {}), **options)
            response = connection.getresponse()
            return response.status, response.headers, json.loads(response.read())


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    server = Server(f"sqlite:///{folder}/shop.db", folder)
    server.start(SHOP_MAX_BODY_BYTES=str(BODY_LIMIT))
    with closing(Caller(server.port, server.key)) as caller:
        server.wait_until_ready(caller)
    yield server
    server.close()


def test_server_serves_as_configured(server):
    status, headers, body = server.request("POST", "/coupons", {"coupon": {"code": "first"}})
    assert (status, body["coupon"]["code"]) == (201, "first")
    assert headers["X-Request-Id"]
    assert server.request("GET", "/readyz")[::2] == (200, {"status": "ok"})


def test_server_prints_one_json_line_a_request(server):
    server.request("GET", "/coupons/count", headers={"X-Request-Id": "look-for-me"})
    found = wait_for(
        lambda: [line for line in server.log.read_text().splitlines() if "look-for-me" in line],
        "the line of a request is printed",
    )
    (line,) = map(json.loads, found)
    assert (line["route"], line["status"]) == ("/coupons/count", 200)
    assert all(json.loads(line) for line in server.log.read_text().splitlines())


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ("GET /secret\x1b[31m\x9b HTTP/1.1\r\n\r\n", "Invalid HTTP request line"),
        ("=SECRET / HTTP/1.1\r\n\r\n", "Invalid HTTP method"),
        ("GET / HTTP/1.1\r\nAuthorization Basic secret\r\n\r\n", "Invalid HTTP Header"),
        ("GET / HTTP/1.1\r\n=cmd|'secret': x\r\n\r\n", "Invalid HTTP header name"),
        ("GET / HTTP/1.1\r\nTransfer-Encoding: secret\r\n\r\n", "Unsupported transfer coding"),
        ("GET / HTTP/1.1\r\nExpect: secret\r\n\r\n", "Unable to comply with expectation"),
    ],
)
def test_log_of_a_request_that_gunicorn_rejects_is_json_without_its_content(server, sent, message):
    before = len(server.log.read_text())
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as connection:
        connection.sendall(sent.encode("latin-1"))
        assert connection.recv(100).startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 417 "))
    written = wait_for(lambda: server.log.read_text()[before:], "gunicorn logs the rejection")
    logged, answered = map(json.loads, written.splitlines())
    assert logged.keys() == {"message", "level", "timestamp"}
    assert (logged["message"], logged["level"]) == (
        f"Invalid request from ip=127.0.0.1: {message}",
        "warning",
    )
    assert answered["status"] in {400, 417}
    assert "secret" not in written.lower()


def test_fifty_creates_of_one_code_make_one_coupon(server):
    together = Barrier(50)

    def create(_):
        together.wait(SECONDS)
        status, _, body = server.request("POST", "/coupons", {"coupon": {"code": "only-one"}})
        return status, body.get("errors", [{}])[0].get("code")

    with ThreadPoolExecutor(50) as pool:
        outcomes = sorted(pool.map(create, range(50)))
    taken = (400, "shop_api_coupon_code_already_exists")
    assert outcomes == [(201, None), *[taken] * 49]


def test_fifty_requests_of_one_idempotency_key_are_one(server):
    together = Barrier(50)
    request = "POST", "/coupons", {"coupon": {"code": "retried"}}, {"Idempotency-Key": "k"}

    def create(_):
        together.wait(SECONDS)
        status, headers, body = server.request(*request)
        return status, body, headers.get("Idempotent-Replayed")

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(create, range(50)))
    (first,) = (body for _, body, replayed in answers if not replayed)
    assert sorted(replayed or "" for _, _, replayed in answers) == ["", *["true"] * 49]
    assert all((status, body) == (201, first) for status, body, _ in answers)


TOO_LARGE = (
    413,
    {
        "errors": [
            {
                "code": "shop_api_request_entity_too_large",
                "message": f"The request body is larger than {BODY_LIMIT} bytes.",
            }
        ]
    },
)


def pieces(size):
    """A body of JSON white space in chunks."""
    return (b" " * 50_000 for _ in range(size // 50_000))


# Just over the limit, and far more than the buffers of a socket hold.
@pytest.mark.parametrize("size", [BODY_LIMIT + 50_000, 8_000_000])
@pytest.mark.parametrize("path", ["/coupons", "/coupons/bulk"])
def test_oversized_body_with_content_length_gets_an_error_response(server, path, size):
    status, _, body = server.request("POST", path, b" " * size)
    assert (status, body) == TOO_LARGE


@pytest.mark.parametrize("size", [BODY_LIMIT + 50_000, 8_000_000])
@pytest.mark.parametrize("path", ["/coupons", "/coupons/bulk"])
def test_oversized_chunked_body_gets_an_error_response(server, path, size):
    status, _, body = server.request(
        "POST", path, pieces(size), {"Transfer-Encoding": "chunked"}, encode_chunked=True
    )
    assert (status, body) == TOO_LARGE


@pytest.mark.parametrize(("path", "expected"), [("/coupons", 401), ("/nowhere", 404)])
def test_oversized_body_of_a_rejected_request_gets_an_error_response(server, path, expected):
    status, _, body = server.request("POST", path, b" " * 8_000_000, {"Authorization": ""})
    assert (status, list(body)) == (expected, ["errors"])


def test_chunked_body_within_the_limit_is_read(server):
    body = (part for part in (b'{"coupon": {"code"', b': "in-pieces"}}'))
    status, _, answer = server.request(
        "POST", "/coupons", body, {"Transfer-Encoding": "chunked"}, encode_chunked=True
    )
    assert (status, answer["coupon"]["code"]) == (201, "in-pieces")


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [("/coupons?filter%5Bq%5D=" + "x" * 9000, {}, 414), ("/coupons", {"X-Long": "x" * 9000}, 431)],
    ids=["long line", "long header"],
)
def test_request_that_gunicorn_rejects_gets_the_error_format(server, path, headers, status):
    answered, answer_headers, body = server.request("GET", path, headers=headers)
    assert (answered, answer_headers["Content-Type"]) == (status, "application/json")
    (entry,) = body["errors"]
    assert (entry["code"], entry["param"]) == ("shop_api_invalid_param", "request")
    assert answer_headers["X-Request-Id"]
    assert answer_headers["X-Content-Type-Options"] == "nosniff"
    assert answer_headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/wp-json/wc/v3/orders?include=", "rest_invalid_param"),
        ("/WP-JSON/wc/v3/orders/1?x=", "rest_invalid_param"),
        ("/?rest_route=/wc/v3/orders&include=", "rest_invalid_param"),
        ("/wc-api/v2/orders?filter[in]=", "woocommerce_api_invalid_param"),
        ("/unknown?q=", "shop_api_invalid_param"),
    ],
)
def test_request_that_gunicorn_rejects_gets_the_form_of_its_dialect(server, path, code):
    with closing(server.connection()) as connection:
        connection.request("GET", "/coupons/count", headers=server.headers)
        connection.getresponse().read()
        connection.request("GET", path + "1" * 9000, headers=server.headers)
        response = connection.getresponse()
        body = json.loads(response.read())
    shown = body["errors"][0] if "errors" in body else body
    assert (response.status, shown["code"]) == (414, code)


def test_page_whose_address_gunicorn_rejects_is_a_page(server):
    with closing(server.connection()) as connection:
        connection.request("GET", "/admin/coupons?q=" + "x" * 9000)
        response = connection.getresponse()
        body = response.read()
    assert (response.status, response.headers["Content-Type"]) == (414, "text/html; charset=utf-8")
    assert b"Request Line is too large" in body


@pytest.mark.parametrize(
    "line",
    [
        "GET /wc-api/v3/coupons?consumer_secret=cs_telltale&filter[q]=ä HTTP/1.1",
        "GET /wc-api/v3/coupons?consumer_secret=cs_telltale HTTP/7.7",
        "cs_telltale / HTTP/1.1",
        "GET / HTTP/1.1\r\nAuthorization: cs_telltale\x01",
        "GET / HTTP/1.1\r\nAuthorization cs_telltale",
    ],
)
def test_request_that_gunicorn_rejects_shows_no_secret(server, line):
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as connection:
        connection.sendall(f"{line}\r\n\r\n".encode())
        answer = connection.recv(10_000).decode()
    assert answer.startswith("HTTP/1.1 4")
    assert "telltale" not in answer
    assert "telltale" not in server.log.read_text()


@pytest.mark.parametrize(
    "header",
    [{"X-Forwarded-Proto": "https"}, {"X-Forwarded-Ssl": "on"}, {"SCRIPT_NAME": "/wc-api"}],
)
def test_proxy_headers_are_not_trusted(server, header):
    status, _, body = server.request("GET", "/wc-api/v3", headers=header)
    assert (status, body["store"]["meta"]["ssl_enabled"]) == (200, False)
    assert body["store"]["URL"] == f"http://127.0.0.1:{server.port}"


def test_head_as_an_overriding_method_returns_the_body(server):
    path = "/wc-api/v3/coupons?fields=id&filter%5Bq%5D=nothing&_method=HEAD"
    assert server.request("GET", path)[2] == {"coupons": []}


@pytest.mark.slow
def test_missing_body_gets_an_error_response(server):
    """It does not hold a thread for ever either."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as connection:
        head = "POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nx"
        connection.sendall(head.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 404 ")


def test_connection_is_kept_for_the_next_request(server):
    connection = server.connection()
    connection.connect()
    first = connection.sock
    for _ in range(3):
        connection.request("GET", "/coupons/count", headers=server.headers)
        response = connection.getresponse()
        assert (response.status, list(json.loads(response.read()))) == (200, ["count"])
    assert connection.sock is first
    connection.close()
