"""The period of a report, in days of the shop's time zone (reports 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from flask import current_app

from app.auth.principals import Principal
from app.config.current import shop_zone
from app.conversions.intervals import DAY, Interval, intervals, start_of_day
from app.db.session import now
from app.errors import InvalidParams, Sentence
from app.services.common.filtering import ListQuery

DEFAULT_DAYS = 30
MAX_INTERVALS = 1000
CANNOT_VIEW = "shop_api_user_cannot_view_reports"
FROM, TO = "filter[from]", "filter[to]"


@dataclass(frozen=True, slots=True)
class Period:
    """Days of the shop's time zone, from ``first`` to ``last``, divided into intervals."""

    first: date
    last: date
    zone: ZoneInfo
    interval: str = DAY

    @property
    def since(self) -> datetime:
        """Return the first instant, in UTC."""
        return start_of_day(self.first, self.zone)

    @property
    def until(self) -> datetime:
        """Return the instant after the last one, in UTC."""
        return start_of_day(self.last + timedelta(days=1), self.zone)

    @property
    def previous(self) -> Period:
        """Return the period with the same number of days before this period."""
        end = self.first - timedelta(days=1)
        return replace(self, first=end - (self.last - self.first), last=end)

    def intervals(self) -> list[Interval]:
        """Return the intervals in ascending order, at most MAX_INTERVALS."""
        found = intervals(self.first, self.last, self.interval, self.zone)
        listed = list(islice(found, MAX_INTERVALS + 1))
        if len(listed) > MAX_INTERVALS:
            reason = Sentence(
                "the period has more than {0:,} intervals of a {1}.", MAX_INTERVALS, self.interval
            )
            raise InvalidParams({FROM: reason})
        return listed

    def spans(self) -> list[Period | Interval]:
        """Return the period before and the intervals, which are contiguous."""
        listed = self.intervals()  # of a period of 7,000 years, no date is before it
        return [self.previous, *listed]


Span = Period | Interval


@dataclass(frozen=True, kw_only=True)
class ReportQuery(ListQuery):
    """What a report may ask (reports 1). Its period is in days of the shop's time zone."""

    since: date | None = None
    until: date | None = None
    interval: str | None = None
    currency: str | None = None
    figures: Sequence[str] = ()
    campaign: int | None = None


def require_reports(actor: Principal) -> None:
    """Raise ShopError unless the user may view reports."""
    actor.require(CANNOT_VIEW)


def period_of(query: ReportQuery) -> Period:
    """Return the period of a query: by default, 30 days until today."""
    zone = shop_zone()
    last = query.until or now().astimezone(zone).date()
    first = query.since or last - timedelta(days=DEFAULT_DAYS - 1)
    if last < first:
        raise InvalidParams({TO: Sentence("must not be before {0}.", FROM)})
    return Period(first, last, zone, query.interval or DAY)


def currency_of(query: ReportQuery) -> str:
    """Return the currency of a query, by default that of the shop."""
    return str(query.currency or current_app.config["SHOP_CURRENCY"])


def text_of(instant: datetime) -> str:
    """Return an instant as responses contain it: 2026-11-20T09:38:00Z."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
