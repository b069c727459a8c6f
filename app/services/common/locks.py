"""Locks of accounts, which events, orders and notes refer to.

All transactions lock orders first, then accounts, campaigns and coupons, each in the order of
their IDs. The removal of an account then holds its addresses in their order (``hold_addresses``),
and a deletion does so before it locks its orders: where two of them wait for each other, PostgreSQL
ends one, which starts again.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import bindparam, case, exists, func, select, type_coerce
from sqlalchemy.orm import Session

from app.conversions.numbers import INT64_MAX
from app.db.records import WANTED
from app.db.sql.functions import is_one_of, json_list
from app.db.sql.types import IdList, Json
from app.models import MERGED_ACCOUNTS, USER_ROLES, USERS

_ROLES = (
    select(json_list(USER_ROLES.c.role))
    .where(USER_ROLES.c.user_id == USERS.c.id)
    .correlate(USERS)
    .scalar_subquery()
)
_OTHERS = USERS.alias("others")
IS_TAKEN = exists().where(_OTHERS.c.email_normalized == MERGED_ACCOUNTS.c.email_normalized)
"""Whether an account has the e-mail address of a merged account now (people 6)."""
# With an empty text for a merged account without an address of its own, so that all are counted.
MERGED_EMAILS = (
    select(
        json_list(case((IS_TAKEN, ""), else_=func.coalesce(MERGED_ACCOUNTS.c.email_normalized, "")))
    )
    .where(MERGED_ACCOUNTS.c.customer_id == USERS.c.id)
    .correlate(USERS)
    .scalar_subquery()
)
"""JSON: the normalized addresses of the accounts that were merged into one."""
ACCOUNTS = select(
    USERS.c.id,
    USERS.c.email,
    USERS.c.email_normalized,
    USERS.c.billing_email,
    USERS.c.tags,
    type_coerce(_ROLES, Json).label("roles"),
    type_coerce(MERGED_EMAILS, Json).label("merged"),
)
"""Selects the columns of an account that coupons and orders read."""
_HELD = (
    ACCOUNTS.where(is_one_of(USERS.c.id, bindparam(WANTED, type_=IdList)))
    .order_by(USERS.c.id)
    .with_for_update(read=True, key_share=True)
)


class AccountRow(NamedTuple):
    """What coupons and orders read of an account, in the order of ACCOUNTS."""

    id: int
    email: str
    email_normalized: str
    billing_email: str
    tags: Sequence[str] | None
    roles: Sequence[str] | None
    merged: Sequence[str] | None  # normalized addresses of the accounts merged into it


def hold_accounts(session: Session, given: Iterable[int]) -> dict[int, AccountRow]:
    """Lock accounts until the commit, and return them by ID. Others are omitted."""
    ids = {customer_id for customer_id in given if 0 < customer_id <= INT64_MAX}
    if not ids:
        return {}
    held = session.connection().execute(_HELD, {WANTED: list(ids)})
    return {row.id: AccountRow(*row) for row in held}
