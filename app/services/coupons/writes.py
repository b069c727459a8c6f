"""The rules for writing coupons: create, update, delete (spec 3, 4.1, 4.3, 7.1; decisions 4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from sqlalchemy import Select, bindparam, delete, select, update
from sqlalchemy.orm import Session

from app.auth.principals import Capability, Principal
from app.catalog import Change, current_catalog
from app.conversions.numbers import INT64_MAX
from app.conversions.text import CODE_MAX_LENGTH
from app.db.read_pool import fetching
from app.db.records import WANTED, Record, row_dicts, with_columns, write_records
from app.db.search import search_text
from app.db.session import now, reading_session, run_in_transaction
from app.db.sql.functions import is_one_of
from app.db.sql.index_hints import frequent
from app.db.sql.types import IdList
from app.errors import Sentence, ShopError
from app.models import COUPONS
from app.models.coupon import ON_REQUEST, CouponOptions, CouponRow, CouponStatus
from app.services.campaigns.locks import keep_campaigns
from app.services.common.bulk import (
    BulkItem,
    Data,
    Earlier,
    Precondition,
    WriteResult,
    Writes,
    save_items,
    single_result,
)
from app.services.common.metadata import COUPON, METADATA, WRITTEN, entries_of, first_values
from app.services.common.metadata_changes import (
    MetadataChanges,
    count_change,
    given_to,
    without_metadata,
)
from app.services.coupons.queries import HAS_ONE_OF_CODES, PUBLISHED, known_types
from app.services.coupons.terms import count_reservations
from app.services.events.hooks import notify

_WITH_CODES = select(COUPONS.c.id).where(HAS_ONE_OF_CODES)
_HAS_IDS = is_one_of(COUPONS.c.id, bindparam(WANTED, type_=IdList))
# The same order in every transaction prevents deadlocks.
_TRASHED_TOO = select(COUPONS).where(_HAS_IDS).order_by(COUPONS.c.id).with_for_update()
_WITH_IDS = _TRASHED_TOO.where(frequent(PUBLISHED))
_UNLOCKED = select(COUPONS).where(_HAS_IDS, frequent(PUBLISHED))


def save_coupons(
    actor: Principal, items: Sequence[BulkItem], *, trashed_too: bool = False
) -> list[WriteResult]:
    """Create and update coupons in the given order, in one transaction (spec 4.3).

    Args:
        trashed_too: whether coupons in the trash can be updated, which leaves them there.

    Returns:
        For each item the coupon by its column names, or the error that prevented the write.
    """
    return save_items(_CouponWrites, actor, items, partial(_lock, trashed_too=trashed_too))


def check_coupons(
    actor: Principal, items: Sequence[BulkItem], earlier: Earlier
) -> list[WriteResult]:
    """Return what ``save_coupons`` would return, without IDs of new coupons. Nothing is written.

    Args:
        earlier: codes of coupons that earlier items would create. Those of the items are added.
    """
    with reading_session() as session:
        rows: list[CouponRow] = _named(session, items, _UNLOCKED)
        coupons = {row["id"]: row for row in rows}
        codes = [item.data["code"] for item in items if "code" in item.data]
        taken = {code: None for code in codes if ("code", code) in earlier}
        given = given_to(COUPON, items, coupons)
        writes = _CouponWrites(
            session=session,
            actor=actor,
            records=coupons,
            holders=taken | {each["code"]: each["id"] for each in rows},
            metadata=MetadataChanges.read(session, given, only_checks=True),
            campaigns=keep_campaigns(session, _campaigns_of(items), only_checks=True),
        )
        results = writes.prepare(items)
    earlier.update(("code", each["code"]) for each in writes.created)
    return results


def create_coupon(actor: Principal, data: Mapping[str, object]) -> Record:
    """Create a coupon and return it by its column names.

    Raises:
        ShopError: a create rule is violated (spec 4.1), in the order of the rules.
    """
    return single_result(save_coupons(actor, [BulkItem(None, data)]))


def update_coupon(
    actor: Principal,
    coupon_id: int,
    data: Mapping[str, object],
    precondition: Precondition | None = None,
    *,
    trashed_too: bool = False,
) -> Record:
    """Update the supplied fields of a coupon and return it by its column names.

    Args:
        trashed_too: whether a coupon in the trash can be updated.

    Raises:
        ShopError: the coupon does not exist, the capability is missing, the precondition fails, or
            an update rule is violated (spec 4.1).
    """
    return single_result(
        save_coupons(actor, [BulkItem(coupon_id, data, precondition)], trashed_too=trashed_too)
    )


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
        trashed_too: whether ``force`` also finds a coupon that is in the trash (decisions 14).

    Raises:
        ShopError: the coupon does not exist, a capability is missing, or the precondition fails.
    """

    def work(session: Session) -> None:
        found = [COUPONS.c.id == coupon_id]
        if not (force and trashed_too):
            found.append(PUBLISHED)
        locked = select(COUPONS).where(*found).with_for_update()
        coupons: list[CouponRow] = row_dicts(session.execute(locked))
        if not coupons:
            raise ShopError("shop_api_invalid_coupon_id")
        (coupon,) = coupons
        require_own(actor, coupon["author_id"], "shop_api_user_cannot_delete_coupon")
        if precondition:
            precondition(coupon)
        after: CouponRow | None = None
        this = COUPONS.c.id == coupon_id
        if force:
            entries = entries_of(fetching(session.connection()), COUPON, [coupon_id])
            shown = first_values(entries.get(coupon_id, []))
            coupon = with_columns(coupon, {METADATA: shown})
            session.execute(delete(COUPONS).where(this))
        else:
            trashed = trashed_now()
            session.execute(update(COUPONS).where(this).values(trashed))
            after = with_columns(coupon, trashed)
        notify(session, actor, [Change("coupon.deleted", coupon, after)])

    run_in_transaction(work)


