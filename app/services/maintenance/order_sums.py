"""Verifying and rebuilding the sums and totals of the orders of each customer.

The sums (``OrderSum``) are compared with the orders, and the totals (``CustomerTotal``) with the
sums. Figures of orders that a previous release wrote during an upgrade are completed (records 5).
"""

from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    bindparam,
    func,
    insert,
    literal,
    or_,
    select,
    union_all,
    update,
)
from sqlalchemy.orm import Session

from app.conversions.numbers import INT64_MAX
from app.db.bulk_inserts import insert_into
from app.db.locks import lock_until_commit
from app.db.read_pool import fetch
from app.db.session import run_in_transaction
from app.db.sql.functions import transaction_id
from app.db.sql.types import MoneySum
from app.models import CUSTOMER_TOTALS, ORDER_SUMS, ORDERS, USERS
from app.services.customers import totals
from app.services.orders.items import cents, items_of

BATCH = 20_000
"""Number of orders or users in a batch. All orders of a customer are in the same one."""

_LOCK_KEY = 7_310_293_019
_AFTER = bindparam("after", type_=BigInteger)
_UNTIL = bindparam("until", type_=BigInteger)


def _differences() -> Select[Any]:
    """Return a select of the customers and statuses whose sums are wrong, and by how much."""

    def sums(of: Any, orders: Any) -> Select[Any]:
        chosen = select(of.customer_id, of.status, orders, func.sum(of.total))
        chosen = chosen.where(of.customer_id > _AFTER, of.customer_id <= _UNTIL)
        return chosen.group_by(of.customer_id, of.status)

    kept = sums(ORDER_SUMS.c, func.sum(ORDER_SUMS.c.orders)).subquery()
    counted = sums(ORDERS.c, func.count()).subquery()
    negative = (-column for column in list(kept.c)[2:])
    both = union_all(select(counted), select(*list(kept.c)[:2], *negative)).subquery()
    customer, status, orders, total = both.c
    more, spent = func.sum(orders), func.sum(total, type_=MoneySum)
    differing = select(customer, status, more.label("orders"), spent.label("total"))
    return differing.group_by(customer, status).having(or_(more != 0, spent != Decimal(0)))


_DIFFERENCES = _differences()
_NUMBER_OF_WRONG = select(func.count()).select_from(_DIFFERENCES.subquery())
_NUMBER_OF_WRONG_TOTALS = totals.number_of_wrong(_AFTER, _UNTIL)
_MISSING = select(USERS.c.id, literal(0), literal(0)).where(
    USERS.c.id.not_in(select(CUSTOMER_TOTALS.c.customer_id))
)


def count_wrong_sums() -> int:
    """Return the number of customers and statuses whose sums differ from their orders.

    Reads all orders, in the index of customers: one to two seconds for a million.
    """
    batches = _batches(ORDERS.c.customer_id)
    return sum(fetch(_NUMBER_OF_WRONG, batch)[0][0] for batch in batches)


def count_wrong_totals() -> int:
    """Return the number of users whose totals differ from their sums, or are missing.

    Totals that will be computed again count as correct, because lists do not use them.
    """
    statuses = {"statuses": totals.counted_statuses()}
    batches = _batches(USERS.c.id)
    return sum(fetch(_NUMBER_OF_WRONG_TOTALS, statuses | batch)[0][0] for batch in batches)


def rebuild_sums() -> int:
    """Correct the sums of all customers, while others write, and return how many were wrong.

    The totals of all customers are computed again, too.
    """
    batches = _batches(ORDERS.c.customer_id)
    wrong = sum(run_in_transaction(partial(_correct, batch=batch)) for batch in batches)
    run_in_transaction(_make_all_stale)
    totals.refresh()
    return wrong


def _make_all_stale(session: Session) -> None:
    """Let all totals be computed again, also those that are missing."""
    session.execute(insert(CUSTOMER_TOTALS).from_select(list(CUSTOMER_TOTALS.c), _MISSING))
    totals.make_all_stale(session)


def _batches(column: ColumnElement[int]) -> Iterator[dict[str, int]]:
    """Yield ranges of all IDs of users, so that no statement reaches the statement timeout."""
    following = select(column).where(column > _AFTER).order_by(column).limit(1).offset(BATCH)
    after = 0
    while after < INT64_MAX:
        last = fetch(following, {"after": after})
        until = last[0][0] if last else INT64_MAX
        yield {"after": after, "until": until}
        after = until


def _correct(session: Session, batch: dict[str, int]) -> int:
    """Add the differences to the sums, and return their number.

    A single statement reads the orders and the sums at one moment, so it adds exactly what is
    missing, and later writes add theirs.
    """
    lock_until_commit(session, _LOCK_KEY)  # otherwise two commands would add the same differences
    customer, status, orders, total = _DIFFERENCES.selected_columns
    missing = _DIFFERENCES.with_only_columns(customer, status, transaction_id(), orders, total)
    statement = insert_into(session, ORDER_SUMS)
    added = statement.from_select([column.name for column in ORDER_SUMS.c], missing)
    changed = {name: ORDER_SUMS.c[name] + statement.excluded[name] for name in ("orders", "total")}
    key = list(ORDER_SUMS.primary_key)
    adding = added.on_conflict_do_update(index_elements=key, set_=changed)
    adding = adding.execution_options(preserve_rowcount=True)
    return session.connection().execute(adding, batch).rowcount


_SET_FIGURES = (
    update(ORDERS)
    .where(ORDERS.c.id == bindparam("order_id"))
    .values(
        items=bindparam("new_items"),
        fees=bindparam("new_fees"),
        discount_tax=bindparam("new_discount_tax"),
    )
)


def complete_figures(session: Session, limit: int) -> int:
    """Compute ``items``, ``fees`` and ``discount_tax`` of orders that lack them.

    Args:
        limit: the most orders to complete. Orders that another transaction writes are left out.

    Returns:
        The number of orders.
    """
    incomplete = (
        select(ORDERS)
        .where(ORDERS.c["items"].is_(None))
        .order_by(ORDERS.c.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    found = []
    for order in session.execute(incomplete).mappings().all():
        columns = items_of(dict(order)).columns_with_sums(cents(order["shipping_tax"]))
        figures = {f"new_{name}": columns[name] for name in ("items", "fees", "discount_tax")}
        found.append(figures | {"order_id": order["id"]})
    if found:
        session.execute(_SET_FIGURES, found)
    return len(found)
