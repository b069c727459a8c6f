"""The IDs of imported records, and the table that maps them to the records of their source."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Table,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.orm import Session

from app.db.bulk_inserts import insert_records
from app.db.read_pool import ReadRow, fetch
from app.db.records import Record
from app.db.sequences import advance, new_ids
from app.db.session import now, run_in_transaction, run_statement
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.models import (
    COUPONS,
    IMPORT_SOURCES,
    IMPORTED_RECORDS,
    MERGED_ACCOUNTS,
    ORDERS,
    USERS,
)
from app.models.imported_record import ERASED
from app.plugins.woocommerce.importer.convert import Imported, Pending
from app.plugins.woocommerce.importer.source.staging import Staging

PAGE = 5000

_IDS = bindparam("ids", type_=IdList)

_REFERRED = {"customer": USERS, "coupon": COUPONS, "order": ORDERS}
"""The tables of records that others refer to, and that can be deleted in this shop."""

_MERGED_INTO = (
    select(MERGED_ACCOUNTS.c.customer_id)
    .where(MERGED_ACCOUNTS.c.id == IMPORTED_RECORDS.c.target_id)
    .correlate(IMPORTED_RECORDS)
    .scalar_subquery()
)

Row = tuple[Any, ...]


class RecordMap:
    """The records of one source.

    Args:
        previous_name: the name of the source in earlier imports, if it has changed.
        staging: the staging file, which stores the map of a dry run.
    """

    def __init__(
        self, name: str, staging: Staging, *, dry_run: bool, previous_name: str | None = None
    ) -> None:
        self.name = name
        self.dry_run = dry_run
        self._staged = staging.connection
        self._staged.execute(
            "CREATE TABLE IF NOT EXISTS mapped (kind TEXT, source_id INTEGER, target_id INTEGER, "
            "PRIMARY KEY (kind, source_id)) WITHOUT ROWID"
        )
        sources = fetch(
            select(IMPORT_SOURCES.c.id, IMPORT_SOURCES.c.name, IMPORT_SOURCES.c.finished_at)
        )
        found = next((source for source in sources if source.name == name), None)
        self.others = [source.name for source in sources if source.name != name]
        """The names of the other sources from which records were imported."""
        if found is None and previous_name:
            found = next(source for source in sources if source.name == previous_name)
        self.source_id: int | None = found.id if found else None
        self.is_known = found is not None
        """Whether an earlier import of this source has begun."""
        self.is_interrupted = found is not None and found.finished_at is None

    def begin(self) -> None:
        """Record that an import begins."""
        if self.dry_run:
            return

        def work(session: Session) -> int:
            begun = {"name": self.name, "started_at": now(), "finished_at": None}
            if self.source_id is not None:
                this = IMPORT_SOURCES.c.id == self.source_id
                session.execute(update(IMPORT_SOURCES).where(this).values(begun))
                return self.source_id
            created = insert(IMPORT_SOURCES).values(begun).returning(IMPORT_SOURCES.c.id)
            return int(session.execute(created).scalar_one())

        self.source_id = run_in_transaction(work)

    def finish(self) -> None:
        """Record that an import is complete."""
        if not self.dry_run:
            this = IMPORT_SOURCES.c.id == self.source_id
            run_statement(update(IMPORT_SOURCES).where(this).values(finished_at=now()))

    def _is_entry(self, kind: str, ids: Sequence[int]) -> ColumnElement[bool]:
        """Return the condition for the entries of records of a kind, by their ID at the source."""
        return and_(
            IMPORTED_RECORDS.c.import_source_id == self.source_id,
            IMPORTED_RECORDS.c.kind == kind,
            is_one_of(IMPORTED_RECORDS.c.source_id, bindparam(None, list(ids), type_=IdList)),
        )

    def known(
        self, fetch: Callable[[Any], Iterable[ReadRow]], kind: str, ids: Sequence[int]
    ) -> dict[int, Imported]:
        """Return the imported records of a kind by their ID at the source, read with ``fetch``."""
        if self.source_id is None:
            return {}
        names = ("source_id", "target_id", "fingerprint", "updated_at", "usage_count")
        columns = (IMPORTED_RECORDS.c[name] for name in names)
        rows = fetch(select(*columns).where(self._is_entry(kind, ids)))
        return {row[0]: Imported(*row[1:]) for row in rows}

    def store(self, session: Session, kind: str, written: Sequence[Pending]) -> None:
        """Add the entries of records that were written, or update those of an earlier import."""
        created: list[Record] = []
        for each in written:
            entry = {
                "source_id": each.converted.source_id,
                "target_id": each.target_id,
                "fingerprint": each.fingerprint,
                "updated_at": each.values.get("updated_at"),
                "usage_count": each.converted.values.get("usage_count"),
            }
            if each.imported:
                this = self._is_entry(kind, [each.converted.source_id])
                session.execute(update(IMPORTED_RECORDS).where(this).values(entry))
            else:
                created.append({**entry, "kind": kind, "import_source_id": self.source_id})
        if created:
            insert_records(session, IMPORTED_RECORDS, created)

    def stage(self, kind: str, pairs: Sequence[tuple[int, int]]) -> None:
        """Add the pairs of source and target IDs of a dry run to the staging file."""
        self._staged.executemany(
            "INSERT OR REPLACE INTO mapped VALUES (?, ?, ?)", [(kind, *pair) for pair in pairs]
        )

    def targets(
        self, kind: str, ids: Sequence[int], *, erased: bool = False, merged: bool = True
    ) -> dict[int, int]:
        """Return the new IDs of records of a kind that this shop has, by their ID at the source.

        Args:
            erased: whether to include records whose personal data was erased here.
            merged: whether to include accounts that were merged into another one, with its ID.
        """
        wanted = list(set(ids))
        found: dict[int, int] = {}
        if self.source_id is not None and wanted:
            target: ColumnElement[int] = IMPORTED_RECORDS.c.target_id
            if kind == "customer" and merged:
                target = func.coalesce(_MERGED_INTO, target)
            entries = select(IMPORTED_RECORDS.c.source_id, target.label("target_id"))
            entries = entries.where(self._is_entry(kind, wanted))
            if kind in _REFERRED:
                entries = entries.where(exists().where(_REFERRED[kind].c.id == target))
            kept = entries if erased else entries.where(IMPORTED_RECORDS.c.fingerprint != ERASED)
            rows = fetch(kept)
            found = {row[0]: row[1] for row in rows}
        if self.dry_run and wanted:
            marks = ", ".join("?" * len(wanted))
            staged = (
                f"SELECT source_id, target_id FROM mapped WHERE kind = ? AND source_id IN ({marks})"  # nosec B608  # placeholders only
            )
            found |= dict(self._staged.execute(staged, (kind, *wanted)).fetchall())
        return found

    def sources(self, kind: str, targets: Iterable[int | None]) -> dict[int, int]:
        """Return the IDs at the source of imported records of a kind, by their ID in this shop."""
        found = select(IMPORTED_RECORDS.c.target_id, IMPORTED_RECORDS.c.source_id).where(
            IMPORTED_RECORDS.c.import_source_id == self.source_id,
            IMPORTED_RECORDS.c.kind == kind,
            is_one_of(IMPORTED_RECORDS.c.target_id, _IDS),
        )
        ids = list({each for each in targets if each})
        return dict(map(tuple, fetch(found, {"ids": ids}))) if ids else {}

    def forget(self, kind: str, ids: Sequence[int]) -> None:
        """Remove the entries of records of a kind, by their ID at the source."""
        run_statement(delete(IMPORTED_RECORDS).where(self._is_entry(kind, ids)))

    def all_of(self, kind: str) -> Iterator[list[int]]:
        """Yield the IDs at the source of all imported records of a kind, in pages."""
        after = -1
        while True:
            rows = fetch(
                select(IMPORTED_RECORDS.c.source_id)
                .where(
                    IMPORTED_RECORDS.c.import_source_id == self.source_id,
                    IMPORTED_RECORDS.c.kind == kind,
                    IMPORTED_RECORDS.c.source_id > after,
                )
                .order_by(IMPORTED_RECORDS.c.source_id)
                .limit(PAGE)
            )
            if not rows:
                return
            yield [row[0] for row in rows]
            after = rows[-1][0]


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

    def distinct(self, session: Session, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
        """Return rows with new IDs in place of those that are in use, and with ``new_ids`` of all.

        Args:
            rows: values of columns of the table, beginning with the ID.
        """
        seen = {row[0] for row in rows}
        if not self._new_ids:
            stored = select(table.c.id)
            of_range = stored.where(table.c.id.between(min(seen), max(seen))).limit(1)
            taken = (
                session.scalars(of_range).all()
                and session.scalars(
                    stored.where(is_one_of(table.c.id, _IDS)), {"ids": list(seen)}
                ).all()
            )
            if not taken and 0 not in seen and len(seen) == len(rows):
                return rows
            seen = {0, *taken}
        without = []
        for place, row in enumerate(rows):
            if row[0] in seen:
                without.append(place)
            seen.add(row[0])
        found = list(rows)
        for place, new in zip(without, self.new(session, table, len(without)), strict=True):
            found[place] = (new, *found[place][1:])
        return found
