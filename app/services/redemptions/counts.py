"""The two counts of a coupon: confirmed uses and reserved slots (redemptions 4 and 6).

A change of ``usage_count`` is an update of the coupon, so it moves ``updated_at``. A reservation
changes nothing that a coupon shows, and does not. ``edited_at`` keeps the time of the last other
update, by which a repeated import recognizes coupons that were edited here.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, case, func, update
from sqlalchemy.orm import Session

from app.db.records import NamedColumns
from app.db.session import now
from app.db.sql.types import Id, UtcDateTime
from app.models import COUPONS

_USED = COUPONS.c.usage_count + bindparam("usage", type_=Id)
_LEAST = bindparam("least", type_=Id)

TIMES: NamedColumns = {
    "updated_at": func.coalesce(bindparam("used_at", type_=UtcDateTime), COUPONS.c.updated_at),
    "edited_at": func.coalesce(COUPONS.c.edited_at, COUPONS.c.updated_at),
}
"""Columns of a use, with a parameter ``used_at``, which is null for a reservation."""

_WRITE = (
    update(COUPONS)
    .where(COUPONS.c.id == bindparam("this"))
    .values(
        usage_count=case((_USED < _LEAST, _LEAST), else_=_USED),
        reserved_count=COUPONS.c.reserved_count + bindparam("reserved"),
        **TIMES,
    )
    .returning(*COUPONS.c)
)


def change_counts(
    session: Session, coupon_id: int | None, changes: Iterable[tuple[int, int]]
) -> Mapping[str, Any] | None:
    """Write successive changes of the counts of a coupon with one statement.

    None of the changes makes ``usage_count`` negative, because an update can have set a lower count
    (redemptions 6). The result is therefore not always the sum: a release from 0 has no effect, and
    a use confirmed after it still adds 1. It is at least the result of the changes from 0.

    Args:
        changes: what each change adds to ``usage_count`` and to ``reserved_count``.

    Returns:
        The coupon after the changes, by its column names; None if nothing changes or the coupon
        was deleted permanently.
    """
    counts = {"usage": 0, "least": 0, "reserved": 0}
    used_at: datetime | None = None
    for usage, reserved in changes:
        used_at = now() if usage else used_at
        counts["usage"] += usage
        counts["least"] = max(counts["least"] + usage, 0)
        counts["reserved"] += reserved
    if coupon_id is None or not any(counts.values()):
        return None
    # Core's execute takes two thirds of the time of the session's.
    parameters = {"this": coupon_id, "used_at": used_at, **counts}
    row = session.connection().execute(_WRITE, parameters).mappings().first()
    return dict(row) if row else None
