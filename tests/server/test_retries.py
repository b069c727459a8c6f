"""Retries after a kill of the whole service (Idempotency-Key)."""

import http.client
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from threading import Event

import pytest

from qa.cluster.writers import SECONDS, Caller
from tests.server.test_server import Server


def create(server, code, headers):
    """Create a coupon with a new key. Returns the status, the body, and whether it was a replay."""
    status, answered, body = server.request(
        "POST", "/coupons", {"coupon": {"code": code}}, headers | {"Idempotency-Key": code}
    )
    return status, body, answered.get("Idempotent-Replayed")


@pytest.mark.slow
def test_killed_server_has_processed_each_request_at_most_once(tmp_path):
    sent, answered, some_are_done = [], {}, Event()

    def send(number):
        for code in (f"code-{number}-{each}" for each in count()):
            sent.append(code)
            try:
                answered[code] = create(server, code, {})
            except (OSError, http.client.HTTPException):
                return  # killed meanwhile: no answer, or half of one
            if len(answered) >= 10:
                some_are_done.set()

    server = Server(f"sqlite:///{tmp_path}/shop.db", tmp_path)
    try:
        start(server)
        with ThreadPoolExecutor(8) as pool:
            senders = [pool.submit(send, number) for number in range(8)]
            assert some_are_done.wait(SECONDS)
            server.kill_everything()
            for each in senders:
                each.result(SECONDS)
        assert 10 <= len(answered) < len(sent)
        start(server)
        for code in sent:
            status, body, replayed = create(server, code, {})
            assert (status, body["coupon"]["code"]) == (201, code)
            if code in answered:
                assert (body, replayed) == (answered[code][1], "true")
        assert server.request("GET", "/coupons/count")[2] == {"count": len(sent)}
    finally:
        server.close()


def start(server):
    server.start()
    with closing(Caller(server.port, server.key)) as caller:
        server.wait_until_ready(caller)
