"""The rules for writing customers: creation, edits, deletion (spec 4.2, 4.3; decisions 5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from flask import current_app
from sqlalchemy import (
    delete,
    insert,
    or_,
    select,
)
from sqlalchemy.orm import Session

from app.auth.passwords import hash_passwords
from app.auth.principals import Capability, Principal, capabilities_of, note_revocation
from app.db.search import comparable
from app.db.session import now, run_in_transaction, write_records
from app.emails import is_email, lower_domain, sanitize_email, username_from_email
from app.errors import ShopError
from app.models.address import ADDRESS_COLUMNS
from app.models.user import role_of, with_normalized
from app.numbers import INT64_MAX
from app.services.bulk import BulkItem, Precondition, WriteResult, single_result
from app.services.customer_queries import require_positive
from app.services.customer_statistics import COLUMNS, COMPUTED, ROLES, TABLE
from app.text import is_username

Record = dict[str, Any]

NEW_ROLE = "customer"
BLANK = {"password_hash": None} | dict.fromkeys(("first_name", "last_name", *ADDRESS_COLUMNS), "")
# How many generated usernames are looked up along with everything else; more are hardly needed.
_LOCKED_NAMES = 9
# How many are looked up in one statement beyond them, and up to which power of two.
_LOOKED_UP = 40
_DOUBLINGS = 30


def save_customers(actor: Principal, items: Sequence[BulkItem]) -> list[WriteResult]:
    """Create and edit customers, in their order, in one transaction (spec 4.3).

    Returns:
        For each draft the customer by the names of COLUMNS, or the error why nothing was written
        of it.
    """
    may_write = actor.can(Capability.CREATE_USERS) or actor.can(Capability.EDIT_USERS)
    prepared = _with_hashes(items) if may_write else items
    return run_in_transaction(lambda session: _save(session, actor, prepared))


def create_customer(actor: Principal, data: Mapping[str, Any]) -> Record:
    """Create one customer; return it by the names of COLUMNS."""
    return single_result(save_customers(actor, [BulkItem(None, data)]))


def update_customer(
    actor: Principal,
    customer_id: int,
    data: Mapping[str, Any],
    precondition: Precondition | None = None,
) -> Record:
    """Change the supplied fields of one customer; return it by the names of COLUMNS.

    Raises:
        ShopError: with status 400, also for an id that fails its checks (spec 4.2, edit rule 2);
            what ``precondition`` raises keeps its own.
    """
    if customer_id < 1:
        raise ShopError("shop_api_invalid_customer_id").with_status(400)
    try:
        return single_result(save_customers(actor, [BulkItem(customer_id, data, precondition)]))
    except ShopError as error:
        raise (error if error.status == 412 else error.with_status(400)) from None


def delete_customer(
    actor: Principal, customer_id: int, precondition: Precondition | None = None
) -> None:
    """Remove a user for good; its orders stay, as a guest's (spec 7.2, decisions 5)."""
    require_positive(customer_id)
    this = TABLE.c.id == customer_id

    def work(session: Session) -> None:
        customer = session.execute(select(TABLE).where(this).with_for_update()).first()
        if customer is None:
            raise ShopError("shop_api_invalid_customer")
        held = _capabilities(session, [customer_id]).get(customer_id, frozenset())
        actor.require("shop_api_user_cannot_delete_customer", Capability.DELETE_USERS, *held)
        if customer_id == actor.user_id:
            raise ShopError("shop_api_cannot_delete_customer")
        _check(session, precondition, dict(customer._mapping))
        session.execute(delete(TABLE).where(this))

    run_in_transaction(work)
    note_revocation()  # the account's keys are deleted with it


def _with_hashes(items: Sequence[BulkItem]) -> list[BulkItem]:
    """Replace passwords by their hashes, before a transaction begins: hashing takes its time."""
    given = [position for position, item in enumerate(items) if item.data.get("password")]
    hashes = hash_passwords([items[position].data["password"] for position in given])
    prepared = [
        replace(item, data={k: v for k, v in item.data.items() if k != "password"})
        for item in items
    ]
    for position, hashed in zip(given, hashes, strict=True):
        data = {**prepared[position].data, "password_hash": hashed}
        prepared[position] = replace(prepared[position], data=data)
    return prepared


