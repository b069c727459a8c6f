"""The state of the shop at a pause, and the feed."""

from __future__ import annotations

import threading
import time
from random import Random
from typing import Any

from qa.histories.client import LOST, Client
from qa.histories.history import Event

LISTS = {
    "coupons": "/coupons",
    "trashed_coupons": "/coupons/trash",
    "customers": "/customers?filter[role]=all",
    "orders": "/orders",
    "trashed_orders": "/orders/trash",
    "refunds": "/refunds",
}
PAGE = 1000
TAGS = 12  # records, twice
NOTES = 4  # orders


def snapshot(client: Client, since: float) -> dict[str, Any]:
    """Return all records by kind and ID.

    Args:
        since: of redemptions that are not live, only those that have changed since this time (in
            seconds since 1970) are read, because redemptions are never deleted.
    """
    found: dict[str, Any] = {}
    for name, path in LISTS.items():
        records = client.get(path)
        (key,) = records
        found[name] = {record["id"]: record for record in records[key]}
    found["metadata"] = [
        [kind, record["id"], record["metadata"]]
        for kind in ("coupon", "order")
        for record in client.get(f"/{kind}s?fields=id,metadata")[f"{kind}s"]
    ]
    found["redemptions"] = {
        redemption["id"]: redemption
        for condition in (
            "filter[status]=reserved,confirmed",
            f"filter[updated_at_min]={int(since)}",
        )
        for redemption in client.get(f"/redemptions?{condition}")["redemptions"]
    }
    live = "filter[status]=reserved,confirmed&fields=id,coupon_id,amount,expires_at"
    found["of_campaigns"] = {
        each["id"]: client.get(f"/redemptions?filter[campaign]={each['id']}&{live}")["redemptions"]
        for each in client.get("/campaigns?fields=id")["campaigns"]
    }
    # After their uses, because a reservation that expires meanwhile counts in neither or in the rows.
    found["campaigns"] = {each["id"]: each for each in client.get("/campaigns")["campaigns"]}
    return found


def tags(
    client: Client, state: dict[str, Any], before: dict[str, str], random: Random
) -> dict[str, str]:
    """Return the entity tags of some records by their path.

    Args:
        state: the snapshot.
        before: the tags of the pause before, which are sent: 304 means that they are still current.
    """
    paths = [
        f"/{kind}/{id_}"
        for kind in ("orders", "coupons", "customers")
        for id_ in state[kind]
        if not str(state[kind][id_].get("code", "")).startswith("g-")
    ]
    # Half of them were read at the pause before.
    again = [path for path in paths if path in before]
    chosen = random.sample(again, min(TAGS, len(again)))
    chosen += random.sample(paths, min(TAGS, len(paths)))
    found = {}
    for path in dict.fromkeys(chosen):
        headers = {"If-None-Match": before[path]} if path in before else {}
        status, body = client.exchange("GET", path, headers=headers)
        assert status in {200, 304}, f"{status} for GET {path}: {body}"
        found[path] = client.headers["etag"] if status == 200 else before[path]
    return found


def notes(client: Client, state: dict[str, Any], random: Random) -> dict[int, Any]:
    """Return the notes of some orders by the ID of the order."""
    chosen = random.sample(list(state["orders"]), min(NOTES, len(state["orders"])))
    return {id_: client.get(f"/orders/{id_}/notes")["order_notes"] for id_ in chosen}


def reread(client: Client, after: int, events: list[Event], random: Random) -> list[Any]:
    """Read the events of a segment again, in small pages: all, and those that match filters.

    Returns:
        For each read the filter, as names and values, and the IDs of the events.
    """
    if not events:
        return []
    one = random.choice(events).data
    filters: list[dict[str, Any]] = [
        {},
        {"type": one["type"]},
        {"resource": one["resource"], "resource_id": one["resource_id"]},
    ]
    found = []
    for wanted in filters:
        cursor, ids, size = after, [], random.randint(5, 50)
        more = "".join(f"&filter[{name}]={value}" for name, value in wanted.items())
        while True:
            path = f"/events?filter[after]={cursor}&filter[limit]={size}{more}"
            page = [event["id"] for event in client.get(path)["events"]]
            ids += page
            if len(page) < size:
                break
            cursor = page[-1]
        found.append([wanted, ids])
    return found


class FeedReader(threading.Thread):
    """Reads the feed with a cursor, as an integration does.

    Attributes:
        events: what was read since the last ``take``.
    """

    def __init__(self, client: Client, clock: Any) -> None:
        super().__init__(daemon=True)
        self._client, self._clock = client, clock
        self.cursor = 0
        self.events: list[Event] = []
        self._lock = threading.Lock()
        self._read_until = 0.0  # everything that was committed before has been read
        self._stopped = threading.Event()

    def run(self) -> None:
        """Read again and again until ``stop``."""
        while not self._stopped.is_set():
            try:
                self.read()
            except (*LOST, AssertionError):
                time.sleep(0.05)
            self._stopped.wait(0.1)

    def read(self) -> int:
        """Read all events after the cursor; return their number."""
        total = 0
        with self._lock:
            while True:
                invoked = self._clock()
                path = f"/events?filter[after]={self.cursor}&filter[limit]={PAGE}"
                events = self._client.get(path)["events"]
                returned = self._clock()
                for data in events:
                    self.events.append(Event(data, self._read_until, returned))
                    self.cursor = max(self.cursor, data["id"])
                total += len(events)
                if len(events) < PAGE:
                    self._read_until = invoked
                    return total

    def take(self) -> list[Event]:
        """Return the events since the last call."""
        with self._lock:
            events, self.events = self.events, []
        return events

    def stop(self) -> None:
        """Stop reading."""
        self._stopped.set()
        self.join()
        self._client.close()
