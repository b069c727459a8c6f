"""Signals, reloads and killed processes under load lose no request (docs/operations.md)."""

import http.client
import json
import os
import signal
import socket
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress

import psutil
import pytest

from qa.cluster.writers import SECONDS, Caller
from tests.server.service import Service, begin, copied_code, get, load, refuses, response_of
from tests.serving import SECRET, Gunicorn, reserved_port, wait_for


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    return copied_code(tmp_path_factory.mktemp("code"))


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("restarts")
    shop = Service(f"sqlite:///{folder}/shop.db", folder)
    with reserved_port() as second:
        shop.second_port = second.getsockname()[1]
        yield shop
        shop.close()


@pytest.fixture
def service(shop, code):
    """A running service of two workers at two addresses. Started again where a test stopped it."""
    if shop.process is None or shop.process.poll() is not None:
        binds = f"--bind 127.0.0.1:{shop.port} --bind 127.0.0.1:{shop.second_port}"
        shop.start(folder=code, GUNICORN_CMD_ARGS=binds)
    with closing(Caller(shop.port, shop.key)) as caller:
        shop.wait_until_ready(caller)
    wait_for(lambda: len(shop.workers()) == 2, "two workers run")
    return shop


def reload(service):
    """Send HUP. Return when the old workers have exited."""
    old = service.workers()
    service.process.send_signal(signal.SIGHUP)
    _, alive = psutil.wait_procs(old, timeout=SECONDS)
    assert not alive
    wait_for(lambda: len(service.workers()) == 2, "the new workers run")


@pytest.mark.slow
def test_hup_twice_under_load_loses_no_request_and_runs_new_code(service, code):
    view = code / "app" / "blueprints" / "system.py"
    before = view.read_text()
    view.write_text(before.replace('response({"status": "ok"})', 'response({"status": "new"})'))
    try:
        with load(service):
            reload(service)
            assert get(service.port) == {"status": "new"}
            view.write_text(before)
            reload(service)
            assert get(service.port) == {"status": "ok"}
    finally:
        view.write_text(before)


@pytest.mark.slow
def test_hup_runs_a_new_version_of_the_worker(service, code):
    """The main process imports the package ``server``, so it must import it again."""
    worker, configuration = code / "server" / "gunicorn_worker.py", code / "gunicorn.conf.py"
    before = {file: file.read_text() for file in (worker, configuration)}
    worker.write_text(before[worker] + "\n\nclass NewWorker(Worker):\n    pass\n")
    new = before[configuration].replace(
        "server.gunicorn_worker.Worker", "server.gunicorn_worker.NewWorker"
    )
    assert new != before[configuration]
    configuration.write_text(new)
    try:
        reload(service)
        assert get(service.port) == {"status": "ok"}
    finally:
        for file, text in before.items():
            file.write_text(text)
    reload(service)


@pytest.mark.slow
def test_usr2_replaces_the_main_process_under_load(service):
    main = psutil.Process(service.process.pid)
    workers = service.workers()
    with load(service):
        main.send_signal(signal.SIGUSR2)
        (new,) = wait_for(
            lambda: [each for each in main.children() if each not in workers],
            "the new main process runs",
        )
        try:
            wait_for(lambda: len(new.children()) == 2, "the new workers run")
            time.sleep(1)  # the document says to wait until they serve
            main.terminate()
            assert service.process.wait(SECONDS) == 0
        except BaseException:
            new.terminate()
            raise
    assert get(service.port) == {"status": "ok"}
    new.terminate()
    wait_for(lambda: refuses(service.port), "the new main process has stopped")


def waits(service):
    """The seconds that new connections wait, on both addresses."""
    seen = []
    for _ in range(20):
        for port in (service.port, service.second_port):
            start = time.monotonic()
            get(port)
            seen.append(time.monotonic() - start)
    return seen


def few_wait(service):
    """Of those that wait for a worker, a third would be slow."""
    return len([seconds for seconds in waits(service) if seconds > 0.5]) <= 3


