"""A campaign: load, a kill, a restart, a comparison, again and again."""

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
from tests.faults.service import Service

CLIENTS = 6
LOAD = (0.05, 1.0)  # seconds of writes before a kill
AFTERMATH = 0.2  # seconds of writes after it


def run(database, kills, seed, tell=lambda line: None, load=0):
    """Kill, restart and compare ``kills`` times; return the problems and the figures.

    Args:
        load: seconds of traffic before, without a kill, after which is compared too.
    """
    with tempfile.TemporaryDirectory(prefix="shop-faults-") as folder:
        store = DATABASES[database](folder)
        try:
            store.start()
            service = Service(store.url, folder)
            try:
                return Campaign(store, service, seed, tell).run(kills, load)
            finally:
                service.close()
        finally:
            store.close()


class Campaign:
    """One service, one database, the clients' journals."""

    def __init__(self, store, service, seed, tell):
        self.store, self.service, self.tell = store, service, tell
        self.random = Random(seed)
        self.journals = new_journals(self.random, CLIENTS)
        self.figures = Counter()
        self.problems = []
        self.orphans = []

    def run(self, kills, load):
        """Return the problems and the figures."""
        self.service.start()
        self._caller = Caller(self.service.port, self.service.key)
        self.service.wait_until_ready(self._caller)
        status, answer = self._caller.send("POST", "/coupons", {"coupon": SHARED})
        assert status == 201, answer
        targets = ["worker", "master", "everything", *self.store.targets]
        self.random.shuffle(targets)
        if load:
            self._caller.close()  # the service does not keep it as long
            self._traffic(partial(time.sleep, load))
            self._compare()
            self.tell(f"{load:g} seconds of load: {len(self.problems)} problems so far")
        for number in range(kills):
            target = targets[number % len(targets)]
            self._traffic(partial(self._disturb, target))
            self._restart()
            self._compare()
            self.tell(f"kill {number + 1}, {target}: {len(self.problems)} problems so far")
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
        elif target == "backend":
            self.store.kill_backend(self.random)
        else:
            self.store.kill_postmaster()

    def _restart(self):
        self.store.start()
        if self.service.process.poll() is not None:
            self.service.start()
        # What orphans still do is part of the store that is compared.
        psutil.wait_procs(self.orphans, timeout=60)
        self.orphans = []
        self.service.wait_until_ready(self._caller)

    def _compare(self):
        shown = {kind: stored(self._caller, kind) for kind in KINDS}
        self._caller.close()  # an idle connection would keep a worker that shall stop
        by_name = {kind.name: shown[kind] for kind in KINDS}
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
            self.problems += [f"nobody's {kind.name}: {key}" for key in rest]
        self.problems += self.store.check()