def _save(session: Session, actor: Principal, items: Sequence[BulkItem]) -> list[WriteResult]:
    """Decide about the drafts one after the other, then write what was accepted.

    Each decision sees what the earlier ones will have written: an address or a username that an
    earlier item took is taken, an address that it gave up is free.
    """
    accounts = _lock(session, items)
    held = _capabilities(session, [item.id or 0 for item in items])
    customers = {account["id"]: account for account in accounts}
    emails: dict[str, int | None] = {
        account["email_normalized"]: account["id"] for account in accounts if account["email"]
    }
    usernames = {account["username_normalized"] for account in accounts}
    outcomes: list[WriteResult] = []
    created: list[Record] = []
    edited: list[Record] = []
    for item in items:
        try:
            if item.id is not None:
                before = customers.get(item.id)
                after = _prepare_update(actor, before, item.data, emails, held)
                _check(session, item.precondition, before)
                if before and item.data:
                    emails.pop(before["email_normalized"], None)
                    edited.append(after)
                customers[item.id] = after
            else:
                after = _prepare_create(session, actor, item.data, emails, usernames)
                usernames.add(after["username_normalized"])
                created.append(after)
            if after["email_normalized"]:
                emails[after["email_normalized"]] = item.id
            outcomes.append(after)
        except ShopError as error:
            outcomes.append(error)
    write_records(session, TABLE, created=created, edited=edited, key="username_normalized")
    if created:
        roles = [role_of(account["id"], NEW_ROLE, account["created_at"]) for account in created]
        session.execute(insert(ROLES), roles)
    return _with_computed(session, outcomes)


def _lock(session: Session, items: Sequence[BulkItem]) -> list[Record]:
    """Return the accounts that the drafts name or may clash with, held until the commit."""
    ids = [item.id for item in items if 0 < (item.id or 0) <= INT64_MAX]
    given = [item.data.get("email", "") for item in items]
    emails = {comparable(address) for address in given}
    emails |= {comparable(sanitize_email(address)) for address in given}
    usernames = {comparable(item.data.get("username", "")) for item in items}
    for item in items:
        if item.id is None and not item.data.get("username"):
            usernames |= _generated(item.data.get("email", ""), range(1, _LOCKED_NAMES + 1))
    statement = (
        select(TABLE)
        .where(
            or_(
                TABLE.c.id.in_(ids),
                TABLE.c.email_normalized.in_(emails - {""}),
                TABLE.c.username_normalized.in_(usernames - {""}),
            )
        )
        .order_by(TABLE.c.id)  # everyone locks in one order
        .with_for_update()
    )
    return [dict(row) for row in session.execute(statement).mappings()]


def _prepare_create(
    session: Session,
    actor: Principal,
    data: Mapping[str, Any],
    emails: Mapping[str, int | None],
    usernames: set[str],
) -> Record:
    """Return the account that shall be created (spec 4.2, create rules in their order)."""
    actor.require("shop_api_user_cannot_create_customer", Capability.CREATE_USERS)
    if "email" not in data:
        raise ShopError("shop_api_missing_customer_email")
    if not is_email(data["email"]):
        raise ShopError("registration-error-invalid-email")
    email = lower_domain(data["email"])
    if comparable(email) in emails:
        raise ShopError("registration-error-email-exists")
    username = data.get("username") or _free_username(session, email, usernames)
    if not is_username(username):
        raise ShopError("registration-error-invalid-username")
    if comparable(username) in usernames:
        raise ShopError("registration-error-username-exists")
    moment = now()
    return with_normalized(
        {
            **BLANK,
            **_columns(data),
            "username": username,
            "email": email,
            "created_at": moment,
            "updated_at": moment,
        }
    )


def _prepare_update(
    actor: Principal,
    customer: Record | None,
    data: Mapping[str, Any],
    emails: Mapping[str, int | None],
    held: Mapping[int, frozenset[Capability]],
) -> Record:
    """Return the account as it shall become (spec 4.2, edit rules; decisions 2 and 5)."""
    if customer is None:
        raise ShopError("shop_api_invalid_customer")
    # No escalation: whoever edits an account must hold whatever it holds.
    more = held.get(customer["id"], frozenset())
    actor.require("shop_api_user_cannot_edit_customer", Capability.EDIT_USERS, *more)
    if not data:
        return customer
    after = {**customer, **_columns(data), "updated_at": now()}
    if data.get("email") == "":
        after["email"] = ""
    email = sanitize_email(data.get("email", ""))
    # An address that is none, or that another account has, changes nothing and is no error.
    if email and emails.get(comparable(email), customer["id"]) == customer["id"]:
        after["email"] = email
    return with_normalized(after)


