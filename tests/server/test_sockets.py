"""Malicious clients at the socket do not affect other clients."""

import gzip
import json
import os
import re
import resource
import socket
import time
from contextlib import ExitStack, closing, contextmanager, suppress

import psutil
import pytest

from app.config import VERSION
from qa.cluster.writers import SECONDS, Caller
from tests.server.service import Service
from tests.serving import wait_for

BODY = json.dumps({"coupon": {"code": "never"}}).encode()
TIMEOUT = 4  # seconds of the service that the tests use; the default would take too long
# A request that takes less has not waited for the timeout of another client. It takes some
# milliseconds, and on a loaded machine up to a second.
UNDELAYED = TIMEOUT - 1
# Other programs can take the CPU for seconds, but not in each attempt.
ATTEMPTS = range(5)
CONFIGURATION = """
exec(open("gunicorn.conf.py").read())
from server import client_socket
client_socket.CLIENT_TIMEOUT = {seconds}
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sockets")
    configuration = folder / "impatient.conf.py"
    configuration.write_text(CONFIGURATION.format(seconds=float(TIMEOUT)))
    service = Service(f"sqlite:///{folder}/shop.db", folder)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, limits[1]))  # as most systems have it
    try:
        service.start(GUNICORN_CMD_ARGS=f"--config {configuration}")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    caller = Caller(service.port, service.key)
    service.wait_until_ready(caller)
    caller.close()
    yield service
    service.close()
    assert "Traceback" not in service.log.read_text()


def connect(service):
    return socket.create_connection(("127.0.0.1", service.port), timeout=SECONDS)


def answer(service, raw):
    """The status and the JSON of the answer to raw bytes; None when the connection is closed."""
    with closing(connect(service)) as connection:
        connection.sendall(raw)
        with suppress(OSError):  # cut off already
            connection.shutdown(socket.SHUT_WR)
        received = b""
        while piece := connection.recv(65536):
            received += piece
    if not received:
        return None
    head, _, body = received.partition(b"\r\n\r\n")
    assert b"X-Request-Id: " in head
    assert f"X-Shop-Version: {VERSION}".encode() in head
    return int(re.match(rb"HTTP/1.1 (\d+)", head)[1]), json.loads(body)


def request(service, *headers, method="POST", path="/coupons", body=BODY, length=True):
    lines = [f"{method} {path} HTTP/1.1", "Host: shop.example", "Connection: close"]
    lines.append(f"Authorization: {Caller(service.port, service.key)._headers['Authorization']}")
    lines += [f"Content-Length: {len(body)}"] if length else []
    return "\r\n".join([*lines, *headers, "", ""]).encode("latin-1") + body


def assert_others_are_served(service):
    """Check that each worker responds, with more new connections than it has threads."""
    for _ in range(8):
        caller = Caller(service.port, service.key)
        assert caller.send("GET", "/coupons/count") == (200, {"count": 0})
        caller.close()


MALFORMED = {
    "no http": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100,
    "empty lines": b"\r\n" * 5000,
    "no version": b"GET /coupons\r\n\r\n",
    "another version": b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
    "method of letters beyond ASCII": b"G\xc3\x89T / HTTP/1.1\r\nHost: x\r\n\r\n",
    "blanks in the path": b"GET /a b c HTTP/1.1\r\nHost: x\r\n\r\n",
    "NUL in a header": b"GET / HTTP/1.1\r\nHost: x\r\nX-A: a\0b\r\n\r\n",
    "folded header": b"GET / HTTP/1.1\r\nHost: x\r\nX-A: a\r\n b\r\n\r\n",
    "blank before the colon": b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: 1\r\n" % n for n in range(5000)) + b"\r\n",
    "long header": b"GET / HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 100_000 + b"\r\n\r\n",
    "long line": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "header without an end": b"GET / HTTP/1.1\r\nX-A: " + b"a" * 1_000_000,
}  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("path", ["/coupons", "/wc-api/v3/coupons"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("", ""),
        (
            'OAuth oauth_consumer_key="a", oauth_nonce="b"',
            'oauth_signature="c", oauth_timestamp="1"',
        ),
        ("Bearer a=b", 'c="d"'),
    ],
    ids=["empty", "split parameters", "parameters only"],
)
def test_authorization_header_is_sent_once(service, path, first, second):
    # Joined with a comma, these are a single header.
    lines = [f"GET {path} HTTP/1.1", "Host: shop.example", "Connection: close"]
    lines += [f"Authorization: {first}", f"authorization: {second}", "", ""]
    status, body = answer(service, "\r\n".join(lines).encode())
    (entry,) = body["errors"]
    assert (status, entry["param"]) == (400, "Authorization")
    assert entry["code"].endswith("_api_invalid_param")


@pytest.mark.sample(3)
@pytest.mark.parametrize("path", ["/coupons", "/wc-api/v3/coupons"])
@pytest.mark.parametrize(
    "headers",
    [
        ["Authorization: Basic YTpi"],
        ["authorization: Bearer x"],
        ['Authorization: OAuth oauth_nonce="a"'],
        ['Authorization: OAuth x="' + "%25" * 2600 + '"'] * 90,
        ['Authorization: oauth_nonce="a", oauth_signature="b"'],
        ["Authorization:"],
    ],
    ids=["Basic", "Bearer", "OAuth", "ninety", "parameters only", "empty"],
)
def test_several_authorization_headers_are_rejected(service, path, headers):
    status, body = answer(service, request(service, *headers, path=path))
    (entry,) = body["errors"]
    assert (status, entry["param"]) == (400, "Authorization")
    assert entry["code"].endswith("_api_invalid_param")
    assert_others_are_served(service)


@pytest.mark.parametrize("raw", MALFORMED.values(), ids=list(MALFORMED))
def test_malformed_request_is_rejected_or_disconnected(service, raw):
    try:
        answered = answer(service, raw)
    except ConnectionError:
        answered = None  # closed while more was being sent
    if answered is not None:
        status, body = answered
        assert 400 <= status < 500
        assert list(body) == ["errors"]
    assert_others_are_served(service)


FRAMING = {
    "two lengths": ["Content-Length: 5", "Content-Length: 6"],
    "negative length": ["Content-Length: -1"],
    "length that is no number": ["Content-Length: 0x10"],
    "length of many digits": [f"Content-Length: {'9' * 5000}"],
    "length and chunks": ["Content-Length: 5", "Transfer-Encoding: chunked"],
    "unknown coding": ["Transfer-Encoding: x-unknown"],
    "chunks twice": ["Transfer-Encoding: chunked, chunked"],
    "compressed chunks": ["Transfer-Encoding: gzip, chunked"],
    "compressed chunks in two headers": ["Transfer-Encoding: gzip", "Transfer-Encoding: chunked"],
    "compressed": ["Transfer-Encoding: gzip"],
    "identity": ["Transfer-Encoding: identity"],
    "identity, chunked": ["Transfer-Encoding: identity, chunked"],
}


@pytest.mark.parametrize("headers", FRAMING.values(), ids=list(FRAMING))
def test_body_whose_end_is_unclear_is_rejected(service, headers):
    valid_chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
    sent = request(service, *headers, body=valid_chunks, length=False)
    status, body = answer(service, sent)
    (entry,) = body["errors"]
    assert (status, entry["code"], entry["param"]) == (400, "shop_api_invalid_param", "request")
    assert_others_are_served(service)


BROKEN_CHUNKS = {
    "no chunks": BODY,
    "no number": b"ZZ\r\nabc\r\n0\r\n\r\n",
    "negative": b"-1\r\n\r\n",
    "more than it says": b"5\r\nabcdeXX\r\n0\r\n\r\n",
    "less than it says": b"5\r\nabc",
    "a number of many digits": b"F" * 5000 + b"\r\nabc",
    "no end": b"3\r\nabc\r\n",
}


@pytest.mark.parametrize("path", ["/coupons", "/coupons/bulk", "/nothing/here"])
@pytest.mark.parametrize("body", BROKEN_CHUNKS.values(), ids=list(BROKEN_CHUNKS))
def test_body_of_broken_chunks_is_rejected(service, body, path):
    chunked = "Transfer-Encoding: chunked"
    status, _ = answer(service, request(service, chunked, path=path, body=body, length=False))
    assert status == (404 if path == "/nothing/here" else 400)
    anonymous = f"POST {path} HTTP/1.1\r\nHost: x\r\n{chunked}\r\n\r\n".encode() + body
    status, _ = answer(service, anonymous)
    assert status == (404 if path == "/nothing/here" else 401)
    assert_others_are_served(service)


@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("gzip", gzip.compress),
        ("gzip", lambda body: gzip.compress(b" " * 50_000_000)),
        ("deflate", lambda body: body),
        ("br", lambda body: body),
        ("gzip, gzip", lambda body: body),
    ],
    ids=["gzip", "bomb", "deflate", "br", "twice"],
)
def test_compressed_body_is_rejected(service, coding, pack):
    status, body = answer(service, request(service, f"Content-Encoding: {coding}", body=pack(BODY)))
    assert (status, body["errors"][0]["code"]) == (415, "shop_api_unsupported_media_type")
    assert body["errors"][0]["param"] == "Content-Encoding"
    assert_others_are_served(service)


RAW_PATHS = [
    "/coupons/count?filter[q]=\xff\xfe",
    "/coupons/code/\xff",
    "/\xc3\xa9",
    "/coupons/%00",
    "/%",
    "/coupons/count?%",
    "/coupons/count?filter%5Bq%5D=%ff",
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("path", RAW_PATHS)
def test_bytes_that_are_not_utf8_in_the_path_and_the_query(service, path):
    status, body = answer(service, request(service, method="GET", path=path, body=b""))
    assert status in {200, 400, 404}
    assert list(body) in (["count"], ["errors"])


@pytest.mark.slow
def test_large_body_does_not_stay_in_memory(service):
    def resident():
        return sum(worker.memory_info().rss for worker in service.workers())

    deep = b'{"coupon":' + b"[" * 5_000_000 + b"]" * 50_000
    bodies = [
        b" " * 10 * 2**20,
        b"[" * 10 * 2**20,
        deep,
        b'{"coupon": {"amount": ' + b"9" * 4 * 2**20 + b"}}",
    ]
    for body in bodies:
        status, _ = answer(service, request(service, body=body))
        assert status in {400, 413}

    def growth():
        before = resident()
        for _ in range(10):
            for body in bodies:
                answer(service, request(service, body=body))
        return resident() - before

    # Each thread of each worker keeps some memory after its first large body.
    assert any(growth() < 100 * 2**20 for _ in ATTEMPTS)
    assert_others_are_served(service)


# --- slow clients ---

HALF_HEAD = b"GET /coupons HTTP/1.1\r\nHost: x\r\nX-A: "
HALF_BODY = b"POST /coupons HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx"
FILE = b"GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n"
CLOSES_SLOWLY = b"GET /healthz HTTP/1.0\r\n\r\n"
NO_REQUEST = b"GET / HTTP/9.9\r\n\r\n"


@contextmanager
def clients(service, number, sent):
    """Connect clients that send some bytes and do nothing more, not even read."""
    with ExitStack() as stack:
        for _ in range(number):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(SECONDS)
            connection.connect(("127.0.0.1", service.port))
            with suppress(BlockingIOError):
                connection.send(sent, socket.MSG_DONTWAIT)
        yield


def seconds_of_a_request(service):
    start = time.monotonic()
    with closing(Caller(service.port, service.key)) as caller:
        assert caller.send("GET", "/coupons/count") == (200, {"count": 0})
    return time.monotonic() - start


def seconds_of_requests(service):
    return sum(seconds_of_a_request(service) for _ in range(100))


def delays_a_request(service, number):
    return any(seconds_of_a_request(service) >= UNDELAYED for _ in range(number))


SLOW = {
    "half a head": HALF_HEAD,
    "half a body": HALF_BODY,
    "half a body of a GET": HALF_BODY.replace(b"POST", b"GET"),
    "a file that nobody reads": FILE * 20,
}


@pytest.mark.slow
@pytest.mark.parametrize("sent", SLOW.values(), ids=list(SLOW))
def test_sixty_slow_clients_do_not_reduce_the_throughput_of_others(service, sent):
    before = seconds_of_requests(service)
    with clients(service, 60, sent):
        # What they are sent fills buffers first.
        assert not all(delays_a_request(service, 1) for _ in ATTEMPTS)
        # Twice as many, on a quiet machine. With gunicorn's own worker a request takes the timeout.
        assert any(seconds_of_requests(service) < before * 5 for _ in ATTEMPTS)


@pytest.mark.slow
@pytest.mark.parametrize("number", [10, 140])
@pytest.mark.parametrize("sent", [CLOSES_SLOWLY, NO_REQUEST], ids=["HTTP/1.0", "no request"])
def test_clients_that_close_slowly_delay_no_request(service, number, sent):
    def delay():
        with clients(service, number, sent):
            return delays_a_request(service, 10)

    assert not all(delay() for _ in ATTEMPTS)


@pytest.mark.slow
def test_a_thousand_half_sent_requests_delay_no_request(service):
    """Neither while they last, nor when they all time out and are closed."""

    def delay():
        with clients(service, 1000, HALF_HEAD):
            end = time.monotonic() + TIMEOUT + 3
            while time.monotonic() < end:
                if delays_a_request(service, 1):
                    return True
                time.sleep(0.1)
        return False

    workers = service.workers()
    assert not all(delay() for _ in ATTEMPTS)
    assert service.workers() == workers


@pytest.mark.slow
def test_more_idle_connections_than_the_default_file_limit_stop_no_worker(service):
    workers = service.workers()
    with clients(service, 1200, b""):
        assert_others_are_served(service)
    assert service.workers() == workers


@pytest.mark.slow
def test_client_that_sends_nothing_more_is_disconnected(service):
    start = time.monotonic()
    with closing(connect(service)) as connection:
        connection.sendall(HALF_HEAD)
        assert connection.recv(100) == b""  # within SECONDS
        assert time.monotonic() - start > TIMEOUT - 1


@pytest.mark.slow
def test_client_that_reads_slowly_but_steadily_is_not_disconnected(service):
    with closing(socket.socket()) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(SECONDS)
        connection.connect(("127.0.0.1", service.port))
        connection.sendall(FILE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        received, end = 0, time.monotonic() + TIMEOUT + 2
        while piece := connection.recv(100_000 if time.monotonic() > end else 4096):
            received += len(piece)
            if time.monotonic() < end:
                time.sleep(0.05)
        assert received > 1_000_000


@pytest.mark.slow
def test_disconnected_clients_leave_no_open_files(service):
    workers = service.workers()
    before = sum(worker.num_fds() for worker in workers)
    for _ in range(50):
        with closing(connect(service)) as connection:
            connection.sendall(request(service)[: -len(BODY)])
            linger = (1).to_bytes(4, "little") + bytes(4)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)  # a reset
    assert_others_are_served(service)
    assert [worker.pid for worker in service.workers()] == [worker.pid for worker in workers]
    assert all(psutil.pid_exists(worker.pid) for worker in workers)
    wait_for(
        lambda: sum(worker.num_fds() for worker in workers) <= before + os.cpu_count() + 16,
        "the files are closed",
    )
