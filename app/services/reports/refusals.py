"""The report of refused coupon codes (reports 1 and 4)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, ScalarSelect, func, select

from app.auth.principals import Principal
from app.db.read_pool import ReadRow
from app.db.search import email_key
from app.models import COUPON_REFUSALS, COUPONS, USERS
from app.models.refused_cart import REFUSED_CARTS
from app.services.common.pagination import Page, page_size
from app.services.reports.lists import Report, on_page
from app.services.reports.period import Period, ReportQuery, text_of
from app.services.reports.scope import reading, streaming

LATEST = 20
"""Number of refusals that the page of a coupon or a customer shows."""


def _coupon_id(code: ColumnElement[str]) -> ScalarSelect[int]:
    """Return the published coupon with a code, or else one in the trash."""
    newest = COUPONS.c.status, COUPONS.c.id.desc()
    return (
        select(COUPONS.c.id)
        .where(COUPONS.c.code == code)
        .order_by(*newest)
        .limit(1)
        .correlate(code.table)
        .scalar_subquery()
    )


def refusal_reports(actor: Principal, period: Period, query: ReportQuery) -> Report:
    """Return a page of the codes that were refused in a period, each reason by itself."""
    key = COUPON_REFUSALS.c.code, COUPON_REFUSALS.c.reason
    of_period = COUPON_REFUSALS.c.day.between(period.first, period.last)
    grouped = select(*key).where(of_period).group_by(*key)
    number = func.sum(COUPON_REFUSALS.c.count)
    rows = grouped.add_columns(
        _coupon_id(COUPON_REFUSALS.c.code).label("coupon_id"),
        number.label("number"),
        func.min(COUPON_REFUSALS.c.first_at, type_=COUPON_REFUSALS.c.first_at.type).label("first"),
        func.max(COUPON_REFUSALS.c.last_at, type_=COUPON_REFUSALS.c.last_at.type).label("last"),
    ).order_by(number.desc(), *key)
    size = page_size(query.limit)
    count = select(func.count()).select_from(grouped.subquery())
    found: object
    if size is None:
        with streaming(actor) as (fetch, stream):
            total, found = fetch(count)[0][0], stream(rows)
    else:
        with reading(actor) as fetch:
            total, found = fetch(count)[0][0], fetch(on_page(rows, query, size))
    return Report(Page(found, total, query.page, size), _shown)


def refusals_by_day(actor: Principal, period: Period) -> list[dict[str, object]]:
    """Return how many codes were refused on each day of a period: ``label`` and ``refused``."""
    day = COUPON_REFUSALS.c.day
    counts = select(day, func.sum(COUPON_REFUSALS.c.count))
    of_period = counts.where(day.between(period.first, period.last)).group_by(day)
    with reading(actor) as fetch:
        found = {each.isoformat(): int(number) for each, number in fetch(of_period)}
    labels = (part.label for part in period.intervals())
    return [{"label": label, "refused": found.get(label, 0)} for label in labels]


def latest_refusals(
    actor: Principal, *, code: str = "", customer: tuple[int, str] | None = None
) -> Sequence[ReadRow]:
    """Return the latest refusals of a code or of a customer, newest first.

    Args:
        customer: the ID of an account and its e-mail address, which a cart can name instead.

    Returns:
        Rows with ``created_at``, ``code``, ``coupon_id``, ``reason``, ``total``, ``currency``,
        ``customer_id`` and the ``email`` of the account or the guest.
    """
    these = REFUSED_CARTS.c
    is_wanted: ColumnElement[bool] = these.code == code
    if customer is not None:
        customer_id, address = customer
        is_wanted = these.customer_id == customer_id
        if address:
            is_wanted |= these.email_normalized == email_key(address)
    email = func.coalesce(USERS.c.email, these.email_normalized).label("email")
    columns = (these[name] for name in ("created_at", "code", "reason", "total", "currency"))
    found = select(*columns, these.customer_id, email, _coupon_id(these.code).label("coupon_id"))
    found = found.select_from(REFUSED_CARTS.outerjoin(USERS, USERS.c.id == these.customer_id))
    with reading(actor) as fetch:
        return fetch(found.where(is_wanted).order_by(these.id.desc()).limit(LATEST))


def _shown(rows: Sequence[ReadRow]) -> list[dict[str, object]]:
    return [
        {
            "code": row.code,
            "coupon_id": row.coupon_id,
            "reason": row.reason,
            "count": int(row.number),
            "first_at": text_of(row.first),
            "last_at": text_of(row.last),
        }
        for row in rows
    ]
