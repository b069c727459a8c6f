"""Comparison of the feed of events with the responses to clients and the stored records."""

from collections import Counter

PAGE = 1000
REDEEMED, RELEASED = "coupon.redeemed", "coupon.released"


def events_of(kind, before, after):
    """Return the events of one change of a record, as (type, ID of the resource).

    Args:
        kind: coupon, customer or redemption, whose events are those of its coupon.
        before: the record before the change, or None.
        after: the record after it, or None.
    """
    if kind == "redemption":
        if before and before["status"] == after["status"]:
            return []
        return [(RELEASED if after["status"] == "released" else REDEEMED, after["coupon_id"])]
    if after is None:
        return [(f"{kind}.deleted", before["id"])]
    return [(f"{kind}.updated" if before else f"{kind}.created", after["id"])]


class Feed:
    """Reads the feed, and keeps a copy of the shop that is updated only from events."""

    def __init__(self):
        self._cursor = 0
        self.copies = {"coupon": {}, "customer": {}}

    def compare(self, caller, expected):
        """Read the new events. Return the problems and the number of events.

        Args:
            expected: a Counter of the events of all committed changes since the last call.
        """
        problems, found = [], Counter()
        for event in self._new_events(caller):
            if event["id"] <= self._cursor:
                problems.append(f"event {event['id']} came after event {self._cursor}")
            self._cursor = event["id"]
            found[event["type"], event["resource_id"]] += 1
            self._apply(event)
        problems += [f"no event {event} x {number}" for event, number in (expected - found).items()]
        problems += [
            f"no change {event} x {number}" for event, number in (found - expected).items()
        ]
        return problems, found.total()

    def differences(self, kind, stored):
        """Return how the copy differs from the records of the store.

        Args:
            kind: coupon or customer.
            stored: all records of this kind.
        """
        copy, stored = self.copies[kind], {record["id"]: record for record in stored}
        return [
            f"{kind} {id_}: by its events {copy.get(id_)}, stored {stored.get(id_)}"
            for id_ in copy.keys() | stored.keys()
            if copy.get(id_) != stored.get(id_)
        ]

    def _new_events(self, caller):
        after = self._cursor
        while True:
            path = f"/events?filter[after]={after}&filter[limit]={PAGE}"
            status, answer = caller.send("GET", path)
            assert status == 200, answer
            yield from answer["events"]
            if len(answer["events"]) < PAGE:
                return
            after = answer["events"][-1]["id"]

    def _apply(self, event):
        copy = self.copies.get(event["resource"])
        if copy is None:
            return
        if event["type"].endswith(".deleted"):
            copy.pop(event["resource_id"], None)
        else:
            copy[event["resource_id"]] = event["data"][event["resource"]]
