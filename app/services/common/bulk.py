"""The items of a request and their results, in the same order (spec 4.3).

Coupons, customers and orders are written in the same three steps, one record like a thousand:
lock, prepare, write. Orders take the uses of their coupons while they are prepared, so that a use
that is rejected rejects only its item.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from sqlalchemy.orm import Session

from app.auth.principals import Principal
from app.catalog import Change, current_catalog
from app.conversions.numbers import int_if_integral
from app.db.records import Record
from app.db.session import run_in_transaction, savepoint
from app.errors import InvalidParams, ShopError

Data = Mapping[str, Any]
"""What a request says of a record, as its schema has loaded it.

``created_at`` is the time of a record that was created earlier: an order that was placed elsewhere,
and each record of a demo shop, whose coupons and orders have other columns of their past, too."""

R = TypeVar("R", bound=Mapping[str, Any])
"""The row of a kind of records."""

Precondition = Callable[[Mapping[str, Any]], None]
"""Function that takes the stored record and raises ShopError if it must not be changed."""


@dataclass(frozen=True, slots=True)
class BulkItem:
    """A record to create or update.

    Args:
        id: ID of the record to update, or None to create a record.
        precondition: check of the stored record before an update, or None.
    """

    id: int | None
    data: Data = field(repr=False)  # can contain a password
    precondition: Precondition | None = None


@dataclass(frozen=True, slots=True)
class BulkResult:
    """The results of a bulk request, in the order of its items.

    Args:
        items: the written record as the API returns it, or the error, of each item.
        created: whether at least one record was created.
    """

    items: Sequence[Any]
    created: bool


Earlier = set[tuple[str, str]]
"""What earlier records of a file would take if they were written: names of fields and values."""

WriteResult = Mapping[str, Any] | ShopError
"""A written record by its column names, or the error that prevented it."""


@dataclass(slots=True, kw_only=True)
class Writes(ABC, Generic[R]):
    """The writes of one transaction. Each kind of record adds what its rules compare.

    It is created with locks on what the items name or conflict with, in one order for every
    request.

    Attributes:
        records: the stored records that can be updated, by ID, locked until the commit. An update
            replaces its record, so that later items see it.
        created: the accepted new records. They get their IDs when they are written.
        updated: the records after each accepted update that changes a field.
        changes: the accepted changes, in the order of the items.
    """

    resource: ClassVar[str]
    """The name of the records in events, such as ``coupon``."""

    session: Session
    actor: Principal
    records: dict[int, R]
    created: list[Record] = field(default_factory=list)
    updated: list[R] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)

    @abstractmethod
    def create(self, item: BulkItem) -> Record:
        """Check the fields of a new record, and return the record or raise ShopError."""

    @abstractmethod
    def update(self, before: R | None, item: BulkItem) -> R:
        """Check an update of a record (None if it does not exist), and return it after it."""

    @abstractmethod
    def write(self, results: Sequence[WriteResult]) -> list[WriteResult]:
        """Write what was accepted, report the changes and return the results."""

    def prepare(self, items: Sequence[BulkItem]) -> list[WriteResult]:
        """Check items in the given order, and return for each the record to write, or the error.

        Items see the changes of those before.
        """
        results: list[WriteResult] = []
        for item in items:
            position = len(self.changes)
            before: R | None = None
            after: R | Record
            try:
                if item.id is None:
                    after = created = self.create(item)
                    self.created.append(created)
                else:
                    before = self.records.get(item.id)
                    after = updated = self.update(before, item)
                    self.records[item.id] = updated
                    if item.data:
                        self.updated.append(updated)
            except ShopError as error:
                results.append(error)
                continue
            event = f"{self.resource}.{'updated' if before else 'created'}"
            # Before the changes that it causes, such as uses of coupons.
            self.changes.insert(position, Change(event, before, after))
            results.append(after)
        return results


def require_size(record: str, items: Sequence[object], limit: int) -> None:
    """Raise ShopError if a bulk request of a kind of record has more than ``limit`` items."""
    if len(items) > limit:
        raise ShopError(f"shop_api_{record}s_request_entity_too_large", limit=limit)


def run(
    record: str,
    items: Sequence[object],
    *,
    load: Callable[[BulkItem], BulkItem],
    save: Callable[[Sequence[BulkItem]], Sequence[WriteResult]],
    dump: Callable[[Sequence[Mapping[str, Any]]], Sequence[object]],
    name: Callable[[str], str],
) -> BulkResult:
    """Write the items of a bulk request and return their results in the same order.

    An item that cannot be loaded or written does not affect the other items.

    Args:
        record: the name of the records in error codes, such as ``coupon``.
        load: converts the data of an item, or raises ShopError.
        save: writes the loaded items in one transaction and returns one result per item, in order.
        dump: converts the written records to their results.
        name: returns the name of an error code in the dialect.
    """
    results: list[object] = [None] * len(items)
    accepted: dict[int, BulkItem] = {}
    for position, item in enumerate(items):
        bulk_item = BulkItem(None, {})
        try:
            bulk_item = _bulk_item(item)
            if bulk_item.id is not None and bulk_item.id < 0:
                raise ShopError(f"shop_api_invalid_{record}_id")
            accepted[position] = load(bulk_item)
        except ShopError as error:
            results[position] = _failure(bulk_item, error, name)
    saved = save(list(accepted.values())) if accepted else ()
    written: dict[int, Mapping[str, Any]] = {}
    for (position, bulk_item), result in zip(accepted.items(), saved, strict=True):
        if isinstance(result, ShopError):
            results[position] = _failure(bulk_item, result, name)
        else:
            written[position] = result
    for position, shown in zip(written, dump(list(written.values())), strict=True):
        results[position] = shown
    return BulkResult(results, any(accepted[position].id is None for position in written))


def save_items(
    kind: type[Writes[R]],
    actor: Principal,
    items: Sequence[BulkItem],
    lock: Callable[[Session, Principal, Sequence[BulkItem]], Writes[R]],
) -> list[WriteResult]:
    """Create and update records in the given order, in one transaction.

    All items are written together, and the hooks are notified once. If a hook rejects them, the
    items are written one by one, so that one that it rejects does not affect the others.

    Args:
        lock: locks and reads what the items name or conflict with, in one order for every request.

    Returns:
        For each item the record by its column names, or the error that prevented the write.
    """

    def save(session: Session, some: Sequence[BulkItem]) -> list[WriteResult]:
        writes = lock(session, actor, some)
        return writes.write(writes.prepare(some))

    def work(session: Session) -> list[WriteResult]:
        can_be_rejected = any(
            hook.before_commit and hook.is_for(kind.resource)
            for hook in current_catalog().change_hooks
        )
        if len(items) == 1 or not can_be_rejected:
            return save(session, items)
        try:
            with savepoint(session):
                return save(session, items)
        except ShopError:
            return [_saved_alone(session, item, save) for item in items]

    return run_in_transaction(work)


def _saved_alone(
    session: Session,
    item: BulkItem,
    save: Callable[[Session, Sequence[BulkItem]], list[WriteResult]],
) -> WriteResult:
    try:
        with savepoint(session):
            (result,) = save(session, [item])
    except ShopError as error:
        return error
    return result


def single_result(results: Sequence[WriteResult]) -> Record:
    """Return the record of the only result, or raise its error."""
    (result,) = results
    if isinstance(result, ShopError):
        raise result
    return dict(result)


def _bulk_item(item: object) -> BulkItem:
    """Return the item. An ID other than 0 means an update (spec 4.3 rule 3, decisions 13)."""
    if not isinstance(item, dict):
        raise InvalidParams({"item": "must be an object."})
    given = int_if_integral(item.get("id"))
    if isinstance(given, str) and re.fullmatch("[0-9]{0,4000}", given):
        given = int(given or 0)
    if isinstance(given, bool) or not isinstance(given, int | None):
        raise InvalidParams({"id": "must be an integer."})
    return BulkItem(given or None, item)


def _failure(
    bulk_item: BulkItem, error: ShopError, name: Callable[[str], str]
) -> dict[str, object]:
    described: dict[str, Any] = {"code": name(error.code), "message": str(error)}
    if error.reasons:
        described["reasons"] = error.reasons
    return {"id": bulk_item.id or 0, "error": described}
