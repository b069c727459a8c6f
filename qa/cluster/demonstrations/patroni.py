"""Patroni, etcd and HAProxy: each part is killed, frozen and partitioned under load.

Nobody repairs the cluster: Patroni promotes the synchronous standby and HAProxy finds it. Clients keep
journals of what was acknowledged, which must equal what is stored afterwards.
"""

import http.client
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from random import Random
from threading import Event

from qa.cluster import proxies
from qa.cluster.cluster import wait_until
from qa.cluster.demonstrations.failover import Probe
from qa.cluster.patroni import SECONDS
from qa.cluster.writers import (
    KINDS,
    SHARED,
    Caller,
    new_client,
    new_journals,
    shared_problems,
    stored,
)

CLIENTS = 6
BEFORE, AFTER = (0.5, 2.0), 2.0  # seconds of traffic before a failure and after the recovery
FROZEN = 25.0  # seconds; longer than the ttl of the lock of the primary
NOTICED = 5.0  # seconds until HAProxy has closed the connections to a server that was demoted

TARGETS = (
    "kill-primary",
    "freeze-postgres",
    "freeze-patroni",
    "partition-primary",
    "kill-standby",
    "freeze-standby",
    "kill-etcd",
    "freeze-etcd",
    "lose-etcd",
    "lose-machines",
    "kill-haproxy",
    "freeze-haproxy",
    "kill-bouncer",
    "freeze-bouncer",
    "kill-service",
    "freeze-service",
    "upgrade",
)
"""What can happen. ``primary`` and ``standby`` are whole machines: etcd, Patroni and PostgreSQL.

``lose-etcd`` kills the other two processes of etcd, and ``lose-machines`` the other two machines."""

BY_DEFAULT = ("kill-primary", "freeze-postgres", "partition-primary", "kill-etcd", "upgrade")
"""What happens in a few minutes."""


class RepeatedCaller(Caller):
    """A caller behind a load balancer, which may repeat a DELETE whose response was lost."""

    def send(self, method, path, body=None):
        """Return the status and the body. A repeated DELETE has an unknown outcome."""
        status, answer = super().send(method, path, body)
        if method == "DELETE" and status == 404:
            raise http.client.HTTPException("the record may have been deleted by the first attempt")
        return status, answer


def run(cluster, seed, order=BY_DEFAULT):
    """Let failures happen in an order; return the problems and the figures.

    The second service uses PgBouncer.

    Args:
        order: what happens, one after the other, of TARGETS. Partitions need network namespaces.
    """
    settings = {
        "WEB_CONCURRENCY": "2",
        "SHOP_PAGE_SIZE": "1000000",
        "SHOP_TRUSTED_PROXIES": "1",
    }
    services = [
        cluster.serve_on("machine-1", **settings),
        cluster.serve_on("machine-2", is_pooled=True, **settings),
    ]
    cluster.work("machine-1", DATABASE_URL=services[0].environment["DATABASE_URL"])
    cluster.front = proxies.haproxy(cluster.folder, services, tls=False)
    cluster.front.start()
    this = _Run(cluster, Random(seed))
    for target in order:
        if target.startswith("partition") and not cluster.network.has_namespaces:
            this.skipped.append(target)
            continue
        this.let(target)
    return this.problems, this.figures()


