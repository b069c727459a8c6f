"""The rules for writing campaigns (campaigns 2 and 7)."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, insert, or_, select, update
from sqlalchemy.orm import Session

from app.auth.principals import Principal
from app.catalog import Change
from app.conversions.numbers import INT64_MAX
from app.conversions.text import searchable
from app.db.records import Record, row_dicts, with_columns
from app.db.session import now, reading_session, run_in_transaction
from app.errors import InvalidParams, Sentence, ShopError
from app.models import CAMPAIGNS, COUPONS, REDEMPTIONS
from app.models.campaign import IS_LIMITED, MOST_DISCOUNT, CampaignRow, is_limited
from app.models.redemption import IS_LIVE, IS_STORED_LIVE
from app.services.campaigns.queries import AMOUNT, NUMBER, figures_of
from app.services.common.bulk import Precondition
from app.services.events.hooks import notify

BLANK: Record = {
    "active": True,
    "starts_at": None,
    "ends_at": None,
    "usage_limit": 0,
    "usage_limit_per_user": 0,
    "budget": None,
    "tags": [],
    "combines_with": [],
    "stored_uses": 0,
    "stored_discount": Decimal(0),
}
"""The columns of a campaign that was created with a name alone."""

_LIMITS = {"usage_limit", "usage_limit_per_user", "budget"}


def create_campaign(actor: Principal, data: Mapping[str, object]) -> Record:
    """Create a campaign and return it by its column names, with its figures.

    Args:
        data: a loaded ``CampaignCreate``.

    Raises:
        ShopError: the capability or the name is missing, or it ends before it starts.
    """
    actor.require("shop_api_user_cannot_create_campaign")
    if not data.get("name"):
        raise ShopError("shop_api_missing_campaign_name")
    timestamp = now()
    times = {"created_at": timestamp, "updated_at": timestamp}
    columns = with_search_text({**BLANK, **times, **_columns_of(data)})
    _require_order_of_dates(columns)

    def work(session: Session) -> Record:
        inserted = insert(CAMPAIGNS).values(columns).returning(CAMPAIGNS.c.id)
        created = columns | {"id": session.scalar(inserted)}
        notify(session, actor, [Change("campaign.created", None, created)])
        return with_figures(session, created)

    return run_in_transaction(work)


def update_campaign(
    actor: Principal,
    campaign_id: int,
    data: Mapping[str, object],
    precondition: Precondition | None = None,
) -> Record:
    """Update a campaign and return it by its column names, with its figures.

    It waits for the uses of the campaign that are being taken, and no later use ignores the change.

    Raises:
        ShopError: the campaign does not exist, a capability or the name is missing, or it ends
            before it starts.
    """

    def work(session: Session) -> Record:
        before = _locked(session, campaign_id)
        actor.require("shop_api_user_cannot_edit_campaign")
        if precondition:
            precondition(with_figures(session, before))
        if "name" in data and not data["name"]:
            raise ShopError("shop_api_missing_campaign_name")
        changes = _columns_of(data)
        after = with_search_text(with_columns(dict(before), changes))
        _require_order_of_dates(after)
        if data:
            after["updated_at"] = now()
        if not _LIMITS.isdisjoint(data):
            after |= _counted(session, campaign_id) if is_limited(after) else _NO_NUMBERS  # type: ignore[arg-type] # a row
        session.execute(update(CAMPAIGNS).where(CAMPAIGNS.c.id == campaign_id).values(after))
        notify(session, actor, [Change("campaign.updated", before, after)])
        return with_figures(session, after)

    return run_in_transaction(work)


def delete_campaign(
    actor: Principal, campaign_id: int, precondition: Precondition | None = None
) -> None:
    """Delete a campaign that has no coupon, also none in the trash, and no live use.

    Raises:
        ShopError: the campaign does not exist, a capability is missing, or it cannot be deleted.
    """

    def work(session: Session) -> None:
        before = _locked(session, campaign_id)
        actor.require("shop_api_user_cannot_delete_campaign")
        if precondition:
            precondition(with_figures(session, before))
        is_used = REDEMPTIONS.c.campaign_id == campaign_id
        has_coupon = exists().where(COUPONS.c.campaign_id == campaign_id)
        has_use = exists().where(is_used, IS_LIVE)
        if session.scalar(select(or_(has_coupon, has_use))):
            raise ShopError("shop_api_cannot_delete_campaign")
        session.execute(update(REDEMPTIONS).where(is_used).values(campaign_id=None))
        session.execute(delete(CAMPAIGNS).where(CAMPAIGNS.c.id == campaign_id))
        notify(session, actor, [Change("campaign.deleted", before, None)])

    run_in_transaction(work)


def with_figures(session: Session, campaign: Mapping[str, Any]) -> Record:
    """Return a campaign with its state, uses and discount."""
    (row,) = session.execute(figures_of([campaign["id"]])).mappings()
    return {**campaign, **row}


_NO_NUMBERS: Record = {"stored_uses": 0, "stored_discount": Decimal(0)}


def _counted(session: Session, campaign_id: int) -> Record:
    """Return number and amount of the uses of a campaign whose other uses wait.

    Raises:
        InvalidParams: the amount is above MOST_DISCOUNT.
    """
    of_campaign = REDEMPTIONS.c.campaign_id == campaign_id
    counted = select(NUMBER, AMOUNT).where(of_campaign, IS_STORED_LIVE)
    uses, discount = session.execute(counted).one()
    if discount > MOST_DISCOUNT:
        reason = Sentence("the discounts of the earlier uses are above {0}.", MOST_DISCOUNT)
        raise InvalidParams({"campaign": reason})
    return {"stored_uses": uses, "stored_discount": discount}


def count_again(session: Session, *conditions: ColumnElement[bool]) -> None:
    """Count the uses of campaigns with a limit or a budget, after a restore or an import.

    Args:
        conditions: only of campaigns that meet them.
    """
    found = select(CAMPAIGNS).where(IS_LIMITED, *conditions).order_by(CAMPAIGNS.c.id)
    for row in row_dicts(session.execute(found.with_for_update())):
        counted = update(CAMPAIGNS).where(CAMPAIGNS.c.id == row["id"])
        session.execute(counted.values(_counted(session, row["id"])))


def wrong_numbers() -> list[int]:
    """Return the IDs of the campaigns whose stored numbers are not those of their uses."""
    with reading_session() as session:
        return [
            row["id"]
            for row in row_dicts(session.execute(select(CAMPAIGNS).where(IS_LIMITED)))
            if any(row[name] != each for name, each in _counted(session, row["id"]).items())
        ]


def _locked(session: Session, campaign_id: int) -> CampaignRow:
    found = select(CAMPAIGNS).where(CAMPAIGNS.c.id == min(campaign_id, INT64_MAX))
    rows: list[CampaignRow] = row_dicts(session.execute(found.with_for_update()))
    if not rows:
        raise ShopError("shop_api_invalid_campaign_id")
    return rows[0]


def _columns_of(data: Mapping[str, object]) -> Record:
    columns = dict(data)
    if "budget" in columns:
        columns["budget"] = columns["budget"] or None
    return columns


def with_search_text(campaign: Record) -> Record:
    """Return the columns of a campaign with the text that filters compare."""
    lines = [searchable(campaign["name"]), *campaign["tags"], ""]
    return campaign | {"search_text": "\n".join(lines)}


def _require_order_of_dates(campaign: Mapping[str, Any]) -> None:
    start, end = campaign["starts_at"], campaign["ends_at"]
    if start and end and end <= start:
        raise InvalidParams({"campaign.ends_at": "must be after starts_at."})
