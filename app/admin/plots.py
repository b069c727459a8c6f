"""Plots: SVG made on the server, without styles and scripts (admin 3)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

from markupsafe import Markup

from app.admin import html

WIDTH, HEIGHT = 1000, 160
DATES = 5
"""The number of dates below a plot."""


class Point(NamedTuple):
    """A point of a plot."""

    label: str  # the period, such as ``Nov 23``
    value: Decimal
    is_open: bool = False  # whether the period has not ended


@dataclass(frozen=True)
class Plot:
    """A plot of one series, which the macro ``plot`` draws. The page stretches the picture."""

    title: str
    points: Sequence[Point]  # at least one
    note: str = ""  # beside the title
    is_money: bool = False  # amounts are a line, numbers are bars

    def format(self, value: Decimal) -> str:
        """Return a value as text."""
        return html.money(value) if self.is_money else html.number(value)

    @cached_property
    def grid(self) -> list[Decimal]:
        """The values of its grid lines, from zero."""
        return steps(max(point.value for point in self.points))

    @property
    def values(self) -> list[str]:
        """The labels of its grid lines, from the top."""
        sign = html.currency_sign() if self.is_money else ""
        return [f"{sign}{short(value)}" for value in reversed(self.grid)]

    @property
    def dates(self) -> list[str]:
        """The labels below it: the first period, the last one, and some between them."""
        last = len(self.points) - 1
        count = min(DATES, last + 1)
        places = [round(index * last / max(count - 1, 1)) for index in range(count)]
        return [self.points[place].label for place in places]

    @property
    def summary(self) -> str:
        """What the picture shows, in words."""
        best = max(self.points, key=lambda point: point.value)
        period = f"{self.points[0].label} to {self.points[-1].label}"
        return f"{self.title}, {period}, at most {self.format(best.value)} ({best.label})"

    @property
    def slot(self) -> float:
        """The width of a period."""
        return WIDTH / len(self.points)

    def y(self, value: Decimal) -> float:
        """Return the place of a value."""
        return round(HEIGHT * float(1 - max(value, Decimal(0)) / self.grid[-1]), 1)

    def path(self, *, is_open: bool) -> str:
        """Return the line of the periods that have ended, or from the last one of them on."""
        ended = sum(not point.is_open for point in self.points)
        places = range(max(ended - 1, 0), len(self.points)) if is_open else range(ended)
        pairs = (
            f"{round(self.slot * (place + 0.5), 1)} {self.y(self.points[place].value)}"
            for place in places
        )
        return "L".join(pairs) if len(places) > is_open else ""


def steps(top: Decimal) -> list[Decimal]:
    """Return the values of the grid lines: three to five round steps from zero."""
    if top <= 0:
        return [Decimal(0), Decimal(1)]
    size = Decimal(10) ** math.floor(math.log10(top / 4))
    step = next(
        size * factor for factor in (1, 2, Decimal("2.5"), 5, 10) if size * factor * 4 >= top
    )
    if step < 1 and top >= 1:
        step = Decimal(1)
    return [step * index for index in range(math.ceil(top / step) + 1)]


def short(value: Decimal) -> str:
    """Return a value of the axis: ``1.5k``."""
    for limit, suffix in ((10**9, "b"), (10**6, "m"), (10**3, "k")):
        if value >= limit:
            return f"{(value / limit).quantize(Decimal('0.1')).normalize():f}{suffix}"
    return f"{value.normalize():f}"


def sparkline(values: Sequence[Decimal]) -> Markup:
    """Return a line without axes, for a tile."""
    if len(values) < 2:
        return Markup()
    top = max(values) or Decimal(1)
    step = 100 / (len(values) - 1)
    path = "L".join(
        f"{round(index * step, 1)} {round(26 - 24 * float(value / top), 1)}"
        for index, value in enumerate(values)
    )
    return Markup(
        '<svg viewBox="0 0 100 28" preserveAspectRatio="none" aria-hidden="true">'
        '<path class="series" d="M{}"/></svg>'
    ).format(path)
