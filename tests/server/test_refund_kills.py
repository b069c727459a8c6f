"""Refunds of one order while workers are killed: never more than its total, and none half-written."""

import http.client
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from decimal import Decimal

import psutil
import pytest

from qa.cluster.writers import Caller
from tests.server.service import Service

CLIENTS = 6
KILLS = 6
TOTAL = Decimal("60.00")
LINE = {"product_id": 1, "name": "Teapot", "quantity": 60, "price": "1.00", "total": "60.00"}


@pytest.fixture
def service(fresh_database_url, tmp_path):
    service = Service(fresh_database_url, tmp_path)
    try:
        service.start()
        with closing(Caller(service.port, service.key)) as caller:
            service.wait_until_ready(caller)
        yield service
    finally:
        service.close()


def refund_until_rejected(service, path, item_id, acknowledged):
    """Refund a unit at a time until nothing is left. A killed worker does not respond."""
    body = {"line_items": [{"id": item_id, "quantity": 1, "total": "1.00"}]}
    with closing(Caller(service.port, service.key)) as caller:
        while True:
            try:
                status, response = caller.send("POST", path, {"order_refund": body})
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.01)
                continue
            if status == 400:
                return response["errors"][0]["code"]
            assert status in {201, 503, 504}, response
            if status == 201:
                acknowledged.append(response["order_refund"]["id"])


def kill_workers(service, done):
    """Kill a worker several times, at any moment of a request."""
    chance, kills = random.Random(1), 0
    while kills < KILLS and not done.is_set():
        time.sleep(0.1 + chance.random() / 5)
        if workers := service.workers():
            try:
                chance.choice(workers).kill()
            except psutil.NoSuchProcess:
                continue
            kills += 1
    return kills


@pytest.mark.slow
def test_refunds_of_one_order_are_exact_while_workers_are_killed(service):
    with closing(Caller(service.port, service.key)) as caller:
        status, body = caller.send("POST", "/orders", {"order": {"line_items": [LINE]}})
        assert status == 201, body
        order = body["order"]
        assert Decimal(order["total"]) == TOTAL
        path, item_id = f"/orders/{order['id']}/refunds", order["line_items"][0]["id"]
        acknowledged, done = [], threading.Event()
        with ThreadPoolExecutor(CLIENTS + 1) as pool:
            killer = pool.submit(kill_workers, service, done)
            clients = [
                pool.submit(refund_until_rejected, service, path, item_id, acknowledged)
                for _ in range(CLIENTS)
            ]
            codes = {client.result() for client in clients}
            done.set()
        assert codes == {"shop_api_invalid_order_refund"}
        assert killer.result() > 0
        service.wait_until_ready(caller)

        refunds = caller.send("GET", path)[1]["order_refunds"]
        assert sum(Decimal(each["amount"]) for each in refunds) == TOTAL
        ids = [each["id"] for each in refunds]
        assert set(acknowledged) <= set(ids)
        assert len(acknowledged) == len(set(acknowledged))
        for each in refunds:  # each has its item, and its event
            (item,) = each["line_items"]
            assert (item["quantity"], item["total"]) == (1, "1.00")
        events = caller.send("GET", "/events?filter[type]=order_refund.created&filter[limit]=1000")
        assert sorted(each["resource_id"] for each in events[1]["events"]) == sorted(ids)
        status, body = caller.send("GET", f"/orders/{order['id']}")
        assert body["order"]["status"] == "refunded"
