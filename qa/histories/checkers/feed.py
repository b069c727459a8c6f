"""Feed and deliveries: no event is missed or repeated, and each change has its events."""

from __future__ import annotations

from typing import Any

from qa.histories.history import Event, Operation, Segment, Violation

NAME = "feed and deliveries"

EVENTS = {
    "create_order": "order.created", "set_status": "order.updated", "change_items": "order.updated",
    "change_coupons": "order.updated", "change_customer": "order.updated",
    "trash_order": "order.deleted", "restore_order": "order.restored",
    "delete_order": "order.deleted", "refund": "order_refund.created",
    "delete_refund": "order_refund.deleted",
    "change_limit": "coupon.updated", "conditional_update": "coupon.updated",
    "set_usage_count": "coupon.updated", "rename": "coupon.updated",
    "trash_coupon": "coupon.deleted", "restore_coupon": "coupon.restored",
    "delete_coupon": "coupon.deleted", "create_coupon": "coupon.created",
    "change_amount": "order.updated", "move_coupon": "coupon.updated",
    "change_campaign": "campaign.updated", "pause_campaign": "campaign.updated",
    "generate": "coupon_batch.created", "change_email": "customer.updated",
    "create_customer": "customer.created", "delete_customer": "customer.deleted",
    "conditional_order": "order.updated", "conditional_customer": "customer.updated",
    "merge": "customer.merged", "erase": "person.erased",
}  # fmt: skip
"""The event that a successful operation writes once."""


class FeedChecker:
    """Compares the feed with the responses to writes.

    Attributes:
        ids: all events so far that webhooks deliver.
    """

    def __init__(self) -> None:
        self.ids: set[int] = set()
        self._cursor = 0
        self._delivered: dict[tuple[str, int], int] = {}
        self._waiting: dict[tuple[str, int], list[int]] = {}  # events without a delivery so far
        self._arrived: set[int] = set()

    def begin(self, cursor: int) -> None:
        """Start after an event."""
        self._cursor = cursor

    def check(self, segment: Segment) -> list[Violation]:
        """Return the violations in a segment."""
        found = []
        by_request: dict[str, list[Event]] = {}
        for event in segment.events:
            if event.id <= self._cursor:
                text = f"event {event.id} was read after event {self._cursor}"
                found.append(Violation(NAME, text, events=[event]))
            self._cursor = max(self._cursor, event.id)
            if not event.type.startswith("key."):  # webhooks do not deliver them
                self.ids.add(event.id)
            if event.id not in self._arrived:
                key = event.data["resource"], event.data["resource_id"]
                self._waiting.setdefault(key, []).append(event.id)
            by_request.setdefault(event.request_id or "", []).append(event)
        for operation in segment.operations:
            found += _missing(operation, by_request.get(operation.request_id, []))
        found += _batches(segment) + _reread(segment)
        return found + self.deliveries(segment.delivered)

    def deliveries(self, delivered: list[tuple[int, str, int]]) -> list[Violation]:
        """Check that deliveries of a record arrive in the order of its events."""
        found = []
        for event_id, resource, resource_id in delivered:
            if event_id in self._arrived:
                continue  # a repetition
            self._arrived.add(event_id)
            waiting = self._waiting.pop((resource, resource_id), [])
            if earlier := [each for each in waiting if each < event_id]:
                text = (
                    f"event {event_id} of {resource} {resource_id} was delivered before {earlier}"
                )
                found.append(Violation(NAME, text))
            if later := [each for each in waiting if each > event_id]:
                self._waiting[resource, resource_id] = later
            latest = self._delivered.get((resource, resource_id), 0)
            if event_id < latest:
                text = f"event {event_id} of {resource} {resource_id} was delivered after {latest}"
                found.append(Violation(NAME, text))
            self._delivered[resource, resource_id] = event_id
        return found


def _missing(operation: Operation, events: list[Event]) -> list[Violation]:
    """Return violations if a response and the events of its request do not agree."""
    if operation.status is None or operation.replayed:
        return []
    types = [event.type for event in events]
    if operation.kind == "read_only" and operation.is_done:
        return [
            Violation(NAME, "a key that may only read has changed something", [operation], events)
        ]
    if not operation.is_done:
        text = f"a rejected request has written {', '.join(types)}"
        return [Violation(NAME, text, [operation], events)] if types else []
    wanted = EVENTS.get(operation.kind)
    if operation.kind == "conditional_trash":
        wanted = "order.deleted" if "order" in operation.args else "coupon.deleted"
    if wanted and types.count(wanted) != 1:
        text = f"{types.count(wanted)} events {wanted} of a request, instead of one"
        return [Violation(NAME, text, [operation], events)]
    if operation.kind == "claim":
        claimed, number = operation.response["claim"]["orders"], types.count("order.updated")
        if claimed != number:
            text = f"{number} events order.updated of a request that has claimed {claimed} orders"
            return [Violation(NAME, text, [operation], events)]
    if operation.kind == "bulk_orders":
        written = sorted(
            "order.updated" if "id" in item else "order.created"
            for item, result in zip(
                operation.body["orders"], operation.response["orders"], strict=True
            )
            if "error" not in result
        )
        of_orders = sorted(each for each in types if each.startswith("order."))
        if written != of_orders:
            text = f"events {of_orders} of a bulk request that has written {written}"
            return [Violation(NAME, text, [operation], events)]
        if text := _misplaced(operation):
            return [Violation(NAME, text, [operation], events)]
    return _echo(operation) + _differences(operation, events)


