"""A small shop with the WooCommerce API ``wc/v3``, which can have a race in its coupons."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from oauthlib.common import Request
from oauthlib.oauth1.rfc5849.signature import verify_hmac_sha256

KEY, SECRET = "ck_of_the_tests", "cs_of_the_tests"
PATH = "/wp-json/wc/v3/"
SECONDS = 120


class Mode(NamedTuple):
    """How the shop takes a use of a coupon."""

    locks: bool = True
    """Whether it checks and counts in one step. Otherwise, all clients check before one counts."""
    counts_each: bool = True
    """Whether simultaneous uses are counted separately."""
    responds_above_limit: bool = True
    """Whether it responds to a request that exceeds the limit. Otherwise, the connection is lost."""
    available: bool = True
    """Whether it accepts orders."""
    removable: bool = True
    """Whether records can be deleted."""


class Shop(ThreadingHTTPServer):
    """The records of the shop, and the number of requests."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, mode, clients):
        super().__init__(("127.0.0.1", 0), Handler)
        self.mode = mode
        self.checked = threading.Barrier(clients, timeout=SECONDS)
        self.lock = threading.Lock()
        self.records = {"coupons": {}, "products": {}, "orders": {}}
        self.requests = 0
        self.ids = count(1)

    @property
    def port(self):
        return self.server_address[1]

    def take_use(self, code):
        """Return the new count of the coupon, or None if the limit is reached."""
        (coupon,) = (each for each in self.records["coupons"].values() if each["code"] == code)
        if self.mode.locks:
            with self.lock:
                if coupon["usage_count"] >= coupon["usage_limit"]:
                    return None
                coupon["usage_count"] += 1
                return coupon["usage_count"]
        before = coupon["usage_count"]
        if before >= coupon["usage_limit"]:
            return None
        self.checked.wait()
        with self.lock:
            coupon["usage_count"] = (coupon["usage_count"] if self.mode.counts_each else before) + 1
            return coupon["usage_count"]


class Handler(BaseHTTPRequestHandler):
    """Responds to the requests that the adapter sends."""

    protocol_version = "HTTP/1.1"
    server: Shop

    def log_message(self, *arguments):
        """Write no log."""

    def handle_any(self):
        self.server.requests += 1
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        address = urlsplit(self.path)
        query = dict(parse_qsl(address.query))
        if not self.is_signed(address.path, query):
            return self.respond(401, {"message": f"Unknown key: {query['oauth_consumer_key']}"})
        kind, _, record_id = address.path.removeprefix(PATH).partition("/")
        records = self.server.records[kind]
        if self.command == "POST":
            return self.create(kind, records, body)
        if self.command == "DELETE" and not self.server.mode.removable:
            return self.respond(403, {"message": "Sorry, you are not allowed to do that."})
        if self.command == "DELETE":
            assert query["force"] == "true"
            return self.respond(200, records.pop(int(record_id)))
        if record_id:
            return self.respond(200, records[int(record_id)])
        found = [each for each in records.values() if query["search"] in each["billing"]["email"]]
        return self.respond(200, found[: int(query["per_page"])])

    do_GET = do_POST = do_DELETE = handle_any  # noqa: N815  # names of the base class

    def is_signed(self, path, query):
        """Whether another implementation of OAuth computes the same signature."""
        request = Request(f"http://{self.headers['Host']}{path}", self.command)
        request.signature = query.pop("oauth_signature")
        request.params = list(query.items())
        return query["oauth_consumer_key"] == KEY and verify_hmac_sha256(request, SECRET)

    def create(self, kind, records, body):
        body |= {"id": next(self.server.ids)}
        if kind == "orders" and not self.server.mode.available:
            return self.respond(503, {"message": "Down for maintenance"})
        records[body["id"]] = body  # WooCommerce stores an order before it checks its coupon
        if kind == "coupons":
            body["usage_count"] = 0
        if kind == "orders":
            used = self.server.take_use(body["coupon_lines"][0]["code"])
            if used is None:
                return self.respond(400, {"message": "Coupon usage limit has been reached."})
            (coupon,) = self.server.records["coupons"].values()
            if used > coupon["usage_limit"] and not self.server.mode.responds_above_limit:
                self.close_connection = True
                return None
        return self.respond(201, body)

    def respond(self, status, body):
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def running_shop(mode, clients):
    """Serve a shop for as long as the block lasts."""
    with Shop(mode, clients) as shop:
        thread = threading.Thread(target=shop.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield shop
        finally:
            shop.shutdown()
            thread.join()
