"""What needs the attention of the people who run the shop (admin 2)."""

from datetime import timedelta

from sqlalchemy import exists, func, or_, select

from app.auth.principals import Capability, Principal
from app.db.read_pool import fetch
from app.db.session import now, precise_now
from app.models import IMPORT_RUNS, WEBHOOKS
from app.models.webhook import WebhookStatus
from app.services.imports.runs import KEPT
from app.services.maintenance.import_runs import ABANDONED, OF_COMMAND
from app.services.webhooks.deliveries.statistics import overdue

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
    is_overdue = exists(overdue(before)) & ~exists(select(1).where(is_at_work))
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
