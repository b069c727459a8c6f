"""Plots and tiles of the reports of the API."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, TypeVar

from flask import request

from app.admin import html, rights
from app.admin.calls import call
from app.admin.plots import Plot, Point
from app.admin.texts import gettext as _
from app.api.authentication import current_principal
from app.errors import ShopError
from app.services.reports.coupons import uses_of_batch
from app.services.reports.period import period_of
from app.services.reports.refusals import refusals_by_day

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


def chosen_days() -> str:
    """Return the number of days of the period in the address."""
    days = request.args.get("days", DEFAULT)
    return days if days in PERIODS else DEFAULT


def period_query(days: str, *, with_interval: bool = True) -> dict[str, str]:
    """Return the parameters of a report for the last days: its period and its interval."""
    today, number = html.today(), int(days)
    period = {
        "from": (today - timedelta(days=number - 1)).isoformat(), "to": today.isoformat()
    }  # fmt: skip
    return period | ({"interval": "day" if number <= 92 else "week"} if with_interval else {})


def plots(
    intervals: Sequence[dict[str, Any]], labels: dict[str, str], note: str = ""
) -> list[Plot]:
    """Return a plot for each figure of a report, by its name and label.

    The last interval has not ended.
    """
    return [
        Plot(
            label,
            [
                Point(_short(str(each["label"])), Decimal(str(each[name])), each is intervals[-1])
                for each in intervals
            ],
            note,
            is_money=name in MONEY,
        )
        for name, label in labels.items()
    ]


def _short(label: str) -> str:
    try:
        return html.short_date(date.fromisoformat(label))
    except ValueError:
        return label


def refusal_plots(days: str) -> list[Plot]:
    """Return the plot of the codes that were refused in the last days."""

    def read() -> list[Plot]:
        last = html.today()
        period = period_of({"since": last - timedelta(days=int(days) - 1), "until": last})
        return plots(
            refusals_by_day(current_principal(), period), {"refused": _("Refused codes by day")}
        )

    return unless_slow(read) or []


def batch_plots(batch_id: int) -> list[Plot]:
    """Return the plot of the uses of a batch in the last 30 days, if the session may read it."""

    def read() -> list[Plot]:
        period = period_of({"since": None, "until": None})
        intervals = uses_of_batch(current_principal(), batch_id, period)
        return plots(intervals, {"uses": _("Uses")}, _("last 30 days"))

    return (unless_slow(read) or []) if rights.can("get_coupon_report") else []


def coupon_plots(coupon_id: int) -> list[Plot]:
    """Return the plots of a coupon: uses and revenue of the last 30 days, as for a batch."""

    def read() -> list[Plot]:
        reply = call("get_coupon_report", query=period_query(DEFAULT), coupon_id=coupon_id)
        labels = {"uses": _("Uses"), "revenue": _("Revenue")}
        return plots(reply.content["intervals"], labels, _("last 30 days"))

    return (unless_slow(read) or []) if rights.can("get_coupon_report") else []
