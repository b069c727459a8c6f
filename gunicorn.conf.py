"""How gunicorn serves: it reads this file by itself (``gunicorn wsgi:app``)."""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import server

host = os.environ.get("HOST") or "127.0.0.1"
bind = f"{f'[{host}]' if ':' in host else host}:{os.environ.get('PORT') or '8000'}"
worker_class = server.Worker
workers = int(os.environ.get("WEB_CONCURRENCY") or os.cpu_count() or 1)
threads = int(os.environ.get("WEB_THREADS") or 4)
pre_fork = server.place_worker
on_reload = server.handover.begin
keepalive = 30
# Requests in flight finish after TERM and HUP.
graceful_timeout = 30
timeout = 60
# The heartbeat file belongs in memory: on a slow disk it would stall a worker.
worker_tmp_dir = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  # nosec B108  # the heartbeat only
control_socket_disable = True
# Only the app believes what a proxy says, and only where there is one (SHOP_TRUSTED_PROXIES);
# gunicorn would believe everything on this machine.
forwarded_allow_ips = ""
# Room for a search or a list of ids in the address.
limit_request_line = 8190
# The app logs each request itself, in JSON (app/logging.py).
accesslog = None
logger_class = server.Logger
loglevel = "warning"

METRICS = "PROMETHEUS_MULTIPROC_DIR"
METRICS_FOLDER = "shop-metrics-"


def on_starting(arbiter: Any) -> None:
    """Listen, and make the folder in which the workers count for /metrics; it outlives them.

    Each worker has a listening socket: without it the one that wakes first takes all keep-alive
    connections.
    """
    server.open_listeners(arbiter)
    remove_leftovers(Path(worker_tmp_dir or tempfile.gettempdir()))
    own = f"{METRICS_FOLDER}{os.getpid()}-"
    os.environ[METRICS] = tempfile.mkdtemp(prefix=own, dir=worker_tmp_dir)


def remove_leftovers(folder: Path) -> None:
    """Remove the folders of main processes that were killed; their names hold the process ids."""
    for left in folder.glob(f"{METRICS_FOLDER}*-*"):
        pid = left.name.removeprefix(METRICS_FOLDER).partition("-")[0]
        with suppress(FileNotFoundError):  # its process has just removed it
            if pid.isdigit() and left.stat().st_uid == os.getuid() and not is_running(int(pid)):
                shutil.rmtree(left, ignore_errors=True)


def is_running(pid: int) -> bool:
    """Tell whether there is a process with this id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def child_exit(_: Any, worker: Any) -> None:
    """Take a worker that has ended out of what is counted now, as its connections."""
    if any(Path(os.environ[METRICS]).iterdir()):
        from prometheus_client.multiprocess import mark_process_dead  # noqa: PLC0415  # with metrics only

        mark_process_dead(worker.pid)


def on_exit(_: Any) -> None:
    """Remove the folder."""
    shutil.rmtree(os.environ[METRICS], ignore_errors=True)
