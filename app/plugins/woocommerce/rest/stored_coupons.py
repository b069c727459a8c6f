"""Complete coupons with their metadata and uses, also those in the trash."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, case, select, union_all

from app.auth.principals import Capability, Principal
from app.db.read_pool import Fetch, fetch
from app.models import COUPONS, REDEMPTIONS
from app.models.redemption import RedemptionStatus
from app.plugins.woocommerce.rest.stored import (
    Record,
    RecordListQuery,
    conditions_of,
    fetch_records,
    records_with_ids,
    words_of,
)
from app.services.common.erased import is_erased, owner
from app.services.common.filtering import Matching
from app.services.common.metadata import COUPON, entries_of
from app.services.coupons.queries import COUNTED, PUBLISHED, TRASHED

COLUMNS = tuple(COUPONS.c)
MAX_USES = 1000
"""Uses of a coupon that a record names."""

_KEYS: Mapping[str, ColumnElement[object]] = {
    "date": COUPONS.c.created_at,
    "modified": COUPONS.c.updated_at,
    "id": COUPONS.c.id,
    "title": COUPONS.c.code,
    "slug": COUPONS.c.code,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CouponRecordQuery(RecordListQuery):
    """What a list of coupons shows: the published ones, or those in the trash.

    Attributes:
        code: only the published coupon with this code; None for all.
        is_trashed: whether the list shows the trash.
    """

    code: str | None = None
    is_trashed: bool = False


def list_records(actor: Principal, query: CouponRecordQuery) -> tuple[list[Record], int]:
    """Return a page of coupons and the number of all that match."""
    search, compared = words_of(query.search, COUPONS.c.search_text, COUPONS.c.id)
    conditions = [*conditions_of(query, COUPONS.c, COUPONS.c.id), *compared]
    if query.code is not None:
        conditions.append(COUPONS.c.code == query.code)
    part, counted = (TRASHED, None) if query.is_trashed else (PUBLISHED, COUNTED)
    matching = Matching(COUPONS.c.id, conditions, part, counted, search)
    may_read = actor.can(Capability.READ_PRIVATE_SHOP_COUPONS)
    records, total = fetch_records(COLUMNS, matching, query, keys=_KEYS, may_read=may_read)
    return _completed(fetch, records), total


def records_by_id(ids: Sequence[int]) -> list[Record]:
    """Return coupons in the order of their IDs in ``ids``, also those in the trash."""
    return _completed(fetch, records_with_ids(COLUMNS, COUPONS.c.id, ids))


def _completed(fetch: Fetch, records: list[Record]) -> list[Record]:
    """Return records with ``metadata`` and ``used_by``."""
    metadata = entries_of(fetch, COUPON, [each["id"] for each in records])
    uses = _uses(fetch, [each["id"] for each in records if each["usage_count"]])
    for each in records:
        each["metadata"] = metadata.get(each["id"], [])
        each["used_by"] = uses.get(each["id"], [])
    return records


def _uses(fetch: Fetch, ids: Sequence[int]) -> dict[int, list[str]]:
    """Return the customers or e-mail addresses of the confirmed uses of coupons that have one."""
    of_erased = is_erased(REDEMPTIONS.c.customer_id)
    columns = (
        REDEMPTIONS.c.coupon_id,
        owner(REDEMPTIONS.c.customer_id).label("customer_id"),
        case((of_erased, ""), else_=REDEMPTIONS.c.email_normalized).label("email_normalized"),
    )
    each = [
        select(
            select(*columns)
            .where(
                REDEMPTIONS.c.coupon_id == coupon_id,
                REDEMPTIONS.c.status == RedemptionStatus.CONFIRMED,
            )
            .order_by(REDEMPTIONS.c.id)
            .limit(MAX_USES)
            .subquery()
        )
        for coupon_id in ids
    ]
    found: dict[int, list[str]] = {}
    for coupon_id, customer_id, email in fetch(union_all(*each)) if each else ():
        if customer := str(customer_id) if customer_id else email:
            found.setdefault(coupon_id, []).append(customer)
    return found
