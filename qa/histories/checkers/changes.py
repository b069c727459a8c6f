"""Changes: each request has changed a record as the rules of the record say.

The events of a segment are read request by request. What a request did to the uses of an order, to
its times, notes and refunds must follow from the record before and after it.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from decimal import Decimal
from typing import Any

from qa.histories.generator import NOT_ERASED
from qa.histories.history import Event, Operation, Segment, Violation

FEED, ORDERS = "feed and deliveries", "orders"
PAID = frozenset({"processing", "completed"})
MARGIN = 0.05  # seconds; between reading the clock and sending
DATED = frozenset(
    {"order.created", "order.updated", "coupon.created", "coupon.updated", "order_refund.created"}
)
"""Types of events whose record shows when the request has changed it."""
STATUS_NOTE = "Order status changed"

Record = dict[str, Any]


class ChangeChecker:
    """Compares the order before and after each request."""

    def __init__(self) -> None:
        self._notes: Counter[int] = Counter()  # changes of the status, by order
        self._created: set[int] = set()  # orders whose changes are all known
        self._metadata: dict[tuple[str, int], Record] = {}  # of created records

    def check(self, segment: Segment) -> list[Violation]:
        """Return the violations in a segment."""
        requests = segment.by_request()
        groups: dict[str, list[Event]] = {}
        for event in segment.events:
            groups.setdefault(event.request_id or f"event {event.id}", []).append(event)
        self._orders: dict[int, Record | None] = dict(segment.before["orders"])
        self._trashed = {
            id_: order["status"] for id_, order in segment.before["trashed_orders"].items()
        }
        self._refunds: dict[int, dict[int, Decimal]] = {id_: {} for id_ in self._orders}
        for refund in segment.before["refunds"].values():
            of_order = self._refunds.setdefault(refund["order_id"], {})
            of_order[refund["id"]] = Decimal(refund["amount"])
        found = []
        for request, events in groups.items():
            operation = requests.get(request)
            texts = [each for event in events for each in _dates(segment, event, operation)]
            found += [(FEED, text, operation, events) for text in texts]
            texts = self._request(operation, events)
            found += [(ORDERS, text, operation, events) for text in texts]
        violations = [
            Violation(name, text, [operation] if operation else [], events)
            for name, text, operation, events in found
        ]
        return violations + self._check_notes(segment) + self._check_metadata(segment)

    def _request(self, operation: Operation | None, events: list[Event]) -> list[str]:
        """Return what is wrong with the changes of orders by one request."""
        refunded = {
            order_id for event in events if (order_id := self._take_refund(event)) is not None
        }
        found = []
        for event in events:
            if event.data["resource"] != "order":
                continue
            id_ = event.data["resource_id"]
            before, after = self._orders.get(id_), event.record
            if event.type == "order.deleted":
                if before:
                    self._trashed[id_] = before["status"]
                self._orders[id_] = None
                self._refunds.pop(id_, None)
                continue
            if event.type == "order.restored" and self._trashed.get(id_) != after["status"]:
                found.append(
                    f"order {id_} was {self._trashed.get(id_)} before the trash, and is "
                    f"{after['status']} after it"
                )
            if event.type == "order.created":
                self._created.add(id_)
                self._refunds[id_] = {}
            elif event.type == "order.updated" and before:
                found += _uses(before, after, events)
                found += _kept_times(before, after)
                found += self._refunded(operation, before, after, id_ in refunded)
                self._notes[id_] += before["status"] != after["status"]
            if operation and operation.kind == "erase":
                self._notes[id_] = 0
            found += _times(after)
            self._orders[id_] = after
        return found

    def _take_refund(self, event: Event) -> int | None:
        """Note a refund; return the ID of its order."""
        if event.data["resource"] != "order_refund":
            return None
        id_ = event.data["resource_id"]
        if event.type == "order_refund.created":
            order_id = int(event.record["order_id"])
            if order_id in self._refunds:
                self._refunds[order_id][id_] = Decimal(event.record["amount"])
            return order_id
        if event.type == "order_refund.deleted":
            for of_order in self._refunds.values():
                of_order.pop(id_, None)
        return None

    def _refunded(
        self, operation: Operation | None, before: Record, after: Record, is_refund: bool
    ) -> list[str]:
        """Check that a refund of the whole total moves the status, and the other way round."""
        id_ = after["id"]
        if id_ not in self._refunds or Decimal(after["total"]) <= 0:
            return []
        total, amount = Decimal(after["total"]), sum(self._refunds[id_].values(), Decimal(0))
        what = f"order {id_}: {amount} of {total} are refunded"
        if amount > total:
            return [what]
        is_moved = before["status"] != "refunded" == after["status"]
        if is_moved and amount != total:
            return [f"{what}, and its status becomes refunded"]
        if is_refund and amount == total and after["status"] != "refunded":
            return [f"{what}, and its status is {after['status']}"]
        is_meant = operation is None or operation.kind in {"set_status", "bulk_orders"}
        if before["status"] != after["status"] and not is_moved and not is_meant:
            return [f"order {id_}: a request has changed its status to {after['status']}"]
        return []

    def _check_metadata(self, segment: Segment) -> list[Violation]:
        """Check that records have the metadata of their last event that shows some."""
        requests = segment.by_request()
        for event in segment.events:
            kind = event.data["resource"]
            operation = requests.get(event.request_id or "")
            key = kind, event.data["resource_id"]
            if kind == "order" and operation and operation.kind == "erase":
                if metadata := self._metadata.get(key):
                    left = {name: metadata[name] for name in metadata if name in NOT_ERASED}
                    self._metadata[key] = left
                continue
            is_written = event.type in {f"{kind}.created", f"{kind}.updated"}
            if is_written and "metadata" in event.record:
                self._metadata.pop(key, None)
                if event.record["metadata"]:  # not erased with a customer
                    self._metadata[key] = event.record["metadata"]
        return [
            Violation(ORDERS, f"{kind} {id_} has the metadata {metadata}, not {expected}")
            for kind, id_, metadata in segment.after.get("metadata", ())
            if (expected := self._metadata.get((kind, id_), metadata)) != metadata
        ]

    def _check_notes(self, segment: Segment) -> list[Violation]:
        """Compare the notes of orders at the pause with the changes of their status."""
        found = []
        for order_id, notes in segment.after.get("notes", {}).items():
            number = sum(STATUS_NOTE in note["note"] for note in notes)
            if order_id in self._created and number != self._notes[order_id]:
                text = (
                    f"order {order_id} has {number} notes of a status, and its status has changed "
                    f"{self._notes[order_id]} times"
                )
                found.append(Violation(ORDERS, text))
        return found


def _codes(order: Record) -> list[int]:
    return [line["id"] for line in order["coupon_lines"]]


def _uses(before: Record, after: Record, events: list[Event]) -> list[str]:
    """Check that uses change only with the coupons or the status, and not for ``refunded``."""
    is_same = before["status"] == after["status"] or after["status"] == "refunded"
    if not is_same or _codes(before) != _codes(after):
        return []
    return [
        f"order {after['id']}: {event.type} without a reason, status {before['status']} before "
        f"and {after['status']} after"
        for event in events
        if event.type in {"coupon.redeemed", "coupon.released"}
        and event.data["data"]["redemption"]["order_id"] == after["id"]
    ]


def _times(order: Record) -> list[str]:
    """Check the times that a status sets."""
    found = []
    if order["status"] == "completed" and not order["completed_at"]:
        found.append(f"order {order['id']} is completed, and completed_at is null")
    if order["status"] in PAID and not order["paid_at"]:
        found.append(f"order {order['id']} is {order['status']}, and paid_at is null")
    return found


def _kept_times(before: Record, after: Record) -> list[str]:
    """Check that the times stay once they are set, and that no request sets them early."""
    found = []
    for name, statuses in (("completed_at", {"completed"}), ("paid_at", PAID)):
        if before[name] and after[name] != before[name]:
            found.append(f"order {after['id']}: {name} was {before[name]} and is {after[name]}")
        if not before[name] and after[name] and after["status"] not in statuses:
            found.append(f"order {after['id']}: {name} is set, and it is {after['status']}")
    return found


def _dates(segment: Segment, event: Event, operation: Operation | None) -> list[str]:
    """Check that a change shows the time of the request."""
    if operation is None or event.type not in DATED:
        return []
    at, last = event.record["updated_at"], event.latest
    if operation.status is not None:
        last = min(last, operation.returned)
    if _is_between(segment, at, operation.invoked, last):
        return []
    name = f"{event.data['resource']} {event.data['resource_id']}"
    return [f"{name}: updated_at {at} is not the time of the request"]


def _is_between(segment: Segment, text: str, first: float, last: float) -> bool:
    """Return whether a time, by any clock and without fractions, is between two of the run."""
    at = datetime.fromisoformat(text).timestamp() - segment.wall
    return first - segment.skew - 1 - MARGIN <= at <= last + segment.skew + MARGIN


def check_expiries(segment: Segment) -> list[Violation]:
    """Check that new reservations expire when the request wanted it."""
    found = []
    for operation in segment.operations:
        if operation.kind != "reserve" or operation.status != 201 or operation.replayed:
            continue
        at, wanted = operation.response["redemption"]["expires_at"], operation.args["expires_in"]
        if not _is_between(segment, at, operation.invoked + wanted, operation.returned + wanted):
            text = f"a reservation for {wanted} s expires at {at}"
            found.append(Violation(ORDERS, text, [operation]))
    return found + _extended(segment)


def _extended(segment: Segment) -> list[Violation]:
    """Check that a live reservation expires at the same time after its reference is sent again."""
    with_events = {event.request_id for event in segment.events}
    reserves = [each for each in segment.operations if each.kind == "reserve"]
    used = {
        event.data["data"]["redemption"]["id"]
        for event in segment.events
        if event.type == "coupon.redeemed"
    }
    found = [
        Violation(ORDERS, f"redemption {id_} expires at {was['expires_at']}, and then at {at}")
        for id_, was in segment.before["redemptions"].items()
        if id_ in segment.after["redemptions"] and id_ not in used
        if was["status"] == segment.after["redemptions"][id_]["status"] == "reserved"
        if (at := segment.after["redemptions"][id_]["expires_at"]) != was["expires_at"]
    ]
    unknown = {each.args["reference"] for each in reserves if each.status is None}
    known: dict[int, set[str]] = {
        id_: {each["expires_at"]} for id_, each in segment.before["redemptions"].items()
    }
    done = [each for each in reserves if each.is_done and not each.replayed]
    for each in done:
        if each.request_id in with_events:
            shown = each.response["redemption"]
            known.setdefault(shown["id"], set()).add(shown["expires_at"])
    for each in done:
        shown = each.response["redemption"]
        is_known = shown["id"] in known and each.args["reference"] not in unknown
        is_same = each.request_id not in with_events and shown["status"] == "reserved"
        if is_known and is_same and shown["expires_at"] not in known[shown["id"]]:
            text = f"redemption {shown['id']} expires at {shown['expires_at']} without a new use"
            found.append(Violation(ORDERS, text, [each]))
    return found


def check_links(segment: Segment) -> list[Violation]:
    """Check that orders and redemptions belong to customers that exist, and agree."""
    state, found = segment.after, []
    known = {0, None, *state["customers"]}
    orders = state["orders"] | state["trashed_orders"]
    for kind, records in (("order", orders), ("redemption", state["redemptions"])):
        found += [
            f"{kind} {id_} belongs to customer {record['customer_id']}, who does not exist"
            for id_, record in records.items()
            if record["customer_id"] not in known
        ]
    for id_, use in state["redemptions"].items():
        is_confirmed = use["status"] == "confirmed"
        if is_confirmed != bool(use["confirmed_at"]):
            found.append(f"redemption {id_} is {use['status']}, confirmed_at {use['confirmed_at']}")
        if use["expires_at"] and (is_confirmed or use["order_id"]):
            found.append(f"redemption {id_} is {use['status']} and expires")
        order = state["orders"].get(use["order_id"])
        if order and use["status"] != "released":
            theirs = order["customer_id"], order["billing_address"]["email"]
            ours = use["customer_id"], use["email"]
            # The deletion of an account removes its address from redemptions, not from orders.
            if ours not in {theirs, (theirs[0], "")}:
                found.append(f"redemption {id_} belongs to {ours}, and its order to {theirs}")
            amounts = {line["code"]: line["amount"] for line in order["coupon_lines"]}
            amount = amounts.get(use["code"], use["amount"])
            if amount != use["amount"]:
                found.append(f"redemption {id_} has {use['amount']}, and its order {amount}")
    return [Violation(ORDERS, text) for text in found]


def check_tags(segment: Segment) -> list[Violation]:
    """Check that the entity tag of a record changes whenever the record changes."""
    before, after = (state.get("tags", {}) for state in (segment.before, segment.after))
    found = []
    for path in before.keys() & after.keys():
        kind, _, id_ = path.strip("/").partition("/")
        was, is_ = (state[kind].get(int(id_)) for state in (segment.before, segment.after))
        if before[path] == after[path] and was != is_ and was and is_:
            differ = {name: (was[name], is_[name]) for name in is_ if was[name] != is_[name]}
            found.append(Violation("sessions", f"{path} has the same ETag after {differ}"))
    return found
