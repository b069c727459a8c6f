"""The sequential model: a coupon in a shop that serves one request after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

RESERVED, CONFIRMED = "reserved", "confirmed"
PUBLISHED, TRASH, DELETED = "published", "trash", "deleted"
USAGE, PER_USER = "usage_limit", "usage_limit_per_user"
BUDGET, PAUSED = "campaign_budget", "paused"


@dataclass(frozen=True)
class Use:
    """A live use of a coupon, and its holder.

    Attributes:
        expires: seconds since 1970, or None.
        slack: how much later it can expire, if the response with the time was lost.
    """

    id: int
    status: str
    customer: int = 0
    email: str = ""
    order: int | None = None
    expires: float | None = None
    slack: float = 0.0

    def lives_at(self, time: float, *, slack: bool = False) -> bool:
        """Return whether it has not expired at a time."""
        return self.expires is None or self.expires + (self.slack if slack else 0.0) > time


@dataclass(frozen=True)
class Person:
    """Accounts and e-mail addresses whose uses count together."""

    ids: frozenset[int] = frozenset()
    emails: frozenset[str] = frozenset()

    def has(self, use: Use) -> bool:
        """Return whether a use counts for the person."""
        return use.customer in self.ids or use.email in self.emails

    def of(self, uses: Iterable[Use]) -> frozenset[int]:
        """Return the IDs of those uses that count for the person."""
        return frozenset(use.id for use in uses if self.has(use))

    def least(self, uses: Iterable[Use]) -> int:
        """Return how many of the uses count for the person."""
        return len(self.of(uses))

    most = least


MOST_SETS = 30
"""Sets of uses that are told apart while the uses of several accounts are combined."""


@dataclass(frozen=True)
class Persons:
    """A person whose accounts and addresses are not certain.

    The choices of an account do not depend on those of another one. Their combinations are not
    listed, because their number grows exponentially with that of the accounts.

    Attributes:
        certain: what counts for the person in any case.
        accounts: for each account the possible choices: what counts for the person at least, and at
            most.
    """

    certain: Person = Person()
    accounts: tuple[frozenset[tuple[Person, Person]], ...] = ()

    def least(self, uses: Collection[Use]) -> int:
        """Return how many of the uses count for the person at least."""
        found = {self.certain.of(uses)}
        for choices in self.accounts:
            held = {least.of(uses) for least, _ in choices}
            found = {one | other for one in found for other in held}
            found = {one for one in found if not any(other < one for other in found)}
            if len(found) > MOST_SETS:
                found = {frozenset.intersection(*found)}
        return min(map(len, found))

    def most(self, uses: Collection[Use]) -> int:
        """Return how many of the uses count for the person at most."""
        found = {self.certain.of(uses)}
        for choices in self.accounts:
            held = {most.of(uses) for _, most in choices}
            found = {one | other for one in found for other in held}
            found = {one for one in found if not any(other > one for other in found)}
            if len(found) > MOST_SETS:
                found = {frozenset[int]().union(*found)}
        return max(map(len, found))


class Rejected(Exception):
    """A use that is not possible. The argument is the reasons, or a text."""


@dataclass(frozen=True)
class Coupon:
    """The terms of a coupon, its counts and its uses. Each operation returns the coupon after it."""

    id: int
    code: str
    status: str = PUBLISHED
    limit: int = 0
    per_user: int = 0
    count: int = 0
    uses: dict[int, Use] = field(default_factory=dict)

    def reserved(self) -> int:
        return sum(use.status == RESERVED for use in self.uses.values())

    def reasons(
        self, person: Person | Persons, order: int | None = None, *, at_most: bool = False
    ) -> set[str]:
        """Return which limits another use reaches.

        Args:
            order: the order whose uses do not count for the person.
            at_most: whether to count the uses that can be those of the person.
        """
        reached = {USAGE} if self.limit and self.count + self.reserved() >= self.limit else set()
        if self.per_user:
            others = [u for u in self.uses.values() if order is None or u.order != order]
            number = person.most(others) if at_most else person.least(others)
            if number >= self.per_user:
                reached.add(PER_USER)
        return reached

    def take(self, use: Use, person: Person) -> Coupon:
        if reasons := self.reasons(person, use.order):
            raise Rejected(reasons)
        if use.id in self.uses:
            raise Rejected(f"use {use.id} is held already")
        return self._with(use, int(use.status == CONFIRMED))

    def move(self, use_id: int, status: str) -> Coupon:
        use = self.uses.get(use_id)
        if use is None or use.status == status:
            raise Rejected(f"use {use_id} is {use.status if use else 'not held'}")
        return self._with(
            replace(use, status=status, expires=None), 1 if status == CONFIRMED else -1
        )

    def release(self, use_id: int) -> Coupon:
        if use_id not in self.uses:
            raise Rejected(f"use {use_id} is not held")
        rest = {id_: use for id_, use in self.uses.items() if id_ != use_id}
        less = int(self.uses[use_id].status == CONFIRMED)
        return replace(self, uses=rest, count=max(0, self.count - less))

    def _with(self, use: Use, more: int) -> Coupon:
        return replace(self, uses={**self.uses, use.id: use}, count=max(0, self.count + more))

    def key(self) -> Any:
        return (
            self.code,
            self.status,
            self.limit,
            self.per_user,
            self.count,
            frozenset(self.uses.values()),
        )


@dataclass(frozen=True)
class Campaign:
    """The terms of a campaign and the uses of all its coupons, which are one object.

    Attributes:
        budget: cents; 0 means none.
        amounts: cents of each live use, by its ID.
    """

    id: int
    active: bool = True
    limit: int = 0
    per_user: int = 0
    budget: int = 0
    amounts: dict[int, int] = field(default_factory=dict)

    @property
    def discount(self) -> int:
        """Return the sum of the amounts."""
        return sum(self.amounts.values())

    def reasons(self, cents: int, of_customer: int) -> set[str]:
        """Return why another use is not possible.

        Args:
            of_customer: number of uses of its customer.
        """
        reached = {USAGE} if self.limit and len(self.amounts) >= self.limit else set()
        if self.per_user and of_customer >= self.per_user:
            reached.add(PER_USER)
        if self.budget and cents and self.discount + cents > self.budget:
            reached.add(BUDGET)
        return reached

    def with_use(self, use_id: int, cents: int) -> Campaign:
        return replace(self, amounts=self.amounts | {use_id: cents})

    def without(self, use_id: int) -> Campaign:
        rest = {id_: cents for id_, cents in self.amounts.items() if id_ != use_id}
        return replace(self, amounts=rest)


def campaign_of(record: dict[str, Any]) -> Campaign:
    """Return the model of a campaign as the API shows it, without uses."""
    return Campaign(
        record["id"],
        record["active"],
        record["usage_limit"] or 0,
        record["usage_limit_per_user"] or 0,
        int(Decimal(record["budget"]).scaleb(2)),
    )


def coupon_of(record: dict[str, Any], status: str = PUBLISHED, **more: Any) -> Coupon:
    """Return the model of a coupon as the API shows it."""
    return Coupon(
        record["id"], record["code"], status,
        record["usage_limit"] or 0, record["usage_limit_per_user"] or 0, record["usage_count"],
        **more,
    )  # fmt: skip
