"""The rules for writing customers: create, update, delete (spec 4.2, 4.3; decisions 5)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from sqlalchemy import Select, bindparam, delete, insert, or_, select
from sqlalchemy.orm import Session

from app.auth.principals import Capability, Principal
from app.catalog import Change
from app.conversions.emails import (
    comparable_email,
    is_email,
    lower_domain,
    sanitize_email,
    username_from_email,
)
from app.conversions.numbers import INT64_MAX
from app.conversions.text import USERNAME_MAX_LENGTH, comparable, is_username
from app.db.records import Record, row_dicts, with_columns, write_records
from app.db.session import now, reading_session, run_in_transaction
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList, TextList
from app.errors import ShopError
from app.models import USER_ROLES, USER_TAGS, USERS
from app.models.user import ON_REQUEST, UserRow, role_of, with_normalized
from app.services.common.bulk import (
    BulkItem,
    Data,
    Earlier,
    Precondition,
    WriteResult,
    Writes,
    save_items,
    single_result,
)
from app.services.common.metadata import CUSTOMER, WRITTEN
from app.services.common.metadata_changes import MetadataChanges, count_change, given_to
from app.services.common.roles import capabilities_by_user
from app.services.customers import columns
from app.services.customers.queries import require_positive
from app.services.customers.removal import remove_account
from app.services.customers.traces import erase_customer
from app.services.events.hooks import notify

_UNLOCKED = (
    select(*columns.WRITABLE)
    .where(
        or_(
            is_one_of(USERS.c.id, bindparam("ids", type_=IdList)),
            is_one_of(USERS.c.email_normalized, bindparam("emails", type_=TextList)),
            is_one_of(USERS.c.username_normalized, bindparam("usernames", type_=TextList)),
        )
    )
    .order_by(USERS.c.id)  # the same order everywhere avoids deadlocks
)
_NAMED = _UNLOCKED.with_for_update()


def save_customers(actor: Principal, items: Sequence[BulkItem]) -> list[WriteResult]:
    """Create and update customers in the given order, in one transaction (spec 4.3).

    Returns:
        One result per item, in order: the customer by the names of COLUMNS, or an error.
    """
    may_write = actor.can(Capability.CREATE_USERS) or actor.can(Capability.EDIT_USERS)
    prepared = columns.with_password_hashes(items) if may_write else items

    return save_items(_CustomerWrites, actor, prepared, _lock)


def check_customers(
    actor: Principal, items: Sequence[BulkItem], earlier: Earlier
) -> list[WriteResult]:
    """Return what ``save_customers`` would return, without IDs of new accounts. Nothing is written.

    Passwords are not hashed.

    Args:
        earlier: normalized e-mail addresses and usernames of accounts that earlier items would
            create. Those of the items are added.
    """
    with reading_session() as session:
        writes = _writes(session, actor, items, _UNLOCKED)
        named = _names_of(items)
        writes.emails |= {each: None for each in named["emails"] if ("email", each) in earlier}
        writes.usernames |= {each for each in named["usernames"] if ("username", each) in earlier}
        results = writes.prepare(items)
    for each in writes.created:
        earlier.add(("email", each["email_normalized"]))
        earlier.add(("username", each["username_normalized"]))
    return results


def create_customer(actor: Principal, data: Mapping[str, object]) -> Record:
    """Create a customer and return it by the names of COLUMNS."""
    return single_result(save_customers(actor, [BulkItem(None, data)]))


def update_customer(
    actor: Principal,
    customer_id: int,
    data: Mapping[str, object],
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
        found: list[UserRow] = row_dicts(
            session.execute(select(USERS).where(this).with_for_update())
        )
        if not found:
            raise ShopError("shop_api_invalid_customer")
        held = capabilities_by_user(session, [customer_id]).get(customer_id, frozenset())
        actor.require("shop_api_user_cannot_delete_customer", *held)
        if customer_id == actor.user_id:
            raise ShopError("shop_api_cannot_delete_customer")
        (before,) = found
        columns.check_precondition(session, precondition, before)
        # The lock of the account has waited for concurrent orders of the customer and their events.
        erase_customer(session, before)
        remove_account(session, actor, customer_id)
        notify(session, actor, [Change("customer.deleted", columns.public_account(before), None)])

    run_in_transaction(work)


@dataclass(slots=True, kw_only=True)
class _CustomerWrites(Writes[UserRow]):
    """The writes of customers in one transaction.

    Attributes:
        emails: the customer that has each e-mail address of the request, or None for a new one. An
            item that uses an address takes it, and an item that no longer uses its address leaves
            it.
        usernames: the usernames that are taken.
        held: the capabilities of the stored customers that have a role.
        metadata: the changes of metadata.
        tagged: accounts whose tags are written.
    """

    resource = "customer"

    emails: dict[str, int | None]
    usernames: set[str]
    held: Mapping[int, frozenset[Capability]]
    metadata: MetadataChanges
    tagged: list[Record] = field(default_factory=list)

    def create(self, item: BulkItem) -> Record:
        """Return the new account (spec 4.2, create rules in their order)."""
        data = item.data
        self.actor.require("shop_api_user_cannot_create_customer")
        if "email" not in data:
            raise ShopError("shop_api_missing_customer_email")
        if not is_email(data["email"]):
            raise ShopError("registration-error-invalid-email")
        email = lower_domain(data["email"])
        if comparable_email(email) in self.emails:
            raise ShopError("registration-error-email-exists")
        username = data.get("username") or free_username(self.session, email, self.usernames)
        if not is_username(username):
            raise ShopError("registration-error-invalid-username")
        if comparable(username) in self.usernames:
            raise ShopError("registration-error-username-exists")
        account = columns.new_account(data, username, email)
        self.metadata.apply(CUSTOMER, "customer", data, None, account)
        _note_written(self, data, None, account)  # last, because a rejected item writes no tags
        self.usernames.add(account["username_normalized"])
        self.emails[account["email_normalized"]] = None
        return account

    def update(self, customer: UserRow | None, item: BulkItem) -> UserRow:
        """Return the updated account (spec 4.2, update rules; decisions 2 and 5)."""
        if customer is None:
            raise ShopError("shop_api_invalid_customer")
        # To prevent privilege escalation, the actor needs all capabilities of the account.
        theirs = self.held.get(customer["id"], frozenset())
        self.actor.require("shop_api_user_cannot_edit_customer", *theirs)
        columns.check_precondition(self.session, item.precondition, customer)
        data, emails = item.data, self.emails
        if not data:
            return with_columns(customer, {})  # a copy, without the metadata of an earlier item
        after = with_columns(customer, {**columns.columns_of(data), "updated_at": now()})
        if data.get("email") == "":
            after["email"] = ""
        email = sanitize_email(data.get("email", ""))
        # An invalid address, or the address of another account, is ignored without an error.
        if email and emails.get(comparable_email(email), customer["id"]) == customer["id"]:
            after["email"] = email
        after = cast("UserRow", with_normalized(after))
        if after["email"] == customer["email"]:
            # Differs only while another account has the same address in another form
            # (migration 0052).
            after["email_normalized"] = customer["email_normalized"]
        self.metadata.apply(CUSTOMER, "customer", data, customer, cast("Record", after))
        _note_written(self, data, customer, cast("Record", after))
        emails.pop(customer["email_normalized"], None)
        if after["email_normalized"]:
            emails[after["email_normalized"]] = customer["id"]
        return after

    def write(self, results: Sequence[WriteResult]) -> list[WriteResult]:
        """Write the accepted accounts with one statement for each kind of write."""
        session, created = self.session, self.created
        key = "username_normalized"
        write_records(session, USERS, created=created, updated=self.updated, key=key)
        if created:
            roles = [
                role_of(account["id"], columns.NEW_ROLE, account["created_at"])
                for account in created
            ]
            session.execute(insert(USER_ROLES), roles)
        write_tags(session, self.tagged)
        self.metadata.write(session)
        shown = columns.with_computed(session, results)
        written = [each for each in shown if not isinstance(each, ShopError)]
        changes = [
            replace(
                change,
                before=change.before and columns.public_account(change.before),
                after=columns.public_account(after, change.before),
            )
            for change, after in zip(self.changes, written, strict=True)
        ]
        notify(session, self.actor, changes)
        return shown


def _lock(session: Session, actor: Principal, items: Sequence[BulkItem]) -> _CustomerWrites:
    """Lock the accounts that the items name or conflict with, and read what items change."""
    return _writes(session, actor, items, _NAMED)


def _writes(
    session: Session, actor: Principal, items: Sequence[BulkItem], named: Select[object]
) -> _CustomerWrites:
    """Return the writes of items, with the accounts that a statement reads."""
    accounts: list[UserRow] = row_dicts(session.execute(named, _names_of(items)))
    records = {account["id"]: account for account in accounts}
    return _CustomerWrites(
        session=session,
        actor=actor,
        records=records,
        emails={each["email_normalized"]: each["id"] for each in accounts if each["email"]},
        usernames={account["username_normalized"] for account in accounts},
        held=capabilities_by_user(session, [item.id or 0 for item in items]),
        metadata=MetadataChanges.read(
            session, given_to(CUSTOMER, items, records), only_checks=named is _UNLOCKED
        ),
    )


def lock_accounts(session: Session, items: Sequence[BulkItem]) -> list[UserRow]:
    """Lock the accounts that the items name or conflict with until the commit; return them."""
    accounts: list[UserRow] = row_dicts(session.execute(_NAMED, _names_of(items)))
    return accounts


def _names_of(items: Sequence[BulkItem]) -> Record:
    """Return the IDs, normalized addresses and usernames that the items name or conflict with."""
    ids = [item.id for item in items if 0 < (item.id or 0) <= INT64_MAX]
    given = [item.data.get("email", "") for item in items]
    emails = {comparable_email(address) for address in given}
    emails |= {comparable_email(sanitize_email(address)) for address in given}
    usernames = {comparable(item.data.get("username", "")) for item in items}
    for item in items:
        if item.id is None and not item.data.get("username"):
            usernames |= first_usernames(item.data.get("email", ""))
    return {"ids": ids, "emails": emails - {""}, "usernames": usernames - {""}}


def _note_written(writes: _CustomerWrites, data: Data, before: Data | None, after: Record) -> None:
    """Let the response and the event contain the fields that are otherwise shown on request."""
    written = ON_REQUEST.keys() & data.keys()
    if written:
        count_change(before, after)
        writes.metadata.show(after, WRITTEN, written)
    if "tags" in written:
        writes.tagged.append(after)


def write_tags(session: Session, accounts: Sequence[Record]) -> None:
    """Store the tags of accounts for the filter of lists."""
    tags = {account["id"]: account["tags"] or () for account in accounts}
    if tags:
        session.execute(delete(USER_TAGS).where(USER_TAGS.c.user_id.in_(tags)))
    rows = [{"user_id": owner, "tag": tag} for owner, given in tags.items() for tag in given]
    if rows:
        session.execute(insert(USER_TAGS), rows)


DEFAULT_USERNAME = "customer"
"""Username for an e-mail address whose local part has no usable characters."""

FIRST_USERNAMES = 9
"""Usernames per e-mail address that are checked before the others are looked up."""

MAX_SMALLEST = 500
"""Up to this number, the smallest number that is not in use is found."""

_PROBES = 100  # usernames per statement beyond it

_EXISTING = select(USERS.c.username_normalized).where(
    is_one_of(USERS.c.username_normalized, bindparam("usernames", type_=TextList))
)


def first_usernames(email: str) -> set[str]:
    """Return the first usernames for an e-mail address, normalized: john, john2, … john9."""
    base = _base(email)
    return {comparable(_numbered(base, number)) for number in range(1, FIRST_USERNAMES + 1)}


def free_username(session: Session, email: str, taken: set[str]) -> str:
    """Return an unused username that is based on an e-mail address (decisions 5).

    Finds the smallest unused number up to ``MAX_SMALLEST``. Beyond it, a search finds an unused
    number that follows a used number, so a few statements are enough for any number of used
    usernames.

    Args:
        taken: normalized usernames that are in use, including those of ``first_usernames`` and
            those that this transaction creates. The function adds the usernames that it finds.
    """
    base = _base(email)
    number = _smallest_free(session, base, taken) or _following_free(session, base, taken)
    return _numbered(base, number)


def _smallest_free(session: Session, base: str, taken: set[str]) -> int | None:
    """Return the smallest unused number, or None if it is larger than ``MAX_SMALLEST``."""
    first, others = range(1, FIRST_USERNAMES + 1), range(FIRST_USERNAMES + 1, MAX_SMALLEST + 1)
    for numbers in (first, others):
        names = {number: comparable(_numbered(base, number)) for number in numbers}
        if numbers is others:
            _look_up(session, names.values(), taken)
        for number, name in names.items():
            if name not in taken:
                return number
    return None


def _following_free(session: Session, base: str, taken: set[str]) -> int:
    """Return an unused number that follows a used number, larger than ``MAX_SMALLEST``.

    Doubles the number until it is unused, which ends because the number of users is finite. A
    search between the last two numbers follows.
    """
    low, high = MAX_SMALLEST, None
    while high is None or high - low > 1:
        if high is None:
            numbers: Sequence[int] = [low << power for power in range(1, _PROBES + 1)]
        else:
            step = -(-(high - low) // (_PROBES + 1))
            numbers = range(low + step, high, step)
        names = {number: comparable(_numbered(base, number)) for number in numbers}
        _look_up(session, names.values(), taken)
        for number, name in names.items():
            if name not in taken:
                high = number
                break
            low = number
    return high


def _look_up(session: Session, names: Iterable[str], taken: set[str]) -> None:
    """Add those of the normalized usernames that are in use to ``taken``."""
    if unknown := [name for name in names if name not in taken]:
        taken.update(session.scalars(_EXISTING, {"usernames": unknown}))


def _base(email: str) -> str:
    return username_from_email(email)[:50] or DEFAULT_USERNAME


def _numbered(base: str, number: int) -> str:
    """Return a numbered username: john, john2, john3 and so on, shortened before the number."""
    suffix = "" if number == 1 else str(number)
    return base[: USERNAME_MAX_LENGTH - len(suffix)] + suffix
