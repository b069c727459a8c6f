"""The kinds of records that are imported, and how conflicts with stored records are resolved."""

from collections.abc import Iterable, Sequence
from itertools import count

from sqlalchemy import Column, ColumnElement, bindparam, case, delete, func, insert, select, update
from sqlalchemy.orm import Session

from app.conversions.emails import comparable_email
from app.conversions.text import comparable
from app.db.sql.functions import is_one_of
from app.db.sql.types import Id, IdList
from app.models import (
    API_KEYS,
    CAMPAIGNS,
    COUPONS,
    DOWNLOADS,
    ORDER_NOTES,
    ORDER_REFUNDS,
    ORDERS,
    REDEMPTIONS,
    USER_ROLES,
    USERS,
    WEBHOOKS,
)
from app.models.coupon import CouponStatus
from app.models.user import role_of, with_normalized
from app.plugins.woocommerce.importer.convert import Pending
from app.plugins.woocommerce.importer.target.writer import TargetKind
from app.services.campaigns.writes import count_again
from app.services.common import metadata
from app.services.coupons.terms import count_reservations
from app.services.events.sequence import last_event_id
from app.services.orders.columns import new_key


def _owners(
    session: Session, column: Column[str], values: Iterable[str], *conditions: ColumnElement[bool]
) -> dict[str, int]:
    """Return the stored records that have one of some values in a column: their IDs by value."""
    found = select(column, column.table.c.id).where(column.in_(list(values)), *conditions)
    return dict(map(tuple, session.execute(found)))


def _resolve_customers(session: Session, pending: Sequence[Pending]) -> None:
    """Empty an e-mail address, and change a username, that another stored account has."""
    with_email = [each for each in pending if each.values["email"]]
    emails = {comparable_email(each.values["email"]): each for each in with_email}
    names = {comparable(each.values["username"]): each for each in pending}
    # Two accounts of one import can exchange their addresses.
    changed = [each.target_id for each in pending if each.imported]
    if changed:
        session.execute(
            update(USERS).where(USERS.c.id.in_(changed)).values(email="", email_normalized="")
        )
    for key, owner in _owners(session, USERS.c.email_normalized, emails).items():
        if (each := emails[key]).target_id != owner:
            each.converted.altered.append(
                f"account {owner} of this shop has the e-mail {each.values['email']!r}, "
                "which was emptied"
            )
            each.values["email"] = ""
    for key, owner in _owners(session, USERS.c.username_normalized, names).items():
        if (each := names[key]).target_id != owner:
            name = _free_username(session, each.values["username"], names)
            each.converted.altered.append(
                f"account {owner} of this shop has the username {each.values['username']!r}; "
                f"the new username is {name!r}"
            )
            each.values["username"] = name
            names[comparable(name)] = each
    for each in pending:
        each.values |= with_normalized(each.values)


def _free_username(session: Session, name: str, taken: dict[str, Pending]) -> str:
    candidates = (f"{name}-{number}" for number in count(2))
    return next(
        each
        for each in candidates
        if comparable(each) not in taken
        and not _owners(session, USERS.c.username_normalized, [comparable(each)])
    )


def _write_roles(session: Session, written: Sequence[Pending]) -> None:
    changed = [each.target_id for each in written if each.imported]
    if changed:
        session.execute(delete(USER_ROLES).where(USER_ROLES.c.user_id.in_(changed)))
    rows = [
        role_of(each.target_id, role, each.values["created_at"], position)
        for each in written
        for position, role in enumerate(each.converted.roles)
    ]
    if rows:
        session.execute(insert(USER_ROLES), rows)


def _resolve_coupons(session: Session, pending: Sequence[Pending]) -> None:
    """Move a coupon to the trash if another published coupon of this shop has its code."""
    published = {
        each.values["code"]: each
        for each in pending
        if each.values["status"] == CouponStatus.PUBLISHED
    }
    ids = {each.target_id for each in pending}
    is_published = COUPONS.c.status == CouponStatus.PUBLISHED
    for code, owner in _owners(session, COUPONS.c.code, published, is_published).items():
        each = published[code]
        if owner not in ids:
            each.values |= {"status": CouponStatus.TRASH, "trashed_at": each.values["updated_at"]}
            each.converted.altered.append(
                f"coupon {owner} of this shop has the code, so the coupon was moved to the trash"
            )
    # Two coupons of one import can exchange their codes.
    moved = [each.target_id for each in pending if each.imported]
    if moved:
        session.execute(
            update(COUPONS).where(COUPONS.c.id.in_(moved)).values(status=CouponStatus.TRASH)
        )


def _count_reservations(session: Session, written: Sequence[Pending]) -> None:
    """Count the reservations of coupons that may have got a limit."""
    limited = [each for each in written if each.imported and each.values["usage_limit"]]
    count_reservations(session, [each.target_id for each in limited])


def _resolve_orders(session: Session, pending: Sequence[Pending]) -> None:
    """Generate an order key for an order without a key, or whose key another order has.

    Order keys are unique, because download links contain them.
    """
    keys = {each.values["order_key"] for each in pending} - {""}
    owners = _owners(session, ORDERS.c.order_key, keys)
    without = [each.target_id for each in pending if each.imported and not each.values["order_key"]]
    stored = session.execute(
        select(ORDERS.c.id, ORDERS.c.order_key).where(ORDERS.c.id.in_(without))
    )
    kept = {row.id: row.order_key for row in stored}
    for each in pending:
        key = each.values["order_key"]
        if not key and each.imported:  # keep the key of the earlier import
            each.values["order_key"] = kept.get(each.target_id) or new_key()
        elif not key:
            each.values["order_key"] = new_key()
        elif owners.setdefault(key, each.target_id) != each.target_id:
            each.values["order_key"] = new_key()
            each.converted.altered.append(
                f"order {owners[key]} has the order key {key!r}, so a new key was generated"
            )


