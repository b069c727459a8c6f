"""Writes that wait for a lock leave room for reads and health checks, and for each other."""

import socket
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from types import SimpleNamespace

import psutil
import pytest

from qa.cluster import programs
from qa.cluster.client import Client
from server.client_socket import ClientSocket
from server.gunicorn_worker import Worker, is_without_end
from server.slots import Slot, Slots
from tests.serving import ShopServer, wait_for

DEADLINE = 4
QUEUE = 2
FROZEN = 3
SLACK = 10  # seconds for a busy machine; what hangs would hang until the test ends
THREADS = 4
CONFIGURATION = f"""
exec(open("gunicorn.conf.py").read())
from server import gunicorn_worker
gunicorn_worker.QUEUE_SECONDS = {QUEUE}
gunicorn_worker.FROZEN_SECONDS = {FROZEN}
"""
WAITED = f"The database did not respond within {DEADLINE} seconds. Try again shortly."
BUSY = "The service is busy with other requests. Try again shortly."


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slots")
    configuration = folder / "impatient.conf.py"
    configuration.write_text(CONFIGURATION)
    service = ShopServer(f"sqlite:///{folder}/shop.db", folder)
    service.file = folder / "shop.db"
    service.start(
        SHOP_REQUEST_TIMEOUT_SECONDS=str(DEADLINE),
        WEB_THREADS=str(THREADS),
        GUNICORN_CMD_ARGS=f"--config {configuration}",
    )
    service.wait_until_ready()
    yield service
    service.close()
    assert "Traceback" not in service.log.read_text()


