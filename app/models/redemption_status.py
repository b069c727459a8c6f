"""The live status of redemptions, in SQL and of rows (redemptions 4).

An expired reservation counts as released from the second in which it expires, before the status is
stored. Only the stored status decides about slots, because the clocks of machines differ: a
transaction stores the expiry before it uses the slot (``services.redemptions.slots.store_expiry``).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import and_, bindparam, or_

from app.db.session import now
from app.db.sql.index_hints import has_constant
from app.db.sql.types import UtcDateTime
from app.models.redemption import REDEMPTIONS, RedemptionStatus

Record = dict[str, Any]

# The value is computed for each execution, so that a statement is built once.
NOW: Any = bindparam("now", callable_=now, type_=UtcDateTime)

IS_RESERVED = has_constant(REDEMPTIONS.c.status, RedemptionStatus.RESERVED)
IS_CONFIRMED = has_constant(REDEMPTIONS.c.status, RedemptionStatus.CONFIRMED)
IS_LIVE_RESERVATION = and_(
    IS_RESERVED, or_(REDEMPTIONS.c.expires_at.is_(None), REDEMPTIONS.c.expires_at > NOW)
)
IS_EXPIRED_RESERVATION = and_(IS_RESERVED, REDEMPTIONS.c.expires_at <= NOW)
"""Whether a reservation has expired and this is not stored yet."""


def is_live(redemption: Mapping[str, Any], timestamp: datetime | None = None) -> bool:
    """Return whether a redemption is reserved or confirmed, and has not expired.

    Args:
        timestamp: the current time, if the caller also writes it.
    """
    expires_at = redemption["expires_at"]
    return redemption["status"] == RedemptionStatus.CONFIRMED or (
        redemption["status"] == RedemptionStatus.RESERVED
        and (expires_at is None or expires_at > (timestamp or now()))
    )


def has_expired(redemption: Mapping[str, Any]) -> bool:
    """Return whether a reservation ended by expiry, and not by a release."""
    if redemption["status"] == RedemptionStatus.RELEASED:
        # Written by ``store_expiry``. A release is always earlier: it writes the time at which the
        # reservation was live.
        return bool(redemption["updated_at"] == redemption["expires_at"])
    return redemption["status"] == RedemptionStatus.RESERVED and not is_live(redemption)


def as_shown(redemption: Record) -> Record:
    """Return a redemption with its live status (redemptions 4)."""
    if redemption["status"] == RedemptionStatus.RESERVED and has_expired(redemption):
        expired = {"status": RedemptionStatus.RELEASED, "updated_at": redemption["expires_at"]}
        return redemption | expired
    return redemption
