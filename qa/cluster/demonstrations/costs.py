"""What a request costs one core of the service, the primary, and its write-ahead log."""

import time
from random import Random
from statistics import median

from qa.cluster.postgresql import cpu_of

ROUNDS, REQUESTS = 3, 150
FILLED = 200  # coupons and customers


def run(cluster, seed, rounds=ROUNDS, requests=REQUESTS):
    """Send each kind of request in turn over one connection; return the medians of the rounds.

    Args:
        rounds: how often each kind is measured.
        requests: number of requests of a round.
    """
    random = Random(seed)
    service = cluster.serve("machine-1", WEB_CONCURRENCY="1")
    service.wait_until_ready()
    client = cluster.client(service)
    _fill(client)
    # Otherwise the first change of a page after a checkpoint writes the whole page to the log.
    cluster.primary.query("CHECKPOINT")
    measured = {name: [] for name in KINDS}
    for _ in range(rounds):
        for name in random.sample(list(KINDS), len(KINDS)):
            measured[name].append(_round(cluster, service, client, KINDS[name], random, requests))
    figures = {name: _summary(found) for name, found in measured.items()}
    figures["POST /orders, after a checkpoint"] = _summary(
        [_after_checkpoint(cluster, service, client, random, requests)]
    )
    columns = next(iter(figures.values()))
    client.close()
    service.stop()
    # A column for each figure, so that the kinds are the rows.
    return [], {
        column: {name: each[column] for name, each in figures.items()} for column in columns
    }


def _fill(client):
    for number in range(FILLED):
        body = {"coupon": {"code": f"coupon-{number}", "amount": "5"}}
        assert client.post("/coupons", body).status == 201
        body = {"customer": {"email": f"customer-{number}@example.com"}}
        assert client.post("/customers", body).status == 201


def _round(cluster, service, client, send, random, requests):
    before, started = _used(cluster, service), time.monotonic()
    for _ in range(requests):
        reply = send(client, random)
        assert reply.status in {200, 201}, reply
    seconds = time.monotonic() - started
    used = [after - earlier for after, earlier in zip(_used(cluster, service), before, strict=True)]
    return [each / requests for each in used] + [requests / seconds]


def _after_checkpoint(cluster, service, client, random, requests):
    cluster.primary.query("CHECKPOINT")
    return _round(cluster, service, client, KINDS["POST /orders, 3 lines"], random, requests)


def _used(cluster, service):
    """Return the CPU seconds of the worker and of PostgreSQL, and the bytes of the log."""
    (worker,) = service.workers()
    written = cluster.primary.value("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
    return cpu_of(worker.pid), cluster.primary.cpu_seconds(), int(written)


def _summary(found):
    service, primary, log, rate = (median(column) for column in zip(*found, strict=True))
    return {
        "CPU ms of the service": round(service * 1000, 2),
        "CPU ms of the primary": round(primary * 1000, 2),
        "primary, relative to the service": f"{primary / service:.0%}",
        "bytes of log": round(log),
        "per second on one connection": round(rate),
    }


def _read_coupon(client, random):
    return client.get(f"/coupons/{random.randrange(FILLED) + 1}")


def _list_customers(client, _):
    return client.get("/customers?filter[limit]=100")


def _create_coupon(client, random):
    return client.post("/coupons", {"coupon": {"code": f"new-{random.getrandbits(64):x}"}})


def _change_coupon(client, random):
    path = f"/coupons/{random.randrange(FILLED) + 1}"
    return client.send("PUT", path, {"coupon": {"amount": random.randrange(10_000) / 100}})


def _order(client, random):
    lines = [
        {"product_id": random.randrange(1000) + 1, "name": "Shirt", "quantity": 2, "price": "9.50"}
        for _ in range(3)
    ]
    customer = random.randrange(FILLED) + 2
    order = {"customer_id": customer, "status": "processing", "line_items": lines}
    return client.post("/orders", {"order": order})


def _redeem(client, random):
    code = f"coupon-{random.randrange(FILLED)}"
    body = {"redemption": {"code": code, "reference": f"{random.getrandbits(64):x}"}}
    return client.post("/redemptions", body)


KINDS = {
    "GET /coupons/{id}": _read_coupon,
    "GET /customers, 100 of them": _list_customers,
    "POST /coupons": _create_coupon,
    "PUT /coupons/{id}": _change_coupon,
    "POST /orders, 3 lines": _order,
    "POST /redemptions": _redeem,
}
