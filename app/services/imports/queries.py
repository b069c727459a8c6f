"""The rules for reading imports and their errors (people 7)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from sqlalchemy import BigInteger, ColumnElement, bindparam, case, func, or_, select

from app.auth.api_keys import require_resources
from app.auth.principals import Principal
from app.db.read_pool import ReadRow, fetch
from app.db.records import WANTED, Columns, NamedColumns, Row, as_printed, select_where
from app.db.session import now
from app.errors import ShopError
from app.models import IMPORT_ERRORS, IMPORT_RUNS
from app.models.import_run import ImportStatus
from app.services.common.filtering import ListQuery, Matching
from app.services.common.pagination import Page, default_page_size
from app.services.common.plans import fetch_page
from app.services.events.queries import EventPage as FeedPage

READS: Mapping[str, str] = {
    "coupons": "shop_api_user_cannot_read_coupons",
    "customers": "shop_api_user_cannot_read_customer",
}
"""The right to list records by their kind."""

COLUMNS: NamedColumns = {
    **IMPORT_RUNS.c,
    "status": func.coalesce(
        IMPORT_RUNS.c.status,
        case(
            (IMPORT_RUNS.c.finished_at.is_(None), ImportStatus.RUNNING.value),
            else_=ImportStatus.FINISHED.value,
        ),
    ),
    "created_at": func.coalesce(
        IMPORT_RUNS.c.created_at, IMPORT_RUNS.c.progress_at, type_=IMPORT_RUNS.c.created_at.type
    ),
}
ERROR_COLUMNS: NamedColumns = dict(IMPORT_ERRORS.c)

_HAS_ID = IMPORT_RUNS.c.id == bindparam(WANTED)


def _readable(actor: Principal) -> list[str]:
    """Return the kinds whose imports an actor may read."""
    return [
        kind
        for kind, code in READS.items()
        if actor.has_right(code) and (actor.resources is None or kind in actor.resources)
    ]


@dataclass(frozen=True, kw_only=True)
class ImportQuery(ListQuery):
    """What a list of imports, or of the lines that failed, may ask (people 7)."""

    status: str | None = None
    after: int | None = None


def list_imports(actor: Principal, query: ImportQuery, columns: Columns) -> Page:
    """Return a page of the imports of the kinds that the actor may read, newest first.

    Imports of several kinds, of commands, are listed for an actor who may read all kinds.

    Raises:
        ShopError: the capability is missing for every kind.
    """
    if not any(map(actor.has_right, READS.values())):
        raise ShopError("shop_api_user_cannot_import")
    kinds = _readable(actor)
    conditions: list[ColumnElement[bool]] = [IMPORT_RUNS.c.kind.in_(kinds)]
    if len(kinds) == len(READS):
        conditions = [or_(*conditions, IMPORT_RUNS.c.kind.is_(None))]
    if query.status is not None:
        conditions.append(COLUMNS["status"] == query.status)
    matching = Matching(IMPORT_RUNS.c.id, conditions)
    newest_first = replace(query, order="desc")
    return fetch_page(columns, matching, newest_first, key=IMPORT_RUNS.c.id, may_read=True)


def get_import(actor: Principal, import_id: int, columns: Columns) -> Row:
    """Return the import with this ID, or raise ShopError if it or a right is missing."""
    found = select_where((*columns, IMPORT_RUNS.c.kind), IMPORT_RUNS.c.id, _HAS_ID)
    rows: Sequence[ReadRow] = fetch(found, {WANTED: import_id})
    if not rows:
        raise ShopError("shop_api_invalid_import_id")
    kind: str | None = rows[0][len(columns)]
    kinds = [kind] if kind and kind in READS else list(READS)
    require_resources(actor, *kinds)
    if not all(actor.has_right(READS[each]) for each in kinds):
        raise ShopError("shop_api_user_cannot_import")
    return rows[0]


def list_errors(actor: Principal, import_id: int, query: ImportQuery, columns: Columns) -> FeedPage:
    """Return the lines of an import that failed after a line, in their order.

    Raises:
        ShopError: the import or a right is missing.
    """
    get_import(actor, import_id, ())
    size = query.limit or default_page_size()
    printed = [as_printed(column).label(f"column_{i}") for i, column in enumerate(columns)]
    found = (
        select(*printed, IMPORT_ERRORS.c.line)
        .where(
            IMPORT_ERRORS.c.import_id == bindparam("import", type_=BigInteger),
            IMPORT_ERRORS.c.line > bindparam("after", type_=BigInteger),
        )
        .order_by(IMPORT_ERRORS.c.line)
        .limit(bindparam("size", type_=BigInteger))
    )
    given = {"import": import_id, "after": query.after or 0, "size": size + 1}
    rows = fetch(found, given)
    return FeedPage(rows[:size], has_more=len(rows) > size)


def is_late(import_id: int, patience: timedelta) -> bool:
    """Return whether no worker has begun an import for a time."""
    waits = IMPORT_RUNS.c.claimed_at.is_(None), IMPORT_RUNS.c.progress_at < now() - patience
    return bool(fetch(select(IMPORT_RUNS.c.id).where(IMPORT_RUNS.c.id == import_id, *waits)))
