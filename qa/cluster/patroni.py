"""Three database machines with etcd, Patroni and PostgreSQL, from the configuration in ``deploy``.

Where the kernel permits it, each machine has a network namespace, so that it can be partitioned from
the others. Otherwise, each has an address of the loopback interface.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path
from random import SystemRandom

import psutil
import psycopg

from qa.cluster import programs
from qa.cluster.cluster import Cluster, wait_until
from qa.cluster.pgbouncer import PgBouncer
from qa.cluster.postgresql import DATABASE, PASSWORD, SUPERUSER, USER
from qa.cluster.proxies import Proxy
from tests.serving import ROOT, SECRET, new_shop

NAMES = ("db-1", "db-2", "db-3")
DOCUMENTED = "192.0.2."
"""Prefix of all addresses in ``deploy``."""

SECONDS = 90  # more than a failover takes on a busy machine


class Network:
    """Addresses of the machines, in network namespaces if possible."""

    def __init__(self):
        number = SystemRandom().randrange(1 << 14)
        self._id = f"{number:x}"
        self.has_namespaces = False
        if os.getuid() == 0 and shutil.which("ip") and shutil.which("setpriv"):
            self.prefix = f"10.{192 + (number >> 8)}.{number & 255}."
            self.has_namespaces = self._create()
        if not self.has_namespaces:
            self.prefix = f"127.{64 + (number >> 8)}.{number & 255}."

    def _create(self):
        try:
            self._ip("link", "add", f"shopb{self._id}", "type", "bridge")
            self._ip("addr", "add", f"{self.prefix}1/24", "dev", f"shopb{self._id}")
            self._ip("link", "set", f"shopb{self._id}", "up")
            for number, _ in enumerate(NAMES, 1):
                name, outside, inside = self._names(number)
                self._ip("netns", "add", name)
                self._ip("link", "add", outside, "type", "veth", "peer", "name", inside)
                self._ip("link", "set", inside, "netns", name)
                self._ip("link", "set", outside, "master", f"shopb{self._id}", "up")
                within = ("-n", name)
                self._ip(*within, "addr", "add", f"{self.prefix}{20 + number}/24", "dev", inside)
                self._ip(*within, "link", "set", inside, "up")
                self._ip(*within, "link", "set", "lo", "up")
        except subprocess.CalledProcessError:
            self.close()
            return False
        return True

    def _names(self, number):
        return f"shop{self._id}-{number}", f"shopo{self._id}{number}", f"shopi{self._id}{number}"

    def _ip(self, *arguments):
        subprocess.run(["ip", *arguments], check=True, capture_output=True)

    def start(self, number, program, *arguments, log, **environment):
        """Start a program on a machine."""
        command = [programs.find(program), *map(str, arguments)]
        if not self.has_namespaces:
            user = programs.user()
        else:
            # `ip` needs privileges, which the program must not have.
            owner, user = programs.user(), None
            drop = ["setpriv", f"--reuid={owner}", f"--regid={owner}", "--clear-groups"]
            command = ["ip", "netns", "exec", self._names(number)[0], *drop, *command]
        with log.open("a") as output:
            return subprocess.Popen(
                command,
                user=user,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"} | environment,
                cwd="/",
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def partition(self, number, *, is_connected=False):
        """Disconnect a machine from all others, or connect it again."""
        self._ip("link", "set", self._names(number)[1], "up" if is_connected else "down")

    def close(self):
        """Remove the interfaces and namespaces."""
        for number, _ in enumerate(NAMES, 1):
            with suppress(subprocess.CalledProcessError):
                self._ip("netns", "delete", self._names(number)[0])
        with suppress(subprocess.CalledProcessError):
            self._ip("link", "delete", f"shopb{self._id}")


class Node:
    """A database machine."""

    def __init__(self, folder, network, number):
        self.name, self.number = f"db-{number}", number
        self.folder, self.network = folder / self.name, network
        self.folder.mkdir()
        programs.give(self.folder)
        self.host = f"{network.prefix}{20 + number}"
        self.log = folder / f"{self.name}.log"
        self.etcd = self.patroni = None

    def _shipped(self, name):
        """Return a file of ``deploy`` for this machine."""
        text = (ROOT / "deploy" / name).read_text()
        # First the lines with the address of the machine itself, which lists of all do not match.
        own = re.compile(r"(?m)^(.*)192\.0\.2\.21(:\d+)$")
        if self.number > 1:
            text = own.sub(rf"\g<1>{self.host}\2", text)
            text = re.sub(r"(?m)^(name: |ETCD_NAME=)db-1$", rf"\1{self.name}", text)
        if not self.network.has_namespaces:
            text = text.replace(f"{DOCUMENTED}0/24", "127.0.0.0/8")
        return text.replace(DOCUMENTED, self.network.prefix)

    def start(self):
        """Start etcd and Patroni, unless they run."""
        self.start_etcd()
        self.start_patroni()

    def start_etcd(self):
        """Start etcd, unless it runs."""
        if self.etcd and self.etcd.poll() is None:
            return
        lines = self._shipped("etcd.env").replace("/var/lib/etcd", str(self.folder / "etcd"))
        settings = dict(
            line.split("=", 1) for line in lines.splitlines() if line and line[0] != "#"
        )
        self.etcd = self.network.start(
            self.number, "etcd", "--logger=zap", log=self.folder.with_suffix(".etcd"), **settings
        )

    def start_patroni(self):
        """Start Patroni, which starts PostgreSQL, unless it runs."""
        if self.patroni and self.patroni.poll() is None:
            return
        text = self._shipped("patroni.yml")
        for old, new in (
            ("/var/lib/postgresql/15/shop", str(self.folder / "data")),
            ("/var/lib/postgresql/shop.pgpass", str(self.folder / "pgpass")),
            ("/usr/lib/postgresql/15/bin", str(Path(programs.find("postgres")).resolve().parent)),
            ("/var/run/postgresql", str(self.folder)),
            ("change-me", PASSWORD),
            ("/dev/watchdog", str(self.folder / "no-watchdog")),
        ):
            assert old in text, old
            text = text.replace(old, new)
        file = self.folder / "patroni.yml"
        file.write_text(text)
        programs.give(file)
        self.patroni = self.network.start(self.number, "patroni", file, log=self.log)

    def state(self):
        """Return what Patroni reports about this machine, or an empty dict."""
        url = f"http://{self.host}:8008/patroni"
        with suppress(OSError, ValueError), urllib.request.urlopen(url, timeout=3) as response:
            return json.load(response)
        return {}

    def postgres(self):
        """Return the processes of PostgreSQL, the main process first."""
        with suppress(OSError, ValueError, IndexError, psutil.NoSuchProcess):
            main = psutil.Process(int((self.folder / "data/postmaster.pid").read_text().split()[0]))
            if main.name().startswith("postgres"):
                return [main, *main.children(recursive=True)]
        return []

    def processes(self, *parts):
        """Return the running processes of ``postgres``, ``patroni`` and ``etcd``, by default of all."""
        found = []
        for part in parts or ("patroni", "postgres", "etcd"):
            if part == "postgres":
                found += self.postgres()
            elif (process := getattr(self, part)) and process.poll() is None:
                found.append(psutil.Process(process.pid))
        return found

    def send_signal(self, number, *parts):
        """Send a signal to all processes of parts, the parents first."""
        processes = self.processes(*parts)
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        if number == signal.SIGKILL:
            for part in ("patroni", "etcd"):
                if (process := getattr(self, part)) and part in (parts or ("patroni", "etcd")):
                    process.wait()
            psutil.wait_procs(processes, timeout=10)

    def close(self):
        """Kill everything, also what is frozen."""
        self.send_signal(signal.SIGKILL)


class PatroniCluster(Cluster):
    """Three database machines, and services that reach the primary through HAProxy."""

    def __init__(self, logs=None):
        self.folder = programs.new_folder()
        self._logs_of_run = logs
        self.network = Network()
        self.nodes = [Node(self.folder, self.network, number) for number in (1, 2, 3)]
        self.proxies, self.services, self.workers = {}, {}, []
        self.bouncer = self.key = None
        self.front = None

    def start(self):
        """Start the machines, and create the tables and a key."""
        for node in self.nodes:
            node.start_etcd()
        for node in self.nodes:
            node.start_patroni()
        wait_until(self.is_healthy, 2 * SECONDS)
        for statement in (
            f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'",
            f"GRANT pg_read_all_stats TO {USER}",
            f"CREATE DATABASE {DATABASE} OWNER {USER}",
        ):
            self.query(statement)
        settings = {"DATABASE_URL": self._connect("setup"), "SECRET_KEY": SECRET}
        self.key = new_shop(settings | {"INSTANCE_PATH": str(self.folder / "instance")})

    def _connect(self, machine):
        """Start the HAProxy of a machine of the service; return the URL of the database."""
        proxy = Proxy(self.folder, "haproxy", f"{machine}-haproxy")
        text = (ROOT / "deploy" / "haproxy-postgresql.cfg").read_text()
        for old, new in (
            ("log /dev/log local0", "log stdout format raw local0"),
            ("bind 127.0.0.1:5000", f"bind 127.0.0.1:{proxy.port}"),
            (DOCUMENTED, self.network.prefix),
        ):
            assert old in text
            text = text.replace(old, new)
        proxy.configure(text)
        proxy.start()
        self.proxies[machine] = proxy
        address = f"127.0.0.1:{proxy.port}/{DATABASE}?target_session_attrs=read-write"
        url = f"postgresql://{USER}:{PASSWORD}@{address}"

        # Before its first checks, HAProxy connects to the standbys, too.
        down = re.compile(r"Server primary/(db-\d) is DOWN")
        wait_until(lambda: len(set(down.findall(proxy.log.read_text()))) == len(NAMES) - 1)
        return url

    def _settings(self, settings):
        return {"SECRET_KEY": SECRET} | settings

    def serve_on(self, name, *, is_pooled=False, **settings):
        """Start a service on a machine of its own, with its own HAProxy, and PgBouncer if wanted."""
        url = self._connect(name)
        if is_pooled:
            self.bouncer = PgBouncer(self.folder)
            self.bouncer.lead_to("127.0.0.1", self.proxies[name].port)
            self.bouncer.start()
            url = self.bouncer.url(DATABASE)
            settings["DATABASE_POOLER"] = "transaction"
        return self.serve(name, DATABASE_URL=url, **settings)

    def query(self, statement, database="postgres"):
        """Run a statement as the superuser on the primary."""
        url = f"postgresql://{SUPERUSER}:{PASSWORD}@{self.leader().host}:5432/{database}"
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def leader(self):
        """Return the machine that Patroni has made the primary, or None."""
        found = [node for node in self.nodes if is_primary(node.state())]
        return found[0] if len(found) == 1 else None

    def standby(self):
        """Return the synchronous standby."""
        return next(node for node in self.nodes if node.state().get("sync_standby"))

    def is_healthy(self):
        """Return whether there is a primary with a synchronous and another standby that stream."""
        states = [node.state() for node in self.nodes]
        leaders = [each for each in states if is_primary(each)]
        if len(leaders) != 1 or any(each.get("state") != "running" for each in states):
            return False
        links = leaders[0].get("replication") or []
        return (
            sum(link["state"] == "streaming" for link in links) == len(NAMES) - 1
            and sum(bool(each.get("sync_standby")) for each in states) == 1
        )

    def close(self):
        """Stop everything and remove the folder."""
        for worker in self.workers:
            worker.terminate()
        for service in self.services.values():
            service.close()
        for worker in self.workers:
            worker.wait(SECONDS)
        more = [each for each in (self.bouncer, self.front) if each]
        for proxy in [*more, *self.proxies.values()]:
            proxy.close()
        for node in self.nodes:
            node.close()
        self.network.close()
        self.remove_folder()


def is_primary(state):
    """Return whether a state that Patroni has reported is that of the primary."""
    return state.get("role") in {"master", "primary"}


@contextmanager
def running_patroni(**options):
    """Run a cluster with Patroni for as long as the block lasts."""
    cluster = PatroniCluster(**options)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()
