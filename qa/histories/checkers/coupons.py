"""Coupons: linearizability, and conservation at each grant.

The feed is a witness: its events of a coupon, in their order, are replayed through the model. Each
response must then be that of the model at a moment between its invocation and its return. Where
this fails, a search looks for another order (``search``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from qa.histories.accounts import ERASED, Accounts, key_of
from qa.histories.checkers.campaigns import CampaignChecker, Holders
from qa.histories.checkers.orders import HELD
from qa.histories.generator import CONDITIONS
from qa.histories.history import UNKNOWN, Event, Operation, Segment, Violation, bounds_of
from qa.histories.model import (
    BUDGET,
    CONFIRMED,
    DELETED,
    PAUSED,
    PER_USER,
    PUBLISHED,
    RESERVED,
    TRASH,
    USAGE,
    Coupon,
    Person,
    Persons,
    Rejected,
    Use,
    coupon_of,
)
from qa.histories.search import Action, find_order

BY_CODE = frozenset({"reserve", "create_order"})
LIMITS, CONSERVATION = "linearizability", "conservation"
PAUSE = 10  # seconds; a snapshot and its queries take less, if a history does not say how long
MARGIN = 0.05  # seconds; between reading the clock and sending or receiving


@dataclass
class Step:
    """An event of a coupon, and the coupon after it.

    Attributes:
        holders: the new holders of uses, by the ID of the use, if the event changes them: an update
            of an order, or the deletion of a customer.
    """

    event: Event
    after: Coupon
    operation: Operation | None
    earliest: float
    latest: float
    holders: dict[int, tuple[int, str]] = field(default_factory=dict)


@dataclass
class Timeline:
    """A coupon during a segment."""

    before: Coupon
    steps: list[Step] = field(default_factory=list)

    @property
    def last(self) -> Coupon:
        """Return the coupon after the last event."""
        return self.steps[-1].after if self.steps else self.before

    def states(self, operation: Operation) -> Iterator[Coupon]:
        """Return the states of the coupon while an operation ran."""
        first, last = 0, len(self.steps)
        for index, step in enumerate(self.steps):
            if step.latest < operation.invoked:
                first = index + 1
            if step.earliest > operation.returned and index < last:
                last = index
        for index in range(first, last + 1):
            request = self.steps[index - 1].event.request_id if index else None
            inside = (
                index < len(self.steps)
                and request
                and (self.steps[index].event.request_id == request)
            )
            if not inside:  # a transaction is visible as a whole
                yield self.steps[index - 1].after if index else self.before


class CouponChecker:
    """Replays the feed and compares each response with the model."""

    def __init__(self) -> None:
        self.figures: Counter[str] = Counter()
        self.accounts = Accounts()
        self._coupons: dict[int, Coupon] = {}
        self._holders: dict[int, tuple[int, str]] = {}  # ID and e-mail of the customer, by order
        # The holders of an order in a segment, each with the earliest and the latest time.
        self._held_during: dict[int, list[tuple[float, float, tuple[int, str]]]] = {}
        self._use_holders: dict[int, tuple[int, str]] = {}  # the same, by redemption
        # All that a use had in a segment, if they have changed.
        self._use_holders_during: dict[int, list[tuple[int, str]]] = {}
        # Address that a redemption counts for and does not show: that of a deleted account with the
        # prefix ERASED, or that of a merged account.
        self._hidden: dict[int, str] = {}
        self._order_of: dict[int, int] = {}  # of the uses of orders, also of released ones
        # Uses that a merge has moved: the latest time of the merge, and the holder before it.
        self._moved: dict[int, tuple[float, tuple[int, str]]] = {}
        self._references: dict[int, dict[str, Any]] = {}  # redemptions by ID
        self._given_back: set[int] = set()  # released by a request: only a reservation can follow
        self._overlap: list[float] = []
        self.campaigns = CampaignChecker(Holders(self._live, self._persons_at, self._during))

    def begin(self, state: dict[str, Any]) -> None:
        """Take over the state before the first segment."""
        self.campaigns.begin(state)
        self._coupons = {id_: coupon_of(each) for id_, each in state["coupons"].items()}
        self.accounts.begin(state["customers"])

    def overlap(self) -> float:
        """Return how many operations on a coupon run at the same time, on average."""
        return sum(self._overlap) / max(1, len(self._overlap))

    # --- replay ---

    def check(self, segment: Segment) -> list[Violation]:
        """Return the violations in a segment."""
        self._segment = segment
        self._requests = segment.by_request()
        inf = float("inf")
        self._held_during = {
            order: [(-inf, inf, holder)] for order, holder in self._holders.items()
        }
        self._use_holders_during = {}
        self._learn(segment)
        self.accounts.observe(segment.events, self._requests, segment.after["customers"])
        self._timelines = {id_: Timeline(coupon) for id_, coupon in self._coupons.items()}
        self._last_events = {
            (event.data["resource_id"], event.request_id or event.id): event
            for event in segment.events
            if event.data["resource"] == "coupon"
        }
        self._releases = {
            (event.request_id, event.data["data"]["redemption"]["id"])
            for event in segment.events
            if event.type == "coupon.released"
        }
        found: list[Violation] = []
        self.campaigns.start(segment)
        for event in segment.events:
            found += self._replay(event)
            operation = self._requests.get(event.request_id or "")
            found += self.campaigns.replay(event, operation)
        for timeline in self._timelines.values():
            found += self._in_real_time(timeline)
        found += self._cycles()
        if not found:
            found = self._responses()
        found += self._at_the_end(segment) + self._holders_at_the_end(segment)
        found += self.campaigns.at_the_end(segment)
        self._coupons = {
            id_: each.last for id_, each in self._timelines.items() if each.last.status != DELETED
        }
        self._measure(segment)
        return found

    def _learn(self, segment: Segment) -> None:
        """Collect the expiry and the holder of redemptions, which events do not contain."""
        known = {
            id_: each for id_, each in segment.after["redemptions"].items() if each["coupon_id"]
        }
        self._references |= known
        self._by_request: dict[str, dict[str, Any]] = {}
        for operation in segment.operations:
            redemption = (operation.response or {}).get("redemption") if operation.is_done else None
            if redemption and operation.kind in {"reserve", "confirm", "release"}:
                self._by_request[operation.request_id] = redemption
                self._references.setdefault(redemption["id"], redemption)

    def _replay(self, event: Event) -> list[Violation]:
        resource, id_ = event.data["resource"], event.data["resource_id"]
        operation = self._requests.get(event.request_id or "")
        if resource == "order" and not event.type.endswith(".deleted"):
            return self._hold(event, operation, id_)
        if event.type in {"customer.deleted", "person.erased"}:
            return self._erase(event)
        if event.type == "customer.merged":
            return self._merge(event)
        if event.type == "coupon_batch.created" or resource != "coupon":
            return []
        if event.type == "coupon.created":
            self._timelines[id_] = Timeline(replace(coupon_of(event.record), status=DELETED))
            return self._add(self._timelines[id_], event, operation, coupon_of(event.record))
        timeline = self._timelines.get(id_)
        if timeline is None:
            return []  # of a generated batch
        try:
            # The events of a transaction show the coupon at its end.
            is_last = self._last_events[id_, event.request_id or event.id] is event
            after = self._after(timeline.last, event, operation, is_counted=is_last)
        except Rejected as error:
            return [self._broken(timeline, event, operation, error)]
        return self._add(timeline, event, operation, after)

    def _add(
        self,
        timeline: Timeline,
        event: Event,
        operation: Operation | None,
        after: Coupon,
        **holders: Any,
    ) -> list[Violation]:
        earliest, latest = bounds_of(event, operation)
        timeline.steps.append(Step(event, after, operation, earliest, latest, **holders))
        return []

    def _after(
        self, coupon: Coupon, event: Event, operation: Operation | None, *, is_counted: bool = True
    ) -> Coupon:
        """Return the coupon after an event. Raises Rejected if the model does not permit it.

        Args:
            is_counted: whether to compare the count in the event, which needs the order of the feed.
        """
        if event.type in {"coupon.redeemed", "coupon.released"}:
            use = event.data["data"]["redemption"]
            after = (self._redeemed if event.type == "coupon.redeemed" else self._released)(
                coupon, event, operation, use
            )
            # The event of a reservation of a coupon without limits can show an older count.
            is_exact = is_counted and (
                coupon.limit or coupon.per_user or after.count != coupon.count
            )
            if is_exact and after.count != event.record["usage_count"]:
                shown = event.record["usage_count"]
                raise Rejected(f"usage_count is {shown} and not {after.count}")
            return after
        if event.type == "coupon.deleted":
            return replace(coupon, status=DELETED if event.data["data"]["permanent"] else TRASH)
        shown = coupon_of(event.record, PUBLISHED, uses=coupon.uses)
        change = operation.args.get("change", {}) if operation else {}
        if event.type == "coupon.updated" and operation and operation.args.get("seen"):
            seen = coupon_of(operation.args["seen"], uses=coupon.uses)
            if seen.key() != replace(coupon, status=PUBLISHED).key():
                raise Rejected(
                    "a conditional update has changed another state than the one it read"
                )
        count = change.get("usage_count", coupon.count)
        if is_counted and shown.count != count:
            raise Rejected(f"usage_count is {shown.count} and not {count}")
        for name, ours, theirs in (
            ("code", coupon.code, shown.code),
            ("usage_limit", coupon.limit, shown.limit),
            ("usage_limit_per_user", coupon.per_user, shown.per_user),
        ):
            if theirs != (change.get(name, ours) if event.type == "coupon.updated" else ours):
                raise Rejected(f"{name} is {theirs} and not {change.get(name, ours)}")
        return replace(shown, count=count)

    def _redeemed(
        self, coupon: Coupon, event: Event, operation: Operation | None, use: dict[str, Any]
    ) -> Coupon:
        held = coupon.uses.get(use["id"])
        new = self._new_use(event, operation, use)
        if held is None:
            is_first = operation and (
                operation.kind == "reserve"
                or (operation.kind == "create_order" and operation.path == "/orders")
            )
            if is_first and coupon.status != PUBLISHED:
                raise Rejected("the coupon is not published")
            if operation and operation.kind == "confirm" and use["id"] in self._given_back:
                raise Rejected(f"redemption {use['id']} was released, and is confirmed")
            self._require_slot(coupon, new, operation, event)
            return coupon.take(new, Person())
        if held.status == RESERVED == use["status"]:
            raise Rejected(f"redemption {use['id']} takes a second use")
        if self._is_over(held, operation, event):
            # Its slot may have been free. Without the event of its expiry, it is taken again here.
            self._require_slot(coupon.release(held.id), new, operation, event)
        return coupon.move(use["id"], use["status"])

    def _new_use(self, event: Event, operation: Operation | None, use: dict[str, Any]) -> Use:
        if use["order_id"]:
            self._order_of[use["id"]] = use["order_id"]
            holder = self._counted(use["id"], self._holders.get(use["order_id"], (0, "")))
            return Use(use["id"], use["status"], *holder, use["order_id"])
        shown = self._by_request.get(event.request_id or "") or self._references.get(use["id"], {})
        customer, email = shown.get("customer_id") or 0, shown.get("email") or ""
        if operation and operation.kind == "reserve":
            customer, email = operation.args["customer_id"], operation.args["email"]
            self._hidden.pop(use["id"], None)  # it belongs to the customer of this request
        if use["status"] == CONFIRMED:
            customer, email = self._use_holders.get(use["id"], (customer, email))
        expires, slack = self._expiry(event, operation, shown)
        return Use(use["id"], use["status"], customer, key_of(email), None, expires, slack)

    def _counted(self, use_id: int, holder: tuple[int, str]) -> tuple[int, str]:
        """Return for whom a use of an order counts.

        The address of a deleted account stays, until the redemption gets another one, and that of
        a merged account until it gets another customer.
        """
        customer, email = holder
        hidden = self._hidden.get(use_id, "")
        is_other = email and ERASED + email != hidden
        if hidden and not hidden.startswith(ERASED):
            is_other = email or customer != self._use_holders.get(use_id, holder)[0]
        if hidden and is_other:
            del self._hidden[use_id]
            hidden = ""
        return customer, hidden or email

    def _expiry(
        self, event: Event, operation: Operation | None, shown: dict[str, Any]
    ) -> tuple[float | None, float]:
        """Return when a new reservation expires, and how much later it can be."""
        if event.data["data"]["redemption"]["status"] != RESERVED:
            return None, 0.0
        if operation and operation.kind == "reserve" and operation.status is None:
            # The machine that set it can be ahead or behind. Later segments may have no such clock.
            first = operation.invoked + self._segment.wall + operation.args["expires_in"] - 1
            skew = self._segment.skew
            return first - skew, event.latest - operation.invoked + 1 + 2 * skew
        return (seconds_of(shown["expires_at"]) if shown.get("expires_at") else None), 0.0

    def _require_slot(
        self, coupon: Coupon, use: Use, operation: Operation | None, event: Event
    ) -> None:
        """Check the limits at a grant."""
        self._set_holder(use.id, (use.customer, use.email))
        start, end = event.earliest, event.latest
        if operation:
            start = operation.invoked
            end = operation.returned if operation.status is not None else event.latest
        reasons = self._possible_reasons(coupon, use, start, end)
        if all(reasons):
            raise Rejected(reasons[0])

    def _possible_reasons(
        self, coupon: Coupon, use: Use, start: float, end: float
    ) -> list[set[str]]:
        """Return why the limits refuse a use, in each state that it can have seen.

        A merge at the same time can have moved other uses later than its event says, because the
        event of the use follows it and the check was before it.
        """
        person = self._persons_of_use(use, start, end)
        moved = {id_: held for id_, (latest, held) in self._moved.items() if latest >= start}
        coupons = (coupon, _with_holders(coupon, moved)) if moved else (coupon,)
        return [each.reasons(person, use.order) for each in coupons]

    def _persons_of_use(self, use: Use, start: float, end: float) -> Persons:
        """Return whose uses can count for a use between two times.

        The address of a merged account, by which a use counts, is not that of its customer.
        """
        is_of_merged = self._hidden.get(use.id) == use.email and not use.email.startswith(ERASED)
        holder = use.customer, "" if is_of_merged else use.email
        return self._persons_of(holder, use.order, start, end)

    def _persons_of(
        self, holder: tuple[int, str], order: int | None, start: float, end: float
    ) -> Persons:
        """Return whose uses can count for the holder of a use between two times.

        The shop does not know which account or guest has an erased address, unless the order of
        the use still has it.
        """
        customer, email = holder
        if not email.startswith(ERASED):
            return self.accounts.persons(customer, email, start, end)
        _, shown = self._holders.get(order or 0, (0, ""))
        return _with_addresses(self.accounts.persons(customer, shown, start, end), {email})

    def _live(self) -> dict[int, Use]:
        """Return the live uses of all coupons, with their holders."""
        timelines = self._timelines.values()
        return {use.id: use for timeline in timelines for use in timeline.last.uses.values()}

    def _persons_at(self, event: Event, use: Use) -> Persons:
        """Return whose uses can count for a use that an event has changed."""
        start, end = event.earliest, event.latest
        if operation := self._requests.get(event.request_id or ""):
            start = operation.invoked
            end = operation.returned if operation.status is not None else end
        return self._persons_of_use(use, start, end)

    def _during(self, use_id: int) -> list[tuple[int, str]]:
        """Return the holders that a use had in the segment."""
        return self._use_holders_during.get(use_id, [self._use_holders.get(use_id, (0, ""))])

    def _set_holder(self, use_id: int, holder: tuple[int, str]) -> None:
        before = self._use_holders.get(use_id, holder)
        self._use_holders_during.setdefault(use_id, [before]).append(holder)
        self._use_holders[use_id] = holder

    def _released(
        self, coupon: Coupon, event: Event, operation: Operation | None, use: dict[str, Any]
    ) -> Coupon:
        held = coupon.uses.get(use["id"])
        if held is None:
            raise Rejected(f"use {use['id']} is released and was not held")
        is_meant = operation and (
            use["order_id"]
            or (operation.kind, operation.args.get("redemption")) == ("release", held.id)
        )
        if not is_meant:
            wall = event.latest + self._segment.wall + self._segment.skew + MARGIN
            if held.status != RESERVED or held.expires is None or wall < held.expires:
                raise Rejected(f"use {held.id} is released and has not expired")
            self.figures["expiries"] += 1
            self._given_back.discard(held.id)
        elif operation and operation.kind == "release":
            self._given_back.add(held.id)
        return coupon.release(held.id)

    def _is_over(self, use: Use, operation: Operation | None, event: Event) -> bool:
        """Return whether a reservation has expired before an operation, by any clock."""
        start = operation.invoked if operation else event.earliest
        at = start + self._segment.wall - self._segment.skew - 1 - MARGIN
        return not use.lives_at(at, slack=True)

    def _hold(self, event: Event, operation: Operation | None, order_id: int) -> list[Violation]:
        """Note the customer of an order, for whom its uses count."""
        customer, email = event.record["customer_id"], event.record["billing_address"]["email"]
        before = self._holders.get(order_id)
        if not email and operation:
            email = _email_in(operation, event.record, before[1] if before else "")
        kind = operation.kind if operation else ""
        holder = (0, "") if kind == "erase" else (customer, key_of(email))
        self._set_holder_of_order(event, order_id, holder)
        if before in {holder, None} or kind == "erase":  # uses follow with the person
            return []
        if kind == "claim":
            claimed = {
                use_id: (customer, counted)
                for use_id, (owner, counted) in self._use_holders.items()
                if owner == 0 and self._order_of.get(use_id) == order_id
            }
            return self._give_all(event, operation, claimed)  # they counted for the address before
        found = []
        for timeline in self._timelines.values():
            held = [use for use in timeline.last.uses.values() if use.order == order_id]
            holders = {use.id: self._counted(use.id, holder) for use in held}
            changed = {
                use.id: holders[use.id]
                for use in held
                if holders[use.id] != (use.customer, use.email)
            }
            self._give(timeline, event, operation, changed)
            if timeline.last.status == DELETED:
                continue  # it has no limits, and no event releases its uses
            for use_id in changed:
                if (event.request_id, use_id) not in self._releases:
                    use = timeline.last.uses[use_id]
                    if any(each.id == use_id and each.email == use.email for each in held):
                        # It counts for an erased address as before, and for its new customer.
                        use = replace(use, email=holder[1])
                    found += self._beyond_limit(timeline, event, operation, use)
        return found

    def _set_holder_of_order(self, event: Event, order_id: int, holder: tuple[int, str]) -> None:
        self._holders[order_id] = holder
        versions = self._held_during.setdefault(order_id, [])
        if versions:
            versions[-1] = (versions[-1][0], event.latest, versions[-1][2])
        versions.append((event.earliest, float("inf"), holder))

    def _beyond_limit(
        self, timeline: Timeline, event: Event, operation: Operation | None, use: Use
    ) -> list[Violation]:
        """Check the limit per user, after an order that holds a coupon got another customer."""
        start, end = event.earliest, event.latest
        if operation:
            start, end = operation.invoked, max(operation.returned, operation.invoked)
        # The events of expired reservations, whose expiry the request has stored, come later.
        coupon = timeline.last
        for id_ in coupon.uses.keys() - {use.id}:
            if (event.request_id, id_) in self._releases:
                coupon = coupon.release(id_)
        found = self._possible_reasons(coupon, use, start, end)
        reasons = [each & {PER_USER} for each in found]
        if not all(reasons):
            return []
        return [self._broken(timeline, event, operation, Rejected(reasons[0]))]

    def _give(
        self,
        timeline: Timeline,
        event: Event,
        operation: Operation | None,
        holders: dict[int, tuple[int, str]],
    ) -> None:
        """Let uses belong to others."""
        for use_id, holder in holders.items():
            self._set_holder(use_id, holder)
        if holders:
            after = _with_holders(timeline.last, holders)
            self._add(timeline, event, operation, after, holders=holders)

    def _merge(self, event: Event) -> list[Violation]:
        """Let the orders and the uses of a removed account belong to the kept one.

        Uses that were counted by its ID alone get its address. Those above a limit stay.
        """
        kept, removed = event.data["resource_id"], event.data["data"]["merged"]["id"]
        address = self.accounts.deleted[removed].address or ""
        operation = self._requests.get(event.request_id or "")
        moved: dict[int, tuple[int, str]] = {}
        for use_id, (customer, email) in self._use_holders.items():
            if customer == removed:
                if not email and address:
                    self._hidden[use_id] = address
                self._moved[use_id] = event.latest, (customer, email)
                moved[use_id] = kept, email or address
        for order_id, (customer, email) in list(self._holders.items()):
            if customer == removed:
                self._set_holder_of_order(event, order_id, (kept, email))
        return self._give_all(event, operation, moved)

    def _erase(self, event: Event) -> list[Violation]:
        """Let the uses of a deleted account, or of an erased guest, count for the address.

        An erasure concerns all uses of its orders, also those that were released before the order
        got another customer.
        """
        operation, id_ = self._requests.get(event.request_id or ""), event.data["resource_id"]
        orders: set[int] = set()
        if event.type == "person.erased":
            account, id_, orders = event.record["customer_id"], -1, set(event.record["order_ids"])
            if account in self.accounts.deleted:  # by the event before
                address, addresses = self.accounts.deleted[account].address or "", set()
            elif account is None and operation:
                address = key_of(operation.body["person"]["email"])
                addresses = {address}
            else:
                return []
        elif id_ in self.accounts.merged:
            return []
        else:
            address = self.accounts.deleted[id_].address or ""
            addresses = self.accounts.remembered(id_)
        erased: dict[int, tuple[int, str]] = {}
        for use_id, (customer, email) in self._use_holders.items():
            is_theirs = customer == id_ or self._order_of.get(use_id) in orders
            if is_theirs or (
                customer == 0 and email in addresses and not self._is_later(use_id, event)
            ):
                counted = email or address
                if counted and not counted.startswith(ERASED):
                    counted = self._hidden[use_id] = ERASED + counted
                erased[use_id] = 0 if customer == id_ else customer, counted
        for order_id, (customer, email) in list(self._holders.items()):
            if customer == id_:
                self._set_holder_of_order(event, order_id, (0, email))
        return self._give_all(event, operation, erased)

    def _give_all(
        self, event: Event, operation: Operation | None, holders: dict[int, tuple[int, str]]
    ) -> list[Violation]:
        """Let uses of all coupons belong to others."""
        for use_id, holder in holders.items():
            self._set_holder(use_id, holder)
        for timeline in self._timelines.values():
            held = holders.keys() & timeline.last.uses.keys()
            self._give(timeline, event, operation, {use_id: holders[use_id] for use_id in held})
        return []

    def _is_later(self, use_id: int, event: Event) -> bool:
        """Return whether a guest has got a use after the deletion of an account.

        The deletion does not see what another request commits meanwhile, although its event comes
        later. Such a use still shows its address.
        """
        shown = self._segment.after["redemptions"].get(use_id, {})
        if key_of(shown.get("email", "")) != self._use_holders[use_id][1]:
            return False
        operation = self._requests.get(event.request_id or "")
        start = operation.invoked if operation else event.earliest
        return any(
            use_id in step.holders
            or (step.event.data["data"].get("redemption", {}).get("id") == use_id)
            for timeline in self._timelines.values()
            for step in timeline.steps
            if step.latest >= start
        )

    def _broken(
        self, timeline: Timeline, event: Event, operation: Operation | None, error: Rejected
    ) -> Violation:
        coupon = timeline.last
        reason = error.args[0]
        if isinstance(reason, set):
            uses = f"{coupon.count} confirmed and {coupon.reserved()} reserved uses"
            limits = f"limit {coupon.limit}, per user {coupon.per_user}"
            text = f"coupon {coupon.id}: a use is granted beyond {', '.join(sorted(reason))}: {uses}, {limits}"
        else:
            text = f"coupon {coupon.id}: {reason}"
        # Only the events of what is held, of the limits, and the one that breaks the promise.
        held = set(coupon.uses) | {event.data["data"].get("redemption", {}).get("id")}
        steps = [
            step
            for step in timeline.steps
            if "redemption" not in step.event.data["data"]
            or step.event.data["data"]["redemption"]["id"] in held
        ]
        operations = [step.operation for step in steps if step.operation]
        if operation:
            operations.append(operation)
        events = [step.event for step in steps] + [event]
        return Violation(CONSERVATION, text, list(dict.fromkeys(operations)), events)

    def _in_real_time(self, timeline: Timeline) -> list[Violation]:
        """Check that the order of the feed is consistent with the times of the requests."""
        latest = None
        for step in timeline.steps:
            if latest and step.latest < latest.earliest:
                text = f"coupon {timeline.before.id}: event {step.event.id} belongs before {latest.event.id}"
                operations = [each for each in (latest.operation, step.operation) if each]
                return [Violation(LIMITS, text, operations, [latest.event, step.event])]
            if latest is None or step.earliest > latest.earliest:
                latest = step
        return []

    def _cycles(self) -> list[Violation]:
        """Check that requests with several coupons have the same order in all of them."""
        places: dict[str, dict[int, int]] = {}
        for id_, timeline in self._timelines.items():
            for index, step in enumerate(timeline.steps):
                if step.event.request_id:
                    places.setdefault(step.event.request_id, {}).setdefault(id_, index)
        several = [(request, each) for request, each in places.items() if len(each) > 1]
        for number, (request, ours) in enumerate(several):
            for other, theirs in several[:number]:
                shared = [id_ for id_ in ours if id_ in theirs and self._is_limited(id_)]
                if len({ours[id_] < theirs[id_] for id_ in shared}) > 1:
                    text = f"coupons {shared} have two requests in different orders"
                    operations = [self._requests[each] for each in (request, other)]
                    return [Violation(LIMITS, text, operations)]
        return []

    def _is_limited(self, id_: int) -> bool:
        timeline = self._timelines[id_]
        states = [timeline.before, *(step.after for step in timeline.steps)]
        return all(state.limit or state.per_user for state in states)

    # --- responses ---

    def _responses(self) -> list[Violation]:
        """Compare each response without an event of its own with the states of its time."""
        effects = {
            step.event.request_id for each in self._timelines.values() for step in each.steps
        }
        failed: list[tuple[Operation, str]] = []
        for operation in self._segment.operations:
            if operation.status is None or operation.replayed:
                continue
            if problem := self._problem(operation, operation.request_id in effects):
                failed.append((operation, problem))
        self.figures["responses compared"] += len(self._segment.operations)
        found = []
        for operation, problem in failed:
            self.figures["searches"] += 1
            if not self._is_found_by_search(operation):
                found.append(self._unexplained(operation, problem))
        return found

    def _problem(self, operation: Operation, has_effect: bool) -> str:
        """Return why no state explains a response, or an empty text."""
        kind = operation.kind
        if operation.position:
            return ""  # it can come from a replica (see ``RecordChecker``)
        if operation.reasons and kind != "evaluate":
            by_campaign = operation.reasons & {BUDGET, PAUSED}
            possible = self.campaigns.possible(operation, self._persons(operation))
            if by_campaign - possible:
                return f"no campaign explains {sorted(by_campaign)}"
            if self._is_of_deleted_coupon(operation) and operation.reasons <= possible:
                return ""
            return self._rejected(operation)
        if kind == "evaluate" and operation.is_done:
            results = operation.response["evaluation"]["coupons"]
            bad = [each["code"] for each in results if not self._evaluated(operation, each)]
            return f"no state explains the evaluation of {bad}" if bad else ""
        if kind in {"confirm", "release", "read_redemption"} and not has_effect:
            return self._status(operation)
        if kind == "reserve" and operation.status == 200 and not has_effect:
            return self._status(operation)
        if kind == "read_coupon" and operation.is_done:
            return self._count_of(operation)
        if kind == "read_customer" and operation.is_done:
            return self._address_of(operation)
        if kind == "read_code" and operation.is_done:
            timeline = self._timelines.get(operation.response["coupon"]["id"])
            states = timeline.states(operation) if timeline else ()
            has_code = any(self._has_code(state, operation) for state in states)
            return self._count_of(operation) if has_code else "the coupon has another code"
        if kind == "read_code" and operation.status == 404:
            return self._not_found(operation, operation.args["code"])
        if kind in {"list_redemptions", "count"} and operation.is_done:
            return self._listed(operation)
        if kind == "create_order" and operation.is_done:
            return self._unused(operation)
        return ""

    def _unused(self, operation: Operation) -> str:
        """Check that a new order uses each of its coupons, also with recorded amounts."""
        status = operation.body["order"]["status"]
        if not HELD.get(status, CONFIRMED):
            return ""
        used = {
            id_
            for id_, timeline in self._timelines.items()
            for step in timeline.steps
            if step.event.request_id == operation.request_id
        }
        unused = [
            code
            for code in operation.args["codes"]
            if (problem := self._not_found(operation, code))
            and not any(problem == self._coupon_with(id_, code) for id_ in used)
        ]
        return f"an order that is {status} has no use of {unused}" if unused else ""

    @staticmethod
    def _coupon_with(id_: int, code: str | None) -> str:
        return f"coupon {id_} has the code {code}"

    @staticmethod
    def _has_code(coupon: Coupon, operation: Operation) -> bool:
        return coupon.status == PUBLISHED and coupon.code == operation.args["code"]

    def _rejected(self, operation: Operation) -> str:
        """Check a rejection with reasons: one of the coupons that it can mean explains it."""
        codes = operation.args.get("codes") or [operation.args.get("code")]
        if "not_found" in operation.reasons:
            # An order does not use a coupon that has the code of its deleted coupon now.
            is_new = operation.kind in {"reserve", "create_order", "bulk_orders"}
            is_missing = any(not self._not_found(operation, code) for code in codes)
            return "a coupon has the code" if is_new and not is_missing else ""
        # An order that records a coupon uses the one that it found by its code, also if it is moved
        # to the trash meanwhile.
        must_be_published = operation.kind in BY_CODE and not _records_coupons(operation)
        for timeline in self._timelines.values():
            states = list(timeline.states(operation))
            # A request uses the coupon that it found by its code, also if it is renamed meanwhile.
            is_meant = any(self._can_mean(state, operation, codes) for state in states)
            if is_meant and any(
                self._explains(state, operation, operation.reasons)
                for state in states
                if state.status == PUBLISHED or not must_be_published
            ):
                return ""
        reached = ", ".join(sorted(operation.reasons))
        coupons = [
            f"{each.code} has {each.count} confirmed and {each.reserved()} reserved uses, limit "
            f"{each.limit}, per user {each.per_user}"
            for each in (timeline.last for timeline in self._timelines.values())
            if each.code in codes
        ]
        return f"no coupon had reached {reached} while the request ran: {'; '.join(coupons)}"

    def _is_of_deleted_coupon(self, operation: Operation) -> bool:
        """Return whether a request confirms a use that can have only its campaign left."""
        redemption = self._references.get(operation.args.get("redemption"))
        if redemption is None:
            return False
        timeline = self._timelines.get(redemption["coupon_id"])
        return timeline is None or any(
            state.status == DELETED for state in timeline.states(operation)
        )

    def _can_mean(self, coupon: Coupon, operation: Operation, codes: list[Any]) -> bool:
        """Return whether a rejection can be about a coupon."""
        if operation.kind in BY_CODE:
            return coupon.status == PUBLISHED and coupon.code in codes
        if operation.kind == "confirm":
            redemption = self._references.get(operation.args["redemption"])
            return redemption is None or redemption["coupon_id"] == coupon.id
        return True  # an order keeps a coupon that was renamed

    def _not_found(self, operation: Operation, code: str | None) -> str:
        for timeline in self._timelines.values():
            states = list(timeline.states(operation))
            if all(each.status == PUBLISHED and each.code == code for each in states):
                return self._coupon_with(timeline.before.id, code)
        return ""

    def _persons(self, operation: Operation) -> list[Persons]:
        """Return for whom an operation can take a use: one of several customers."""
        customer, email = operation.args.get("customer_id"), operation.args.get("email", "")
        if operation.kind == "confirm":
            use_id = operation.args["redemption"]
            holder = self._use_holders.get(use_id, (0, ""))
            return [
                self._persons_of(each, None, operation.invoked, operation.returned)
                for each in dict.fromkeys(self._use_holders_during.get(use_id, [holder]))
            ]
        if customer is None:
            order = operation.args.get("order", 0)
            versions = self._held_during.get(order, [])
            # A use that the order takes again counts for the address of the deleted account.
            erased = {
                address
                for use_id, address in self._hidden.items()
                if self._references.get(use_id, {}).get("order_id") == order
            }
            return [
                _with_addresses(
                    self.accounts.persons(customer, email, operation.invoked, operation.returned),
                    erased,
                )
                for earliest, latest, (customer, email) in versions
                if earliest <= operation.returned and latest >= operation.invoked
            ] or [Persons()]
        return [self.accounts.persons(customer or 0, email, operation.invoked, operation.returned)]

    def _bounds(self, coupon: Coupon, operation: Operation) -> tuple[Coupon, Coupon]:
        """Return a coupon with as few, and with as many, live uses as the clocks permit."""
        skew = self._segment.skew + MARGIN
        start = operation.invoked + self._segment.wall - skew - 1
        end = operation.returned + self._segment.wall + skew
        few = {use.id: use for use in coupon.uses.values() if use.lives_at(end)}
        many = {use.id: use for use in coupon.uses.values() if use.lives_at(start, slack=True)}
        return replace(coupon, uses=few), replace(coupon, uses=many)

    def _explains(self, coupon: Coupon, operation: Operation, reasons: set[str]) -> bool:
        few, many = self._bounds(coupon, operation)
        reasons = reasons & {USAGE, PER_USER}
        order = operation.args.get("order")
        persons = self._persons(operation)
        if operation.kind in {"bulk_orders", "change_coupons", "change_items"}:
            persons = [*persons, Persons()]
        others = self.campaigns.possible(operation, persons)
        return any(
            reasons <= many.reasons(person, order, at_most=True) | others
            and (order is not None or few.reasons(person) <= reasons)
            for person in persons
        )

    def _evaluated(self, operation: Operation, result: dict[str, Any]) -> bool:
        reasons = {each["code"] for each in result["reasons"]}
        if "not_found" in reasons:
            return not self._not_found(operation, result["code"])
        return any(
            state.status == PUBLISHED
            and state.code == result["code"]
            and self._explains(state, operation, reasons)
            for timeline in self._timelines.values()
            for state in timeline.states(operation)
        )

    def _status(self, operation: Operation) -> str:
        """Check the status of a redemption in a response without an effect."""
        if operation.status == 409:
            return self._not_confirmed(operation)
        shown = (operation.response or {}).get("redemption")
        if not shown or shown["coupon_id"] is None:
            return ""
        timeline = self._timelines.get(shown["coupon_id"])
        if timeline is None:
            return ""
        for state in timeline.states(operation):
            if state.status == DELETED:
                return ""
            few, many = self._bounds(state, operation)
            held = state.uses.get(shown["id"])
            statuses = {held.status} if held and held.id in many.uses else set()
            if shown["id"] not in few.uses:
                statuses.add("released")
            if held and held.status == CONFIRMED:
                statuses = {CONFIRMED}
            if shown["status"] in statuses:
                return ""
        return f"redemption {shown['id']} was not {shown['status']} while the request ran"

    def _not_confirmed(self, operation: Operation) -> str:
        """Check the rejection of a redemption that was released, or that belongs to an order."""
        redemption = self._references.get(operation.args["redemption"])
        if redemption is None or redemption["order_id"] or redemption["coupon_id"] is None:
            return ""
        timeline = self._timelines.get(redemption["coupon_id"])
        if timeline is None or any(
            state.status == DELETED
            or redemption["id"] not in self._bounds(state, operation)[0].uses
            for state in timeline.states(operation)
        ):
            return ""
        return f"redemption {redemption['id']} was live while the request ran"

    def _count_of(self, operation: Operation) -> str:
        shown = operation.response["coupon"]
        timeline = self._timelines.get(shown["id"])
        if timeline is None:
            return ""
        counts = [state.count for state in timeline.states(operation)]
        if shown["usage_count"] in counts:
            return ""
        return f"usage_count is {shown['usage_count']}, and was {sorted(set(counts))}"

    def _address_of(self, operation: Operation) -> str:
        """Check the address of an account in a response."""
        customer = operation.response["customer"]
        known = self.accounts.during(customer["id"], operation.invoked, operation.returned)
        if not known or key_of(customer["email"]) in known:
            return ""
        return f"the address is {customer['email']}, and was one of {sorted(map(str, known))}"

    def _listed(self, operation: Operation) -> str:
        """Check a list or a count of the redemptions of a coupon with a status."""
        timeline = self._timelines.get(operation.args["coupon"])
        if timeline is None:
            return ""
        body, status = operation.response, operation.args["status"]
        number = body["count"] if operation.kind == "count" else len(body["redemptions"])
        sizes = []
        for state in timeline.states(operation):
            if state.status == DELETED:
                return ""
            few, many = self._bounds(state, operation)
            low, high = (
                sum(use.status == status for use in each.uses.values()) for each in (few, many)
            )
            if low <= number <= high:
                return ""
            sizes.append((low, high))
        return f"{number} uses are {status}, and there were {sizes}"

    def _is_found_by_search(self, operation: Operation) -> bool:
        """Search for an order of the operations of a coupon in which the response is right."""
        kept = dict(self._use_holders), dict(self._hidden), set(self._given_back)
        found = any(
            find_order(
                timeline.before, [*self._actions(timeline), self._reading(timeline, operation)]
            )
            for timeline in self._timelines.values()
            if operation.args.get("coupon") in {None, timeline.before.id}
        )
        # The actions of the search have changed them.
        self._use_holders, self._hidden, self._given_back = kept
        return found

    def _actions(self, timeline: Timeline) -> list[Action]:
        """Return the requests that have changed a coupon, and the expiries, as actions."""
        requests: dict[str, list[Step]] = {}
        for step in timeline.steps:
            requests.setdefault(step.event.request_id or f"event {step.event.id}", []).append(step)

        def apply(steps: list[Step], coupon: Coupon) -> Coupon:
            for step in steps:
                if step.holders:
                    coupon = _with_holders(coupon, step.holders)
                else:
                    coupon = self._after(coupon, step.event, step.operation, is_counted=False)
            return coupon

        return [
            Action(
                request,
                max(step.earliest for step in steps),
                min(step.latest for step in steps),
                partial(apply, steps),
            )
            for request, steps in requests.items()
        ]

    def _reading(self, timeline: Timeline, operation: Operation) -> Action:
        """Return an operation that changes nothing as an action."""

        def apply(coupon: Coupon) -> Coupon:
            timelines = self._timelines
            self._timelines = timelines | {timeline.before.id: Timeline(coupon)}
            try:
                if problem := self._problem(operation, has_effect=False):
                    raise Rejected(problem)
            finally:
                self._timelines = timelines
            return coupon

        return Action(operation.request_id, operation.invoked, operation.returned, apply)

    def _unexplained(self, operation: Operation, problem: str) -> Violation:
        shown: list[Operation] = []
        events: list[Event] = []
        codes = operation.args.get("codes") or [operation.args.get("code")]
        for timeline in self._timelines.values():
            is_meant = timeline.before.code in codes or timeline.before.id == operation.args.get(
                "coupon"
            )
            for step in timeline.steps:
                near = (
                    step.latest >= operation.invoked - 0.5 and step.earliest <= operation.returned
                )
                if is_meant and near:
                    events.append(step.event)
                    shown += [step.operation] if step.operation else []
        operations = list(dict.fromkeys([*shown, operation]))
        return Violation(LIMITS, problem, operations, events)

    # --- the end of a segment ---

    def _at_the_end(self, segment: Segment) -> list[Violation]:
        """Compare the counts of each coupon with its redemptions, and both with the feed."""
        found = []
        taken = segment.after["taken"]
        began = segment.after.get("began", taken - PAUSE)
        for id_, timeline in self._timelines.items():
            coupon = timeline.last
            stored = segment.after["coupons"].get(id_)
            redemptions = {
                each["id"]: each["status"]
                for each in segment.after["redemptions"].values()
                if each["coupon_id"] == id_ and each["status"] != "released"
            }
            uses = {
                use.id: use.status
                for use in coupon.uses.values()
                if use.lives_at(taken + segment.skew + 1)
            }
            possible = {
                use.id: use.status
                for use in coupon.uses.values()
                if use.lives_at(began - segment.skew - 1, slack=True)
            }
            if coupon.status == DELETED:
                continue
            problems = []
            if stored and stored["usage_count"] != coupon.count:
                problems.append(
                    f"usage_count is {stored['usage_count']}, by the feed {coupon.count}"
                )
            if (
                not uses.items() <= redemptions.items()
                or not redemptions.items() <= possible.items()
            ):
                problems.append(f"live redemptions are {redemptions}, by the feed {possible}")
            for text in problems:
                steps = timeline.steps
                operations = [step.operation for step in steps if step.operation]
                events = [step.event for step in steps]
                operations = list(dict.fromkeys(operations))
                found.append(Violation(CONSERVATION, f"coupon {id_}: {text}", operations, events))
        return found

    def _holders_at_the_end(self, segment: Segment) -> list[Violation]:
        """Compare addresses, and owners of orders and uses, with those by the feed.

        A redemption does not show an erased address.
        """
        found = []
        for timeline in self._timelines.values():
            for use in timeline.last.uses.values() if timeline.last.status != DELETED else ():
                redemption = segment.after["redemptions"].get(use.id)
                wanted = use.customer, "" if use.id in self._hidden else use.email
                if redemption is None or redemption["status"] == "released":
                    continue
                shown = redemption["customer_id"], key_of(redemption["email"])
                if shown != wanted:
                    text = f"redemption {use.id} belongs to {shown}, by the feed to {wanted}"
                    events = [step.event for step in timeline.steps]
                    found.append(Violation(CONSERVATION, text, events=events))
        for order_id, order in segment.after.get("orders", {}).items():
            shown = order["customer_id"], key_of(order["billing_address"]["email"])
            wanted = self._holders.get(order_id, shown)
            if shown != wanted:
                text = f"order {order_id} belongs to {shown}, by the feed to {wanted}"
                found.append(Violation(CONSERVATION, text))
        for id_, address in self.accounts.current.items():
            customer = segment.after["customers"].get(id_, {"email": address})
            if key_of(customer["email"]) != address:
                text = f"customer {id_} has {customer['email']}, by the feed {address}"
                found.append(Violation(CONSERVATION, text))
        return found

    def _measure(self, segment: Segment) -> None:
        """Count for each operation on a code how many others ran at the same time.

        Requests without a response do not count: most are refused while a service starts, which
        takes long on a busy machine.
        """
        by_code: dict[str, list[Operation]] = {}
        for operation in segment.operations:
            if operation.status is UNKNOWN:
                continue
            for code in operation.args.get("codes") or [operation.args.get("code")]:
                if code:
                    by_code.setdefault(code, []).append(operation)
        for code in CONDITIONS:
            by_code.pop(code, None)  # nobody competes for them
        for operations in by_code.values():
            for one in operations:
                others = sum(
                    two.invoked < one.returned and two.returned > one.invoked for two in operations
                )
                self._overlap.append(others)


def _with_addresses(persons: Persons, emails: set[str]) -> Persons:
    """Return a person for whom uses with further addresses count."""
    certain = Person(persons.certain.ids, persons.certain.emails | emails)
    return replace(persons, certain=certain)


def _with_holders(coupon: Coupon, holders: dict[int, tuple[int, str]]) -> Coupon:
    uses = {
        id_: replace(use, customer=holders[id_][0], email=holders[id_][1])
        if id_ in holders
        else use
        for id_, use in coupon.uses.items()
    }
    return replace(coupon, uses=uses)


def _records_coupons(operation: Operation) -> bool:
    """Return whether an order has coupons with an amount, which another system has applied."""
    lines = ((operation.body or {}).get("order") or {}).get("coupon_lines") or ()
    return any("amount" in line for line in lines)


def _email_in(operation: Operation, order: dict[str, Any], before: str) -> str:
    """Return the e-mail address of an order, which the deletion of a customer removes from events.

    Args:
        before: the address before the operation.
    """
    if "email" in operation.args:
        return str(operation.args["email"])
    response = (operation.response or {}) if operation.is_done else {}
    shown = [response.get("order", {}), *response.get("orders", ())]
    sent = (operation.body or {}).get("orders", ())
    for each in [*shown, *sent]:
        is_meant = order["id"] == each.get("id") or order["order_key"] == each.get("order_key")
        if is_meant and "billing_address" in each:
            return str(each["billing_address"]["email"])
    return before


def seconds_of(text: str) -> float:
    """Return the seconds since 1970 of a time in a response."""
    return datetime.fromisoformat(text).timestamp()
