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

MONEY = {"total", "revenue", "average_order", "discount"}
"""Figures that are amounts."""


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


def plots(
    intervals: Sequence[dict[str, Any]], labels: dict[str, str], note: str = ""
) -> list[Plot]:
    """Return a plot for each figure of a report, by its name and label."""
    return [
        Plot(label, points(intervals, name), note, is_money=name in MONEY)
        for name, label in labels.items()
    ]


def batch_plot(batch_id: int) -> Plot:
    """Return the plot of the uses of a batch in the last 30 days."""
    query = {"since": None, "until": None}
    intervals = uses_of_batch(current_principal(), batch_id, period_of(query))
    return plots(intervals, {"uses": _("Uses")}, _("last 30 days"))[0]


def coupon_plots(coupon_id: int) -> list[Plot]:
    """Return the plots of a coupon: uses and revenue of the last 30 days."""
    reply = call("get_coupon_report", query=period_query(DEFAULT), coupon_id=coupon_id)
    intervals = reply.body["coupon_report"]["intervals"]
    labels = {"uses": _("Uses"), "revenue": _("Revenue")}
    return plots(intervals, labels, _("last 30 days"))
