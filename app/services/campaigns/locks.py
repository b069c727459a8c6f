"""Locks of campaigns, before those of coupons (campaigns 7).

Uses of a campaign with a limit or a budget lock it exclusively, and those of another campaign share
it, so that they do not wait for each other. A change of a campaign waits for all of them.
"""

from collections.abc import Collection, Mapping

from sqlalchemy import CompoundSelect, bindparam, select
from sqlalchemy.orm import Session

from app.db.errors import TryAgain
from app.db.records import row_dicts
from app.models import CAMPAIGNS
from app.models.campaign import IS_LIMITED, CampaignRow, is_limited

Held = Mapping[int, CampaignRow]
"""The campaigns that a transaction has locked, as they were then, by ID."""

_THIS = select(CAMPAIGNS).where(CAMPAIGNS.c.id == bindparam("this"))
_HOLD = {
    True: _THIS.with_for_update(key_share=True),
    False: _THIS.with_for_update(read=True, key_share=True),
}
"""The locks of a campaign, by whether it has a limit or a budget."""


def hold_campaigns(session: Session, ids: CompoundSelect[object] | Collection[int]) -> Held:
    """Lock campaigns for uses of their coupons until the commit, by ascending ID.

    Args:
        ids: the IDs, or a select of them.

    Raises:
        TryAgain: a limit was set or removed, or a campaign was deleted, since it was read.
    """
    wanted = select(CAMPAIGNS.c.id, IS_LIMITED).where(CAMPAIGNS.c.id.in_(ids))
    found = {row[0]: bool(row[1]) for row in session.execute(wanted.order_by(CAMPAIGNS.c.id))}
    return hold_known(session, found)


def hold_known(session: Session, limited: Mapping[int, bool]) -> Held:
    """Lock campaigns like ``hold_campaigns``, given whether each has a limit or a budget."""
    held: dict[int, CampaignRow] = {}
    for campaign_id in sorted(limited):
        rows: list[CampaignRow] = row_dicts(
            session.execute(_HOLD[limited[campaign_id]], {"this": campaign_id})
        )
        # A lock is never upgraded, because the order of the locks would be lost.
        if not rows or is_limited(rows[0]) != limited[campaign_id]:
            raise TryAgain
        held[campaign_id] = rows[0]
    return held


def keep_campaigns(
    session: Session, ids: Collection[int], *, only_checks: bool = False
) -> set[int]:
    """Return those of some campaigns that exist. None of them is deleted before the commit.

    Args:
        only_checks: whether nothing is written, so that they need not stay.
    """
    if not ids:
        return set()
    found = select(CAMPAIGNS.c.id).where(CAMPAIGNS.c.id.in_(ids)).order_by(CAMPAIGNS.c.id)
    kept = found if only_checks else found.with_for_update(read=True, key_share=True)
    return set(session.scalars(kept))
