"""Campaigns: all coupons of one are one object, whose limits and budget the feed alone can show.

The events of uses contain the campaign and the amount, and an ``order.updated`` the changed amounts
of its coupon lines. Uses of coupons that were deleted permanently have no events, so they do not
count here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from qa.histories.history import Event, Operation, Segment, Violation, bounds_of
from qa.histories.model import BUDGET, PAUSED, PER_USER, USAGE, Campaign, Persons, Use, campaign_of

NAME = "campaigns"
MARGIN = 1.0  # seconds; a time in a response has no fraction
NEW = ("reserve", "create_order")


@dataclass
class Holders:
    """What another checker knows about the customers of uses.

    Attributes:
        uses: returns the live uses by their IDs, with their present holders.
        persons: returns whose uses can count for the holder of a use, given an event and the use.
        during: returns the holders of a use in the segment, given its ID.
    """

    uses: Callable[[], dict[int, Use]]
    persons: Callable[[Event, Use], Persons]
    during: Callable[[int], list[tuple[int, str]]]


@dataclass
class _State:
    campaign: Campaign
    earliest: float
    latest: float  # of the event that has led to the state


@dataclass
class _Place:
    """Where a live use counts: its campaign, coupon and order, and the code of its line."""

    campaign: int
    coupon: int
    order: int | None
    code: str


class CampaignChecker:
    """Replays the feed, and compares it with the state at each pause."""

    def __init__(self, holders: Holders) -> None:
        self._holders = holders
        self.campaigns: dict[int, Campaign] = {}
        self._places: dict[int, _Place] = {}
        self._states: dict[int, list[_State]] = {}
        self._lost: set[int] = set()  # uses of coupons that were deleted permanently

    def begin(self, state: dict[str, Any]) -> None:
        """Take over the state before the first segment."""
        self.campaigns = {
            id_: campaign_of(each) for id_, each in state.get("campaigns", {}).items()
        }

    def start(self, segment: Segment) -> None:
        """Begin a segment."""
        self._codes = {id_: each["code"] for id_, each in segment.after["redemptions"].items()}
        # An order can take them again without an event.
        without = [each for each in segment.after["redemptions"].values() if not each["coupon_id"]]
        self._unseen = len(self._lost) + len(without)
        inf = float("inf")
        self._states = {id_: [_State(each, -inf, -inf)] for id_, each in self.campaigns.items()}
        self._last = {event.request_id or event.id: event for event in segment.events}
        self._sums: dict[Any, dict[int, int]] = {}

    def replay(self, event: Event, operation: Operation | None) -> list[Violation]:
        """Apply an event, and return what it breaks."""
        request = event.request_id or event.id
        if request not in self._sums:
            self._sums[request] = {id_: each.discount for id_, each in self.campaigns.items()}
        before, found = dict(self.campaigns), self._replayed(event, operation)
        for id_, campaign in self.campaigns.items():
            if campaign is not before.get(id_):
                self._add(id_, campaign, event, operation)
        if self._last[request] is event:
            found += self._grown(self._sums.pop(request), event, operation)
        return found

    def _replayed(self, event: Event, operation: Operation | None) -> list[Violation]:
        resource, id_ = event.data["resource"], event.data["resource_id"]
        if resource == "campaign" and event.type != "campaign.deleted":
            known = self.campaigns.get(id_, Campaign(id_))
            self.campaigns[id_] = replace(campaign_of(event.record), amounts=known.amounts)
        elif event.type == "order.updated":
            self._change_amounts(event)
        elif event.type == "coupon.deleted" and event.data["data"]["permanent"]:
            for use_id in [use for use, place in self._places.items() if place.coupon == id_]:
                self._remove(use_id)
                self._lost.add(use_id)
        elif event.type == "coupon.released":
            self._remove(event.data["data"]["redemption"]["id"])
        elif event.type == "coupon.redeemed":
            return self._redeem(event, operation, event.data["data"]["redemption"])
        return []

    def _add(self, id_: int, campaign: Campaign, event: Event, operation: Operation | None) -> None:
        earliest, latest = bounds_of(event, operation)
        self._states.setdefault(id_, []).append(_State(campaign, earliest, latest))

    def _remove(self, use_id: int) -> None:
        if place := self._places.pop(use_id, None):
            self.campaigns[place.campaign] = self.campaigns[place.campaign].without(use_id)

    def _change_amounts(self, event: Event) -> None:
        """Take over the amounts of the coupon lines of an order."""
        amounts = {line["code"]: line["amount"] for line in event.record["coupon_lines"]}
        for use_id, place in self._places.items():
            if place.order == event.data["resource_id"] and place.code in amounts:
                campaign = self.campaigns[place.campaign]
                cents = cents_of(amounts[place.code])
                if cents != campaign.amounts[use_id]:
                    self.campaigns[place.campaign] = campaign.with_use(use_id, cents)

    def _redeem(
        self, event: Event, operation: Operation | None, use: dict[str, Any]
    ) -> list[Violation]:
        id_, cents = use.get("campaign_id"), cents_of(use.get("amount"))
        if (place := self._places.get(use["id"])) and place.campaign == id_:
            self.campaigns[id_] = self.campaigns[id_].with_use(use["id"], cents)
            return []  # it is confirmed, or reserved again
        self._remove(use["id"])
        if id_ is None:
            return []
        campaign = self.campaigns[id_]
        reasons = campaign.reasons(cents, self._of_customer(campaign, event, use["id"]))
        if (
            operation
            and operation.kind in NEW
            and not campaign.active
            and not _is_recorded(operation)
        ):
            reasons.add(PAUSED)
        self.campaigns[id_] = campaign.with_use(use["id"], cents)
        code = self._codes.get(use["id"], event.record["code"])
        coupon = event.data["resource_id"]
        self._places[use["id"]] = _Place(id_, coupon, use["order_id"], code)
        return (
            [_broken(campaign, f"a use is granted beyond {sorted(reasons)}", event, operation)]
            if reasons
            else []
        )

    def _of_customer(self, campaign: Campaign, event: Event, use_id: int) -> int:
        """Return how many other uses its customer has at least."""
        uses = self._holders.uses()
        if not campaign.per_user or use_id not in uses:
            return 0
        others = [uses[id_] for id_ in campaign.amounts if id_ in uses and id_ != use_id]
        return self._holders.persons(event, uses[use_id]).least(others)

    def _grown(
        self, sums: dict[int, int], event: Event, operation: Operation | None
    ) -> list[Violation]:
        """Check at the end of a transaction that no discount has grown beyond a budget."""
        return [
            _broken(each, f"the discount has grown from {sums.get(id_, 0)}", event, operation)
            for id_, each in self.campaigns.items()
            if event.data["resource"] != "campaign"
            and each.budget
            and each.discount > max(each.budget, sums.get(id_, 0))
        ]

    # --- responses ---

    def possible(self, operation: Operation, persons: Iterable[Persons]) -> set[str]:
        """Return the reasons that a campaign can have given while an operation ran."""
        persons = list(persons)
        codes = operation.args.get("codes") or [operation.args.get("code")]
        more = 100 if operation.kind == "bulk_orders" else len(codes) - 1
        amount = cents_of(operation.args.get("amount")) if operation.kind == "reserve" else None
        found: set[str] = set()
        for states in self._states.values():
            for index, state in enumerate(states):
                following = states[index + 1] if index + 1 < len(states) else None
                if state.earliest > operation.returned:
                    continue
                if following and following.latest < operation.invoked:
                    continue
                found |= self._reasons(state.campaign, persons, more, amount)
        return found

    def _reasons(
        self, campaign: Campaign, persons: list[Persons], more: int, amount: int | None
    ) -> set[str]:
        found = set() if campaign.active else {PAUSED}
        uses = len(campaign.amounts) + more + self._unseen
        if campaign.limit and uses >= campaign.limit:
            found.add(USAGE)
        of_customer = sum(
            any(
                person.most([Use(id_, "", *holder)])
                for person in persons
                for holder in self._holders.during(id_)
            )
            for id_ in campaign.amounts
        )
        if campaign.per_user and of_customer + more + self._unseen >= campaign.per_user:
            found.add(PER_USER)
        # The amount of a cart is not known here.
        if campaign.budget and (
            amount is None or self._unseen or campaign.discount + amount > campaign.budget
        ):
            found.add(BUDGET)
        return found

    # --- the end of a segment ---

    def at_the_end(self, segment: Segment) -> list[Violation]:
        """Compare the figures of each campaign with its uses, and both with the feed."""
        found = []
        state = segment.after
        start = state.get("began", state["taken"]) - segment.skew - MARGIN
        end = state["taken"] + segment.skew + MARGIN
        for id_, rows in state.get("of_campaigns", {}).items():
            shown, campaign = state["campaigns"][id_], self.campaigns[id_]
            live = [each for each in rows if not _expires(each) or _expires(each) > start]
            sure = [each for each in rows if not _expires(each) or _expires(each) > end]
            for name, of_rows in (("uses", len), ("discount", _sum)):
                value = cents_of(shown[name]) if name == "discount" else shown[name]
                if not of_rows(sure) <= value <= of_rows(live):
                    text = f"{name} is {shown[name]}, its redemptions have {of_rows(live)}"
                    found.append(_broken(campaign, text))
            amounts = {each["id"]: cents_of(each["amount"]) for each in rows}
            known = {each["id"]: amounts[each["id"]] for each in rows if each["coupon_id"]}
            ours = campaign.amounts
            must = {each["id"] for each in sure} & known.keys()
            if any(ours.get(use) != known[use] for use in must) or any(
                known.get(use, cents) != cents for use, cents in ours.items()
            ):
                found.append(_broken(campaign, f"its redemptions are {known}, by the feed {ours}"))
            gone = [use for use in ours if use not in amounts]
            expiring = {use.id for use in self._holders.uses().values() if use.expires}
            if left := [use for use in gone if use not in expiring]:
                found.append(_broken(campaign, f"its uses {left} of the feed are not live"))
        return found


def cents_of(amount: str | None) -> int:
    """Return an amount in cents. A negative one counts as 0, as does null."""
    return max(0, int(Decimal(amount or 0).scaleb(2)))


def _sum(rows: list[Any]) -> int:
    return sum(cents_of(each["amount"]) for each in rows)


def _expires(row: dict[str, Any]) -> float:
    expires = row["expires_at"]
    return datetime.fromisoformat(expires).timestamp() if expires else 0.0


def _is_recorded(operation: Operation) -> bool:
    lines = ((operation.body or {}).get("order") or {}).get("coupon_lines") or ()
    return any("amount" in line for line in lines)


def _broken(
    campaign: Campaign,
    text: str,
    event: Event | None = None,
    operation: Operation | None = None,
) -> Violation:
    terms = f"limit {campaign.limit}, per user {campaign.per_user}, budget {campaign.budget}"
    taken = f"{len(campaign.amounts)} uses with {campaign.discount}"
    text = f"campaign {campaign.id}: {text}: {taken}, {terms}"
    return Violation(NAME, text, [operation] if operation else [], [event] if event else [])
