"""The trash of coupons: list, restore and empty it (orders 4)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from app.auth.principals import Capability, Principal
from app.catalog import Change
from app.db.records import Columns
from app.db.search import contains
from app.db.session import now, run_in_transaction
from app.errors import ShopError
from app.models import COUPONS
from app.models.coupon import CouponStatus
from app.services.common.bulk import Record
from app.services.common.filtering import Matching
from app.services.common.metadata import with_metadata
from app.services.common.pagination import Page
from app.services.coupons.queries import (
    PUBLISHED,
    TRASHED,
    conditions_of,
    fetch_coupons,
    metadata_of,
    require_known_filter,
)
from app.services.coupons.writes import require_own
from app.services.events.bulk import notify_deleted
from app.services.events.hooks import notify


def list_trash(actor: Principal, query: Mapping[str, Any], columns: Columns) -> Page:
    """Return a page of the coupons in the trash that match.

    Args:
        query: a loaded ``CouponListQuery``.
        columns: what to select.

    Raises:
        InvalidParams: the type in the filter is unknown.
    """
    require_known_filter(query)
    return fetch_coupons(actor, _matching(query), query, columns)


def _matching(query: Mapping[str, Any]) -> Matching:
    """Return the coupons in the trash that match a loaded ``CouponFilter``."""
    conditions = [TRASHED, *conditions_of(query)]
    if query["type"] is not None:
        conditions.append(COUPONS.c.type == query["type"])
    q = query["q"]
    search = None if q is None else contains(COUPONS.c.search_text, q, COUPONS.c.id)
    found, compared = with_metadata(search, metadata_of(query))
    return Matching(COUPONS.c.id, [*conditions, *compared], search=found)


def restore(actor: Principal, coupon_id: int) -> Record:
    """Publish a coupon that is in the trash; return it by its column names.

    Raises:
        ShopError: the coupon is not in the trash, the capability is missing, or a published coupon
            has the code.
    """

    def work(session: Session) -> Record:
        row = session.execute(
            select(COUPONS).where(COUPONS.c.id == coupon_id, TRASHED).with_for_update()
        ).mappings().first()  # fmt: skip
        if row is None:
            message = "No coupon in the trash has this ID."
            raise ShopError("shop_api_invalid_coupon_id").with_message(message)
        coupon = dict(row)
        require_own(
            actor, coupon["author_id"], "shop_api_user_cannot_edit_coupon",
            Capability.EDIT_SHOP_COUPONS, Capability.EDIT_OTHERS_SHOP_COUPONS,
        )  # fmt: skip
        same_code = select(COUPONS.c.id).where(COUPONS.c.code == coupon["code"], PUBLISHED)
        if session.execute(same_code).first():
            raise ShopError("shop_api_coupon_code_already_exists")
        restored = {"status": CouponStatus.PUBLISHED, "trashed_at": None, "updated_at": now()}
        session.execute(update(COUPONS).where(COUPONS.c.id == coupon_id).values(restored))
        after = {**coupon, **restored}
        notify(session, actor, [Change("coupon.restored", coupon, after)])
        return after

    return run_in_transaction(work)


def empty_trash(actor: Principal, older_than_days: int) -> int:
    """Permanently delete coupons that have been in the trash for a number of days (orders 4).

    Args:
        older_than_days: minimum age in days, from the time when a coupon was moved to the trash.

    Returns:
        The number of deleted coupons.

    Raises:
        ShopError: a capability is missing.
    """
    actor.require(
        "shop_api_user_cannot_delete_coupon",
        Capability.DELETE_SHOP_COUPONS,
        Capability.DELETE_OTHERS_SHOP_COUPONS,
    )
    before = now() - timedelta(days=older_than_days)

    def work(session: Session) -> int:
        old = delete(COUPONS).where(TRASHED, COUPONS.c.trashed_at <= before)
        deleted = session.scalars(old.returning(COUPONS.c.id)).all()
        notify_deleted(session, actor, "coupon", deleted)
        return len(deleted)

    return run_in_transaction(work)
