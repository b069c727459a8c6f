"""``serve`` starts, stops and replaces gunicorn and a worker together (events 2)."""

import os
import re
import signal
import subprocess
import sys
from contextlib import closing, suppress
from urllib.request import urlopen

import psutil
import pytest

from tests.server.service import begin, copied_code, get, load, refuses, response_of
from tests.serving import PATIENCE, ROOT, SECRET, Gunicorn, new_shop, wait_for
from tests.webhooks.receivers import until


@pytest.fixture
def serve(tmp_path):
    """Return a function: start ``serve`` on an empty shop and return it once it is ready."""
    shop = {"DATABASE_URL": f"sqlite:///{tmp_path}/shop.db", "SECRET_KEY": SECRET}
    server = Gunicorn(tmp_path / "log", shop)
    server.key = new_shop(shop | {"INSTANCE_PATH": str(tmp_path)})

    def start(stdout=None, folder=ROOT, *, wait=True, **env):
        with server.log.open("ab") as output:
            server.process = subprocess.Popen(
                [sys.executable, "-m", "app.main", "serve"],
                cwd=folder,
                env=server.environment | env,
                stdout=stdout or output,
                stderr=output,
            )
        if wait:
            server.wait_until_ready()
        return psutil.Process(server.process.pid)

    start.server = server
    yield start
    if server.process:
        family = family_of(server.process.pid)
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        server.process.wait()
    server.close()


def family_of(pid):
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def worker_of(process):
    """The worker: one that was started later, or the first, a copy of serve without children."""
    for child in process.children():
        with suppress(psutil.NoSuchProcess):  # also a zombie, which serve has not waited for yet
            command = child.cmdline()[-1:]
            if command == ["worker"] or (command == ["serve"] and not child.children()):
                return child
    return None


def gunicorns_of(process):
    """The main processes of gunicorn: those with workers."""
    found = []
    for child in process.children():
        with suppress(psutil.NoSuchProcess):  # the previous one, which ends
            found += [child] if child.children() else []
    return found


def ended(processes):
    return not psutil.wait_procs(processes, timeout=PATIENCE)[1]


@pytest.mark.slow
def test_serve_replaces_its_worker_and_stops_everything(serve):
    process = serve()
    worker = until(lambda: worker_of(process), "a worker")
    worker.kill()
    replaced = until(
        lambda: (found := worker_of(process)) and found.pid != worker.pid and found, "a new worker"
    )
    family = family_of(process.pid)
    assert replaced in family
    process.terminate()
    assert ended(family)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="gunicorn notices its parent on Linux only")
@pytest.mark.parametrize("killed", ["serve", "gunicorn"])
def test_nothing_is_left_when_a_main_process_is_killed(serve, killed):
    process = serve()
    until(lambda: worker_of(process), "a worker")
    family = family_of(process.pid)
    (process if killed == "serve" else gunicorns_of(process)[0]).kill()
    assert ended(family)


@pytest.mark.slow
def test_serve_refuses_connections_while_it_finishes_requests(serve):
    process = serve()
    body = b'{"coupon": {"code": "term"}}'
    with closing(begin(serve.server, body)) as connection:
        process.terminate()
        wait_for(lambda: refuses(serve.server.port), "a stopping service refuses connections")
        connection.sendall(body)
        status, created = response_of(connection)
    assert (status, created["coupon"]["code"]) == (201, "term")
    assert serve.server.process.wait(PATIENCE) == 0


@pytest.mark.slow
def test_a_worker_stops_if_serve_ended_before_it_started(tmp_path):
    shop = {"DATABASE_URL": f"sqlite:///{tmp_path}/shop.db", "SECRET_KEY": SECRET}
    new_shop(shop | {"INSTANCE_PATH": str(tmp_path)})
    ended_process = subprocess.Popen([sys.executable, "-c", ""])
    ended_process.wait()
    worker = subprocess.run(
        [sys.executable, "-m", "app.main", "worker"],
        cwd=ROOT,
        env=os.environ | shop | {"SERVE_PID": str(ended_process.pid)},
        timeout=PATIENCE,
        check=False,
    )
    assert worker.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT])
