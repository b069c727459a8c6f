"""Rows about the start of the service and the authentication of requests."""

from __future__ import annotations

import time
from statistics import median

from bench.measuring import Goal, Row
from bench.shops import SECRET, Shop


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
