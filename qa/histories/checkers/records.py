"""Reads of orders, coupons and customers: each shows a version that was current meanwhile.

The versions of a record are those in its events. A client never goes back in time. A read with an
``X-Shop-Position`` can come from a replica: it shows at least what the client has written or seen.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from unittest.mock import ANY

from qa.histories.checkers.feed import impersonal, is_generated
from qa.histories.history import Event, Operation, Segment, Violation

NAME = "sessions"
READS = {"read_order": "order", "read_coupon": "coupon", "read_customer": "customer"}
LISTS = {"list_orders": "order", "list_coupons": "coupon"}
ITEMS = frozenset(
    {"line_items", "shipping_lines", "fee_lines", "created_at", "order_key", "currency"}
)
KEPT = {
    "set_status": ITEMS | {"coupon_lines", "total"},
    "change_customer": ITEMS | {"coupon_lines", "total", "status"},
    "change_coupons": frozenset({"shipping_lines", "fee_lines", "status", "subtotal"}),
    "change_items": frozenset({"shipping_lines", "fee_lines", "status"}),
    "restore_order": ITEMS | {"coupon_lines", "total"},
    "conditional_order": ITEMS | {"coupon_lines", "total", "status"},
    "change_amount": frozenset({"shipping_lines", "fee_lines", "status", "subtotal"}),
    **dict.fromkeys(("change_limit", "conditional_update", "set_usage_count", "rename"), ITEMS),
    "move_coupon": ITEMS,
}
"""Fields that an operation leaves as they are. A change of a coupon leaves all others."""
OF_TRASH = frozenset({"claim", "erase"})
"""Operations that also change orders in the trash, which stay there."""
OF_USES = frozenset({"usage_count", "updated_at", "campaign_id"})
"""Fields of a coupon that each use changes, which ``CouponChecker`` knows, or few events contain."""


@dataclass
class Version:
    """A state of a record. ``record`` is None while it does not exist or is in the trash."""

    record: dict[str, Any] | None
    earliest: float
    latest: float
    customers: frozenset[int] = frozenset()
    event: Event | None = None


Key = tuple[str, int]


class RecordChecker:
    """Compares reads with the versions of the records."""

    def __init__(self) -> None:
        self.figures: Counter[str] = Counter()
        self._versions: dict[Key, list[Version]] = {}
        # The newest version that a client has read, with a position or at all.
        self._seen: dict[tuple[int, Key, bool], int] = {}

    def check(self, segment: Segment) -> list[Violation]:
        """Return the violations in a segment."""
        self._observe(segment)
        self._seen = {}
        found = []
        for operation in sorted(segment.operations, key=lambda each: each.invoked):
            if operation.status is None or operation.replayed:
                continue
            if operation.kind == "read_code" and operation.is_done:
                shown = operation.response["coupon"]
                found += self._read(segment, operation, ("coupon", shown["id"]), shown)
            elif kind := READS.get(operation.kind):
                shown = (operation.response or {}).get(kind) if operation.is_done else None
                if operation.is_done or operation.status == 404:
                    key = (kind, operation.args["record"][1])
                    found += self._read(segment, operation, key, shown)
            elif (kind := LISTS.get(operation.kind)) and operation.is_done:
                found += self._list(segment, operation, kind)
            elif operation.kind == "count_orders" and operation.is_done:
                found += self._count(operation, operation.response["count"], "the count")
        found += self._unwanted(segment) + self._conditional(segment)
        return found + self._at_the_end(segment) + _duplicates(segment)

    def _observe(self, segment: Segment) -> None:
        """Build the versions from the state before the segment and its events."""
        inf = float("inf")
        self._versions = {
            (kind, id_): [Version(_shown(record), -inf, -inf, _owner(record))]
            for kind in ("order", "coupon", "customer")
            for id_, record in segment.before[f"{kind}s"].items()
            if not is_generated(record)
        }
        by_request = segment.by_request()
        for event in segment.events:
            kind, id_ = event.data["resource"], event.data["resource_id"]
            if event.type == "customer.merged":
                self._move_orders(event)
            if kind not in {"order", "coupon", "customer"}:
                continue
            versions = self._versions.setdefault((kind, id_), [Version(None, -inf, -inf)])
            if is_generated(event.record):
                continue
            is_gone = event.type.endswith(".deleted")
            record = None if is_gone else _shown(event.record)
            if event.type in {"coupon.redeemed", "coupon.released"}:
                # The terms in such an event can be older (docs/events.md). They change no terms.
                record = versions[-1].record
            operation = by_request.get(event.request_id or "")
            if operation and operation.kind in OF_TRASH and versions[-1].record is None:
                record = None
            owner = frozenset() if is_gone else _owner(event.record)
            versions.append(Version(record, event.earliest, event.latest, owner, event))
        for versions in self._versions.values():
            for version in versions:
                operation = version.event and by_request.get(version.event.request_id or "")
                if version.event and operation:
                    version.earliest = max(version.earliest, operation.invoked)
                    if operation.status is not None:
                        version.latest = min(version.latest, operation.returned)

    def _move_orders(self, event: Event) -> None:
        """Give the orders of a removed account to the kept one.

        They have no events of their own, and that of the merge does not show when they changed.
        """
        removed, kept = event.data["data"]["merged"]["id"], event.data["resource_id"]
        for (kind, _), versions in self._versions.items():
            last = versions[-1]
            if kind == "order" and removed in last.customers and last.record:
                record = last.record | {"updated_at": ANY}
                owner = frozenset({kept, 0})
                versions.append(Version(record, event.earliest, event.latest, owner, event))

    def _window(self, operation: Operation, key: Key) -> tuple[list[Version], int, int]:
        """Return the versions of a record, and the first and last that an operation can see."""
        versions = self._versions.get(key, [])
        last = max(
            (i for i, v in enumerate(versions) if v.earliest <= operation.returned), default=0
        )
        since = operation.invoked
        if operation.position:
            since = operation.args.get("floor", 0.0)
        first = max((i for i, v in enumerate(versions) if v.latest < since), default=0)
        first = max(first, self._seen.get((operation.client, key, bool(operation.position)), 0))
        return versions, min(first, last), last

    def _read(
        self, segment: Segment, operation: Operation, key: Key, shown: dict[str, Any] | None
    ) -> list[Violation]:
        versions, first, last = self._window(operation, key)
        if not versions:
            return []
        self.figures["reads compared"] += 1
        record = None if shown is None else _shown(shown)
        for index in range(first, last + 1):
            if versions[index].record == record:
                # A read without a position is served by the primary and returns none, so a read
                # with an earlier position can show less.
                for has_position in {False, bool(operation.position)}:
                    self._seen[operation.client, key, has_position] = index
                return []
        text = f"{key[0]} {key[1]}: the response shows none of the versions {first} to {last} of {len(versions) - 1}"
        return [self._violation(segment, operation, versions, text)]

    @staticmethod
    def _violation(
        segment: Segment, operation: Operation, versions: list[Version], text: str
    ) -> Violation:
        events = [version.event for version in versions if version.event]
        wanted = {event.request_id for event in events}
        operations = [each for each in segment.operations if each.request_id in wanted]
        return Violation(NAME, text, [*operations, operation], events)

    def _list(self, segment: Segment, operation: Operation, kind: str) -> list[Violation]:
        """Check a list: each record of it, and those that are missing."""
        records = operation.response[f"{kind}s"]
        shown = {record["id"]: record for record in records if not is_generated(record)}
        where = operation.args["where"]
        found = []
        for key in [key for key in self._versions if key[0] == kind]:
            versions, first, last = self._window(operation, key)
            possible = versions[first : last + 1]
            if key[1] in shown:
                if all(version.record != _shown(shown[key[1]]) for version in possible):
                    text = f"{kind} {key[1]} in a list shows none of its versions {first} to {last}"
                    found.append(self._violation(segment, operation, versions, text))
            elif all(_matches(version, where) for version in possible):
                text = f"{kind} {key[1]} is missing in a list"
                found.append(self._violation(segment, operation, versions, text))
        if kind == "order" and "total" in operation.args:
            found += self._count(operation, operation.args["total"], "X-Total")
        wrong = [
            f"{kind} {record['id']} in a list does not match {where}"
            for record in records
            if any(record[name] != value for name, value in where.items())
        ]
        found += [Violation(NAME, text, [operation]) for text in wrong]
        self.figures["lists compared"] += 1
        known = {key[1] for key in self._versions if key[0] == kind}
        unknown = sorted(shown.keys() - known)
        texts = [f"{kind} {id_} in a list has no event" for id_ in unknown]
        return found + [Violation(NAME, text, [operation]) for text in texts]

    def _count(self, operation: Operation, count: int, name: str) -> list[Violation]:
        """Check a number of orders: between those that match all the time and those that can."""
        where = operation.args["where"]
        windows = [
            versions[first : last + 1]
            for versions, first, last in (
                self._window(operation, key) for key in self._versions if key[0] == "order"
            )
        ]
        low = sum(all(_matches(each, where) for each in window) for window in windows)
        high = sum(any(_may_match(each, where) for each in window) for window in windows)
        if low <= count <= high:
            return []
        text = f"{name} is {count}, and {low} to {high} orders match {where}"
        return [Violation(NAME, text, [operation])]

    def _unwanted(self, segment: Segment) -> list[Violation]:
        """Return updates that have changed more than the request."""
        by_request = segment.by_request()
        found = []
        for key, versions in self._versions.items():
            for before, after in pairwise(versions):
                operation = after.event and by_request.get(after.event.request_id or "")
                kept = KEPT.get(operation.kind) if operation else None
                if not (operation and after.event and kept and before.record and after.record):
                    continue
                change = operation.args.get("change", {})
                names = before.record.keys() - change.keys() - {"updated_at"}
                names = names if key[0] == "coupon" else names & kept
                differ = {name for name in names if before.record[name] != after.record[name]}
                if differ:
                    text = f"{key[0]} {key[1]}: a request has changed {sorted(differ)} as well"
                    events = [each.event for each in (before, after) if each.event]
                    found.append(Violation("feed and deliveries", text, [operation], events))
        return found

    def _conditional(self, segment: Segment) -> list[Violation]:
        """Return conditional writes that have changed another state than the one seen."""
        by_request = segment.by_request()
        found = []
        for (kind, id_), versions in self._versions.items():
            names = {
                event.id: event.record.get("first_name")
                for version in versions
                if kind == "customer" and (event := version.event)
            }
            for before, after in pairwise(versions):
                operation = after.event and by_request.get(after.event.request_id or "")
                seen = operation.args.get("seen") if operation else None
                # Events of the coupons of an order are effects of a change of the order.
                is_meant = operation and operation.args.get(kind) == id_
                if not (seen and operation and is_meant and after.event):
                    continue
                differs = before.record != _shown(seen)
                # The name of an account is not in its versions. It is removed with the account.
                if name := names.get(before.event.id) if before.event else None:
                    differs = differs or name != seen["first_name"]
                if differs:
                    text = f"{kind} {id_}: a conditional write to another state than the one seen"
                    events = [each.event for each in (before, after) if each.event]
                    found.append(Violation(NAME, text, [operation], events))
        return found

    def _at_the_end(self, segment: Segment) -> list[Violation]:
        """Compare the state after the segment with the last versions."""
        found = []
        for kind in ("order", "coupon", "customer"):
            state = segment.after[f"{kind}s"]
            last = {key[1]: each[-1] for key, each in self._versions.items() if key[0] == kind}
            expected = {id_: each.record for id_, each in last.items() if each.record}
            stored = {
                id_: _shown(record) for id_, record in state.items() if not is_generated(record)
            }
            for id_ in sorted(expected.keys() | stored.keys()):
                if expected.get(id_) != stored.get(id_):
                    versions = self._versions.get((kind, id_), [])
                    text = (
                        f"{kind} {id_}: by its events {expected.get(id_)}, stored {stored.get(id_)}"
                    )
                    events = [version.event for version in versions if version.event]
                    wanted = {event.request_id for event in events}
                    operations = [each for each in segment.operations if each.request_id in wanted]
                    found.append(Violation("feed and deliveries", text, operations, events))
        return found


def _duplicates(segment: Segment) -> list[Violation]:
    """Return values that several records have and only one may have."""
    state = segment.after
    values = {
        "code": [each["code"] for each in state["coupons"].values()],
        "e-mail address": [each["email"].lower() for each in state["customers"].values()],
        "order key": [each["order_key"] for each in state["orders"].values()],
        "reference": [
            f"{each['coupon_id']} {each['reference']}"
            for each in state["redemptions"].values()
            if each["coupon_id"] and not each["order_id"]
        ],
    }
    return [
        Violation(NAME, f"{number} records have the {name} {value}")
        for name, found in values.items()
        for value, number in Counter(found).items()
        if number > 1 and value
    ]


def _shown(record: dict[str, Any]) -> dict[str, Any]:
    ignored = OF_USES if "usage_count" in record else frozenset()
    return {name: value for name, value in impersonal(record).items() if name not in ignored}


def _owner(record: dict[str, Any]) -> frozenset[int]:
    # The orders of a deleted customer become guest orders, without an event.
    return frozenset({record["customer_id"], 0}) if "customer_id" in record else frozenset()


def _matches(version: Version, where: dict[str, Any]) -> bool:
    """Return whether a version of an order certainly matches a filter."""
    if version.record is None:
        return False
    if where.get("status", version.record.get("status")) != version.record.get("status"):
        return False
    customer = where.get("customer_id")
    return customer is None or version.customers == {customer}


def _may_match(version: Version, where: dict[str, Any]) -> bool:
    """Return whether a version of an order can match a filter."""
    if version.record is None:
        return False
    if where.get("status", version.record.get("status")) != version.record.get("status"):
        return False
    customer = where.get("customer_id")
    return customer is None or customer in version.customers
