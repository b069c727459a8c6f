"""Undo of one write: a new write that gives fields the values that they had before (people 2)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import marshmallow as ma
import orjson
from flask import Response
from sqlalchemy import Table, select
from sqlalchemy.orm import Session

from app.api.representations import (
    CAMPAIGN,
    EVENT,
    ORDER_NOTE,
    OrderSerializer,
    RefundSerializer,
    coupons,
    customers,
)
from app.api.responses import delete_response, json_response
from app.auth.api_keys import require_resources
from app.auth.principals import Principal
from app.catalog import TRASH, current_catalog
from app.conversions.emails import comparable_email
from app.db.read_pool import fetch
from app.db.records import Record
from app.db.session import reading_session, run_in_transaction
from app.errors import Sentence, ShopError
from app.models import CAMPAIGNS, COUPONS, ORDER_NOTES, ORDER_REFUNDS, ORDERS, USERS
from app.models.address import SHIPPING_PHONE
from app.schemas.campaigns import CampaignUpdate
from app.schemas.coupons.coupon import CouponUpdate
from app.schemas.customers import CustomerUpdate
from app.schemas.loading import instance_of
from app.schemas.orders.input import OrderUpdate
from app.schemas.orders.note import OrderNoteUpdate
from app.schemas.orders.refund import OrderRefundUpdate
from app.services.campaigns.writes import update_campaign
from app.services.common import metadata
from app.services.common.bulk import BulkItem, Precondition, single_result
from app.services.common.roles import capabilities_by_user
from app.services.coupons.writes import delete_coupon, require_own, save_coupons
from app.services.customers.writes import save_customers
from app.services.events.changes import is_same
from app.services.events.queries import known_event
from app.services.maintenance.trash import restore_coupon, restore_order
from app.services.orders.columns import REFUNDED
from app.services.orders.erased import EMPTIED, is_kept
from app.services.orders.notes import update_note
from app.services.orders.refunds import update_refund
from app.services.orders.writes import delete_order, rights_to_change, save_orders

CODE = "shop_api_cannot_undo_event"

REASONS = {
    "not_undoable": "Events of this type cannot be undone.",
    "no_changes": "The event does not contain changes that can be undone.",
    "items": "The write changed items, the tax on shipping or refunds of the order.",
    "secret": "The write set a password.",
    "not_found": "The record was deleted, or is in the trash.",
    "erased": "The personal data of the order was erased.",
    "changed_since": "These fields have changed since: {0}.",
}
"""Why a write cannot be undone: the message by its code."""

_STAY = {"completed_at", "paid_at", "version"}
"""Fields of an order that an undo leaves as they are."""

_ITEMS = {
    "line_items",
    "shipping_lines",
    "fee_lines",
    "tax_lines",
    "coupon_lines",
    "shipping_tax",
    "total_refunded",
}

Values = Mapping[str, Any]
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Kind:
    """How writes of a kind of record are undone.

    Attributes:
        resource: the resource that the key must allow.
        right: error code of the right to update a record.
        update: updates a stored record, given the actor, the record, the data and the precondition.
        body: returns the response for an updated or restored record.
        restore, delete: the functions of the trash; None without one.
        delete_right: error code of the right to delete a record.
    """

    resource: str
    table: Table
    metadata: metadata.MetadataTable | None
    schema: type[ma.Schema]
    right: str
    update: Callable[[Principal, Record, Record, Precondition], Record]
    body: Callable[[Record], object]
    restore: Callable[[Principal, int], Record] | None = None
    delete: Callable[[Principal, int], None] | None = None
    delete_right: str = ""


def _save(
    save: Callable[..., Any], actor: Principal, row: Record, data: Record, check: Precondition
) -> Record:
    return single_result(save(actor, [BulkItem(row["id"], data, check)]))


_KINDS: Mapping[str, _Kind] = {
    "campaign": _Kind(
        "campaigns",
        CAMPAIGNS,
        None,
        CampaignUpdate,
        "shop_api_user_cannot_edit_campaign",
        lambda actor, row, data, check: update_campaign(actor, row["id"], data, check),
        CAMPAIGN.record,
    ),
    "coupon": _Kind(
        "coupons",
        COUPONS,
        metadata.COUPON,
        CouponUpdate,
        "shop_api_user_cannot_edit_coupon",
        partial(_save, save_coupons),
        lambda row: coupons().record(row),
        restore_coupon,
        partial(delete_coupon, force=False),
        "shop_api_user_cannot_delete_coupon",
    ),
    "customer": _Kind(
        "customers",
        USERS,
        metadata.CUSTOMER,
        CustomerUpdate,
        "shop_api_user_cannot_edit_customer",
        partial(_save, save_customers),
        lambda row: customers().record(row),
    ),
    "order": _Kind(
        "orders",
        ORDERS,
        metadata.ORDER,
        OrderUpdate,
        "shop_api_user_cannot_edit_order",
        partial(_save, save_orders),
        lambda row: OrderSerializer().record(row),
        restore_order,
        partial(delete_order, force=False),
        "shop_api_user_cannot_delete_order",
    ),
    "order_refund": _Kind(
        "orders",
        ORDER_REFUNDS,
        metadata.REFUND,
        OrderRefundUpdate,
        "shop_api_user_cannot_edit_order_refund",
        lambda actor, row, *rest: update_refund(actor, row["order_id"], row["id"], *rest),
        lambda row: RefundSerializer().record(row),
    ),
    "order_note": _Kind(
        "orders",
        ORDER_NOTES,
        None,
        OrderNoteUpdate,
        "shop_api_user_cannot_edit_order_note",
        lambda actor, row, *rest: update_note(actor, row["order_id"], row["id"], *rest),
        ORDER_NOTE.record,
    ),
}

Run = Callable[[Principal], Response]


@dataclass(frozen=True, slots=True)
class Undo:
    """What an undo does, or why it is not possible.

    Attributes:
        shown: the object of the response.
        run: runs the undo.
    """

    shown: Record
    run: Run | None = None


def plan_undo(actor: Principal, event_id: int, *, compares: bool = True) -> Undo:
    """Return what the undo of an event does, as far as it can be known without a lock.

    Args:
        compares: whether the fields are compared. ``run`` does it again with a lock.

    Raises:
        ShopError: the event does not exist, or a right of the operation is missing.
    """
    names = dict.fromkeys(("id", "type", "resource", "resource_id", "data", "changes"))
    serializer = EVENT.only(names)
    shown = serializer.row(known_event(actor, event_id, serializer.columns))
    event = orjson.loads(orjson.dumps(shown))
    resource, _, verb = event["type"].partition(".")
    kind, changes = _KINDS.get(resource), event["changes"] or {}
    trashes = {"deleted": "delete", "restored": "restore"}.get(verb)
    is_permanent = bool(event["data"].get("permanent") or (trashes and changes.get("before")))
    if kind is None or is_permanent or not (verb == "updated" or (trashes and kind.restore)):
        return _impossible(event, "not_undoable")
    require_resources(actor, kind.resource)
    actor.require(kind.delete_right if verb == "restored" else kind.right)
    if trashes:
        return _plan_trash(actor, event, kind, is_deleted=verb == "deleted")
    reason, row = _static_reason(kind, changes), _row(kind, event["resource_id"])
    if reason == "no_changes" and changes.get("before") and row and row.get("erased_at"):
        reason = "erased"
    if reason:
        return _impossible(event, reason)
    if row is None or _is_trashed(row):
        return _impossible(event, "not_found")
    _require_record(actor, resource, row)
    if resource == "order":
        actor.require(kind.right, *rights_to_change(undone_fields(resource, changes)))
    if resource == "order" and changes["before"].get("status") == REFUNDED:
        actor.require("shop_api_user_cannot_create_order_refund")
    if row.get("erased_at") and _fills(resource, event["changes"]["before"]):
        return _impossible(event, "erased")
    return _plan_update(event, kind, row, compares=compares)


def undo(actor: Principal, event_id: int) -> Response:
    """Undo an event, and return the response of the operation that undoes it.

    Raises:
        ShopError: the event does not exist or cannot be undone, or the error of the operation.
    """
    plan = plan_undo(actor, event_id, compares=False)
    if plan.run is None:
        raise ShopError(CODE, reasons=plan.shown["reasons"])
    return plan.run(replace(actor, undo_of=event_id))


def _undo_object(event: Record, reasons: Sequence[Values], before: Values, after: Values) -> Record:
    return {
        "event_id": event["id"],
        "resource": event["resource"],
        "resource_id": event["resource_id"],
        "possible": not reasons,
        "reasons": reasons,
        "changes": {"before": before, "after": after},
    }


def _impossible(event: Record, code: str) -> Undo:
    return Undo(_undo_object(event, [_reason(code)], {}, {}))


def _reason(code: str, changed: Iterable[Path] = ()) -> dict[str, object]:
    fields = ", ".join(".".join(path) for path in changed)
    return {"code": code, "message": Sentence(REASONS[code], fields)}


def _static_reason(kind: _Kind, changes: Values) -> str:
    """Return why an update can never be undone, or an empty text."""
    # An object without parts is what an erasure has left.
    names = {path[0] for when in ("before", "after") for path in _leaves(changes.get(when, {}))}
    if kind.resource == "orders" and not _ITEMS.isdisjoint(names):
        return "items"
    if "password" in names:
        return "secret"
    return "" if {*instance_of(kind.schema).fields, SHIPPING_PHONE} & names else "no_changes"


def _row(kind: _Kind, record_id: int) -> Record | None:
    """Return a record by its column names, with the state of the order of a note or refund."""
    rows = fetch(select(kind.table).where(kind.table.c.id == record_id))
    row = dict(rows[0]._mapping) if rows else None
    if row and kind.table in (ORDER_NOTES, ORDER_REFUNDS):
        columns = ORDERS.c.status, ORDERS.c.erased_at
        order = fetch(select(*columns).where(ORDERS.c.id == row["order_id"]))
        row["status"], row["erased_at"] = order[0] if order else (TRASH, None)
    return row


def _fills(resource: str, before: Values) -> bool:
    """Return whether values of an order or refund are some that its erasure has emptied."""
    parts = {"billing_address": "billing_", "shipping_address": "shipping_"}
    leaves = _leaves(before)
    columns = {parts.get(path[0], "") + path[-1] for path in leaves}
    keys = [path[-1] for path in leaves if path[0] == metadata.METADATA]
    emptied = EMPTIED if resource == "order" else {"reason"}
    return not emptied.isdisjoint(columns) or not is_kept(keys)


def _is_trashed(row: Record) -> bool:
    return row.get("status") == TRASH


def _require_record(actor: Principal, resource: str, row: Record) -> None:
    """Raise ShopError without the rights that the record requires in addition."""
    if resource == "coupon":
        require_own(actor, row["author_id"], _KINDS[resource].right)
    if resource == "customer":
        with reading_session() as session:
            theirs = capabilities_by_user(session, [row["id"]]).get(row["id"], frozenset())
        actor.require(_KINDS[resource].right, *theirs)


def _plan_trash(actor: Principal, event: Record, kind: _Kind, *, is_deleted: bool) -> Undo:
    row = _row(kind, event["resource_id"])
    if row is None:
        return _impossible(event, "not_found")
    if event["resource"] == "coupon":
        require_own(actor, row["author_id"], kind.right if is_deleted else kind.delete_right)
    if _is_trashed(row) is not is_deleted:
        reasons = [_reason("changed_since", [("status",)])]
        return Undo(_undo_object(event, reasons, {}, {}))

    def run(actor: Principal) -> Response:
        if is_deleted and kind.restore:
            restored = kind.restore(actor, row["id"])
            return json_response({event["resource"]: kind.body(restored)})
        if kind.delete:
            kind.delete(actor, row["id"])
        return delete_response(event["resource"], permanently=False)

    return Undo(_undo_object(event, [], {}, {}), run)


def _plan_update(event: Record, kind: _Kind, row: Record, *, compares: bool) -> Undo:
    resource, changes = event["resource"], event["changes"]
    wanted = _leaves(changes["before"])
    # Null where the write has added a part that was absent before.
    before = {path: wanted.get(path) for path in _leaves(changes["after"]) | wanted}
    before = {path: value for path, value in before.items() if _is_written(kind, path)}
    after = {path: _leaves(changes["after"]).get(path) for path in before}

    def now(record: Values) -> dict[Path, object]:
        return _found(_values(resource, kind, record, before), before)

    def check(record: Values) -> None:
        found = now(record)
        if changed := [path for path in before if not is_same(found[path], after[path])]:
            raise ShopError(CODE, reasons=[_reason("changed_since", changed)])

    def run(actor: Principal) -> Response:
        def work(_: Session) -> Record:
            updated = kind.update(actor, row, _data(kind, before), check)
            found = now(updated)  # a rule of the update can ignore a value, such as a taken e-mail
            if kept := [path for path in before if not is_same(found[path], before[path])]:
                raise ShopError(CODE, reasons=[_reason("changed_since", kept)])
            return updated

        return json_response({resource: kind.body(run_in_transaction(work))})

    if not compares:
        return Undo({}, run)
    found = now(row)
    changed = [path for path in before if not is_same(found[path], after[path])]
    if _is_taken(str(before.get(("email",)) or ""), row["id"]):
        changed = [*changed, ("email",)]
    reasons = [_reason("changed_since", changed)] if changed else []
    shown = _undo_object(event, reasons, _nested(found), _nested(before))
    return Undo(shown, None if reasons else run)


def _is_written(kind: _Kind, path: Path) -> bool:
    names = {*instance_of(kind.schema).fields, SHIPPING_PHONE} - _STAY
    return path[0] in names


def undone_fields(resource: str, changes: Values) -> set[str]:
    """Return the names of the fields that the undo of an update writes."""
    paths = [path for when in ("before", "after") for path in _leaves(changes.get(when, {}))]
    return {path[0] for path in paths if _is_written(_KINDS[resource], path)}


def _is_taken(email: str, customer_id: int) -> bool:
    """Return whether another account has the e-mail address of an earlier state."""
    normalized = comparable_email(email)
    holds = (USERS.c.email_normalized == normalized) & (USERS.c.id != customer_id)
    return bool(normalized and fetch(select(USERS.c.id).where(holds)))


def _values(resource: str, kind: _Kind, record: Values, paths: Iterable[Path]) -> Record:
    """Return the fields of a record that ``changes`` compare, with its metadata for paths of it.

    Metadata that the record lacks is read outside of the transaction, which can already have
    removed it to write it again. Other transactions wait for the lock of the record.
    """
    shown = dict(record)
    has_metadata = any(path[0] == metadata.METADATA for path in paths)
    if has_metadata and kind.metadata is not None and metadata.METADATA not in shown:
        entries = metadata.entries_of(fetch, kind.metadata, [record["id"]])
        shown[metadata.METADATA] = metadata.first_values(entries.get(record["id"], []))
    return current_catalog().event_values[resource](shown)


def _leaves(values: Values) -> dict[Path, object]:
    """Return the values of fields, and of the parts of objects, by their paths."""
    found: dict[Path, object] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= {(name, part): each for part, each in value.items()}
        else:
            found[name,] = value
    return found


def _found(values: Values, paths: Iterable[Path]) -> dict[Path, object]:
    leaves = _leaves(values)
    return {path: leaves.get(path) for path in paths}


def _nested(leaves: Mapping[Path, object]) -> Record:
    nested: Record = {}
    for path, value in leaves.items():
        if len(path) == 1:
            nested[path[0]] = value
        else:
            nested.setdefault(path[0], {})[path[1]] = value
    return nested


def _data(kind: _Kind, before: Mapping[Path, object]) -> Record:
    """Return the data of the update, in the form of a loaded request.

    Values are not cleaned again, because they were stored. Empty text removes a value.
    """
    given = {
        path: "" if value is None and path[0] != metadata.METADATA else value
        for path, value in before.items()
        if path[0] != SHIPPING_PHONE
    }
    data: Record = instance_of(kind.schema, cleans=False).load(_nested(given))
    if (SHIPPING_PHONE,) in before:
        address = data.get("shipping_address", {})
        data["shipping_address"] = {**address, "phone": before[SHIPPING_PHONE,]}
    return data
