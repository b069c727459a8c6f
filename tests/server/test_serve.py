"""``serve`` starts, stops and replaces gunicorn and a worker together (events 2)."""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from urllib.request import urlopen

import psutil
import pytest

from tests.serving import PATIENCE, ROOT, SECRET, Gunicorn, new_shop
from tests.webhooks.receivers import until


@pytest.fixture
def serve(tmp_path):
    """Return a function: start ``serve`` on an empty shop and return it once it is ready."""
    shop = {"DATABASE_URL": f"sqlite:///{tmp_path}/shop.db", "SECRET_KEY": SECRET}
    server = Gunicorn(tmp_path / "log", shop)
    new_shop(shop | {"INSTANCE_PATH": str(tmp_path)})

    def start(stdout=None, **env):
        with server.log.open("ab") as output:
            server.process = subprocess.Popen(
                [sys.executable, "-m", "app.main", "serve"],
                cwd=ROOT,
                env=server.environment | env,
                stdout=stdout or output,
                stderr=output,
            )
        server.wait_until_ready()
        return psutil.Process(server.process.pid)

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
    for child in process.children():
        with suppress(psutil.NoSuchProcess):  # also a zombie, which serve has not waited for yet
            if "app.main" in child.cmdline():
                return child
    return None


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
def test_nothing_is_left_when_serve_is_killed(serve):
    process = serve()
    until(lambda: worker_of(process), "a worker")
    family = family_of(process.pid)
    process.kill()
    assert ended(family)


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
def test_reload_replaces_the_worker(serve):
    process = serve()
    worker = until(lambda: worker_of(process), "a worker")
    process.send_signal(signal.SIGHUP)
    until(lambda: (found := worker_of(process)) and found.pid != worker.pid, "a new worker")
    assert process.is_running()


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