@contextmanager
def locked(service):
    """Let another program write to the database for as long as the block lasts."""
    with closing(sqlite3.connect(service.file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def client_of(service):
    return Client(service.port, service.key)


def new(client, code):
    return client.post("/coupons", {"coupon": {"code": code}})


def codes(client):
    return [coupon["code"] for coupon in client.get("/coupons").body["coupons"]]


def until_queued(service, number):
    """Wait until the requests of that many clients wait for a slot or for the lock."""
    wait_for(lambda: connections(service) >= number, f"{number} requests have arrived")
    # The worker hands over connections in their order, so it has handed over the others before.
    assert client_of(service).get("/healthz").status == 200
    time.sleep(0.1)


def connections(service):
    """The number of connections of clients that are open."""
    (worker,) = service.workers()
    return sum(each.status == psutil.CONN_ESTABLISHED for each in worker.net_connections("tcp"))


@pytest.mark.slow
def test_reads_and_health_checks_are_served_while_writes_wait(service):
    client = client_of(service)
    with ThreadPoolExecutor(10) as pool, locked(service):
        sent = [pool.submit(new, client_of(service), f"locked-{n}") for n in range(8)]
        until_queued(service, 8)
        for path in ("/coupons", "/healthz", "/readyz", "/coupons/count") * 3:
            reply = client.get(path)
            assert reply.status == 200
            assert reply.seconds < SLACK
        replies = [each.result() for each in sent]
    for reply in replies:
        assert (reply.status, reply.headers["retry-after"]) == (503, "5")
        (entry,) = reply.body["errors"]
        assert entry["code"] == "shop_api_unavailable"
        limit = {WAITED: DEADLINE, BUSY: QUEUE}[entry["message"]]
        assert limit <= reply.seconds + 0.1
        assert reply.seconds < limit + SLACK
    messages = [reply.body["errors"][0]["message"] for reply in replies]
    # All slots but one are for writes.
    assert (messages.count(WAITED), messages.count(BUSY)) == (THREADS - 1, 8 - THREADS + 1)
    assert codes(client) == []


@pytest.mark.slow
def test_request_of_a_client_that_has_gone_is_dropped(service):
    client, gone = client_of(service), client_of(service)
    with ThreadPoolExecutor(10) as pool:
        with locked(service):
            first = [pool.submit(new, client_of(service), f"first-{n}") for n in range(THREADS - 1)]
            until_queued(service, THREADS - 1)
            gone.send_only("POST", "/coupons", {"coupon": {"code": "gone"}})
            last = pool.submit(new, client_of(service), "last")
            until_queued(service, THREADS + 1)
            gone.close()
        replies = [each.result() for each in (*first, last)]
    assert [reply.status for reply in replies] == [201] * THREADS
    assert sorted(codes(client)) == [*(f"first-{n}" for n in range(THREADS - 1)), "last"]


@pytest.mark.slow
def test_write_that_a_frozen_worker_finds_after_its_client_has_gone_is_dropped(service):
    client, gone = client_of(service), client_of(service)
    before = codes(client)
    with programs.frozen(service.process):
        gone.send_only("POST", "/coupons", {"coupon": {"code": "late"}})
        gone.close()
        time.sleep(FROZEN + 1)
    wait_for(lambda: connections(service) == 1, "the worker has handled the connection")
    assert new(client, "next").status == 201
    assert sorted(codes(client)) == sorted([*before, "next"])


def test_a_released_slot_goes_to_the_request_that_has_waited(monkeypatch):
    """Even if the same thread asks for it again before the other one runs."""
    monkeypatch.setattr("server.slots.PATIENCE_SECONDS", 0)
    slots = Slots(2)
    reads, writes = Slot(slots, 2), Slot(slots, 1)
    assert reads.acquire()
    assert writes.acquire()
    order = []

    def wait(name, slot):
        assert slot.acquire()
        order.append(name)

    with ThreadPoolExecutor(3) as pool:
        waiting = [("second write", writes), ("read", reads), ("last write", writes)]
        for number, each in enumerate(waiting, 1):
            pool.submit(wait, *each)
            wait_for(lambda number=number: len(slots.waiting) == number, "a request waits")
        reads.release()  # not for a write, because another one runs
        assert not reads.acquire(0)
        wait_for(lambda: order == ["read"], "the read runs")
        writes.release()
        assert not writes.acquire(0)
        wait_for(lambda: order == ["read", "second write"], "the second write runs")
        assert not reads.acquire(0.01)  # it no longer waits
        writes.release()
    assert order == ["read", "second write", "last write"]
    for slot in (reads, writes):
        slot.release()
    assert (slots.free, len(slots.waiting)) == (2, 0)


def test_a_thread_goes_on_with_its_next_request_before_one_that_came_just_now(monkeypatch):
    monkeypatch.setattr("server.slots.PATIENCE_SECONDS", 3600)
    slots = Slots(1)
    reads = Slot(slots, 1)
    assert reads.acquire()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(reads.acquire)
        wait_for(lambda: len(slots.waiting) == 1, "a request waits")
        with slots.lock:  # the thread that is woken cannot run yet
            reads._free, slots.free = 1, 1
            reads._wake_next()
            assert reads._take()
        assert not reads.acquire(0)
        reads.release()
        assert waiting.result(10)
    reads.release()
    assert (slots.free, len(slots.waiting)) == (1, 0)


def test_every_slot_that_is_released_is_used():
    """By requests of three kinds in many threads, some of which stop waiting."""
    slots = Slots(3)
    kinds = [Slot(slots, 3), Slot(slots, 2), Slot(slots, 1)]
    running, most, lock = 0, 0, threading.Lock()

    def work(number):
        nonlocal running, most
        done = 0
        for each in range(300):
            slot = kinds[(number + each) % 3]
            if slot.acquire(0.0005 if each % 5 == 0 else 30):
                with lock:
                    running += 1
                    most = max(most, running)
                with lock:
                    running -= 1
                slot.release()
                done += 1
        return done

    with ThreadPoolExecutor(12) as pool:
        done = sum(pool.map(work, range(12)))
    assert done >= 12 * 240  # all that wait for longer
    assert most <= 3
    assert (slots.free, len(slots.waiting)) == (3, 0)
    assert [slot._free for slot in kinds] == [3, 2, 1]


def test_header_is_sent_together_with_the_body():
    sender, receiver = socket.socketpair()
    with closing(sender), closing(receiver):
        receiver.setblocking(False)
        client = ClientSocket(sender)
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
        with pytest.raises(BlockingIOError):
            receiver.recv(1000)
        client.sendall(b"{}")
        assert receiver.recv(1000).endswith(b"\r\n\r\n{}")
        client.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
        client.flush()
        assert receiver.recv(1000) == b"HTTP/1.1 204 No Content\r\n\r\n"
        client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert receiver.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/coupons?filter[limit]=-1", True),
        ("/coupons?filter%5Blimit%5D=%2D1", True),
        ("/orders?fields=id&limit=-1", True),
        ("/orders?li%6Dit=+-1", True),
        ("/wc-api/v3/orders?filter[limit]=-1", True),
        ("/refunds?limit=100000", True),
        ("/reports/sales?format=csv", True),
        ("/admin/data/orders.csv", True),
        ("/wc-api/v2/customers/5/orders", True),
        ("/customers/5/downloads", True),
        ("/orders/5/notes", True),
        ("/coupons", False),
        ("/coupons?filter[limit]=100", False),
        ("/wp-json/wc/v3/orders?per_page=100", False),
        ("/orders/5/notes/7", False),
        ("/customers/5", False),
        ("/customers?filter[q]=limit", False),
    ],
)
def test_lists_without_end_are_known_by_their_address(target, expected):
    path, _, query = target.partition("?")
    assert is_without_end(path, query) == expected


@pytest.mark.parametrize("threads", [1, 2, 4, 5])
def test_lists_without_end_have_at_most_half_of_the_slots(threads):
    worker = Worker.__new__(Worker)
    worker.cfg = SimpleNamespace(threads=threads, worker_connections=10)
    worker.get_thread_pool().shutdown()
    most = max(threads // 2, 1)
    listed = [worker.slot_of("GET", "/coupons", "limit=-1") for _ in range(2 * threads)]
    assert [slot.acquire(0) for slot in listed] == [True] * most + [False] * (2 * threads - most)
    others = [worker.slot_of("GET", "/coupons", "") for _ in range(threads)]
    assert [slot.acquire(0) for slot in others].count(True) == threads - most
