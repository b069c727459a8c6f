"""Deliveries over TLS: which certificates are trusted, and what is recorded otherwise (events 2)."""

import asyncio
import json
import socket
import ssl
from ipaddress import ip_network

import pytest
import trustme

from app.outbound.client import ReceiverClient
from tests.webhooks.receivers import LOOPBACK, Receiver, running_worker, until


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def trusted(authority, tmp_path, monkeypatch):
    """Trust the authority as an operator does: in the environment of the worker."""
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))


@pytest.fixture
def receiver_with(authority):
    """Return a function: a receiver with a certificate for a name."""
    made = []

    def make(name="localhost"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(name).configure_cert(context)
        made.append(Receiver(tls=context))
        return made[-1]

    yield make
    for receiver in made:
        receiver.close()


def post(url, body=b"{}"):
    async def send():
        client = ReceiverClient([ip_network(LOOPBACK), ip_network("::1")])
        return await client.post(url, {}, body)

    return asyncio.run(send())


@pytest.mark.usefixtures("trusted")
def test_certificate_of_a_trusted_authority(receiver_with):
    receiver = receiver_with()
    outcome = post(receiver.url)
    assert (outcome.status, outcome.error, outcome.detail) == (204, None, "")
    assert receiver.wait(1)[0].body == b"{}"


@pytest.mark.usefixtures("trusted")
def test_long_request_and_response_with_tls(receiver_with):
    receiver = receiver_with()
    receiver.respond = lambda _: (200, {}, b"x" * 1_000_000)
    sent = b"y" * 1_000_000
    outcome = post(receiver.url, sent)
    assert (outcome.status, outcome.error, outcome.body) == (200, None, "x" * 4096)
    assert receiver.wait(1)[0].body == sent


def test_certificate_of_an_unknown_authority(receiver_with):
    receiver = receiver_with()
    outcome = post(receiver.url)
    assert (outcome.status, outcome.error) == (None, "connection failed")
    assert "certificate verify failed" in outcome.detail
    assert receiver.received == []


@pytest.mark.usefixtures("trusted")
def test_certificate_for_another_name(receiver_with):
    receiver = receiver_with("other.example")
    outcome = post(receiver.url)
    assert (outcome.status, outcome.error) == (None, "connection failed")
    assert "Hostname mismatch" in outcome.detail
    assert receiver.received == []


def test_receiver_without_tls():
    plain = Receiver()
    try:
        outcome = post(plain.url.replace("http:", "https:"))
    finally:
        plain.close()
    assert (outcome.status, outcome.error) == (None, "connection failed")
    assert "SSL" in outcome.detail


def test_handshake_has_a_time_limit(monkeypatch):
    monkeypatch.setattr("app.outbound.client.CONNECT_SECONDS", 0.3)

    with socket.create_server(("127.0.0.1", 0)) as silent:
        outcome = post(f"https://127.0.0.1:{silent.getsockname()[1]}/")
    assert (outcome.status, outcome.error) == (None, "timeout")


def create(client_with, receiver):
    shop = client_with(SHOP_WEBHOOK_ALLOWED_NETWORKS=f"{LOOPBACK},::1")
    new = {"topics": ["coupon.*"], "delivery_url": receiver.url}
    webhook = shop.post("/webhooks", {"webhook": new}).get_json()["webhook"]
    shop.post("/coupons", {"coupon": {"code": "tls"}})
    return shop, webhook


@pytest.mark.usefixtures("trusted")
def test_delivery_to_a_receiver_with_tls(client_with, receiver_with):
    receiver = receiver_with()
    shop, webhook = create(client_with, receiver)
    with running_worker(shop.app):
        (received,) = receiver.wait(1)
    assert received.verify(webhook["secret"])["type"] == "coupon.created"


def test_untrusted_receiver_is_recorded_and_logged(client_with, receiver_with, capsys):
    receiver = receiver_with()
    shop, webhook = create(client_with, receiver)
    path = f"/webhooks/{webhook['id']}/deliveries"

    def attempts():
        return shop.get(path).get_json()["webhook_deliveries"][0:1]

    with running_worker(shop.app):
        until(lambda: attempts() and attempts()[0]["attempts"], "an attempt")
    ping = shop.post(f"/webhooks/{webhook['id']}/ping").get_json()["ping"]
    assert attempts()[0]["attempts"][0]["error"] == ping["error"] == "connection failed"
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (line,) = (line for line in lines if line["message"] == "delivery")
    assert line["error"] == "connection failed"
    assert "certificate verify failed" in line["detail"]
    assert receiver.received == []