@pytest.mark.slow
def test_no_connection_waits_after_ttin_ttou_or_a_killed_worker(service):
    def does_not_wait():
        yield few_wait(service)
        service.process.send_signal(signal.SIGTTIN)
        wait_for(lambda: len(service.workers()) == 3, "a third worker runs")
        yield few_wait(service)
        service.process.send_signal(signal.SIGTTOU)
        yield few_wait(service)
        wait_for(lambda: len(service.workers()) == 2, "two workers run")
        yield few_wait(service)
        killed = service.workers()[0]
        killed.kill()
        yield few_wait(service)
        wait_for(lambda: killed not in service.workers(), "the main process notices")

    # Other programs can take the CPU, but not in each attempt.
    assert any(all(list(does_not_wait())) for _ in range(3))


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="CPU affinity is set on Linux only"
)
def test_each_worker_stays_on_one_cpu(service):
    assert_workers_are_spread(service)
    before = service.workers()
    before[0].kill()
    wait_for(lambda: before[0] not in service.workers(), "the main process notices")
    assert_workers_are_spread(service)
    before = service.workers()
    service.process.send_signal(signal.SIGHUP)
    wait_for(lambda: not {*before} & {*service.workers()}, "both workers are replaced")
    assert_workers_are_spread(service)


def assert_workers_are_spread(service):
    available = psutil.Process(service.process.pid).cpu_affinity()
    single = {(cpu,) for cpu in available}

    def are_spread():
        workers = service.workers()
        cpus = cpus_of(workers)  # a worker that starts has those of the main process
        return len(workers) == 2 and len(cpus) == min(2, len(available)) and cpus <= single

    wait_for(are_spread, "each of two workers uses a CPU")


def cpus_of(workers):
    with suppress(psutil.NoSuchProcess):
        return {tuple(worker.cpu_affinity()) for worker in workers}
    return set()


@pytest.mark.slow
def test_cpu_affinity_can_be_switched_off(shop, code):
    if shop.process is not None and shop.process.poll() is None:
        shop.stop()
    shop.start(folder=code, WEB_CPU_AFFINITY="off")
    with closing(Caller(shop.port, shop.key)) as caller:
        shop.wait_until_ready(caller)
    available = psutil.Process(shop.process.pid).cpu_affinity()
    assert cpus_of(shop.workers()) == {tuple(available)}
    shop.stop()


@pytest.mark.slow
def test_connections_wait_for_the_next_workers_when_all_are_killed(service):
    for worker in service.workers():
        worker.kill()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(get, [service.port] * 8)) == [{"status": "ok"}] * 8


