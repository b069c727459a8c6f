"""The rules for writing coupons: create, update, delete (spec 3, 4.1, 4.3, 7.1; decisions 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.orm import Session

from app.auth.principals import Capability, Principal
from app.catalog import Change
from app.db.functions import is_one_of
from app.db.index_hints import frequent
from app.db.records import WANTED, write_records
from app.db.search import search_text
from app.db.session import now, run_in_transaction
from app.db.types import IdList
from app.errors import ShopError
from app.models.coupon import CouponStatus
from app.models.tables import COUPONS
from app.numbers import INT64_MAX
from app.services.bulk import BulkItem, Precondition, WriteResult, single_result
from app.services.change_notifications import notify, write_items
from app.services.coupon_queries import HAS_ONE_OF_CODES, PUBLISHED
from app.services.coupon_rules import require_known_type, require_own, require_storable

Record = dict[str, Any]

_WITH_CODES = select(COUPONS.c.id).where(HAS_ONE_OF_CODES)
_WITH_IDS = (
    select(COUPONS)
    .where(frequent(PUBLISHED), is_one_of(COUPONS.c.id, bindparam(WANTED, type_=IdList)))
    .order_by(COUPONS.c.id)  # the same order in every transaction prevents deadlocks
    .with_for_update()
)


def save_coupons(actor: Principal, items: Sequence[BulkItem]) -> list[WriteResult]:
    """Create and update coupons in the given order, in one transaction (spec 4.3).

    Returns:
        For each item the coupon by its column names, or the error that prevented the write.
    """

    def work(session: Session) -> list[WriteResult]:
        return write_items(session, "coupon", items, partial(_save, session, actor))

    return run_in_transaction(work)


def create_coupon(actor: Principal, data: Mapping[str, Any]) -> Record:
    """Create a coupon and return it by its column names.

    Raises:
        ShopError: a create rule is violated (spec 4.1), in the order of the rules.
    """
    return single_result(save_coupons(actor, [BulkItem(None, data)]))


def update_coupon(
    actor: Principal,
    coupon_id: int,
    data: Mapping[str, Any],
    precondition: Precondition | None = None,
) -> Record:
    """Update the supplied fields of a coupon and return it by its column names.

    Raises:
        ShopError: the coupon does not exist, the capability is missing, the precondition fails, or
            an update rule is violated (spec 4.1).
    """
    return single_result(save_coupons(actor, [BulkItem(coupon_id, data, precondition)]))


def delete_coupon(
    actor: Principal,
    coupon_id: int,
    *,
    force: bool,
    trashed_too: bool = False,
    precondition: Precondition | None = None,
) -> None:
    """Move a published coupon to the trash, or delete it permanently (spec 3).

    Args:
        actor: the principal of the request.
        coupon_id: ID of the coupon.
        force: whether to delete it permanently.
        trashed_too: whether ``force`` also finds a coupon that is in the trash (decisions 14).
        precondition: checks the stored coupon first.

    Raises:
        ShopError: the coupon does not exist, a capability is missing, or the precondition fails.
    """

    def work(session: Session) -> None:
        found = [COUPONS.c.id == coupon_id]
        if not (force and trashed_too):
            found.append(PUBLISHED)
        row = session.execute(select(COUPONS).where(*found).with_for_update()).mappings().first()
        if row is None:
            raise ShopError("shop_api_invalid_coupon_id")
        coupon = dict(row)
        require_own(
            actor, coupon["author_id"], "shop_api_user_cannot_delete_coupon",
            Capability.DELETE_SHOP_COUPONS, Capability.DELETE_OTHERS_SHOP_COUPONS,
        )  # fmt: skip
        if precondition:
            precondition(coupon)
        after: Record | None = None
        this = COUPONS.c.id == coupon_id
        if force:
            session.execute(delete(COUPONS).where(this))
        else:
            timestamp = now()
            trashed = {
                "status": CouponStatus.TRASH,
                "trashed_at": timestamp,
                "updated_at": timestamp,
            }
            session.execute(update(COUPONS).where(this).values(trashed))
            after = coupon | trashed
        notify(session, actor, [Change("coupon.deleted", coupon, after)])

    run_in_transaction(work)


def _save(session: Session, actor: Principal, items: Sequence[BulkItem]) -> list[WriteResult]:
    """Check the items one by one, then write all accepted items.

    Each check takes earlier items into account: the codes that they use are taken, and the codes
    that they no longer use are available.
    """
    coupons = _lock(session, items)
    holders: dict[str, int | None] = {
        coupon["code"]: coupon_id for coupon_id, coupon in coupons.items()
    }
    results: list[WriteResult] = []
    created: list[Record] = []
    updated: list[Record] = []
    changes: list[Change] = []
    for item in items:
        try:
            before = None
            if item.id is not None:
                before = coupons.get(item.id)
                after = _prepare_update(actor, before, item, holders)
                if before and item.data:
                    holders.pop(before["code"], None)
                    updated.append(after)
                coupons[item.id] = after
            else:
                after = _prepare_create(actor, item.data, holders)
                created.append(after)
            holders[after["code"]] = item.id
            results.append(after)
            changes.append(Change("coupon.updated" if before else "coupon.created", before, after))
        except ShopError as error:
            results.append(error)
    write_records(session, COUPONS, created=created, updated=updated, key="code")
    notify(session, actor, changes)
    return results


def _lock(session: Session, items: Sequence[BulkItem]) -> dict[int, Record]:
    """Return the published coupons that the items name by ID or code, locked until the commit.

    The codes are looked up first: a select by ID or code would read every published coupon on
    SQLite, and on PostgreSQL in a new shop, where the statistics of the table are missing.
    """
    ids = {item.id for item in items if item.id and 0 < item.id <= INT64_MAX}
    codes = [item.data["code"] for item in items if "code" in item.data]
    if codes:
        ids.update(session.scalars(_WITH_CODES, {"codes": codes}))
    if not ids:
        return {}
    rows = session.execute(_WITH_IDS, {WANTED: ids}).mappings()
    return {row["id"]: dict(row) for row in rows}


def _prepare_create(
    actor: Principal, data: Mapping[str, Any], holders: Mapping[str, int | None]
) -> Record:
    """Return the new coupon (spec 4.1, create rules in their order)."""
    actor.require("shop_api_user_cannot_create_coupon", Capability.PUBLISH_SHOP_COUPONS)
    if "code" not in data:
        raise ShopError("shop_api_missing_coupon_code")
    if data["code"] in holders:
        raise ShopError("shop_api_coupon_code_already_exists")
    require_known_type(data["type"])
    require_storable(data["code"], "shop_api_cannot_create_coupon")
    timestamp = now()
    return {
        **data,
        "status": CouponStatus.PUBLISHED,
        "author_id": actor.user_id or None,  # 0 is a command without a user
        "created_at": timestamp,
        "updated_at": timestamp,
        "search_text": search_text(data["code"], data["description"]),
    }


def _prepare_update(
    actor: Principal,
    coupon: Record | None,
    item: BulkItem,
    holders: Mapping[str, int | None],
) -> Record:
    """Return the updated coupon (spec 4.1, update rules in their order)."""
    if coupon is None:
        raise ShopError("shop_api_invalid_coupon_id")
    require_own(
        actor, coupon["author_id"], "shop_api_user_cannot_edit_coupon",
        Capability.EDIT_SHOP_COUPONS, Capability.EDIT_OTHERS_SHOP_COUPONS,
    )  # fmt: skip
    if item.precondition:
        item.precondition(coupon)
    data = item.data
    if "code" in data and holders.get(data["code"], coupon["id"]) != coupon["id"]:
        raise ShopError("shop_api_coupon_code_already_exists")
    if "type" in data:
        require_known_type(data["type"])
    if "code" in data:
        require_storable(data["code"], "shop_api_cannot_update_coupon")
    if not data:
        return coupon
    after = {**coupon, **data, "updated_at": now()}
    return after | {"search_text": search_text(after["code"], after["description"])}
