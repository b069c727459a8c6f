"""Normalizing stored texts that an earlier version normalized in another way.

``shop-api db upgrade`` calls ``normalize`` after the migrations. It is not a migration, because the
previous version can still write such texts while the upgrade runs. Only orders are all read,
because their searches find more since version 3. Few rows are locked at the same time.

The codes in coupon lines of orders, refusals and events are not changed: they record what was used.
Those of redemptions are, because lists of redemptions are filtered by them.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from sqlalchemy import ColumnElement, Table, and_, bindparam, func, or_, select, text, true, update
from sqlalchemy.orm import Session

from app.conversions.numbers import MAX_COUNT
from app.conversions.text import CODE_MAX_LENGTH, coupon_code
from app.db.read_pool import fetch
from app.db.records import Record, row_dicts
from app.db.search import SEPARATOR, email_key, search_text
from app.db.session import run_in_transaction, run_statement
from app.db.sql.functions import has_unicode
from app.models import CAMPAIGNS, COUPONS, ORDERS, REDEMPTIONS, USERS
from app.models.coupon import COUNTS, CouponRow, CouponStatus
from app.models.user import with_normalized
from app.services.campaigns.writes import with_search_text
from app.services.common.erased import ERASED
from app.services.coupons.writes import edited_now
from app.services.orders.columns import derived_columns, guest_key

VERSION = 3
"""Version of all normalizations. Increase it when one of them changes."""

NORMALIZED = text("SELECT normalized_texts FROM alembic_version")
"""The version of the normalizations of the texts in a database; 0 before the first one."""

SET_NORMALIZED = text("UPDATE alembic_version SET normalized_texts = :version")

WINDOW = 5_000
"""Rows of a table that a select examines, so that it is far from the time limit of statements."""

TOGETHER = 100
"""Rows whose search columns are written in one transaction."""

_PUBLISHED = COUPONS.c.status == CouponStatus.PUBLISHED


def normalize(*, again: bool = False) -> list[str]:
    """Normalize coupon codes, keys of e-mail addresses and search columns.

    All rows are read once per version of the normalizations, which the database records.

    Args:
        again: whether to read them again, because a previous version has written texts since.

    Returns:
        A sentence for each coupon that got another code, and for each account that has the e-mail
        address of another account in another form.
    """
    if not again and fetch(NORMALIZED)[0][0] >= VERSION:
        return []
    changed = normalize_coupons()
    changed += map(_normalize_account, _accounts())
    _normalize_searches()
    is_normalized = ORDERS.c.billing_email_normalized.is_not(None)
    concerned = or_(is_normalized, _is_international(ORDERS.c.billing_email))
    for row in _rows(ORDERS, concerned):
        key = guest_key(row["billing_email"])
        _store(ORDERS, row, "billing_email_normalized", key, source="billing_email")
    for row in _rows(REDEMPTIONS, _is_international(REDEMPTIONS.c.email)):
        if not row["email_normalized"].startswith(ERASED):
            _store(REDEMPTIONS, row, "email_normalized", email_key(row["email"]))
    run_statement(SET_NORMALIZED.bindparams(version=VERSION))
    return [message for message in changed if message]


def _normalize_searches() -> None:
    """Store the search columns as ``searchable`` returns texts now."""

    def of_coupon(row: Record) -> Record:
        return {"search_text": search_text(row["code"], row["description"])}

    _store_search(COUPONS, _is_unsearchable(COUPONS.c.search_text), of_coupon)
    _store_search(USERS, _is_unsearchable(USERS.c.search_text), with_normalized)
    _store_search(CAMPAIGNS, _is_unsearchable(CAMPAIGNS.c.search_text), with_search_text)
    _store_search(ORDERS, true(), derived_columns)


def normalize_coupons() -> list[str]:
    """Normalize the codes of coupons and of redemptions, and reduce counts to MAX_COUNT.

    Returns:
        A sentence for each change of a coupon.
    """
    changed = [run_in_transaction(partial(_rename, coupon_id=id_)) for id_, _ in unstable_codes()]
    for row in _rows(REDEMPTIONS, _may_change(REDEMPTIONS.c.code)):
        # An order of an earlier version can have both forms of a code.
        of_order = select(ORDERS.c.coupon_lines).where(ORDERS.c.id == row["order_id"])
        used = {line["code"] for found in fetch(of_order) for line in found.coupon_lines}
        if (code := coupon_code(row["code"])) and code not in used:
            _store(REDEMPTIONS, row, "code", code)
    is_too_large = or_(*(COUPONS.c[name] > MAX_COUNT for name in COUNTS))
    for row in _rows(COUPONS, is_too_large):
        for name in COUNTS:
            if row[name] > MAX_COUNT:
                _store(COUPONS, row, name, MAX_COUNT)
                changed.append(
                    f"Coupon {row['id']}: {name} is {MAX_COUNT} instead of {row[name]}, because it "
                    "has more than 15 digits."
                )
    return changed


def unstable_codes() -> Iterator[tuple[int, str]]:
    """Yield the ID and the code of each coupon whose code is not normalized, the oldest first."""
    for row in _rows(COUPONS, _may_change(COUPONS.c.code)):
        if coupon_code(row["code"]) != row["code"]:
            yield row["id"], row["code"]


def accounts_with_one_address() -> Iterator[str]:
    """Yield a sentence for each account whose e-mail address another account has, too."""
    for row in _accounts():
        if row["email_normalized"] != (key := with_normalized(row)["email_normalized"]):
            taken = select(USERS.c.id).where(USERS.c.email_normalized == key)
            for other in fetch(taken):
                yield _same_address(row, other.id)


def _rows(table: Table, condition: ColumnElement[bool]) -> Iterator[Record]:
    """Yield the rows of a table with a condition by their IDs, one window after the other."""
    after: int | None = 0
    while after is not None:
        window = select(table.c.id).where(table.c.id > after).order_by(table.c.id)
        last = fetch(window.offset(WINDOW - 1).limit(1))
        is_within = [table.c.id > after, *(table.c.id <= row.id for row in last)]
        found = select(table).where(condition, *is_within).order_by(table.c.id)
        yield from row_dicts(fetch(found))
        after = last[0].id if last else None


def _may_change(code: ColumnElement[str]) -> ColumnElement[bool]:
    return or_(has_unicode(code), code.contains("&"))


def _is_international(email: ColumnElement[str]) -> ColumnElement[bool]:
    """Return whether an address has characters beyond ASCII, or a label of a domain in punycode."""
    return or_(has_unicode(email), func.lower(email).contains("xn--"))


def _is_unsearchable(column: ColumnElement[str]) -> ColumnElement[bool]:
    """Return whether a search column can contain what ``searchable`` removes or replaces."""
    return or_(has_unicode(func.replace(column, SEPARATOR, "")), column.contains("xn--"))


def _accounts() -> Iterator[Record]:
    """Yield the accounts whose key of the e-mail address may change."""
    return _rows(USERS, _is_international(USERS.c.email_normalized))


def _rename(session: Session, *, coupon_id: int) -> str:
    """Normalize the code of a coupon. If two meet, the older coupon keeps the code."""
    (row,) = _locked(session, COUPONS.c.id == coupon_id) or (None,)
    if row is None or (code := coupon_code(row["code"])) == row["code"]:
        return ""
    before, others = row["code"], []
    if row["status"] == CouponStatus.PUBLISHED:
        others = _locked(session, and_(COUPONS.c.code == code, _PUBLISHED))
    for other in others:
        if (other["created_at"], other["id"]) > (row["created_at"], row["id"]):
            renamed = _set_code(session, other, _with_id(code, other["id"]))
            _set_code(session, row, code)
            return (
                f"Coupon {row['id']} has the code {code!r} now, and coupon {other['id']}, which "
                f"had this code and is newer, has the code {renamed!r}."
            )
    is_free = code and not others
    renamed = _set_code(session, row, code if is_free else _with_id(code, coupon_id))
    reason = "" if is_free else f", because coupon {others[0]['id']} is older" if others else ""
    return f"Coupon {coupon_id} has the code {renamed!r} instead of {before!r}{reason}."


def _locked(session: Session, condition: ColumnElement[bool]) -> list[CouponRow]:
    found = select(COUPONS).where(condition).order_by(COUPONS.c.id).with_for_update()
    rows: list[CouponRow] = row_dicts(session.execute(found))
    return rows


def _with_id(code: str, coupon_id: int) -> str:
    suffix = f"~{coupon_id}"
    return code[: CODE_MAX_LENGTH - len(suffix)].rstrip() + suffix


def _set_code(session: Session, row: CouponRow, code: str) -> str:
    texts = search_text(code, row["description"])
    changes = {"code": code, "search_text": texts, **edited_now()}
    session.execute(update(COUPONS).where(COUPONS.c.id == row["id"]).values(changes))
    return code


def _normalize_account(row: Record) -> str:
    """Store the derived columns of an account, except for a key that another account has."""
    normalized, other = with_normalized(row), None
    key = normalized["email_normalized"]
    if key != row["email_normalized"]:
        other = next(iter(fetch(select(USERS.c.id).where(USERS.c.email_normalized == key))), None)
    names = ["name_normalized", "search_text", *(["email_normalized"] if other is None else [])]
    for name in names:
        _store(USERS, row, name, normalized[name])
    return _same_address(row, other.id) if other else ""


def _same_address(row: Record, other: int) -> str:
    return (
        f"Account {row['id']} has the e-mail address {row['email']!r}, which account {other} has "
        "in another form. Lookups find the other account. Change one of them."
    )


def _store(
    table: Table, row: Record, name: str, value: str | int | None, source: str = "id"
) -> None:
    """Set a derived column, unless it or its source has changed."""
    if value == row[name]:
        return
    unchanged = (table.c[each] == row[each] for each in ("id", source, name))
    change = update(table).where(*unchanged).values({name: value})
    run_in_transaction(lambda session: session.execute(change))


def _store_search(
    table: Table, condition: ColumnElement[bool], derived: Callable[[Record], Record]
) -> None:
    """Set the search column of the rows with a condition, unless it has changed."""
    changes = (
        {"row_id": row["id"], "before": before, "after": after}
        for row in _rows(table, condition)
        if (after := derived(row)["search_text"]) != (before := row["search_text"])
    )
    is_unchanged = table.c.id == bindparam("row_id"), table.c.search_text == bindparam("before")
    change = update(table).where(*is_unchanged).values(search_text=bindparam("after"))

    def write(session: Session, part: list[dict[str, object]]) -> None:
        session.execute(change, part)

    while part := list(islice(changes, TOGETHER)):
        run_in_transaction(partial(write, part=part))
