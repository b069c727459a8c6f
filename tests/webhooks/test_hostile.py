"""Receivers and names that must not delay the deliveries of other webhooks (events 2)."""

import asyncio
import socket
import threading
import time
from statistics import median

import pytest

from app.outbound import client
from app.outbound.client import ReceiverClient
from app.outbound.network import parse_networks
from tests.webhooks.deliveries import make_webhook, publish
from tests.webhooks.hostile_receivers import RESPONSES, hostile_receivers
from tests.webhooks.receivers import LOOPBACK, running_worker

pytestmark = pytest.mark.one_database

MAX_DELAY = 4.0  # seconds: less than a delivery that waits for a hostile receiver takes

BODIES = {"chunks", "trailers", "endless body", "compressed"}
SLOW = {"slow chunks", "slow header"}


@pytest.fixture(scope="module")
def hostile():
    with hostile_receivers() as urls:
        yield urls


async def with_longest_pause(awaitable):
    """Return a result, and the longest time for which nothing else could run meanwhile."""
    task, longest = asyncio.ensure_future(awaitable), 0.0
    while not task.done():
        before = time.monotonic()
        await asyncio.sleep(0.001)
        longest = max(longest, time.monotonic() - before)
    return task.result(), longest


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", RESPONSES)
def test_hostile_response_ends_early_and_does_not_block(hostile, name, monkeypatch):
    """Its bytes are counted as they come over the wire, and others run between two reads."""
    monkeypatch.setattr(client, "TOTAL_SECONDS", 2.0)

    async def run():
        receiver_client = ReceiverClient(parse_networks([LOOPBACK]))
        return await with_longest_pause(receiver_client.post(hostile[name], {}, b"{}"))

    outcome, longest = asyncio.run(run())
    if name in BODIES:
        expected = (200, None)
    else:
        expected = (None, "timeout" if name in SLOW else "connection failed")
    assert (outcome.status, outcome.error) == expected
    assert len(outcome.body) <= client.KEPT_BYTES
    # Without the limits, neither would end. A busy machine takes its time, too.
    assert outcome.duration_ms < 10_000
    assert longest < 1.5


@pytest.mark.slow
def test_healthy_receiver_beside_hostile_ones(shop, receivers, hostile):
    """Each of 20 hostile receivers gets as many deliveries at a time as the worker sends."""
    for url in [*hostile.values(), *hostile.values()][:20]:
        shop.post("/webhooks", {"webhook": {"topics": ["order.*"], "delivery_url": url}})
    healthy = receivers()
    make_webhook(shop, healthy, topics=["coupon.*"])
    with running_worker(shop.app):
        publish(shop, *range(1, 21), event_type="order.created")
        delays = delays_of(shop, healthy, 20)
    assert median(delays) < MAX_DELAY  # a busy machine delays single ones


@pytest.mark.slow
def test_ping_of_a_hostile_receiver(shop, hostile):
    webhook = {"topics": ["order.*"], "delivery_url": hostile["processing"]}
    webhook = shop.post("/webhooks", {"webhook": webhook}).get_json()["webhook"]
    ping = shop.post(f"/webhooks/{webhook['id']}/ping").get_json()["ping"]
    assert (ping["status"], ping["error"]) == (None, "connection failed")
    assert ping["duration_ms"] < 1000 * MAX_DELAY


def delays_of(shop, receiver, number, pause=0.0):
    """Return the seconds from each of some commits to the delivery of its event."""
    delays = []
    for count in range(1, number + 1):
        started = time.time()
        publish(shop, count)
        delays.append(receiver.wait(count)[-1].at - started)
        time.sleep(pause)
    return delays


# --- names ---


@pytest.fixture
def slow_names(monkeypatch):
    """Let only healthy.example resolve. Return the names that are being looked up."""
    lookups, is_over = [], threading.Event()

    def look_up(host, *_, **__):
        if host == "healthy.example":
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]
        lookups.append(host)
        is_over.wait(60)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield lookups
    is_over.set()


def healthy_url(receiver):
    return receiver.url.replace("127.0.0.1", "healthy.example")


@pytest.mark.slow
def test_names_that_do_not_resolve_delay_no_other_name(receiver, slow_names, monkeypatch):
    """Each name is looked up once at a time, even if its deliveries have reached their limit."""
    monkeypatch.setattr(client, "CONNECT_SECONDS", 4.0)  # a slow machine starts 100 threads
    urls = [f"http://dead-{number}.example/" for number in range(100)]

    async def run():
        receiver_client = ReceiverClient(parse_networks([LOOPBACK]))
        dead = []
        for _ in range(2):
            dead = [asyncio.create_task(receiver_client.post(url, {}, b"{}")) for url in urls]
            healthy = await receiver_client.post(healthy_url(receiver), {}, b"{}")
            assert (healthy.status, healthy.error) == (204, None)
            assert {outcome.error for outcome in await asyncio.gather(*dead)} == {"timeout"}

    asyncio.run(run())
    assert sorted(slow_names) == sorted(f"dead-{number}.example" for number in range(100))


@pytest.mark.slow
def test_names_whose_lookup_has_failed_leave_threads_to_others(receiver, slow_names, monkeypatch):
    monkeypatch.setattr(client, "CONNECT_SECONDS", 0.3)
    monkeypatch.setattr(client, "MAX_LOOKUPS", 6)
    monkeypatch.setattr(client, "MAX_REPEATED_LOOKUPS", 3)
    fails, at_once = socket.getaddrinfo, threading.Event()

    def look_up(host, *arguments, **named):
        if host != "healthy.example" and not at_once.is_set():
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return fails(host, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    urls = [f"http://dead-{number}.example/" for number in range(10)]

    async def run():
        receiver_client = ReceiverClient(parse_networks([LOOPBACK]))

        async def post_to_all():
            outcomes = [receiver_client.post(url, {}, b"{}") for url in urls]
            return {outcome.error for outcome in await asyncio.gather(*outcomes)}

        assert await post_to_all() == {"connection failed"}
        at_once.set()
        assert await post_to_all() == {"timeout"}
        healthy = await receiver_client.post(healthy_url(receiver), {}, b"{}")
        assert (healthy.status, healthy.error) == (204, None)

    asyncio.run(run())
    assert len(slow_names) == 3


@pytest.mark.slow
def test_healthy_receiver_beside_names_that_do_not_resolve(shop, receivers, slow_names):
    """The lookup of each of 40 names takes longer than a delivery may take."""
    healthy = receivers()
    for number in range(40):
        url = f"http://dead-{number}.example/"
        shop.post("/webhooks", {"webhook": {"topics": ["order.*"], "delivery_url": url}})
    make_webhook(shop, healthy, topics=["coupon.*"], delivery_url=healthy_url(healthy))
    with running_worker(shop.app):
        publish(shop, *range(1, 11), event_type="order.created")
        delays = delays_of(shop, healthy, 8, pause=1.0)
    assert median(delays) < MAX_DELAY  # a busy machine delays single ones
