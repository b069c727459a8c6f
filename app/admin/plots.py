"""Plots: SVG made on the server, without styles and scripts (admin 3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from markupsafe import Markup

from app.admin import html

WIDTH, HEIGHT = 1000, 160
DATES = 5
"""The number of dates below a plot."""

MAX_POINTS = 400


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a plot.

    Args:
        label: the period, such as ``Nov 23``.
        value: the value.
        is_open: whether the period has not ended.
    """

    label: str
    value: Decimal
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot of one series.

    Args:
        title: what it shows.
        points: its points, at most MAX_POINTS.
        note: a note beside the title.
        is_money: whether its values are amounts, which are a line. Numbers are bars.
    """

    title: str
    points: Sequence[Point]
    note: str = ""
    is_money: bool = False

    def format(self, value: Decimal) -> str:
        """Return a value as text."""
        return html.money(value) if self.is_money else html.number(value)

    @property
    def table(self) -> list[tuple[str, str]]:
        """Its numbers: period and value."""
        return [(point.label, self.format(point.value)) for point in self.points]

    @property
    def grid(self) -> list[Decimal]:
        """The values of its grid lines, from zero."""
        return steps(max((point.value for point in self.points), default=Decimal(0)))

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
    def svg(self) -> Markup:
        """The picture."""
        return _svg(self)


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


def _svg(plot: Plot) -> Markup:
    """Return the picture, which the page stretches. The texts of its axes are beside it."""
    points = plot.points[:MAX_POINTS]
    grid = plot.grid

    def y(value: Decimal) -> float:
        return round(HEIGHT * float(1 - max(value, Decimal(0)) / grid[-1]), 1)

    slot = WIDTH / max(len(points), 1)
    xs = [round(slot * (index + 0.5), 1) for index in range(len(points))]
    lines = Markup("").join(
        Markup('<line class="grid" x1="0" x2="{}" y1="{}" y2="{}"/>').format(
            WIDTH, y(value), y(value)
        )
        for value in grid
    )
    marks = _line(points, xs, y) if plot.is_money else _bars(points, xs, slot, y)
    hits = Markup("").join(
        Markup(
            '<rect class="hit" x="{}" y="0" width="{}" height="{}"><title>{}: {}</title></rect>'
        ).format(
            round(x - slot / 2, 1), round(slot, 1), HEIGHT, point.label, plot.format(point.value)
        )
        for x, point in zip(xs, points, strict=True)
    )
    return Markup(
        '<svg viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
    ).format(WIDTH, HEIGHT, _summary(plot), lines + marks + hits)


def _summary(plot: Plot) -> str:
    if not plot.points:
        return plot.title
    best = max(plot.points, key=lambda point: point.value)
    period = f"{plot.points[0].label} to {plot.points[-1].label}"
    return f"{plot.title}, {period}, at most {plot.format(best.value)} ({best.label})"


def _path(points: Sequence[Point], xs: Sequence[float], y: Callable[[Decimal], float]) -> str:
    pairs = (f"{x} {y(point.value)}" for x, point in zip(xs, points, strict=True))
    return "M" + "L".join(pairs)


def _line(points: Sequence[Point], xs: Sequence[float], y: Callable[[Decimal], float]) -> Markup:
    if not points:
        return Markup()
    closed = [point for point in points if not point.is_open]
    count = len(closed)
    base = HEIGHT
    parts = []
    if count:
        path = _path(closed, xs[:count], y)
        parts.append(
            Markup('<path class="area" d="{}L{} {}L{} {}Z"/>').format(
                path, xs[count - 1], base, xs[0], base
            )
        )
        parts.append(Markup('<path class="series" d="{}"/>').format(path))
    if count < len(points):
        start = max(count - 1, 0)
        path = _path(points[start:], xs[start:], y)
        parts.append(Markup('<path class="series open" d="{}"/>').format(path))
    return Markup("").join(parts)


def _bars(
    points: Sequence[Point], xs: Sequence[float], slot: float, y: Callable[[Decimal], float]
) -> Markup:
    width = round(slot * 0.7, 1)
    base = HEIGHT
    return Markup("").join(
        Markup('<rect class="bar-mark{}" x="{}" y="{}" width="{}" height="{}"/>').format(
            " open" if point.is_open else "", round(x - width / 2, 1), y(point.value), width,
            round(base - y(point.value), 1),
        )
        for x, point in zip(xs, points, strict=True)
        if point.value > 0
    )  # fmt: skip


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
