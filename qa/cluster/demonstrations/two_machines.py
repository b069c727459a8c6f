"""Two services on one database: revoked keys, idempotency records and nonces are shared."""

import time
from concurrent.futures import ThreadPoolExecutor
from random import Random

from oauthlib.oauth1 import Client as Signer

from app import create_app
from app.auth.api_keys import MAX_AGE_SECONDS
from app.auth.principals import Permission
from app.services.api_keys.writes import create_key, revoke_key
from qa.cluster.client import Client
from tests.databases import close
from tests.serving import SECRET

HOST = "shop.example"
"""What a load balancer would pass on, so that a signature is valid on both machines."""

PATIENCE = 3
# A revoked key is used until every worker rejects it.
SETTINGS = {"WEB_CONCURRENCY": "2", "SHOP_AUTH_FAILURES_PER_MINUTE": "0"}


def run(cluster, seed, times=10):
    """Revoke keys, repeat requests and replay signatures on two machines at once.

    Args:
        times: how often each is done.
    """
    random = Random(seed)
    machines = [cluster.serve(name, **SETTINGS) for name in ("machine-1", "machine-2")]
    # Commands on the first machine.
    app = create_app(
        {
            "DATABASE_URL": cluster.primary.url(),
            "SECRET_KEY": SECRET,
            "INSTANCE_PATH": str(cluster.folder / "machine-1" / "instance"),
        }
    )
    problems = []
    delays = [_revoke(app, machines, random) for _ in range(times)]
    slowest = max(delays)
    # A moment is added for the requests themselves.
    if slowest > MAX_AGE_SECONDS + 0.25:
        problems.append(f"a revoked key worked for {slowest:.2f} seconds")
    for number in range(times):
        problems += _repeat(cluster, machines, f"repeated-{seed}-{number}")
        problems += _replay(cluster, machines, f"signed-{seed}-{number}")
    close(app)
    for machine in machines:
        machine.stop()
    figures = {
        "keys revoked on one machine": times,
        "slowest effect on the other (s)": round(slowest, 2),
        "requests repeated on both at once": times,
        "signatures replayed on the other": times,
    }
    return problems, figures


def _revoke(app, machines, random):
    """Return the seconds for which a key works on a machine after its revocation on another one."""
    with app.app_context():
        key = create_key(f"user-{random.getrandbits(40):x}", "administrator", Permission.READ, "")
    client = Client(machines[1].port, key)
    assert client.get("/coupons/count").status == 200  # and is now cached
    time.sleep(random.uniform(0, MAX_AGE_SECONDS))
    assert client.get("/coupons/count").status == 200
    with app.app_context():
        assert revoke_key(key.key_id)
    revoked = last = time.monotonic()
    while (sent := time.monotonic()) - revoked < PATIENCE:
        status = client.get("/coupons/count").status
        client.close()  # the next request meets any worker
        if status == 200:
            last = sent  # a busy machine can take long to respond
    return last - revoked


def _repeat(cluster, machines, name):
    """Send a request with an idempotency key to both machines at once; return the problems."""
    clients = [cluster.client(machine) for machine in machines] * 2
    body = {"coupon": {"code": name}}

    def send(client):
        own = Client(client._port, cluster.key)
        return own.post("/coupons", body, Idempotency_Key=name)

    with ThreadPoolExecutor(len(clients)) as pool:
        replies = list(pool.map(send, clients))
    replayed = [reply.headers.get("idempotent-replayed") for reply in replies].count("true")
    same = all(reply[:2] == replies[0][:2] for reply in replies)
    if not same or replies[0].status != 201 or replayed != len(clients) - 1:
        return [f"{name}: {replies}"]
    return []


def _replay(cluster, machines, name):
    """Send a signed request to one machine, then to the other; return the problems."""
    key = cluster.key
    signer = Signer(key.consumer_key, key.consumer_secret, signature_method="HMAC-SHA256")
    path = f"/wc-api/v3/coupons?filter[q]={name}".replace("[", "%5B").replace("]", "%5D")
    _, headers, _ = signer.sign(f"http://{HOST}{path}")
    statuses = [
        Client(machine.port).get(path, Host=HOST, Authorization=headers["Authorization"]).status
        for machine in machines
    ]
    return [] if statuses == [200, 401] else [f"{name}: {statuses}"]