def _resolve_redemptions(session: Session, pending: Sequence[Pending]) -> None:
    """Release a use if the order has another live use of the coupon, from a change in this shop."""
    orders = [each.values["order_id"] for each in pending if each.values["order_id"]]
    rows = session.execute(
        select(REDEMPTIONS.c.id, REDEMPTIONS.c.order_id, REDEMPTIONS.c.coupon_id).where(
            REDEMPTIONS.c.order_id.in_(orders), REDEMPTIONS.c.status != "released"
        )
    ).all()
    released = {each.target_id for each in pending if each.values["status"] == "released"}
    held = {(row.order_id, row.coupon_id): row.id for row in rows if row.id not in released}
    for each in pending:
        key = (each.values["order_id"], each.values["coupon_id"])
        if key[0] and held.get(key, each.target_id) != each.target_id:
            each.values["status"] = "released"


def _lock_coupons(session: Session, uses: Sequence[int]) -> None:
    """Lock the campaigns, then the coupons of uses: all transactions lock them before the uses."""
    of_uses = is_one_of(REDEMPTIONS.c.id, bindparam(None, list(uses), type_=IdList))
    for table, column in ((CAMPAIGNS, "campaign_id"), (COUPONS, "coupon_id")):
        theirs = table.c.id.in_(select(REDEMPTIONS.c[column]).where(of_uses))
        found = select(table.c.id).where(theirs).order_by(table.c.id)
        session.execute(found.with_for_update(key_share=table is COUPONS))


def _count_uses(session: Session, written: Sequence[Pending]) -> None:
    """Count again the uses of campaigns, and the reservations of coupons, whose uses changed."""
    replaced = [each for each in written if each.imported]
    if replaced:
        changed = REDEMPTIONS.c.id.in_([each.target_id for each in replaced])
        count_again(session, CAMPAIGNS.c.id.in_(select(REDEMPTIONS.c.campaign_id).where(changed)))
        theirs = COUPONS.c.id.in_({each.values["coupon_id"] for each in replaced})
        limited = select(COUPONS.c.id).where(theirs, COUPONS.c.usage_limit > 0)
        count_reservations(session, session.scalars(limited).all())


def _resolve_webhooks(session: Session, pending: Sequence[Pending]) -> None:
    """Set the position of webhooks, so that they receive only events after the import."""
    last = last_event_id(session)
    for each in pending:
        each.values["position"] = last


def _add_up_refunds(session: Session, written: Sequence[Pending]) -> None:
    """Store the sum of the refunds of orders, and reserve the IDs of their items."""
    orders = sorted({each.values["order_id"] for each in written})
    items: dict[int, int] = {}
    for each in written:
        order_id = each.values["order_id"]
        last = max((item["item_id"] for item in each.values["line_items"]), default=0)
        items[order_id] = max(last, items.get(order_id, 0))
    of_order = ORDER_REFUNDS.c.order_id == ORDERS.c.id
    total = select(func.coalesce(func.sum(ORDER_REFUNDS.c.amount), 0)).where(of_order)
    following = bindparam("following", type_=Id)
    statement = (
        update(ORDERS)
        .where(ORDERS.c.id == bindparam("order"))
        .values(
            total_refunded=total.scalar_subquery(),
            next_item_id=case(
                (ORDERS.c.next_item_id < following, following), else_=ORDERS.c.next_item_id
            ),
        )
    )
    if orders:
        rows = [{"order": each, "following": items[each] + 1} for each in orders]
        session.connection().execute(statement, rows)


_OF_ORDER = {"order": ("order", "order_id")}
_OF_CUSTOMER = {"customer": ("customer", "customer_id")}
_OF_USER = {"customer": ("customer", "user_id")}

CUSTOMER = TargetKind(
    "customer", "customers", USERS, _resolve_customers, _write_roles, metadata=metadata.CUSTOMER
)
COUPON = TargetKind(
    "coupon",
    "coupons",
    COUPONS,
    _resolve_coupons,
    _count_reservations,
    metadata=metadata.COUPON,
    references={"author": ("customer", "author_id")},
)
ORDER = TargetKind(
    "order",
    "orders",
    ORDERS,
    _resolve_orders,
    metadata=metadata.ORDER,
    items_of="id",
    references={**_OF_CUSTOMER, "parent": ("order", "parent_id")},
)
ORDER_USE = TargetKind(
    "order_coupon",
    "redemptions",
    REDEMPTIONS,
    _resolve_redemptions,
    _count_uses,
    references={**_OF_CUSTOMER, **_OF_ORDER},
    notes_edits=False,
    lock_first=_lock_coupons,
)
COUPON_USE = TargetKind(
    "coupon_use",
    "redemptions",
    REDEMPTIONS,
    after_write=_count_uses,
    references=_OF_CUSTOMER,
    notes_edits=False,
    lock_first=_lock_coupons,
)
ORDER_NOTE = TargetKind(
    "order_note", "order notes", ORDER_NOTES, references=_OF_ORDER, notes_edits=False
)
REFUND = TargetKind(
    "order_refund",
    "refunds",
    ORDER_REFUNDS,
    after_write=_add_up_refunds,
    metadata=metadata.REFUND,
    items_of="order_id",
    references={"user": ("customer", "refunded_by"), **_OF_ORDER},
)
DOWNLOAD = TargetKind("download", "downloads", DOWNLOADS, references=_OF_ORDER, notes_edits=False)
WEBHOOK = TargetKind("webhook", "webhooks", WEBHOOKS, _resolve_webhooks, references=_OF_USER)
API_KEY = TargetKind("api_key", "API keys", API_KEYS, references=_OF_USER)
