"""Measuring workloads, and the rows that compare them with targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

from qa.bench.servers import CONNECTIONS, Request, Server, Spent, has_wrk


class Work(NamedTuple):
    """A workload that is repeated.

    Args:
        server: the server to send the requests to.
        requests: returns the requests of one round.
        times: the number of repetitions per round.
        connections: the number of simultaneous connections.
        path: the path, if every request is a GET request for it. ``wrk`` can send these.
    """

    server: Server
    requests: Callable[[], Sequence[Request]]
    times: int
    connections: int = CONNECTIONS
    path: str | None = None

    def run(self) -> Spent:
        """Run one round, and return the cost per repetition."""
        if self.path and has_wrk():
            return self.server.send_with_wrk(self.path, self.connections)
        spent = self.server.send(self.requests(), self.connections)
        return Spent(*(value / self.times for value in spent))


class Goal(NamedTuple):
    """A target and a stretch target, as upper or as lower limits."""

    target: float
    stretch: float
    at_least: bool = False
    unit: str = ""


class Row(NamedTuple):
    """A measured row, with a figure for each round and details."""

    name: str
    goal: Goal
    samples: Sequence[float]
    details: str


def read(server: Server, path: str, times: int) -> Work:
    """Return a workload of GET requests for a path."""
    return Work(server, lambda: [Request(path)] * times, times, path=path)


def alternate(works: Sequence[Work], rounds: int) -> list[list[Spent]]:
    """Run workloads alternately, and return the costs per repetition of each in every round."""
    found: list[list[Spent]] = [[] for _ in works]
    for turn in range(-1, rounds):  # the first round is a warm-up
        for work, costs in zip(works, found, strict=True):
            spent = work.run()
            if turn >= 0:
                costs.append(spent)
    return found


def cpu(spent: Spent) -> float:
    """Return the CPU time of all server processes."""
    return spent.service + spent.database


def ratio(name: str, goal: Goal, work: Work, other: Work, rounds: int) -> Row:
    """Compare the CPU time of two workloads. If the goal is a lower limit, invert the ratio."""
    costs, others = alternate([work, other], rounds)
    samples = [
        cpu(there) / cpu(here) if goal.at_least else cpu(here) / cpu(there)
        for here, there in zip(costs, others, strict=True)
    ]
    return Row(name, goal, samples, f"{details(costs)} vs. {details(others)}")


def milliseconds(name: str, work: Work, target: float, rounds: int) -> Row:
    """Measure the CPU time of a workload in milliseconds. The stretch target is half the target."""
    (costs,) = alternate([work], rounds)
    goal = Goal(target, target / 2, unit="ms")
    return Row(name, goal, [cpu(cost) * 1000 for cost in costs], details(costs))


def details(costs: Sequence[Spent]) -> str:
    """Return the CPU time of the service and the database, and the requests per second."""
    service = median(cost.service for cost in costs) * 1000
    database = median(cost.database for cost in costs) * 1000
    per_second = 1 / median(cost.wall for cost in costs)
    own = f" + {database:.2f}" if database else ""
    return f"{service:.2f}{own} ms, {per_second:,.0f}/s"
