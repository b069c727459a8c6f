"""Configuration of gunicorn, which reads this file for ``gunicorn wsgi:app``.

On HUP, the main process reads this file again and starts new workers with the current code. The old
workers finish their requests and exit. docs/operations.md describes all signals.

The main process imports the packages that the app uses, so that its workers share their memory, but
not the app itself, which a reload could not replace. Under ``shop-api serve``, whose reload starts
another main process, it imports the app.
"""

import ctypes
import gc
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
from collections import Counter
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from structlog import processors, stdlib

# On HUP, the main process imports the worker again, in the version of this file.
for name in [name for name in sys.modules if name.partition(".")[0] == "server"]:
    del sys.modules[name]

host = os.environ.get("HOST") or "127.0.0.1"
bind = f"{f'[{host}]' if ':' in host else host}:{os.environ.get('PORT') or '8000'}"
worker_class = "server.gunicorn_worker.Worker"
workers = int(os.environ.get("WEB_CONCURRENCY") or os.cpu_count() or 1)
threads = int(os.environ.get("WEB_THREADS") or 4)
# A connection has a thread and a file descriptor, and half of the descriptors remain for files. A
# worker without free descriptors exits, so raise the soft limit, and accept fewer connections if
# that is impossible.
_, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
file_limit = hard_limit if 0 < hard_limit < 2400 else 2400
resource.setrlimit(resource.RLIMIT_NOFILE, (file_limit, hard_limit))
worker_connections = min(1000, (file_limit - 200) // 2)
keepalive = 30
# sendfile() would wait for slow clients inside the application's slot.
sendfile = False
# Seconds for requests in flight to finish after TERM and HUP.
graceful_timeout = 30
timeout = 60
# The heartbeat file is in memory, because a slow disk would stall the worker.
worker_tmp_dir = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  # nosec B108  # the heartbeat only
control_socket_disable = True
# Only the app trusts the headers of proxies (SHOP_TRUSTED_PROXIES). gunicorn would trust every
# process on this machine.
forwarded_allow_ips = ""
# Room for a search or a list of IDs in the URL.
limit_request_line = 8190
# The app logs each request itself, in JSON (app/observability/logs.py).
accesslog = None
loglevel = "warning"

PACKAGES = (
    "argon2", "dateutil.parser", "email_validator", "flask_smorest", "flask_sqlalchemy", "httpcore",
    "limits", "orjson", "psycopg", "sqlalchemy.dialects.postgresql", "sqlalchemy.dialects.sqlite",
    "sqlalchemy.ext.compiler", "sqlalchemy.orm",
)  # fmt: skip
"""Packages that workers inherit from the main process: two thirds of the memory of a worker."""

COLLECT_AFTER = 20_000
"""Number of new objects after which garbage is collected: a page of 100 orders has fewer."""

METRICS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
METRICS_PREFIX = "shop-metrics-"
PARENT_VARIABLE = "SERVE_PID"
READY_VARIABLE = "SERVE_READY"
PR_SET_PDEATHSIG = 1


def on_starting(server: Any) -> None:
    """Create the folder of the workers' metrics, and import what the workers share.

    The folder remains until the main process exits.
    """
    log_json(server)
    parent = os.environ.pop(PARENT_VARIABLE, None)
    if parent:
        stop_with(int(parent))
    remove_leftovers(Path(worker_tmp_dir or tempfile.gettempdir()))
    own = f"{METRICS_PREFIX}{os.getpid()}-"
    os.environ[METRICS_VARIABLE] = folder = tempfile.mkdtemp(prefix=own, dir=worker_tmp_dir)
    gc.disable()  # a collection of what is imported would find nothing
    if parent:
        server.app.wsgi()
        for file in Path(folder).iterdir():  # of this process, which has no current values
            file.unlink()
    else:
        for name in PACKAGES:
            import_module(name)
    gc.freeze()  # a collection in a worker would otherwise copy what it shares
    gc.enable()


def on_reload(server: Any) -> None:
    """Format the log again, which gunicorn has configured again."""
    log_json(server)


def pre_fork(server: Any, worker: Any) -> None:
    """Choose the CPU of a new worker: one with the fewest workers of this main process."""
    worker.inherited_signals = server.SIG_QUEUE
    if hasattr(os, "sched_setaffinity") and is_true(os.environ.get("WEB_CPU_AFFINITY")):
        cpus = sorted(os.sched_getaffinity(0))
        # Services on the same machine begin at different CPUs.
        first = os.getpid() % len(cpus)
        # Before a HUP, an earlier version of this file may have started workers without a CPU.
        taken = Counter(getattr(other, "cpu", None) for other in server.WORKERS.values())
        worker.cpu = min(cpus[first:] + cpus[:first], key=lambda cpu: taken[cpu])
    else:
        worker.cpu = None


def post_fork(_: Any, worker: Any) -> None:
    """Keep a worker on its CPU.

    Only one thread of a Python process runs at a time, and handing over to a thread on another CPU
    costs more than a short request. With two workers on two CPUs, this lowers the CPU time of
    GET /coupons/{id} by a sixth to a quarter (docs/performance.md).
    """
    if worker.cpu is not None:
        os.sched_setaffinity(0, {worker.cpu})


def post_worker_init(worker: Any) -> None:
    """Exclude the loaded app from garbage collection, connect to the database, count refusals.

    Then tell ``shop-api serve`` that this main process can replace the previous one.

    A full collection would examine all of its objects, which takes 100 ms or more, in the middle of
    any request. The database may be unavailable, so the worker does not wait for it.
    """
    gc.freeze()
    # Python would collect garbage many times while it builds one list, and find nothing.
    gc.set_threshold(COLLECT_AFTER)
    from app.db.session import open_connections  # noqa: PLC0415  # in a worker only

    threading.Thread(target=open_connections, args=(worker.wsgi,), daemon=True).start()
    from app.services.coupons.refusals import refusals_of  # noqa: PLC0415  # in a worker only

    refusals_of(worker.wsgi).start()
    if pipe := os.environ.get(READY_VARIABLE):
        with suppress(OSError):  # another worker was first
            os.write(int(pipe), b"1")


def log_json(server: Any) -> None:
    """Write gunicorn's own log lines as JSON with the keys of the app's lines."""
    formatter = stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            processors.add_log_level,
            processors.TimeStamper(fmt="iso", utc=True, key="timestamp"),
            processors.format_exc_info,
        ],
        processors=[
            stdlib.ProcessorFormatter.remove_processors_meta,
            processors.EventRenamer("message"),
            processors.JSONRenderer(),
        ],
    )
    for handler in server.log.error_log.handlers:
        handler.setFormatter(formatter)


