"""The accounts of the shop during a segment, by the events of customers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from qa.histories.history import Event, Operation, bounds_of
from qa.histories.model import Person, Persons

ERASED = "erased:"
"""Prefix of the address of a use whose account was deleted. The shop keeps a hash of it."""
_NOT_MEANT = Person(), Person()
"""What counts for a person because of an account of somebody else, at least and at most."""


def key_of(email: str) -> str:
    """Return an e-mail address as the shop compares it."""
    return email.lower()


def counted(email: str | None) -> set[str]:
    """Return by which addresses the uses of a person count, for an address of the person."""
    return {email, ERASED + email} if email else set()


@dataclass(frozen=True)
class Known:
    """What counts for an account.

    Attributes:
        address: its e-mail address; None if there is no account.
        ids: the accounts that were merged into it.
        merged: their addresses, which count until another account has them.
    """

    address: str | None = None
    ids: frozenset[int] = frozenset()
    merged: frozenset[str] = frozenset()

    def with_merged(self, id_: int, removed: Known) -> Known:
        """Return it after a merge that has removed another account."""
        address = {removed.address} if removed.address else set()
        return replace(
            self,
            ids=self.ids | removed.ids | {id_},
            merged=self.merged | removed.merged | address,
        )


@dataclass
class Account:
    """What counts for an account, each with the times between which it can be current.

    Attributes:
        versions: (earliest, latest, what counts).
    """

    versions: list[tuple[float, float, Known]] = field(default_factory=list)

    def during(self, start: float, end: float) -> set[Known]:
        """Return what can have counted for the account between two times."""
        return {
            known
            for earliest, latest, known in self.versions
            if earliest <= end and latest >= start
        }


class Accounts:
    """All accounts during a segment."""

    def __init__(self) -> None:
        self._current: dict[int, Known] = {}
        self._accounts: dict[int, Account] = {}
        self._bounds = -float("inf"), float("inf")  # of the event that is read
        self.deleted: dict[int, Known] = {}
        self.merged: set[int] = set()  # deleted by a merge

    @property
    def current(self) -> dict[int, str]:
        """The addresses of the accounts."""
        return {id_: known.address or "" for id_, known in self._current.items()}

    def begin(self, customers: dict[int, Any]) -> None:
        """Take over the accounts of a snapshot, none of which was merged."""
        self._current = {id_: Known(key_of(each["email"])) for id_, each in customers.items()}

    def observe(self, events: list[Event], operations: dict[str, Operation], after: Any) -> None:
        """Read the events of a segment."""
        inf = float("inf")
        self._accounts = {
            id_: Account([(-inf, inf, known)]) for id_, known in self._current.items()
        }
        for event in events:
            if event.data["resource"] != "customer":
                continue
            self._bounds = bounds_of(event, operations.get(event.request_id or ""))
            id_ = event.data["resource_id"]
            if event.type == "customer.merged":
                self._merge(event, id_)
            elif event.type == "customer.deleted":
                known = self._current.pop(id_, Known(""))
                left = known.merged.difference(self.current.values())  # without those taken so far
                self.deleted.setdefault(id_, replace(known, merged=left))
                self._set(id_, Known())
            else:
                address = key_of(self._address(event, operations, id_, after))
                known = self._current.get(id_, Known())
                self._current[id_] = replace(known, address=address)
                self._set(id_, self._current[id_])

    def _set(self, id_: int, known: Known) -> None:
        """Let something else count for an account since the present event."""
        inf = float("inf")
        account = self._accounts.setdefault(id_, Account([(-inf, inf, Known())]))
        first, last = self._bounds
        earliest, _, before = account.versions[-1]
        account.versions[-1] = (earliest, last, before)
        account.versions.append((first, inf, known))

    def _merge(self, event: Event, kept_id: int) -> None:
        """Let an account remember the one that a merge removes."""
        removed_id = event.data["data"]["merged"]["id"]
        removed = self.deleted[removed_id] = self._current.pop(removed_id, Known(""))
        self.merged.add(removed_id)
        for id_, known in list(self._current.items()):
            if removed.address in known.merged:  # of an earlier account with the address
                self._current[id_] = replace(known, merged=known.merged - {removed.address})
                self._set(id_, self._current[id_])
        kept = self._current.get(kept_id, Known())
        self._current[kept_id] = kept.with_merged(removed_id, removed)
        self._set(kept_id, self._current[kept_id])

    def _address(self, event: Event, operations: dict[str, Operation], id_: int, after: Any) -> str:
        """Return the address in an event. The deletion of an account removes it from there."""
        if shown := event.record.get("email"):
            return str(shown)
        operation = operations.get(event.request_id or "")
        if operation and operation.is_done and not operation.replayed:
            return str(operation.response["customer"]["email"])
        if operation and "email" not in operation.body.get("customer", {}):
            return self.current.get(id_, "")  # a merge or a change of a name, which keeps it
        if operation:
            wanted = str(operation.body["customer"].get("email", ""))
            others = {address for other, address in self.current.items() if other != id_}
            # An update ignores the address of another account.
            return self.current.get(id_, "") if key_of(wanted) in others else wanted
        return str(after.get(id_, {}).get("email", ""))

    def during(self, customer: int, start: float, end: float) -> set[str | None]:
        """Return the addresses that an account can have had, or an empty set if it is not known."""
        account = self._accounts.get(customer)
        return {known.address for known in account.during(start, end)} if account else set()

    def remembered(self, id_: int) -> set[str]:
        """Return the addresses that a deleted account has left: its own, and those of merged ones."""
        known = self.deleted.get(id_, Known(""))
        return {known.address or "", *known.merged} - {""}

    def persons(self, customer: int, email: str, start: float, end: float) -> Persons:
        """Return whose uses can count for an ID and an address between two times."""
        address = key_of(email)
        accounts = []
        for id_, account in self._accounts.items():
            choices = frozenset(
                self._meant(id_, known, address, start, end, is_named=id_ == customer)
                for known in account.during(start, end)
            )
            if choices - {_NOT_MEANT}:
                accounts.append(choices)
        return Persons(Person(frozenset(), frozenset(counted(address))), tuple(accounts))

    def _meant(
        self, id_: int, known: Known, address: str, start: float, end: float, *, is_named: bool
    ) -> tuple[Person, Person]:
        """Return what counts for an address because of an account, at least and at most.

        An address of a merged account does not count while another account has it.

        Args:
            is_named: whether the ID of the account is given beside the address.
        """
        if known.address is None:
            return _NOT_MEANT
        others = [
            {each.address for each in account.during(start, end)}
            for other, account in self._accounts.items()
            if known.merged and other != id_
        ]
        left = {each for each in known.merged if {each} not in others}
        unsure = {each for each in left if any(each in addresses for addresses in others)}
        ids, sure = known.ids | {id_}, (left - unsure) | {known.address}
        most = Person(ids, frozenset[str]().union(*map(counted, sure | unsure)))
        if is_named or (address and address in sure):
            return Person(ids, frozenset[str]().union(*map(counted, sure))), most
        return (Person(), most) if address and address in unsure else _NOT_MEANT
