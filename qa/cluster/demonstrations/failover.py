"""Kills of every component under load: no acknowledged write is lost, and nothing is restarted.

When the primary is killed, the standby that has received the most is promoted, and the old primary
comes back as a standby of the new one. Commits wait for one of the two standbys.
"""

import http.client
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from random import Random
from threading import Event, Thread

import psycopg

from qa.cluster.cluster import wait_until
from qa.cluster.writers import (
    KINDS,
    SHARED,
    Caller,
    new_client,
    new_journals,
    shared_problems,
    stored,
)

TARGETS = ("primary", "replica", "bouncer", "worker")
CLIENTS = 6
BEFORE, AFTER = (0.5, 2.0), 1.0  # seconds of traffic before and after a kill
SYNCHRONOUS = 'ANY 1 ("replica-1", "replica-2", "primary")'
PROBE_SECONDS = 0.02


def run(cluster, seed, order=TARGETS):
    """Kill components in an order; return the problems and the figures.

    One service finds the primary by itself, with the URLs of all servers. The other uses PgBouncer,
    which is told about each new primary, as an operator would.

    Args:
        order: what is killed, one after the other, of TARGETS.
    """
    cluster.primary.configure(synchronous_standby_names=SYNCHRONOUS)
    cluster.start_bouncer()
    more = {"WEB_CONCURRENCY": "2", "SHOP_PAGE_SIZE": "1000000"}
    direct = cluster.serve("machine-1", DATABASE_URL=cluster.url_of_any_primary(), **more)
    pooled = cluster.serve(
        "machine-2",
        DATABASE_URL=cluster.bouncer.url("shop"),
        DATABASE_POOLER="transaction",
        **more,
    )
    masters = direct.pid, pooled.pid
    this = _Run(cluster, [direct, pooled], Random(seed))
    for target in order:
        this.kill(target)
    assert (direct.pid, pooled.pid) == masters
    assert all(service.process.poll() is None for service in (direct, pooled))
    return this.problems, this.figures()


