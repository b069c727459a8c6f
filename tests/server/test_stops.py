"""Connections that nothing is done for do not delay the end of a service (docs/operations.md)."""

import signal
import socket
import ssl
from contextlib import ExitStack, closing

import pytest
import trustme

from qa.cluster.writers import SECONDS
from server.client_socket import CLIENT_TIMEOUT
from tests.server.service import begin, response_of
from tests.serving import ShopServer

LINE = b"GET /healthz HTTP/1.1\r\n"
FILES = b"GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n" * 20
HALF_BODY = b"POST /coupons HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"
CHUNK = b"POST /coupons HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"
SENT = {
    "nothing": b"",
    "half a line": LINE[:9],
    "half a head": LINE + b"Host: x\r\nX-A: ",
    "half a body": HALF_BODY,
    "half a chunk": CHUNK,
    "a kept connection": LINE + b"Host: x\r\n\r\n",
    "half a line on a kept connection": LINE + b"Host: x\r\n\r\n" + LINE[:9],
    "a closed connection that the client keeps": LINE + b"Connection: close\r\n\r\n",
    "no HTTP": b"\x16\x03\x01\x02\x00",
    "files that nobody reads": FILES,
}
"""What clients have sent, of whom nothing more follows."""


@pytest.fixture
def server(tmp_path):
    server = ShopServer(f"sqlite:///{tmp_path}/shop.db", tmp_path)
    yield server
    server.close()


def connect(server, sent, context=None):
    """Send bytes, over TLS with a context, as far as the server reads them."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(SECONDS)
    connection.connect(("127.0.0.1", server.port))
    if context:
        connection = context.wrap_socket(connection, server_hostname="127.0.0.1")
    connection.sendall(sent)
    return connection


def open_connections(server, stack, context=None):
    """Connect a client for each of SENT, and return when the server has read what they send."""
    for sent in SENT.values():
        stack.enter_context(closing(connect(server, sent, context)))
    with closing(connect(server, LINE + b"Host: x\r\n\r\n", context)) as last:
        assert last.recv(12) == b"HTTP/1.1 200"


def start(server, **environment):
    """Start a service that would wait for its connections for longer than the test waits."""
    server.start(GUNICORN_CMD_ARGS="--graceful-timeout 600", **environment)
    server.wait_until_ready()


def assert_stops(server):
    """Check that the service ends long before its clients would be disconnected."""
    assert server.process.wait(CLIENT_TIMEOUT / 2) == 0
    assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(signal.SIGQUIT, marks=pytest.mark.slow),
    ],
)
def test_open_connections_do_not_delay_the_end(server, number):
    start(server)
    with ExitStack() as stack:
        open_connections(server, stack)
        body = b'{"coupon": {"code": "last"}}'
        connection = stack.enter_context(closing(begin(server, body)))
        server.process.send_signal(number)
        connection.sendall(body)
        status, created = response_of(connection)
        assert (status, created["coupon"]["code"]) == (201, "last")
        assert_stops(server)


@pytest.mark.slow
def test_open_connections_over_tls_do_not_delay_the_end(tmp_path):
    authority, certificate = trustme.CA(), tmp_path / "certificate.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(certificate)
    authority.cert_pem.write_to_path(certificate, append=True)
    context = ssl.create_default_context(cafile=certificate)
    server = ShopServer(f"sqlite:///{tmp_path}/shop.db", tmp_path, certificate)
    with closing(server), ExitStack() as stack:
        start(server)
        for sent in (b"", b"\x16\x03\x01"):  # no handshake, and half of one
            stack.enter_context(closing(connect(server, sent)))
        open_connections(server, stack, context)
        server.process.terminate()
        assert_stops(server)
