"""The comparison of journals with stored records: it must see what would be lost."""

import pytest

from qa.cluster.journal import ABSENT, Journal

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


@pytest.mark.parametrize(("before", "after"), [(None, "later"), ("earlier", None)])
def test_time_of_a_confirmation_is_not_known_before_its_response(before, after):
    journal = Journal()
    use = {"id": 1, "status": "before", "updated_at": "earlier", "confirmed_at": before}
    journal.acknowledge({"use": use})
    journal.lose({"use": {"status": "after"}})
    changed = use | {"status": "after", "updated_at": "later", "confirmed_at": after}
    assert journal.compare({"use": changed}) == ([], 1)
