"""The rules for writing customers: create, update, delete (spec 4.2, 4.3; decisions 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import bindparam, delete, insert, or_, select
from sqlalchemy.orm import Session

from app.auth.principal_cache import note_revocation
from app.auth.principals import Capability, Principal
from app.catalog import Change
from app.db.functions import is_one_of
from app.db.records import write_records
from app.db.search import comparable
from app.db.session import call_after_commit, now, run_in_transaction
from app.db.types import IdList, TextList
from app.emails import is_email, lower_domain, sanitize_email
from app.errors import ShopError
from app.models.tables import USER_ROLES, USERS
from app.models.user import role_of, with_normalized
from app.numbers import INT64_MAX
from app.services.bulk import BulkItem, Precondition, WriteResult, single_result
from app.services.change_notifications import notify, write_items
from app.services.customer_queries import require_positive
from app.services.customer_records import (
    NEW_ROLE,
    WRITABLE,
    check_precondition,
    columns_of,
    new_account,
    public_account,
    with_computed,
    with_password_hashes,
)
from app.services.event_erasure import erase_customer
from app.services.user_roles import capabilities_by_user
from app.services.usernames import first_usernames, free_username
from app.services.webhook_states import disable_webhooks_of
from app.text import is_username

Record = dict[str, Any]

_NAMED = (
    select(*WRITABLE)
    .where(
        or_(
            is_one_of(USERS.c.id, bindparam("ids", type_=IdList)),
            is_one_of(USERS.c.email_normalized, bindparam("emails", type_=TextList)),
            is_one_of(USERS.c.username_normalized, bindparam("usernames", type_=TextList)),
        )
    )
    .order_by(USERS.c.id)  # the same order everywhere avoids deadlocks
    .with_for_update()
)


def save_customers(actor: Principal, items: Sequence[BulkItem]) -> list[WriteResult]:
    """Create and update customers in the given order, in one transaction (spec 4.3).

    Returns:
        One result per item, in order: the customer by the names of COLUMNS, or an error.
    """
    may_write = actor.can(Capability.CREATE_USERS) or actor.can(Capability.EDIT_USERS)
    prepared = with_password_hashes(items) if may_write else items

    def work(session: Session) -> list[WriteResult]:
        return write_items(session, "customer", prepared, partial(_save, session, actor))

    return run_in_transaction(work)


def create_customer(actor: Principal, data: Mapping[str, Any]) -> Record:
    """Create a customer and return it by the names of COLUMNS."""
    return single_result(save_customers(actor, [BulkItem(None, data)]))


def update_customer(
    actor: Principal,
    customer_id: int,
    data: Mapping[str, Any],
    precondition: Precondition | None = None,
) -> Record:
    """Update the supplied fields of a customer and return it by the names of COLUMNS.

    Raises:
        ShopError: always with status 400, even for an invalid ID (spec 4.2, update rule 2), except
            for the status 412 of ``precondition``.
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
    """Delete a user permanently. Its orders become guest orders (spec 7.2, decisions 5).

    Raises:
        ShopError: no user has the ID, a capability is missing, the user is the actor, or the
            precondition fails.
    """
    require_positive(customer_id)
    this = USERS.c.id == customer_id

    def work(session: Session) -> None:
        customer = session.execute(select(USERS).where(this).with_for_update()).first()
        if customer is None:
            raise ShopError("shop_api_invalid_customer")
        held = capabilities_by_user(session, [customer_id]).get(customer_id, frozenset())
        actor.require("shop_api_user_cannot_delete_customer", Capability.DELETE_USERS, *held)
        if customer_id == actor.user_id:
            raise ShopError("shop_api_cannot_delete_customer")
        before = dict(customer._mapping)
        check_precondition(session, precondition, before)
        disable_webhooks_of(session, [customer_id])
        session.execute(delete(USERS).where(this))
        # After the deletion, which waits for concurrent orders of the customer and their events.
        erase_customer(session, customer_id)
        notify(session, actor, [Change("customer.deleted", public_account(before), None)])
        call_after_commit(session, note_revocation)  # its API keys are deleted with the account

    run_in_transaction(work)