def _check(session: Session, precondition: Precondition | None, account: Record | None) -> None:
    """Show an account to a precondition, if there is one, as a read would show it."""
    if precondition and account:
        precondition(single_result(_with_computed(session, [account])))


def _columns(data: Mapping[str, Any]) -> Record:
    """Return the columns of supplied names, password hash and addresses."""
    names = ("first_name", "last_name", "password_hash")
    columns = {name: data[name] for name in names if name in data}
    for kind in ("billing", "shipping"):
        parts = data.get(f"{kind}_address", {})
        columns |= {f"{kind}_{part}": value for part, value in parts.items()}
    return columns


def _with_computed(session: Session, outcomes: Sequence[WriteResult]) -> list[WriteResult]:
    """Add what a customer is made of beside its row, read for all at once."""
    ids = {outcome["id"] for outcome in outcomes if not isinstance(outcome, ShopError)}
    if not ids:
        return list(outcomes)
    statement = select(TABLE.c.id, *(COLUMNS[name].label(name) for name in COMPUTED)).where(
        TABLE.c.id.in_(ids)
    )
    computed = {row["id"]: dict(row) for row in session.execute(statement).mappings()}
    # The avatar belongs to the address that this outcome shows, also when a later item changed it.
    avatars = current_app.config["SHOP_GRAVATAR"]
    return [
        outcome
        if isinstance(outcome, ShopError)
        else {
            **outcome,
            **computed[outcome["id"]],
            "avatar_url": outcome["email"] if avatars else None,
        }
        for outcome in outcomes
    ]


def _free_username(session: Session, email: str, taken: set[str]) -> str:
    """Return a username made of an address that nobody has (decisions 5).

    The first numbers are tried one after the other. Beyond them, a free number whose predecessor is
    taken is searched by halving, so that the cost hardly depends on how many are taken: a few
    statements, each of which looks up as many names.

    Args:
        taken: the normalized usernames that are known to be taken, also by this transaction; what
            is looked up is added.
    """

    def is_taken(number: int) -> bool:
        return comparable(_numbered(email, number)) in taken

    for number in range(1, _LOCKED_NAMES + 1):
        if not is_taken(number):
            return _numbered(email, number)
    low, high = _LOCKED_NAMES, _LOCKED_NAMES * 2**_DOUBLINGS
    numbers = [_LOCKED_NAMES * 2**power for power in range(1, _DOUBLINGS + 1)]
    while high - low > 1:
        taken |= set(_existing(session, _generated(email, numbers)))
        for number in numbers:
            if not is_taken(number):
                high = number
                break
            low = number
        step = -(-(high - low) // (_LOOKED_UP + 1))
        numbers = list(range(low + step, high, step))
    return _numbered(email, high)


def _existing(session: Session, names: Iterable[str]) -> Iterable[str]:
    return session.scalars(
        select(TABLE.c.username_normalized).where(TABLE.c.username_normalized.in_(names))
    )


def _generated(email: str, numbers: Iterable[int]) -> set[str]:
    return {comparable(_numbered(email, number)) for number in numbers}


def _numbered(email: str, number: int) -> str:
    """Return a numbered username made of an address: john, john2, john3 and so on."""
    local = username_from_email(email)[:50] or NEW_ROLE
    return local if number == 1 else f"{local}{number}"


def _capabilities(session: Session, ids: Sequence[int]) -> dict[int, frozenset[Capability]]:
    """Return what each of some users may do."""
    wanted = [id_ for id_ in ids if 0 < id_ <= INT64_MAX]
    roles: dict[int, list[str]] = {}
    for user_id, role in session.execute(
        select(ROLES.c.user_id, ROLES.c.role).where(ROLES.c.user_id.in_(wanted))
    ):
        roles.setdefault(user_id, []).append(role)
    return {user_id: capabilities_of(names) for user_id, names in roles.items()}
