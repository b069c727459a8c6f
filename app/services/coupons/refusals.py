"""Counting of refused coupon codes (reports 2 and 4).

Each process adds up in memory, and a thread writes the numbers every few seconds, so that counting
never delays or fails a request. A process that is killed loses the last ones. With the numbers, it
writes the latest refusals, each with its customer and the sum of the cart.
"""

from __future__ import annotations

import atexit
import logging
import re
import threading
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from flask import Flask, current_app
from sqlalchemy import case, delete, func, insert, select
from sqlalchemy.orm import Session

from app.db.bulk_inserts import insert_into
from app.db.locks import lock_until_commit
from app.db.search import email_key
from app.db.session import is_trial, now, run_in_transaction
from app.errors import Sentence, ShopError, joined
from app.models import COUPON_REFUSALS, COUPONS
from app.models.refused_cart import REFUSED_CARTS
from app.pricing.evaluation import REASONS, Reason
from app.services.common.erased import ERASED, erased_email
from app.services.common.locks import hold_accounts

FLUSH_SECONDS = 3.0
MAX_UNKNOWN = 5000
"""Different codes of a day that match no coupon. The others count as an empty code."""

MAX_PENDING = 2 * MAX_UNKNOWN
"""Different codes and reasons that a process counts until the next flush."""

MAX_CODE = 100
"""Characters of a code."""

_PERSONAL = re.compile(r".*@.*\..*|.*[0-9]{7}.*", re.DOTALL)
"""Codes that can be an e-mail address or a number of a card, which people enter by mistake."""

_EXTENSION = "shop_api_refusals"
_LOCK_KEY = 7_310_293_021
_log = logging.getLogger(__name__)

MAX_CARTS = 500
"""Refusals with their customers that a process keeps until the next flush: the latest."""

Key = tuple[date, str, str]
"""Day, code and reason."""


@dataclass(frozen=True, slots=True)
class CartSummary:
    """The customer and the sum of a cart or an order, as far as they are known.

    Args:
        customer_id: the account; None or 0 for a guest.
        total: the sum of the items before discounts.
        currency: that of the sum, by default that of the shop.
    """

    customer_id: int | None = None
    email: str = ""
    total: Decimal | None = None
    currency: str = ""


Refused = tuple[Key, datetime, CartSummary]


class CouponRefused(ShopError):
    """Error response for a coupon that is not applicable, with all reasons.

    Args:
        coupon: the code.
        reasons: at least one.
        param: the name of the code in the request.
    """

    def __init__(self, coupon: str, reasons: Iterable[Reason], param: str) -> None:
        found = [*reasons]
        super().__init__(
            "shop_api_coupon_not_applicable",
            param=param,
            reasons=[{"code": each.code, "message": each.text} for each in found],
            coupon=coupon,
            reason=joined(each.text for each in found),
        )
        self.coupon, self.first, self.cart = coupon, found[0], CartSummary()


NOT_FOUND = Reason("not_found", Sentence(REASONS["not_found"]))


@dataclass(slots=True)
class _Tally:
    count: int
    first_at: datetime
    last_at: datetime

    def add(self, other: _Tally) -> None:
        self.count += other.count
        self.first_at = min(self.first_at, other.first_at)
        self.last_at = max(self.last_at, other.last_at)


