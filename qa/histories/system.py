"""The shop of a run: two services, a delivery worker and a database.

The first service has two workers. The second one has one, and a clock that can be wrong.
"""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import psutil
import psycopg

from qa.cluster import programs
from qa.cluster.cluster import Cluster, wait_until
from qa.histories import forks
from qa.histories.client import Client
from qa.histories.databases import PostgreSQL, SQLite
from qa.histories.generator import NOT_ERASED, STATUSES
from qa.histories.proxy import Proxy
from tests.serving import ROOT, SECRET, Gunicorn, new_shop
from tests.webhooks.receivers import LOOPBACK

PATIENCE = 300  # seconds; a start takes three on an idle machine
SKEW = 10  # seconds
LAGS = "300ms", "2s"
PLUGIN = """[shop_api.plugins]
histories = qa.histories.plants
"""


class Shop:
    """Processes that can be killed, stopped and started.

    Args:
        seed: of the faults.
        plant: name of the defect to start the service with, or an empty string.
    """

    replicas = ""
    targets: tuple[str, ...] = ()

    def __init__(self, seed: int, plant: str = "") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="shop-histories-"))
        self.folder.chmod(0o755)
        self.random = Random(seed)
        self._seed, self._plant = seed, plant
        self.services: list[Gunicorn] = []
        self.proxy: Any = None
        self.worker: subprocess.Popen[bytes] | forks.Fork | None = None
        self.orphans: list[psutil.Process] = []
        self.stopped: list[psutil.Process] = []
        self.key: Any = None
        self.keys: list[tuple[str, str]] = []  # of the clients
        self._clock = self.folder / "clock"
        self.set_clock(0)

    # --- the database; each kind has its own ---

    def start_database(self) -> str:
        """Start the database; return its URL."""
        raise NotImplementedError

    def restart_database(self) -> None:
        """Start what was killed."""

    def fill(self, seconds: float) -> bool:
        """Let no service write for a time."""
        raise NotImplementedError

    def close_database(self) -> None:
        """Stop the server."""

    # --- processes ---

    def start(self) -> None:
        """Start everything and wait until it is ready."""
        url = self.start_database()
        self._install_plugin()
        settings = {
            "DATABASE_URL": url,
            "SECRET_KEY": SECRET,
            "SHOP_PAGE_SIZE": "1000000",
            "SHOP_WEBHOOK_ALLOWED_NETWORKS": LOOPBACK,
            "SHOP_ERASABLE_STATUSES": ",".join(STATUSES),
            "SHOP_ERASURE_KEEPS_METADATA": ",".join(NOT_ERASED),
            "HISTORIES_PLANT": self._plant,
            "PYTHONPATH": f"{self.folder}:{ROOT}",
            "PYTHONDONTWRITEBYTECODE": "",  # otherwise each start compiles everything again
        }
        if self.replicas:
            settings["DATABASE_REPLICA_URLS"] = self.replicas
        paths = {"INSTANCE_PATH": str(self.folder / "instance")}
        self.key = self.key or new_shop({"DATABASE_URL": url, "SECRET_KEY": SECRET} | paths)
        skewed = settings | {"HISTORIES_CLOCK": str(self._clock)}
        for number, (env, workers) in enumerate(((settings, "2"), (skewed, "1"))):
            more = {"WEB_CONCURRENCY": workers, "WEB_THREADS": "8"}
            log = self.folder / f"service-{number}.log"
            kind = forks.ForkedGunicorn if self._plant else Gunicorn
            service = kind(log, env | more, patience=PATIENCE)
            service.start()
            self.services.append(service)
        self._settings = settings
        self.start_worker()
        for service in self.services:
            _wait_until_ready(service)
        self.proxy = Proxy(self.services[0].port, self._seed)
        self.keys = [(self.key.consumer_key, self.key.consumer_secret)]
        client = Client(self.services[0].port, self.keys[0])
        for permission in ("read_write", "read"):
            new = {"key": {"permission": permission, "description": permission}}
            status, body = client.exchange("POST", "/keys", new)
            assert status == 201, body
            self.keys.append((body["key"]["consumer_key"], body["key"]["consumer_secret"]))
        client.close()

    def _install_plugin(self) -> None:
        """Let the processes load ``qa.histories.plants`` as a plugin."""
        package = self.folder / "histories_plugin-1.0.dist-info"
        package.mkdir()
        (package / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: histories_plugin\nVersion: 1.0\n"
        )
        (package / "entry_points.txt").write_text(PLUGIN)

    def start_worker(self) -> None:
        """Start a delivery worker, unless one runs."""
        if self.worker is not None and self.worker.poll() is None:
            return
        log_file = self.folder / "worker.log"
        if self._plant:
            self.worker = forks.start(["shop-api", "worker"], log_file, self._settings)
        else:
            with log_file.open("ab") as log:
                self.worker = subprocess.Popen(
                    [sys.executable, "-m", "app.main", "worker"],
                    cwd=ROOT,
                    env=os.environ | self._settings,
                    stdout=log,
                    stderr=log,
                )

    def repair(self) -> None:
        """Continue what is stopped, start what was killed, and wait until all are ready."""
        for process in self.stopped:
            with suppress(psutil.NoSuchProcess):
                process.resume()
        self.stopped = []
        self.restart_database()
        psutil.wait_procs(self.orphans, timeout=PATIENCE)
        self.orphans = []
        for service in self.services:
            if service.process is None or service.process.poll() is not None:
                service.start()
        self.start_worker()
        for service in self.services:
            _wait_until_ready(service)
        wait_until(lambda: not self.proxy.pending)

    def is_ready(self) -> bool:
        """Return whether both services respond."""
        return all(map(_is_ready, self.services))

    def ports(self) -> list[int]:
        """Return the ports that clients use in turn."""
        first, second = (service.port for service in self.services)
        return [first, self.proxy.port, first, second]

    def logs(self) -> list[Path]:
        """Return the logs of the services and of the delivery worker."""
        return sorted(self.folder.glob("*.log"))

    def close(self) -> None:
        """Stop everything and remove the folder."""
        for process in self.stopped:
            with suppress(psutil.NoSuchProcess):
                process.resume()
        if self.proxy:
            self.proxy.close()
        if self.worker and self.worker.poll() is None:
            self.worker.kill()
            self.worker.wait()
        for service in self.services:
            service.close()
        self.close_database()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- faults; each returns whether it has happened ---

    def kill_worker(self) -> bool:
        """Kill one worker process. The main process starts another one."""
        service = self.random.choice(self.services)
        with suppress(psutil.NoSuchProcess, IndexError):
            self.random.choice(service.workers()).kill()
            return True
        return False

    def kill_main(self) -> bool:
        """Kill the main process of a service and start it again. Its workers finish."""
        service = self.random.choice(self.services)
        if service.process is None or service.process.poll() is not None:
            return False
        service.process.send_signal(signal.SIGSTOP)  # so that it starts no other workers
        orphans = service.workers()
        service.process.kill()
        service.process.wait()
        self.orphans += orphans
        psutil.wait_procs(orphans, timeout=PATIENCE)
        service.start()
        return True

    def kill_deliverer(self) -> bool:
        """Kill the delivery worker and start it again."""
        if self.worker:
            self.worker.kill()
            self.worker.wait()
        self.start_worker()
        return True

    def stop_worker(self) -> bool:
        """Freeze a worker for two seconds, in which its reservations expire."""
        service = self.random.choice(self.services)
        try:
            process = self.random.choice(service.workers())
            process.suspend()
            self.stopped.append(process)
            time.sleep(self.random.uniform(0.8, 2.2))
            process.resume()
        except (psutil.NoSuchProcess, IndexError):
            return False
        return True

    def reload(self) -> bool:
        """Send HUP, after which the service has new workers."""
        service = self.random.choice(self.services)
        if service.process is None or service.process.poll() is not None:
            return False
        service.process.send_signal(signal.SIGHUP)
        return True

    def set_clock(self, seconds: int) -> None:
        """Set the clock of the second service ahead or back."""
        new = self._clock.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(self._clock)

    def exhaust(self) -> bool:
        """Let no connection or no lock be free for a second."""
        return self.fill(1.0)


