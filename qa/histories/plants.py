"""A plugin of the tests, which shortens reservations and plants a defect into the service.

No plant is code of the product: each replaces a function or a statement in the process of a run.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import Any

from flask import request
from sqlalchemy import bindparam, delete, or_, select, text, update
from sqlalchemy.exc import IntegrityError

from app.api import authentication, etags, idempotency, replica_reads
from app.auth import api_keys
from app.auth.hashes import keyed_hash
from app.catalog import RedemptionEffect, current_catalog
from app.db import session
from app.db.records import row_dicts
from app.db.sql.types import Id
from app.models import CAMPAIGNS, COUPONS, ORDER_METADATA, ORDERS
from app.pricing import evaluation
from app.schemas.fields import input as inputs
from app.services.common import plans
from app.services.coupons import batches, customers, queries, terms
from app.services.coupons import evaluation as cart_evaluation
from app.services.coupons import writes as coupon_writes
from app.services.customers import queries as customer_queries
from app.services.customers import traces
from app.services.customers import writes as customer_writes
from app.services.events import hooks
from app.services.events import queries as event_queries
from app.services.maintenance import trash
from app.services.orders import columns as order_columns
from app.services.orders import coupons as order_coupons
from app.services.orders import items as order_items
from app.services.orders import locks, refund_rules, refunds
from app.services.orders import queries as order_queries
from app.services.orders import redemptions as order_redemptions
from app.services.orders import writes as order_writes
from app.services.redemptions import (
    changes,
    counts,
    slots,
    stored,
    writes,
)
from app.services.reports import coupons as coupon_reports
from app.services.reports import lists, sales, scope
from app.services.webhooks.deliveries import collection
from app.worker import runner
from qa.histories import campaign_plants, narrow_plants, person_plants
from qa.histories.planting import cached, take_with


class _Clock(datetime):
    """The clock of a process, which differs from that of others by the seconds in a file."""

    @classmethod
    def now(cls, tz: Any = None) -> datetime:
        """Return the time."""
        wrong = int(Path(os.environ["HISTORIES_CLOCK"]).read_text())
        return datetime.now(tz) + timedelta(seconds=wrong)


def init_app(app: Any, api: Any) -> None:  # the signature of every plugin
    """Accept ``expires_in`` from 1 s, and plant the defects that ``HISTORIES_PLANT`` names."""
    inputs.ExpiresIn.convert = lambda _, value: int(value)
    if "HISTORIES_CLOCK" in os.environ:
        session.datetime = _Clock
    for name in filter(None, os.environ.get("HISTORIES_PLANT", "").split("+")):
        PLANTS[name](app)


# --- limits ---


def limit_before_lock(_: Any) -> None:
    """The limits are read before the lock, and not checked again."""
    take_with()


def no_lock(_: Any) -> None:
    """Coupons and the campaigns of orders are not locked while uses are counted."""
    exists = select(COUPONS.c.id).where(COUPONS.c.id == bindparam("this", type_=Id))

    def look(found: Any, coupon_id: int) -> bool:
        return found.scalar(exists, {"this": coupon_id}) is not None

    for module in (slots, writes):
        module.lock_coupon = look

    def read(found: Any, *_: Any) -> Any:
        rows: list[Any] = row_dicts(found.execute(select(CAMPAIGNS)))
        return {row["id"]: row for row in rows}

    order_writes.lock_coupons = trash.lock_coupons = locks.lock_coupons = read
    refunds.lock_coupons = read


def limit_off_by_one(_: Any) -> None:
    """A coupon has one use more than its limit."""
    free = COUPONS.c.usage_limit - COUPONS.c.reserved_count - terms._UNCOUNTED
    below = or_(COUPONS.c.usage_limit == 0, COUPONS.c.usage_count <= free)
    take_with(below, slots._HAS_SLOT_FOR_CUSTOMER)

    original = evaluation.limit_reasons

    def reasons(coupon: Any) -> Any:
        if coupon.usage_limit and coupon.uses > coupon.usage_limit:
            yield evaluation._reason("usage_limit", limit=coupon.usage_limit)
        yield from original(replace(coupon, usage_limit=None))

    for module in (evaluation, slots, order_coupons):
        module.limit_reasons = reasons


def email_only(_: Any) -> None:
    """Uses by a customer are counted by the e-mail address only."""
    original = customers.Customer.parameters.fget
    customers.Customer.parameters = property(lambda self: original(self) | {"customer_ids": []})


def email_case(_: Any) -> None:
    """E-mail addresses with different letter case are different guests."""
    customers.email_key = lambda email: email


def expired_confirmed(_: Any) -> None:
    """An expired reservation is confirmed like a live one."""
    original = writes.is_live
    writes.is_live = lambda redemption, timestamp=None: (
        writes.has_expired(redemption) or original(redemption, timestamp)
    )


def release_frees_two(_: Any) -> None:
    """A release gives two slots back."""

    def give_back(found: Any, redemption: Any) -> None:
        usage, reserved = stored.uses_of(redemption)
        counts.change_counts(found, redemption["coupon_id"], [(-2 * usage, -2 * reserved)])

    writes.give_back = give_back


def restore_without_use(_: Any) -> None:
    """An order that is restored keeps its discount and takes no use."""
    trash.plan_coupons = lambda *_, **__: None


def trash_keeps_use(_: Any) -> None:
    """An order in the trash keeps its uses in the counts, and takes them again when restored."""
    original = order_redemptions.count_use

    def count_use(found: Any, event: str, redemption: Any, *, usage: int, reserved: int) -> Any:
        if redemption["status"] == "released" and random.random() < 0.3:
            usage = reserved = 0
        return original(found, event, redemption, usage=usage, reserved=reserved)

    order_redemptions.count_use = count_use


# --- orders ---


def customer_unchecked(_: Any) -> None:
    """The limit per user is not checked when an order that holds a coupon gets a customer."""
    order_redemptions.require_use_left = lambda *_: []


def refunded_releases(app: Any) -> None:
    """An order that becomes refunded gives its uses back."""
    with app.app_context():
        current_catalog().redemption_effects["refunded"] = RedemptionEffect.RELEASE


def refunded_items(_: Any) -> None:
    """More than a line can be refunded."""
    refund_rules._errors_of = lambda *_: {}


def time_of_payment_moves(_: Any) -> None:
    """Each change of a paid order is the time of its payment."""

    def paid_at(before: Any, after: Any, pays: Any = None) -> Any:
        return original({} if before else None, {**after, "paid_at": None}, pays)

    original = order_columns.paid_at
    order_columns.paid_at = paid_at


def update_without_time(_: Any) -> None:
    """A change of an order that is not its status leaves ``updated_at``."""
    original = order_writes._OrderWrites.update

    def prepare(writes: Any, order: Any, item: Any) -> Any:
        after = original(writes, order, item)
        return after if "status" in item.data else {**after, "updated_at": order["updated_at"]}

    order_writes._OrderWrites.update = prepare


def note_lost(_: Any) -> None:
    """The note of each third change of a status is lost."""
    original = order_writes._note_status

    def note_status(writes: Any, order: Any, *args: Any) -> None:
        original(writes, order, *args)
        if random.random() < 0.3:
            writes.notes.pop()

    order_writes._note_status = note_status


def discount_kept(_: Any) -> None:
    """An order keeps the discount of a coupon that was removed from it."""
    original = order_coupons._apply

    def apply(plan: Any, *rest: Any) -> None:
        totals = [item["total"] for item in plan.items.lists["line_items"]]
        original(plan, *rest)
        if plan.removed:
            for item, total in zip(plan.items.lists["line_items"], totals, strict=True):
                item["total"] = total

    order_coupons._apply = apply


# --- reservations ---


def revived(_: Any) -> None:
    """The same reference takes an expired reservation again without a slot."""

    def reserve_again(found: Any, _held: Any, slot: Any, customer: Any, data: Any) -> Any:
        coupon_id, changes = slot.coupon["id"], writes._changes(slot)
        counts.change_counts(found, coupon_id, [(0, -int(slot.is_counted))])
        this = {"reference": data["reference"], "coupon_id": coupon_id}
        (use,) = row_dicts(found.execute(writes._LOCK_OF_COUPON, this))
        if writes.is_live(use):
            return use, False, changes
        given = writes._given(customer, data)
        again = writes.update_redemption(found, use, **given, holds_slot=False)
        found_again = found.execute(select(COUPONS).where(COUPONS.c.id == coupon_id))
        (coupon,) = row_dicts(found_again)
        slot = slots.CouponSlot(coupon, is_counted=False)
        return again, False, changes + writes._changes(slot, again)

    writes._reserve_again = reserve_again


# --- requests ---


def idempotency_survives_rollback(app: Any) -> None:
    """The response to a request that was rolled back is stored, too."""
    original = idempotency.run_in_transaction

    def run(work: Callable[[Any], Any]) -> Any:
        try:
            return original(work)
        except idempotency.ShopError as error:
            request_hash, body_hash = idempotency._hashes(
                request.headers["Idempotency-Key"], idempotency._PLAIN.sent()
            )
            response = app.make_response(app.handle_user_exception(error))

            def store(found: Any) -> None:
                form = idempotency._PLAIN
                idempotency._store_response(found, request_hash, body_hash, response, form)

            if not idempotency._stored_response(request_hash, body_hash, form=idempotency._PLAIN):
                with suppress(IntegrityError):  # a repetition has stored it in between
                    original(store)
            raise

    idempotency.run_in_transaction = run


def idempotency_forgets(_: Any) -> None:
    """A key is forgotten from time to time."""
    original = idempotency._stored_response

    def forgetful(*args: Any) -> Any:
        return None if random.random() < 0.3 else original(*args)

    store = idempotency._store_response
    idempotency._stored_response = forgetful

    def overwrite(found: Any, request_hash: str, *args: Any) -> None:
        table = idempotency.IDEMPOTENCY_RECORDS
        found.execute(idempotency.delete(table).where(table.c.request_hash == request_hash))
        store(found, request_hash, *args)

    idempotency._store_response = overwrite


def replica_without_position(_: Any) -> None:
    """A replica responds without the position that the request has sent."""
    original = replica_reads.wanted

    def wanted() -> Any:
        found = original()
        return found and found._replace(position=None)

    replica_reads.wanted = wanted


def keys_shared(_: Any) -> None:
    """An Idempotency-Key belongs to all API keys together."""
    original = idempotency.current_principal
    idempotency.current_principal = lambda: replace(original(), key_id=1)


def keys_of_any_body(_: Any) -> None:
    """A request gets the response that is stored for its key, also with another body."""
    original = idempotency._hashes
    idempotency._hashes = lambda key, sent: (original(key, sent)[0], "0" * 64)


def tag_kept(_: Any) -> None:
    """The entity tag of a record leaves out its revision, and what follows its first fields."""
    etags._tag = lambda body, _: etags._hash(
        etags.json_bytes({name: record["id"] for name, record in body.items()})
    )


# --- records ---


def lost_event(_: Any) -> None:
    """One event of fifty is lost."""
    original = hooks.record

    def record(found: Any, cause: Any, events: Any) -> Any:
        texts = original(found, cause, [each for each in events if random.random() > 0.02])
        return texts + [""] * (len(events) - len(texts))

    hooks.record = record


def stale_read(_: Any) -> None:
    """A process shows coupons from a cache of half a second."""
    queries.get_coupon = cached(queries.get_coupon)


def refund_exceeds(_: Any) -> None:
    """Refunds are compared with the total, and not with what is left of it."""
    original = refunds.refunded_amount
    refunds.refunded_amount = lambda data, items, _, *rest: original(data, items, 10**6, *rest)


def statistics_not_updated(app: Any) -> None:
    """The statistics of a customer are not updated when an order is."""
    with app.app_context():
        is_sqlite = session.db.engine.dialect.name == "sqlite"
        drop = "DROP TRIGGER IF EXISTS order_sums_update" + ("" if is_sqlite else " ON orders")
        with session.db.engine.begin() as connection:
            connection.execute(text(drop))


def wrong_count(_: Any) -> None:
    """A count ignores its second filter."""
    original = order_queries.count_orders

    @wraps(original)
    def count_orders(actor: Any, query: Any) -> int:
        if query.status is not None:
            query = replace(query, customer_id=None)
        return original(actor, query)

    order_queries.count_orders = count_orders


def delivered_late(_: Any) -> None:
    """A delivery shows the record as it was in the event before."""
    original = runner.event_request
    last: dict[Any, Any] = {}

    def event_request(sender: Any, number: int, event: Any, *args: Any) -> Any:
        if event["type"] == "order.updated":
            id_ = event["resource_id"]
            last[id_], event = event, event | {"data": last.get(id_, event)["data"]}
        return original(sender, number, event, *args)

    runner.event_request = event_request


def event_of_before(_: Any) -> None:
    """The event of each fifth update of an order shows the order before it."""
    original = hooks.described

    def described(cause: Any, updates: Any) -> Any:
        return original(
            cause,
            [
                replace(each, after=each.before)
                if each.event == "order.updated" and each.before and random.random() < 0.2
                else each
                for each in updates
            ],
        )

    hooks.described = changes.described = described


def report_of_all(_: Any) -> None:
    """Reports count cancelled orders."""
    original = scope.scope_of

    def scope_of(*args: Any, **kwargs: Any) -> Any:
        found = original(*args, **kwargs)
        return replace(found, statuses=(*found.statuses, "cancelled"))

    sales.scope_of = coupon_reports.scope_of = lists.scope_of = scope_of


# --- mistakes that a change of the service can bring ---


def bulk_item_half_written(_: Any) -> None:
    """A rejected item of a bulk request keeps the uses of its first coupons."""
    order_redemptions.savepoint = lambda _: nullcontext()


def deleted_keeps_use(_: Any) -> None:
    """An order that is deleted permanently keeps its uses."""
    original = order_writes.release_uses

    def release(session: Any, order_id: int, timestamp: Any, held: Any) -> Any:
        if random.random() < 0.5:
            return [], {}
        return original(session, order_id, timestamp, held)

    order_writes.release_uses = release


def legacy_without_use(_: Any) -> None:
    """A coupon with a recorded amount is not counted."""
    original = order_redemptions.CouponPlan._take

    def take(self: Any, session: Any, order_id: int, line: Any, earlier: Any, status: str) -> Any:
        if not line["applied"] and earlier is None:
            return []
        return original(self, session, order_id, line, earlier, status)

    order_redemptions.CouponPlan._take = take


def refund_releases(_: Any) -> None:
    """A partial refund gives the uses of the order back."""
    original = refunds._update_order
    written = order_redemptions.release_uses

    def update_order(session: Any, order: Any, after: Any) -> Any:
        if after["status"] == order["status"] and after["total_refunded"] > order["total_refunded"]:
            written(session, order["id"], after["updated_at"])
        return original(session, order, after)

    refunds._update_order = update_order


def restored_as_pending(_: Any) -> None:
    """An order that is restored is pending."""
    original = trash.lock_orders

    def lock(*args: Any) -> Any:
        return {
            id_: {**order, "status_before_trash": "pending"}
            if order["status"] == "trash"
            else order
            for id_, order in original(*args).items()
        }

    trash.lock_orders = lock


def deleted_refund_counts(_: Any) -> None:
    """A deleted refund is still subtracted from what can be refunded."""
    original = refunds._update_order

    def update_order(session: Any, order: Any, after: Any) -> Any:
        if after["total_refunded"] < order["total_refunded"]:
            after["total_refunded"] = order["total_refunded"]
        return original(session, order, after)

    refunds._update_order = update_order


def second_coupon_without_discount(_: Any) -> None:
    """The second coupon of an order gives no discount."""
    original = order_coupons.evaluate

    def evaluate(*args: Any, **kwargs: Any) -> Any:
        found = original(*args, **kwargs)
        return replace(
            found,
            coupons=tuple(
                replace(each, discount=0) if number else each
                for number, each in enumerate(found.coupons)
            ),
        )

    order_coupons.evaluate = evaluate


def evaluation_ignores_customer(_: Any) -> None:
    """The evaluation of a cart does not check the limit per user."""
    original = evaluation.limit_reasons

    def reasons(coupon: Any) -> Any:
        return (each for each in original(coupon) if each.code != "usage_limit_per_user")

    evaluation.limit_reasons = reasons


def expired_accepted(_: Any) -> None:
    """The expiry date of a coupon is ignored."""
    original = evaluation._time_reasons

    def reasons(coupon: Any, *times: Any) -> Any:
        return (each for each in original(coupon, *times) if each.code != "expired")

    evaluation._time_reasons = reasons


def minimum_of_prices(_: Any) -> None:
    """The minimum amount is compared with the prices of the items, without their quantities."""
    original = evaluation._cart_reasons

    def reasons(coupon: Any, coupon_type: Any, cart: Any, left: Any) -> Any:
        prices = [replace(each, value=each.value // (each.quantity or 1)) for each in cart]
        return original(coupon, coupon_type, prices, left)

    evaluation._cart_reasons = reasons


def metadata_dropped(_: Any) -> None:
    """An update of an order removes its metadata."""
    original = order_writes._OrderWrites.update

    def prepare(found: Any, order: Any, item: Any) -> Any:
        after = original(found, order, item)
        of_order = ORDER_METADATA.c.order_id == after["id"]
        found.session.execute(delete(ORDER_METADATA).where(of_order))
        return after

    order_writes._OrderWrites.update = prepare


def if_match_ignored(_: Any) -> None:
    """``If-Match`` is ignored."""
    etags._if_match_holds = lambda _: True


def read_only_writes(_: Any) -> None:
    """A key that may only read can write."""
    authentication.require_permission = lambda *_: None


def batch_left(_: Any) -> None:
    """The trash of a batch leaves one of its coupons."""
    batches.CHUNK = 2

    def trash_some(session: Any, actor: Any, unused: Any) -> Any:
        moved, _ = kept(session, actor, unused)
        return moved, None

    kept = batches._trash
    batches._trash = trash_some


def rename_resets_count(_: Any) -> None:
    """A coupon with a new code begins to count from 0."""
    original = coupon_writes._CouponWrites.update

    def prepare(found: Any, coupon: Any, item: Any) -> Any:
        after = original(found, coupon, item)
        return after | {"usage_count": 0} if after["code"] != coupon["code"] else after

    coupon_writes._CouponWrites.update = prepare


def search_not_updated(_: Any) -> None:
    """A renamed coupon is still found by its first code."""
    original = coupon_writes.with_columns

    def with_columns(row: Any, columns: Any) -> Any:
        return original(row, {k: v for k, v in columns.items() if k != "search_text"})

    coupon_writes.search_text, kept = lambda *_: "", coupon_writes.search_text
    prepare = coupon_writes._CouponWrites.update
    create = coupon_writes._CouponWrites.create

    def prepare_update(found: Any, coupon: Any, item: Any) -> Any:
        after = prepare(found, coupon, item)
        after["search_text"] = coupon["search_text"]
        return after

    def prepare_create(found: Any, data: Any) -> Any:
        return {**create(found, data), "search_text": kept(data["code"], data["description"])}

    coupon_writes._CouponWrites.update, coupon_writes._CouponWrites.create = (
        prepare_update,
        prepare_create,
    )


def search_of_orders_not_updated(_: Any) -> None:
    """An order is found by the e-mail address that it had first."""
    original = order_columns.search_text_of
    order_columns.search_text_of = lambda order: order.get("search_text") or original(order)


def second_key_ignored(_: Any) -> None:
    """Records with the same sort key have any order."""

    original = plans._order

    def order(key: Any, record_id: Any, direction: str, **more: Any) -> Any:
        first, *second = original(key, record_id, direction, **more)
        return first, *(each.element.desc() for each in second)

    plans._order = order


def second_status_ignored(_: Any) -> None:
    """A list with several statuses shows those with the first one."""
    original = order_queries.of_statuses

    def of_statuses(statuses: Any, *args: Any) -> Any:
        return original(statuses[:1] if statuses else statuses, *args)

    order_queries.of_statuses = of_statuses


def total_of_page(_: Any) -> None:
    """``X-Total`` is the number of records on the page."""
    original = plans.Page

    def page(rows: Any, total: Any, *args: Any, **kwargs: Any) -> Any:
        return original(rows, len(rows) if isinstance(rows, list) else total, *args, **kwargs)

    plans.Page = page


def hour_of_another_zone(_: Any) -> None:
    """Intervals of the report of sales begin an hour late."""
    real = sales.Period.intervals

    def intervals(self: Any) -> Any:
        hour = timedelta(hours=1)
        return [
            replace(each, since=each.since - hour, until=each.until - hour) for each in real(self)
        ]

    sales.Period.intervals = intervals


def event_twice(_: Any) -> None:
    """One event of fifty is written twice."""
    original = hooks.record

    def record(session: Any, cause: Any, events: Any) -> Any:
        texts = original(session, cause, events)
        original(session, cause, [each for each in events if random.random() < 0.02])
        return texts

    hooks.record = record


def delivery_skipped(_: Any) -> None:
    """A webhook does not receive one event of fifty."""
    original = collection.wants
    collection.wants = lambda *args: random.random() > 0.02 and original(*args)


def replay_with_200(_: Any) -> None:
    """A stored response has the status 200."""
    original = idempotency._stored_response

    def stored(*args: Any, **kwargs: Any) -> Any:
        found = original(*args, **kwargs)
        if found is not None:
            found.status_code = 200
        return found

    idempotency._stored_response = stored


# --- caches, keys, and what a request must not lose ---


def code_cached(_: Any) -> None:
    """A coupon that is found by its code comes from a cache of half a second."""
    queries.get_coupon_by_code = cached(queries.get_coupon_by_code)


def customer_cached(_: Any) -> None:
    """A process shows accounts from a cache of half a second."""
    customer_queries.get_customer = cached(customer_queries.get_customer)


def evaluation_cached(_: Any) -> None:
    """Evaluations know coupons and their uses from a cache of half a second."""
    cart_evaluation.find_coupons = cached(cart_evaluation.find_coupons)


def revoked_key_works(_: Any) -> None:
    """Other processes accept a key for a second after it was revoked or restricted."""
    api_keys._revocation_count = lambda: 0


def key_of_any_path(_: Any) -> None:
    """An Idempotency-Key belongs to all paths together."""
    original = idempotency._hashes

    def hashes(key: str, sent: bytes) -> tuple[str, str]:
        of_key = keyed_hash(f"{idempotency.current_principal().key_id} {key}")
        return of_key, original(key, sent)[1]

    idempotency._hashes = hashes


def address_change_lost(_: Any) -> None:
    """Each third change of an account is shown, and keeps the e-mail address that it had."""
    original = customer_writes.write_records

    def write(session: Any, table: Any, *, updated: Any, **kwargs: Any) -> None:
        kept = {"email", "email_normalized"}
        if random.random() < 0.3:
            updated = [{k: v for k, v in each.items() if k not in kept} for each in updated]
        original(session, table, updated=updated, **kwargs)

    customer_writes.write_records = write


def owner_kept(_: Any) -> None:
    """Each third new customer of an order is shown, and not stored."""
    original = order_writes._OrderWrites.write

    def write(found: Any, results: Any) -> Any:
        written = original(found, results)
        for id_, after in found.records.items():
            before = found.stored[id_]
            if after["customer_id"] != before["customer_id"] and random.random() < 0.3:
                owner = {"customer_id": before["customer_id"]}
                found.session.execute(update(ORDERS).where(ORDERS.c.id == id_).values(owner))
        return written

    order_writes._OrderWrites.write = write


def order_if_match_ignored(_: Any) -> None:
    """``If-Match`` of an order is ignored."""
    original = order_writes._OrderWrites.update

    def prepare(found: Any, order: Any, item: Any) -> Any:
        return original(found, order, replace(item, precondition=None))

    order_writes._OrderWrites.update = prepare


def results_reordered(_: Any) -> None:
    """The results of a bulk request have another order than its items."""
    original = order_writes._OrderWrites.write
    order_writes._OrderWrites.write = lambda found, results: original(found, results)[::-1]


def fees_left_out(_: Any) -> None:
    """The total of an order is without its fees."""
    original = order_items.sums_of

    def sums_of(lists: Any, *args: Any) -> Any:
        return original({**lists, "fee_lines": []}, *args)

    order_items.sums_of = sums_of


def feed_page_skips(_: Any) -> None:
    """A full page of the feed leaves out the event before its last one."""
    original = event_queries.list_events

    def list_events(actor: Any, query: Any, columns: Any) -> Any:
        page = original(actor, query, columns)
        rows = list(page.rows)
        return replace(page, rows=rows[:-2] + rows[-1:] if page.has_more else rows)

    event_queries.list_events = list_events


def batch_short(_: Any) -> None:
    """A batch has one coupon less than requested."""
    original = batches._insert_coupons

    def insert(session: Any, pattern: Any, shared: Any, count: int, *args: Any) -> None:
        original(session, pattern, shared, max(1, count - 1), *args)

    batches._insert_coupons = insert


def count_of_all_kept(app: Any) -> None:
    """The number of all coupons does not change with the trash."""
    with app.app_context():
        is_sqlite = session.db.engine.dialect.name == "sqlite"
        drop = "DROP TRIGGER IF EXISTS count_rows_coupons_update"
        with session.db.engine.begin() as connection:
            connection.execute(text(drop + ("" if is_sqlite else " ON coupons")))


def guests_not_erased(_: Any) -> None:
    """The uses of guests keep the address of a deleted account."""
    traces._STEPS = (*traces._STEPS[:3], *traces._STEPS[4:])


def expires_later(_: Any) -> None:
    """A reservation lives a minute longer than requested."""
    original = writes._given

    def given(customer: Any, data: Any) -> Any:
        return original(customer, {**data, "expires_in": data["expires_in"] + 60})

    writes._given = given


def orders_of_customer_in_trash(_: Any) -> None:
    """The orders of a customer include those in the trash."""
    order_queries._IS_OF_CUSTOMER = ORDERS.c.customer_id == bindparam(order_queries.WANTED)


PLANTS: dict[str, Callable[[Any], None]] = {
    plant.__name__.replace("_", "-"): plant
    for plant in (
        no_lock,
        limit_before_lock,
        limit_off_by_one,
        email_only,
        email_case,
        expired_confirmed,
        release_frees_two,
        restore_without_use,
        trash_keeps_use,
        idempotency_survives_rollback,
        idempotency_forgets,
        replica_without_position,
        lost_event,
        stale_read,
        refund_exceeds,
        statistics_not_updated,
        wrong_count,
        customer_unchecked,
        refunded_releases,
        refunded_items,
        time_of_payment_moves,
        update_without_time,
        note_lost,
        discount_kept,
        revived,
        keys_shared,
        keys_of_any_body,
        tag_kept,
        delivered_late,
        event_of_before,
        report_of_all,
        bulk_item_half_written,
        deleted_keeps_use,
        legacy_without_use,
        refund_releases,
        restored_as_pending,
        deleted_refund_counts,
        second_coupon_without_discount,
        evaluation_ignores_customer,
        expired_accepted,
        minimum_of_prices,
        metadata_dropped,
        if_match_ignored,
        read_only_writes,
        batch_left,
        rename_resets_count,
        search_not_updated,
        search_of_orders_not_updated,
        second_key_ignored,
        second_status_ignored,
        total_of_page,
        hour_of_another_zone,
        event_twice,
        delivery_skipped,
        replay_with_200,
        code_cached,
        customer_cached,
        evaluation_cached,
        revoked_key_works,
        key_of_any_path,
        address_change_lost,
        owner_kept,
        order_if_match_ignored,
        results_reordered,
        fees_left_out,
        feed_page_skips,
        batch_short,
        count_of_all_kept,
        guests_not_erased,
        expires_later,
        orders_of_customer_in_trash,
        *narrow_plants.ALL,
        *campaign_plants.ALL,
        *person_plants.ALL,
    )
}
"""The planted defects by name."""
