"""Recording the expiry of reservations, so that each one is an event (events 1).

A reservation counts as released from the second in which it expires, without any job. This module
only stores that, and reports it: the worker calls it every few seconds.
"""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from app.db.read_pool import ReadRow, fetch
from app.db.session import run_in_transaction
from app.models import COUPONS, REDEMPTIONS
from app.models.redemption import IS_EXPIRED_RESERVATION
from app.services.campaigns.locks import hold_campaigns
from app.services.common.erased import SELECT_USES, stored_uses
from app.services.redemptions.campaign_numbers import give_back_to_campaign
from app.services.redemptions.changes import expiries, notify_with_coupons
from app.services.redemptions.stored import store_expiry

BATCH = 100
"""Reservations that one transaction records."""

_OLDEST = (
    select(REDEMPTIONS.c.id, REDEMPTIONS.c.coupon_id, REDEMPTIONS.c.campaign_id)
    .where(IS_EXPIRED_RESERVATION)
    .order_by(REDEMPTIONS.c.expires_at, REDEMPTIONS.c.id)
    .limit(BATCH)
)


def expire_reservations(*conditions: ColumnElement[bool]) -> int:
    """Release reservations that have expired, with one event for each, and return how many.

    Releases up to BATCH reservations, the oldest first. Call it again while it returns BATCH. Any
    number of processes can call it at the same time.

    Args:
        conditions: only reservations that meet them.
    """
    found = fetch(_OLDEST.where(*conditions) if conditions else _OLDEST)
    if not found:
        return 0
    return run_in_transaction(lambda session: _expire(session, found))


def expire_all(condition: ColumnElement[bool]) -> None:
    """Release all reservations that have expired and meet a condition."""
    while expire_reservations(condition) == BATCH:
        continue


def _expire(session: Session, found: Sequence[ReadRow]) -> int:
    ids, coupon_ids = [row.id for row in found], {row.coupon_id for row in found} - {None}
    campaigns = {row.campaign_id for row in found} - {None}
    limited = hold_campaigns(session, campaigns) if campaigns else {}
    # All transactions lock coupons before redemptions, in the order of their IDs.
    held = select(COUPONS.c.id).where(COUPONS.c.id.in_(coupon_ids)).order_by(COUPONS.c.id)
    session.execute(held.with_for_update(key_share=True))
    # Another process can have stored, renewed or confirmed some of them in the meantime.
    these = SELECT_USES.where(REDEMPTIONS.c.id.in_(ids), IS_EXPIRED_RESERVATION).order_by(
        REDEMPTIONS.c.id
    )
    expired = stored_uses(session.execute(these.with_for_update()))
    for each in expired:
        give_back_to_campaign(session, limited, each)
    notify_with_coupons(session, None, expiries(store_expiry(session, expired)))
    return len(expired)