def is_true(value: str | None) -> bool:
    """Return the value of a setting that is on by default."""
    return (value or "1").lower() in {"1", "true", "t", "yes", "y", "on"}


def stop_with(parent: int) -> None:
    """Stop when the parent process ends, even if it is killed. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it ended before the call
            os.kill(os.getpid(), signal.SIGTERM)


def remove_leftovers(folder: Path) -> None:
    """Remove the folders of killed main processes. Folder names contain the process ID."""
    for path in folder.glob(f"{METRICS_PREFIX}*-*"):
        pid = path.name.removeprefix(METRICS_PREFIX).partition("-")[0]
        with suppress(FileNotFoundError):  # another process has removed it
            if pid.isdigit() and path.stat().st_uid == os.getuid() and not is_running(int(pid)):
                shutil.rmtree(path, ignore_errors=True)


def is_running(pid: int) -> bool:
    """Return whether a process with this ID exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def child_exit(_: Any, worker: Any) -> None:
    """Remove an exited worker from current values, such as open connections."""
    if any(Path(os.environ[METRICS_VARIABLE]).iterdir()):
        from prometheus_client.multiprocess import mark_process_dead  # noqa: PLC0415  # with metrics only

        mark_process_dead(worker.pid)


def on_exit(_: Any) -> None:
    """Remove the folder of the metrics."""
    shutil.rmtree(os.environ[METRICS_VARIABLE], ignore_errors=True)
