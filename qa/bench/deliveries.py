"""A worker with a local receiver: the time from a commit to the arrival, and deliveries per second.

``python -m qa.bench.deliveries receive`` is the receiver.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil
from flask import Flask

from app import create_app
from app.auth.principals import ROLES, Principal
from app.db.session import db, run_in_transaction
from app.services.events.outbox import NewEvent, record
from app.services.webhooks import writes as webhooks
from tests.serving import ROOT, SECRET, new_shop

LOOPBACK = {"SHOP_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8"}
SINGLE = 60
QUEUED = 3000
PATIENCE = 300
DATA = {"coupon": {f"field_{number}": "x" * 20 for number in range(22)}}
"""Data with the length of a coupon."""


async def _receive() -> None:
    """Respond with 204 and write the ID and the time of each delivery. Runs in its own process."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        (length,), (name,) = (
            re.findall(rf"^{header}: (\S+)", head, re.MULTILINE)
            for header in ("content-length", "webhook-id")
        )
        await reader.readexactly(int(length))
        sys.stdout.write(f"{name.removeprefix('evt_')} {time.time()}\n")
        sys.stdout.flush()
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=512)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


def _publish(app: Flask, number: int) -> None:
    events = [NewEvent("coupon.updated", each, DATA) for each in range(1, number + 1)]
    with app.app_context():
        run_in_transaction(lambda session: record(session, None, events))


def _arrivals(file: Path, number: int) -> list[float]:
    """Wait for a number of deliveries, and return their times of arrival in order."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        lines = [line.split() for line in file.read_text().splitlines()[1:]]
        found = {int(line[0]): float(line[1]) for line in lines if len(line) == 2}
        if len(found) >= number:
            return [found[event_id] for event_id in sorted(found)]
        time.sleep(0.1)
    raise TimeoutError(f"{number} deliveries did not arrive within {PATIENCE} seconds")


@contextmanager
def _process(*arguments: str, output: Path, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    with output.open("wb") as file:
        process = subprocess.Popen(  # noqa: S603  # our own
            [sys.executable, "-m", *arguments], cwd=ROOT, env=os.environ | env, stdout=file
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE)


class Figures(NamedTuple):
    """Figures of a worker.

    Attributes:
        waits: seconds from each commit to its arrival, in ascending order.
        per_second: deliveries per second by the wall clock.
        per_cpu_second: deliveries per CPU second of the worker.
    """

    waits: Sequence[float]
    per_second: float
    per_cpu_second: float


def _measure(app: Flask, arrivals: Path, worker: subprocess.Popen[bytes]) -> Figures:
    _publish(app, 1)
    _arrivals(arrivals, 1)  # the worker runs
    commits = []
    for number in range(SINGLE):
        _publish(app, 1)
        commits.append(time.time())
        time.sleep(0.15 + number % 7 * 0.013)
    arrived = _arrivals(arrivals, 1 + SINGLE)[1:]
    waits = sorted(now - then for now, then in zip(arrived, commits, strict=True))
    process = psutil.Process(worker.pid)
    process.send_signal(signal.SIGSTOP)
    _publish(app, QUEUED)
    before, started = sum(process.cpu_times()[:2]), time.time()
    process.send_signal(signal.SIGCONT)
    last = max(_arrivals(arrivals, 1 + SINGLE + QUEUED))
    spent = sum(process.cpu_times()[:2]) - before
    return Figures(waits, QUEUED / (last - started), QUEUED / spent)


@contextmanager
def receiving(folder: Path) -> Iterator[str]:
    """Run a receiver in its own process and yield its URL. It writes ``arrivals`` in the folder."""
    arrivals = folder / "arrivals"
    with _process("qa.bench.deliveries", "receive", output=arrivals):
        while not (first := arrivals.read_text().splitlines()):
            time.sleep(0.05)
        yield f"http://127.0.0.1:{first[0]}/"


def add_webhooks(app: Flask, user_id: int, url: str, number: int = 1) -> None:
    """Create webhooks for all events."""
    new = {"name": "", "topics": ["*"], "delivery_url": url, "secret": None, "status": "active"}
    with app.app_context():
        for _ in range(number):
            webhooks.create_webhook(Principal(user_id, ROLES["administrator"]), new)


@contextmanager
def running_worker(shop: Mapping[str, str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker of a shop."""
    command = "app.main", "worker"
    with _process(*command, output=folder / "worker.log", **shop) as worker:
        yield worker


def measure(url: str) -> Figures:
    """Measure one worker with one webhook.

    Args:
        url: a database with the current schema and no users.
    """
    with tempfile.TemporaryDirectory(prefix="shop-deliveries-") as name:
        folder = Path(name)
        shop = {"DATABASE_URL": url, "SECRET_KEY": SECRET} | LOOPBACK
        key = new_shop(shop | {"INSTANCE_PATH": name})
        app = create_app(shop | {"INSTANCE_PATH": name})
        with receiving(folder) as receiver:
            add_webhooks(app, key.user_id, receiver)
            with running_worker(shop, folder) as worker:
                figures = _measure(app, folder / "arrivals", worker)
        with app.app_context():
            for engine in db.engines.values():
                engine.dispose()
    return figures


if __name__ == "__main__":
    asyncio.run(_receive())