def _is_ready(service: Gunicorn) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _wait_until_ready(service: Gunicorn) -> None:
    """Wait until a service responds. A worker that is killed takes connections with it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if service.process is None or service.process.poll() is not None:
            service.start()  # a worker of a killed process had kept the port
        if _is_ready(service):
            return
        time.sleep(0.05)
    raise AssertionError(f"not ready: {service.workers()}\n{service.last_of_log()}")


class OnSQLite(Shop):
    """A shop on SQLite."""

    def start_database(self) -> str:
        self._database = SQLite(self.folder)
        self._database.start()
        return self._database.url

    def fill(self, seconds: float) -> bool:
        import sqlite3  # noqa: PLC0415  # here only

        connection = sqlite3.connect(self._database.file, timeout=10, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            time.sleep(seconds)
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return False
        finally:
            connection.close()
        return True


class OnPostgreSQL(Shop):
    """A shop on a PostgreSQL server."""

    targets = ("kill_database",)

    def start_database(self) -> str:
        runtime = self.folder / "runtime"
        runtime.mkdir(mode=0o700)
        self._database = PostgreSQL(runtime)
        self._database.start()
        return str(self._database.url)

    def logs(self) -> list[Path]:
        return [*super().logs(), self._database.log]

    def restart_database(self) -> None:
        self._database.start()

    def kill_database(self) -> bool:
        """Kill the process of a connection, or the main process."""
        try:
            if self.random.random() < 0.5:
                self._database.kill_backend(self.random)
            else:
                self._database.kill_postmaster()
        except (psycopg.OperationalError, IndexError):
            return False
        self._database.start()
        return True

    def fill(self, seconds: float) -> bool:
        return fill_server(self._database.url, seconds)

    def close_database(self) -> None:
        self._database.close()


def fill_server(url: str, seconds: float) -> bool:
    """Take all connections of a server for a time. Return whether it accepted any."""
    taken: list[Any] = []
    try:
        with suppress(psycopg.OperationalError):
            while len(taken) < 300:
                taken.append(psycopg.connect(url, connect_timeout=2))
        time.sleep(seconds)
    finally:
        for connection in taken:
            connection.close()
    return bool(taken)


class OnCluster(Shop):
    """A shop on a primary with two standbys, one of which confirms each commit."""

    targets = ("failover",)

    def start_database(self) -> str:
        self.cluster = Cluster(replicas=2)
        self.cluster.start()
        self.key = self.cluster.key
        self._synchronize()
        # Standbys lag behind, so that a read without a position shows an earlier state. One of them
        # lags more than a busy machine takes until the next request of a client.
        self._lags: dict[str, str] = {}
        for replica, lag in zip(self.cluster.replicas, LAGS, strict=True):
            self._set_lag(replica, lag)
        self.replicas = " ".join(server.url() for server in self.cluster.servers)
        self._old: Any = None
        return str(self.cluster.url_of_any_primary())

    def logs(self) -> list[Path]:
        return [*super().logs(), *self.cluster.logs()]

    def _set_lag(self, replica: Any, lag: str) -> None:
        self._lags[replica.name] = lag
        replica.configure(recovery_min_apply_delay=lag)

    def _synchronize(self) -> None:
        names = ", ".join(f'"{server.name}"' for server in self.cluster.servers)
        self.cluster.primary.configure(synchronous_standby_names=f"ANY 1 ({names})")

    def failover(self) -> bool:
        """Kill the primary and promote the standby that has received the most."""
        if self._old:
            return False
        cluster, old = self.cluster, self.cluster.primary
        old.kill()  # it does not come back before it is a standby
        received = "SELECT (pg_last_wal_receive_lsn() - '0/0')::bigint"
        new = max(cluster.replicas, key=lambda each: each.value(received))
        new.configure(recovery_min_apply_delay="0")
        new.promote()
        cluster.primary = new
        cluster.replicas = [each for each in cluster.replicas if each is not new]
        for replica in cluster.replicas:
            replica.follow(new)
        self._synchronize()
        self._old, self._lags[old.name] = old, self._lags[new.name]
        return True

    def restart_database(self) -> None:
        if old := self._old:
            old.clone(self.cluster.primary)
            self._set_lag(old, self._lags[old.name])
            self.cluster.replicas.append(old)
            self._old = None
        wait_until(lambda: all(map(_is_streaming, self.cluster.replicas)))

    def fill(self, seconds: float) -> bool:
        return fill_server(self.cluster.primary.url(), seconds)

    def close_database(self) -> None:
        self.cluster.close()


def _is_streaming(replica: Any) -> bool:
    with suppress(psycopg.OperationalError):
        return bool(replica.query("SELECT status FROM pg_stat_wal_receiver") == [("streaming",)])
    return False


SHOPS = {"sqlite": OnSQLite, "postgresql": OnPostgreSQL, "cluster": OnCluster}


def missing(database: str) -> str:
    """Return why a kind of shop cannot be started, or an empty string."""
    return programs.missing("initdb", "pg_basebackup", "postgres") if database == "cluster" else ""