class Refusals:
    """The refused codes that a process has counted and not written yet."""

    def __init__(self, app: Flask) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._pending: dict[Key, _Tally] = {}
        self._codes: set[str] = set()
        self._latest: deque[Refused] = deque(maxlen=MAX_CARTS)
        self._zone = ZoneInfo(app.config["SHOP_TIMEZONE"])

    def count(self, refused: Iterable[tuple[str, str, CartSummary]]) -> None:
        """Count codes, each with the code of its first reason. Takes microseconds."""
        timestamp = now()
        day = timestamp.astimezone(self._zone).date()
        with self._lock:
            for code, reason, cart in refused:
                key = day, code[:MAX_CODE], reason
                self._add(key, _Tally(1, timestamp, timestamp))
                self._latest.append((key, timestamp, cart))

    def has(self, code: str) -> bool:
        """Return whether a code was refused here since the numbers were written."""
        return code in self._codes

    def start(self) -> None:
        """Start the thread that writes the numbers. Called in each worker of gunicorn."""
        threading.Thread(target=self._run, name="refusals", daemon=True).start()
        atexit.register(self.flush)

    def _add(self, key: Key, tally: _Tally) -> None:
        if key not in self._pending and len(self._pending) >= MAX_PENDING:
            day, _, reason = key
            key = (day, "", reason)
        self._codes.add(key[1])
        if (found := self._pending.get(key)) is None:
            self._pending[key] = replace(tally)
        else:
            found.add(tally)

    def _run(self) -> None:
        waiting = threading.Event()
        while not waiting.wait(FLUSH_SECONDS):
            self.flush()

    def flush(self) -> None:
        """Write what was counted. After an error, it is counted again with the next flush."""
        with self._lock:
            pending, self._pending, self._codes = self._pending, {}, set()
            latest, self._latest = self._latest, deque(maxlen=MAX_CARTS)
        if not pending:
            return
        try:
            with self._app.app_context():
                run_in_transaction(lambda session: _write(session, pending, latest))
        except Exception:  # noqa: BLE001  # the database is unavailable, or its schema is older
            _log.warning("Refused codes were not written.", exc_info=True)
            with self._lock:
                for key, tally in pending.items():
                    self._add(key, tally)
                self._latest.extendleft(reversed(latest))


def init_app(app: Flask) -> None:
    """Create the counters of an app."""
    app.extensions[_EXTENSION] = Refusals(app)


def refusals_of(app: Flask) -> Refusals:
    """Return the counters of an app."""
    found: Refusals = app.extensions[_EXTENSION]
    return found


def current_refusals() -> Refusals:
    """Return the counters of the current app."""
    return refusals_of(current_app)


@contextmanager
def refused_for(cart: Callable[[], CartSummary]) -> Iterator[None]:
    """Let a CouponRefused of the block name the customer and the sum of a cart."""
    try:
        yield
    except CouponRefused as error:
        error.cart = cart()
        raise


@contextmanager
def counting_refusals() -> Iterator[None]:
    """Count the code of a CouponRefused that ends a request."""
    try:
        yield
    except CouponRefused as error:
        count_refused([error])
        raise


def count_refused(results: Iterable[object]) -> None:
    """Count the codes of the CouponRefused among results."""
    errors = [error for error in results if isinstance(error, CouponRefused)]
    if errors and not is_trial():  # of a form that shows all its errors at once
        current_refusals().count((each.coupon, each.first.code, each.cart) for each in errors)


def erase_refused_carts(session: Session, keys: Iterable[str]) -> None:
    """Delete the refusals of guests, and let processes drop those that they have not written yet.

    Args:
        keys: the normalized addresses.
    """
    if keys := [*keys]:
        lock_until_commit(session, _LOCK_KEY)
        of_guest = REFUSED_CARTS.c.email_normalized.in_(keys)
        session.execute(delete(REFUSED_CARTS).where(of_guest))
        erased = {"created_at": now(), "code": "", "reason": ERASED, "currency": ""}
        marks = [erased | {"email_normalized": erased_email(key)} for key in keys]
        session.execute(insert(REFUSED_CARTS), marks)


def _write(session: Session, pending: Mapping[Key, _Tally], latest: Sequence[Refused]) -> None:
    """Add what was counted to the stored numbers, and store the latest refusals."""
    # Before the other lock, as an erasure locks them.
    accounts = hold_accounts(session, (cart.customer_id or 0 for _, _, cart in latest))
    lock_until_commit(session, _LOCK_KEY)  # so that processes together keep the limit
    codes = {code for _, code, _ in pending}
    known = set(_those(session, codes, COUPONS.c.code))
    kept: dict[date, Callable[[str], bool]] = {}
    rows: dict[Key, _Tally] = {}
    for (day, code, reason), tally in pending.items():
        if day not in kept:
            kept[day] = _limit(session, day, codes)
        key = day, code if code in known or kept[day](code) else "", reason
        if (found := rows.get(key)) is None:
            rows[key] = replace(tally)  # the transaction can be repeated
        else:
            found.add(tally)
    _add_numbers(session, rows, known)
    shown = {key: key[1] if key[1] in known or kept[key[0]](key[1]) else "" for key in pending}
    _write_latest(session, latest, shown, {None, *accounts})


