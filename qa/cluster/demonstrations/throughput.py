"""Reads, and nine reads with one write, with 0, 1 and 2 standbys: side by side, with CPU times."""

import time
from concurrent.futures import ThreadPoolExecutor
from random import Random
from statistics import median

import psutil

from qa.cluster.cluster import wait_until
from qa.cluster.postgresql import cpu_of

THREADS = 4
ROUNDS, REQUESTS = 3, 200
FILLED = 200  # coupons and customers


def run(cluster, seed, rounds=ROUNDS, requests=REQUESTS):
    """Send the same requests to three services that differ in their standbys, round by round.

    Args:
        rounds: how often each service is measured. The figures are medians.
        requests: number of requests of a round.
    """
    random = Random(seed)
    urls = [replica.url() for replica in cluster.replicas]
    services = {
        number: cluster.serve(
            f"machine-{number}",
            DATABASE_REPLICA_URLS=" ".join(urls[:number]),
            WEB_CONCURRENCY="2",
        )
        for number in range(len(urls) + 1)
    }
    _fill(cluster.client(services[0]))
    cluster.wait_for_replicas()
    for service in services.values():
        wait_until(lambda service=service: _is_ready(cluster, service))
    figures = {}
    for name, send in (("reads", _read), ("9 reads, 1 write", _mixed)):
        measured = {number: [] for number in services}
        for _ in range(rounds):
            for number, service in random.sample(sorted(services.items()), len(services)):
                seed_of_round = random.random()
                measured[number].append(_round(cluster, service, send, seed_of_round, requests))
        for number, found in measured.items():
            for key in found[0]:
                value = median(each[key] for each in found)
                column = figures.setdefault(f"{name}, standbys: {number}", {})
                column[key] = round(value, 2 if value < 100 else 0)
    for service in services.values():
        service.stop()
    return [], figures


def _fill(client):
    for number in range(FILLED):
        body = {"coupon": {"code": f"coupon-{number}"}}
        assert client.post("/coupons", body).status == 201
        body = {"customer": {"email": f"customer-{number}@example.com"}}
        assert client.post("/customers", body).status == 201
    client.close()


def _is_ready(cluster, service):
    """Return whether all workers use all standbys, as far as one connection can tell."""
    for _ in range(6):
        client = cluster.client(service)
        body = client.get("/readyz").body
        client.close()
        if any(replica["state"] != "ok" for replica in body.get("replicas", ())):
            return False
    return True


def _round(cluster, service, send, seed, requests):
    """Return requests per second, and CPU milliseconds per request of each process."""
    before, started = _cpu(cluster, service), time.monotonic()
    with ThreadPoolExecutor(THREADS) as pool:
        for share in [
            pool.submit(_thread, cluster, service, send, Random(seed + thread), requests // THREADS)
            for thread in range(THREADS)
        ]:
            share.result()
    seconds, after = time.monotonic() - started, _cpu(cluster, service)
    each = {name: (after[name] - before[name]) * 1000 / requests for name in after}
    return {"requests per second": requests / seconds} | {
        f"CPU ms of {name}": value for name, value in each.items()
    }


def _cpu(cluster, service):
    """Return the CPU seconds of all processes that are involved."""
    workers = sum(cpu_of(worker.pid) for worker in service.workers())
    found = {"the service": workers}
    found |= {f"{server.name}": server.cpu_seconds() for server in cluster.servers}
    own = psutil.Process().cpu_times()
    return found | {"the clients": own.user + own.system}


def _thread(cluster, service, send, random, requests):
    client, position = cluster.client(service), None
    for number in range(requests):
        position = send(client, random, number, position)
    client.close()


def _read(client, random, number, position):
    path = f"/coupons/{random.randrange(FILLED) + 1}" if number % 2 else "/customers"
    reply = client.get(path, Prefer="stale-while=10")
    assert reply.status == 200, reply
    return position


def _mixed(client, random, number, position):
    if number % 10 == 0:
        path = f"/coupons/{random.randrange(FILLED) + 1}"
        reply = client.send("PUT", path, {"coupon": {"amount": number % 50}})
        assert reply.status == 200, reply
        return reply.headers.get("x-shop-position")
    path = f"/coupons/{random.randrange(FILLED) + 1}" if number % 2 else "/customers"
    headers = {"X_Shop_Position": position} if position else {}
    reply = client.get(path, **headers)
    assert reply.status == 200, reply
    return position