def _save(session: Session, actor: Principal, items: Sequence[BulkItem]) -> list[WriteResult]:
    """Check the items one by one, then write all accepted items.

    Each check takes earlier items into account: the e-mail addresses and usernames that they use
    are taken, and the e-mail addresses that they no longer use are available.
    """
    accounts = _lock(session, items)
    held = capabilities_by_user(session, [item.id or 0 for item in items])
    customers = {account["id"]: account for account in accounts}
    emails: dict[str, int | None] = {
        account["email_normalized"]: account["id"] for account in accounts if account["email"]
    }
    usernames = {account["username_normalized"] for account in accounts}
    written: list[WriteResult] = []
    created: list[Record] = []
    updated: list[Record] = []
    befores: list[Record | None] = []  # one per item, None for a new account
    for item in items:
        before = None
        try:
            if item.id is not None:
                before = customers.get(item.id)
                after = _prepare_update(actor, before, item.data, emails, held)
                check_precondition(session, item.precondition, before)
                if before and item.data:
                    emails.pop(before["email_normalized"], None)
                    updated.append(after)
                customers[item.id] = after
            else:
                after = _prepare_create(session, actor, item.data, emails, usernames)
                usernames.add(after["username_normalized"])
                created.append(after)
            if after["email_normalized"]:
                emails[after["email_normalized"]] = item.id
            written.append(after)
        except ShopError as error:
            written.append(error)
        befores.append(before)
    write_records(session, USERS, created=created, updated=updated, key="username_normalized")
    if created:
        roles = [role_of(account["id"], NEW_ROLE, account["created_at"]) for account in created]
        session.execute(insert(USER_ROLES), roles)
    results = with_computed(session, written)
    changes = [
        Change(
            "customer.updated" if before else "customer.created",
            before and public_account(before),
            public_account(result),
        )
        for before, result in zip(befores, results, strict=True)
        if not isinstance(result, ShopError)
    ]
    notify(session, actor, changes)
    return results


def _lock(session: Session, items: Sequence[BulkItem]) -> list[Record]:
    """Return the accounts that the items name or conflict with, locked until the commit."""
    ids = [item.id for item in items if 0 < (item.id or 0) <= INT64_MAX]
    given = [item.data.get("email", "") for item in items]
    emails = {comparable(address) for address in given}
    emails |= {comparable(sanitize_email(address)) for address in given}
    usernames = {comparable(item.data.get("username", "")) for item in items}
    for item in items:
        if item.id is None and not item.data.get("username"):
            usernames |= first_usernames(item.data.get("email", ""))
    named = {"ids": ids, "emails": emails - {""}, "usernames": usernames - {""}}
    return [dict(row) for row in session.execute(_NAMED, named).mappings()]


def _prepare_create(
    session: Session,
    actor: Principal,
    data: Mapping[str, Any],
    emails: Mapping[str, int | None],
    usernames: set[str],
) -> Record:
    """Return the new account (spec 4.2, create rules in their order)."""
    actor.require("shop_api_user_cannot_create_customer", Capability.CREATE_USERS)
    if "email" not in data:
        raise ShopError("shop_api_missing_customer_email")
    if not is_email(data["email"]):
        raise ShopError("registration-error-invalid-email")
    email = lower_domain(data["email"])
    if comparable(email) in emails:
        raise ShopError("registration-error-email-exists")
    username = data.get("username") or free_username(session, email, usernames)
    if not is_username(username):
        raise ShopError("registration-error-invalid-username")
    if comparable(username) in usernames:
        raise ShopError("registration-error-username-exists")
    return new_account(data, username, email)


def _prepare_update(
    actor: Principal,
    customer: Record | None,
    data: Mapping[str, Any],
    emails: Mapping[str, int | None],
    held: Mapping[int, frozenset[Capability]],
) -> Record:
    """Return the updated account (spec 4.2, update rules; decisions 2 and 5)."""
    if customer is None:
        raise ShopError("shop_api_invalid_customer")
    # To prevent privilege escalation, the actor needs all capabilities of the account.
    theirs = held.get(customer["id"], frozenset())
    actor.require("shop_api_user_cannot_edit_customer", Capability.EDIT_USERS, *theirs)
    if not data:
        return customer
    after = {**customer, **columns_of(data), "updated_at": now()}
    if data.get("email") == "":
        after["email"] = ""
    email = sanitize_email(data.get("email", ""))
    # An invalid address, or the address of another account, is ignored without an error.
    if email and emails.get(comparable(email), customer["id"]) == customer["id"]:
        after["email"] = email
    return with_normalized(after)
