"""One event for many changes, and events of records that one statement deleted (events 1)."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from sqlalchemy.orm import Session

from app.services.events.outbox import Cause, NewEvent, record

is_summarized: ContextVar[bool] = ContextVar("is_summarized", default=False)
"""Whether one event reports all changes."""


@contextmanager
def summarized() -> Iterator[None]:
    """Write no event for each change, because ``record_summary`` reports them (events 1).

    Hooks are notified as usual.
    """
    token = is_summarized.set(True)
    try:
        yield
    finally:
        is_summarized.reset(token)


def record_summary(
    session: Session,
    cause: Cause | None,
    event_type: str,
    resource_id: int,
    summary: Mapping[str, object],
) -> None:
    """Write one event for a command or request that writes many records (events 1).

    Imports, demo shops and generated coupons write no event for each record.

    Args:
        session: the session of the transaction that completes the work.
        cause: who started it; None for a command.
        event_type: ``import.completed`` or ``coupon_batch.created``.
        resource_id: ID of the import or of the batch.
        summary: what was written, for example the numbers of records. It becomes ``data`` under
            the name of the resource.
    """
    data = {event_type.partition(".")[0]: {"id": resource_id, **summary}}
    record(session, cause, [NewEvent(event_type, resource_id, data)])


def notify_deleted(
    session: Session,
    cause: Cause | None,
    resource: str,
    ids: Iterable[int],
    *,
    permanent: bool = True,
) -> None:
    """Write the events of records that were deleted by one statement.

    Hooks are not notified, because the records are not read.

    Args:
        permanent: whether the records were removed, and not moved to the trash.
    """
    events = [
        NewEvent(f"{resource}.deleted", id_, {resource: {"id": id_}, "permanent": permanent})
        for id_ in sorted(ids)
    ]
    record(session, cause, events)
