"""Measuring workloads, and the rows that compare them with targets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from qa.bench.servers import CONNECTIONS, Request, Server, Spent

CANDIDATES = 8


class Work(NamedTuple):
    """A workload that is repeated.

    Args:
        server: the server to send the requests to.
        requests: returns the requests of one round.
        times: the number of repetitions per round.
        connections: the number of simultaneous connections.
    """

    server: Server
    requests: Callable[[], Sequence[Request]]
    times: int
    connections: int = CONNECTIONS

    def run(self) -> Spent:
        """Run one round, and return the cost per repetition."""
        spent = self.server.send(self.requests(), self.connections)
        return Spent(*(value / self.times for value in spent))


class Goal(NamedTuple):
    """A target, as an upper or as a lower limit."""

    target: float
    unit: str = "times"
    at_least: bool = False

    def is_met(self, figure: float) -> bool:
        """Return whether a figure reaches the target."""
        return figure >= self.target if self.at_least else figure <= self.target


class Row(NamedTuple):
    """A measured row, with a figure for each round and details."""

    name: str
    goal: Goal
    samples: Sequence[float]
    details: str


def read(server: Server, path: str, times: int) -> Work:
    """Return a workload of GET requests for a path."""
    return Work(server, lambda: [Request(path)] * times, times)


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


def worst(name: str, rows: Sequence[Row]) -> Row:
    """Return the row with the highest figure under a common name, with its own in the details."""
    highest = max(rows, key=lambda row: median(row.samples))
    return highest._replace(name=name, details=f"{highest.name}: {highest.details}")


def milliseconds(name: str, work: Work, target: float, rounds: int) -> Row:
    """Measure the CPU time of a workload in milliseconds."""
    (costs,) = alternate([work], rounds)
    return Row(name, Goal(target, "ms"), [cpu(cost) * 1000 for cost in costs], details(costs))


def slowest(
    name: str,
    target: float,
    server: Server,
    requests: Mapping[str, Callable[[], Request]],
    rounds: int,
) -> Row:
    """Measure requests by the clock of one client, and return the row of the slowest.

    Each is sent once, and those that took longest are sent again, which decides.

    Args:
        name: what the requests are, with ``{}`` for their number.
        target: milliseconds.
        server: the server.
        requests: returns a request, by its description.
        rounds: how often those that took longest are sent again.
    """
    once = dict(zip(requests, _clock(server, requests.values()), strict=True))
    longest = sorted(once, key=lambda each: -once[each])[:CANDIDATES]
    again = {each: _clock(server, [requests[each]] * rounds) for each in longest}
    longest.sort(key=lambda each: -median(again[each]))
    missed = [each for each in longest[1:] if median(again[each]) > target]
    also = "".join(f"; {each}: {median(again[each]):.0f} ms" for each in missed)
    text = f"{longest[0]}{also}; the median of all is {median(once.values()):.1f} ms"
    return Row(name.format(f"{len(requests):,}"), Goal(target, "ms"), again[longest[0]], text)


def _clock(server: Server, requests: Collection[Callable[[], Request]]) -> list[float]:
    """Return the milliseconds that each request of one client takes."""
    return [1000 * seconds for seconds in server.waits([make() for make in requests], 1)]


def details(costs: Sequence[Spent]) -> str:
    """Return the CPU time of the service and the database, and the requests per second."""
    service = median(cost.service for cost in costs) * 1000
    database = median(cost.database for cost in costs) * 1000
    per_second = 1 / median(cost.wall for cost in costs)
    own = f" + {database:.2f}" if database else ""
    return f"{service:.2f}{own} ms, {per_second:,.0f}/s"
