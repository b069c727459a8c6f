"""Rows about the start of the service and the authentication of requests."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from statistics import median

from qa.bench.measuring import Goal, Row
from qa.bench.servers import Server
from qa.bench.shops import SECRET, Shop
from tests.serving import ROOT, reserved_port

SETTLED = 0.1
"""Seconds of CPU in three seconds below which all processes have started."""


def authentication(shop: Shop, rounds: int) -> Row:
    """Measure the authentication and authorization that run before each view."""
    from app import create_app  # noqa: PLC0415  # the only use of the service in this process

    app = create_app({"DATABASE_URL": shop.url, "SECRET_KEY": SECRET})
    authenticate = app.before_request_funcs["coupons"][0]
    samples = []
    for _ in range(rounds + 1):
        contexts = [
            app.test_request_context("/coupons/7", headers=shop.headers) for _ in range(1000)
        ]
        spent = 0.0
        for context in contexts:
            with context:
                for prepare in app.before_request_funcs[None]:
                    prepare()
                started = time.thread_time()
                authenticate()
                spent += time.thread_time() - started
        samples.append(spent / len(contexts) * 1e6)
    return Row("authentication with a cached key", Goal(20, 5, unit="µs"), samples[1:], "CPU")


def start(shop: Shop, rounds: int) -> Row:
    """Measure the time from the start of gunicorn to its first response."""
    samples, spent = [], []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        with shop.serve() as server:
            samples.append(time.perf_counter() - started)
            spent.append(server.spent().service)
    details = f"wall-clock; {median(spent[1:]):.2g} s CPU"
    return Row("start to first response", Goal(1.5, 0.7, unit="s"), samples[1:], details)


def list_of_commands(rounds: int) -> Row:
    """Measure ``shop-api --help``."""
    samples = []
    for _ in range(rounds + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        program = [sys.executable, "-m", "app.main", "--help"]
        subprocess.run(program, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)  # noqa: S603  # ours
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        samples.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return Row("`shop-api --help`", Goal(0.5, 0.25, unit="s"), samples[1:], "CPU")


def serve(shop: Shop, rounds: int) -> Iterator[Row]:
    """Measure ``shop-api serve`` with two workers: CPU time and memory after the start."""
    spent, memory = [], []
    for _ in range(rounds):
        with closing(reserved_port()) as reserved:
            port = reserved.getsockname()[1]
            env = {"DATABASE_URL": shop.url, "SECRET_KEY": SECRET, "PORT": str(port)}
            process = subprocess.Popen(  # our own program, no shell
                [sys.executable, "-m", "app.main", "serve"],
                cwd=ROOT,
                env=os.environ | env | {"WEB_CONCURRENCY": "2"},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            server, last = Server(process, port, {}, None), -SETTLED
            while (now := server.spent().service) - last >= SETTLED:
                last = now
                time.sleep(3)
            spent.append(now)
            memory.append(server.memory() / 2**20)
            process.terminate()
            process.wait()
    yield Row(
        "CPU time of the start of `shop-api serve`", Goal(3, 2, unit="s"), spent, "two workers"
    )
    details = "two workers; shared pages are divided between the processes"
    yield Row("memory of `shop-api serve`", Goal(220, 150, unit="MiB"), memory, details)
