"""The service as it is deployed: gunicorn, real sockets, signals (operations.md, Environment)."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Barrier

import pytest
from serving import new_shop

ROOT = Path(__file__).parent.parent
SECRET = "a secret for the server tests"
BODY_LIMIT = 100_000
SECONDS = 30  # nothing here takes as long; what does has failed


def until(condition, what):
    """Return the first true answer of ``condition``, asked again and again for SECONDS."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    pytest.fail(f"waited in vain: {what}")


class Server:
    """A gunicorn process of this test's own."""

    def __init__(self, process, port, key, log):
        self.process = process
        self.port = port
        self.log = log
        pair = f"{key.consumer_key}:{key.consumer_secret}"
        self.headers = {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}

    def connection(self, seconds=SECONDS):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)

    def request(self, method, path, body=None, headers=None, seconds=SECONDS, **options):
        """Send all of a request, then read the answer: status, headers, JSON."""
        connection = self.connection(seconds)
        try:
            data = json.dumps(body) if isinstance(body, dict) else body
            connection.request(method, path, data, self.headers | (headers or {}), **options)
            response = connection.getresponse()
            return response.status, response.headers, json.loads(response.read())
        finally:
            connection.close()

    def answers(self):
        """Whether a request is answered soon; a connection that is dropped is no answer."""
        try:
            return self.request("GET", "/healthz", seconds=0.5)[0] == 200
        except OSError:
            return False

    def lives(self):
        if self.process.poll() is not None:
            pytest.fail(f"gunicorn ended with {self.process.returncode}:\n{self.log.read_text()}")
        return self.answers()


@contextmanager
def serving(folder, workers=2):
    url = f"sqlite:///{folder}/shop.db"
    key = new_shop({"DATABASE_URL": url, "SECRET_KEY": SECRET, "INSTANCE_PATH": str(folder)})
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    given = {
        "DATABASE_URL": url,
        "SECRET_KEY": SECRET,
        "HOST": "127.0.0.1",
        "PORT": str(port),
        "WEB_CONCURRENCY": str(workers),
        "WEB_THREADS": "4",
        "SHOP_MAX_BODY_BYTES": str(BODY_LIMIT),
        "SHOP_AUTH_FAILURES_PER_MINUTE": "20",
    }
    log = folder / "gunicorn.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", "wsgi:app"],
            cwd=ROOT,
            env=os.environ | given,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that it can be killed with its workers
        )
    server = Server(process, port, key, log)
    try:
        until(server.lives, "gunicorn serves")
        yield server
    finally:
        process.terminate()
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(SECONDS)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running


def test_server_serves_as_configured(server):
    status, headers, body = server.request("POST", "/coupons", {"coupon": {"code": "first"}})
    assert (status, body["coupon"]["code"]) == (201, "first")
    assert headers["X-Request-Id"]
    assert server.request("GET", "/readyz")[::2] == (200, {"status": "ok"})


def test_server_prints_one_json_line_a_request(server):
    server.request("GET", "/coupons/count", headers={"X-Request-Id": "look-for-me"})
    found = until(
        lambda: [line for line in server.log.read_text().splitlines() if "look-for-me" in line],
        "the line of a request is printed",
    )
    (line,) = map(json.loads, found)
    assert (line["route"], line["status"]) == ("/coupons/count", 200)
    assert all(json.loads(line) for line in server.log.read_text().splitlines())


@pytest.mark.parametrize(
    ("sent", "event"),
    [
        ("GET /secret\x1b[31m\x9b HTTP/1.1\r\n\r\n", "Invalid HTTP request line"),
        ("=SECRET / HTTP/1.1\r\n\r\n", "Invalid HTTP method"),
        ("GET / HTTP/1.1\r\nAuthorization Basic secret\r\n\r\n", "Invalid HTTP Header"),
        ("GET / HTTP/1.1\r\n=cmd|'secret': x\r\n\r\n", "Invalid HTTP header name"),
        ("GET / HTTP/1.1\r\nTransfer-Encoding: secret\r\n\r\n", "Unsupported transfer coding"),
    ],
)
def test_log_of_a_request_that_gunicorn_refuses_is_json_and_shows_nothing_of_it(
    server, sent, event
):
    before = len(server.log.read_text())
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as connection:
        connection.sendall(sent.encode("latin-1"))
        assert connection.recv(100).startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 "))
    line = until(lambda: server.log.read_text()[before:], "gunicorn logs the refusal")
    assert (json.loads(line)["event"], json.loads(line)["level"]) == (
        f"Invalid request from ip=127.0.0.1: {event}",
        "warning",
    )
    assert "secret" not in line.lower()


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
                "message": f"The body is larger than {BODY_LIMIT} bytes.",
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
def test_oversized_body_with_content_length_gets_a_readable_answer(server, path, size):
    status, _, body = server.request("POST", path, b" " * size)
    assert (status, body) == TOO_LARGE


