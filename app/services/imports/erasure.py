"""Removal of personal data from imports: their files and the errors of their lines (people 5)."""

import re
import zlib
from collections.abc import Collection

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from app.conversions.emails import comparable_email
from app.conversions.text import comparable
from app.db.read_pool import Fetch, fetching
from app.db.records import Record, row_dicts
from app.models import IMPORT_ERRORS, IMPORT_PARTS, IMPORT_RUNS, Upload
from app.models.import_run import UNFINISHED, ImportStatus
from app.services.imports.runs import end_import

_ADDRESS = re.compile(rb"(?<![^\s,;:|\"'<>@\\])[^\s,;:|\"'<>@\\]++@[^\s,;:|\"'<>@\\]++")
"""What can be an e-mail address in a file. Begins only after a separator, so it is linear."""


def imports_with(fetch: Fetch, emails: Collection[str]) -> list[int]:
    """Return the imports whose file, its name or an error contains an e-mail address.

    Args:
        emails: normalized addresses. Any form of their domains is found.
    """
    if not emails:
        return []
    parts = select(IMPORT_PARTS.c.import_id, IMPORT_PARTS.c.content)
    found = {import_id for import_id, content in fetch(parts) if _contains(content, emails)}
    return sorted(found | _with_text(fetch, emails))


def erase_imports_with_text(session: Session, emails: Collection[str]) -> None:
    """Erase the imports that have an e-mail address in their name or in an error."""
    _erase(session, _with_text(fetching(session.connection()), emails))


def erase_file(session: Session, emails: Collection[str], after: int) -> tuple[int, int]:
    """Erase the next import with a file, if the file contains an e-mail address.

    Returns:
        The ID of the import and the number of its parts. 0 and 0 if no file follows ``after``.
    """
    following = select(func.min(IMPORT_PARTS.c.import_id)).where(IMPORT_PARTS.c.import_id > after)
    import_id = session.scalar(following)
    if import_id is None:
        return 0, 0
    parts = select(IMPORT_PARTS.c.content).where(IMPORT_PARTS.c.import_id == import_id)
    contents = session.scalars(parts).all()
    if any(_contains(content, emails) for content in contents):
        _erase(session, [import_id])
    return import_id, len(contents)


def _with_text(fetch: Fetch, emails: Collection[str]) -> set[int]:
    texts = (
        select(IMPORT_ERRORS.c.import_id, IMPORT_ERRORS.c["message"]),
        select(IMPORT_RUNS.c.id, IMPORT_RUNS.c.name).where(IMPORT_RUNS.c.name.contains("@")),
    )
    rows = (row for each in texts for row in fetch(each))
    return {import_id for import_id, text in rows if _names(text.encode(), emails)}


def _erase(session: Session, import_ids: Collection[int]) -> None:
    """Cancel imports, and delete their files and errors."""
    found = IMPORT_RUNS.c.id.in_(import_ids)
    locked = select(IMPORT_RUNS).where(found).order_by(IMPORT_RUNS.c.id).with_for_update()
    runs: list[Record] = row_dicts(session.execute(locked)) if import_ids else []
    for run in runs:
        if run["status"] in UNFINISHED:
            reason = "The personal data of a person in the file was erased."
            end_import(session, None, run, ImportStatus.CANCELLED, reason)
    ids = [run["id"] for run in runs]
    for table in (IMPORT_PARTS, IMPORT_ERRORS) if ids else ():
        session.execute(delete(table).where(table.c.import_id.in_(ids)))
    if ids:
        session.execute(update(IMPORT_RUNS).where(IMPORT_RUNS.c.id.in_(ids)).values(name=""))
    session.execute(delete(Upload))  # files of the pages of the previous version, if it still runs


def _contains(content: bytes, emails: Collection[str]) -> bool:
    """Return whether a part of a file contains an e-mail address."""
    return _names(zlib.decompress(content), emails)


def _names(text: bytes, emails: Collection[str]) -> bool:
    """Return whether a text contains an e-mail address in any form of its domain."""
    if any(email.encode() in text.lower() for email in emails):
        return True
    local_parts = {email.rpartition("@")[0] for email in emails}
    found = {each.decode(errors="replace") for each in _ADDRESS.findall(text)}
    return any(
        comparable(each.partition("@")[0]) in local_parts and comparable_email(each) in emails
        for each in found
    )
