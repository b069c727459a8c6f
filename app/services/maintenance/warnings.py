"""What needs the attention of the people who run the shop (admin 2)."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import func, or_, select

from app.auth.principals import Capability, Principal
from app.db.read_pool import fetch
from app.db.session import now
from app.models import IMPORT_RUNS, WEBHOOK_DELIVERIES, WEBHOOKS
from app.models.webhook import WebhookStatus
from app.models.webhook_delivery import DeliveryState
from app.services.maintenance.import_runs import ABANDONED

OVERDUE = timedelta(minutes=2)
"""How long a delivery may wait after its time before no worker seems to run."""


def current_warnings(actor: Principal) -> list[tuple[str, str]]:
    """Return the warnings that an actor may see: the subject, and a sentence."""
    if not actor.can(Capability.MANAGE_WEBHOOKS):
        return []
    if actor.resources is not None and "webhooks" not in actor.resources:
        return []
    is_failing = or_(
        WEBHOOKS.c.failing_since.is_not(None), WEBHOOKS.c.status == WebhookStatus.DISABLED
    )
    overdue = select(WEBHOOK_DELIVERIES.c.id).join(
        WEBHOOKS, WEBHOOKS.c.id == WEBHOOK_DELIVERIES.c.webhook_id
    )
    overdue = overdue.where(
        WEBHOOKS.c.status == WebhookStatus.ACTIVE,
        WEBHOOK_DELIVERIES.c.state == DeliveryState.PENDING,
        WEBHOOK_DELIVERIES.c.next_attempt_at < now() - OVERDUE,
    ).limit(1)
    interrupted = select(func.count()).where(
        IMPORT_RUNS.c.finished_at.is_(None), IMPORT_RUNS.c.progress_at < now() - ABANDONED
    )
    row = fetch(
        select(
            select(func.count()).select_from(WEBHOOKS).where(is_failing).scalar_subquery(),
            overdue.scalar_subquery(),
            interrupted.select_from(IMPORT_RUNS).scalar_subquery(),
        )
    )[0]
    failing, has_overdue, imports = row
    found = []
    if failing:
        what = "A webhook fails" if failing == 1 else f"{failing:,} webhooks fail"
        found.append(("webhooks", f"{what}: its receiver rejects or does not accept deliveries."))
    if has_overdue is not None:
        found.append(("webhooks", "No worker seems to run: deliveries of webhooks are overdue."))
    if imports:
        found.append(("imports", f"Imports that were interrupted: {imports:,}."))
    return found
