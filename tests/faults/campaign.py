"""A campaign: load, a kill, a restart and a comparison, repeated."""

import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random
from threading import Event

import psutil

from tests.faults.clients import (
    KINDS,
    SHARED,
    Caller,
    new_client,
    new_journals,
    shared_problems,
    stored,
)
from tests.faults.databases import DATABASES
from tests.faults.deliveries import Deliveries
from tests.faults.feed import Feed
from tests.faults.service import Service

CLIENTS = 6
LOAD = (0.05, 1.0)  # seconds of writes before a kill
AFTERMATH = 0.2  # seconds of writes after it


def run(database, kills, seed, tell=lambda line: None, load=0, deliveries=False):
    """Kill, restart and compare ``kills`` times, and return the problems and the figures.

    Args:
        load: seconds of traffic without a kill, followed by a comparison, before the first kill.
        deliveries: whether to also kill a worker that delivers to a webhook, and to compare the
            deliveries with the feed at the end.
    """
    with tempfile.TemporaryDirectory(prefix="shop-faults-") as folder:
        store = DATABASES[database](folder)
        try:
            store.start()
            service = Service(store.url, folder)
            try:
                campaign = Campaign(store, service, seed, tell)
                if not deliveries:
                    return campaign.run(kills, load)
                campaign.deliveries = Deliveries(service, seed)
                try:
                    return campaign.run(kills, load)
                finally:
                    campaign.deliveries.close()
            finally:
                service.close()
        finally:
            store.close()


class Campaign:
    """A service, a database, and the journals of the clients."""

    def __init__(self, store, service, seed, tell):
        self.store, self.service, self.tell = store, service, tell
        self.random = Random(seed)
        self.journals = new_journals(self.random, CLIENTS)
        self.figures = Counter()
        self.feed = Feed()
        self.problems = []
        self.orphans = []
        self.deliveries = None

    def run(self, kills, load):
        """Return the problems and the figures."""
        self.service.start()
        self._caller = Caller(self.service.port, self.service.key)
        self.service.wait_until_ready(self._caller)
        status, answer = self._caller.send("POST", "/coupons", {"coupon": SHARED})
        assert status == 201, answer
        # The events of the setup. The list of customers does not contain the administrator.
        self.feed.compare(self._caller, Counter())
        self.feed.copies["customer"].clear()
        targets = ["worker", "master", "everything", *self.store.targets]
        if self.deliveries:
            targets.append("deliverer")
            self.deliveries.create_webhook(self._caller)
            self.deliveries.start()
        self.random.shuffle(targets)
        if load:
            self._caller.close()  # the service closes it earlier
            self._traffic(partial(time.sleep, load))
            self._compare()
            self.tell(f"{load:g} seconds of load: {len(self.problems)} problems so far")
        for number in range(kills):
            target = targets[number % len(targets)]
            self._traffic(partial(self._disturb, target))
            self._restart()
            self._compare()
            self.tell(f"kill {number + 1}, {target}: {len(self.problems)} problems so far")
        if self.deliveries:
            problems, self.figures["deliveries"] = self.deliveries.compare(self._caller)
            self.problems += problems
        return self.problems, dict(self.figures)

    def _traffic(self, meanwhile):
        stop = Event()
        clients = [
            new_client(name, kind, journal, Random(self.random.random()), self._new_caller())
            for name, kind, journal in self.journals
        ]
        with ThreadPoolExecutor(CLIENTS) as pool:
            running = [pool.submit(client.run, stop) for client in clients]
            try:
                meanwhile()
            finally:
                stop.set()
            for client in running:
                self.problems += client.result()

    def _disturb(self, target):
        time.sleep(self.random.uniform(*LOAD))
        self._kill(target)
        self.figures[f"kills of {target}"] += 1
        time.sleep(AFTERMATH)

    def _new_caller(self):
        return Caller(self.service.port, self.service.key)

    def _kill(self, target):
        if target == "worker":
            self.service.kill_worker(self.random)
        elif target == "master":
            self.orphans = self.service.kill_master()
        elif target == "everything":
            self.orphans = self.service.kill_everything()
        elif target == "deliverer":
            self.deliveries.kill()
        elif target == "backend":
            self.store.kill_backend(self.random)
        else:
            self.store.kill_postmaster()

    def _restart(self):
        self.store.start()
        # Writes of orphaned workers are part of the compared store. The orphans keep the port.
        psutil.wait_procs(self.orphans, timeout=60)
        self.orphans = []
        if self.service.process.poll() is not None:
            self.service.start()
        if self.deliveries:
            self.deliveries.start()
        self.service.wait_until_ready(self._caller)

    def _compare(self):
        shown = {kind: stored(self._caller, kind) for kind in KINDS}
        self._caller.close()  # an idle connection would delay the stop of a worker
        by_name = {kind.name: shown[kind] for kind in KINDS}
        everything = {name: list(records.values()) for name, records in by_name.items()}
        shared = by_name["coupon"].pop(SHARED["code"])
        self.problems += shared_problems(shared, by_name["redemption"].values())
        for name, kind, journal in self.journals:
            own = {key: it for key, it in shown[kind].items() if key.startswith(f"{name}-")}
            for key in own:
                del shown[kind][key]
            self.figures["requests in flight"] += len(journal.in_flight)
            self.figures["acknowledged requests"] += journal.acknowledged
            journal.acknowledged = 0
            problems, done = journal.compare(own)
            self.figures["of them carried out"] += done
            self.problems += problems
        for kind, rest in shown.items():
            self.problems += [f"unexpected {kind.name}: {key}" for key in rest]
        self._compare_events(everything)
        self.problems += self.store.check()

    def _compare_events(self, stored):
        """Check that every committed change has one event, and that the last event shows the record."""
        expected = Counter()
        for _, _, journal in self.journals:
            expected.update(journal.events)
            journal.events.clear()
        problems, number = self.feed.compare(self._caller, expected)
        self._caller.close()
        for kind in self.feed.copies:
            problems += self.feed.differences(kind, stored[kind])
        self.figures["events"] += number
        self.problems += problems
