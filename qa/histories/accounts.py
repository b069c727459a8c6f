"""The accounts of the shop during a segment, by the events of customers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from qa.histories.history import Event, Operation
from qa.histories.model import Person

ERASED = "erased:"
"""Prefix of the address of a use whose account was deleted. The shop keeps a hash of it."""


def key_of(email: str) -> str:
    """Return an e-mail address as the shop compares it."""
    return email.lower()


def counted(email: str | None) -> set[str]:
    """Return by which addresses the uses of a person count, for an address of the person."""
    return {email, ERASED + email} if email else set()


@dataclass
class Account:
    """The e-mail addresses of an account, each with the times between which it can be the current one.

    Attributes:
        versions: (earliest, latest, address or None for no account).
    """

    versions: list[tuple[float, float, str | None]] = field(default_factory=list)

    def during(self, start: float, end: float) -> set[str | None]:
        """Return the addresses that the account can have had between two times."""
        return {
            address
            for earliest, latest, address in self.versions
            if earliest <= end and latest >= start
        }


class Accounts:
    """All accounts during a segment."""

    def __init__(self) -> None:
        self.current: dict[int, str] = {}
        self._accounts: dict[int, Account] = {}
        self.deleted: dict[int, str] = {}

    def begin(self, customers: dict[int, Any]) -> None:
        """Take over the accounts of a snapshot."""
        self.current = {id_: key_of(each["email"]) for id_, each in customers.items()}

    def observe(self, events: list[Event], operations: dict[str, Operation], after: Any) -> None:
        """Read the events of a segment."""
        inf = float("inf")
        self._accounts = {
            id_: Account([(-inf, inf, address)]) for id_, address in self.current.items()
        }
        for event in events:
            if event.data["resource"] != "customer":
                continue
            id_ = event.data["resource_id"]
            address: str | None = None
            if event.type != "customer.deleted":
                address = key_of(self._address(event, operations, id_, after))
            account = self._accounts.setdefault(id_, Account([(-inf, inf, None)]))
            earliest, _, before = account.versions[-1]
            account.versions[-1] = (earliest, event.latest, before)
            account.versions.append((event.earliest, inf, address))
            if address is None:
                self.deleted[id_] = self.current.pop(id_, "")
            else:
                self.current[id_] = address

    def _address(self, event: Event, operations: dict[str, Operation], id_: int, after: Any) -> str:
        """Return the address in an event. The deletion of an account removes it from there."""
        if shown := event.record.get("email"):
            return str(shown)
        operation = operations.get(event.request_id or "")
        if operation and operation.is_done and not operation.replayed:
            return str(operation.response["customer"]["email"])
        if operation:
            wanted = str(operation.body["customer"].get("email", ""))
            others = {address for other, address in self.current.items() if other != id_}
            # An update ignores the address of another account.
            return self.current.get(id_, "") if key_of(wanted) in others else wanted
        return str(after.get(id_, {}).get("email", ""))

    def during(self, customer: int, start: float, end: float) -> set[str | None]:
        """Return the addresses that an account can have had, or an empty set if it is not known."""
        account = self._accounts.get(customer)
        return account.during(start, end) if account else set()

    def persons(self, customer: int, email: str, start: float, end: float) -> list[Person]:
        """Return whose uses can count for an ID and an address between two times."""
        address = key_of(email)
        found = [Person(frozenset(), frozenset(counted(address)))]
        for id_, account in self._accounts.items():
            versions = account.during(start, end)
            if id_ != customer and address not in versions:
                continue
            more = []
            for version in versions:
                for person in found:
                    is_meant = version is not None and (
                        id_ == customer or (address and version == address)
                    )
                    if is_meant:
                        emails = person.emails | counted(version)
                        more.append(Person(person.ids | {id_}, frozenset(emails)))
                    else:
                        more.append(person)
            found = list(dict.fromkeys(more))
        return found
