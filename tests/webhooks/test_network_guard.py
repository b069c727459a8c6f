"""Addresses that may receive webhooks, and the HTTP client (events 2)."""

import asyncio
import socket
import threading
import time
from ipaddress import ip_address

import pytest

from app.conversions.webhooks import is_delivery_url, secret_key
from app.outbound import client
from app.outbound.client import ReceiverClient
from app.outbound.network import is_allowed, parse_networks
from tests.webhooks.receivers import LOOPBACK, Receiver

HOST = "receiver.example"

ALLOWED = parse_networks([LOOPBACK, "::1"])


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.0", "172.32.0.1", "2606:4700::1111",
     "2a00:1450::1", "2600::5efe:808:808", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"],
)  # fmt: skip
def test_global_unicast_address_is_allowed(address):
    assert is_allowed(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254",
        "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1",
        "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1",
        "239.255.255.250", "240.0.0.1", "255.255.255.255",
        "::", "::1", "fe80::1", "fe80::1%1", "fec0::1", "fc00::1", "fd12:3456::1", "ff02::1",
        "2001:db8::1", "2001:10::1", "2001::1", "3fff::1", "100::1", "5f00::1", "4000::1",
        # forms that contain an address
        "::127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:10.0.0.1",
        "64:ff9b::a00:1", "64:ff9b::7f00:1", "64:ff9b:1::a00:1",
        "2002:a00:1::1", "2002:7f00:1::", "2002:c0a8:101::1",
        "2001:0:808:808::f5ff:fffe",  # Teredo: the client is 10.0.0.1
        "2001:0:a00:1::f7f7:f7f7",  # Teredo: the server is 10.0.0.1
        "2600::5efe:a00:1",  # ISATAP
        # ISATAP with a global IPv4 address in a network that is not global
        "fd12:3456::5efe:808:808", "fe80::200:5efe:808:808", "ff02::5efe:808:808",
        "2001:db8::5efe:808:808",
    ],
)  # fmt: skip
def test_other_address_is_rejected(address):
    assert not is_allowed(ip_address(address))


def test_exception_allows_only_its_network():
    exceptions = parse_networks(["10.1.0.0/16", "fd00::/8"])
    assert is_allowed(ip_address("10.1.2.3"), exceptions)
    assert is_allowed(ip_address("::ffff:10.1.2.3"), exceptions)
    assert is_allowed(ip_address("fd12::1"), exceptions)
    assert not is_allowed(ip_address("10.2.0.1"), exceptions)


@pytest.mark.parametrize(
    ("valid", "urls"),
    [
        (True, [f"https://{HOST}/hooks?a=b", f"HTTPS://{HOST}", "https://receiver_name.example/"]),
        (True, ["http://[2606:4700::1111]:8080/x", "https://bücher.example/"]),
        (True, ["http://127.0.0.1:8080"]),  # the address is checked at each delivery
        (False, ["", HOST, f"//{HOST}", f"ftp://{HOST}/", "https:///hooks"]),
        (False, [f"https://user:password@{HOST}/", f"https://user@{HOST}/"]),
        (False, [f"https://{HOST}:0/", f"https://{HOST}:99999/", f"https://{HOST}/" + "x" * 2000]),
        (
            False,
            [f"https://{HOST}/a b", f"https://{HOST}\\@evil.example/", f"https://{HOST}/\r\nX: y"],
        ),
    ],
)
def test_delivery_url(valid, urls):
    assert [url for url in urls if is_delivery_url(url) is not valid] == []


@pytest.mark.parametrize(
    ("secret", "length"),
    [
        ("whsec_" + "A" * 32, 24),
        ("whsec_" + "A" * 84 + "AA==", 64),
        ("whsec_" + "A" * 28, None),
        ("whsec_" + "A" * 88, None),
        ("whsec_" + "A" * 31, None),
        ("A" * 32, None),
        ("whsec_", None),
        ("whsec_" + "é" * 32, None),
    ],
)
def test_secret(secret, length):
    key = secret_key(secret)
    assert key is None if length is None else len(key) == length


# --- the client ---


