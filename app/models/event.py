"""Events: what changed, written in the transaction of the change (events 1)."""

from datetime import datetime

from sqlalchemy import Index, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import AUTOINCREMENT, Id, JsonText, Key, UtcDateTime

_IS_NUMBERED = text("id IS NOT NULL")
_IS_UNNUMBERED = text("id IS NULL")
_HAS_CUSTOMER = text("customer_id IS NOT NULL")
IS_DELETED_NOTE = text("type = 'order_note.deleted'")
"""The condition of an index, which databases only use for a condition without parameters."""


class Event(Model):
    """A change of a record, a summary of many changes, or an event of a plugin.

    PostgreSQL assigns ``position`` before the commit, so transactions that commit later can have
    lower positions. ``id`` is assigned after the commit, in the order in which readers can see the
    events (``app.services.events.sequence``). Other records refer to ``id``.

    There are no foreign keys: an event outlives the record and the user that it names.
    """

    __tablename__ = "events"

    position: Mapped[int] = mapped_column(Id, primary_key=True)
    id: Mapped[int | None] = mapped_column(Id)
    type: Mapped[str] = mapped_column(Key)
    resource: Mapped[str] = mapped_column(Key)
    resource_id: Mapped[int] = mapped_column(Id)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    data: Mapped[str] = mapped_column(JsonText)
    # Of the change: the request, and the owner of its API key. None for a command.
    request_id: Mapped[str | None] = mapped_column(Key)
    user_id: Mapped[int | None] = mapped_column(Id)
    # The key, and the session if a page made the change. None in events before migration 0047.
    key_id: Mapped[int | None] = mapped_column(Id, sort_order=1)
    session_id: Mapped[int | None] = mapped_column(Id, sort_order=1)
    # The fields that differ, before and after (people 1). None if the event has none.
    changes: Mapped[str | None] = mapped_column(JsonText, sort_order=2)
    # The customer whose personal data is in both. It is blanked when the customer is deleted.
    customer_id: Mapped[int | None] = mapped_column(Id)

    # On PostgreSQL, the transaction of a change does not write to the partial indexes, except the
    # one of unnumbered events. On SQLite events are numbered at once. Indexes of types and times
    # would add 4 % to the CPU time of creating a coupon, and stay empty: a condition that no event
    # meets.
    __table_args__ = (
        Index(
            "uq_events_id",
            "id",
            unique=True,
            sqlite_where=_IS_NUMBERED,
            postgresql_where=_IS_NUMBERED,
        ),
        Index(
            "ix_events_unnumbered",
            "position",
            sqlite_where=_IS_UNNUMBERED,
            postgresql_where=_IS_UNNUMBERED,
        ),
        Index(
            "ix_events_type",
            "type",
            "id",
            sqlite_where=_IS_UNNUMBERED,
            postgresql_where=_IS_NUMBERED,
        ),
        Index(
            "ix_events_resource",
            "resource",
            "resource_id",
            "id",
            sqlite_where=_IS_NUMBERED,
            postgresql_where=_IS_NUMBERED,
        ),
        Index(
            "ix_events_created",
            "created_at",
            "id",
            sqlite_where=_IS_UNNUMBERED,
            postgresql_where=_IS_NUMBERED,
        ),
        Index(
            "ix_events_user",
            "user_id",
            "id",
            sqlite_where=_IS_UNNUMBERED,
            postgresql_where=_IS_NUMBERED,
        ),
        Index(
            "ix_events_request",
            "request_id",
            "id",
            sqlite_where=_IS_UNNUMBERED,
            postgresql_where=_IS_NUMBERED,
        ),
        Index(
            "ix_events_customer",
            "customer_id",
            sqlite_where=_HAS_CUSTOMER,
            postgresql_where=_HAS_CUSTOMER,
        ),
        # Erasures read all of these, because no other table has the order of a deleted note.
        Index(
            "ix_events_deleted_notes",
            "position",
            sqlite_where=IS_DELETED_NOTE,
            postgresql_where=IS_DELETED_NOTE,
        ),
        AUTOINCREMENT,
    )


class EventFeed(Model):
    """The state of the feed, in one row with the ID 1. Without the row, both numbers are 0."""

    __tablename__ = "event_feed"

    id: Mapped[int] = mapped_column(Id, primary_key=True, autoincrement=False)
    # The highest ID that was assigned. On SQLite, positions are the IDs, and this stays 0.
    last_id: Mapped[int] = mapped_column(Id)
    # The highest ID of an event that was removed because of its age.
    removed_id: Mapped[int] = mapped_column(Id)


EVENTS = Event.__table__
EVENT_FEED = EventFeed.__table__
