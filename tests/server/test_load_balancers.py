"""HAProxy and nginx with the shipped configuration in front of two machines with a PgBouncer each.

Clients send requests while a machine fails. A request must not fail if the other machine could have
served it, and a POST must not be executed twice.
"""

import http.client
import json
import signal
import ssl
import time
from base64 import b64encode
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from threading import Event
from uuid import uuid4

import pytest

from qa.cluster import programs, proxies
from qa.cluster.cluster import running_cluster, wait_until
from qa.cluster.pgbouncer import PgBouncer
from qa.cluster.postgresql import PATIENCE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(programs.missing("postgres", "pgbouncer", "haproxy", "nginx")),
        reason=programs.missing("postgres", "pgbouncer", "haproxy", "nginx"),
    ),
]

CLIENTS = 3
PAUSE = 0.25  # seconds after five requests of a client, so that other tests get a part of the CPUs
SETTLED = 3.0  # seconds after which the load balancer must have noticed
FROZEN = 26.0  # seconds; more than `timeout server` and the time of a repeated request


class Machine:
    """A service and its PgBouncer."""

    def __init__(self, cluster, name):
        folder = cluster.folder / f"{name}-bouncer"
        folder.mkdir(exist_ok=True)
        programs.give(folder)
        self.name, self._cluster = name, cluster
        self.bouncer = PgBouncer(folder)
        self.bouncer.lead_to("127.0.0.1", cluster.primary.port)
        self.bouncer.start()
        self.service = cluster.serve(
            name,
            DATABASE_URL=self.bouncer.url("shop"),
            DATABASE_POOLER="transaction",
            SHOP_TRUSTED_PROXIES="1",
        )
        self.folder = cluster.folder / name

    def kill(self):
        """Kill all processes of the service, as in a failure of the machine."""
        for process in [*self.service.workers(), self.service.process]:
            process.kill()
        self.service.process.wait()

    def start(self):
        """Start the service again."""
        (self.folder / "instance" / "draining").unlink(missing_ok=True)
        self.service.start(folder=self.folder)
        self.service.wait_until_ready()


@pytest.fixture(scope="module")
def cluster():
    with running_cluster(replicas=0) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def machines(cluster):
    machines = [Machine(cluster, "machine-1"), Machine(cluster, "machine-2")]
    yield machines
    for machine in machines:
        machine.bouncer.close()


@pytest.fixture(scope="module", params=["haproxy", "nginx"])
def proxy(request, cluster, machines):
    folder = cluster.folder / request.param
    folder.mkdir(exist_ok=True)
    programs.give(folder)
    proxy = getattr(proxies, request.param)(folder, [machine.service for machine in machines])
    proxy.start()
    proxy.name = request.param
    yield proxy
    proxy.close()


