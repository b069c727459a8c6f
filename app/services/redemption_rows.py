"""Stored redemptions: their live status, and changes of a row (redemptions 4)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, update
from sqlalchemy.orm import Session

from app.db.session import now
from app.models.redemption import RedemptionStatus
from app.services.coupon_terms import REDEMPTIONS as TABLE
from app.services.redemption_changes import RELEASED
from app.services.redemption_counts import change_counts

Record = dict[str, Any]

CODE = "redemption.code"
"""Location of the code in a request that redeems a coupon."""


def is_of_order(order_id: int) -> ColumnElement[bool]:
    """Return the condition for the redemptions of an order.

    They are found in the index of the references, which contain the ID (redemptions 6).
    """
    return and_(TABLE.c.reference == f"order-{order_id}", TABLE.c.order_id == order_id)


def is_live(redemption: Mapping[str, Any], moment: datetime | None = None) -> bool:
    """Return whether a redemption is reserved or confirmed, and has not expired.

    Args:
        moment: the current time, if the caller also writes it.
    """
    expires_at = redemption["expires_at"]
    return redemption["status"] == RedemptionStatus.CONFIRMED or (
        redemption["status"] == RedemptionStatus.RESERVED
        and (expires_at is None or expires_at > (moment or now()))
    )


def has_expired(redemption: Mapping[str, Any]) -> bool:
    """Return whether a reservation ended by expiry, and not by a release."""
    if redemption["status"] == RedemptionStatus.RELEASED:
        # Written by ``expire_reservations``. A release is always earlier: it writes the time at
        # which the reservation was live.
        return bool(redemption["updated_at"] == redemption["expires_at"])
    return redemption["status"] == RedemptionStatus.RESERVED and not is_live(redemption)


def as_shown(redemption: Record) -> Record:
    """Return a redemption with its live status (redemptions 4)."""
    if redemption["status"] == RedemptionStatus.RESERVED and has_expired(redemption):
        expired = {"status": RedemptionStatus.RELEASED, "updated_at": redemption["expires_at"]}
        return redemption | expired
    return redemption


def expiry_events(redemption: Mapping[str, Any]) -> list[str]:
    """Return the event of an expiry that ``expire_reservations`` has not written yet."""
    return [RELEASED] if redemption["status"] == RedemptionStatus.RESERVED else []


def uses_of(redemption: Mapping[str, Any]) -> tuple[int, int]:
    """Return by how much a live use increases the two counts of its coupon."""
    confirmed = redemption["status"] == RedemptionStatus.CONFIRMED
    return int(confirmed), int(redemption["holds_slot"])


def give_back(session: Session, redemption: Mapping[str, Any]) -> None:
    """Subtract a live use from the counts of its coupon."""
    usage, reserved = uses_of(redemption)
    change_counts(session, redemption["coupon_id"], usage=-usage, reserved=-reserved)


def update_redemption(session: Session, redemption: Record, **columns: Any) -> Record:
    """Write columns of a redemption and return it."""
    changes = {"holds_slot": False, "updated_at": now(), **columns}
    session.execute(update(TABLE).where(TABLE.c.id == redemption["id"]).values(changes))
    return redemption | changes
