"""Planted defects (``plants``): rules that hold in most paths, and not in one."""

from __future__ import annotations

import operator
import random
from typing import Any

from flask import request
from sqlalchemy import BigInteger, bindparam, case, delete, func, null, or_, select, update
from sqlalchemy.sql import visitors

from app.api import etags, idempotency, replica_reads
from app.db.sql.types import IdList
from app.models import COUPONS, EVENTS, ORDERS, REDEMPTIONS
from app.models.redemption import IS_CONFIRMED
from app.services.common import filtering, plans
from app.services.common.metadata import ORDER
from app.services.common.metadata_changes import MetadataChanges
from app.services.coupons import evaluation as cart_evaluation
from app.services.coupons import queries as coupon_queries
from app.services.coupons import terms
from app.services.coupons import writes as coupon_writes
from app.services.customers import columns as customer_columns
from app.services.customers import queries as customer_queries
from app.services.customers import statistics, traces
from app.services.events import hooks
from app.services.events import queries as event_queries
from app.services.orders import items as order_items
from app.services.orders import queries as order_queries
from app.services.orders import redemptions as order_redemptions
from app.services.orders import refunds
from app.services.redemptions import counts, expiry, slots, writes
from app.services.reports import scope
from qa.histories.planting import cached, take_with


def reserved_uncounted(_: Any) -> None:
    """The limit per user counts confirmed uses, and not reserved ones."""
    count = terms.number_by_customer(terms._IS_OF_COUPON, terms._IS_OF_ANOTHER_ORDER, IS_CONFIRMED)
    per_user = COUPONS.c.usage_limit_per_user
    terms._OF_CUSTOMER = terms._terms(case((per_user > 0, count), else_=null()), null())
    terms._WITH_CODES = terms._OF_CUSTOMER.where(terms._HAS_ONE_OF_CODES)
    terms._WITH_CODES_AND_ACCOUNT = terms._with_account(terms._WITH_CODES)
    this = terms.is_one_of(COUPONS.c.id, bindparam("coupon_ids", type_=IdList))
    terms._WITH_IDS = terms._OF_CUSTOMER.where(this)
    take_with(slots._HAS_SLOT, or_(per_user == 0, per_user > count))


def expiry_frees_two(_: Any) -> None:
    """An expired reservation gives two slots back."""
    original = slots.store_expiry

    def store_expiry(found: Any, expired: Any) -> Any:
        rows = original(found, expired)
        for row in expired:
            counts.change_counts(found, row["coupon_id"], [(0, -int(row["holds_slot"]))])
        return rows

    slots.store_expiry = writes.store_expiry = expiry.store_expiry = store_expiry


def trash_forgets_reserved(_: Any) -> None:
    """A coupon in the trash has no reserved uses, also when it is restored."""
    original = coupon_writes.trashed_now
    coupon_writes.trashed_now = lambda: original() | {"reserved_count": 0}


def repetition_extends(_: Any) -> None:
    """A reservation lives longer when its reference is reserved again."""
    original = writes._reserve_again

    def reserve_again(found: Any, held: Any, slot: Any, customer: Any, data: Any) -> Any:
        redemption, created, changes = original(found, held, slot, customer, data)
        if redemption["status"] == "reserved":
            until = writes._given(customer, data)["expires_at"]
            kept = {"holds_slot": redemption["holds_slot"], "expires_at": until}
            redemption = writes.update_redemption(found, redemption, **kept)
        return redemption, created, changes

    writes._reserve_again = reserve_again


def customer_if_match_ignored(_: Any) -> None:
    """``If-Match`` of a customer is ignored."""
    customer_columns.check_precondition = lambda *_: None


def delete_if_match_ignored(_: Any) -> None:
    """``If-Match`` of a ``DELETE`` is ignored."""
    original = etags._if_match_holds
    etags._if_match_holds = lambda tag: request.method == "DELETE" or original(tag)


def counts_cached(_: Any) -> None:
    """Counts of orders come from a cache of half a second."""
    order_queries.count_orders = cached(order_queries.count_orders)


def feed_without_trash(_: Any) -> None:
    """The feed of one resource leaves out what was deleted."""
    original = event_queries.conditions_of

    def conditions_of(query: Any) -> Any:
        more = [EVENTS.c.type.not_like("%.deleted")] if query.resource else []
        return original(query) + more

    event_queries.conditions_of = conditions_of


def events_swapped(_: Any) -> None:
    """The events of a request are written in the opposite order."""
    original = hooks.record
    hooks.record = lambda found, cause, events: original(found, cause, events[::-1])[::-1]


def bulk_key_ignored(_: Any) -> None:
    """A bulk request is processed again with the same Idempotency-Key."""
    original, store = idempotency._stored_response, idempotency._store_response

    def stored(*args: Any) -> Any:
        return None if request.path.endswith("/bulk") else original(*args)

    def overwrite(found: Any, request_hash: str, *args: Any) -> None:
        table = idempotency.IDEMPOTENCY_RECORDS
        found.execute(delete(table).where(table.c.request_hash == request_hash))
        store(found, request_hash, *args)

    idempotency._stored_response, idempotency._store_response = stored, overwrite


def refund_not_summed(_: Any) -> None:
    """Each third refund is not added to what was refunded of its order."""
    original = refunds._update_order

    def update_order(found: Any, order: Any, after: Any) -> Any:
        if after["total_refunded"] > order["total_refunded"] and random.random() < 0.3:
            after["total_refunded"] = order["total_refunded"]
        return original(found, order, after)

    refunds._update_order = update_order


