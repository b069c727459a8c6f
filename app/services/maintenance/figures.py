"""The figures of the shop in ``/metrics``, from the counts that the database keeps."""

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import func, select

from app.db.read_pool import fetch
from app.db.session import now
from app.models import COUPON_REFUSALS, IMPORT_RUNS, ROW_COUNTS
from app.models.import_run import ImportStatus
from app.services.customers.traces import number_left
from app.services.reports.period import shop_zone
from app.services.webhooks.deliveries import statistics

_COUNTS = ROW_COUNTS.c
_NUMBERS = select(_COUNTS.table_name, _COUNTS.partition, func.sum(_COUNTS.count)).group_by(
    _COUNTS.table_name, _COUNTS.partition
)


class Figure(NamedTuple):
    """A metric with its values.

    Attributes:
        name: the name of the metric, of a counter without ``_total``.
        label: the label that tells the values apart, or None for a single value.
        values: the values by the label, or by an empty text.
    """

    name: str
    meaning: str
    label: str | None
    values: Mapping[str, float]
    is_counter: bool = False


def measure() -> list[Figure]:
    """Return the figures of the whole shop, whichever machine has served the requests."""
    queue, results = statistics.gauges(), statistics.counts()
    numbers: dict[str, dict[str, float]] = {}
    for table, partition, number in fetch(_NUMBERS):
        numbers.setdefault(table, {})[partition] = int(number)
    return [
        Figure(
            "shop_webhook_deliveries",
            "Delivery attempts by result, and webhooks that were disabled.",
            "result",
            results,
            is_counter=True,
        ),
        *(
            Figure(f"shop_webhook_{name}", name.replace("_", " "), None, {"": value})
            for name, value in queue.items()
        ),
        Figure("shop_orders", "Orders by status.", "status", numbers.get("orders", {})),
        Figure("shop_coupons", "Coupons by status.", "status", numbers.get("coupons", {})),
        Figure("shop_users", "Accounts.", None, {"": 0, **numbers.get("users", {})}),
        Figure("shop_redemptions", "Uses.", None, {"": 0, **numbers.get("redemptions", {})}),
        Figure(
            "shop_refused_codes",
            "Refused coupon codes by reason, since midnight in the shop's time zone.",
            "reason",
            _refused_today(),
            is_counter=True,
        ),
        Figure("shop_imports", "Imports by status.", "status", _imports()),
        Figure(
            "shop_erased_left",
            "Erasures that are not complete, and records that still name their accounts.",
            "kind",
            number_left(),
        ),
    ]


def _refused_today() -> dict[str, float]:
    reason, day = COUPON_REFUSALS.c.reason, now().astimezone(shop_zone()).date()
    number = func.sum(COUPON_REFUSALS.c.count)
    today = select(reason, number).where(COUPON_REFUSALS.c.day == day).group_by(reason)
    return {row[0]: int(row[1]) for row in fetch(today)}


def _imports() -> dict[str, float]:
    status = IMPORT_RUNS.c.status
    found = fetch(select(status, func.count()).where(status.is_not(None)).group_by(status))
    return dict.fromkeys(ImportStatus, 0) | {row[0]: row[1] for row in found}
