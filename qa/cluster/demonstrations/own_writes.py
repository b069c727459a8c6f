"""A client that sends the position of its write sees the write on every server."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Event

from prometheus_client.parser import text_string_to_metric_families

WORKERS, THREADS = 2, 8
PAUSES = (1.0, 12.0)  # seconds that a standby does not replay; after 10 it is excluded


def run(cluster, seed, pairs=10_000):
    """Write and read with the position, while replay is paused on one standby after the other.

    Args:
        pairs: number of writes, each followed by a read.
    """
    random = Random(seed)
    service = cluster.serve(
        "machine-1",
        DATABASE_REPLICA_URLS=cluster.replica_urls(),
        WEB_CONCURRENCY=str(WORKERS),
        SHOP_METRICS="1",
    )
    service.wait_until_ready()
    stop, started = Event(), time.monotonic()
    with ThreadPoolExecutor(THREADS + 1) as pool:
        pausing = pool.submit(_pause, cluster, Random(random.random()), stop)
        try:
            shares = [
                pool.submit(
                    _write_and_read,
                    cluster,
                    service,
                    f"t{thread}",
                    Random(random.random()),
                    pairs // THREADS,
                )
                for thread in range(THREADS)
            ]
            found = [share.result() for share in shares]
        finally:
            stop.set()
        pauses = pausing.result()
    seconds = time.monotonic() - started
    outcomes = _outcomes(cluster.client(service))
    problems = [problem for share in found for problem in share]
    reads = sum(outcomes.values())
    figures = {
        "pairs": pairs // THREADS * THREADS,
        "writes missed": len(problems),
        "reads from a replica": outcomes["replica"],
        "reads from the primary": reads - outcomes["replica"],
        "pauses of replay": pauses,
        "seconds": round(seconds),
    }
    service.stop()
    return problems, figures


def _pause(cluster, random, stop):
    """Pause replay on one standby after the other; return how often."""
    pauses = 0
    while not stop.is_set():
        replica = random.choice(cluster.replicas)
        replica.pause_replay()
        pauses += 1
        stop.wait(random.uniform(*PAUSES))
        replica.resume_replay()
    return pauses


def _write_and_read(cluster, service, name, random, pairs):
    """Return the reads that missed a write. Reads and writes have a connection each."""
    writer, reader = cluster.client(service), cluster.client(service)
    problems, known = [], []
    for number in range(pairs):
        if known and random.random() < 0.5:
            path = f"/coupons/{random.choice(known)}"
            written = writer.send("PUT", path, {"coupon": {"description": f"{name} {number}"}})
        else:
            written = writer.post("/coupons", {"coupon": {"code": f"{name}-{number}"}})
            path = f"/coupons/{written.body['coupon']['id']}"
            known.append(written.body["coupon"]["id"])
        assert written.status in {200, 201}, written
        position = written.headers["x-shop-position"]
        read = reader.get(path, X_Shop_Position=position)
        if read.status != 200 or read.body != written.body:
            problems.append(f"{path} at {position}: {read.status} {read.body}, not {written.body}")
    writer.close()
    reader.close()
    return problems


def _outcomes(client):
    """Return the number of reads that could use a replica, by what became of them."""
    found = Counter()
    page = client.text("/metrics")
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name == "shop_replica_reads_total":
                found[sample.labels["outcome"]] += int(sample.value)
    return found