@dataclass(slots=True, kw_only=True)
class _CouponWrites(Writes[CouponRow]):
    """The writes of coupons in one transaction.

    Attributes:
        holders: the coupon that has each code of the request, or None for a new coupon. An item
            that uses a code takes it, and an item that no longer uses its code leaves it.
        campaigns: the campaigns of the request that exist, which stay until the commit.
    """

    resource = "coupon"

    holders: dict[str, int | None]
    metadata: MetadataChanges
    campaigns: set[int]

    def create(self, item: BulkItem) -> Record:
        """Return the new coupon (spec 4.1, create rules in their order)."""
        data = item.data
        self.actor.require("shop_api_user_cannot_create_coupon")
        if "code" not in data:
            raise ShopError("shop_api_missing_coupon_code")
        if data["code"] in self.holders:
            raise ShopError("shop_api_coupon_code_already_exists")
        require_known_type(data["type"])
        _require_storable(data["code"], "shop_api_cannot_create_coupon")
        _require_campaign(self, data)
        timestamp = now()
        created: Record = {
            **ON_REQUEST,
            "status": CouponStatus.PUBLISHED,
            "author_id": self.actor.user_id or None,  # 0 is a command without a user
            "created_at": timestamp,
            "updated_at": timestamp,
            **columns_of(data),
            "search_text": search_text(data["code"], data["description"]),
        }
        _note_written(self, data, None, created)
        self.metadata.apply(COUPON, "coupon", data, None, created)
        self.holders[data["code"]] = None
        return created

    def update(self, coupon: CouponRow | None, item: BulkItem) -> CouponRow:
        """Return the updated coupon (spec 4.1, update rules in their order)."""
        if coupon is None:
            raise ShopError("shop_api_invalid_coupon_id")
        require_own(self.actor, coupon["author_id"], "shop_api_user_cannot_edit_coupon")
        if item.precondition:
            item.precondition(coupon)
        data, holders = item.data, self.holders
        is_published = _is_published(coupon)  # codes in the trash are free
        if (
            is_published
            and "code" in data
            and holders.get(data["code"], coupon["id"]) != coupon["id"]
        ):
            raise ShopError("shop_api_coupon_code_already_exists")
        if "type" in data:
            require_known_type(data["type"])
        if "code" in data:
            _require_storable(data["code"], "shop_api_cannot_update_coupon")
        _require_campaign(self, data)
        if not data:
            return with_columns(coupon, {})  # a copy, without the metadata of an earlier item
        columns = columns_of(data, coupon["options"])
        after = with_columns(coupon, {**columns, **edited_now()})
        after["search_text"] = search_text(after["code"], after["description"])
        _note_written(self, data, coupon, cast("Record", after))
        self.metadata.apply(COUPON, "coupon", data, coupon, cast("Record", after))
        if is_published:
            holders.pop(coupon["code"], None)
            holders[after["code"]] = coupon["id"]
        return after

    def write(self, results: Sequence[WriteResult]) -> list[WriteResult]:
        """Write the accepted coupons with one statement for each kind of write."""
        session = self.session
        write_records(session, COUPONS, created=self.created, updated=self.updated, key="code")
        changes = [(each.before, each.after) for each in self.changes]
        limited = [after["id"] for before, after in changes if after and _sets_limit(before, after)]
        count_reservations(session, limited)
        self.metadata.write(session)
        notify(session, self.actor, self.changes)
        return list(results)


def _lock(
    session: Session, actor: Principal, items: Sequence[BulkItem], *, trashed_too: bool
) -> _CouponWrites:
    """Lock the campaigns and coupons of the items, and read the metadata that they change."""
    campaigns = keep_campaigns(session, _campaigns_of(items))
    coupons = lock_coupons(session, items, trashed_too=trashed_too)
    return _CouponWrites(
        session=session,
        actor=actor,
        records=coupons,
        holders={each["code"]: each["id"] for each in coupons.values() if _is_published(each)},
        metadata=MetadataChanges.read(session, given_to(COUPON, items, coupons)),
        campaigns=campaigns,
    )


