"""A primary with standbys and PgBouncer, and the services that use them."""

import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager

from qa.cluster import programs
from qa.cluster.client import Client
from qa.cluster.pgbouncer import PgBouncer
from qa.cluster.postgresql import DATABASE, PASSWORD, PATIENCE, USER, PostgreSQL
from tests.serving import ROOT, SECRET, Gunicorn, new_shop

# The previous release has server.py, and this one the package.
CODE = ("app", "migrations", "server", "server.py", "wsgi.py", "gunicorn.conf.py")


class Cluster:
    """PostgreSQL servers with an empty shop, PgBouncer, and any number of services.

    Args:
        replicas: number of standbys.
        settings: more lines of postgresql.conf, for all servers.
        logs: folder to which the logs are copied at the end.
    """

    def __init__(self, replicas=2, settings="", logs=None):
        self.folder = programs.new_folder()
        self._logs_of_run = logs
        self.primary = PostgreSQL(self.folder, "primary", settings)
        self.replicas = [PostgreSQL(self.folder, f"replica-{n + 1}") for n in range(replicas)]
        self.bouncer = None
        self.services, self.workers = {}, []
        self.key = None

    @property
    def servers(self):
        """All PostgreSQL servers, in the order in which they were created."""
        return sorted([self.primary, *self.replicas], key=lambda server: server.name)

    def start(self):
        """Start the servers, and create the tables and a key."""
        self.primary.create()
        # Shows the timeline of the primary that a standby follows.
        self.primary.query(f"GRANT pg_read_all_stats TO {USER}")
        for replica in self.replicas:
            replica.clone(self.primary)
        settings = {"DATABASE_URL": self.primary.url(), "SECRET_KEY": SECRET}
        self.key = new_shop(settings | {"INSTANCE_PATH": str(self.folder / "instance")})
        self.wait_for_replicas()

    def start_bouncer(self, **options):
        """Start PgBouncer in front of the primary."""
        self.bouncer = PgBouncer(self.folder, **options)
        self.bouncer.lead_to("127.0.0.1", self.primary.port)
        self.bouncer.start()

    def wait_for_replicas(self):
        """Wait until all running standbys have replayed all writes of the primary."""
        for replica in self.replicas:
            if replica.is_running():
                replica.wait_for(self.primary)

    def url_of_any_primary(self):
        """Return a URL with all servers that finds the one that accepts writes."""
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.servers)
        return f"postgresql://{USER}:{PASSWORD}@{hosts}/{DATABASE}?target_session_attrs=read-write"

    def replica_urls(self):
        """Return the value of DATABASE_REPLICA_URLS for all standbys."""
        return " ".join(replica.url() for replica in self.replicas)

    # --- services ---

    def serve(self, name, code=ROOT, **settings):
        """Start a service as on a separate machine, with its own instance folder.

        Args:
            name: the name of the machine.
            code: the folder with the code.
            settings: environment variables. By default, the service uses the primary only.
        """
        machine, env = self._machine(name, code), self._settings(settings)
        service = Gunicorn(self.folder / f"{name}.log", env, patience=PATIENCE)
        self.services[name] = service
        service.start(folder=machine)
        service.wait_until_ready("/healthz")
        return service

    def work(self, name, code=ROOT, **settings):
        """Start a worker on a machine and return its process."""
        with (self.folder / f"{name}-worker.log").open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "app.main", "worker"],
                cwd=self._machine(name, code),
                env=os.environ | self._settings(settings),
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.workers.append(process)
        return process

    def _machine(self, name, code):
        """Return the folder of a machine, with links to the code and an instance folder."""
        machine = self.folder / name
        (machine / "instance").mkdir(parents=True, exist_ok=True)
        for part in CODE:
            if (code / part).exists() and not (machine / part).exists():
                (machine / part).symlink_to(code / part)
        return machine

    def _settings(self, settings):
        return {"DATABASE_URL": self.primary.url(), "SECRET_KEY": SECRET} | settings

    def client(self, service, key=None):
        """Return a client of a service, by default with the key of an administrator."""
        return Client(service.port, key or self.key)

    def logs(self):
        """Return the logs of all servers, services and workers."""
        return sorted([*self.folder.glob("*.log"), *self.folder.glob("*.etcd")])

    def close(self):
        """Stop everything and remove the folder."""
        for worker in self.workers:
            worker.terminate()
        for service in self.services.values():
            service.close()
        for worker in self.workers:
            worker.wait(PATIENCE)
        if self.bouncer:
            self.bouncer.close()
        for server in [*self.replicas, self.primary]:
            server.close()
        self.remove_folder()

    def remove_folder(self):
        """Remove the folder, except for the logs, which are copied for the run."""
        if self._logs_of_run:
            for log in self.logs():
                shutil.copyfile(log, self._logs_of_run / log.name)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def running_cluster(**options):
    """Run a cluster for as long as the block lasts."""
    cluster = Cluster(**options)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


def wait_until(is_true, seconds=PATIENCE):
    """Call a function until its value is true, and return the value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := is_true():
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} seconds")
