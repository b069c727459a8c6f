"""The report of orders by status (reports 1)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, func, select

from app.auth.principals import Principal
from app.catalog import current_catalog
from app.models import ORDERS
from app.services.orders.sums import amount_text
from app.services.reports.period import Period, require_reports
from app.services.reports.scope import (
    ORDERS_INDEX,
    figures_of,
    read_by,
    read_sums,
    reading,
    sums_of,
    within,
)

_SUMS = {"total": ORDERS.c.total}


def order_reports(actor: Principal, period: Period, currency: str) -> list[dict[str, Any]]:
    """Return the number and total of the orders of a period in each known status.

    Raises:
        ShopError: the capability is missing, or a statement took too long.
    """
    require_reports(actor)

    def build(exact: bool) -> Select[Any]:
        counted = select(
            ORDERS.c.status,
            func.count().label("orders"),
            *(column.label(name) for name, column in sums_of(_SUMS, exact=exact).items()),
        )
        span = within(ORDERS.c.created_at, period.since, period.until)
        counted = counted.where(ORDERS.c.currency == currency, *span).group_by(ORDERS.c.status)
        return read_by(counted, ORDERS, ORDERS_INDEX)

    with reading() as fetch:
        rows = [dict(row._mapping) for row in read_sums(fetch, build)]
    found = {row.pop("status"): figures_of(row) for row in rows}
    return [
        {
            "status": status,
            "label": label,
            "orders": found.get(status, {}).get("orders", 0),
            "total": amount_text(found.get(status, {}).get("total", 0)),
        }
        for status, label in current_catalog().order_statuses.items()
    ]
