"""Sort keys of lists of customers: stored totals, and how they are brought up to date.

``CUSTOMER_TOTALS`` has the statistics of each user in an index. The rows of customers whose orders
have changed since are computed from their sums instead, so that a list is always exact.
"""

import json
from decimal import Decimal
from functools import partial
from typing import Any

from flask import current_app
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    and_,
    bindparam,
    cast,
    delete,
    exists,
    false,
    func,
    insert,
    literal,
    or_,
    select,
    true,
    union,
    union_all,
    update,
)
from sqlalchemy.orm import Session

from app.catalog import current_catalog
from app.db.bulk_inserts import insert_into
from app.db.locks import lock_until_commit
from app.db.read_pool import Fetch, fetch
from app.db.session import run_in_transaction
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.models import CUSTOMER_TOTALS, ORDER_SUMS, STALE_TOTALS, TOTAL_STATUSES, USERS
from app.services.customers.statistics import SUMS, total_of

MOST_STALE = 5000
"""With more stale totals, a list adds up the sums of all customers instead."""

BATCH = 500
"""Number of customers whose totals one transaction computes."""

_LOCK_KEY = 7_310_293_020
_STALE = select(STALE_TOTALS.c.customer_id)
_STATE = select(
    select(TOTAL_STATUSES.c.statuses).scalar_subquery(),
    select(func.count()).select_from(_STALE.limit(MOST_STALE + 1).subquery()).scalar_subquery(),
)
_IDS = bindparam("ids", type_=IdList)
_UPDATE = (
    update(CUSTOMER_TOTALS)
    .where(is_one_of(CUSTOMER_TOTALS.c.customer_id, _IDS))
    .values({name: total_of(name, CUSTOMER_TOTALS.c.customer_id) for name in SUMS})
)
_AFTER = bindparam("after", type_=BigInteger)
_SIZE = bindparam("size", type_=BigInteger)
_BATCH = _STALE.distinct().where(STALE_TOTALS.c.customer_id > _AFTER)
_TAKE = (
    delete(STALE_TOTALS)
    .where(STALE_TOTALS.c.customer_id.in_(_BATCH.order_by(STALE_TOTALS.c.customer_id).limit(_SIZE)))
    .returning(STALE_TOTALS.c.customer_id)
)


def _stored(name: str) -> Select[object]:
    """Return a stored total, and the exact one of customers whose totals are stale.

    PostgreSQL reads the index of totals, and merges the exact values, only if the types of the two
    are the same and neither has a condition of its own.
    """
    total, spent = CUSTOMER_TOTALS.c[name], CUSTOMER_TOTALS.c.total_spent
    # Without deleted users, whose totals also became stale.
    of_users = STALE_TOTALS.c.customer_id.in_(select(CUSTOMER_TOTALS.c.customer_id))
    stale = _STALE.where(of_users).distinct().subquery()
    fresh, spent_now = (
        cast(total_of(column.name, stale.c.customer_id), column.type) for column in (total, spent)
    )
    stored = select(
        CUSTOMER_TOTALS.c.customer_id, total.label("value"), spent.label("spent"), true()
    )
    every = union_all(stored, select(stale.c.customer_id, fresh, spent_now, false())).subquery()
    record_id, value, spent_total, is_stored = every.c
    return select(record_id, value, spent_total).where(~and_(is_stored, record_id.in_(_STALE)))


def _summed(name: str) -> Select[object]:
    """Return a sum of the orders of each user, and 0 for users without orders."""
    users, values = USERS.outerjoin(SUMS[name], SUMS[name].c.customer_id == USERS.c.id), []
    spent = SUMS["total_spent"].alias("spent")
    users = users.outerjoin(spent, spent.c.customer_id == USERS.c.id)
    for label, sums in (("value", SUMS[name]), ("spent", spent)):
        values.append(func.coalesce(sums.c.value, literal(0)).label(label))
    every = select(USERS.c.id, *values).select_from(users).subquery()
    return select(*every.c)


_RANKS, _SUMS = ({name: of(name) for name in SUMS} for of in (_stored, _summed))


