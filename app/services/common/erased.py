"""What readers show of accounts that are deleted, until the worker has cleared them (people 5).

Orders, uses of coupons and events still name an account in ``ErasedAccount``. The table is empty
unless an account with very many of them was just deleted. Limits per customer count its uses as
after the erasure: those without an address for the hash of the address of the account.
"""

from collections.abc import Iterable
from typing import Any, cast

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Table,
    and_,
    case,
    exists,
    func,
    literal,
    or_,
    select,
    type_coerce,
)

from app.auth.hashes import keyed_hash
from app.db.search import email_key
from app.db.sql.functions import email_is, is_one_of, is_selected
from app.models import (
    DELETED_COUPONS,
    ERASED_ACCOUNTS,
    EVENTS,
    ORDER_NOTES,
    ORDER_REFUNDS,
    ORDERS,
    REDEMPTIONS,
)
from app.models.redemption import RedemptionRow

ERASED = "erased:"
"""Prefix of ``email_normalized`` of a redemption whose customer was deleted."""


def erased_email(email_normalized: str) -> str:
    """Return the keyed hash that replaces the e-mail address of a deleted customer.

    The limit per customer still counts the uses if a guest or a new account has the address.
    """
    return ERASED + keyed_hash(f"email:{email_normalized}") if email_normalized else ""


ERASED_IDS = select(ERASED_ACCOUNTS.c.customer_id)
"""The IDs of these accounts."""

IS_ANY = exists(select(1).select_from(ERASED_ACCOUNTS))
"""Whether there are any."""


def is_erased(customer_id: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return whether an account is one of these. NULL for a guest, if there are any."""
    return customer_id.in_(ERASED_IDS)


def owner(customer_id: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return an account as responses show it: NULL if it was deleted."""
    shown = case((customer_id.not_in(ERASED_IDS), customer_id))
    return type_coerce(shown, customer_id.type)


def belongs_to(customer: ColumnElement[Any], customer_id: int) -> ColumnElement[bool]:
    """Return whether a record belongs to an account, which was not deleted."""
    return and_(customer == customer_id, literal(customer_id).not_in(ERASED_IDS))


IS_OF_DELETED_COUPON = exists().where(DELETED_COUPONS.c.id == REDEMPTIONS.c.coupon_id)
"""Whether the coupon of a use was permanently deleted."""

USE_COLUMNS: dict[str, ColumnElement[Any]] = {
    **REDEMPTIONS.c,
    "coupon_id": type_coerce(
        case((~IS_OF_DELETED_COUPON, REDEMPTIONS.c.coupon_id)), REDEMPTIONS.c.coupon_id.type
    ),
    "customer_id": owner(REDEMPTIONS.c.customer_id),
    "email": type_coerce(
        case((is_erased(REDEMPTIONS.c.customer_id), ""), else_=REDEMPTIONS.c.email),
        REDEMPTIONS.c.email.type,
    ),
}
"""The columns of a use of a coupon, without a coupon or an account that was deleted."""

_HASH_OF_ACCOUNT = select(ERASED_ACCOUNTS.c.email_normalized).where(
    ERASED_ACCOUNTS.c.customer_id == REDEMPTIONS.c.customer_id
)
SELECT_USES: Select[Any] = select(
    *(column.label(name) for name, column in USE_COLUMNS.items()),
    _HASH_OF_ACCOUNT.scalar_subquery().label("counted_as"),
)
"""Selects uses of coupons for ``stored_uses``, for transactions that change them."""


def stored_uses(rows: Iterable[Row[Any]]) -> list[RedemptionRow]:
    """Return what SELECT_USES selects, uses of deleted accounts as the worker will leave them."""
    return [_stored_use(**row._mapping) for row in rows]


def _stored_use(*, counted_as: str | None, **use: Any) -> RedemptionRow:
    stored: str = use["email_normalized"]
    if counted_as is not None and not stored.startswith(ERASED):
        use["email_normalized"] = erased_email(stored) or counted_as
    return cast("RedemptionRow", use)


def is_counted_for(emails: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return whether a use without an address is one of a deleted account with some addresses.

    Args:
        emails: their hashes.
    """
    accounts = ERASED_IDS.where(is_one_of(ERASED_ACCOUNTS.c.email_normalized, emails))
    is_theirs = is_selected(REDEMPTIONS.c.customer_id, accounts.scalar_subquery())
    # No index has the length. PostgreSQL would read all uses of a coupon without an address.
    return and_(is_theirs, func.length(REDEMPTIONS.c.email_normalized) == 0)


ORDER_COLUMNS: dict[str, ColumnElement[Any]] = {
    **ORDERS.c,
    "customer_id": owner(ORDERS.c.customer_id),
}
"""The columns of an order, without an account that was deleted."""


def _is_of_order(table: Table) -> ColumnElement[bool]:
    """Return whether the record of an event is one of an order of such an account."""
    of_record = table.c.id == EVENTS.c.resource_id
    if table is ORDERS:
        return exists().where(of_record, is_erased(ORDERS.c.customer_id))
    return exists().where(
        of_record, ORDERS.c.id == table.c.order_id, is_erased(ORDERS.c.customer_id)
    )


IS_HIDDEN: ColumnElement[bool] = and_(
    IS_ANY,
    or_(
        is_erased(EVENTS.c.customer_id),
        and_(EVENTS.c.resource == "order", _is_of_order(ORDERS)),
        and_(EVENTS.c.resource == "order_note", _is_of_order(ORDER_NOTES)),
        and_(EVENTS.c.resource == "order_refund", _is_of_order(ORDER_REFUNDS)),
    ),
)
"""Whether readers show an event without personal data, as the worker will leave it."""


def of_erased_with(orders: Any, email: str) -> ColumnElement[bool]:
    """Return whether an order of such an account has an address, as that of a guest.

    Args:
        orders: the columns of the orders.
        email: the normalized address.
    """
    is_theirs = or_(
        email_is(orders.billing_email, literal(email)),
        orders.billing_email_normalized == email_key(email),
    )
    # Without such an account, no database reads any order.
    return and_(IS_ANY, is_erased(orders.customer_id), is_theirs)
