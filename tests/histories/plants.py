"""A plugin of the tests, which shortens reservations and plants a defect into the service.

No plant is code of the product: each replaces a function or a statement in the process of a run.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import Any

from flask import request
from sqlalchemy import bindparam, or_, select, text

from app.api import idempotency, replica_reads
from app.db import session
from app.db.sql.types import Id
from app.models import COUPONS
from app.pricing import evaluation
from app.schemas.fields import input as inputs
from app.services.coupons import customers, queries, terms
from app.services.events import hooks
from app.services.maintenance import trash
from app.services.orders import coupons as order_coupons
from app.services.orders import locks, refunds
from app.services.orders import queries as order_queries
from app.services.orders import redemptions as order_redemptions
from app.services.orders import writes as order_writes
from app.services.redemptions import counts, reservations, slots, stored, writes


class _Clock(datetime):
    """The clock of a process, which differs from that of others by the seconds in a file."""

    @classmethod
    def now(cls, tz: Any = None) -> datetime:
        """Return the time."""
        wrong = int(Path(os.environ["HISTORIES_CLOCK"]).read_text())
        return datetime.now(tz) + timedelta(seconds=wrong)


def init_app(app: Any, api: Any) -> None:  # the signature of every plugin
    """Accept ``expires_in`` from 1 s, and plant the defect that ``HISTORIES_PLANT`` names."""
    inputs.ExpiresIn.convert = lambda _, value: int(value)
    if "HISTORIES_CLOCK" in os.environ:
        session.datetime = _Clock
    if name := os.environ.get("HISTORIES_PLANT"):
        PLANTS[name](app)


# --- limits ---


def _take_with(*conditions: Any, per_user: bool) -> None:
    """Let slots be taken with other conditions, and with or without the limit per user."""
    for published, confirmed, check in slots._TAKE:
        column = COUPONS.c.usage_count if confirmed else COUPONS.c.reserved_count
        more = [slots.PUBLISHED] if published else []
        more += slots._CONDITIONS[check] if per_user else []
        slots._TAKE[published, confirmed, check] = slots._taking(column, *conditions, *more)
    reservations.RESERVE = slots._TAKE[True, False, slots._Check.NO_LIMIT_PER_USER]
    reservations._RESERVE_AT_ONCE = reservations._reserving_at_once()


def limit_before_lock(_: Any) -> None:
    """The limits are read before the lock, and not checked again."""
    _take_with(per_user=False)


def no_lock(_: Any) -> None:
    """The coupon is not locked while the uses by a customer are counted."""
    exists = select(COUPONS.c.id).where(COUPONS.c.id == bindparam("this", type_=Id))

    def look(found: Any, coupon_id: int) -> bool:
        return found.scalar(exists, {"this": coupon_id}) is not None

    for module in (slots, reservations, writes):
        module.lock_coupon = look
    order_writes.lock_coupons = trash.lock_coupons = locks.lock_coupons = lambda *_: None


def limit_off_by_one(_: Any) -> None:
    """A coupon has one use more than its limit."""
    free = COUPONS.c.usage_limit - COUPONS.c.reserved_count - terms._UNCOUNTED
    _take_with(or_(COUPONS.c.usage_limit == 0, COUPONS.c.usage_count <= free), per_user=True)

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
    customers.comparable = lambda email: email


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
        counts.change_counts(
            found, redemption["coupon_id"], usage=-2 * usage, reserved=-2 * reserved
        )

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


# --- requests ---


def idempotency_survives_rollback(app: Any) -> None:
    """The response to a request that was rolled back is stored, too."""
    original = idempotency.run_in_transaction

    def run(work: Callable[[Any], Any]) -> Any:
        try:
            return original(work)
        except idempotency.ShopError as error:
            request_hash, body_hash = idempotency._hashes(request.headers["Idempotency-Key"])
            response = app.make_response(app.handle_user_exception(error))

            def store(found: Any) -> None:
                form = idempotency._PLAIN
                idempotency._store_response(found, request_hash, body_hash, response, form)

            if not idempotency._stored_response(request_hash, body_hash, form=idempotency._PLAIN):
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
    original = queries.get_coupon
    cache: dict[Any, Any] = {}

    def get_coupon(actor: Any, coupon_id: int, columns: Any) -> Any:
        key = coupon_id, str(columns)
        if key not in cache or time.monotonic() - cache[key][0] > 0.5:
            cache[key] = time.monotonic(), original(actor, coupon_id, columns)
        return cache[key][1]

    queries.get_coupon = get_coupon


def refund_exceeds(_: Any) -> None:
    """Refunds are compared with the total, and not with what is left of it."""
    original = refunds.refunded_amount
    refunds.refunded_amount = lambda data, items, _: original(data, items, 10**6)


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
        if query["status"] is not None:
            query = {**query, "customer_id": None}
        return original(actor, query)

    order_queries.count_orders = count_orders


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
    )
}
"""The planted defects by name."""