class _Run:
    def __init__(self, cluster, services, random):
        self.cluster, self.services, self.random = cluster, services, random
        self.journals = new_journals(random, CLIENTS)
        self.problems, self.counts, self.outages = [], Counter(), {}
        with closing(self._caller(0)) as caller:
            status, answer = caller.send("POST", "/coupons", {"coupon": SHARED})
        assert status == 201, answer

    def _caller(self, number):
        return Caller(self.services[number % len(self.services)].port, self.cluster.key)

    def kill(self, target):
        """Kill a component under load, repair the cluster, and compare what is stored."""
        stop = Event()
        clients = [
            new_client(name, kind, journal, Random(self.random.random()), self._caller(number))
            for number, (name, kind, journal) in enumerate(self.journals)
        ]
        probes = [Probe(self._caller(number)) for number in range(len(self.services))]
        with ThreadPoolExecutor(CLIENTS) as pool:
            running = [pool.submit(client.run, stop) for client in clients]
            try:
                time.sleep(self.random.uniform(*BEFORE))
                for probe in probes:
                    probe.start()
                repaired = getattr(self, f"_kill_{target}")()
                wait_until(lambda: all(probe.is_served() for probe in probes))
                time.sleep(AFTER)
            finally:
                stop.set()
            for client in running:
                self.problems += client.result()
        outage = max(probe.end() for probe in probes)
        self.counts[f"kills of {target}"] += 1
        self.outages.setdefault(target, []).append((repaired, outage))
        self._compare()

    def _kill_primary(self):
        """Kill the primary, promote a standby; return the seconds without a primary."""
        cluster, old = self.cluster, self.cluster.primary
        started = time.monotonic()
        old.kill()  # fenced: it does not come back before it is a standby
        new = max(cluster.replicas, key=lambda each: each.value(_RECEIVED))
        new.promote()
        new.configure(synchronous_standby_names=SYNCHRONOUS)
        cluster.primary = new
        cluster.replicas = [each for each in cluster.servers if each not in {new, old}]
        for replica in cluster.replicas:
            replica.follow(new)
        cluster.bouncer.lead_to("127.0.0.1", new.port)
        seconds = time.monotonic() - started
        wait_until(lambda: all(self._is_streaming(each) for each in cluster.replicas))
        self._rejoin = old
        return seconds

    def _kill_replica(self):
        replica = self.random.choice(self.cluster.replicas)
        replica.kill()
        replica.start()
        return 0.0

    def _kill_bouncer(self):
        started = time.monotonic()
        self.cluster.bouncer.kill()
        self.cluster.bouncer.start()
        return time.monotonic() - started

    def _kill_worker(self):
        service = self.random.choice(self.services)
        self.random.choice(service.workers()).kill()
        return 0.0

    def _is_streaming(self, replica):
        with suppress(psycopg.OperationalError):
            status = replica.query("SELECT status FROM pg_stat_wal_receiver")
            return status == [("streaming",)]
        return False

    def _compare(self):
        cluster = self.cluster
        if old := self.__dict__.pop("_rejoin", None):
            old.clone(cluster.primary)
            cluster.replicas.append(old)
        wait_until(lambda: all(self._is_streaming(each) for each in cluster.replicas))
        callers = [self._caller(number) for number in range(len(self.services))]
        for caller in callers:
            wait_until(lambda caller=caller: caller.send("GET", "/readyz")[0] == 200)
        shown = {kind: stored(callers[0], kind) for kind in KINDS}
        if shown != {kind: stored(callers[1], kind) for kind in KINDS}:
            self.problems.append("the two services do not show the same")
        by_name = {kind.name: shown[kind] for kind in KINDS}
        shared = by_name["coupon"].pop(SHARED["code"])
        self.problems += shared_problems(shared, by_name["redemption"].values())
        for name, kind, journal in self.journals:
            own = {key: it for key, it in shown[kind].items() if key.startswith(f"{name}-")}
            self.counts["requests in flight"] += len(journal.in_flight)
            self.counts["acknowledged requests"] += journal.acknowledged
            journal.acknowledged = 0
            problems, done = journal.compare(own)
            self.counts["of them carried out"] += done
            self.problems += problems
        for caller in callers:
            caller.close()

    def figures(self):
        """Return the figures of all kills."""
        found = dict(sorted(self.counts.items(), key=lambda each: not each[0].startswith("kills")))
        for target, times in self.outages.items():
            repaired, outage = max(each[0] for each in times), max(each[1] for each in times)
            if repaired:
                found[f"{target}: seconds until it was replaced"] = round(repaired, 1)
            found[f"{target}: seconds without a successful write"] = round(outage, 1)
        found["acknowledged writes lost"] = len(self.problems)
        return found


_RECEIVED = "SELECT (pg_last_wal_receive_lsn() - '0/0')::bigint"


class Probe(Thread):
    """Writes to a service again and again, and notes the longest time without success."""

    def __init__(self, caller):
        super().__init__(daemon=True)
        self._caller, self._stop_event = caller, Event()
        self.longest, self._last, self._succeeded = 0.0, time.monotonic(), 0

    def run(self):
        """Write until ``end`` is called."""
        number = 0
        while not self._stop_event.is_set():
            number += 1
            status = None
            with suppress(OSError, http.client.HTTPException, ValueError):
                change = {"coupon": {"amount": number % 9}}
                status, _ = self._caller.send("PUT", "/coupons/1", change)
            now = time.monotonic()
            if status == 200:
                self.longest = max(self.longest, now - self._last)
                self._last, self._succeeded = now, self._succeeded + 1
            self._stop_event.wait(PROBE_SECONDS)

    def is_served(self):
        """Return whether the last write was a moment ago."""
        return self._succeeded and time.monotonic() - self._last < 0.5

    def end(self):
        """Stop and return the longest time in seconds without success."""
        self._stop_event.set()
        self.join()
        self._caller.close()
        return self.longest
