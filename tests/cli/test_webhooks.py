"""``webhooks listen`` and ``webhooks trigger``: trying webhooks on one's own machine."""

import os
import re
import subprocess
import sys
import threading
from http.server import ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from app.catalog import EVENT_TYPES
from app.cli.webhooks import _handler
from app.outbound import signatures
from app.schemas.examples.events import event_data
from tests.serving import ROOT
from tests.webhooks.deliveries import make_webhook, receiver, receivers, shop
from tests.webhooks.receivers import LOOPBACK

pytestmark = pytest.mark.one_database

__all__ = ["receiver", "receivers", "shop"]  # fixtures

SECRET = "whsec_" + "A" * 32
OTHER = "whsec_" + "B" * 32


@pytest.fixture
def run(shop):
    """Return a function: run a command of the app and return its result."""
    return lambda *arguments: shop.app.test_cli_runner().invoke(args=["webhooks", *arguments])


@pytest.mark.sample(3)
@pytest.mark.parametrize("topic", [each for each in EVENT_TYPES if not each.startswith("key.")])
def test_example_is_signed_like_a_delivery(run, receiver, topic):
    result = run("trigger", topic, "--url", receiver.url, "--secret", SECRET)
    assert result.exit_code == 0, result.output
    (received,) = receiver.wait(1)
    body = received.verify(SECRET)
    assert list(body) == ["type", "timestamp", "data"]
    assert body["type"] == topic
    assert body["data"] == event_data(topic)
    assert body["data"][topic.partition(".")[0]]["id"] > 0
    assert received.headers["webhook-id"].startswith("example_")
    assert re.fullmatch(
        rf"{re.escape(topic)} to {re.escape(receiver.url)}: 204 in \d+ ms\n", result.stdout
    )


def test_example_goes_to_each_webhook_with_the_topic(shop, run, receivers):
    made = [receivers() for _ in range(3)]
    first = make_webhook(shop, made[0], topics=["order.*"])
    make_webhook(shop, made[1], topics=["coupon.*"])
    legacy = {"topic": "order.created", "delivery_url": made[2].url, "secret": "any text"}
    shop.post("/wc-api/v3/webhooks", {"webhook": legacy})
    result = run("trigger", "order.created")
    assert result.exit_code == 0, result.output
    assert made[0].wait(1)[0].verify(first["secret"])["type"] == "order.created"
    assert made[1].received == []
    (received,) = made[2].wait(1)
    assert received.has_legacy_signature("any text")
    assert received.headers["x-wc-webhook-topic"] == "order.created"
    assert shop.get("/events").get_json() == {"events": []}


def test_example_that_cannot_be_sent(run, client_with, receiver):
    result = run("trigger", "order.created")
    assert (result.exit_code, result.stderr) == (
        1,
        "Error: No active webhook has the topic 'order.created'. Add --url.\n",
    )
    result = run("trigger", "order.*")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: Unknown event type: order.*. Event types: campaign.")
    others = client_with().app.test_cli_runner()
    result = others.invoke(args=["webhooks", "trigger", "order.created", "--url", receiver.url])
    assert result.exit_code == 1
    assert "SHOP_WEBHOOK_ALLOWED_NETWORKS" in result.stderr
    receiver.respond = lambda _: 500
    result = run("trigger", "order.created", "--url", receiver.url)
    assert result.exit_code == 1
    assert ": 500 in " in result.stdout
    generated = re.fullmatch(r"secret: (whsec_\S+)\n", result.stderr)[1]
    receiver.wait(1)[0].verify(generated)


def test_listener_verifies_a_signature(run):
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(SECRET)) as listener:
        threading.Thread(target=listener.serve_forever).start()
        url = f"http://127.0.0.1:{listener.server_port}/"
        # The listener prints to the output of the command, because it runs in the same process.
        good = run("trigger", "order_note.created", "--url", url, "--secret", SECRET).stdout
        bad = run("trigger", "order_note.created", "--url", url, "--secret", OTHER).stdout
        listener.shutdown()
    assert re.search(r"^order_note.created  example_\w+  signature valid$", good, re.M)
    assert ": 204 in " in good
    assert '\n    "order_note": {\n' in good
    assert re.search(r"^order_note.created  example_\w+  signature WRONG$", bad, re.M)
    assert ": 400 in " in bad


@pytest.mark.slow
def test_listener_prints_and_verifies_deliveries(settings, run):
    environment = os.environ | {name: settings[name] for name in ("DATABASE_URL", "SECRET_KEY")}
    environment |= {"SHOP_WEBHOOK_ALLOWED_NETWORKS": LOOPBACK, "WEBHOOK_SECRET": SECRET}
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "app.main", "webhooks", "listen", "--port", "0"],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as listener:  # fmt: skip
        try:
            line = listener.stderr.readline()
            url = re.fullmatch(r"Listening on (http://127.0.0.1:\d+/) \(Ctrl-C stops\)\n", line)[1]
            good = run("trigger", "order_note.created", "--url", url, "--secret", SECRET)
            bad = run("trigger", "order_note.created", "--url", url, "--secret", OTHER)
        finally:
            listener.terminate()
        printed = listener.stdout.read()
    assert ": 204 in " in good.stdout
    assert (bad.exit_code, ": 400 in " in bad.stdout) == (1, True)
    first, second = re.findall(r"^order_note.created  example_\w+  signature (\w+)$", printed, re.M)
    assert (first, second) == ("valid", "WRONG")
    assert '\n    "order_note": {\n' in printed


@pytest.mark.parametrize(
    ("age", "is_accepted"), [(0, True), (300, True), (301, False), (-300, True), (-301, False)]
)
def test_signature_is_accepted_for_five_minutes(monkeypatch, age, is_accepted):
    now = 1_800_000_000
    monkeypatch.setattr(signatures, "time", SimpleNamespace(time=lambda: now))
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(now - age),
        "webhook-signature": signatures.sign([SECRET], "msg_1", now - age, b"{}"),
    }
    assert signatures.is_signed(SECRET, headers, b"{}") is is_accepted
    assert not signatures.is_signed(OTHER, headers, b"{}")