def test_serve_stops_everything_on_a_signal(serve, number):
    process = serve()
    until(lambda: worker_of(process), "a worker")
    family = family_of(process.pid)
    process.send_signal(number)
    assert ended(family)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_serve_handles_a_signal_that_arrives_while_its_last_program_starts(serve, number):
    process = serve(wait=False)
    while "server.supervisor" not in process.cmdline():  # without a pause, to be earlier than it
        pass
    family = family_of(process.pid)
    process.send_signal(number)
    if number == signal.SIGQUIT:
        assert ended(family)
        assert serve.server.process.wait(PATIENCE) == 0
    else:
        serve.server.wait_until_ready()
        wait_for(
            lambda: (found := gunicorns_of(process)) and found[0] not in family,
            "another gunicorn",
            PATIENCE,
        )


def reload(process):
    """Send HUP. Return when another gunicorn has replaced the present one, and the worker."""
    (serving,), worker = gunicorns_of(process), worker_of(process)
    process.send_signal(signal.SIGHUP)

    def is_replaced():
        found, present = gunicorns_of(process), worker_of(process)
        return len(found) == 1 and found != [serving] and present not in {None, worker}

    wait_for(is_replaced, "the new processes run", PATIENCE)


@pytest.mark.slow
def test_reload_under_load_loses_no_request_and_runs_new_code(serve, tmp_path):
    code = copied_code(tmp_path)
    process, port = serve(folder=code, WEB_CONCURRENCY="2"), serve.server.port
    view = code / "app" / "blueprints" / "system.py"
    before = view.read_text()
    with load(serve.server):
        view.write_text(before.replace('response({"status": "ok"})', 'response({"status": "new"})'))
        reload(process)
        assert get(port) == {"status": "new"}
        view.write_text(before)
        reload(process)
        assert get(port) == {"status": "ok"}
    process.terminate()
    assert serve.server.process.wait(PATIENCE) == 0


@pytest.mark.slow
def test_reload_of_code_that_cannot_start_changes_nothing(serve, tmp_path):
    code = copied_code(tmp_path)
    process = serve(folder=code)
    worker = until(lambda: worker_of(process), "a worker")
    family = family_of(process.pid)
    view = code / "app" / "blueprints" / "system.py"
    before = view.read_text()
    view.write_text("not Python")
    process.send_signal(signal.SIGHUP)
    told = "The new gunicorn ended with status 3. The previous one continues."
    wait_for(lambda: told in serve.server.log.read_text(), "it is told", PATIENCE)
    assert (get(serve.server.port), worker_of(process)) == ({"status": "ok"}, worker)
    assert family_of(process.pid) == family
    view.write_text(before)
    reload(process)
    assert get(serve.server.port) == {"status": "ok"}


@pytest.mark.slow
def test_serve_counts_metrics_before_and_after_a_reload(serve):
    process = serve(SHOP_METRICS="1", WEB_CONCURRENCY="2")

    def count():
        for _ in range(3):
            get(serve.server.port)
        with urlopen(f"{serve.server.url}/metrics") as page:
            text = page.read().decode()
        return float(re.search(r'shop_http_requests_total{.*"/healthz",.*} ([\d.]+)', text)[1])

    assert count() == 3
    reload(process)
    assert count() == 3  # of the new main process


@pytest.mark.slow
def test_serve_starts_no_worker_on_request(serve):
    process = serve(SHOP_WORKER="0")
    assert "gunicorn" in " ".join(process.cmdline())
    assert worker_of(process) is None


@pytest.mark.slow
def test_serve_prints_a_link_that_signs_in_on_a_terminal_only(serve, tmp_path):
    leader, terminal = os.openpty()
    serve(stdout=terminal)
    os.close(terminal)
    text = ""
    while "sign-in" not in text:
        text += os.read(leader, 4096).decode()
    link = re.search(r"http://\S+/admin/sign-in\?token=\S+", text)[0]
    with urlopen(link) as page:
        assert "Sign in as" in page.read().decode()
    log = (tmp_path / "log").read_text()
    assert link.partition("token=")[2] not in log
    os.close(leader)
