"""The sequential model of a coupon, and the search for an order of operations."""

from dataclasses import replace
from functools import partial
from itertools import product
from random import Random

import pytest

from qa.histories.model import CONFIRMED, RESERVED, Coupon, Person, Persons, Rejected, Use
from qa.histories.search import Action, find_order

COUPON = Coupon(1, "spring", limit=2, per_user=1)
ANN, BOB = Person(frozenset({5}), frozenset({"ann@x"})), Person(frozenset(), frozenset({"bob@x"}))
NOBODY = Person()


def use(number, status=RESERVED, **of):
    return Use(number, status, **of)


def taken(coupon, *uses):
    for each in uses:
        coupon = coupon.take(each, NOBODY)
    return coupon


def test_limits_count_confirmed_and_reserved_uses():
    coupon = taken(COUPON, use(1, CONFIRMED), use(2))
    assert (coupon.count, coupon.reserved()) == (1, 1)
    with pytest.raises(Rejected) as error:
        coupon.take(use(3), NOBODY)
    assert error.value.args == ({"usage_limit"},)


def test_uses_of_a_person_count_by_account_and_by_address():
    coupon = taken(COUPON, use(1, customer=5))
    assert coupon.reasons(ANN) == {"usage_limit_per_user"}
    assert coupon.reasons(BOB) == set()
    assert coupon.reasons(NOBODY) == set()
    assert taken(COUPON, use(1, email="ann@x")).reasons(ANN) == {"usage_limit_per_user"}


def uncertain(random, accounts, choices, ids):
    """A person whose accounts have choices with some of the IDs, which count for sure or perhaps."""

    def choice():
        most = frozenset(random.sample(ids, random.randint(0, 3)))
        return Person(frozenset(each for each in most if each % 2)), Person(most)

    several = [frozenset(choice() for _ in range(choices)) for _ in range(accounts)]
    return Persons(Person(frozenset(ids[:1])), tuple(several))


def counts(persons, uses):
    """How many uses count for each person that the choices permit: the lowest and the highest."""
    found = [
        [
            len(persons.certain.of(uses).union(*(each[number].of(uses) for each in chosen)))
            for chosen in product(*persons.accounts)
        ]
        for number in (0, 1)
    ]
    return min(found[0]), max(found[1])


@pytest.mark.parametrize("seed", range(50))
def test_uses_of_an_uncertain_person_are_those_of_all_combinations(seed):
    ids = list(range(1, 7))
    persons = uncertain(Random(seed), 4, 3, ids)
    uses = [use(10 + id_, customer=id_) for id_ in ids[seed % 2 :]]
    assert (persons.least(uses), persons.most(uses)) == counts(persons, uses)
    limited = replace(COUPON, limit=0, uses={each.id: each for each in uses})
    assert bool(limited.reasons(persons)) == bool(persons.least(uses))
    assert bool(limited.reasons(persons, at_most=True)) == bool(persons.most(uses))


def test_uses_of_very_uncertain_persons_are_counted_in_little_time():
    """All 20 accounts have 9 choices. The bounds are then less exact, and never wrong."""
    ids = list(range(1, 61))
    persons = uncertain(Random(1), 20, 9, ids)
    uses = [use(100 + id_, customer=id_) for id_ in ids]
    several = replace(persons, accounts=persons.accounts[:3])
    least, most = counts(several, uses)
    assert several.least(uses) <= least
    assert persons.certain.least(uses) <= persons.least(uses)
    assert most <= persons.most(uses) <= len(uses)


def test_use_of_an_order_does_not_count_against_it():
    assert taken(COUPON, use(1, customer=5, order=7)).reasons(ANN, order=7) == set()


def test_confirmed_and_released_uses():
    coupon = taken(COUPON, use(1)).move(1, CONFIRMED)
    assert (coupon.count, coupon.reserved()) == (1, 0)
    assert coupon.move(1, RESERVED).count == 0
    assert coupon.release(1).key() == COUPON.key()


@pytest.mark.parametrize(
    "change",
    [
        lambda coupon: coupon.take(use(1), NOBODY),
        lambda coupon: coupon.move(1, RESERVED),
        lambda coupon: coupon.release(2),
    ],
)
def test_impossible_change_is_rejected(change):
    with pytest.raises(Rejected):
        change(taken(COUPON, use(1)))


def test_count_is_never_negative():
    coupon = Coupon(1, "spring", uses={1: use(1, CONFIRMED)})
    assert coupon.release(1).count == 0


# --- the search ---


def grant(number, invoked, returned, *, is_certain=True):
    take = partial(_take, number)
    return Action(f"grant {number}", invoked, returned, take, is_certain)


def _take(number, coupon):
    return coupon.take(use(number), NOBODY)


def release(number, invoked, returned):
    return Action(f"release {number}", invoked, returned, lambda coupon: coupon.release(number))


def rejection(invoked, returned):
    def apply(coupon):
        if not coupon.reasons(NOBODY):
            raise Rejected("a slot is free")
        return coupon

    return Action("rejection", invoked, returned, apply)


ONE = Coupon(1, "spring", limit=1)


def names(actions):
    order = find_order(ONE, actions)
    return order and [action.name for action in order]


def test_operations_at_the_same_time_can_have_any_order():
    actions = [grant(1, 0, 1), grant(2, 2, 5), release(1, 3, 4)]
    assert names(actions) == ["grant 1", "release 1", "grant 2"]


def test_operations_one_after_the_other_keep_their_order():
    assert names([grant(1, 0, 1), grant(2, 2, 3), release(1, 4, 5)]) is None


def test_rejection_needs_a_moment_without_a_free_slot():
    assert names([grant(1, 0, 1), release(1, 2, 3), rejection(2.5, 4)]) == [
        "grant 1", "rejection", "release 1",
    ]  # fmt: skip
    assert names([grant(1, 0, 1), release(1, 2, 3), rejection(3.5, 4)]) is None


def test_operation_of_unknown_result_may_have_happened():
    lost = grant(1, 0, 9, is_certain=False)
    assert names([lost, rejection(2, 3)]) == ["grant 1", "rejection"]
    assert names([lost, grant(2, 2, 3)]) == ["grant 2"]


def test_search_gives_up_after_a_time():
    many = [grant(number, 0, 100) for number in range(40)]
    assert find_order(Coupon(1, "spring", limit=39), many, seconds=0.2) is None
