"""IDs of imported records: the ID at the source if it is unused, otherwise a new ID."""

from collections.abc import Sequence

from sqlalchemy import Table, bindparam, select
from sqlalchemy.orm import Session

from app.db.read_pool import fetch
from app.db.sequences import advance, new_ids
from app.db.session import run_in_transaction
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.plugins.woocommerce.importer.convert.converted import Pending

NEW_IDS = {"order_coupon", "coupon_use"}
"""Kinds whose records have no ID of their own at the source: uses of coupons."""

FIRST_OF_DRY_RUN = 1 << 40
"""The first new ID in a dry run, far above every ID in use."""


def is_empty(tables: Sequence[Table]) -> bool:
    """Return whether none of the tables has a record."""
    return not any(fetch(select(table.c.id).limit(1)) for table in tables)


class TargetIds:
    """Assigns IDs to new records: with ``new_ids``, never those of the source."""

    def __init__(self, *, dry_run: bool, new_ids: bool) -> None:
        self._dry_run = dry_run
        self._new_ids = new_ids
        self._next: dict[str, int] = {}  # of a dry run

    def advance(self, kind: str, table: Table, last_id: int) -> None:
        """Reserve the IDs of the source: further records of this shop get higher IDs."""
        if not self._new_ids and kind not in NEW_IDS:
            self.reserve(table, last_id)

    def reserve(self, table: Table, last_id: int) -> None:
        """Reserve the IDs of a table up to the highest ID at the source, unless it is a dry run."""
        if self._dry_run or not last_id:
            return

        run_in_transaction(lambda session: advance(session.connection(), table, last_id))

    def give(self, session: Session, kind: str, table: Table, created: Sequence[Pending]) -> None:
        """Assign an ID to each new record."""
        if not created:
            return
        wanted = [each.converted.source_id for each in created]
        keeps_ids = not self._new_ids and kind not in NEW_IDS
        taken: set[int] = set(wanted)
        if keeps_ids:
            ids = bindparam(None, wanted, type_=IdList)
            # 0 is not an ID.
            taken = {*session.scalars(select(table.c.id).where(is_one_of(table.c.id, ids))), 0}
        without = [each for each in created if each.converted.source_id in taken]
        new = self.new(session, table, len(without))
        for pending in created:
            source_id = pending.converted.source_id
            pending.values["id"] = new.pop(0) if source_id in taken else source_id
            if source_id in taken and keeps_ids:
                pending.converted.altered.append(
                    f"the ID {source_id} is in use in this shop; the new ID is {pending.target_id}"
                )

    def new(self, session: Session, table: Table, number: int) -> list[int]:
        """Return new IDs of a table, ascending."""
        if not number:
            return []
        if not self._dry_run:
            return new_ids(session.connection(), table, number)
        first = self._next.get(table.name, FIRST_OF_DRY_RUN)
        self._next[table.name] = first + number
        return list(range(first, first + number))
