"""Short campaigns on each database (docs/reliability.md), and the planted defects."""

import ast
from pathlib import Path

import pytest

from tests.histories import campaign, plants, report
from tests.histories.faults import KINDS
from tests.histories.plants import PLANTS

SECONDS = 20
PLANTED_SECONDS = 60
ON_POSTGRESQL = {"no-lock"}
QUICK = (
    "no-lock", "release-frees-two", "idempotency-survives-rollback", "idempotency-forgets",
    "email-case", "lost-event", "statistics-not-updated", "wrong-count", "limit-off-by-one",
    "trash-keeps-use", "refund-exceeds", "refunded-releases", "refunded-items", "keys-shared",
    "keys-of-any-body", "update-without-time", "note-lost", "discount-kept", "metadata-dropped",
    "read-only-writes", "restored-as-pending", "second-key-ignored", "second-status-ignored",
    "second-coupon-without-discount", "customer-unchecked", "replay-with-200",
    "results-reordered", "fees-left-out", "feed-page-skips", "order-if-match-ignored",
    "address-change-lost", "guests-not-erased",
)  # fmt: skip
"""Plants that a few seconds of traffic without faults show. ``make histories`` runs the others."""


def run(database, seed, seconds, **options):
    """Run a campaign; return its result and what was found, as text."""
    result = campaign.run(database, seed, seconds, **options)
    return result, [report.text(violation, seed) for violation in result.violations]


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_promises_hold_during_faults(database):
    result, found = run(database, 1, SECONDS)
    assert found == []
    # How often depends on the machine: ``make histories`` reports what was not tested.
    assert set(result.figures["faults"]) >= set(KINDS)
    assert result.figures["responses compared"] == result.figures["operations"]


@pytest.mark.slow
def test_limit_per_customer_holds_while_addresses_change():
    """Guests become accounts, accounts take the addresses of guests, and accounts are deleted."""
    result, found = run("postgresql", 1, SECONDS, faults=False, accounts=True)
    assert found == []
    assert result.figures["responses compared"] == result.figures["operations"]


@pytest.mark.slow
@pytest.mark.parametrize("plant", QUICK)
def test_planted_defect_is_found(plant):
    database = "postgresql" if plant in ON_POSTGRESQL else "sqlite"
    _, found = run(database, 1, PLANTED_SECONDS, plant=plant, faults=False)
    assert found


def test_quick_plants_exist():
    assert set(QUICK) < set(PLANTS)


def test_plants_replace_names_that_exist():
    """A plant that replaces a name of an earlier version has no effect."""
    targets = [
        target
        for node in ast.walk(ast.parse(Path(plants.__file__).read_text()))
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
    ]
    replaced = [
        (getattr(plants, target.value.id), target.attr)
        for target in targets
        if hasattr(plants, target.value.id)
    ]
    assert len(replaced) >= 25
    assert [each for each in replaced if not hasattr(*each)] == []
