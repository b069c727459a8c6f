"""One log line for each delivery attempt (events 2)."""

from __future__ import annotations

from app.logging import line_logger
from app.models.webhook_delivery import DeliveryState
from app.services.webhooks.deliveries.results import Attempt


class DeliveryLog:
    """Writes the log lines of deliveries to standard output."""

    def __init__(self) -> None:
        self._log = line_logger()

    def write(self, attempt: Attempt, state: DeliveryState) -> None:
        """Write the line of an attempt whose result is stored.

        ``request_id`` is the ID of the request that caused the event.
        """
        delivery, outcome = attempt.delivery, attempt.outcome
        write = self._log.info if attempt.delivered else self._log.warning
        write(
            "delivery",
            webhook_id=delivery["webhook_id"],
            delivery_id=delivery["id"],
            event_id=delivery["event_id"],
            event_type=delivery["event_type"] or "ping",
            request_id=delivery["event_request_id"],
            attempt=delivery["attempt_count"] + 1,
            status=outcome.status,
            error=attempt.entry["error"],
            detail=outcome.detail or None,
            duration_ms=outcome.duration_ms,
            state=str(state),
        )