@pytest.mark.slow
def test_log_of_gunicorn_is_json_after_hup(service):
    reload(service)
    before = len(service.log.read_text())
    with socket.create_connection(("127.0.0.1", service.port), timeout=SECONDS) as connection:
        connection.sendall(b"GET\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
    lines = wait_for(lambda: service.log.read_text()[before:], "gunicorn logs the rejection")
    assert [json.loads(line)["message"] for line in lines.splitlines()][-2:] == [
        "Invalid request from ip=127.0.0.1: Invalid HTTP request line",
        "request",
    ]


@pytest.mark.slow
def test_hup_finishes_a_request_in_flight(service):
    body = b'{"coupon": {"code": "hup"}}'
    with closing(begin(service, body)) as connection:
        old = service.workers()
        service.process.send_signal(signal.SIGHUP)
        wait_for(lambda: len(service.workers()) > len(old), "the new workers start")
        connection.sendall(body)
        status, created = response_of(connection)
    assert (status, created["coupon"]["code"]) == (201, "hup")


@pytest.fixture
def patient_worker(shop, code):
    """A worker that waits for clients longer than a busy machine takes to be one of them."""
    module = code / "server" / "gunicorn_worker.py"
    before = module.read_text()
    patient = before.replace("\nSTOP_SECONDS = 1.2\n", "\nSTOP_SECONDS = 20.0\n")
    assert patient != before
    module.write_text(patient)
    if shop.process is not None and shop.process.poll() is None:
        shop.stop()
    yield
    module.write_text(before)


@pytest.mark.slow
def test_term_finishes_requests_in_flight_and_closes_kept_connections(patient_worker, service):
    body = b'{"coupon": {"code": "term"}}'
    kept = http.client.HTTPConnection("127.0.0.1", service.port, timeout=SECONDS)
    kept.request("GET", "/healthz")
    response = kept.getresponse()
    assert (response.read(), response.getheader("Connection")) == (
        b'{"status":"ok"}\n',
        "keep-alive",
    )
    with closing(begin(service, body)) as connection, closing(kept):
        service.process.terminate()
        wait_for(lambda: refuses(service.port), "a stopping service refuses new connections")
        kept.request("GET", "/healthz")
        response = kept.getresponse()
        assert (response.status, response.getheader("Connection")) == (200, "close")
        assert service.process.poll() is None
        connection.sendall(body)
        status, created = response_of(connection)
        assert (status, created["coupon"]["code"]) == (201, "term")
        assert service.process.wait(SECONDS) == 0


def has_connection(service):
    found = [each for worker in service.workers() for each in worker.net_connections("tcp")]
    return any(each.status == psutil.CONN_ESTABLISHED for each in found)


@pytest.mark.slow
def test_workers_release_the_address_when_the_main_process_is_killed(service):
    """Although one still handles a request. The next service could not start meanwhile."""
    caller, file = Caller(service.port, service.key), service.log.parent / "shop.db"
    with closing(caller), ThreadPoolExecutor(1) as pool:
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            created = pool.submit(caller.send, "POST", "/coupons", {"coupon": {"code": "killed"}})
            wait_for(lambda: has_connection(service), "the request has arrived")
            orphans = service.kill_master()
            wait_for(lambda: refuses(service.port), "the workers notice")
        assert created.result()[0] == 201
    _, alive = psutil.wait_procs(orphans, timeout=SECONDS)
    assert not alive


SIGNALS_EARLY = """
exec(open("gunicorn.conf.py").read())
settled = post_fork

def post_fork(server, worker):
    settled(server, worker)
    if worker.age == 1:
        Path({marker!r}).write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGTERM)
"""


@pytest.mark.slow
def test_a_worker_stops_on_a_signal_from_before_it_handles_signals(tmp_path):
    """The main process would wait for it for 30 seconds, and then kill it."""
    marker, configuration = tmp_path / "pid", tmp_path / "early.conf.py"
    configuration.write_text(SIGNALS_EARLY.format(marker=str(marker)))
    shop = {"DATABASE_URL": f"sqlite:///{tmp_path}/shop.db", "SECRET_KEY": SECRET}
    server = Gunicorn(tmp_path / "log", shop)
    server.start(GUNICORN_CMD_ARGS=f"--config {configuration}")
    try:
        wait_for(lambda: marker.exists() and marker.read_text(), "the first worker exists")
        first = int(marker.read_text())
        wait_for(lambda: not psutil.pid_exists(first), "the first worker stops")
        server.wait_until_ready("/healthz")
        assert [each.pid for each in server.workers()] != [first]
    finally:
        server.stop()
        server.close()
    assert "Traceback" not in server.log.read_text()


@pytest.mark.slow
def test_connections_that_arrive_at_once_are_shared_by_the_workers(service):
    """A worker that took all of them would have them for as long as clients keep them open."""
    wait_for(lambda: smallest_share(service, 16), "both workers accept connections")
    shares = sorted(smallest_share(service, 16) for _ in range(9))
    assert shares[4] >= 5, shares  # half of them, because a busy machine may delay a worker


def smallest_share(service, number):
    """Open connections at once, and return how many the worker with the fewest has."""
    with ExitStack() as stack:
        for _ in range(number):
            stack.enter_context(socket.create_connection(("127.0.0.1", service.port), SECONDS))
        wait_for(lambda: sum(connections(service)) == number, "all connections are accepted")
        share = min(connections(service))
    wait_for(lambda: not sum(connections(service)), "all connections are closed")
    return share


def connections(service):
    """Return how many connections each worker has."""
    return [
        sum(each.status == psutil.CONN_ESTABLISHED for each in worker.net_connections())
        for worker in service.workers()
    ]
