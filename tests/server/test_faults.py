"""Killed processes lose no acknowledged write (docs/operations.md, Durability).

A short campaign with each target once. ``make faults`` runs hundreds of kills with any seed.
"""

from collections import Counter

import pytest

from tests.faults import campaign
from tests.faults.feed import Feed
from tests.faults.journal import ABSENT, Journal


@pytest.mark.parametrize(
    ("database", "kills"),
    [("sqlite", 3), pytest.param("postgresql", 5, marks=pytest.mark.slow)],
)
def test_what_was_acknowledged_outlives_kills(database, kills):
    problems, figures = campaign.run(database, kills, seed=7)
    assert problems == []
    assert figures["acknowledged requests"] > 0
    assert figures["events"] > figures["acknowledged requests"] / 2
    assert sum(number for name, number in figures.items() if name.startswith("kills")) == kills


# --- the comparison of events ---


class Shop:
    """Answers with a page of events."""

    def __init__(self, *events):
        self.events = [
            {"id": id_, "type": type_, "resource": type_.partition(".")[0], "resource_id": 1,
             "data": {"coupon": {"id": 1}}}
            for id_, type_ in events
        ]  # fmt: skip

    def send(self, method, path):
        return 200, {"events": self.events}


CREATED, UPDATED = ("coupon.created", 1), ("coupon.updated", 1)


@pytest.mark.parametrize(
    ("events", "problems"),
    [
        ([(1, "coupon.created"), (2, "coupon.updated")], 0),
        ([(1, "coupon.created")], 1),
        ([(1, "coupon.created"), (2, "coupon.updated"), (3, "coupon.updated")], 1),
        ([(2, "coupon.created"), (1, "coupon.updated")], 1),
        ([(1, "coupon.created"), (1, "coupon.updated")], 1),
        ([(1, "coupon.created"), (2, "coupon.deleted")], 2),
    ],
)
def test_comparison_finds_missing_and_superfluous_events(events, problems):
    found, number = Feed().compare(Shop(*events), Counter([CREATED, UPDATED]))
    assert (len(found), number) == (problems, len(events))


def test_comparison_finds_an_event_that_does_not_show_its_record():
    feed = Feed()
    feed.compare(Shop((1, "coupon.created")), Counter([CREATED]))
    assert feed.differences("coupon", [{"id": 1}]) == []
    assert len(feed.differences("coupon", [{"id": 1, "amount": "1.00"}])) == 1
    assert len(feed.differences("coupon", [])) == 1


def test_the_journal_expects_the_events_of_what_was_carried_out(journal):
    journal.lose({"one": {"amount": "9.00"}, "two": ABSENT, "new": NEW})
    assert journal.events == Counter([CREATED, ("coupon.created", 2)])
    journal.compare({"one": EDITED, "new": STORED})
    assert journal.events - Counter([CREATED, ("coupon.created", 2)]) == Counter(
        [UPDATED, ("coupon.deleted", 2), ("coupon.created", 3)]
    )


# --- the comparison itself: it must see what would be lost ---

ONE, TWO = {"id": 1, "code": "one", "amount": "1.00"}, {"id": 2, "code": "two", "amount": "2.00"}


@pytest.fixture
def journal():
    """A journal of two acknowledged records."""
    journal = Journal()
    journal.acknowledge({"one": ONE, "two": TWO})
    return journal


@pytest.mark.parametrize(
    ("stored", "problems"),
    [
        ({"one": ONE, "two": TWO}, 0),
        ({"one": ONE}, 1),
        ({"one": ONE, "two": TWO | {"amount": "0.00"}}, 1),
        ({"one": ONE, "two": TWO, "three": ONE}, 1),
        ({}, 2),
    ],
)
def test_comparison_finds_what_was_lost(journal, stored, problems):
    found, _ = journal.compare(stored)
    assert len(found) == problems


def test_comparison_finds_a_deletion_that_was_undone(journal):
    journal.acknowledge({"one": ABSENT})
    assert len(journal.compare({"one": ONE, "two": TWO})[0]) == 1


NEW = {"code": "new", "amount": "3.00"}
STORED = {"id": 3, "description": ""} | NEW
EDITED = ONE | {"amount": "9.00", "updated_at": "later"}


@pytest.mark.parametrize(
    ("stored", "problems", "done"),
    [
        ({"one": ONE, "two": TWO}, 0, 0),
        ({"one": EDITED, "new": STORED}, 0, 1),
        ({"one": EDITED, "two": TWO, "new": STORED}, 1, 0),
        ({"one": ONE, "two": TWO, "new": STORED}, 1, 0),
        ({"one": ONE, "two": TWO, "new": STORED | {"amount": "0.00"}}, 1, 0),
        ({"one": EDITED, "two": TWO}, 1, 0),
    ],
    ids=["none", "all", "no deletion", "create only", "half a create", "edit only"],
)
def test_comparison_finds_a_bulk_that_is_half_there(journal, stored, problems, done):
    journal.lose({"one": {"amount": "9.00"}, "two": ABSENT, "new": NEW})
    found, carried_out = journal.compare(stored)
    assert (len(found), carried_out) == (problems, done)