def _misplaced(operation: Operation) -> str:
    """Return which result of a bulk request is not at the place of its item, or an empty text."""
    for item, result in zip(operation.body["orders"], operation.response["orders"], strict=True):
        name = "id" if "id" in item else "order_key"
        if "error" not in result and item[name] != result[name]:
            return f"the result of the item with {name} {item[name]} has {result[name]}"
    return ""


def _reread(segment: Segment) -> list[Violation]:
    """Compare the events that other readers find, in small pages and with filters."""
    last = max((event.id for event in segment.events), default=0)
    found = []
    for wanted, ids in segment.after.get("feed", ()):
        expected = [
            event.id
            for event in segment.events
            if all(event.data[name] == value for name, value in wanted.items())
        ]
        # Reservations can expire since.
        if (shown := [id_ for id_ in ids if id_ <= last]) != expected:
            text = f"a reader of the feed with {wanted} finds {shown} instead of {expected}"
            found.append(Violation(NAME, text))
    return found


def _batches(segment: Segment) -> list[Violation]:
    """Check that batches have all of their coupons, and that their trash moves all of them.

    Nobody uses or deletes these coupons.
    """
    sizes = {
        event.data["resource_id"]: event.record["count"]
        for event in segment.events
        if event.type == "coupon_batch.created"
    }
    found = []
    before, after = (
        sum(
            is_generated(coupon)
            for kind in ("coupons", "trashed_coupons")
            for coupon in state.get(kind, {}).values()
        )
        for state in (segment.before, segment.after)
    )
    if after - before != sum(sizes.values()):
        text = f"there are {after - before} new generated coupons, by the feed {sizes}"
        found.append(Violation(NAME, text))
    trashed: dict[int, list[Operation]] = {}
    for operation in segment.operations:
        if operation.kind == "trash_batch" and operation.status != 404:
            trashed.setdefault(operation.args["batch"], []).append(operation)
    for batch, operations in trashed.items():
        if batch not in sizes or any(not each.is_done for each in operations):
            continue
        moved = sum(each.response["trashed"] for each in operations)
        if moved != sizes[batch]:
            text = f"{moved} coupons of batch {batch} are in the trash, which has {sizes[batch]}"
            found.append(Violation(NAME, text, operations))
    return found


def _echo(operation: Operation) -> list[Violation]:
    """Compare a created record with the request."""
    if operation.kind == "create_order" and operation.status == 201:
        sent, shown = operation.body["order"], operation.response["order"]
        for kind, names in (
            ("line_items", ("product_id", "quantity")),
            ("shipping_lines", ("total",)),
            ("fee_lines", ("total", "total_tax")),
        ):
            ours, theirs = (
                [tuple(item[name] for name in names) for item in each.get(kind, ())]
                for each in (sent, shown)
            )
            if ours != theirs:
                return [Violation(NAME, f"{kind} sent {ours}, stored {theirs}", [operation])]
    names = {
        "reserve": ("redemption", ("code", "reference", "customer_id", "email")),
        "create_order": ("order", ("status", "customer_id", "order_key")),
        "create_coupon": ("coupon", ("code", "usage_limit", "amount")),
    }
    if operation.kind not in names or operation.status != 201:
        return []
    resource, fields = names[operation.kind]
    sent, shown = operation.body[resource], operation.response[resource]
    wanted = {name: sent[name].lower() if name == "code" else sent[name] for name in fields}
    differ = {name: (wanted[name], shown[name]) for name in fields if wanted[name] != shown[name]}
    return [Violation(NAME, f"sent and stored differ: {differ}", [operation])] if differ else []


PERSONAL = frozenset(
    ("customer", "billing_address", "shipping_address", "note", "customer_ip", "email", "username",
     "customer_user_agent", "first_name", "last_name", "transaction_id", "avatar_url", "metadata",
     "orders_count", "total_spent", "last_order_id", "last_order_date", "customer_id", "last_update",
     "reason", "refunded_by")
)  # fmt: skip
"""Fields that change without an event of the record, or are removed with a customer."""


def is_generated(record: dict[str, Any]) -> bool:
    """Return whether a record is a coupon of a batch, whose creation is one event for all."""
    return str(record.get("code", "")).startswith("g-")


def impersonal(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record without PERSONAL."""
    return {name: value for name, value in record.items() if name not in PERSONAL}


def _differences(operation: Operation, events: list[Event]) -> list[Violation]:
    """Compare the record in a response with the one in its event."""
    if operation.path.startswith("/wc-api"):
        return []
    for event in events:
        resource = event.data["resource"]
        shown = (operation.response or {}).get(resource)
        if not isinstance(shown, dict) or event.type.endswith(
            (".deleted", ".redeemed", ".released")
        ):
            continue
        ours, theirs = impersonal(shown), impersonal(event.record)
        if resource in {"campaign", "key"}:  # figures and secrets are not in events
            ours = {name: ours[name] for name in theirs}
        if shown["id"] == event.data["resource_id"] and ours != theirs:
            differ = {
                name: (ours.get(name), theirs.get(name))
                for name in ours.keys() | theirs.keys()
                if ours.get(name) != theirs.get(name)
            }
            text = f"the response and event {event.id} differ: {differ}"
            return [Violation(NAME, text, [operation], [event])]
    return []
