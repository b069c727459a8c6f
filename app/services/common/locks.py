"""Locks of accounts, which events, orders and notes refer to.

All transactions lock orders first, then accounts, campaigns and coupons, each in the order of
their IDs.
"""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import select, type_coerce
from sqlalchemy.orm import Session

from app.conversions.numbers import INT64_MAX
from app.db.sql.functions import json_list
from app.db.sql.types import Json
from app.models import USER_ROLES, USERS

_ROLES = (
    select(json_list(USER_ROLES.c.role))
    .where(USER_ROLES.c.user_id == USERS.c.id)
    .correlate(USERS)
    .scalar_subquery()
)
ACCOUNTS = select(
    USERS.c.id,
    USERS.c.email,
    USERS.c.email_normalized,
    USERS.c.billing_email,
    USERS.c.tags,
    type_coerce(_ROLES, Json).label("roles"),
)
"""Selects the columns of an account that coupons and orders read."""


def hold_accounts(session: Session, given: Iterable[int]) -> dict[int, Any]:
    """Lock accounts until the commit, and return rows of ACCOUNTS by ID. Others are omitted."""
    ids = {customer_id for customer_id in given if 0 < customer_id <= INT64_MAX}
    if not ids:
        return {}
    accounts = ACCOUNTS.where(USERS.c.id.in_(ids)).order_by(USERS.c.id)
    held = session.execute(accounts.with_for_update(read=True, key_share=True))
    return {row.id: row for row in held}
