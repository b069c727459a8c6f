"""The rules for coupons (spec 3, 4.1, 4.3, 5, 7.1; decisions 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from sqlalchemy import (
    Column,
    ColumnElement,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    literal_column,
    select,
    true,
    union,
    union_all,
    update,
)
from sqlalchemy.orm import Session

from app.auth.principals import Capability, Principal
from app.catalog import current_catalog
from app.db.read_pool import Fetch, fetch
from app.db.records import WANTED, Columns, Row, select_where
from app.db.search import contains, frequent, number_found, search_text
from app.db.session import now, run_in_transaction, write_records
from app.errors import InvalidParams, ShopError
from app.models import Coupon
from app.models.coupon import CouponStatus
from app.numbers import INT64_MAX
from app.services.bulk import BulkItem, Precondition, WriteResult, single_result
from app.services.filtering import FEW, FilteredSet, RowCountFilter, between, count
from app.services.pagination import Page, fetch_page, page_size
from app.text import CODE_MAX_LENGTH, coupon_code

Record = dict[str, Any]

TABLE = cast("Table", Coupon.__table__)
# A literal: SQLite uses a partial index only for the same text.
PUBLISHED = TABLE.c.status == literal_column(f"'{CouponStatus.PUBLISHED}'")
_HAS_ID = and_(TABLE.c.id == bindparam(WANTED), PUBLISHED)
_HAS_CODE = and_(TABLE.c.code == bindparam(WANTED), PUBLISHED)
_NEWEST_FIRST = (TABLE.c.created_at.desc(), TABLE.c.id.desc())
_EVERY = RowCountFilter("coupons", TABLE.c.created_at, (CouponStatus.PUBLISHED,))
_EVERY_STATUS = RowCountFilter("coupons", TABLE.c.created_at)
# Two ranges of the index of statuses; an inequality is none.
_OTHERS = union_all(
    *(
        select(TABLE.c.id).where(other)
        for other in (
            TABLE.c.status < CouponStatus.PUBLISHED,
            TABLE.c.status > CouponStatus.PUBLISHED,
        )
    )
)
SORT_KEYS: Mapping[str, Column[Any]] = {
    "date": TABLE.c.created_at,
    "modified": TABLE.c.updated_at,
    "id": TABLE.c.id,
    "code": TABLE.c.code,
    "amount": TABLE.c.amount,
    "usage_count": TABLE.c.usage_count,
    "expiry_date": TABLE.c.expiry_date,
}


# --- read ---


def list_coupons(
    actor: Principal, query: Mapping[str, Any], columns: Columns, default_size: int
) -> Page:
    """Return a page of the published coupons that match, newest first unless ``query`` says so.

    Args:
        query: a loaded ``CouponListQuery``.
        columns: what to select.
        default_size: rows on a page when the query sets no limit.
    """
    require_known_filter(query)
    size = page_size(query, default_size)
    if not actor.can(Capability.READ_PRIVATE_SHOP_COUPONS):
        return Page([], 0, query["page"], size or default_size)  # left out of rows and totals alike
    return fetch_page(
        columns,
        TABLE.c.id,
        partial(_matching, query),
        key=SORT_KEYS[query["orderby"]],
        query=query,
        size=size,
    )


def count_coupons(actor: Principal, query: Mapping[str, Any]) -> int:
    """Return how many published coupons match."""
    require_known_filter(query)
    actor.require("shop_api_user_cannot_read_coupons_count", Capability.READ_PRIVATE_SHOP_COUPONS)
    return count(partial(_matching, query))


def get_coupon(actor: Principal, coupon_id: int, columns: Columns) -> Row:
    """Return the published coupon with this id."""
    found = select_where(tuple(columns), TABLE.c.id, _HAS_ID)
    return _readable(actor, found, coupon_id, "shop_api_invalid_coupon_id")


def get_coupon_by_code(actor: Principal, code: str, columns: Columns) -> Row:
    """Return the published coupon with this code; of several, the newest (spec 4.1)."""
    found = select_where(tuple(columns), TABLE.c.id, _HAS_CODE, *_NEWEST_FIRST)
    return _readable(actor, found, coupon_code(code), "shop_api_invalid_coupon_code")


def _readable(actor: Principal, found: Select[Any], wanted: object, missing_code: str) -> Row:
    rows: Sequence[Row] = fetch(found, {WANTED: wanted})
    if not rows:
        raise ShopError(missing_code)
    actor.require("shop_api_user_cannot_read_coupon", Capability.READ_PRIVATE_SHOP_COUPONS)
    return rows[0]


def require_known_filter(query: Mapping[str, Any]) -> None:
    """Refuse a type that does not exist."""
    if query["type"] and query["type"] not in current_catalog().coupon_types:
        raise InvalidParams({"filter[type]": f"must be one of {_known_types()}."})


def conditions_of(query: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    """Return the conditions of a loaded ``CouponFilter`` without its type and its search."""
    conditions = between(TABLE.c, query)
    if query["in_"] is not None:
        conditions.append(TABLE.c.id.in_(query["in_"]))
    if query["not_in"] is not None:
        conditions.append(TABLE.c.id.not_in(query["not_in"]))
    return conditions


def _matching(query: Mapping[str, Any], fetch: Fetch) -> FilteredSet:
    """Return the published coupons that match a loaded ``CouponFilter``."""
    conditions = conditions_of(query)
    # No index has both the status and these in its order.
    published = frequent(PUBLISHED) if query["orderby"] in {"id", "code"} else PUBLISHED
    ids = select(TABLE.c.id).where(*conditions)
    has_type = true() if query["type"] is None else TABLE.c.type == query["type"]
    if (q := query["q"]) is not None:
        search = contains(TABLE.c.search_text, q, TABLE.c.id)
        alone = not conditions and query["type"] is None
        return FilteredSet(
            ids.where(published, has_type, search.many),
            found=ids.where(frequent(PUBLISHED), has_type, search.few),
            finds_quickly=True,
            number=_number_found(q, fetch) if alone else None,
        )
    if query["type"] is not None:
        # Sorted by date, a type is read from an index; otherwise it is checked on the way.
        in_order = has_type if query["orderby"] == "date" else frequent(has_type)
        found = ids.where(PUBLISHED, has_type)
        return FilteredSet(ids.where(published, in_order), found=found)
    return FilteredSet(ids.where(published), row_count=None if conditions else _EVERY)


def _number_found(text: str, fetch: Fetch) -> Select[Any] | None:
    """Return how a search is counted without looking at the status of every coupon that it finds.

    None where many coupons are in the trash.
    """
    if _EVERY_STATUS.total(fetch) - _EVERY.total(fetch) > FEW:
        return None
    return number_found(TABLE.c.search_text, text, [row[0] for row in fetch(_OTHERS)])


# --- write ---


def save_coupons(actor: Principal, items: Sequence[BulkItem]) -> list[WriteResult]:
    """Create and edit coupons, in their order, in one transaction (spec 4.3).

    Returns:
        For each draft the coupon by its column names, or the error why nothing was written of it.
    """
    return run_in_transaction(lambda session: _save(session, actor, items))


def create_coupon(actor: Principal, data: Mapping[str, Any]) -> Record:
    """Create one coupon; return it by its column names."""
    return single_result(save_coupons(actor, [BulkItem(None, data)]))


def update_coupon(
    actor: Principal,
    coupon_id: int,
    data: Mapping[str, Any],
    precondition: Precondition | None = None,
) -> Record:
    """Change the supplied fields of one coupon; return it by its column names."""
    return single_result(save_coupons(actor, [BulkItem(coupon_id, data, precondition)]))


def delete_coupon(
    actor: Principal,
    coupon_id: int,
    *,
    force: bool,
    trashed_too: bool = False,
    precondition: Precondition | None = None,
) -> None:
    """Move a published coupon to the trash, or remove it permanently (spec 3).

    Args:
        actor: who deletes it.
        coupon_id: the coupon.
        force: removes it permanently.
        trashed_too: whether ``force`` also finds a coupon that is in the trash (decisions 14).
        precondition: checks the stored coupon first.
    """

    def work(session: Session) -> None:
        found = [TABLE.c.id == coupon_id]
        if not (force and trashed_too):
            found.append(PUBLISHED)
        coupon = session.execute(select(TABLE).where(*found).with_for_update()).first()
        if coupon is None:
            raise ShopError("shop_api_invalid_coupon_id")
        require_own(
            actor, coupon.author_id, "shop_api_user_cannot_delete_coupon",
            Capability.DELETE_SHOP_COUPONS, Capability.DELETE_OTHERS_SHOP_COUPONS,
        )  # fmt: skip
        if precondition:
            precondition(dict(coupon._mapping))
        this = TABLE.c.id == coupon_id
        if force:
            session.execute(delete(TABLE).where(this))
        else:
            moment = now()
            trashed = {
                "status": CouponStatus.TRASH,
                "trashed_at": moment,
                "updated_at": moment,
            }
            session.execute(update(TABLE).where(this).values(trashed))

    run_in_transaction(work)


def _save(session: Session, actor: Principal, items: Sequence[BulkItem]) -> list[WriteResult]:
    """Decide about the drafts one after the other, then write what was accepted.

    Each decision sees what the earlier ones will have written: a code that an earlier item took
    is taken, one that it gave up is free.
    """
    coupons = _lock(session, items)
    holders: dict[str, int | None] = {
        coupon["code"]: coupon_id for coupon_id, coupon in coupons.items()
    }
    outcomes: list[WriteResult] = []
    created: list[Record] = []
    edited: list[Record] = []
    for item in items:
        try:
            if item.id is not None:
                before = coupons.get(item.id)
                after = _prepare_update(actor, before, item, holders)
                if before and item.data:
                    holders.pop(before["code"], None)
                    edited.append(after)
                coupons[item.id] = after
            else:
                after = _prepare_create(actor, item.data, holders)
                created.append(after)
            holders[after["code"]] = item.id
            outcomes.append(after)
        except ShopError as error:
            outcomes.append(error)
    write_records(session, TABLE, created=created, edited=edited, key="code")
    return outcomes


def _lock(session: Session, items: Sequence[BulkItem]) -> dict[int, Record]:
    """Return the published coupons that the drafts name, by id, held until the commit."""
    ids = [item.id for item in items if 0 < (item.id or 0) <= INT64_MAX]
    codes = [item.data["code"] for item in items if "code" in item.data]
    # Each lookup uses an index of its own; with OR, SQLite would read every published coupon.
    lookups = []
    if ids:
        lookups.append(select(TABLE.c.id).where(TABLE.c.id.in_(ids)))
    if codes:
        has_code = TABLE.c.code.in_(codes)
        lookups.append(select(TABLE.c.id).where(frequent(PUBLISHED), has_code))
    if not lookups:
        return {}
    statement = (
        select(TABLE)
        .where(frequent(PUBLISHED), TABLE.c.id.in_(union(*lookups)))
        .order_by(TABLE.c.id)  # everyone locks in one order
        .with_for_update()
    )
    return {row["id"]: dict(row) for row in session.execute(statement).mappings()}


def _prepare_create(
    actor: Principal, data: Mapping[str, Any], holders: Mapping[str, int | None]
) -> Record:
    """Return the coupon that shall be created (spec 4.1, create rules in their order)."""
    actor.require("shop_api_user_cannot_create_coupon", Capability.PUBLISH_SHOP_COUPONS)
    if "code" not in data:
        raise ShopError("shop_api_missing_coupon_code")
    if data["code"] in holders:
        raise ShopError("shop_api_coupon_code_already_exists")
    _require_known_type(data["type"])
    _require_storable(data["code"], "shop_api_cannot_create_coupon")
    moment = now()
    return {
        **data,
        "status": CouponStatus.PUBLISHED,
        "author_id": actor.user_id,
        "created_at": moment,
        "updated_at": moment,
        "search_text": search_text(data["code"], data["description"]),
    }


def _prepare_update(
    actor: Principal,
    coupon: Record | None,
    item: BulkItem,
    holders: Mapping[str, int | None],
) -> Record:
    """Return the coupon as it shall become (spec 4.1, edit rules in their order)."""
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
        _require_known_type(data["type"])
    if "code" in data:
        _require_storable(data["code"], "shop_api_cannot_update_coupon")
    if not data:
        return coupon
    after = {**coupon, **data, "updated_at": now()}
    return after | {"search_text": search_text(after["code"], after["description"])}


def require_own(
    actor: Principal, author_id: int | None, code: str, own: Capability, others: Capability
) -> None:
    """Demand a capability, and a second one for a coupon that someone else created."""
    actor.require(code, *([own] if author_id == actor.user_id else [own, others]))


def _require_known_type(name: str) -> None:
    if name not in current_catalog().coupon_types:
        raise ShopError("shop_api_invalid_coupon_type", types=_known_types())


def _require_storable(code: str, error_code: str) -> None:
    if not code:
        raise ShopError(error_code, reason="its code is empty.")
    if len(code) > CODE_MAX_LENGTH:
        raise ShopError(error_code, reason=f"its code is longer than {CODE_MAX_LENGTH} characters.")


def _known_types() -> str:
    return ", ".join(current_catalog().coupon_types)
