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
from typing import Any

from flask import current_app
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    Select,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal,
    or_,
    select,
    union_all,
)
from sqlalchemy.exc import DBAPIError

from app.auth.principals import Principal
from app.db import read_pool, timeouts
from app.db.read_pool import Fetch, RowStream, read_engine
from app.db.sql.functions import email_is, is_one_of
from app.db.sql.index_hints import unindexed
from app.db.sql.types import IdList
from app.errors import InvalidParams, unavailable
from app.models import ORDERS, REDEMPTIONS
from app.models.redemption import IS_CONFIRMED
from app.services.reports.period import FROM, require_reports

ORDERS_INDEX = "ix_orders_report_sqlite"
"""Index of the orders of a time on SQLite."""

FEW = 1_000
"""Number of orders up to which those in other currencies are listed, not looked up for each row."""

_EARLIER = ORDERS.alias("earlier")

_CURRENCY: Any = bindparam("currency", type_=ORDERS.c.currency.type)
_OTHER_ORDERS = union_all(
    select(ORDERS.c.id).where(ORDERS.c.currency < _CURRENCY),
    select(ORDERS.c.id).where(ORDERS.c.currency > _CURRENCY),
).limit(bindparam("most", type_=BigInteger))


@dataclass(frozen=True, slots=True)
class Scope:
    """The orders and uses that a report counts."""

    currency: str
    statuses: tuple[str, ...]  # of counted orders
    few: tuple[int, ...] | None  # the IDs of all orders in other currencies, or None if unknown

    def counts(self, orders: Any = ORDERS.c) -> ColumnElement[bool]:
        """Return whether an order counts. The index of the report begins with both columns."""
        return and_(orders.currency == self.currency, orders.status.in_(self.statuses))

    def counts_found(self) -> ColumnElement[bool]:
        """Return whether an order counts that is found by its ID, or by its customer.

        In a shop with one currency, the status is read from an index alone. PostgreSQL would
        search for each status in turn.
        """
        status: Any = unindexed(ORDERS.c.status)
        if on_postgresql():
            status = ORDERS.c.status.concat(literal(""))
        counted: ColumnElement[bool] = status.in_(self.statuses)
        if self.few is not None:
            return and_(counted, *self._without(ORDERS.c.id))
        return and_(unindexed(ORDERS.c.currency) == self.currency, counted)

    def counts_use(self) -> ColumnElement[bool]:
        """Return whether a redemption is a use in the currency (reports 4).

        Uses without an order are in the currency of the shop.
        """
        if self.few is not None:
            return and_(IS_CONFIRMED, *self._without(REDEMPTIONS.c.order_id))
        of_order = exists().where(ORDERS.c.id == REDEMPTIONS.c.order_id)
        if self.currency == current_app.config["SHOP_CURRENCY"]:
            return and_(IS_CONFIRMED, ~of_order.where(ORDERS.c.currency != self.currency))
        return and_(IS_CONFIRMED, of_order.where(ORDERS.c.currency == self.currency))

    def _without(self, order_id: ColumnElement[int]) -> Iterator[ColumnElement[bool]]:
        """Yield the condition that an ID, or none, is not of an order in another currency."""
        if self.few:
            is_other = is_one_of(order_id, literal([*self.few], IdList))
            yield or_(order_id.is_(None), ~is_other)

    def guest(self, orders: Any = ORDERS.c) -> ColumnElement[str]:
        """Return the key of the guest of an order."""
        key: ColumnElement[str] = func.coalesce(
            orders.billing_email_normalized, func.lower(orders.billing_email)
        )
        return key

    def by_guest(self, orders: Any, key: ColumnElement[str]) -> Iterator[tuple[str, Any]]:
        """Yield the index and the condition of each search for the orders of a guest."""
        is_guest, email = orders.customer_id.is_(None), orders.billing_email
        yield "ix_orders_guest_email_sqlite", and_(is_guest, email_is(email, key))
        is_normalized = orders.billing_email_normalized == key
        yield "ix_orders_guest_normalized", and_(is_guest, is_normalized)

    def is_first(self) -> ColumnElement[bool]:
        """Return whether an order is the first counted order of its customer."""
        each, key = _EARLIER.c, self.guest()
        before = and_(
            self.counts(each),
            each.created_at <= ORDERS.c.created_at,
            or_(each.created_at < ORDERS.c.created_at, each.id < ORDERS.c.id),
        )

        def exists_by(index: str, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
            found = select(literal(1)).select_from(_EARLIER).where(*conditions, before)
            return read_by(found, _EARLIER, index).exists()

        is_theirs = each.customer_id == ORDERS.c.customer_id
        of_account = exists_by("ix_orders_customer_created", is_theirs)
        of_guest = or_(*(exists_by(*found) for found in self.by_guest(each, key)))
        return ~case((ORDERS.c.customer_id.is_(None), of_guest), else_=of_account)


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
def streaming(actor: Principal) -> Iterator[tuple[Fetch, Callable[[Select[Any]], RowStream]]]:
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
        if "integer overflow" in str(error.orig):  # SQLite adds 64-bit integers
            reason = "the sums of this period exceed 64 bits. Choose a shorter one."
            raise InvalidParams({FROM: reason}) from None
        if not timeouts.is_statement_timeout(error):
            raise
        reason = "The report takes longer than a statement may. Choose a shorter period."
        raise unavailable(reason) from error


def scope_of(fetch: Fetch, currency: str, statuses: Sequence[str] | None = None) -> Scope:
    """Return what a report counts, by default in ``SHOP_PAID_STATUSES`` and ``refunded``."""
    counted = statuses or (*current_app.config["SHOP_PAID_STATUSES"], "refunded")
    few = None
    if currency == current_app.config["SHOP_CURRENCY"]:
        ids = fetch(_OTHER_ORDERS, {"currency": currency, "most": FEW + 1})
        few = tuple(id_ for (id_,) in ids) if len(ids) <= FEW else None
    return Scope(currency, tuple(dict.fromkeys(counted)), few)


def within(column: ColumnElement[datetime], span: Any) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions of a time from ``since``, and before ``until``, of a span.

    Times are constants of the statement on PostgreSQL, which otherwise plans for a period of
    any length after ten runs: the coupons of a year then take twice as long.
    """
    since, until = (
        literal(end, column.type, literal_execute=on_postgresql())
        if isinstance(end, datetime)
        else end
        for end in (span.since, span.until)
    )
    return column >= since, column < until


def read_by(rows: Select[Any], table: FromClause, index: str) -> Select[Any]:
    """Return a select that reads a table by an index on SQLite.

    With statistics (``ANALYZE``), SQLite would read all orders instead where few addresses of
    guests differ.
    """
    return rows.with_hint(table, f"INDEXED BY {index}", "sqlite")


def on_postgresql() -> bool:
    """Return whether the database is PostgreSQL."""
    return read_engine().dialect.name == "postgresql"