def _add_numbers(session: Session, rows: Mapping[Key, _Tally], known: Container[str]) -> None:
    inserting = insert_into(session, COUPON_REFUSALS)
    stored, new = COUPON_REFUSALS.c, inserting.excluded
    adding = inserting.on_conflict_do_update(
        index_elements=[stored.day, stored.code, stored.reason],
        set_={
            "count": stored.count + new["count"],
            "first_at": case((new.first_at < stored.first_at, new.first_at), else_=stored.first_at),
            "last_at": case((new.last_at > stored.last_at, new.last_at), else_=stored.last_at),
            "is_known": new.is_known,
        },
    )
    values = [
        {
            "day": day,
            "code": code,
            "reason": reason,
            "is_known": code in known,
            "count": tally.count,
            "first_at": tally.first_at,
            "last_at": tally.last_at,
        }
        for (day, code, reason), tally in sorted(rows.items(), key=lambda row: row[0])
    ]
    session.execute(adding, values)


def _write_latest(
    session: Session,
    latest: Iterable[Refused],
    codes: Mapping[Key, str],
    existing: Container[int | None],
) -> None:
    """Store the latest refusals, without those of persons who were erased meanwhile."""
    keys = {_mark(cart) for _, _, cart in latest} - {""}
    marks = select(REFUSED_CARTS.c.email_normalized, func.max(REFUSED_CARTS.c.created_at))
    marks = marks.where(REFUSED_CARTS.c.email_normalized.in_(keys))
    found = session.execute(marks.group_by(REFUSED_CARTS.c.email_normalized))
    # The clocks of two machines differ.
    erased = {key: at + timedelta(seconds=FLUSH_SECONDS) for key, at in found}
    rows = [
        {
            "created_at": timestamp,
            "code": codes.get(key, ""),
            "reason": key[2],
            "customer_id": customer_id,
            "email_normalized": "" if customer_id else email_key(cart.email),
            "total": cart.total,
            "currency": cart.currency or current_app.config["SHOP_CURRENCY"],
        }
        for key, timestamp, cart in latest
        if (customer_id := cart.customer_id or None) in existing
        and erased.get(_mark(cart), timestamp) <= timestamp
    ]
    if rows:
        session.execute(insert(REFUSED_CARTS), rows)


def _mark(cart: CartSummary) -> str:
    """Return what the erasure of the guest of a cart stores in place of the address."""
    return "" if cart.customer_id else erased_email(email_key(cart.email))


def _limit(session: Session, day: date, codes: set[str]) -> Callable[[str], bool]:
    """Return a function that says whether a code that matches no coupon is kept on a day."""
    of_day = COUPON_REFUSALS.c.day == day
    unknown = select(func.count(COUPON_REFUSALS.c.code.distinct()))
    number = session.scalar(unknown.where(of_day, ~COUPON_REFUSALS.c.is_known)) or 0
    stored = set(_those(session, codes, COUPON_REFUSALS.c.code, of_day))

    def is_kept(code: str) -> bool:
        nonlocal number
        if _PERSONAL.fullmatch(code):
            return False
        if code not in stored and number < MAX_UNKNOWN:
            number += 1
            stored.add(code)
        return code in stored

    return is_kept


def _those(session: Session, codes: set[str], column: Any, *where: Any) -> Iterator[str]:
    """Yield the codes that a column contains."""
    listed = sorted(codes)
    for start in range(0, len(listed), 500):
        part = listed[start : start + 500]
        yield from session.scalars(select(column).where(column.in_(part), *where))