def number_of_wrong(after: ColumnElement[int], until: ColumnElement[int]) -> Select[object]:
    """Return a select of the number of users whose totals are used although they are wrong.

    Its parameter ``statuses`` is ``counted_statuses()``.

    Args:
        after: the IDs of the users are greater.
        until: the greatest ID.
    """

    def range_of(column: ColumnElement[int]) -> ColumnElement[bool]:
        return (column == USERS.c.id) & (column > after) & (column <= until)

    # Each table is limited to the range, because the join would not limit it.
    totals = CUSTOMER_TOTALS.c
    tables = USERS.outerjoin(CUSTOMER_TOTALS, range_of(totals.customer_id))
    for by_customer in SUMS.values():
        tables = tables.outerjoin(by_customer, range_of(by_customer.c.customer_id))
    differs = (
        totals[name].is_distinct_from(func.coalesce(by_customer.c.value, literal(0)))
        for name, by_customer in SUMS.items()
    )
    is_used = select(TOTAL_STATUSES.c.statuses).scalar_subquery() == bindparam("statuses")
    is_stale = exists().where(STALE_TOTALS.c.customer_id == USERS.c.id)
    wrong = select(func.count()).select_from(tables)
    return wrong.where(range_of(USERS.c.id), or_(*differs), is_used, ~is_stale)


def ranks(name: str, select_rows: Fetch) -> Select[Any]:
    """Return a select of the IDs, of a sum and of ``total_spent`` of all users.

    They are read from the index of totals if these are those of the statuses that count in this
    process, and only few are stale.

    Args:
        name: the sum, ``orders_count`` or ``total_spent``.
    """
    statuses, number = select_rows(_STATE)[0]
    is_usable = statuses == counted_statuses() and number <= MOST_STALE
    return _RANKS[name] if is_usable else _SUMS[name]


def refresh(most: int | None = None) -> None:
    """Compute stale totals, in batches.

    If other statuses count than before, all totals become stale first.

    Args:
        most: the most batches. By default, all stale totals are computed.
    """
    statuses, number = fetch(_STATE)[0]
    if not number and statuses == counted_statuses():
        return
    after: int | None = 0
    batches = 0
    while after is not None and batches != most:
        after = run_in_transaction(partial(_refresh, after=after))
        batches += 1


def make_all_stale(session: Session) -> None:
    """Let the totals of all customers with sums or totals be computed again."""
    totals, sums = CUSTOMER_TOTALS.c, ORDER_SUMS.c
    has_total = (totals.orders_count != 0) | (totals.total_spent != Decimal(0))
    # Ends with a condition, because SQLite would take ON CONFLICT for that of a join.
    every = union(
        select(sums.customer_id, literal(0)),
        select(totals.customer_id, literal(0)).where(has_total),
    )
    adding = insert_into(session, STALE_TOTALS).from_select(["customer_id", "shard"], every)
    session.execute(adding.on_conflict_do_nothing())


def _refresh(session: Session, after: int) -> int | None:
    """Compute the totals of the customers after an ID, and return the last one, or None.

    What earlier batches have removed would slow down a search from the beginning.
    """
    lock_until_commit(session, _LOCK_KEY)  # another process could store older sums later
    statuses = counted_statuses()
    if session.scalar(select(TOTAL_STATUSES.c.statuses)) != statuses:
        session.execute(delete(TOTAL_STATUSES))
        session.execute(insert(TOTAL_STATUSES).values(id=1, statuses=statuses))
        make_all_stale(session)
    # What is read after the deletion includes the changes of the transactions that it has seen.
    ids: list[int] = sorted(set(session.scalars(_TAKE, {"after": after, "size": BATCH})))
    if not ids:
        return None
    session.execute(_UPDATE, {"ids": ids})
    return ids[-1]


def counted_statuses() -> str:
    """Return the statuses that count in this process, in the form of ``TotalStatuses``."""
    known, paid = current_catalog().order_statuses, current_app.config["SHOP_PAID_STATUSES"]
    return json.dumps([sorted(known), sorted(paid)])
