"""Merging two accounts of one person: one is kept, the other is removed (people 6)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from sqlalchemy import (
    bindparam,
    case,
    exists,
    func,
    insert,
    select,
    union,
    update,
)
from sqlalchemy.orm import Session

from app.auth.principals import Capability, Principal
from app.catalog import Change, current_catalog
from app.conversions.numbers import INT64_MAX
from app.db.errors import TryAgain
from app.db.records import Record, row_dicts
from app.db.session import now, reading_session, run_in_transaction
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.errors import Sentence, ShopError
from app.models import (
    API_KEYS,
    CUSTOMER_METADATA,
    MERGED_ACCOUNTS,
    ORDERS,
    REDEMPTIONS,
    USERS,
)
from app.models.address import BILLING_PARTS, SHIPPING_PARTS, SHIPPING_PHONE
from app.models.user import ON_REQUEST, with_normalized
from app.services.campaigns.locks import hold_campaigns
from app.services.common import metadata
from app.services.common.bulk import Precondition, single_result
from app.services.common.metadata_changes import MetadataChanges, Owner, count_change
from app.services.common.metadata_rules import json_text, shown
from app.services.common.persons import guest_conditions
from app.services.common.roles import capabilities_by_user
from app.services.customers import columns
from app.services.customers.queries import require_positive
from app.services.customers.removal import remove_account
from app.services.customers.writes import write_tags
from app.services.events.hooks import notify
from app.services.events.outbox import cause_of
from app.services.persons.lookup import find_person
from app.services.redemptions.slots import fetch_in

MOST_ORDERS = 10_000
"""Orders that one merge moves at most."""

NOTE = "note"
"""Key of the metadata of a customer that is the note of support."""

_FILLED: Sequence[Sequence[str]] = (
    ("first_name",),
    ("last_name",),
    ("email",),
    [f"billing_{part}" for part in BILLING_PARTS],
    [*(f"shipping_{part}" for part in SHIPPING_PARTS), SHIPPING_PHONE],
    *((name,) for name in ON_REQUEST if name != "tags"),
)
"""The columns that are filled together, if all of them are empty."""

CANNOT_EDIT = "shop_api_user_cannot_edit_customer"
READS = (Capability.LIST_USERS, Capability.READ_PRIVATE_SHOP_ORDERS)
"""The capabilities that the previews of a merge and of a claim require."""

REASONS = {
    "is_caller": "It is your own account.",
    "has_keys": "It has API keys. Revoke them first.",
    "has_capabilities": "It has a role with capabilities.",
    "too_many_orders": "It has too many orders. Merge the other way.",
}
"""Why an account cannot be removed: the message by its code."""
_ACCOUNTS = select(*columns.WRITABLE).where(USERS.c.id.in_([bindparam("kept"), bindparam("other")]))
_ORDERS = (
    select(ORDERS.c.id)
    .where(ORDERS.c.customer_id == bindparam("other"))
    .order_by(ORDERS.c.id)
    .limit(MOST_ORDERS + 1)
)
_MOVE_ORDERS = (
    update(ORDERS)
    .where(is_one_of(ORDERS.c.id, bindparam("moved", type_=IdList)))
    .values(customer_id=bindparam("kept"), updated_at=bindparam("moved_at"))
)
# A request that read the accounts before the merge compares the address of the removed one.
_MOVE_REDEMPTIONS = (
    update(REDEMPTIONS)
    .where(REDEMPTIONS.c.customer_id == bindparam("other"))
    .values(
        customer_id=bindparam("kept"),
        email_normalized=case(
            (REDEMPTIONS.c.email_normalized == "", bindparam("address")),
            else_=REDEMPTIONS.c.email_normalized,
        ),
    )
)
_own = CUSTOMER_METADATA.alias("own")
_IS_LACKING = CUSTOMER_METADATA.c.key.not_in(
    select(_own.c.key).where(_own.c.customer_id == bindparam("kept"))
)
_OF_REMOVED = CUSTOMER_METADATA.c.customer_id == bindparam("other")
_NUMBERS = select(
    select(func.count()).where(ORDERS.c.customer_id == bindparam("other")).scalar_subquery(),
    select(func.count()).where(REDEMPTIONS.c.customer_id == bindparam("other")).scalar_subquery(),
    select(func.count(CUSTOMER_METADATA.c.key.distinct()))
    .where(_OF_REMOVED, _IS_LACKING)
    .scalar_subquery(),
)


def preview_merge(actor: Principal, customer_id: int, removed_id: int) -> Record:
    """Return what a merge would move into an account, and why it is not possible.

    Args:
        customer_id: the account to keep.
        removed_id: the account to remove.

    Returns:
        ``customer``, the account to keep by the names of COLUMNS, ``customer_id``, the numbers
        ``orders``, ``redemptions``, ``metadata`` and ``guest_orders``, and ``reasons``.

    Raises:
        ShopError: an account does not exist, both are the same, or a capability is missing.
    """
    require_positive(customer_id)

    def check() -> None:
        if not actor.can(*READS):
            raise ShopError(CANNOT_EDIT)

    with reading_session() as session:
        kept, removed = _found(session, customer_id, removed_id, "customer_id", check)
        return _preview(session, actor, kept, removed)


def merge_customers(
    actor: Principal, customer_id: int, removed_id: int, precondition: Precondition | None = None
) -> Record:
    """Move everything of an account to another one, and remove it (people 6).

    The orders of the removed account, then both accounts are locked.

    Args:
        customer_id: the account to keep.
        removed_id: the account to remove.
        precondition: check of the preview.

    Returns:
        The kept account by the names of COLUMNS.

    Raises:
        ShopError: an account does not exist, both are the same, a capability is missing, the
            precondition fails, or the account cannot be removed; with the reasons.
    """
    require_positive(customer_id)

    def check() -> None:
        actor.require(CANNOT_EDIT, Capability.EDIT_SHOP_ORDERS)

    def work(session: Session) -> Record:
        param, parameters = "merge.customer_id", {"other": min(removed_id, INT64_MAX)}
        _found(session, customer_id, removed_id, param, check)
        orders = session.scalars(_ORDERS.with_for_update(), parameters).all()
        kept, removed = _found(session, customer_id, removed_id, param, check, locked=True)
        held = capabilities_by_user(session, [customer_id, removed_id])
        check_all = frozenset[Capability]().union(*held.values())
        actor.require(CANNOT_EDIT, Capability.EDIT_SHOP_ORDERS, *check_all)
        if session.scalars(_ORDERS, parameters).all() != orders:
            raise TryAgain  # it has another order, which must be locked before the account
        if precondition:
            precondition(_preview(session, actor, kept, removed))
        if reasons := _reasons(session, actor, removed["id"], len(orders)):
            raise ShopError("shop_api_cannot_merge_customers", reasons=reasons)
        return _merge(session, actor, kept, removed, orders)

    return run_in_transaction(work)


def _found(
    session: Session,
    customer_id: int,
    removed_id: int,
    param: str,
    check: Callable[[], None],
    *,
    locked: bool = False,
) -> tuple[Record, Record]:
    """Return both accounts, after a check of rights that follows that of the kept account."""
    accounts = _ACCOUNTS.order_by(USERS.c.id)
    given = {"kept": min(customer_id, INT64_MAX), "other": min(removed_id, INT64_MAX)}
    rows = session.execute(accounts.with_for_update() if locked else accounts, given)
    found = {row["id"]: row for row in row_dicts(rows)}
    if customer_id not in found:
        raise ShopError("shop_api_invalid_customer")
    check()
    if removed_id == customer_id or removed_id not in found:
        raise ShopError("shop_api_invalid_customer_id", param=param).with_status(400)
    return found[customer_id], found[removed_id]


def _preview(session: Session, actor: Principal, kept: Record, removed: Record) -> Record:
    parameters = {"kept": kept["id"], "other": removed["id"]}
    orders, redemptions, entries = session.execute(_NUMBERS, parameters).one()
    person = find_person(fetch_in(session), {"customer_id": removed["id"]})
    of_guest = [select(ORDERS.c.id).where(each) for each in guest_conditions(person.emails)]
    number = select(func.count()).select_from(union(*of_guest).subquery()) if of_guest else None
    return {
        "customer": single_result(columns.with_computed(session, [kept])),
        "customer_id": removed["id"],
        "orders": orders,
        "redemptions": redemptions,
        "metadata": entries,
        "guest_orders": 0 if number is None else session.scalar(number),
        "reasons": _reasons(session, actor, removed["id"], orders),
    }


def _reasons(
    session: Session, actor: Principal, removed_id: int, orders: int
) -> list[dict[str, object]]:
    """Return why an account cannot be removed: code and message of each reason."""
    has_keys = session.scalar(select(exists().where(API_KEYS.c.user_id == removed_id)))
    found = {
        "is_caller": removed_id == actor.user_id,
        "has_keys": has_keys,
        "has_capabilities": bool(capabilities_by_user(session, [removed_id]).get(removed_id)),
        "too_many_orders": orders > MOST_ORDERS,
    }
    return [
        {"code": code, "message": Sentence(REASONS[code])} for code, holds in found.items() if holds
    ]


def _merge(
    session: Session, actor: Principal, kept: Record, removed: Record, orders: Collection[int]
) -> Record:
    """Write the merge of two locked accounts, and return the kept one."""
    timestamp, parameters = now(), {"kept": kept["id"], "other": removed["id"]}
    of_removed = select(REDEMPTIONS.c.campaign_id).distinct()
    of_removed = of_removed.where(REDEMPTIONS.c.customer_id == removed["id"])
    if campaigns := set(session.scalars(of_removed)) - {None}:
        hold_campaigns(session, campaigns)  # their limits per customer compare the account
    moved = {**parameters, "moved": list(orders), "moved_at": timestamp}
    session.execute(_MOVE_ORDERS, moved)
    used = {**parameters, "address": removed["email_normalized"]}
    redemptions = session.connection().execute(_MOVE_REDEMPTIONS, used).rowcount
    after = _filled(kept, removed) | {"updated_at": timestamp}
    count_change(kept, after)
    _move_metadata(session, kept, removed["id"], after)
    _remember(session, kept["id"], removed)
    remove_account(session, actor, removed["id"])
    stored = {column.name: after[column.name] for column in columns.WRITABLE}
    session.execute(update(USERS).where(USERS.c.id == kept["id"]).values(stored))
    written = {name for name in ON_REQUEST if after[name] != kept[name]}
    if "tags" in written:
        write_tags(session, [after])
    if written:
        after[metadata.WRITTEN] = written
    shown = single_result(columns.with_computed(session, [after]))
    number = {"id": removed["id"], "orders": len(orders), "redemptions": redemptions}
    _report(session, actor, (kept, shown), removed, number)
    for_events = (metadata.METADATA, metadata.METADATA + metadata.BEFORE, metadata.WRITTEN)
    return {name: value for name, value in shown.items() if name not in for_events}


def _filled(kept: Record, removed: Record) -> Record:
    """Return the kept account, with what it lacks and the removed one has."""
    after = dict(kept)
    for names in _FILLED:
        if not any(kept[name] for name in names):
            after |= {name: removed[name] for name in names}
    both = [*(kept["tags"] or ()), *(removed["tags"] or ())]
    after["tags"] = list(dict.fromkeys(both)) or None
    after = with_normalized(after)
    if after["email"] == kept["email"]:
        # Differs only while another account has the same address in another form (migration 0052).
        after["email_normalized"] = kept["email_normalized"]
    return after


def _move_metadata(session: Session, kept: Record, removed_id: int, after: Record) -> None:
    """Move the keys that the kept account lacks, and join the notes of both.

    Adds the metadata before and after to the account, if it changes.
    """
    owner, removed = (Owner(metadata.CUSTOMER, each) for each in (kept["id"], removed_id))
    changes = MetadataChanges.read(session, [(owner, {}), (removed, {})])
    own, others = changes.entries.get(owner, []), changes.entries.pop(removed, [])
    keys, left = {each.key for each in own}, list(own)
    moved = [replace(each, is_changed=True) for each in others if each.key not in keys]
    notes = [found.get(NOTE) for found in (shown(own), shown(others))]
    if notes[1] and all(isinstance(each, str) for each in notes):
        first, text = [each.key for each in own].index(NOTE), "\n\n".join(filter(None, notes))
        left[first] = replace(own[first], value=json_text(text), is_changed=True)
    if moved or left != own:
        changes.keep({owner: [*moved, *left]}, kept, after)
    changes.write(session)


def _remember(session: Session, kept_id: int, removed: Record) -> None:
    """Store the ID and the address of a removed account, and what it remembers itself."""
    merged, email = MERGED_ACCOUNTS.c, removed["email_normalized"] or None
    of_removed = update(MERGED_ACCOUNTS).where(merged.customer_id == removed["id"])
    session.execute(of_removed.values(customer_id=kept_id))
    # An earlier account with the address, which the removed one has taken since.
    earlier = update(MERGED_ACCOUNTS).where(merged.email_normalized == email)
    session.execute(earlier.values(email="", email_normalized=None))
    row = {"id": removed["id"], "customer_id": kept_id, "email": removed["email"]}
    session.execute(insert(MERGED_ACCOUNTS).values(**row, email_normalized=email))


def _report(
    session: Session,
    actor: Principal,
    kept: tuple[Record, Record],
    removed: Record,
    merged: Mapping[str, int],
) -> None:
    """Write the events of a merge. None of them contains the fields of the removed account.

    Args:
        kept: the kept account before and after the merge.
    """
    before, after = kept
    public = columns.public_account(after)
    (data,) = current_catalog().event_data["customer"]([public])
    changes = [
        Change("customer.updated", columns.public_account(before), public),
        Change("customer.merged", None, public, data={**data, "merged": merged}, **cause_of(actor)),
        Change("customer.deleted", columns.public_account(removed), None),
    ]
    notify(session, actor, changes)
