"""Rows about ``shop-api serve`` with two workers: CPU time and memory of the start."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing

from qa.bench.measuring import Goal, Row
from qa.bench.servers import Server
from qa.bench.shops import SECRET, Shops
from tests.serving import ROOT, reserved_port

SETTLED = 0.1
"""Seconds of CPU in three seconds below which all processes have started."""


def rows(shops: Shops, rounds: int) -> Iterator[Row]:
    """Start it several times."""
    spent, memory = [], []
    url = shops.empty("SQLite", "served").url
    for _ in range(rounds):
        with closing(reserved_port()) as reserved:
            port = reserved.getsockname()[1]
            env = {"DATABASE_URL": url, "SECRET_KEY": SECRET, "PORT": str(port)}
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
    yield Row("CPU time of the start of `shop-api serve`", Goal(2, "s"), spent, "two workers")
    details = "two workers; shared pages are divided between the processes"
    yield Row("memory of `shop-api serve`", Goal(160, "MiB"), memory, details)