def post(url, allowed=ALLOWED, body=b"{}", headers=None):
    async def send():
        return await ReceiverClient(allowed).post(url, headers or {}, body)

    return asyncio.run(send())


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


def test_request_reaches_the_receiver_with_its_own_host(receiver):
    port = receiver.url.split(":")[2].split("/")[0]
    outcome = post(f"http://localhost:{port}/hooks?a=b", headers={"X-Test": "yes"})
    (received,) = receiver.wait(1)
    assert (outcome.status, outcome.error) == (204, None)
    assert received.path == "/hooks?a=b"
    assert received.headers["host"] == f"localhost:{port}"
    assert received.headers["x-test"] == "yes"


def test_redirect_is_not_followed(receiver):
    receiver.respond = lambda _: (302, {"Location": receiver.url}, b"")
    assert post(receiver.url).status == 302
    assert len(receiver.received) == 1


def test_proxy_of_the_environment_is_not_used(receiver, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert post(receiver.url).status == 204


def test_long_response_is_cut(receiver):
    receiver.respond = lambda _: (200, {}, b"x\0" * 500_000)
    outcome = post(receiver.url)
    assert (outcome.status, len(outcome.body)) == (200, 4096)
    assert "\0" not in outcome.body


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://127.0.0.1:22/", "refused address"),
        ("http://localhost:25/", "refused address"),
        ("http://10.0.0.1/", "refused address"),
        ("http://169.254.169.254/latest/meta-data/", "refused address"),
        ("http://[::ffff:10.0.0.1]/", "refused address"),
        ("http://167772161/", "refused address"),  # 10.0.0.1 as a number
        ("http://0x0a.1/", "refused address"),
        ("http://name.invalid/", "connection failed"),
    ],
)
def test_error_is_coarse(url, error):
    outcome = post(url)
    assert (outcome.status, outcome.error) == (None, error)


def test_loopback_is_rejected_by_default(receiver):
    assert post(receiver.url, allowed=()).error == "refused address"
    assert receiver.received == []


def test_every_address_of_a_name_is_checked(receiver, monkeypatch):
    def both(*_, **__):
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 0)),
        ]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    url = receiver.url.replace("127.0.0.1", "receiver.example")
    outcome = post(url)
    assert (outcome.error, outcome.detail) == (
        "refused address",
        "10.0.0.1 is not globally reachable",
    )


def test_address_that_changes_after_the_lookup_is_not_used(receiver, monkeypatch):
    """DNS rebinding: the name is looked up once, and the connection goes to that address."""
    lookups = []

    def rebind(host, port, *_, **__):
        lookups.append(host)
        address = "127.0.0.1" if len(lookups) == 1 else "10.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", rebind)
    url = receiver.url.replace("127.0.0.1", "receiver.example")
    assert post(url).status == 204
    assert lookups == ["receiver.example"]
    assert post(url).error == "refused address"  # the next delivery looks it up again


@pytest.fixture
def raw():
    """Return a function: a server that handles each connection with a function."""
    servers = []

    def start(handle):
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)

        def accept():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=handle, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{server.getsockname()[1]}/"

    yield start
    for server in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


def drip_header(connection):
    with connection:
        connection.recv(65536)
        for char in "HTTP/1.1 200 OK\r\nX: " + "x" * 10_000:
            try:
                connection.send(char.encode())
            except OSError:
                return
            time.sleep(0.05)


def drip_body(connection):
    with connection:
        connection.recv(65536)
        try:
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
            for _ in range(10_000):
                connection.send(b"x")
                time.sleep(0.05)
        except OSError:
            return


def hang(connection):
    with connection:
        time.sleep(5)


@pytest.mark.sample(1)
@pytest.mark.parametrize("handle", [drip_header, drip_body, hang])
def test_whole_delivery_has_a_time_limit(raw, monkeypatch, handle):
    monkeypatch.setattr(client, "TOTAL_SECONDS", 0.5)
    outcome = post(raw(handle))
    assert (outcome.status, outcome.error) == (None, "timeout")


def test_invalid_response_is_a_failed_connection(raw):
    def answer(connection):
        with connection:
            connection.recv(65536)
            connection.send(b"nonsense\r\n\r\n")

    assert post(raw(answer)).error == "connection failed"
