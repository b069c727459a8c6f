"""Periods and plots of reports: SVG made on the server, without styles and scripts (admin 3)."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple, TypeVar

from flask import current_app, request
from markupsafe import Markup

from app.api.authentication import current_principal
from app.db.replicas.routing import current_replicas
from app.errors import ShopError
from app.plugins.admin import html, texts
from app.plugins.admin.calls import Record, call, can
from app.plugins.admin.texts import gettext as _
from app.services.reports.coupons import uses_of_batch
from app.services.reports.period import ReportQuery, period_of
from app.services.reports.refusals import refusals_by_day

T = TypeVar("T")

WIDTH, HEIGHT = 1000, 160
DATES = 5
"""The number of dates below a plot."""

DEFINITIONS = (
    "Revenue is the sum of the orders before refunds. Refunds count on their own day. Net revenue "
    "is revenue without shipping, taxes and refunds. Orders count in the statuses that the shop "
    "counts as paid, and when they are refunded."
)


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
        return html.money(value) if self.is_money else html.number(value)

    @cached_property
    def grid(self) -> list[Decimal]:
        """The values of its grid lines, from zero."""
        return steps(max(point.value for point in self.points))

    @property
    def values(self) -> list[str]:
        """The labels of its grid lines, from the top."""
        shown = [short(value) for value in reversed(self.grid)]
        currency = current_app.config["SHOP_CURRENCY"]
        return [html.with_currency(each, currency) for each in shown] if self.is_money else shown

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
        return _(
            "%(title)s, %(first)s to %(last)s, at most %(value)s (%(best)s)",
            title=self.title,
            first=self.points[0].label,
            last=self.points[-1].label,
            value=self.format(best.value),
            best=best.label,
        )

    @property
    def slot(self) -> float:
        return WIDTH / len(self.points)

    def y(self, value: Decimal) -> float:
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
            return f"{texts.decimal(value / limit, 1, trimmed=True)}{suffix}"
    return texts.decimal(value, 6, trimmed=True)


def sparkline(figures: Iterable[object]) -> Markup:
    """Return a line without axes, for a tile. As in a plot, nothing is below zero."""
    values = [max(Decimal(str(each)), Decimal(0)) for each in figures]
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


PERIODS = {"7": "Last 7 days", "30": "Last 30 days", "90": "Last 90 days", "365": "Last 12 months"}
"""Labels of the periods, by their number of days."""

DEFAULT = "30"

SLOW = "The report takes too long. Choose a shorter period."

MONEY = {"total", "revenue", "average_order", "discount", "refunded", "net"}
"""Figures that are amounts."""


def change(value: Decimal, before: Decimal) -> str:
    """Return a change in words: ``↑ 12% more``."""
    if value == before:
        return _("as before") if value else ""
    if not before:
        return _("new")
    percent = abs(value - before) * 100 / abs(before)
    shown = texts.decimal(percent, 0 if percent >= 1 else 1)
    return (
        _("↑ %(percent)s%% more", percent=shown)
        if value > before
        else _("↓ %(percent)s%% less", percent=shown)
    )


def figure(name: str, value: int | str) -> str:
    """Return a figure of a report as text: an amount or a number."""
    return html.money(value) if name in MONEY else html.number(value)


def change_of(totals: Record, name: str) -> str:
    """Return the change of a figure since the period before, in words."""
    return change(Decimal(str(totals[name])), Decimal(str(totals["previous"][name])))


def after_refunds(totals: Record) -> str:
    """Return what is left of the revenue, if there were refunds."""
    left = Decimal(totals["total"]) - (refunded := Decimal(totals["refunded"]))
    return _("%(amount)s after refunds", amount=html.money(left)) if refunded else ""


def from_replica(report: Callable[[], T]) -> T:
    """Return a report, read from a replica if there is one. All else is read from the primary."""
    replicas = current_replicas()
    return replicas.read(report) if replicas else report()


def unless_slow(report: Callable[[], T]) -> T | None:
    """Return a report, or None if it takes longer than a statement may.

    The page then shows what else it has.
    """
    try:
        return from_replica(report)
    except ShopError as error:
        if error.status != 503:
            raise
        return None


def chosen_days() -> str:
    """Return the number of days of the period in the address."""
    days = request.args.get("days", DEFAULT)
    return days if days in PERIODS else DEFAULT


def period_query(days: str, *, with_interval: bool = True) -> dict[str, str]:
    """Return the parameters of a report for the last days: its period and its interval."""
    today, number = html.today(), int(days)
    period = {"from": (today - timedelta(days=number - 1)).isoformat(), "to": today.isoformat()}
    return period | ({"interval": "day" if number <= 92 else "week"} if with_interval else {})


def plots(
    intervals: Sequence[dict[str, object]], labels: dict[str, str], note: str = ""
) -> list[Plot]:
    """Return a plot for each figure of a report, by its name and label.

    The last interval has not ended.
    """
    found = []
    for name, label in labels.items() if intervals else ():
        points = [
            Point(label_of(str(each["label"])), Decimal(str(each[name])), each is intervals[-1])
            for each in intervals
        ]
        found.append(Plot(label, points, note, is_money=name in MONEY))
    return found


def label_of(label: str) -> str:
    """Return the label of an interval; that of a day as a date."""
    try:
        return html.short_date(date.fromisoformat(label))
    except ValueError:
        return label


def _plots_of(
    read: Callable[[], Sequence[dict[str, object]]], labels: dict[str, str], note: str = ""
) -> list[Plot]:
    """Return the plots of a report, or none if it takes too long."""
    return plots(unless_slow(read) or [], labels, note)


def refusal_plots(days: str) -> list[Plot]:
    """Return the plot of the codes that were refused in the last days."""
    last = html.today()
    period = period_of(ReportQuery(since=last - timedelta(days=int(days) - 1), until=last))
    labels = {"refused": _("Refused codes by day")}
    return _plots_of(lambda: refusals_by_day(current_principal(), period), labels)


def batch_plots(batch_id: int) -> list[Plot]:
    """Return the plot of the uses of a batch in the last 30 days, if the session may read it."""
    if not can("get_coupon_report"):
        return []
    period = period_of(ReportQuery())
    uses = {"uses": _("Uses")}
    return _plots_of(
        lambda: uses_of_batch(current_principal(), batch_id, period), uses, _("last 30 days")
    )


def coupon_plots(coupon_id: int) -> list[Plot]:
    """Return the plots of a coupon: uses and revenue of the last 30 days, unless all are zero."""
    if not can("get_coupon_report"):
        return []

    def read() -> list[dict[str, object]]:
        reply = call("get_coupon_report", query=period_query(DEFAULT), coupon_id=coupon_id)
        found: list[dict[str, object]] = reply.content["intervals"]
        return found

    found = _plots_of(read, {"uses": _("Uses"), "revenue": _("Revenue")}, _("last 30 days"))
    return [plot for plot in found if any(point.value for point in plot.points)]
