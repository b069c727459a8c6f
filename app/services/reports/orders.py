"""The report of orders by status (reports 1)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, select

from app.auth.principals import Principal
from app.catalog import current_catalog
from app.models import ORDERS
from app.services.reports.figures import ONE, by_group, figures_of, in_cents, read_sums, shown
from app.services.reports.period import Period, require_reports
from app.services.reports.sales import orders_of
from app.services.reports.scope import reading, scope_of

_FIGURES = {"orders": ONE, "total": in_cents(ORDERS.c.total)}


def order_reports(actor: Principal, period: Period, currency: str) -> list[dict[str, Any]]:
    """Return the number and total of the orders of a period in each known status.

    Raises:
        ShopError: the capability is missing, or a statement took too long.
    """
    require_reports(actor)
    labels = current_catalog().order_statuses
    with reading() as fetch:
        orders = orders_of(scope_of(fetch, currency, tuple(labels)))._replace(figures=_FIGURES)

        def build(exact: bool) -> Select[Any]:
            found = by_group([orders], {"status": ORDERS.c.status}, period, exact=exact)
            return select(*found.c)

        rows = [dict(row._mapping) for row in read_sums(fetch, build)]
    found = {row.pop("status"): figures_of(row) for row in rows}
    nothing = dict.fromkeys(_FIGURES, 0)
    return [
        {"status": status, "label": label} | shown(found.get(status, nothing), _FIGURES)
        for status, label in labels.items()
    ]