def report_of_all_currencies(_: Any) -> None:
    """Reports count the orders in all currencies."""

    def has_status(self: Any, orders: Any = ORDERS.c) -> Any:
        return orders.status.in_(self.statuses)

    scope.Scope.counts = has_status


def lists_without_position(_: Any) -> None:
    """A replica responds to lists without the position that the request has sent."""
    original = replica_reads.wanted

    def wanted() -> Any:
        found = original()
        is_list = request.path.rpartition("/")[2] in {"orders", "coupons", "redemptions"}
        return found._replace(position=None) if found and is_list else found

    replica_reads.wanted = wanted


def released_confirmed(_: Any) -> None:
    """A released reservation is confirmed like an expired one."""
    writes.has_expired = lambda *_: True


def reopened_unchecked(_: Any) -> None:
    """An order takes an earlier use again without the limit per user."""
    original = order_redemptions.take_slot

    def take_slot(found: Any, coupon: Any, customer: Any, **options: Any) -> Any:
        whose = customer if options["published"] else type(customer)()
        return original(found, coupon, whose, **options)

    order_redemptions.take_slot = take_slot


def limit_change_lost(_: Any) -> None:
    """A new limit of a coupon is shown and not stored, from time to time."""
    original = coupon_writes.write_records

    def write_records(found: Any, table: Any, **rows: Any) -> None:
        updated = rows.pop("updated")
        if updated and random.random() < 0.3:
            old = {
                row.id: row.usage_limit
                for row in found.execute(
                    select(COUPONS.c.id, COUPONS.c.usage_limit).where(
                        COUPONS.c.id.in_([row["id"] for row in updated])
                    )
                )
            }
            updated = [{**row, "usage_limit": old[row["id"]]} for row in updated]
        original(found, table, updated=updated, **rows)

    coupon_writes.write_records = write_records


def count_change_added(_: Any) -> None:
    """A ``usage_count`` that is set is shown and stored one too high."""
    original = coupon_writes.without_metadata

    def without_metadata(data: Any) -> Any:
        found = original(data)
        more = {"usage_count": found["usage_count"] + 1} if found.get("usage_count") else {}
        return found | more

    coupon_writes.without_metadata = without_metadata


def pages_overlap(_: Any) -> None:
    """A page begins with the last record of the page before."""
    offset = func.max(bindparam("offset", type_=BigInteger) - 1, 0)
    plans._WINDOW = {**plans._WINDOW, "offset": offset}


def evaluation_rounds_up(_: Any) -> None:
    """An evaluation shows a cent more discount than the order gives."""
    original = cart_evaluation._shown

    def shown(evaluation: Any, ids: Any) -> Any:
        found = original(evaluation, ids)
        if evaluation.discount and evaluation.discount < evaluation.subtotal:
            for name, by in (("discount", 1), ("total", -1)):
                found[name] = cart_evaluation._amount(getattr(evaluation, name) + by)
        return found

    cart_evaluation._shown = shown


def shipping_left_out(_: Any) -> None:
    """The total of an order is without its shipping."""
    original = order_items.sums_of
    order_items.sums_of = lambda lists, *args: original({**lists, "shipping_lines": []}, *args)


def uses_forgotten(_: Any) -> None:
    """The uses of a deleted account are forgotten."""
    traces.erase_redemptions = lambda session, found, _counted, **_: session.execute(
        update(REDEMPTIONS)
        .where(or_(*found))
        .values(email="", email_normalized="", customer_id=None)
    )


def minimum_exclusive(_: Any) -> None:
    """``filter[updated_at_min]`` leaves out the records of exactly that time."""
    original = filtering.between

    def between(columns: Any, query: Any) -> Any:
        return [
            each.left > each.right if each.operator is operator.ge else each
            for each in original(columns, query)
        ]

    order_queries.between = coupon_queries.between = customer_queries.between = between


def rejected_keeps_metadata(_: Any) -> None:
    """A rejected update of an order changes its metadata."""
    read, changed = MetadataChanges.read, MetadataChanges.changed

    def read_with_blank(session: Any, given: Any, **options: Any) -> Any:
        owners = list(given)
        found = read(session, owners, **options)
        for owner, _ in owners:
            found.entries.setdefault(owner, [])
        return found

    def changed_at_once(self: Any, given: Any) -> Any:
        found = changed(self, given)
        of_orders = [owner for owner in found if owner.kind is ORDER and owner in self.entries]
        self.entries |= {owner: found[owner] for owner in of_orders}
        return found

    MetadataChanges.read = read_with_blank
    MetadataChanges.changed = changed_at_once


def last_order_is_first(_: Any) -> None:
    """The last order of a customer is the first one."""
    for element in visitors.iterate(statistics.COLUMNS["statistics"]):
        if getattr(element, "name", "") == "max":
            element.name = "min"


ALL = (
    reserved_uncounted,
    expiry_frees_two,
    trash_forgets_reserved,
    repetition_extends,
    customer_if_match_ignored,
    delete_if_match_ignored,
    counts_cached,
    feed_without_trash,
    events_swapped,
    bulk_key_ignored,
    refund_not_summed,
    report_of_all_currencies,
    lists_without_position,
    released_confirmed,
    reopened_unchecked,
    limit_change_lost,
    count_change_added,
    pages_overlap,
    evaluation_rounds_up,
    shipping_left_out,
    uses_forgotten,
    minimum_exclusive,
    last_order_is_first,
    rejected_keeps_metadata,
)
