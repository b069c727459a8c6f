"""Concurrent requests with one Idempotency-Key, and a process that is killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.idempotency_requests import CREATES, REQUESTS, REUSED, is_replayed, send, shop
from tests.api_client import Client, at_the_same_time, reply

ROOT = Path(__file__).parents[2]


# --- concurrent requests ---


@pytest.fixture
def at_once(admin):
    """Return a function: send requests at the same time, each by a client of its own."""

    def run(*requests):
        def one(request):
            return send(Client(admin.app, admin.key), **request)

        return at_the_same_time(one, requests)

    return run


@pytest.mark.parametrize(("method", "path", "body", "_"), REQUESTS)
@pytest.mark.pooler
def test_same_request_at_once_is_done_once(admin, at_once, method, path, body, _):
    responses = at_once(*[{"path": path, "body": body, "method": method}] * 8)
    (first,) = (response for response in responses if not is_replayed(response))
    assert first.status_code in {200, 201}
    assert [reply(response) for response in responses] == [reply(first)] * 8
    written = shop(admin)
    assert len(written["coupons"]) + len(written["customers"]) == 2  # with the administrator


@pytest.mark.pooler
def test_concurrent_bulk_updates_with_one_key_are_done_once(admin, at_once, make_coupon):
    body = {"coupons": [{"id": make_coupon()["id"], "amount": n} for n in range(5)]}
    responses = at_once(*[{"path": "/coupons/bulk", "body": body}] * 8)
    assert len({response.data for response in responses}) == 1
    assert sum(is_replayed(response) is None for response in responses) == 1


@pytest.mark.pooler
def test_other_bodies_at_once_let_one_through(admin, at_once):
    bodies = [{"coupon": {"code": f"c{n}"}} for n in range(8)]
    responses = at_once(*[{"body": body} for body in bodies])
    (created,) = (response for response in responses if response.status_code == 201)
    assert [reply(r) for r in responses if r is not created] == [REUSED] * 7
    assert shop(admin)["coupons"] == [created.get_json()["coupon"]]


@pytest.mark.both_databases
def test_other_keys_at_once_do_not_hold_each_other(admin, at_once):
    requests = [{"key": f"k-{n}", "body": {"coupon": {"code": f"c{n}"}}} for n in range(8)]
    assert {response.status_code for response in at_once(*requests)} == {201}
    assert len(shop(admin)["coupons"]) == 8


# --- a process that dies ---

DYING = """
import json, os, signal, sys
from sqlalchemy import event
from sqlalchemy.orm import Session
from app import create_app

settings, timestamp, headers, body = json.loads(sys.stdin.read())
app = create_app(settings)
event.listen(Session, timestamp, lambda session: os.kill(os.getpid(), signal.SIGKILL))
app.test_client().post("/coupons", json=body, headers=headers)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("timestamp", "is_done"), [("before_commit", False), ("after_commit", True)]
)
@pytest.mark.pooler
def test_request_again_after_the_process_was_killed(admin, settings, kept, timestamp, is_done):
    sent = admin.get("/coupons").request.headers["Authorization"]
    headers = {"Authorization": sent, "Idempotency-Key": "k-1"}
    given = json.dumps([settings, timestamp, headers, CREATES["/coupons"][0]])
    dead = subprocess.run(
        [sys.executable, "-c", DYING], input=given, text=True, cwd=ROOT, env=os.environ, check=False
    )
    assert dead.returncode == -signal.SIGKILL
    assert len(kept()) == len(shop(admin)["coupons"]) == is_done
    again = send(admin)
    assert (again.status_code, is_replayed(again)) == (201, "true" if is_done else None)
    assert shop(admin)["coupons"] == [again.get_json()["coupon"]]