def _campaigns_of(items: Sequence[BulkItem]) -> set[int]:
    given = {item.data.get("campaign_id") or 0 for item in items}
    return {campaign_id for campaign_id in given if 0 < campaign_id <= INT64_MAX}


def lock_coupons(
    session: Session, items: Sequence[BulkItem], *, trashed_too: bool
) -> dict[int, CouponRow]:
    """Lock the coupons that the items name by ID or code until the commit; return them by ID.

    The codes are looked up first: a select by ID or code would read every published coupon on
    SQLite, and on PostgreSQL in a new shop, where the statistics of the table are missing.
    """
    rows: list[CouponRow] = _named(session, items, _TRASHED_TOO if trashed_too else _WITH_IDS)
    return {row["id"]: row for row in rows}


def _named(
    session: Session, items: Sequence[BulkItem], statement: Select[object]
) -> list[CouponRow]:
    """Return the coupons that the items name by ID or code, by a statement with their IDs."""
    ids = {item.id for item in items if item.id and 0 < item.id <= INT64_MAX}
    codes = [item.data["code"] for item in items if "code" in item.data]
    if codes:
        ids.update(session.connection().scalars(_WITH_CODES, {"codes": codes}))
    return row_dicts(session.connection().execute(statement, {WANTED: ids})) if ids else []


def columns_of(
    data: Mapping[str, object], options: CouponOptions = ON_REQUEST["options"]
) -> Record:
    """Return the columns of the fields of a request.

    Args:
        options: the stored ones.
    """
    columns = without_metadata(data)
    # An empty list is stored as the default, so that `changes` of the event do not contain it.
    blank = CouponOptions()._asdict()
    given = {name: columns.pop(name) or blank[name] for name in blank if name in data}
    if "maximum_discount" in given:
        given["maximum_discount"] = str(given["maximum_discount"] or "") or None
    if "campaign_id" in columns:
        columns["campaign_id"] = columns["campaign_id"] or None
    return columns | {"options": options._replace(**given)} if given else columns


def _require_campaign(writes: _CouponWrites, data: Mapping[str, object]) -> None:
    """Raise ShopError if a campaign of a request does not exist."""
    campaign_id = data.get("campaign_id")
    if campaign_id and campaign_id not in writes.campaigns:
        raise unknown_campaign("coupon.campaign_id")


def unknown_campaign(param: str) -> ShopError:
    """Return the error for a campaign that a coupon names and that does not exist."""
    return ShopError("shop_api_invalid_campaign_id", param=param).with_status(400)


def _note_written(writes: _CouponWrites, data: Data, before: Data | None, after: Record) -> None:
    """Let the response and the event contain the fields that are otherwise shown on request."""
    written = {*ON_REQUEST, *CouponOptions._fields} & data.keys()
    if written:
        count_change(before, after)
        writes.metadata.show(after, WRITTEN, written)


def _sets_limit(before: Data | None, after: Data) -> bool:
    """Return whether an update sets a ``usage_limit`` of a coupon that had none."""
    return bool(before and after["usage_limit"] and not before["usage_limit"])


def _is_published(coupon: CouponRow) -> bool:
    return coupon["status"] == CouponStatus.PUBLISHED


def trashed_now() -> Record:
    """Return the columns of coupons that are moved to the trash."""
    edited = edited_now()
    return {"status": CouponStatus.TRASH, "trashed_at": edited["updated_at"], **edited}


def edited_now() -> Record:
    """Return the columns of every update of coupons other than by a use."""
    return {"updated_at": now(), "edited_at": None}


_OF_OTHERS = {
    "shop_api_user_cannot_edit_coupon": Capability.EDIT_OTHERS_SHOP_COUPONS,
    "shop_api_user_cannot_delete_coupon": Capability.DELETE_OTHERS_SHOP_COUPONS,
}


def require_own(actor: Principal, author_id: int | None, code: str) -> None:
    """Raise ShopError without the right of a code; coupons of others require one more."""
    actor.require(code, *([] if author_id == actor.user_id else [_OF_OTHERS[code]]))


def require_known_type(name: str) -> None:
    """Raise ShopError if a coupon type does not exist."""
    if name not in current_catalog().coupon_types:
        raise ShopError("shop_api_invalid_coupon_type", types=known_types())


def _require_storable(code: str, error_code: str) -> None:
    """Raise ShopError with ``error_code`` if a code is empty or too long (decisions 4 and 17)."""
    if not code:
        raise ShopError(error_code, reason="the code is empty.")
    if len(code) > CODE_MAX_LENGTH:
        raise ShopError(
            error_code, reason=Sentence("the code is longer than {0} characters.", CODE_MAX_LENGTH)
        )
