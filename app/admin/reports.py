"""Plots and tiles of the reports of the API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, TypeVar

from app.admin import html
from app.admin.calls import call
from app.admin.plots import Plot, Point
from app.admin.texts import gettext as _
from app.api.authentication import current_principal
from app.errors import ShopError
from app.services.reports.coupons import uses_of_batch
from app.services.reports.period import period_of

T = TypeVar("T")

PERIODS = {"7": "Last 7 days", "30": "Last 30 days", "90": "Last 90 days", "365": "Last 12 months"}
"""Labels of the periods, by their number of days."""

DEFAULT = "30"


def unless_slow(report: Callable[[], T]) -> T | None:
    """Return a report, or None if it takes longer than a statement may.

    The page then shows what else it has.
    """
    try:
        return report()
    except ShopError as error:
        if error.status != 503:
            raise
        return None


def period_query(days: str) -> dict[str, str]:
    """Return the parameters of a report for the last days: its period and its interval."""
    number = int(days)
    since = html.today() - timedelta(days=number - 1)
    interval = "day" if number <= 92 else "week"
    return {
        "from": since.isoformat(),
        "to": html.today().isoformat(),
        "interval": interval,
    }


def points(intervals: Sequence[dict[str, Any]], name: str) -> list[Point]:
    """Return the points of a figure of a report. The last one has not ended."""
    found = []
    for index, each in enumerate(intervals):
        label = str(each.get("label") or each["start"][:10])
        is_open = index == len(intervals) - 1
        found.append(Point(_short(label), Decimal(str(each[name])), is_open))
    return found


def _short(label: str) -> str:
    try:
        return html.short_date(date.fromisoformat(label))
    except ValueError:
        return label


def money(value: Decimal) -> str:
    """Return an amount as a plot shows it."""
    return html.money(value)


def count(value: Decimal) -> str:
    """Return a number as a plot shows it."""
    return html.number(int(value))


def batch_plot(batch_id: int) -> Plot:
    """Return the plot of the uses of a batch in the last 30 days."""
    query = {"since": None, "until": None}
    intervals = uses_of_batch(current_principal(), batch_id, period_of(query))
    return Plot(_("Uses"), points(intervals, "uses"), note=_("last 30 days"), as_bars=True)


def coupon_plots(coupon_id: int) -> list[Plot]:
    """Return the plots of a coupon: uses and revenue of the last 30 days."""
    report = call("get_coupon_report", query=period_query(DEFAULT), coupon_id=coupon_id).body[
        "coupon_report"
    ]
    figures: tuple[tuple[str, str, Callable[[Decimal], str]], ...] = (
        ("uses", _("Uses"), count),
        ("revenue", _("Revenue"), money),
    )
    return [
        Plot(
            label,
            points(report["intervals"], name),
            shown,
            note=_("last 30 days"),
            as_bars=name == "uses",
        )
        for name, label, shown in figures
    ]
