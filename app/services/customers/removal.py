"""Removal of an account by a deletion, an erasure or a merge (decisions 5, people 1)."""

from sqlalchemy import delete
from sqlalchemy.orm import Session

from app.auth.principal_cache import note_revocation
from app.db.session import call_after_commit
from app.models import API_KEYS, USERS
from app.services.events.bulk import notify_deleted
from app.services.events.outbox import Cause
from app.services.webhooks.states import disable_webhooks_of


def remove_account(session: Session, cause: Cause, customer_id: int) -> None:
    """Delete a locked account with its keys, each with its event, and disable its webhooks.

    Its personal data in other tables is erased before.
    """
    disable_webhooks_of(session, [customer_id])
    revoked = delete(API_KEYS).where(API_KEYS.c.user_id == customer_id).returning(API_KEYS.c.id)
    notify_deleted(session, cause, "key", session.scalars(revoked).all())
    session.execute(delete(USERS).where(USERS.c.id == customer_id))
    call_after_commit(session, note_revocation)
