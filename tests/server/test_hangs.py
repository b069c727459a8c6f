"""A frozen pooler, server or standby holds a request until its deadline, and not the service."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import psycopg
import pytest

from qa.cluster import programs
from qa.cluster.client import Client
from qa.cluster.cluster import running_cluster, wait_until
from tests.plugins.woocommerce.oauth_requests import sign

pytestmark = pytest.mark.skipif(bool(programs.missing()), reason=programs.missing())

DEADLINE = 2
SLACK = 10  # seconds for a busy machine; what hangs would hang until the test ends
HEALTHY = (200, {"status": "ok"})
CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'shop'"
OUTCOME_UNKNOWN = {
    "errors": [
        {
            "code": "shop_api_outcome_unknown",
            "message": "The change may be stored. Repeat with the same Idempotency-Key, or read "
            "the record first.",
        }
    ]
}
REASONS = {
    f"The database did not respond within {DEADLINE} seconds. Try again shortly.",
    "The database cannot be reached. Try again shortly.",
    "The service is busy with other requests. Try again shortly.",
}


@pytest.fixture(scope="module")
def cluster():
    with running_cluster(replicas=1) as cluster:
        cluster.start_bouncer()
        settings = {"SHOP_REQUEST_TIMEOUT_SECONDS": str(DEADLINE), "WEB_THREADS": "4"}
        cluster.serve("direct", **settings)
        url = cluster.bouncer.url("shop")
        cluster.serve("pooled", DATABASE_URL=url, DATABASE_POOLER="transaction", **settings)
        for name in ("direct", "pooled"):
            assert new(cluster.client(cluster.services[name]), name).status == 201
        yield cluster


def new(client, code, **headers):
    return client.post("/coupons", {"coupon": {"code": code}}, **headers)


def codes(client):
    return {coupon["code"] for coupon in client.get("/coupons").body["coupons"]}


def until_it_works(client):
    wait_until(lambda: client.get("/readyz").status == 200)
    assert client.get("/coupons").status == 200


@contextmanager
def many():
    with ThreadPoolExecutor(20) as pool:
        yield pool


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "part"), [("direct", "primary"), ("pooled", "primary"), ("pooled", "bouncer")]
)
def test_frozen_database_rejects_requests_and_leaves_the_service_alive(cluster, name, part):
    service = cluster.services[name]
    client = cluster.client(service)
    until_it_works(client)
    before = codes(client)
    with many() as pool, programs.frozen(getattr(cluster, part).process):
        sent = [pool.submit(new, cluster.client(service), f"{name}-{part}-{n}") for n in range(6)]
        sent += [pool.submit(cluster.client(service).get, "/coupons") for _ in range(6)]
        for _ in range(5):
            healthy = client.get("/healthz")
            assert (healthy.status, healthy.body) == HEALTHY
            assert healthy.seconds < SLACK
        ready = client.get("/readyz")
        assert ready.status == 503
        assert ready.seconds < 2 + SLACK
        for each in sent:
            reply = each.result()
            assert (reply.status, reply.headers["retry-after"]) == (503, "5")
            (entry,) = reply.body["errors"]
            assert entry["code"] == "shop_api_unavailable"
            assert entry["message"] in REASONS
            assert reply.seconds < 5 + DEADLINE + SLACK
    until_it_works(client)
    assert codes(client) == before  # no commit was sent
    assert new(client, f"{name}-{part}-0").status == 201


@pytest.mark.slow
@pytest.mark.parametrize(("name", "other"), [("direct", "pooled"), ("pooled", "direct")])
def test_frozen_service_or_pooler_does_not_keep_its_locks(cluster, name, other):
    client = cluster.client(cluster.services[other])
    path = f"/coupons/{new(client, f'{name}-locked').body['coupon']['id']}"
    change = {"coupon": {"amount": 1}}
    part = cluster.bouncer if name == "pooled" else cluster.services[name]
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    holding = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
    with many() as pool, psycopg.connect(cluster.primary.url()) as holder:
        holder.execute("SELECT id FROM coupons FOR UPDATE")
        sent = pool.submit(cluster.client(cluster.services[name]).send, "PUT", path, change)
        wait_until(lambda: cluster.primary.value(waiting) == 1)
        with programs.frozen(part.process):
            holder.rollback()
            wait_until(lambda: cluster.primary.value(holding) == 1)  # who waited has the locks
            wait_until(lambda: client.send("PUT", path, change).status == 200)
        assert sent.result().status == 503


@pytest.fixture
def synchronous(cluster):
    """Let each commit of the primary wait for the standby."""
    cluster.primary.configure(synchronous_standby_names="*")
    wait_until(lambda: cluster.primary.value("SHOW synchronous_standby_names") == "*")
    yield cluster.replicas[0]
    cluster.primary.configure(synchronous_standby_names="")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["direct", "pooled"])
def test_frozen_standby_makes_the_outcome_of_writes_unknown(cluster, synchronous, name):
    service = cluster.services[name]
    client = cluster.client(service)
    until_it_works(client)
    key = {"Idempotency_Key": f"{name}-key"}
    with many() as pool, programs.frozen(synchronous.process):
        with_key = pool.submit(new, cluster.client(service), f"{name}-with-key", **key)
        sent = [pool.submit(new, cluster.client(service), f"{name}-sync-{n}") for n in range(4)]
        for _ in range(5):
            read = client.get("/coupons/count")
            assert read.status == 200
            assert read.seconds < SLACK
        assert client.get("/readyz").status == 200
        reply = with_key.result()
        assert (reply.status, reply.body) == (504, OUTCOME_UNKNOWN)
        assert reply.headers["retry-after"] == "5"
        replies = [each.result() for each in sent]
        unknown = [reply for reply in replies if reply.body == OUTCOME_UNKNOWN]
        assert all("retry-after" not in reply.headers for reply in unknown)
        assert all(r.status == (504 if r in unknown else 503) for r in replies)
        assert len(unknown) >= 2
        assert all(reply.seconds < 5 + DEADLINE + SLACK for reply in replies)
        # The first transaction still holds the key, and this one has not been committed.
        repeated = new(client, f"{name}-with-key", **key)
        assert repeated.status == 503
        assert repeated.body["errors"][0]["code"] == "shop_api_unavailable"
    until_it_works(client)
    repeated = wait_until(lambda: (r := new(client, f"{name}-with-key", **key)).status == 201 and r)
    assert repeated.headers["idempotent-replayed"] == "true"
    # Everything that was committed on the primary is there, and nothing else.
    stored = {code for code in codes(client) if code.startswith(f"{name}-sync-")}
    assert len(stored) == len(unknown)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["direct", "pooled"])
def test_connection_lost_during_the_commit_makes_the_outcome_unknown(cluster, synchronous, name):
    service = cluster.services[name]
    client = cluster.client(service)
    until_it_works(client)
    with many() as pool, programs.frozen(synchronous.process):
        sent = pool.submit(new, cluster.client(service), f"{name}-lost")
        waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        ((process,),) = wait_until(lambda: cluster.primary.query(waiting))
        if name == "direct":
            cluster.primary.query(f"SELECT pg_terminate_backend({process})")
        else:
            cluster.bouncer.kill()
        reply = sent.result()
    assert (reply.status, reply.body) == (504, OUTCOME_UNKNOWN)
    if name == "pooled":
        cluster.bouncer.start()
    until_it_works(client)
    assert f"{name}-lost" in codes(client)


@pytest.mark.slow
def test_reads_of_a_new_key_and_signed_reads_do_not_wait_for_a_standby(cluster, synchronous):
    service = cluster.services["direct"]
    client = cluster.client(service)
    until_it_works(client)
    made = client.post("/keys", {"key": {"permission": "read"}}).body["key"]
    with programs.frozen(synchronous.process):
        reply = cluster.client(service, SimpleNamespace(**made)).get("/coupons/count")
        assert reply.status == 200
        assert reply.seconds < SLACK
        path, _ = sign(cluster.key, "/wc-api/v3/coupons/count", origin=service.url)
        reply = Client(service.port).get(path)
        assert reply.status == 200
        assert reply.seconds < SLACK


@pytest.mark.slow
def test_full_server_lets_requests_wait_for_the_connections_of_their_worker(cluster):
    service = cluster.serve("full", WEB_THREADS="4")
    client, primary = cluster.client(service), cluster.primary
    # One connection for reads and one for writes.
    assert (new(client, "full").status, client.get("/coupons").status) == (201, 200)
    with full(primary), many() as pool:
        sent = [pool.submit(new, cluster.client(service), f"full-{n}") for n in range(30)]
        sent += [pool.submit(cluster.client(service).get, "/coupons") for _ in range(30)]
    assert [each.result().status for each in sent] == [201] * 30 + [200] * 30


@contextmanager
def full(primary):
    """Let the server accept no other connection of the service for as long as the block lasts."""
    primary.query(f"ALTER ROLE shop CONNECTION LIMIT {primary.value(CONNECTIONS)}")
    try:
        yield
    finally:
        primary.query("ALTER ROLE shop CONNECTION LIMIT -1")


@pytest.mark.slow
def test_full_server_lets_requests_wait_for_the_first_connection(cluster):
    with many() as pool:
        with full(cluster.primary):
            service = cluster.serve("late", WEB_CONCURRENCY="1")
            sent = [pool.submit(new, cluster.client(service), f"late-{n}") for n in range(6)]
            sent += [pool.submit(cluster.client(service).get, "/coupons") for _ in range(6)]
            time.sleep(1)
            assert not any(each.done() for each in sent)
        assert [each.result().status for each in sent] == [201] * 6 + [200] * 6


@pytest.mark.slow
def test_full_server_rejects_requests_at_their_deadline(cluster):
    with full(cluster.primary):
        service = cluster.serve("short", SHOP_REQUEST_TIMEOUT_SECONDS=str(DEADLINE))
        reply = new(cluster.client(service), "short")
    assert reply.status == 503
    assert reply.body["errors"][0]["message"] in REASONS
    assert 1 < reply.seconds < DEADLINE + SLACK


@pytest.mark.slow
def test_workers_open_a_connection_for_reads_and_one_for_writes_at_their_start(cluster):
    url = f"{cluster.primary.url()}?application_name=early"
    service = cluster.serve("early", DATABASE_URL=url, WEB_CONCURRENCY="2")
    opened = f"{CONNECTIONS} AND application_name = 'early'"
    wait_until(lambda: cluster.primary.value(opened) == 4)
    with full(cluster.primary):
        client = cluster.client(service)
        assert (new(client, "early").status, client.get("/coupons").status) == (201, 200)


@pytest.mark.slow
def test_workers_start_without_a_database(cluster):
    url = "postgresql://shop@127.0.0.1:1/shop"
    client = cluster.client(cluster.serve("without", DATABASE_URL=url))
    assert (client.get("/healthz").status, client.get("/readyz").status) == (200, 503)
