"""A rolling upgrade: the previous release and this one serve the same database at the same time."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Event, Lock

from qa.cluster.cluster import Cluster, wait_until
from qa.cluster.postgresql import DATABASE
from tests.serving import ROOT, SECRET

FIRST = "7ca495a"
"""The revision before the events, the imports and the webhooks, while there is no tag."""

THREADS = 4
PAUSE = 0.05
PART = 1.5  # seconds of traffic before and after each step
REVISION = "SELECT version_num FROM alembic_version"


def previous_release():
    """Return the revision of the previous release, or None if this is no Git repository with it."""
    tag = _git("describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^")
    revision = tag or FIRST
    return revision if _git("cat-file", "-t", revision) else None


def _git(*arguments):
    if not shutil.which("git"):
        return ""
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def run(seed, part=PART, logs=None):
    """Upgrade two machines one after the other, under load.

    Args:
        part: seconds of traffic before and after each step.
        logs: folder to which the logs are copied at the end.
    """
    revision = previous_release()
    assert revision, "the previous release is not in this clone (git fetch --unshallow --tags)"
    cluster = Cluster(replicas=0, logs=logs)
    try:
        old = cluster.folder / "previous"
        old.mkdir()
        extract(revision, old)
        cluster.primary.create()
        command(old, cluster, "db", "upgrade")
        cluster.key = _Key(*_new_key(old, cluster))
        return _upgrade(cluster, old, revision, Random(seed), part)
    finally:
        cluster.close()


def extract(revision, folder):
    """Write the files of a revision into a folder."""
    archive = subprocess.run(
        ["git", "archive", revision], cwd=ROOT, capture_output=True, check=True
    )
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)


def _upgrade(cluster, old, revision, random, part):
    before = cluster.primary.value(REVISION, DATABASE)
    machines = {name: cluster.serve(name, code=old) for name in ("machine-1", "machine-2")}
    traffic = Traffic(cluster, dict(machines))
    ready = {}
    with ThreadPoolExecutor(THREADS) as pool:
        running = [
            pool.submit(traffic.run, number, Random(random.random())) for number in range(THREADS)
        ]
        try:
            time.sleep(part)
            started = time.monotonic()
            command(ROOT, cluster, "db", "upgrade")
            migrated = time.monotonic() - started
            time.sleep(part)
            ready["previous"] = cluster.client(machines["machine-1"]).get("/readyz").status
            for name in random.sample(sorted(machines), 2):
                new = cluster.serve(f"{name}-new")
                new.wait_until_ready()
                traffic.replace(name, new)
                time.sleep(part)
                machines[name].stop()
                ready["new"] = cluster.client(new).get("/readyz").status
            time.sleep(part)
        finally:
            traffic.stop.set()
        for each in running:
            each.result()
    after = cluster.primary.value(REVISION, DATABASE)
    figures = {
        "previous release": revision,
        "migrations": f"{before} to {after}",
        "seconds of the migration": round(migrated, 1),
        "requests to the previous release": traffic.sent["previous"],
        "requests to this release": traffic.sent["new"],
        "requests rejected": len(traffic.problems),
        "slowest request (s)": round(traffic.slowest, 1),
        "/readyz of the previous release after the migration": ready["previous"],
        "/readyz of this release": ready["new"],
    }
    return traffic.problems, figures


class _Key:
    def __init__(self, consumer_key, consumer_secret):
        self.consumer_key, self.consumer_secret = consumer_key, consumer_secret


class Traffic:
    """Clients of a load balancer: each request goes to one of the machines that are in service."""

    def __init__(self, cluster, machines):
        self._cluster, self._machines, self._lock = cluster, machines, Lock()
        self.stop, self.problems, self.sent, self.slowest = Event(), [], Counter(), 0.0
        self._busy = Counter()

    def replace(self, name, machine):
        """Send no further requests to a machine, but to another one; wait for those in flight."""
        with self._lock:
            del self._machines[name]
            self._machines[f"{name}-new"] = machine
        wait_until(lambda: not self._busy[name])

    def run(self, thread, random):
        """Send requests until ``stop`` is set."""
        number, mine = 0, {}
        while not self.stop.is_set():
            number += 1
            with self._lock:
                name, machine = random.choice(sorted(self._machines.items()))
                self._busy[name] += 1
            if name not in mine:
                mine[name] = self._cluster.client(machine)
            try:
                self._requests(mine[name], f"t{thread}-{number}")
            finally:
                with self._lock:
                    self._busy[name] -= 1
            time.sleep(PAUSE)
            self.sent["new" if name.endswith("-new") else "previous"] += 8

    def _requests(self, client, name):
        coupon = self._expect(201, client.post("/coupons", {"coupon": {"code": name}}))["coupon"]
        path = f"/coupons/{coupon['id']}"
        self._expect(200, client.send("PUT", path, {"coupon": {"amount": 5}}))
        body = {"customer": {"email": f"{name}@example.com"}}
        customer = self._expect(201, client.post("/customers", body))["customer"]
        line = {"name": "Mug", "quantity": 1, "price": "4.85"}
        order = {"customer_id": customer["id"], "line_items": [line], "status": "completed"}
        self._expect(201, client.post("/orders", {"order": order}))
        found = self._expect(200, client.get(f"/customers/{customer['id']}"))["customer"]
        if found["total_spent"] != "4.85":
            self.problems.append(f"{name}: {found}")
        self._expect(200, client.get("/orders?filter[limit]=5"))
        self._expect(200, client.get("/customers?filter[limit]=5"))
        self._expect(200, client.send("DELETE", f"{path}?force=true"))

    def _expect(self, status, reply):
        self.slowest = max(self.slowest, reply.seconds)
        if reply.status != status:
            self.problems.append(f"{reply.status} instead of {status}: {reply.body}")
            raise AssertionError(self.problems[-1])
        return reply.body


def _new_key(folder, cluster):
    line = command(
        folder, cluster, "keys", "create", "--login=admin", "--role=administrator",
        "--permission=read_write", "--json",
    )  # fmt: skip
    key = json.loads(line)
    return key["consumer_key"], key["consumer_secret"]


def command(folder, cluster, *arguments):
    """Run a command of the code in a folder and return its output."""
    done = subprocess.run(
        # The first releases have no module that runs the commands.
        [sys.executable, "-m", "flask", "--app", "wsgi", *arguments],
        cwd=folder,
        env=os.environ | {"DATABASE_URL": cluster.primary.url(), "SECRET_KEY": SECRET},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
