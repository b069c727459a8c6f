"""Short campaigns on each database (docs/reliability.md), and the planted defects."""

import pytest

from tests.cluster import programs
from tests.histories import campaign, report
from tests.histories.plants import PLANTS

SECONDS = 20
PLANTED_SECONDS = 60
ON_POSTGRESQL = {"no-lock"}
ON_CLUSTER = {"replica-without-position"}


def run(database, seed, seconds, **options):
    """Run a campaign; return its result and what was found, as text."""
    result = campaign.run(database, seed, seconds, **options)
    return result, [report.text(violation, seed) for violation in result.violations]


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql", "cluster"])
def test_promises_hold_during_faults(database):
    if database == "cluster" and (reason := programs.missing()):
        pytest.skip(reason)
    result, found = run(database, 1, SECONDS)
    assert found == []
    assert result.not_tested == []


@pytest.mark.slow
@pytest.mark.parametrize("plant", PLANTS)
def test_planted_defect_is_found(plant):
    database = "sqlite"
    if plant in ON_POSTGRESQL:
        database = "postgresql"
    if plant in ON_CLUSTER:
        if reason := programs.missing():
            pytest.skip(reason)
        database = "cluster"
    _, found = run(database, 1, PLANTED_SECONDS, plant=plant)
    assert found