class _Run:
    def __init__(self, cluster, random):
        self.cluster, self.random = cluster, random
        self.journals = new_journals(random, CLIENTS)
        self.problems, self.counts, self.outages = [], Counter(), {}
        self.skipped, self.more = [], {}
        with closing(self._caller()) as caller:
            wait_until(lambda: caller.send("GET", "/coupons/count")[0] == 200)
            status, answer = caller.send("POST", "/coupons", {"coupon": SHARED})
        assert status == 201, answer

    def _caller(self):
        return RepeatedCaller(self.cluster.front.port, self.cluster.key)

    def let(self, target):
        """Let something happen under load, wait for the recovery, and compare what is stored."""
        action, _, part = target.partition("-")
        stop = Event()
        clients = [
            new_client(name, kind, journal, Random(self.random.random()), self._caller())
            for name, kind, journal in self.journals
        ]
        probe = Probe(self._caller())
        with ThreadPoolExecutor(CLIENTS) as pool:
            running = [pool.submit(client.run, stop) for client in clients]
            try:
                time.sleep(self.random.uniform(*BEFORE))
                probe.start()
                repair = getattr(self, f"_{action}")(part)
                wait_until(probe.is_served, SECONDS)
                repair()
                wait_until(probe.is_served, SECONDS)
                time.sleep(AFTER)
            finally:
                stop.set()
            for client in running:
                self.problems += client.result()
        self.outages[target] = max(self.outages.get(target, 0), probe.end())
        wait_until(self.cluster.is_healthy, SECONDS)
        self._compare()

    # --- what happens; each returns how to repair it ---

    def _program(self, part):
        """Return the HAProxy of the first machine, or the PgBouncer of the second one."""
        return self.cluster.bouncer if part == "bouncer" else self.cluster.proxies["machine-1"]

    def _node(self, part):
        return self.cluster.standby() if part == "standby" else self.cluster.leader()

    def _kill(self, part):
        if part in {"haproxy", "bouncer"}:
            program = self._program(part)
            program.kill()
            return program.start
        if part == "service":
            return self._kill_service()
        node = self._node(part)
        node.send_signal(signal.SIGKILL, *self._parts(part))
        return node.start

    def _kill_service(self):
        service = self.cluster.services["machine-1"]
        for process in [*service.workers(), service.process]:
            process.kill()
        service.process.wait()

        def repair():
            service.start(folder=self.cluster.folder / "machine-1")
            service.wait_until_ready()

        return repair

    def _freeze(self, part):
        if part in {"haproxy", "bouncer", "service"}:
            service = self.cluster.services["machine-1"]
            if part == "service":
                processes = [service.process, *service.workers()]
            else:
                processes = [self._program(part).process]

            def send(number):
                for process in processes:
                    process.send_signal(number)
        else:
            node, parts = self._node(part), self._parts(part)

            def send(number):
                node.send_signal(number, *parts)

        send(signal.SIGSTOP)
        time.sleep(FROZEN if part in {"postgres", "patroni"} else FROZEN / 3)
        return lambda: send(signal.SIGCONT)

    def _partition(self, part):
        node = self._node(part)
        self.cluster.network.partition(node.number)
        time.sleep(FROZEN)
        return lambda: self.cluster.network.partition(node.number, is_connected=True)

    def _lose(self, part):
        """Kill two of three, and start them again. Without etcd only, the primary goes on."""
        primary = self.cluster.leader()
        others = [node for node in self.cluster.nodes if node is not primary]
        started = time.monotonic()
        with ThreadPoolExecutor(len(others)) as pool:
            killed = [
                pool.submit(node.send_signal, signal.SIGKILL, *self._parts(part)) for node in others
            ]
            if part == "machines":
                wait_until(lambda: primary.state().get("role") == "replica", SECONDS)
                seconds = round(time.monotonic() - started, 1)
                self.more["lose-machines: seconds until the primary is a standby"] = seconds
                time.sleep(NOTICED)
                self._note_responses()
            else:
                time.sleep(FROZEN)
        for each in killed:
            each.result()
        for node in others:
            node.start()
        return lambda: None

    def _note_responses(self):
        """Note the responses of a service while there is no primary, when HAProxy uses no service."""
        port = self.cluster.services["machine-1"].port
        with closing(Caller(port, self.cluster.key)) as caller:
            for kind, method, body in (
                ("writes", "PUT", {"coupon": {"amount": 1}}),
                ("reads", "GET", None),
            ):
                found = {caller.send(method, "/coupons/1", body)[0] for _ in range(5)}
                name = f"lose-machines: status of {kind} without a primary"
                self.more[name] = ", ".join(map(str, sorted(found)))
                if found != {503}:
                    self.problems.append(f"{method} without a primary: {found}")

    def _upgrade(self, _):
        """Restart one machine after the other with the commands of the unit."""
        for name, service in self.cluster.services.items():
            proxies.drain(self.cluster.folder / name)
            service.stop()
            proxies.end_draining(self.cluster.folder / name)
            service.start(folder=self.cluster.folder / name)
            service.wait_until_ready()
            time.sleep(3)
        return lambda: None

    @staticmethod
    def _parts(part):
        return (part,) if part in {"postgres", "patroni", "etcd"} else ()

    # --- what is stored ---

    def _compare(self):
        with closing(self._caller()) as caller:
            wait_until(lambda: caller.send("GET", "/coupons/count")[0] == 200)
            shown = {kind: stored(caller, kind) for kind in KINDS}
        by_name = {kind.name: shown[kind] for kind in KINDS}
        shared = by_name["coupon"].pop(SHARED["code"])
        self.problems += shared_problems(shared, by_name["redemption"].values())
        self.counts["uses of the shared coupon"] = sum(
            each["status"] != "released" for each in by_name["redemption"].values()
        )
        for name, kind, journal in self.journals:
            own = {key: it for key, it in shown[kind].items() if key.startswith(f"{name}-")}
            self.counts["requests of unknown outcome"] += len(journal.in_flight)
            self.counts["acknowledged requests"] += journal.acknowledged
            journal.acknowledged = 0
            problems, done = journal.compare(own)
            self.counts["of unknown outcome, carried out"] += done
            self.problems += problems

    def figures(self):
        """Return the figures of all failures."""
        found = dict(self.counts)
        for target, seconds in self.outages.items():
            found[f"{target}: seconds without a successful write"] = round(seconds, 1)
        found |= self.more
        for target in self.skipped:
            found[f"{target}: skipped"] = "needs network namespaces"
        found["acknowledged writes lost"] = len(self.problems)
        return found