class Client:
    """Sends every kind of request over TLS, and counts the responses that are not successful.

    Args:
        port: the port of the load balancer.
        key: an API key.
        is_patient: whether a request is sent again on a new connection if the one that it would
            have used was closed meanwhile, unless it is a POST without a key.
    """

    def __init__(self, port, key, *, is_patient=False):
        self._is_patient = is_patient
        pair = f"{key.consumer_key}:{key.consumer_secret}"
        self._headers = {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
        self._port, self._connection = port, None
        self.done, self.failed, self.codes = Counter(), [], {}

    def send(self, method, path, body=None, **headers):
        """Return the status and the body, or 0 and the error without a response."""
        if self._connection is None:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self._connection = http.client.HTTPSConnection(
                "127.0.0.1", self._port, timeout=PATIENCE, context=context
            )
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            self._connection.request(
                method, path, json.dumps(body) if body else None, self._headers | more
            )
            response = self._connection.getresponse()
            return response.status, response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return 0, repr(error)

    def close(self):
        """Close the connection."""
        if self._connection:
            self._connection.close()
        self._connection = None

    def run(self, stop):
        """Create, read, change and delete coupons until the event is set."""
        while not stop.is_set():
            code = f"code-{uuid4()}"
            body = {"coupon": {"code": code}}
            status, text = self._one("POST with a key", 201, "POST", "/coupons", body, code)
            if status != 201:
                continue
            path = f"/coupons/{json.loads(text)['coupon']['id']}"
            self._one("GET", 200, "GET", path)
            self._one("PUT", 200, "PUT", path, {"coupon": {"amount": 5}})
            self._one("DELETE", 200, "DELETE", f"{path}?force=true")
            code = f"code-{uuid4()}"
            status, _ = self._one("POST", 201, "POST", "/coupons", {"coupon": {"code": code}})
            self.codes[code] = status
            stop.wait(PAUSE)
        self.close()

    def _one(self, kind, expected, method, path, body=None, key=None):
        headers, started = {"Idempotency_Key": key} if key else {}, time.monotonic()
        is_reused = self._connection is not None
        status, text = self.send(method, path, body, **headers)
        if status == 0 and is_reused and self._is_patient and kind != "POST":
            status, text = self.send(method, path, body, **headers)
        self.done[kind] += 1
        if status != expected:
            self.failed.append((started, kind, status, text[:200]))
        return status, text


class Load:
    """Clients that send requests for as long as the block lasts."""

    def __init__(self, proxy, cluster, *, is_patient=False):
        self._stop = Event()
        new = partial(Client, proxy.port, cluster.key, is_patient=is_patient)
        self.clients = [new() for _ in range(CLIENTS)]
        self._reader = Client(proxy.port, cluster.key)

    def __enter__(self):
        self._pool = ThreadPoolExecutor(CLIENTS)
        self._running = [self._pool.submit(client.run, self._stop) for client in self.clients]
        # nginx avoids a machine for two seconds after its last failure, also of an earlier test.
        time.sleep(SETTLED)
        return self

    def __exit__(self, *_):
        self._stop.set()
        for running in self._running:
            running.result()
        self._pool.shutdown()

    def failures(self, *, since=0.0, but=(), killed=None):
        """Return the requests that failed, unless they are of a kind that may fail.

        A DELETE that was in flight when something was killed may have been executed and repeated.
        Its record is then missing.
        """
        return [
            failure
            for client in self.clients
            for failure in client.failed
            if failure[0] >= since
            and failure[1] not in but
            and not (killed and failure[0] < killed and failure[1:3] == ("DELETE", 404))
        ]

    def lost(self):
        """Return the codes of coupons that are missing although the POST was acknowledged."""
        return self._coupons(201, is_there=False)

    def carried_out(self):
        """Return the codes of coupons that are there although the POST got no response."""
        return self._coupons(0, is_there=True)

    def _coupons(self, status, *, is_there):
        codes = [item for client in self.clients for item in client.codes.items()]
        sent = [code for code, found in codes if found == status]
        with closing(self._reader) as reader:
            found = {code: reader.send("GET", f"/coupons/code/{code}")[0] for code in sent}
        assert set(found.values()) <= {200, 404}
        return [code for code, status in found.items() if (status == 200) is is_there]


def test_both_machines_serve(proxy, cluster, machines):
    client = Client(proxy.port, cluster.key)
    before = [machine.service.log.read_text().count('"request"') for machine in machines]
    for _ in range(20):
        status, text = client.send("GET", "/")
        assert status == 200
        assert json.loads(text)["links"]["coupons"].startswith("https://127.0.0.1:")
    wait_until(
        lambda: all(
            machine.service.log.read_text().count('"request"') - count >= 5
            for machine, count in zip(machines, before, strict=True)
        )
    )
    assert {client.send("GET", f"/{name}")[0] for name in ("metrics", "readyz", "healthz")} == {403}
    client.close()


class Checks:
    """The checks of HAProxy, which notices a failure later on a busy machine. nginx has none."""

    def __init__(self, proxy, name):
        self._proxy, self._line = proxy, f"Server changes/{name} is DOWN"
        self._before = self._reported()

    def _reported(self):
        return self._proxy.log.read_text().count(self._line)

    def wait_until_failed(self):
        if self._proxy.name == "haproxy":
            wait_until(lambda: self._reported() > self._before)


def test_machine_without_pgbouncer(proxy, cluster, machines):
    checks = Checks(proxy, "machine-1")
    with Load(proxy, cluster) as load:
        machines[0].bouncer.kill()
        killed = time.monotonic()
        checks.wait_until_failed()
        noticed = time.monotonic()
        time.sleep(SETTLED + 2)
        machines[0].bouncer.start()
        machines[0].service.wait_until_ready()
        time.sleep(1)
    failures = [
        failure
        for failure in load.failures(killed=killed)
        # PgBouncer was killed during the commit. No proxy repeats such a request.
        if not (failure[0] < killed and "shop_api_outcome_unknown" in failure[3])
    ]
    # nginx has no checks, so single requests find out again and again.
    assert [failure for failure in failures if failure[1] != "POST"] == []
    if proxy.name == "haproxy":
        assert load.failures(since=noticed) == []
    assert {failure[2] for failure in failures} <= {503}
    assert load.lost() == []


def test_unknown_outcome_of_a_write_reaches_the_client(proxy, cluster, machines):
    """The other machine would say that nothing was changed, because the record is locked."""

    def send(method, path, body, **headers):
        with closing(Client(proxy.port, cluster.key)) as client:
            return client.send(method, path, body, **headers)

    code = f"code-{uuid4()}"
    status, text = send("POST", "/coupons", {"coupon": {"code": code}})
    assert status == 201
    path = f"/coupons/{json.loads(text)['coupon']['id']}"
    key = f"key-{uuid4()}"
    requests = [
        ("PUT", path, {"coupon": {"description": "changed"}}, {}),
        ("POST", "/coupons", {"coupon": {"code": key}}, {"Idempotency_Key": key}),
    ]
    cluster.primary.configure(synchronous_standby_names="absent")
    try:
        with ThreadPoolExecutor(len(requests)) as pool:
            sent = [pool.submit(send, *each[:3], **each[3]) for each in requests]
            responses = [each.result() for each in sent]
    finally:
        cluster.primary.configure(synchronous_standby_names="")
    codes = [json.loads(text)["errors"][0]["code"] for _, text in responses]
    assert codes == ["shop_api_outcome_unknown"] * 2
    wait_until(lambda: send("PUT", path, {"coupon": {}})[0] == 200)
    assert json.loads(send("GET", path, None)[1])["coupon"]["description"] == "changed"
    method, target, body, headers = requests[1]
    assert send(method, target, body, **headers)[0] == 201


def test_killed_machine(proxy, cluster, machines):
    with Load(proxy, cluster) as load:
        machines[1].kill()
        killed = time.monotonic()
        time.sleep(SETTLED)
        machines[1].start()
        time.sleep(2)
    # A POST without a key that was in flight has an unknown outcome, and is not sent again. A second
    # attempt would have failed with 400, because the code is in use.
    assert {failure[2] for failure in load.failures(killed=killed)} <= {0, 502}
    assert load.failures(but={"POST"}, killed=killed) == []
    assert load.failures(since=killed + 1) == []
    assert load.lost() == []


def test_frozen_machine(proxy, cluster, machines):
    checks = Checks(proxy, "machine-2")
    with Load(proxy, cluster) as load:
        with programs.frozen(machines[1].service.process):
            checks.wait_until_failed()
            noticed = time.monotonic()
            time.sleep(FROZEN)
        machines[1].service.wait_until_ready()
        time.sleep(2)
    # The machine could execute a PUT or a DELETE later, so these are not repeated.
    assert {failure[2] for failure in load.failures()} <= {504}
    assert load.failures(but={"POST", "PUT", "DELETE"}) == []
    if proxy.name == "haproxy":
        assert load.failures(since=noticed) == []
    assert load.lost() == []


def test_restart_with_the_commands_of_the_unit(proxy, cluster, machines):
    machine = machines[0]
    # A reload of nginx closes the connections of clients that are idle at this moment. A client that
    # has just sent a request gets no response, and nginx has not read the request.
    with Load(proxy, cluster, is_patient=proxy.name == "nginx") as load:
        if proxy.name == "nginx":  # as the comment in nginx.conf says
            change(proxy, machine, " max_fails=1", " down max_fails=1")
        proxies.drain(machine.folder)
        assert machine.service.process.poll() is None
        machine.service.stop()
        machine.start()
        if proxy.name == "nginx":
            change(proxy, machine, " down max_fails=1", " max_fails=1")
        time.sleep(2)
    assert [each for each in load.failures() if each[1:3] != ("POST", 0)] == []
    assert (load.lost(), load.carried_out()) == ([], [])
    if proxy.name == "haproxy":
        assert load.failures() == []
    assert sum(sum(client.done.values()) for client in load.clients) > 50


def change(proxy, machine, before, after):
    address = f"127.0.0.1:{machine.service.port}"
    text = proxy.file.read_text()
    assert f"{address}{before}" in text
    proxy.configure(text.replace(f"{address}{before}", f"{address}{after}"))
    proxy.process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
