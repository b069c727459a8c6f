"""A service for tests of the server: gunicorn, which is killed and restarted on the same address.

Also requests that must succeed while it is.
"""

import http.client
import json
import shutil
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from threading import Event

from qa.cluster.writers import SECONDS, Caller
from tests.serving import ROOT, ShopServer
from tests.webhooks.receivers import LOOPBACK

WORKERS = 2
CLIENTS = 12
PATIENCE = 120  # seconds; a start takes two seconds on an idle machine


class Service(ShopServer):
    """A gunicorn with two workers that can be killed."""

    def __init__(self, database_url, folder):
        super().__init__(
            database_url,
            folder,
            WEB_CONCURRENCY=str(WORKERS),
            SHOP_PAGE_SIZE="1000000",  # one page contains the whole store
            SHOP_WEBHOOK_ALLOWED_NETWORKS=LOOPBACK,
        )
        self.patience = PATIENCE

    def wait_until_ready(self, caller):
        """Wait until the service and its database respond. The caller opens a new connection.

        Its old connection can lead to a killed process.
        """
        super().wait_until_ready()
        caller.close()

    def kill_master(self):
        """Kill the main process. Its workers detect this and finish their requests."""
        orphans = self.workers()
        self.process.kill()
        self.process.wait()
        return orphans

    def kill_everything(self):
        """Kill all processes at the same time, as in a failure of the machine."""
        orphans = self.kill_master()
        for orphan in orphans:
            orphan.kill()
        return orphans


def copied_code(folder):
    """Copy the code into a folder, where a test may change it, and return the folder."""
    for name in ("app", "migrations", "server"):
        shutil.copytree(ROOT / name, folder / name)
    for file in ("wsgi.py", "gunicorn.conf.py"):
        shutil.copy(ROOT / file, folder)
    return folder


def get(port, path="/healthz"):
    """Return the body of a response on a new connection."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)) as connection:
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())


@contextmanager
def load(service):
    """Send requests meanwhile, half of the clients over kept connections. All must succeed."""
    stop = Event()

    def count():
        with closing(Caller(service.port, service.key)) as caller:
            status, body = caller.send("GET", "/coupons/count")
        assert status == 200, body
        return body["count"]

    def send(number):
        sent = 0
        with closing(Caller(service.port, service.key)) as caller:
            while not stop.is_set():
                sent += 1
                coupon = {"code": f"{begun}-{number}-{sent}"}
                assert caller.send("POST", "/coupons", {"coupon": coupon})[0] == 201
                assert caller.send("GET", "/coupons/count")[0] == 200
                if number % 2:
                    caller.close()
        return sent

    begun = count()
    with ThreadPoolExecutor(CLIENTS) as pool:
        clients = [pool.submit(send, number) for number in range(CLIENTS)]
        try:
            yield
        finally:
            stop.set()
        sent = sum(client.result() for client in clients)
    assert count() == begun + sent


def begin(service, body):
    """Send the head of a request. Return the connection when a worker has read it."""
    connection = socket.create_connection(("127.0.0.1", service.port), timeout=SECONDS)
    head = [
        "POST /coupons HTTP/1.1",
        "Host: shop.example",
        f"Authorization: {Caller(service.port, service.key)._headers['Authorization']}",
        f"Content-Length: {len(body)}",
        "Expect: 100-continue",
    ]
    connection.sendall("\r\n".join([*head, "", ""]).encode())
    assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
    return connection


def response_of(connection):
    """The status and the body of a response."""
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response.status, json.loads(response.read())


def refuses(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=SECONDS).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        pass
    return False
