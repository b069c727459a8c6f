"""Receivers of webhooks on the loopback interface, and a worker in a thread of the test."""

import base64
import hashlib
import hmac
import json
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from standardwebhooks.webhooks import Webhook

from app.worker.loop import DeliveryWorker

LOOPBACK = "127.0.0.0/8"
PATIENCE = 120  # seconds; nothing here takes three, but on a machine that does much else


class Received(NamedTuple):
    """A request that a receiver got."""

    path: str
    headers: dict
    body: bytes
    at: float
    status: int = 0

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def event_id(self):
        return int(self.headers["webhook-id"].removeprefix("evt_"))

    def verify(self, secret):
        """Verify the signature like a receiver, and return the body."""
        return Webhook(secret).verify(self.body, self.headers)

    def has_legacy_signature(self, secret):
        expected = hmac.new(secret.encode(), self.body, hashlib.sha256).digest()
        return self.headers["x-wc-webhook-signature"] == base64.b64encode(expected).decode()


class Receiver:
    """An HTTP server that stores the requests that it receives.

    Attributes:
        respond: function that takes a Received and returns a status, or a status and headers. It
            can be replaced at any time.

    Args:
        tls: the context of a receiver at https://localhost.
    """

    def __init__(self, respond=lambda _: 204, tls=None):
        self.respond = respond
        self.received = []
        self._changed = threading.Condition()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 60

            def handle(self):
                with suppress(ConnectionError):  # of a worker that was killed
                    super().handle()

            def do_POST(self):
                length = int(self.headers["Content-Length"])
                body = self.rfile.read(length)
                if len(body) < length:  # the worker was killed while it sent the request
                    raise ConnectionAbortedError
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Received(self.path, headers, body, time.time())
                answer = owner.respond(request)
                status, more, text = answer if isinstance(answer, tuple) else (answer, {}, b"")
                with owner._changed:
                    owner.received.append(request._replace(status=status))
                    owner._changed.notify_all()
                self.send_response(status)
                for name, value in more.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.request_queue_size = 128
        self.url = f"http://127.0.0.1:{self._server.server_port}/hooks"
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
            self.url = f"https://localhost:{self._server.server_port}/hooks"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def wait(self, number, seconds=PATIENCE):
        """Wait for ``number`` requests and return them."""
        with self._changed:
            arrived = self._changed.wait_for(lambda: len(self.received) >= number, seconds)
            assert arrived, f"{len(self.received)} of {number} requests arrived"
            return self.received[:number]

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def running_worker(app):
    """Run a worker on an app in a thread."""
    worker = DeliveryWorker(app)
    thread = threading.Thread(target=worker.run)
    thread.start()
    end = time.monotonic() + PATIENCE
    while not worker.is_running and time.monotonic() < end:
        time.sleep(0.005)
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def until(condition, what, seconds=PATIENCE):
    """Call a function until its result is true, and return the result."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} seconds: {what}")
