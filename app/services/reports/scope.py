"""What a report counts: orders of some statuses and one currency, and exact sums of them.

Guests are identified by their e-mail address in lower case. ``lower()`` of a database changes only
ASCII letters here, so the orders with another address have ``billing_email_normalized``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import gt, lt
from typing import Any, NamedTuple

from flask import current_app
from sqlalchemy import ColumnElement, Select, and_, case, exists, func, or_, select
from sqlalchemy.exc import DBAPIError

from app.auth.principals import Principal
from app.db import read_pool, timeouts
from app.db.read_pool import Fetch, RowStream
from app.db.sql.functions import email_is
from app.errors import InvalidParams, unavailable
from app.models import ORDER_REFUNDS, ORDERS, REDEMPTIONS
from app.models.redemption import IS_CONFIRMED
from app.services.reports.period import FROM, Span, require_reports

OTHERS = ORDERS.alias("others")
"""Further orders of the customer of an order."""


class SpanColumns(NamedTuple):
    """The ends of the spans of a table, or of a whole."""

    since: ColumnElement[datetime] | datetime
    until: ColumnElement[datetime] | datetime


@dataclass(frozen=True, slots=True)
class Scope:
    """The orders and uses that a report counts."""

    currency: str
    statuses: tuple[str, ...]  # of counted orders
    is_only: bool = False  # whether no order has another currency, which saves looking at each

    def counts(self, orders: Any = ORDERS.c) -> ColumnElement[bool]:
        """Return whether an order counts. The index of the report begins with both columns."""
        return and_(orders.currency == self.currency, orders.status.in_(self.statuses))

    def counts_refund(self) -> ColumnElement[bool]:
        """Return whether a refund is of an order that counts."""
        counts = ORDERS.c.status.in_(self.statuses) if self.is_only else self.counts()
        return exists().where(ORDERS.c.id == ORDER_REFUNDS.c.order_id, counts)

    def counts_use(self) -> ColumnElement[bool]:
        """Return whether a redemption is a use in the currency (reports 4).

        Uses without an order are in the currency of the shop.
        """
        of_order = exists().where(ORDERS.c.id == REDEMPTIONS.c.order_id)
        if self.currency == current_app.config["SHOP_CURRENCY"]:
            if self.is_only:
                return IS_CONFIRMED
            return and_(IS_CONFIRMED, ~of_order.where(ORDERS.c.currency != self.currency))
        return and_(IS_CONFIRMED, of_order.where(ORDERS.c.currency == self.currency))

    def guest(self, orders: Any = ORDERS.c) -> ColumnElement[str]:
        """Return the key of the guest of an order."""
        key: ColumnElement[str] = func.coalesce(
            orders.billing_email_normalized, func.lower(orders.billing_email)
        )
        return key

    def by_guest(self, orders: Any, key: ColumnElement[str]) -> Iterator[ColumnElement[bool]]:
        """Yield the conditions of the orders of a guest, each of which has an index."""
        is_guest, email = orders.customer_id.is_(None), orders.billing_email
        yield and_(is_guest, email_is(email, key))
        is_normalized = orders.billing_email_normalized == key
        yield and_(is_guest, is_normalized)

    def has_other(self, condition: ColumnElement[bool]) -> ColumnElement[bool]:
        """Return whether the customer of an order has a counted one that meets a condition.

        Args:
            condition: a condition on OTHERS.
        """
        each = OTHERS.c
        found = and_(self.counts(each), condition)
        of_account = exists().where(each.customer_id == ORDERS.c.customer_id, found)
        of_guest = or_(*(exists().where(same, found) for same in self.by_guest(each, self.guest())))
        return case((ORDERS.c.customer_id.is_(None), of_guest), else_=of_account)

    def is_first(self) -> ColumnElement[bool]:
        """Return whether an order is the first counted order of its customer."""
        each = OTHERS.c
        before = and_(
            each.created_at <= ORDERS.c.created_at,
            or_(each.created_at < ORDERS.c.created_at, each.id < ORDERS.c.id),
        )
        return ~self.has_other(before)


@contextmanager
def reading(actor: Principal) -> Iterator[Fetch]:
    """Yield a ``fetch`` function for the selects of a report, which see one state of the database.

    Raises:
        ShopError: the capability is missing, a select exceeded the statement timeout, or a sum
            exceeds 64 bits on SQLite (reports 4).
    """
    with _within_time(actor), read_pool.snapshot() as fetch:
        yield fetch


@contextmanager
def streaming(actor: Principal) -> Iterator[tuple[Fetch, Callable[[Select[object]], RowStream]]]:
    """Yield the same, and a function that returns the rows of a select as a stream."""
    with _within_time(actor):
        connection = read_pool.stream_connection()
        try:
            yield read_pool.fetching(connection), partial(RowStream, connection=connection)
        except BaseException:
            if not connection.closed:  # a stream that fails closes it
                connection.invalidate()
                connection.close()
            raise


@contextmanager
def _within_time(actor: Principal) -> Iterator[None]:
    require_reports(actor)
    try:
        yield
    except DBAPIError as error:
        if timeouts.is_statement_timeout(error):
            reason = "The report takes longer than a statement may. Choose a shorter period."
            raise unavailable(reason) from error
        if "integer overflow" in str(error.orig):  # SQLite adds 64-bit integers
            reason = "the sums of this period exceed 64 bits. Choose a shorter one."
            raise InvalidParams({FROM: reason}) from None
        raise


def scope_of(fetch: Fetch, currency: str, statuses: Sequence[str] | None = None) -> Scope:
    """Return what a report counts, by default in ``SHOP_PAID_STATUSES`` and ``refunded``."""
    counted = statuses or (*current_app.config["SHOP_PAID_STATUSES"], "refunded")
    bounds = (compare(ORDERS.c.currency, currency) for compare in (lt, gt))  # of an index
    is_only = not fetch(select(or_(*(exists().where(bound) for bound in bounds))))[0][0]
    return Scope(currency, tuple(dict.fromkeys(counted)), is_only)


def within(
    column: ColumnElement[datetime], span: Span | SpanColumns
) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions of a time from ``since``, and before ``until``, of a span."""
    return column >= span.since, column < span.until
