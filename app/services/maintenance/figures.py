"""The figures of the shop in ``/metrics``, and what needs the attention of people (admin 2)."""

from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import exists, func, or_, select

from app.auth.principals import Capability, Principal
from app.config.current import shop_zone
from app.db.read_pool import fetch
from app.db.session import now, precise_now
from app.models import COUPON_REFUSALS, IMPORT_RUNS, ROW_COUNTS, WEBHOOKS
from app.models.import_run import ImportStatus
from app.models.webhook import WebhookStatus
from app.services.customers.traces import number_left
from app.services.imports.runs import KEPT
from app.services.maintenance.import_runs import ABANDONED, OF_COMMAND
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


OVERDUE = timedelta(minutes=5)
"""How long nothing is sent, although deliveries are due, before no worker seems to run.

A busy machine may delay a worker by minutes."""


def current_warnings(actor: Principal) -> dict[str, int]:
    """Return the warnings that an actor may see: their subjects, with a number of cases."""
    if not actor.can(Capability.MANAGE_WEBHOOKS):
        return {}
    if actor.resources is not None and "webhooks" not in actor.resources:
        return {}
    is_failing = or_(
        WEBHOOKS.c.failing_since.is_not(None), WEBHOOKS.c.status == WebhookStatus.DISABLED
    )
    before = precise_now() - OVERDUE
    is_at_work = or_(WEBHOOKS.c.lease_until > before, WEBHOOKS.c.last_delivery_at > before)
    is_overdue = exists(statistics.overdue(before)) & ~exists(select(1).where(is_at_work))
    interrupted = select(func.count()).where(
        IMPORT_RUNS.c.finished_at.is_(None),
        OF_COMMAND,
        IMPORT_RUNS.c.progress_at < now() - ABANDONED,
    )
    incomplete = select(func.count()).where(
        IMPORT_RUNS.c.finished_at > now() - KEPT,
        ~OF_COMMAND,
        ~IMPORT_RUNS.c.dry_run,
        IMPORT_RUNS.c.failed > 0,
    )
    failing = select(func.count()).select_from(WEBHOOKS).where(is_failing)
    row = fetch(
        select(
            failing.scalar_subquery().label("failing"),
            is_overdue.label("overdue"),
            interrupted.select_from(IMPORT_RUNS).scalar_subquery().label("interrupted"),
            incomplete.select_from(IMPORT_RUNS).scalar_subquery().label("incomplete"),
        )
    )[0]
    return {subject: int(number) for subject, number in row._asdict().items() if number}
