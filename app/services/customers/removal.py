"""Removal of an account by a deletion, an erasure or a merge (decisions 5, people 1)."""

from collections.abc import Iterable

from sqlalchemy import delete, update
from sqlalchemy.orm import Session

from app.auth.principal_cache import note_revocation
from app.db.locks import has_one_writer
from app.db.session import call_after_commit
from app.models import API_KEYS, USERS
from app.services.events.bulk import notify_deleted
from app.services.events.outbox import Cause
from app.services.webhooks.states import disable_webhooks_of


def hold_addresses(session: Session, customer_id: int, emails: Iterable[str]) -> None:
    """Let no other account take addresses until the commit, which removes the account.

    Call this after the account was locked, and after reading that no account has the addresses.
    The account takes each of them in turn. The unique index lets other transactions wait that take
    one, which need no lock for it. This one waits for those that have taken one and not committed.

    Args:
        emails: normalized addresses.

    Raises:
        IntegrityError: an account has taken one meanwhile. Another attempt of the transaction reads
            this.
    """
    if has_one_writer(session):
        return
    this = update(USERS).where(USERS.c.id == customer_id)
    for email in sorted(emails):  # the same order in all transactions
        session.execute(this.values(email_normalized=email))


def remove_account(session: Session, cause: Cause, customer_id: int) -> None:
    """Delete a locked account with its keys, each with its event, and disable its webhooks.

    Its personal data in other tables is erased before.
    """
    disable_webhooks_of(session, [customer_id])
    revoked = delete(API_KEYS).where(API_KEYS.c.user_id == customer_id).returning(API_KEYS.c.id)
    notify_deleted(session, cause, "key", session.scalars(revoked).all())
    session.execute(delete(USERS).where(USERS.c.id == customer_id))
    call_after_commit(session, note_revocation)