@pytest.mark.parametrize("size", [BODY_LIMIT + 50_000, 8_000_000])
@pytest.mark.parametrize("path", ["/coupons", "/coupons/bulk"])
def test_oversized_chunked_body_gets_a_readable_answer(server, path, size):
    status, _, body = server.request(
        "POST", path, pieces(size), {"Transfer-Encoding": "chunked"}, encode_chunked=True
    )
    assert (status, body) == TOO_LARGE


@pytest.mark.parametrize(("path", "expected"), [("/coupons", 401), ("/nowhere", 404)])
def test_oversized_body_of_a_refused_request_gets_a_readable_answer(server, path, expected):
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
    [
        ("/coupons?filter%5Bq%5D=" + "x" * 9000, {}, 414),
        ("/coupons", {"X-Long": "x" * 9000}, 431),
    ],
    ids=["long line", "long header"],
)
def test_request_that_gunicorn_refuses_has_the_one_envelope(server, path, headers, status):
    answered, answer_headers, body = server.request("GET", path, headers=headers)
    assert (answered, answer_headers["Content-Type"]) == (status, "application/json")
    (entry,) = body["errors"]
    assert (entry["code"], entry["param"]) == ("shop_api_invalid_param", "request")
    assert "hidden" not in entry["message"]
    assert answer_headers["X-Request-Id"]
    assert answer_headers["X-Content-Type-Options"] == "nosniff"
    assert answer_headers["Cache-Control"] == "no-store"


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
def test_request_that_gunicorn_refuses_shows_no_secret(server, line):
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
def test_nobody_is_believed_to_be_a_proxy(server, header):
    status, _, body = server.request("GET", "/wc-api/v3", headers=header)
    assert (status, body["store"]["meta"]["ssl_enabled"]) == (200, False)
    assert body["store"]["URL"] == f"http://127.0.0.1:{server.port}/"


def test_head_in_place_of_another_method_leaves_no_body_out(server):
    path = "/wc-api/v3/coupons?fields=id&filter%5Bq%5D=nothing&_method=HEAD"
    assert server.request("GET", path)[2] == {"coupons": []}


def test_sender_of_a_body_that_never_comes_gets_its_answer(server):
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


# --- signals ---


def begin(server, body):
    """Begin a request whose body is still to come; return when a worker has read its head."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS)
    head = [
        "POST /coupons HTTP/1.1",
        "Host: shop.example",
        f"Authorization: {server.headers['Authorization']}",
        f"Content-Length: {len(body)}",
        "Expect: 100-continue",
        "Connection: close",
    ]
    connection.sendall("\r\n".join([*head, "", ""]).encode())
    assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
    return connection


def finish(connection, body):
    """Send the body; return the status and the code of the coupon that was made."""
    connection.sendall(body)
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response.status, json.loads(response.read())["coupon"]["code"]


def coupon(code):
    return json.dumps({"coupon": {"code": code}}).encode()


WRONG = {"Authorization": "Basic eDp5"}


def exhaust(server):
    """Send wrong credentials until each worker answers 429: it counts in its own memory."""
    seen = []

    def send():
        seen.append(server.request("GET", "/coupons", headers=WRONG)[0])
        return seen[-20:] == [429] * 20

    until(send, "both workers have had enough of wrong credentials")


def test_hup_replaces_the_workers_and_lets_a_request_in_flight_finish(server):
    exhaust(server)
    body = coupon("hup")
    with closing(begin(server, body)) as connection:
        server.process.send_signal(signal.SIGHUP)

        def refused_anew():
            try:
                return server.request("GET", "/coupons", headers=WRONG, seconds=1)[0] == 401
            except OSError:
                return False

        until(refused_anew, "a new worker, with a memory of its own, serves")
        assert finish(connection, body) == (201, "hup")
    until(server.lives, "the server serves")


def test_hup_loses_no_request_meanwhile(server):
    # A reload is no outage: also while an old worker still finishes a request, each new one is
    # answered.
    exhaust(server)
    body = coupon("hup-again")
    with closing(begin(server, body)) as connection:
        server.process.send_signal(signal.SIGHUP)
        until(
            lambda: server.request("GET", "/coupons", headers=WRONG, seconds=3)[0] == 401,
            "a new worker serves",
        )
        assert {server.request("GET", "/healthz", seconds=3)[0] for _ in range(30)} == {200}
        assert finish(connection, body) == (201, "hup-again")


def test_term_lets_a_request_in_flight_finish(tmp_path):
    body = coupon("term")
    with serving(tmp_path) as server, closing(begin(server, body)) as connection:
        server.process.send_signal(signal.SIGTERM)
        until(lambda: not server.answers(), "a stopping server takes nothing new")
        assert server.process.poll() is None
        assert finish(connection, body) == (201, "term")
        assert server.process.wait(SECONDS) == 0
