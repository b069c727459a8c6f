"""Kinds of records: their routes, and what the operations of all kinds have in common.

A subclass of ``Resource`` describes a kind, as a ``Noun`` of the admin pages does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

from flask import Response
from sqlalchemy import Table
from sqlalchemy.orm import Session

from app.api.etags import precondition
from app.auth.principals import Capability, Principal
from app.catalog import TRASH
from app.db.records import Columns, NamedColumns
from app.db.session import reading_own_writes, run_in_transaction
from app.errors import ShopError
from app.plugins.woocommerce.rest import arguments as arg
from app.plugins.woocommerce.rest import batches, lists
from app.plugins.woocommerce.rest.arguments import Arguments
from app.plugins.woocommerce.rest.batches import ACTIONS, MustBeAlone, failing
from app.plugins.woocommerce.rest.errors import Failure, RestError
from app.plugins.woocommerce.rest.operations import Call, Operation, Route
from app.plugins.woocommerce.rest.schemas import Make, maker, name_of
from app.plugins.woocommerce.rest.site import Object, Record, Site
from app.schemas.base import Base
from app.services.common.bulk import BulkItem, Precondition, WriteResult
from app.services.common.filtering import Find

DELETION: Arguments = {"force": arg.FORCE}


class Resource:
    """A kind of records."""

    noun = ""  # a record: ``coupon``
    needs: tuple[Capability, ...] = ()  # to read, create, edit and delete records
    kind = ""  # a record in codes of errors: ``shop_coupon``
    existing = ""  # a record in the error of a create with an ID, by default its kind
    path = ""  # of the list, by default that of the noun
    result: type[Base]  # the schema of a record
    table: Table
    columns: Columns  # of the table, and what else is read of a record
    keys: NamedColumns = {}  # the sort keys of the list
    summaries: Mapping[str, str] = {}  # of operations, if they need other words
    listed: Arguments = {}  # the parameters of the list
    created: Arguments = {}  # those of a create
    edited: Arguments | None = None  # those of a change. Without, there are no batches, either
    viewed: Arguments = arg.ONE
    deleted: Arguments = DELETION
    # The functions of the service that delete and restore a record, of a kind with a trash.
    erase: Callable[..., None]
    restore: Callable[[Principal, int, Precondition | None], object]
    # The function of the service that writes several records. Without, batches write each alone.
    save: Callable[[Principal, Sequence[BulkItem]], Sequence[WriteResult]] | None = None
    site = staticmethod(lists.site_of)  # the site with the options of a request

    # What subclasses do

    def matching(self, call: Call, query: lists.RecordListQuery) -> Find:
        """Return which records a list contains."""
        raise NotImplementedError

    def query(self, call: Call) -> lists.RecordListQuery:
        """Return the order and the page of a list, and what all lists compare."""
        return lists.query_of(call)

    def completed(self, records: list[Object], site: Site) -> list[Object]:
        """Return records with what is stored in other tables."""
        return records

    def defaults(self, call: Call) -> Mapping[str, object]:
        """Return the parameters that links to other pages have in any case."""
        return {}

    def data(self, call: Call) -> Object:
        """Return the fields of a request as far as they do not depend on stored records."""
        return {}

    def lock(self, session: Session, calls: Sequence[Call]) -> None:
        """Lock what writes read to decide, until the commit.

        It comes before all reads of the writes, and locks in the order of the service.
        """

    def write_one(self, call: Call, data: Object) -> int:
        """Create or change a record, and return its ID."""
        (result,) = self.write_all([call], [data], is_alone=True)
        if not isinstance(result, int):
            raise result
        return result

    def write_all(
        self, calls: Sequence[Call], data: Sequence[Object], *, is_alone: bool = False
    ) -> list[int | Failure]:
        """Create or change records, and return the ID of each, or its error.

        Args:
            is_alone: whether an error of the only record undoes all that was written.

        Raises:
            MustBeAlone: without ``is_alone``, a record needs more than one write.
        """
        ids = [call.ids["id"] for call in calls if call.ids]
        stored = {each["id"]: each for each in self.stored(ids, calls[0])} if ids else {}
        before = [stored.get(call.ids.get("id", 0)) for call in calls]
        results: list[int | Failure] = [0] * len(calls)
        accepted = dict[int, BulkItem]()
        for at, call in enumerate(calls):
            with failing(results, at):
                if call.ids and before[at] is None:
                    raise self.unknown(call, 400)
                if _is_moved(call, before[at]) and not is_alone:
                    raise MustBeAlone
                item = self._item(call, data[at], before[at])
                if self._is_only_moved(call, before[at], item):
                    results[at] = self._moved(call)
                else:
                    accepted[at] = item
        written = self.save(calls[0].actor, [*accepted.values()]) if self.save and accepted else ()
        for at, result in zip(accepted, written, strict=True):
            with failing(results, at):
                results[at] = self._written(calls[at], before[at], result, is_alone=is_alone)
        return results

    def _written(
        self, call: Call, before: Record | None, result: WriteResult, *, is_alone: bool
    ) -> int:
        """Return the ID of a record that was written, or raise its error."""
        if isinstance(result, ShopError):
            raise self.failed(call, result, before)
        try:
            self.require_as_asked(call, result)
        except RestError:
            if is_alone:
                raise
            raise MustBeAlone from None
        if call.given.get("status") == TRASH and not _is_trashed(before):
            self.erase(call.actor, result["id"], force=False)
        return int(result["id"])

    def _item(self, call: Call, data: Object, before: Record | None) -> BulkItem:
        """Return the write of a record, which a status has taken out of the trash."""
        if not _is_trashed(before) or call.given.get("status", TRASH) == TRASH:
            return self.item(call, data, before)
        self.restore(call.actor, call.ids["id"], call.check)
        # The restore changed the entity tag.
        return self.item(replace(call, check=None), data, self.record(call))

    def _is_only_moved(self, call: Call, before: Record | None, item: BulkItem) -> bool:
        """Return whether a status moves a record into the trash or out of it, and nothing else."""
        status = call.given.get("status")
        if before is None or status is None or _is_trashed(before) == (status == TRASH):
            return False
        return not item.data or item.data == {"status": self.record(call)["status"]}

    def _moved(self, call: Call) -> int:
        """Return the ID of such a record, so that the request writes one event (events 1)."""
        if call.given["status"] == TRASH:
            self.erase(call.actor, call.ids["id"], force=False, precondition=call.check)
        return call.ids["id"]

    def record(self, call: Call) -> Record:
        """Return a record as changes read it, or raise RestError."""
        if found := self.stored([call.ids["id"]], call):
            return found[0]
        raise self.unknown(call, 404)

    def records(self, ids: Sequence[int], site: Site) -> list[Object]:
        """Return the records with these IDs in the order of the IDs, also those in the trash."""
        with reading_own_writes():
            return self.completed(lists.records_with_ids(self.columns, self.table.c.id, ids), site)

    def objects(self, ids: Sequence[int], site: Site) -> list[Object]:
        """Return the records with these IDs in the form of this dialect."""
        return self.make(self.records(ids, site), site, ())

    def stored(self, ids: Sequence[int], call: Call) -> Sequence[Record]:
        """Return records as changes of a kind with ``save`` read them."""
        return self.records(ids, call.site)

    def item(self, call: Call, data: Object, before: Record | None) -> BulkItem:
        """Return the record to create or change as the service takes it.

        Args:
            before: the stored record, or None for a new one.
        """
        return BulkItem(call.ids.get("id"), data, call.check)

    def failed(self, call: Call, error: ShopError, before: Record | None) -> Exception:
        """Return the error of a write in this dialect."""
        return error

    def require_as_asked(self, call: Call, after: Mapping[str, object]) -> None:
        """Raise RestError unless the service has written what a request asks for."""

    def remove(self, call: Call, shown: Object) -> None:
        """Move a record to the trash, or delete it permanently with ``force``."""
        force = bool(call.args.get("force"))
        if shown["status"] == TRASH and not force:
            message = f"The {self.kind} has already been deleted."
            raise RestError("woocommerce_rest_already_trashed", message, 410)
        self.erase(call.actor, shown["id"], force=force, trashed_too=True, precondition=call.check)

    def require_deletable(self, call: Call) -> None:
        """Raise RestError if the record cannot be deleted by this request."""

    def require_force(self, call: Call, subject: str) -> None:
        """Raise RestError for a deletion without ``force`` of a record that has no trash."""
        if not call.args.get("force"):
            message = f"{subject} not support trashing."
            raise RestError("woocommerce_rest_trash_not_supported", message, 501)

    def unknown(self, call: Call, status: int) -> RestError:
        """Return the error of an unknown ID."""
        return RestError(f"woocommerce_rest_{self.kind}_invalid_id", "Invalid ID.", status)

    # Operations

    @cached_property
    def make(self) -> Make:
        """The function that makes the objects."""
        return maker(self.result)

    def page(self, call: Call) -> Response:
        """Return a page of records, or all."""
        query, site = self.query(call), self.site(call)
        may_read, find = call.actor.can(self.needs[0]), self.matching(call, query)
        found, total = lists.fetch_records(
            self.columns, find, query, keys=self.keys, may_read=may_read
        )
        shown = self.make(self.completed(found, site), site, call.wanted)
        return lists.page(call, shown, total, self.defaults(call))

    def _compare(self, call: Call) -> None:
        """Let a write compare ``If-Match`` with a read of its record."""
        check = precondition(lambda record: self.shown(record["id"], call))
        call.check = check and (lambda record: check({"id": record["id"]}))

    def shown(self, record_id: int, call: Call) -> Object:
        """Return a record in the form of this dialect, or raise RestError."""
        if found := self.objects([record_id], self.site(call)):
            return found[0]
        raise self.unknown(call, 404)

    def view(self, call: Call) -> Object:
        """Return a record, also one in the trash."""
        return self.shown(call.ids["id"], call)

    def create(self, call: Call) -> Object:
        """Create a record."""
        return self.write(call, self.given(call))

    def edit(self, call: Call) -> Object:
        """Change a record."""
        self._compare(call)
        return self.write(call, self.data(call))

    def write(self, call: Call, data: Object) -> Object:
        def work(session: Session) -> Object:
            self.lock(session, [call])
            return self.shown(self.write_one(call, data), call)

        return run_in_transaction(work)

    def delete(self, call: Call) -> Object:
        """Delete a record, and return what it was."""
        self._compare(call)

        def work(session: Session) -> Object:
            self.lock(session, [call])
            self.require_deletable(call)
            shown = self.shown(call.ids["id"], call)
            self.remove(call, shown)
            return shown

        return run_in_transaction(work)

    def given(self, call: Call) -> Object:
        if not call.ids.get("id") and call.args.get("id") not in (None, "", 0, "0"):
            message = f"Cannot create existing {self.existing or self.kind}."
            raise RestError(f"woocommerce_rest_{self.kind}_exists", message)
        return self.data(call)

    # Routes

    @cached_property
    def operations(self) -> dict[str, Operation]:
        """The operations by what they do."""
        noun, (read, *changing) = self.noun, self.needs
        create, edit, delete = changing
        one, all_ = f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}", f"{noun}s"
        created = {**self.created, "id": arg.ANYTHING}
        rows = (
            ("list", self.page, read, self.listed, f"List {all_}", f"list_{all_}"),
            ("create", self.create, create, created, f"Create {one}", f"create_{noun}"),
            ("view", self.view, read, self.viewed, f"Retrieve {one}", f"get_{noun}"),
            ("edit", self.edit, edit, self.edited, f"Update {one}", f"update_{noun}"),
            ("delete", self.delete, delete, self.deleted, f"Delete {one}", f"delete_{noun}"),
        )
        batch = Operation(
            partial(batches.batch, self),
            "batch",
            tuple(changing),
            arg.query(dict.fromkeys(ACTIONS, arg.Items())),
            f"Create, update and delete several {all_}",
            self.result,
            name=f"batch_{all_}",
            any_of=True,
        )
        return ({} if self.edited is None else {"batch": batch}) | {
            action: Operation(
                call,
                action,
                (need,),
                arg.schema(name_of(self.result) + name.split("_")[0].title(), f"{summary}.", args),
                self.summaries.get(action, summary),
                self.result,
                name=name,
                is_list=action == "list",
            )
            for action, call, need, args, summary, name in rows
            if args is not None
        }

    @property
    def routes(self) -> tuple[Route, ...]:
        """The routes of the list, of batches and of a record."""
        does, path = self.operations, self.path or f"/{self.noun}s"
        places: Mapping[str, Mapping[str, str]] = {
            path: {"GET": "list", "POST": "create"},
            f"{path}/batch": {"EDIT": "batch"},
            f"{path}/<id:id>": {"GET": "view", "EDIT": "edit", "DELETE": "delete"},
        }
        routes = (
            Route(place, {way: does[action] for way, action in actions.items() if action in does})
            for place, actions in places.items()
        )
        return tuple(route for route in routes if route.operations)


def _is_trashed(record: Record | None) -> bool:
    return record is not None and record.get("status") == TRASH


def _is_moved(call: Call, before: Record | None) -> bool:
    """Return whether a write moves a record into the trash or out of it."""
    return _is_trashed(before) or call.given.get("status") == TRASH
