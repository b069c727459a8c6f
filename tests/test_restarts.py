"""Reloads, restarts and killed workers under load: no request is dropped (docs/operations.md)."""

import shutil
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import psutil
import pytest

from tests.faults.clients import SECONDS, Caller
from tests.faults.service import Service
from tests.serving import ROOT


@pytest.fixture
def service(tmp_path):
    """A service on SQLite that does not run yet."""
    service = Service(f"sqlite:///{tmp_path}/shop.db", tmp_path)
    yield service
    service.close()


@pytest.fixture
def caller(service):
    """What calls the service that the fixture ``service`` is."""
    caller = Caller(service.port, service.key)
    yield caller
    caller.close()


@contextmanager
def load(service):
    """Send requests of all kinds meanwhile, on new and on kept connections; each is answered."""
    stop = Event()

    def send(number):
        caller, sent = Caller(service.port, service.key), 0
        while not stop.is_set():
            sent += 1
            items = [{"code": f"{number}-{sent}-{item}"} for item in range(5)]
            assert (
                caller.send("POST", "/coupons", {"coupon": {"code": f"{number}-{sent}"}})[0] == 201
            )
            assert caller.send("POST", "/coupons/bulk", {"coupons": items})[0] == 200
            assert caller.send("GET", "/coupons/count")[0] == 200
            if number % 2:
                caller.close()
        caller.close()
        return sent

    with ThreadPoolExecutor(4) as pool:
        sending = [pool.submit(send, number) for number in range(4)]
        try:
            yield
        finally:
            stop.set()
        rounds = sum(each.result() for each in sending)
    caller = Caller(service.port, service.key)
    assert caller.send("GET", "/coupons/count") == (200, {"count": 6 * rounds})
    caller.close()


def until(condition):
    end = time.monotonic() + 2 * SECONDS
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_reload_under_load_and_killed_workers(service, caller):
    service.start()
    service.wait_until_ready(caller)
    with load(service):
        old = service.workers()
        service.process.send_signal(signal.SIGHUP)
        psutil.wait_procs(old, timeout=2 * SECONDS)
    assert not any(worker.is_running() for worker in old)
    # Connections wait for the next workers when all are killed.
    for worker in service.workers():
        worker.kill()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: name(service), range(8))) == ["Shop Administration API"] * 8
    service.process.terminate()
    assert service.process.wait(2 * SECONDS) == 0
    with pytest.raises(ConnectionRefusedError):
        name(service)


def test_new_service_takes_over_from_the_old_one_under_load(service, caller):
    """Both listen on one address for a while."""
    service.start(SHOP_NAME="old")
    service.wait_until_ready(caller)
    old = service.process
    with load(service):
        service.start(SHOP_NAME="new")
        until(lambda: name(service) == "new")
        old.terminate()
        assert old.wait(2 * SECONDS) == 0
    assert {name(service) for _ in range(10)} == {"new"}


def name(service):
    """Who answers a connection of its own."""
    caller = Caller(service.port, service.key)
    try:
        return caller.send("GET", "/")[1]["name"]
    finally:
        caller.close()


def test_reload_serves_new_code(service, caller, tmp_path):
    code = tmp_path / "code"
    shutil.copytree(ROOT / "app", code / "app")
    shutil.copytree(ROOT / "migrations", code / "migrations")
    for file in ("wsgi.py", "server.py", "gunicorn.conf.py"):
        shutil.copy(ROOT / file, code)
    service.start(folder=code)
    service.wait_until_ready(caller)
    assert caller.send("GET", "/healthz") == (200, {"status": "ok"})
    view = code / "app" / "blueprints" / "system.py"
    view.write_text(
        view.read_text().replace('answer({"status": "ok"})', 'answer({"status": "new"})')
    )
    service.process.send_signal(signal.SIGHUP)
    until(lambda: caller.send("GET", "/healthz") == (200, {"status": "new"}))


SLOW_START = """
exec(open("gunicorn.conf.py").read())

def post_fork(arbiter, worker):
    import pathlib, time
    pathlib.Path({folder!r}, f"forked-{{worker.age}}").touch()
    time.sleep(1)
"""


def test_term_reaches_workers_that_are_still_starting(service, tmp_path):
    configuration = tmp_path / "slow.conf.py"
    configuration.write_text(SLOW_START.format(folder=str(tmp_path)))
    service.start(GUNICORN_CMD_ARGS=f"--config {configuration}")
    until(lambda: len(list(tmp_path.glob("forked-*"))) == 2)
    service.process.terminate()
    assert service.process.wait(2 * SECONDS) == 0
    assert "SIGKILL" not in Path(service.log).read_text()


def test_workers_that_are_starting_end_with_their_main_process(service, caller, tmp_path):
    """They would keep the connections of the next service, which nobody answers."""
    configuration = tmp_path / "slow.conf.py"
    configuration.write_text(
        SLOW_START.format(folder=str(tmp_path)).replace("sleep(1)", "sleep(0)")
    )
    service.start(GUNICORN_CMD_ARGS=f"--config {configuration}")
    until(lambda: len(list(tmp_path.glob("forked-*"))) == 2)
    orphans = service.kill_master()
    service.start()
    service.wait_until_ready(caller)
    psutil.wait_procs(orphans, timeout=2 * SECONDS)
    assert not any(orphan.is_running() for orphan in orphans)


def test_address_that_somebody_else_has_is_named(service, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        service.start(PORT=str(taken.getsockname()[1]))
        assert service.process.wait(2 * SECONDS) == 1
    assert "Cannot listen at" in service.log.read_text()
    assert "Traceback" not in service.log.read_text()
