"""Removal of an account by a deletion, an erasure or a merge (decisions 5, people 1)."""

from collections.abc import Collection

from sqlalchemy import bindparam, delete, literal, select, update
from sqlalchemy.orm import Session

from app.auth.api_keys import note_revocation
from app.db.locks import has_one_writer
from app.db.session import call_after_commit
from app.db.sql.functions import is_one_of
from app.db.sql.types import TextList
from app.models import API_KEYS, MERGED_ACCOUNTS, USERS
from app.services.events.bulk import notify_deleted
from app.services.events.outbox import Cause
from app.services.webhooks.states import disable_webhooks_of

MERGED = select(MERGED_ACCOUNTS.c.id, MERGED_ACCOUNTS.c.email_normalized).where(
    MERGED_ACCOUNTS.c.customer_id == bindparam("kept")
)
"""Selects the accounts that were merged into one, with their addresses, which can be null."""


def hold_addresses(session: Session, customer_id: int, emails: Collection[str]) -> set[str]:
    """Return the addresses that no other account has, which stays so until the commit.

    Call this after the account was locked, which the transaction removes. The account takes each of
    these addresses in turn. The unique index lets other transactions wait that take one, which need
    no lock for it. This one waits for those that have taken one and not committed. An account that
    has one of the others cannot leave it until the commit.

    Args:
        emails: normalized addresses.

    Raises:
        IntegrityError: an account has taken one meanwhile. Another attempt of the transaction reads
            this.
    """
    if not emails:
        return set()
    has_one = is_one_of(USERS.c.email_normalized, literal(sorted(emails), TextList))
    others = select(USERS.c.email_normalized).where(has_one, USERS.c.id != customer_id)
    held = others.order_by(USERS.c.id).with_for_update(read=True)
    free = {*emails} - {*session.scalars(held)}
    if not has_one_writer(session):
        this = update(USERS).where(USERS.c.id == customer_id)
        for email in sorted(free):  # the same order in all transactions
            session.execute(this.values(email_normalized=email))
    return free


def remove_account(session: Session, cause: Cause, customer_id: int) -> None:
    """Delete a locked account with its keys, each with its event, and disable its webhooks.

    Its personal data in other tables is erased before.
    """
    disable_webhooks_of(session, [customer_id])
    revoked = delete(API_KEYS).where(API_KEYS.c.user_id == customer_id).returning(API_KEYS.c.id)
    notify_deleted(session, cause, "key", session.scalars(revoked).all())
    session.execute(delete(USERS).where(USERS.c.id == customer_id))
    call_after_commit(session, note_revocation)
