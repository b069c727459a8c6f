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

from tests.cluster import proxies
from tests.cluster.cluster import wait_until
from tests.cluster.demonstrations.failover import Probe
from tests.cluster.patroni import SECONDS
from tests.faults.clients import (
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

TARGETS = (
    "kill-primary",
    "freeze-postgres",
    "freeze-patroni",
    "partition-primary",
    "kill-standby",
    "freeze-standby",
    "kill-etcd",
    "freeze-etcd",
    "kill-haproxy",
    "freeze-haproxy",
    "kill-service",
    "freeze-service",
    "upgrade",
)
"""What can happen. ``primary`` and ``standby`` are whole machines: etcd, Patroni and PostgreSQL."""

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

    Args:
        order: what happens, one after the other, of TARGETS. Partitions need network namespaces.
    """
    services = [
        cluster.serve_on(
            f"machine-{number}",
            WEB_CONCURRENCY="2",
            SHOP_PAGE_SIZE="1000000",
            SHOP_TRUSTED_PROXIES="1",
        )
        for number in (1, 2)
    ]
    cluster.work("machine-1", DATABASE_URL=services[0].environment["DATABASE_URL"])
    cluster.front = proxies.haproxy(cluster.folder, services, tls=False)
    cluster.front.start()
    campaign = _Campaign(cluster, Random(seed))
    for target in order:
        if target.startswith("partition") and not cluster.network.has_namespaces:
            campaign.skipped.append(target)
            continue
        campaign.let(target)
    return campaign.problems, campaign.figures()


class _Campaign:
    def __init__(self, cluster, random):
        self.cluster, self.random = cluster, random
        self.journals = new_journals(random, CLIENTS)
        self.problems, self.counts, self.outages = [], Counter(), {}
        self.skipped = []
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

    def _node(self, part):
        return self.cluster.standby() if part == "standby" else self.cluster.leader()

    def _kill(self, part):
        if part == "haproxy":
            proxy = self.cluster.proxies["machine-1"]
            proxy.kill()
            return proxy.start
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
        if part in {"haproxy", "service"}:
            service = self.cluster.services["machine-1"]
            processes = [self.cluster.proxies["machine-1"].process]
            if part == "service":
                processes = [service.process, *service.workers()]

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
        for target in self.skipped:
            found[f"{target}: skipped"] = "needs network namespaces"
        found["acknowledged writes lost"] = len(self.problems)
        return found
